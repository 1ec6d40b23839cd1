//! Saved graphs: files of arguments, one per line, with placeholders for a request's parameters.
//!
//! `NAME.graph` in the directory of templates. A line that starts with `#` is a comment; `${word}` stands for
//! the request's parameter of that name, `${word:-text}` for `text` when there is none. A value can neither
//! add an argument nor end a part of one: its colons and backslashes are escaped as the graph language
//! requires.

use std::collections::HashMap;
use std::path::Path;

use super::super::failure::Failure;
use super::super::query::Query;

/// The largest template in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// The arguments of the template `name`, filled in. Every parameter must be used by it.
///
/// # Errors
/// 404 when there is no such template, 400 for missing and unknown parameters.
pub fn arguments(directory: Option<&Path>, name: &[u8], query: Query) -> Result<Vec<Vec<u8>>, Failure> {
    let missing = || {
        let name = String::from_utf8_lossy(name);
        Failure::new(axum::http::StatusCode::NOT_FOUND, format!("no template is called \"{name}\""))
    };
    let directory = directory.ok_or_else(missing)?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    if name.is_empty() || !name.iter().all(is_plain) {
        return Err(missing());
    }
    let path = directory.join(format!("{}.graph", String::from_utf8_lossy(name)));
    let found = path.metadata().map_err(|_| missing())?;
    if !found.is_file() || found.len() > BYTES_MAX {
        return Err(missing());
    }
    let text = std::fs::read_to_string(&path).map_err(|_| missing())?;
    fill(&text, query)
}

/// The arguments of `text`.
fn fill(text: &str, query: Query) -> Result<Vec<Vec<u8>>, Failure> {
    let mut given: HashMap<String, Vec<u8>> = HashMap::new();
    let mut used: HashMap<String, bool> = HashMap::new();
    for (key, value) in query.into_pairs() {
        used.insert(key.clone(), false);
        given.insert(key, value);
    }
    let mut arguments = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut argument = Vec::new();
        let mut rest = line;
        while let Some((before, behind)) = rest.split_once("${") {
            let Some((place, behind)) = behind.split_once('}') else {
                return Err(Failure::refused(format!("the template has a place without an end: {line}")));
            };
            argument.extend_from_slice(before.as_bytes());
            let (word, default) = match place.split_once(":-") {
                Some((word, default)) => (word, Some(default)),
                None => (place, None),
            };
            match (given.get(word), default) {
                (Some(value), _) => {
                    used.insert(word.to_string(), true);
                    push_escaped(&mut argument, value);
                }
                (None, Some(default)) => argument.extend_from_slice(default.as_bytes()),
                (None, None) => return Err(Failure::bad(format!("the template needs \"{word}\""))),
            }
            rest = behind;
        }
        argument.extend_from_slice(rest.as_bytes());
        arguments.push(argument);
    }
    match used.iter().find(|(_, used)| !**used) {
        Some((key, _)) => Err(Failure::bad(format!("the template has no place for \"{key}\""))),
        None => Ok(arguments),
    }
}

fn push_escaped(out: &mut Vec<u8>, value: &[u8]) {
    for &byte in value {
        if b":\\".contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, want: Result<&[&str], &str>) {
        let text = "# traffic\n--start\n${start:-end-1d}\n\nDEF:a=${host}/${host}.rrd:in:AVERAGE\nLINE:a#f00:in of ${host}\n";
        let got = fill(text, Query::parse(query.as_bytes()).unwrap());
        let got = got.map(|words| {
            words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>()
        });
        match want {
            Ok(want) => assert_eq!(got.unwrap(), want),
            Err(want) => assert!(got.unwrap_err().to_string().contains(want)),
        }
    }

    #[test]
    fn placeholders_are_filled_in_and_nothing_else_changes() {
        check("host=r1", Ok(&["--start", "end-1d", "DEF:a=r1/r1.rrd:in:AVERAGE", "LINE:a#f00:in of r1"]));
        check(
            "host=a:b%5Cc%0ALINE&start=-2h",
            Ok(&[
                "--start",
                "-2h",
                "DEF:a=a\\:b\\\\c\nLINE/a\\:b\\\\c\nLINE.rrd:in:AVERAGE",
                "LINE:a#f00:in of a\\:b\\\\c\nLINE",
            ]),
        );
        check("", Err("needs \"host\""));
        check("host=x&colour=y", Err("no place for \"colour\""));
    }

    #[test]
    fn template_names_stay_in_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("t.graph"), "COMMENT:x\n").unwrap();
        std::fs::write(directory.path().join("secret"), "COMMENT:x\n").unwrap();
        let read = |name: &[u8]| arguments(Some(directory.path()), name, Query::default());
        assert_eq!(read(b"t").unwrap(), [b"COMMENT:x"]);
        for name in [&b"../t"[..], b"", b"t.graph", b"secret", b"t\0", b"none"] {
            assert!(read(name).is_err(), "{name:?}");
        }
        assert!(arguments(None, b"t", Query::default()).is_err());
    }
}
