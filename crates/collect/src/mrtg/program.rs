//! What a program in back-quotes says: two numbers, an uptime and a name, each on a line.

use super::decimal::Decimal;
use super::operand::Operand;

/// The output of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramOutput {
    /// The number of the first line.
    pub input: Operand,
    /// The number of the second line.
    pub output: Operand,
    /// The third line.
    pub uptime: String,
    /// The fourth line.
    pub name: String,
    /// Lines without a number that do not say UNKNOWN.
    pub complaint: Option<String>,
}

/// Reads the output of a program.
pub fn read(bytes: &[u8]) -> ProgramOutput {
    let text = super::lexer::decode(bytes);
    let mut lines = text.lines().map(|line| line.trim_end_matches('\r'));
    let mut output = ProgramOutput::default();
    let mut complaints = Vec::new();
    let (first, second) = (lines.next(), lines.next());
    for (line, what, value) in [(first, "in", &mut output.input), (second, "out", &mut output.output)] {
        match line {
            Some("UNKNOWN") => {}
            None => complaints.push(format!("expected a number for '{what}' but got nothing")),
            Some(line) => match first_number(line) {
                Some(number) => *value = Decimal::parse(number).map_or(Operand::Unknown, Operand::Number),
                None => complaints.push(format!("expected a number for '{what}' but got '{}'", cut(line))),
            },
        }
    }
    output.uptime = lines.next().unwrap_or("").to_string();
    output.name = lines.next().unwrap_or("").to_string();
    output.complaint = (!complaints.is_empty()).then(|| complaints.join("; "));
    output
}

/// At most 100 letters: a program may print a web page.
fn cut(line: &str) -> &str {
    line.char_indices().nth(100).map_or(line, |(at, _)| &line[..at])
}

/// MRTG's pattern of a number: a sign, digits, and then any one character with more digits after it. What it finds need not
/// be a number: `1,5` is none.
fn first_number(line: &str) -> Option<&str> {
    let start = line.find(|letter: char| letter.is_ascii_digit())?;
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut end = start + digits(&line[start..]);
    if let Some(between) = line[end..].chars().next() {
        let after = end + between.len_utf8();
        let more = digits(&line[after..]);
        if more > 0 {
            end = after + more;
        }
    }
    let signed = line[..start].ends_with(['-', '+']);
    Some(&line[start - usize::from(signed)..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Debian's mrtg made of these lines.
    #[test]
    fn numbers_are_found_as_mrtg_finds_them() {
        let check = |line: &str, want: Option<&str>| {
            let found = read(format!("{line}\n0\nup\nname\n").as_bytes());
            let text = match &found.input {
                Operand::Number(number) => Some(number.to_string()),
                _ => None,
            };
            assert_eq!(text.as_deref(), want, "{line}");
        };
        check("10", Some("10"));
        check("-7.5", Some("-7.5"));
        check("xx12yy", Some("12"));
        check("abc 12", Some("12"));
        check("1e3", Some("1000"));
        check("1.5E-2", Some("1.5"));
        check(".5", Some("5"));
        check("1.5.6", Some("1.5"));
        check("5..6", Some("5"));
        check("0x10", Some("16"));
        check("1_000", Some("1000"));
        check("value=-12.5C", Some("-12.5"));
        check("10%", Some("10"));
        check("--5", Some("-5"));
        for none in ["1,5", "1 5", "UNKNOWN", "unknown", "", "inf", "NaN"] {
            check(none, None);
        }
    }

    #[test]
    fn what_is_no_number_is_said_unless_it_is_unknown() {
        let complaint = |text: &str| read(text.as_bytes()).complaint;
        assert_eq!(complaint("UNKNOWN\nUNKNOWN\n"), None);
        assert_eq!(complaint("1,5\n2\n"), None);
        assert!(complaint("3\n").unwrap().contains("'out' but got nothing"));
        assert!(complaint("unknown\n1\n").unwrap().contains("'in' but got 'unknown'"));
        let output = read(b"1\r\n2\r\n3 days\nhost\n");
        assert_eq!(
            (output.uptime.as_str(), output.name.as_str(), output.complaint),
            ("3 days", "host", None)
        );
    }
}
