//! The lines of mrtg.cfg: keywords, continuation, comments, included files.

use std::sync::Arc;

use super::fault::{Fault, Place};

/// How deep files may include files. MRTG has no limit; a file that includes itself ends when its process has no more files
/// to open.
const NESTING_MAX: usize = 64;

/// Files that may be included in all.
const FILES_MAX: usize = 100_000;

/// What finds included files: from the text after `Include:`, with `*` for any characters, to the names and contents of the
/// files, in the order of their names. A text without `*` that leads to no file is an error.
pub type Reader<'a> = dyn FnMut(&str) -> Result<Vec<(String, Vec<u8>)>, String> + 'a;

/// `keyword[target]: value` or `keyword: value`, with its continuation lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Where it begins.
    pub place: Place,
    /// Its first line as it is written.
    pub line: String,
    /// In lower case.
    pub keyword: String,
    /// In lower case; `^`, `$` and `_` are the settings for all targets that follow.
    pub target: Option<String>,
    /// Without blanks at the ends.
    pub value: String,
}

/// Cuts the file `name` with `bytes` and all it includes into statements.
///
/// # Errors
/// A line that is none, or an included file that cannot be read.
pub fn statements(name: &str, bytes: &[u8], read: &mut Reader<'_>) -> Result<Vec<Statement>, Fault> {
    let mut lexer = Lexer { statements: Vec::new(), read, files: 0 };
    lexer.file(name, bytes, 0)?;
    Ok(lexer.statements)
}

struct Lexer<'a, 'b> {
    statements: Vec<Statement>,
    read: &'a mut Reader<'b>,
    files: usize,
}

impl Lexer<'_, '_> {
    fn file(&mut self, name: &str, bytes: &[u8], nesting: usize) -> Result<(), Fault> {
        let file: Arc<str> = name.into();
        let text = decode(bytes);
        for (index, raw) in text.split('\n').enumerate() {
            let line = raw.replace('\t', " ");
            let line = line.trim_end_matches([' ', '\r']);
            let trimmed = line.trim_start_matches(' ');
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            let place = Place { file: Arc::clone(&file), line: index as u32 + 1 };
            let senseless = || {
                let text = format!("Line {} ({line}) in CFG file ({name})  does not make sense", place.line);
                Fault { place: place.clone(), text }
            };
            if line.starts_with(' ') {
                let last = self.statements.last_mut().ok_or_else(senseless)?;
                let is_list = matches!(last.target.as_deref(), None | Some("^" | "$" | "_"));
                last.value.push(if is_list { '\n' } else { ' ' });
                last.value.push_str(trimmed);
                continue;
            }
            let mut statement = split(line, place.clone()).ok_or_else(senseless)?;
            if statement.keyword == "include" && statement.target.is_none() {
                self.include(&statement, nesting)?;
                continue;
            }
            respell(&mut statement.keyword);
            self.statements.push(statement);
        }
        Ok(())
    }

    fn include(&mut self, statement: &Statement, nesting: usize) -> Result<(), Fault> {
        let unreadable = |cause: &str| Fault {
            place: statement.place.clone(),
            text: format!("unable to open include file: {}{cause}", statement.value),
        };
        if nesting >= NESTING_MAX {
            return Err(unreadable(&format!(": files include each other more than {NESTING_MAX} deep")));
        }
        let files = (self.read)(&statement.value).map_err(|cause| unreadable(&format!(": {cause}")))?;
        // The last file that the pattern finds comes first, as in MRTG.
        for (name, bytes) in files.into_iter().rev() {
            self.files += 1;
            if self.files > FILES_MAX {
                return Err(unreadable(&format!(": more than {FILES_MAX} files are included")));
            }
            self.file(&name, &bytes, nesting + 1)?;
        }
        Ok(())
    }
}

/// The text of a file: UTF-8, or else Latin-1, in which many old files are.
pub fn decode(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_string(),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    }
}

/// Letters, digits, `*`, and what the prefixes of front ends consist of.
fn is_keyword(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'*' | b'.' | b'-' | b'_')
}

fn split(line: &str, place: Place) -> Option<Statement> {
    let length = line.bytes().take_while(|&byte| is_keyword(byte)).count();
    if length == 0 {
        return None;
    }
    let (keyword, rest) = line.split_at(length);
    let (target, rest) = match rest.strip_prefix('[') {
        None => (None, rest),
        Some(rest) => {
            let end = end_of_target(rest)?;
            (Some(rest[..end].to_lowercase()), &rest[end + 1..])
        }
    };
    let value = rest.trim_start_matches(' ').strip_prefix(':')?.trim_matches(' ');
    if target.is_none() && value.is_empty() {
        return None;
    }
    let (line, keyword, value) = (line.to_string(), keyword.to_lowercase(), value.to_string());
    Some(Statement { place, line, keyword, target, value })
}

/// Where the target's name ends: at the first `]` that `:` follows; no blank may come before.
fn end_of_target(rest: &str) -> Option<usize> {
    let blank = rest.find(' ').unwrap_or(rest.len());
    let ends = rest[..blank].match_indices(']').map(|(at, _)| at);
    ends.filter(|&at| at > 0).find(|&at| rest[at + 1..].trim_start_matches(' ').starts_with(':'))
}

/// Spellings of old versions.
fn respell(keyword: &mut String) {
    match keyword.as_str() {
        "supress" => *keyword = "suppress".to_string(),
        "colors" | "colour" | "color" => *keyword = "colours".to_string(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex(text: &str) -> Result<Vec<(String, String)>, String> {
        let mut read = |pattern: &str| match pattern {
            "inc/*.cfg" => {
                Ok(vec![("1".to_string(), b"A: 1\n".to_vec()), ("2".to_string(), b"A: 2".to_vec())])
            }
            "self" => Ok(vec![("self".to_string(), b"Include: self".to_vec())]),
            _ => Err("no such file".to_string()),
        };
        let found = statements("x.cfg", text.as_bytes(), &mut read).map_err(|fault| fault.text)?;
        let name = |statement: &Statement| match &statement.target {
            Some(target) => format!("{}[{target}]", statement.keyword),
            None => statement.keyword.clone(),
        };
        Ok(found.iter().map(|statement| (name(statement), statement.value.clone())).collect())
    }

    #[test]
    fn statements_continue_on_lines_that_begin_with_a_blank() {
        let check = |text: &str, want: &[(&str, &str)]| {
            let found = lex(text).unwrap();
            let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found, want, "{text:?}");
        };
        check("WorkDir: /tmp\r\nTITLE[A.b] : x  \r\n", &[("workdir", "/tmp"), ("title[a.b]", "x")]);
        check("Title[cc]: x\n\ty  \n#c\n  # d\n\n   z\n", &[("title[cc]", "x y z")]);
        check(
            "PageTop[^]: a\n b\nSnmpOptions: a=>1,\n b=>2\n",
            &[("pagetop[^]", "a\nb"), ("snmpoptions", "a=>1,\nb=>2")],
        );
        check("Supress[a]: d\nColors[a]:\n", &[("suppress[a]", "d"), ("colours[a]", "")]);
        check("routers.cgi*Foo[a]: [b]: x\n", &[("routers.cgi*foo[a]", "[b]: x")]);
        check("Target[a:b]]: x\n", &[("target[a:b]]", "x")]);
        check("InClude: inc/*.cfg\nB: 3", &[("a", "2"), ("a", "1"), ("b", "3")]);
        check("Title[a]: \u{fc}", &[("title[a]", "\u{fc}")]);
    }

    #[test]
    fn lines_without_sense_are_refused_with_their_number() {
        let check = |text: &str, want: &str| assert!(lex(text).unwrap_err().contains(want), "{text:?}");
        check(
            "A: 1\nthis is not a line\n",
            "Line 2 (this is not a line) in CFG file (x.cfg)  does not make sense",
        );
        check("  Foo: x\n", "Line 1 (  Foo: x)");
        check("HtmlDir:\n", "Line 1 (HtmlDir:)");
        check("Target[a b]: x\n", "does not make sense");
        check("Include: nothere\n", "unable to open include file: nothere");
        check("Include: self\n", "unable to open include file: self");
    }

    #[test]
    fn old_files_are_latin_1() {
        assert_eq!(decode(b"Z\xfcrich"), "Z\u{fc}rich");
    }
}
