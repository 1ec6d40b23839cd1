//! `roundel repair`: restores what is missing or damaged in a store, as far as what remains allows.

use std::path::PathBuf;

use clap::Args;
use store::disk::{Disk, RealDisk};
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
    /// A copy of the store, such as a backup: what is lost and never changes (segments, checkpoints, parts of the log) is taken from it
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
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
  shard-NNN/manifest       from its copy, or from a copy of the store (--from DIR) since which no checkpoint and no
                           segment was written; without either, from the checkpoint and the segments that are
                           there (with --accept-loss, because nothing then tells whether one of them is missing)
  a segment                from a copy of the store (--from DIR) that has the same file whole: it never changes.
                           Else what can be read of it is written again, with the rows of the lost places that
                           the copy's other segments have; if rows are lost (they become unknown), only with
                           --accept-loss
  a part of the log        from a copy of the store (--from DIR) that has the same records, before the next start;
                           that goes on without what is missing, and names the RRDs that lack updates
  a shard's directory      from a copy of the store (--from DIR), with --accept-loss, because what was written since
                           is lost. Without a copy the shard starts again empty
  a checkpoint             from a copy of the store (--from DIR) that has the same one. Without it, a start
                           serves all RRDs except those of its damaged pages; import these from any backup, or
                           give them up with --accept-loss

How to go about it:
  1. Stop the daemon, and copy the store's directory.
  2. roundel verify --store DIR       says what is damaged, where, and whose rows it costs
  3. roundel repair DIR               says what could be done about it; changes nothing
  4. If you have a backup, see again with --from BACKUP.
  5. roundel repair --apply DIR       does it
  6. Start the daemon.

Examples:
  roundel repair /var/lib/roundel
  roundel repair --apply --from /backup/roundel /var/lib/roundel
  roundel repair --apply --accept-loss /var/lib/roundel";

/// Runs it.
pub fn run(arguments: &Arguments) -> Result {
    let backup = arguments.from.as_deref().map(|path| {
        RealDisk::open(path)
            .map_err(|error| format!("cannot open the backup \"{}\": {error}", path.display()))
    });
    let backup = backup.transpose()?;
    let backup = backup.as_ref().map(|backup| backup as &dyn Disk);
    let options = Options { apply: arguments.apply, accept_loss: arguments.accept_loss, backup };
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
