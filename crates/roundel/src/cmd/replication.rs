//! `roundel promote` and `roundel replication`: a second server.

use clap::Args;
use client::{Daemon, Wire};

use super::{Result, address, print};

/// Options of `promote`.
#[derive(Debug, Args)]
#[command(
    about = "Make a follower the primary",
    long_about = "Make a server that follows another one the primary: it takes changes from then on, polls and receives what its \
                  configuration says, and tells the former primary, as soon as that can be reached, to take no more. What the former \
                  primary had answered and this server had not got yet is not in this one; with ack = \"replica\" there is nothing \
                  of that kind.",
    after_long_help = AFTER_PROMOTE
)]
pub struct PromoteArguments {
    /// The follower [default: RRDCACHED_ADDRESS, else unix:var/rrdcached.sock]
    #[arg(long, value_name = "ADDRESS")]
    daemon: Option<String>,
}

const AFTER_PROMOTE: &str = "\
Run it by hand, or from what watches the primary. It answers once changes are taken, which is a matter of a second. To go back,
let the former primary follow this server ([follow] in its roundel.toml), wait until it has caught up (roundel replication), stop
this server, and promote the other. docs/replication.md says it step by step.

Examples:
  roundel promote
  roundel promote --daemon unix:/run/roundel/roundel.sock";

/// Options of `replication`.
#[derive(Debug, Args)]
#[command(
    about = "Show whether a server is the primary or follows another one, and how far",
    long_about = "Show whether a server is the primary or follows another one. Of a follower: whether it is connected, and how old \
                  what it serves is. Of a primary: its followers, and how many bytes of its log they lack."
)]
pub struct StatusArguments {
    /// The server [default: RRDCACHED_ADDRESS, else unix:var/rrdcached.sock]
    #[arg(long, value_name = "ADDRESS")]
    daemon: Option<String>,
}

/// Runs `promote`.
pub fn promote(arguments: &PromoteArguments) -> Result {
    let (address, lines) = ask(arguments.daemon.as_deref(), "promote", &[])?;
    let line = lines.first().map_or("", String::as_str);
    let unclear = || format!("the daemon at \"{address}\" answers PROMOTE with \"{line}\"");
    let (epoch, age) = line.split_once(' ').ok_or_else(unclear)?;
    let lacks = match age.parse::<u64>() {
        Ok(ms) => format!("it had everything up to {}.{:03} s before", ms / 1000, ms % 1000),
        Err(_) => "it had not caught up with the former primary".to_string(),
    };
    print(format!("the server at \"{address}\" is the primary now (epoch {epoch}); {lacks}\n"))
}

/// Runs `replication`.
pub fn status(arguments: &StatusArguments) -> Result {
    let (_, lines) = ask(arguments.daemon.as_deref(), "replication", &[])?;
    print(lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

/// The lines that a daemon answers to one of our commands.
pub(super) fn ask(given: Option<&str>, command: &str, words: &[&[u8]]) -> Result<(String, Vec<String>)> {
    let address = address::daemon(given)?.unwrap_or_else(|| address::SOCKET_HERE.to_string());
    let daemon = Daemon::new(address.as_bytes(), Wire::Text);
    let answer = daemon.ask_ours(command, words);
    let answer = answer.map_err(|error| format!("the daemon at \"{address}\": {error}"))?;
    let answer = answer.ok_or_else(|| {
        format!("the daemon at \"{address}\" does not know {}", command.to_ascii_uppercase())
    })?;
    let lines = answer.lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    Ok((address, lines))
}
