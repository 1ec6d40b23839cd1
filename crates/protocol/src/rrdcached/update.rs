//! The arguments of an UPDATE.
//!
//! Nearly every line a daemon gets is `UPDATE name time:value...` with nothing to unescape: [`plain_update`]
//! parses it in one pass and without a copy, eight bytes at a time (cost:
//! `crates/server/examples/parse_speed.rs`). Any other line goes through [`super::request`], and its
//! arguments through [`UpdateWords::parse`], which finds what rrdcached refuses.

use super::limits::LINE_BYTES_MAX;
use super::words::Words;

/// An UPDATE whose name and arguments can be used without unescaping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainUpdate<'a> {
    /// The name relative to the base directory (components separated by single slashes, none starting with a
    /// dot, `../` nowhere, at most 255 bytes in all), a space, and the arguments, separated by single spaces. Each starts
    /// with a plain number and a colon.
    pub text: &'a [u8],
    /// Length of the name.
    pub name_length: usize,
    /// The number of arguments.
    pub words: u32,
}

impl<'a> PlainUpdate<'a> {
    /// The name.
    pub fn name(&self) -> &'a [u8] {
        &self.text[..self.name_length]
    }

    /// The arguments.
    pub fn values(&self) -> &'a [u8] {
        &self.text[self.name_length + 1..]
    }
}

/// Parses the line at the start of `bytes` if it is an ordinary UPDATE and complete; `None` for any other.
/// `base` is the base directory with a trailing slash. Also returns the length of the line with its line
/// feed.
#[inline]
pub fn plain_update<'a>(bytes: &'a [u8], base: &[u8]) -> Option<(PlainUpdate<'a>, usize)> {
    let rest = after_verb(bytes)?;
    let name_end = plain_name_end(rest)?;
    let text = if rest[0] == b'/' { rest.strip_prefix(base)? } else { rest };
    let name_length = name_end.checked_sub(rest.len() - text.len())?;
    let (words, length) = plain_words(&text[name_length + 1..])?;
    let end = name_length + 1 + length;
    let line_feed = end + usize::from(text.get(end) == Some(&b'\r'));
    if text.get(line_feed) != Some(&b'\n') || name_length == 0 || name_length > NAME_BYTES_MAX {
        return None;
    }
    let used = bytes.len() - text.len() + line_feed + 1;
    (used - 1 <= LINE_BYTES_MAX).then_some((PlainUpdate { text: &text[..end], name_length, words }, used))
}

/// The name relative to the base directory, for an update whose name and arguments are separate; `None` when
/// one of them is unusual.
#[inline]
pub fn plain_name<'a>(name: &'a [u8], values: &[u8], base: &[u8]) -> Option<&'a [u8]> {
    let name = if name.first() == Some(&b'/') { name.strip_prefix(base)? } else { name };
    if memchr::memchr(b'\0', name).is_some() || !is_plain_name(name) {
        return None;
    }
    let (_, length) = plain_words(values)?;
    (length == values.len()).then_some(name)
}

#[inline]
fn after_verb(line: &[u8]) -> Option<&[u8]> {
    let (verb, rest) = line.split_first_chunk::<7>()?;
    // Upper-case letters and the space: setting bit 5 folds the case and leaves a space unchanged.
    let folded = verb.map(|byte| byte | 0x20);
    (&folded == b"update " && verb[6] == b' ').then_some(rest)
}

/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 255;

#[inline]
fn is_plain_name(name: &[u8]) -> bool {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return false;
    }
    // The position before the name counts as a slash, so that one rule covers every component: neither a
    // slash nor a dot follows a slash. Compat: nor may two dots precede one, as in rrdcached with -B.
    let (mut two_before, mut before) = (b'/', b'/');
    let mut plain = true;
    for &byte in name {
        plain &= !((before == b'/') & ((byte == b'/') | (byte == b'.')));
        plain &= !((two_before == b'.') & (before == b'.') & (byte == b'/'));
        (two_before, before) = (before, byte);
    }
    plain && before != b'/'
}

/// The lowest bit of each of eight bytes.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each of eight bytes.
const TOPS: u64 = ONES << 7;

/// The eight bytes at `at`, the first one lowest; zeros follow the last byte.
#[inline]
fn eight_at(bytes: &[u8], at: usize) -> u64 {
    let rest = &bytes[at..];
    let eight = rest.first_chunk::<8>().copied().unwrap_or_else(|| {
        let mut padded = [0; 8];
        padded[..rest.len()].copy_from_slice(rest);
        padded
    });
    u64::from_le_bytes(eight)
}

/// The top bit of each byte that equals `byte`.
#[inline]
fn equal(eight: u64, byte: u8) -> u64 {
    let other = eight ^ (u64::from(byte) * ONES);
    !(((other & !TOPS) + !TOPS) | other) & TOPS
}

/// The top bit of the first byte that ends a word or is not allowed in one: anything up to a space, and the
/// backslash. Higher bits are meaningless.
#[inline]
fn first_end(eight: u64) -> u64 {
    let backslash = eight ^ (u64::from(b'\\') * ONES);
    ((eight.wrapping_sub(0x21 * ONES) & !eight) | (backslash.wrapping_sub(ONES) & !backslash)) & TOPS
}

/// Length of the name at the start of `bytes`, up to a space; `None` when it is not plain ([`is_plain_name`],
/// optionally after one slash) or has no end.
#[inline]
fn plain_name_end(bytes: &[u8]) -> Option<usize> {
    // The first byte of a component; the position before a relative name counts as a slash.
    let mut begins = if bytes.first() == Some(&b'/') { 0 } else { 0x80 };
    // The full stops among the eight bytes before.
    let mut dots_before = 0;
    let mut at = 0;
    while at < bytes.len() {
        let eight = eight_at(bytes, at);
        let slashes = equal(eight, b'/');
        begins |= slashes << 8;
        // A full stop differs from a slash only in its lowest bit.
        let bad = begins & equal(eight | ONES, b'/');
        // A slash after two of them.
        let dots = equal(eight, b'.');
        let bad = bad | slashes & (dots << 8 | dots_before >> 56) & (dots << 16 | dots_before >> 48);
        let ends = first_end(eight);
        if ends != 0 {
            let end = ends & ends.wrapping_neg();
            // No invalid byte before the end, and at least one byte since the last slash.
            let index = at + end.trailing_zeros() as usize / 8;
            return (bad & (end - 1) == 0 && begins & end == 0 && bytes.get(index) == Some(&b' '))
                .then_some(index);
        }
        if bad != 0 {
            return None;
        }
        begins = slashes >> 56;
        dots_before = dots;
        at += 8;
    }
    None
}

/// Counts arguments that start with `digits[.digits]:`, up to a carriage return, a line feed or the last
/// byte; also returns their length. `None` when one does not.
#[inline]
fn plain_words(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut words = 0;
    let mut start = 0;
    loop {
        let mut at = digits_end(bytes, start);
        if at == start {
            return None;
        }
        if bytes.get(at) == Some(&b'.') {
            at = digits_end(bytes, at + 1);
        }
        if bytes.get(at) != Some(&b':') {
            return None;
        }
        at = word_end(bytes, at + 1);
        words += 1;
        match bytes.get(at) {
            Some(b' ') => start = at + 1,
            Some(b'\n' | b'\r') | None => return Some((words, at)),
            Some(_) => return None,
        }
    }
}

/// The end of the digits that start at `at`.
#[inline]
fn digits_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        let digits = eight_at(bytes, at) ^ (u64::from(b'0') * ONES);
        // A carry only reaches bytes after one that is not a digit.
        let others = (digits.wrapping_add(0x76 * ONES) | digits) & TOPS;
        if others != 0 {
            return at + others.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at.min(bytes.len())
}

/// The end of the word that starts at `at`.
#[inline]
fn word_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        let ends = first_end(eight_at(bytes, at));
        if ends != 0 {
            return at + ends.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    bytes.len()
}

/// The arguments of an unusual UPDATE, up to the first that rrdcached refuses.
#[derive(Debug, Default)]
pub struct UpdateWords {
    /// The valid arguments, unescaped, separated by single spaces.
    pub values: Vec<u8>,
    /// Their number.
    pub count: u32,
    /// The time of the last valid argument, in seconds.
    pub last_time: Option<f64>,
    /// The first invalid argument; later ones are not checked.
    pub bad: Option<BadWord>,
}

/// An invalid argument of an UPDATE.
#[derive(Debug, PartialEq)]
pub enum BadWord {
    /// It does not start with a number and a colon.
    NoTimestamp(Vec<u8>),
    /// Its time, in seconds, is before 1970.
    Negative(f64),
}

impl UpdateWords {
    /// Parses arguments up to the first invalid one.
    pub fn parse(words: Words<'_>) -> Self {
        let mut update = UpdateWords::default();
        for word in words {
            let time = match time_of(&word) {
                Ok(time) => time,
                Err(bad) => {
                    update.bad = Some(bad);
                    break;
                }
            };
            if update.count > 0 {
                update.values.push(b' ');
            }
            update.values.extend_from_slice(&word);
            update.count += 1;
            update.last_time = Some(time);
        }
        update
    }
}

/// The time of an unescaped argument, in seconds.
///
/// # Errors
/// When rrdcached refuses the argument without looking at its values.
pub fn time_of(word: &[u8]) -> Result<f64, BadWord> {
    match rrd::number::parse_prefix(word) {
        // Compat: RRDtool takes this as relative to now, rrdcached as a time long ago.
        Some((time, [b':', ..])) if !word.contains(&b' ') => match word.starts_with(b"-") {
            true => Err(BadWord::Negative(time)),
            false => Ok(time),
        },
        _ => Err(BadWord::NoTimestamp(word.to_vec())),
    }
}

impl BadWord {
    /// rrdcached's error text, given the RRD's last update in seconds.
    pub fn text(&self, last_update: f64) -> Vec<u8> {
        match self {
            BadWord::NoTimestamp(word) => [b"Cannot find timestamp in '", &**word, b"'!"].concat(),
            BadWord::Negative(time) => not_later(*time, last_update).into_bytes(),
        }
    }
}

/// rrdcached's error text for a time, in seconds, that is not after the last update.
pub fn not_later(time: f64, last_update: f64) -> String {
    format!(
        "illegal attempt to update using time {time:.6} when last update time is {last_update:.6} (minimum one second step)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &[u8] = b"/var/lib/rrd/";

    #[test]
    fn ordinary_lines_are_parsed() {
        let check = |line: &str, name: &str, values: &str, words| {
            let text = format!("{name} {values}");
            let want = PlainUpdate { text: text.as_bytes(), name_length: name.len(), words };
            for end in ["\n", "\r\n", "\nUPDATE b.rrd 3:4\n"] {
                let used = line.len() + end.find('\n').unwrap() + 1;
                assert_eq!(
                    plain_update(format!("{line}{end}").as_bytes(), BASE),
                    Some((want, used)),
                    "{line}"
                );
            }
            assert_eq!(plain_update(line.as_bytes(), BASE), None, "{line} without its end");
        };
        check("UPDATE a.rrd 1:2", "a.rrd", "1:2", 1);
        check("update a/b.rrd 1:2:3 4:5:6", "a/b.rrd", "1:2:3 4:5:6", 2);
        check("UpDaTe /var/lib/rrd/h/a.rrd 1.5:U", "h/a.rrd", "1.5:U", 1);
        check("UPDATE a..rrd/b. 1:", "a..rrd/b.", "1:", 1);
        check("UPDATE a.rrd 1:2@3", "a.rrd", "1:2@3", 1);
        check("UPDATE a 12345678:123456789 1234567.8:", "a", "12345678:123456789 1234567.8:", 2);
        for (directory, name) in (1..100).zip(1..) {
            let name = format!("{}/{}", "d".repeat(directory), "\u{e4}".repeat(name % 77 + 1));
            check(&format!("UPDATE {name} 1:2"), &name, "1:2", 1);
        }
    }

    #[test]
    fn unusual_lines_are_not_parsed() {
        let lines: [&[u8]; 26] = [
            b"UPDATE",
            b"UPDATE ",
            b"UPDATE a.rrd",
            b"UPDATE a.rrd ",
            b"UPDATE\0a.rrd 1:2",
            b"UPDATED a.rrd 1:2",
            b"UPDATE  a.rrd 1:2",
            b"UPDATE a.rrd  1:2",
            b"UPDATE a.rrd 1:2 ",
            b"UPDATE a.rrd 1:2 3",
            b"UPDATE a.rrd N:2",
            b"UPDATE a.rrd -1:2",
            b"UPDATE a.rrd 1e9:2",
            b"UPDATE a.rrd 1.2.3:2",
            b"UPDATE a\\ b.rrd 1:2",
            b"UPDATE a.rrd 1:2\0",
            b"UPDATE /etc/a.rrd 1:2",
            b"UPDATE /var/lib/rrd//a.rrd 1:2",
            b"UPDATE a/../b.rrd 1:2",
            b"UPDATE ./b.rrd 1:2",
            b"UPDATE b/ 1:2",
            b"UPDATE /var/lib/rrd/ 1:2",
            b"UPDATE a.rrd 1:2\t3",
            b"UPDATE a.rrd 1:2\r3",
            b"UPDATE abcdefg/.rrd 1:2",
            b"FLUSH a.rrd",
        ];
        for line in lines {
            let line = [line, b"\n"].concat();
            assert_eq!(plain_update(&line, BASE), None, "{:?}", String::from_utf8_lossy(&line));
        }
        // Wherever two dots and a slash are; elsewhere two dots are as good as other characters.
        for before in 1..20 {
            let name = format!("{}../b.rrd", "x".repeat(before));
            for base in ["", "/var/lib/rrd/"] {
                assert_eq!(
                    plain_update(format!("UPDATE {base}{name} 1:2\n").as_bytes(), BASE),
                    None,
                    "{name}"
                );
                assert_eq!(plain_name(format!("{base}{name}").as_bytes(), b"1:2", BASE), None, "{name}");
            }
            for name in [name.replace("../", "./"), name.replace("../", "..y/"), name.replace("../", "..")] {
                assert!(plain_update(format!("UPDATE {name} 1:../2\n").as_bytes(), BASE).is_some(), "{name}");
                assert!(plain_name(name.as_bytes(), b"1:../2", BASE).is_some(), "{name}");
            }
        }
        let update = |name: usize| format!("UPDATE {} 1:2\n", "x".repeat(name));
        assert!(plain_update(update(255).as_bytes(), BASE).is_some());
        assert_eq!(plain_update(update(256).as_bytes(), BASE), None);
        let line = |values: usize| format!("UPDATE x 1:{}\n", "2".repeat(values - 11));
        assert!(plain_update(line(LINE_BYTES_MAX).as_bytes(), BASE).is_some());
        assert_eq!(plain_update(line(LINE_BYTES_MAX + 1).as_bytes(), BASE), None);
    }

    #[test]
    fn unusual_arguments_are_parsed_up_to_the_first_invalid_one() {
        let check = |line: &str, values: &str, count, bad: Option<&str>| {
            let update = UpdateWords::parse(Words::new(line.as_bytes()));
            let text = update.bad.map(|bad| String::from_utf8(bad.text(7.0)).unwrap());
            assert_eq!((&*update.values, update.count), (values.as_bytes(), count), "{line}");
            assert_eq!(text.as_deref(), bad, "{line}");
        };
        check("1:2 3.5:4", "1:2 3.5:4", 2, None);
        check(r"a\:2 3:4", "", 0, Some("Cannot find timestamp in 'a:2'!"));
        check("1e3:4 N:5 6:7", "1e3:4", 1, Some("Cannot find timestamp in 'N:5'!"));
        check(r"1:2\ 3", "", 0, Some("Cannot find timestamp in '1:2 3'!"));
        check("1:2  3:4", "1:2", 1, Some("Cannot find timestamp in ''!"));
        let negative = "illegal attempt to update using time -5.000000 when last update time is 7.000000 (minimum one second step)";
        check("1:2 -5:1", "1:2", 1, Some(negative));
        check("", "", 0, None);
    }
}
