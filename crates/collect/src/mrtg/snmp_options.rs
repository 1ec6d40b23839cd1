//! The Perl hash after `SnmpOptions`: `name => value` pairs of numbers and quoted texts.

/// The pairs of a hash, names in lower case; `None` when the text is none.
pub fn parse(text: &str) -> Option<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = word(rest)?;
        let after = after.trim_start();
        let after = after.strip_prefix("=>").or_else(|| after.strip_prefix(','))?;
        let (value, after) = word(after.trim_start())?;
        pairs.push((name.to_lowercase(), value));
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(after) => after.trim_start(),
            None if after.is_empty() => after,
            None => return None,
        };
    }
    Some(pairs)
}

/// A bare word, a number or a quoted text at the beginning, and what follows.
fn word(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next()?;
    if quote != '\'' && quote != '"' {
        let bare = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '+');
        let end = text.find(|letter| !bare(letter)).unwrap_or(text.len());
        return (end > 0).then(|| (text[..end].to_string(), &text[end..]));
    }
    let mut value = String::new();
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == quote {
            return Some((value, &text[at + quote.len_utf8()..]));
        }
        match letters.peek() {
            Some(&(_, next)) if letter == '\\' && (next == quote || next == '\\') => {
                value.push(next);
                letters.next();
            }
            _ => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_numbers_and_quoted_texts() {
        let check = |text: &str, want: Option<&[(&str, &str)]>| {
            let found = parse(text);
            let found: Option<Vec<_>> =
                found.as_ref().map(|pairs| pairs.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect());
            assert_eq!(found.as_deref(), want, "{text}");
        };
        check(
            "retries => 2, only_ip_address_matching => 0",
            Some(&[("retries", "2"), ("only_ip_address_matching", "0")]),
        );
        check(
            "username=>'user1',authpassword=>\"a'b\",\n",
            Some(&[("username", "user1"), ("authpassword", "a'b")]),
        );
        check("'timeout' => 1.5, p => 'it\\'s'", Some(&[("timeout", "1.5"), ("p", "it's")]));
        check("", Some(&[]));
        for bad in ["x y", "yes", "/tmp", "a =>", "a => 'x", "10%", "a => 1 b => 2"] {
            check(bad, None);
        }
    }
}
