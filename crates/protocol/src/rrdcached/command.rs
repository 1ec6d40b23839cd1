//! The table of commands: name, syntax, and where each is allowed. UPDATEV, FETCHRES, EXPORT and IMPORT are
//! ours: they let a remote command line do everything that it can do with a file; so do RENAME, COPY and REMOVE for a directory.
//! VERIFY is for `roundel verify`, SNAPSHOT for `roundel snapshot`, PROMOTE, REPLICATION and CLUSTER for the commands of these names, TRASH for `roundel trash`; STAT, IMAGE, ENTRIES and CHANGE for `roundel mount`. AUTH says who the client is.

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the commands of rrdcached(1)")]
pub enum Verb {
    Update,
    Flush,
    FlushAll,
    Pending,
    Forget,
    Queue,
    Stats,
    Help,
    Ping,
    Batch,
    Fetch,
    FetchBin,
    Info,
    First,
    Last,
    Create,
    Dump,
    Tune,
    UpdateV,
    FetchRes,
    Export,
    Import,
    Rename,
    Copy,
    Remove,
    List,
    Suspend,
    Resume,
    SuspendAll,
    ResumeAll,
    Quit,
    Wrote,
    End,
    Frames,
    Verify,
    Trash,
    Adoption,
    Stat,
    Image,
    Entries,
    Change,
    Auth,
    Snapshot,
    Promote,
    Replication,
    /// See [`super::request::Request::Cluster`].
    Cluster,
}

/// The name of a command, where it is allowed, and its syntax for HELP.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    /// The command.
    pub verb: Verb,
    /// Its name in upper case.
    pub name: &'static str,
    /// The syntax for HELP and usage errors; empty = not shown.
    pub usage: &'static str,
    /// Allowed on its own.
    pub alone: bool,
    /// Allowed in a BATCH.
    pub in_batch: bool,
}

const fn command(verb: Verb, name: &'static str, usage: &'static str) -> Command {
    Command { verb, name, usage, alone: true, in_batch: false }
}

const fn both(verb: Verb, name: &'static str, usage: &'static str) -> Command {
    Command { verb, name, usage, alone: true, in_batch: true }
}

/// All commands, in the order of HELP. Compat: which of them a BATCH may contain was found by experiment.
pub const COMMANDS: [Command; 46] = [
    both(Verb::Update, "UPDATE", "UPDATE <filename> <values> [<values> ...]"),
    both(Verb::Flush, "FLUSH", "FLUSH <filename>"),
    command(Verb::FlushAll, "FLUSHALL", "FLUSHALL"),
    command(Verb::Pending, "PENDING", "PENDING <filename>"),
    both(Verb::Forget, "FORGET", "FORGET <filename>"),
    command(Verb::Queue, "QUEUE", "QUEUE"),
    command(Verb::Stats, "STATS", "STATS"),
    command(Verb::Help, "HELP", "HELP [<command>]"),
    command(Verb::Ping, "PING", "PING"),
    command(Verb::Batch, "BATCH", "BATCH"),
    command(Verb::Fetch, "FETCH", "FETCH <file> <CF> [<start> [<end>] [<column>...]]"),
    command(Verb::FetchBin, "FETCHBIN", "FETCHBIN <file> <CF> [<start> [<end>] [<column>...]]"),
    command(Verb::Info, "INFO", "INFO <filename>"),
    command(Verb::First, "FIRST", "FIRST <filename> <rra index>"),
    command(Verb::Last, "LAST", "LAST <filename>"),
    both(
        Verb::Create,
        "CREATE",
        "CREATE <filename> [-b start] [-s step] [-O] <DS definitions> <RRA definitions>",
    ),
    command(Verb::Dump, "DUMP", "DUMP <filename> [-h none|xsd|dtd]"),
    both(Verb::Tune, "TUNE", "TUNE <filename> [options]"),
    command(Verb::UpdateV, "UPDATEV", "UPDATEV <filename> <values> [<values> ...]"),
    command(Verb::FetchRes, "FETCHRES", "FETCHRES <file> <CF> <resolution> [<start> [<end> [<column>...]]]"),
    command(Verb::Export, "EXPORT", "EXPORT <filename>"),
    command(Verb::Import, "IMPORT", "IMPORT <filename> [-O] <bytes> <offset> <piece>"),
    command(Verb::Rename, "RENAME", "RENAME <filename> <new filename>"),
    command(Verb::Copy, "COPY", "COPY <filename> <new filename>"),
    command(Verb::Remove, "REMOVE", "REMOVE <filename>"),
    command(Verb::List, "LIST", "LIST [RECURSIVE] /[<path>]"),
    both(Verb::Suspend, "SUSPEND", "SUSPEND <filename>"),
    both(Verb::Resume, "RESUME", "RESUME <filename>"),
    both(Verb::SuspendAll, "SUSPENDALL", "SUSPENDALL"),
    both(Verb::ResumeAll, "RESUMEALL", "RESUMEALL"),
    both(Verb::Quit, "QUIT", "QUIT"),
    // Occurs only in journals: valid, but never allowed for a client.
    Command { verb: Verb::Wrote, name: "WROTE", usage: "", alone: false, in_batch: false },
    Command { verb: Verb::End, name: ".", usage: "", alone: false, in_batch: true },
    // Our own; not in the overview, which is rrdcached's.
    Command { verb: Verb::Frames, name: "FRAMES", usage: "", alone: true, in_batch: false },
    Command { verb: Verb::Verify, name: "VERIFY", usage: "", alone: true, in_batch: false },
    Command { verb: Verb::Trash, name: "TRASH", usage: "", alone: true, in_batch: false },
    Command { verb: Verb::Adoption, name: "ADOPTION", usage: "", alone: true, in_batch: false },
    Command { verb: Verb::Stat, name: "STAT", usage: "", alone: true, in_batch: false },
    Command { verb: Verb::Image, name: "IMAGE", usage: "", alone: true, in_batch: false },
    Command { verb: Verb::Entries, name: "ENTRIES", usage: "", alone: true, in_batch: false },
    Command { verb: Verb::Change, name: "CHANGE", usage: "", alone: true, in_batch: false },
    Command { verb: Verb::Auth, name: "AUTH", usage: "", alone: true, in_batch: false },
    Command { verb: Verb::Snapshot, name: "SNAPSHOT", usage: "", alone: true, in_batch: false },
    Command { verb: Verb::Promote, name: "PROMOTE", usage: "", alone: true, in_batch: false },
    Command { verb: Verb::Replication, name: "REPLICATION", usage: "", alone: true, in_batch: false },
    Command { verb: Verb::Cluster, name: "CLUSTER", usage: "", alone: true, in_batch: false },
];

impl Command {
    /// The command with this name, in upper or lower case.
    pub fn find(word: &[u8]) -> Option<&'static Command> {
        COMMANDS.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(word))
    }

    /// The command of this verb.
    pub fn of(verb: Verb) -> &'static Command {
        // The table is in the order of the enum; a test checks it.
        &COMMANDS[verb as usize]
    }
}

/// The commands that a socket allows: one bit each, so at most 64 commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions(u64);

const _: () = assert!(COMMANDS.len() <= u64::BITS as usize, "a bit for each command");

impl Permissions {
    /// All commands.
    pub const ALL: Permissions = Permissions(u64::MAX);
    /// The commands that are always allowed: HELP and QUIT, AUTH, and FRAMES, whose requests are checked one by
    /// one.
    pub const NONE: Permissions = Permissions(
        1 << Verb::Help as u64 | 1 << Verb::Quit as u64 | 1 << Verb::Frames as u64 | 1 << Verb::Auth as u64,
    );

    /// True when `verb` is allowed.
    #[inline]
    pub fn allow(self, verb: Verb) -> bool {
        self.0 & (1 << verb as u64) != 0
    }

    /// Adds `verb`; BATCH includes its end mark.
    pub fn with(self, verb: Verb) -> Self {
        let end = if verb == Verb::Batch { 1 << Verb::End as u64 } else { 0 };
        Permissions(self.0 | 1 << verb as u64 | end)
    }

    /// Takes `verb` away.
    pub fn without(self, verb: Verb) -> Self {
        Permissions(self.0 & !(1 << verb as u64))
    }

    /// Parses the list of `-P`: commands separated by commas.
    ///
    /// # Errors
    /// The first unknown command.
    pub fn parse(list: &str) -> Result<Self, String> {
        let mut permissions = Permissions::NONE;
        for word in list.split(',').filter(|word| !word.is_empty()) {
            let command = Command::find(word.as_bytes()).ok_or_else(|| word.to_string())?;
            permissions = permissions.with(command.verb);
        }
        Ok(permissions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_verbs() {
        for (index, command) in COMMANDS.iter().enumerate() {
            assert_eq!(command.verb as usize, index, "{}", command.name);
            assert_eq!(Command::of(command.verb).name, command.name);
            assert!(command.usage.is_empty() || command.usage.starts_with(command.name));
        }
    }

    #[test]
    fn commands_are_found_in_upper_and_lower_case() {
        assert_eq!(Command::find(b"fEtchBIN").map(|command| command.verb), Some(Verb::FetchBin));
        assert_eq!(Command::find(b"."), Some(Command::of(Verb::End)));
        assert_eq!(Command::find(b"FETC"), None);
        assert_eq!(Command::find(b""), None);
    }

    #[test]
    fn permissions_are_parsed_from_lists() {
        let some = Permissions::parse("FLUSH,pending,BATCH").unwrap();
        for verb in [Verb::Flush, Verb::Pending, Verb::Batch, Verb::End, Verb::Help, Verb::Quit] {
            assert!(some.allow(verb), "{verb:?}");
        }
        for verb in [Verb::Update, Verb::FlushAll, Verb::Stats] {
            assert!(!some.allow(verb), "{verb:?}");
        }
        assert_eq!(Permissions::parse("FLUSH,FOO"), Err("FOO".to_string()));
        assert!(Permissions::ALL.allow(Verb::Update));
    }
}
