//! `roundel repair`: restores what is missing or damaged in a store, as far as what remains allows.

use std::path::PathBuf;

use clap::Args;
use store::repair::{Options, Outcome, repair};

use super::Result;

/// Options of `repair`.
#[derive(Debug, Args)]
#[command(
    about = "Repair a store whose files are missing or damaged",
    long_about = "Show what is missing or damaged in a store and what can be restored; with --apply, restore it. No daemon may \
                  have the store open. Nothing is deleted: what is replaced or given up is renamed to damaged-NAME \
                  beside it. The exit status is 0 when the store is well, or well again.",
    after_long_help = AFTER_HELP
)]
pub struct Arguments {
    /// The directory of the store: it holds STORE and shard-000
    #[arg(value_name = "DIR")]
    store: PathBuf,
    /// Do what is shown, instead of only showing it
    #[arg(long)]
    apply: bool,
    /// Also take the steps that give up data, each of which says what it gives up
    #[arg(long)]
    accept_loss: bool,
}

const AFTER_HELP: &str = "\
What can be restored:
  STORE                    from the manifest of any shard
  shard-NNN/manifest       from its copy; without one, from the checkpoint and the segments that are there
                           (with --accept-loss, because nothing then tells whether one of them is missing)
  a segment                from a backup: it never changes. With --accept-loss the shard goes on without it,
                           and its rows become unknown
  a shard's directory      from a backup. With --accept-loss the shard starts again empty
  a checkpoint             from a backup of the whole shard only

How to go about it:
  1. Stop the daemon, and copy the store's directory.
  2. roundel inspect --verify DIR     says what is damaged, and where
  3. roundel repair DIR               says what could be done about it; changes nothing
  4. If you have a backup, put back the files that it names, then see again.
  5. roundel repair --apply DIR       does it
  6. Start the daemon.

Examples:
  roundel repair /var/lib/roundel
  roundel repair --apply /var/lib/roundel
  roundel repair --apply --accept-loss /var/lib/roundel";

/// Runs it.
pub fn run(arguments: &Arguments) -> Result {
    let options = Options { apply: arguments.apply, accept_loss: arguments.accept_loss };
    let mut out = std::io::stdout().lock();
    let outcome = repair(&arguments.store, options, &mut out).map_err(|error| error.to_string())?;
    let Outcome { steps, refused, hopeless } = outcome;
    match (steps, refused + hopeless) {
        (0, 0) => {
            println!("nothing to repair");
            Ok(())
        }
        (steps, 0) if arguments.apply => {
            println!("{steps} repaired");
            Ok(())
        }
        (steps, 0) => Err(format!("{steps} to repair: --apply does it")),
        (steps, _) => Err(format!(
            "{steps} {}, {refused} only with --accept-loss, {hopeless} not at all",
            if arguments.apply { "repaired" } else { "to repair with --apply" }
        )),
    }
}
