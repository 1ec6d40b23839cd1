//! The output of `rrdtool`, `rrdtool help` and `rrdtool help VERB`.
//!
//! Programs read a version from the first line, which begins as RRDtool's does. The syntax is RRDtool's, the
//! text around it is ours.

use crate::verb::Verb;

/// The compatible release of RRDtool, as programs parse it.
pub const COMPATIBLE: &str = "1.9.0";

/// The first line: RRDtool's version and ours.
pub fn version_line() -> String {
    format!("RRDtool {COMPATIBLE}  spoken by Roundel {}\n", env!("CARGO_PKG_VERSION"))
}

/// The output of `rrdtool --version x`: includes the version as a number.
pub fn version_number_line() -> String {
    format!("RRDtool {COMPATIBLE}  spoken by Roundel {} (1.900000)\n", env!("CARGO_PKG_VERSION"))
}

/// The help page, of one topic if given. `remote` adds the commands that only a session has. The list of commands
/// is that of [`Verb::ALL`], written out.
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

/// Whether an argument asks for help.
pub(crate) fn is_help(word: &[u8]) -> bool {
    matches!(word, b"help" | b"--help" | b"-help" | b"-?" | b"-h")
}

/// Whether an argument asks for the version.
pub(crate) fn is_version(word: &[u8]) -> bool {
    matches!(word, b"-v" | b"--version" | b"v" | b"version")
}

/// The topic of a help page.
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
    /// The topic that an argument names.
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
        let args: Vec<&str> = page.lines().next().unwrap_or_default().split_whitespace().collect();
        assert_eq!(args[..2], ["RRDtool", "1.9.0"]);
        assert!(args.contains(&env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn every_verb_and_command_has_a_page() {
        let overview = page(None, false);
        let named: Vec<&str> = overview.split([' ', ',', '\n']).collect();
        for verb in Verb::ALL {
            assert!(named.contains(&verb.name()), "{verb:?} is not in the overview");
            assert!(verb.syntax().contains(&format!("rrdtool {}", verb.name())), "{verb:?}");
            assert_eq!(Topic::find(verb.name().as_bytes()), Some(Topic::Verb(verb)));
        }
        for (name, syntax) in REMOTE {
            assert!(page(Topic::find(name.as_bytes()), false).contains(syntax));
        }
        assert_eq!(Topic::find(b"help"), None);
    }
}
