//! What `rrdtool`, `rrdtool help` and `rrdtool help VERB` print.
//!
//! The first line is what programs read a version from: it begins as RRDtool's does. The syntax is
//! RRDtool's, the words around it are ours.

use crate::verb::Verb;

/// The release of RRDtool that this is compatible with, as programs parse it.
pub const COMPATIBLE: &str = "1.9.0";

/// The first line: whom we stand in for, and who we are.
pub fn version_line() -> String {
    format!("RRDtool {COMPATIBLE}  spoken by Roundel {}\n", env!("CARGO_PKG_VERSION"))
}

/// What `rrdtool --version x` prints: the version as a number too.
pub fn version_number_line() -> String {
    format!("RRDtool {COMPATIBLE}  spoken by Roundel {} (1.900000)\n", env!("CARGO_PKG_VERSION"))
}

/// The whole page; of one verb when one is given. `remote` adds what only a session through a pipe knows.
pub fn page(topic: Option<Topic>, remote: bool) -> String {
    let mut text = version_line();
    text.push_str("\nUsage: rrdtool [options] command command_options\n\n");
    match topic {
        Some(topic) => text.push_str(topic.syntax()),
        None => {
            text.push_str("Commands: create, update, updatev, graph, graphv, dump, restore, last,\n");
            text.push_str("          lastupdate, first, info, list, fetch, tune, resize, xport,\n");
            text.push_str("          flushcached\n");
            if remote {
                text.push_str("In a session: quit, ls, cd, mkdir, pwd\n");
            }
        }
    }
    text.push_str("\nrrdtool(1) describes the commands, docs/compatibility.md what is different here.\n\n");
    text
}

/// Whether a word asks for help.
pub(crate) fn is_help(word: &[u8]) -> bool {
    matches!(word, b"help" | b"--help" | b"-help" | b"-?" | b"-h")
}

/// Whether a word asks for the version.
pub(crate) fn is_version(word: &[u8]) -> bool {
    matches!(word, b"-v" | b"--version" | b"v" | b"version")
}

/// What there is a page about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A verb.
    Verb(Verb),
    /// A command of a session.
    Remote(&'static str),
}

/// The commands of a session with their syntax.
const REMOTE: [(&str, &str); 5] = [
    ("cd", "cd - go to another directory\n\n\trrdtool cd directory\n"),
    ("ls", "ls - list the .rrd files and directories here\n\n\trrdtool ls\n"),
    ("mkdir", "mkdir - make a directory\n\n\trrdtool mkdir directory\n"),
    ("pwd", "pwd - say which directory this is\n\n\trrdtool pwd\n"),
    ("quit", "quit - end the session\n\n\trrdtool quit\n"),
];

impl Topic {
    /// What a word names.
    pub fn find(word: &[u8]) -> Option<Topic> {
        let remote = REMOTE.iter().find(|(name, _)| name.as_bytes() == word);
        Verb::find(word).map(Topic::Verb).or_else(|| remote.map(|(name, _)| Topic::Remote(name)))
    }

    fn syntax(self) -> &'static str {
        match self {
            Topic::Remote(name) => {
                REMOTE.iter().find(|(known, _)| *known == name).map_or("", |(_, syntax)| syntax)
            }
            Topic::Verb(verb) => verb.syntax(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_find_the_version_in_the_first_line() {
        let page = page(None, false);
        let words: Vec<&str> = page.lines().next().unwrap_or_default().split_whitespace().collect();
        assert_eq!(words[..2], ["RRDtool", "1.9.0"]);
        assert!(words.contains(&env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn every_verb_and_command_has_a_page() {
        for verb in Verb::ALL {
            assert!(verb.syntax().contains(&format!("rrdtool {}", verb.name())), "{verb:?}");
            assert_eq!(Topic::find(verb.name().as_bytes()), Some(Topic::Verb(verb)));
        }
        for (name, syntax) in REMOTE {
            assert!(page(Topic::find(name.as_bytes()), false).contains(syntax));
        }
        assert_eq!(Topic::find(b"help"), None);
    }
}
