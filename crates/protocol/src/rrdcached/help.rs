//! The answers of HELP. The syntax lines are part of the interface; the sentences below them are ours.

use super::command::{COMMANDS, Command, Verb};
use super::reply;

/// Appends the answer to `HELP` or `HELP command`.
pub fn push_help(out: &mut Vec<u8>, command: Option<&Command>) {
    match command.filter(|command| !command.usage.is_empty()) {
        None => {
            let shown = COMMANDS.iter().filter(|command| !command.usage.is_empty());
            reply::push_status(out, shown.clone().count() as i64, b"Command overview");
            for command in shown {
                out.extend_from_slice(command.usage.as_bytes());
                out.push(b'\n');
            }
        }
        Some(command) => {
            let text = text(command.verb);
            let blank_after_usage = usize::from(!text.is_empty());
            let lines = 2 + blank_after_usage + text.lines().count();
            reply::push_status(out, lines as i64, format!("Help for {}", command.name).as_bytes());
            out.extend_from_slice(format!("Usage: {}\n", command.usage).as_bytes());
            if !text.is_empty() {
                out.push(b'\n');
                out.extend_from_slice(text.as_bytes());
                out.push(b'\n');
            }
            out.push(b'\n');
        }
    }
}

/// What a command does. Every line except the last ends in a line feed.
fn text(verb: Verb) -> &'static str {
    match verb {
        Verb::Update => {
            "Gives an RRD new readings, oldest first. They are in the log, consolidated\n\
             and visible to every reader when the answer comes. A reading is\n\
             \x20 <time>:<value>[:<value>...]\n\
             with the time in seconds since 1970, a fraction allowed, and one value for\n\
             each source, as in rrdupdate(1)."
        }
        Verb::Flush => "Makes what was accepted for this RRD durable before it answers.",
        Verb::FlushAll => "Makes everything accepted so far durable.",
        Verb::Pending => "Lists readings accepted and not yet written. The stripes layout has none.",
        Verb::Forget => "Drops what is cached for this RRD. Nothing that was accepted is lost.",
        Verb::Queue => {
            "Lists the RRDs waiting to be written, one in a line:\n\n\
             <num_vals> <filename>"
        }
        Verb::Stats => "Returns counters; rrdcached(1) has their meaning.",
        Verb::Ping => "Answers PONG.",
        Verb::Batch => {
            "Many commands with one answer:\n\n\
             \x20   client: BATCH\n\
             \x20   server: 0 Go ahead.  End with dot '.' on its own line.\n\
             \x20   client: UPDATE ...\n\
             \x20   client: UPDATE ...\n\
             \x20   client: .\n\
             \x20   server: 1 errors\n\
             \x20   server: 2 message for the second command"
        }
        Verb::Fetch => "Returns rows as rrdfetch(1) does, as text.",
        Verb::FetchBin => "Returns rows as rrdfetch(1) does, as doubles of this machine.",
        Verb::Info => {
            "Returns what rrdinfo(1) prints, one item in a line:\n\n\
             <key> <type> <value>\n\n\
             with type 0 for a double, 1 for a count, 2 for a text, 3 for a number."
        }
        Verb::First => "Returns the time of the oldest row of an archive.",
        Verb::Last => "Returns the time of the last update.",
        Verb::Create => {
            "Makes an RRD from the definitions of rrdcreate(1), in place of one of that\n\
             name unless -O is given or the daemon was started with -O. The start is in\n\
             seconds since 1970, the step in seconds (300 if not given). Durations with\n\
             decimals, as 0.1, need a store of stripes."
        }
        Verb::Dump => "Returns what rrddump(1) prints.",
        Verb::Tune => "Changes an RRD by the options of rrdtune(1).",
        Verb::List => {
            "Lists the RRDs and directories in a directory of the base directory (/), or\n\
             all RRDs below it if RECURSIVE."
        }
        Verb::Suspend => "Marks an RRD as suspended. Stripes need no rest and go on recording.",
        Verb::Resume => "Takes the mark of SUSPEND off an RRD.",
        Verb::SuspendAll => "Marks all RRDs as suspended.",
        Verb::ResumeAll => "Takes all marks of SUSPEND off.",
        Verb::Quit => "Ends the connection.",
        ours => text_of_ours(ours),
    }
}

/// What a command does that rrdcached does not have.
fn text_of_ours(verb: Verb) -> &'static str {
    match verb {
        Verb::UpdateV => {
            "As UPDATE, for one RRD, and lists what rrdupdate(1) does for updatev: return_value,\n\
             the rows that were written and, if a reading was refused, the error, as items of INFO."
        }
        Verb::FetchRes => "As FETCH, of the archive that rrdfetch(1) chooses for a resolution in seconds.",
        Verb::Export => "Returns the bytes of a standard .rrd file, in lines of base64.",
        Verb::Import => {
            "Takes a standard .rrd file in, in place of an RRD of that name unless -O is given:\n\
             one piece of base64 a command, with the bytes of the whole file and those before it.\n\
             What the pieces make counts with the last of them."
        }
        Verb::Rename => "Renames an RRD, with its history. One that has the new name is removed.",
        Verb::Copy => "Makes a copy of an RRD. One that has the new name is removed.",
        Verb::Remove => "Removes an RRD: into the trash, if the store keeps one.",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_the_number_of_lines() {
        for command in COMMANDS.iter().map(Some).chain([None]) {
            let mut out = Vec::new();
            push_help(&mut out, command);
            let text = String::from_utf8(out).unwrap();
            let count: usize = text.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(text.matches('\n').count(), count + 1, "{text}");
        }
    }

    #[test]
    fn an_overview_lists_the_syntax() {
        let mut out = Vec::new();
        push_help(&mut out, Command::find(b"WROTE"));
        assert!(out.starts_with(b"31 Command overview\nUPDATE <filename> <values> [<values> ...]\n"));
        out.clear();
        push_help(&mut out, Command::find(b"help"));
        assert_eq!(out, b"2 Help for HELP\nUsage: HELP [<command>]\n\n");
    }
}
