//! A finding as one line of text, as a daemon sends it.

use std::path::PathBuf;

use super::{Finding, LostRows};

impl Finding {
    /// The line: file, byte, what, and if rows are lost the oldest and newest time, the number of RRDs and their names; fields
    /// are separated by tabs, and tabs, line feeds and backslashes in them are escaped.
    pub fn to_line(&self) -> String {
        let mut fields =
            vec![escaped(&self.file.to_string_lossy()), self.byte.to_string(), escaped(&self.what)];
        if let Some(LostRows { rrds, count, from, to }) = &self.lost {
            fields.extend([from.to_string(), to.to_string(), count.to_string()]);
            fields.extend(rrds.iter().map(|name| escaped(name)));
        }
        fields.join("\t")
    }

    /// Reads such a line; `None` if it is none.
    pub fn from_line(line: &str) -> Option<Finding> {
        let mut fields = line.split('\t');
        let file = PathBuf::from(unescaped(fields.next()?)?);
        let byte = fields.next()?.parse().ok()?;
        let what = unescaped(fields.next()?)?;
        let lost = match fields.next() {
            None => None,
            Some(from) => Some(LostRows {
                from: from.parse().ok()?,
                to: fields.next()?.parse().ok()?,
                count: fields.next()?.parse().ok()?,
                rrds: fields.map(unescaped).collect::<Option<_>>()?,
            }),
        };
        Some(Finding { file, byte, what, lost })
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        plain.push(match char {
            '\\' => match rest.next()? {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                other => other,
            },
            char => char,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_round_trip() {
        let lost = LostRows { rrds: vec!["a\tb".into(), "c\\d".into()], count: 7, from: -1, to: 99 };
        for lost in [None, Some(LostRows::default()), Some(lost)] {
            let finding = Finding { file: "shard-000/x".into(), byte: 12, what: "bad\r\nbytes".into(), lost };
            let line = finding.to_line();
            assert!(!line.contains('\n'));
            assert_eq!(Finding::from_line(&line), Some(finding));
        }
        assert_eq!(Finding::from_line("file\tx"), None);
    }
}
