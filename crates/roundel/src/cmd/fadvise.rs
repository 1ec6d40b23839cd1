//! `roundel fadvise`: advice to the kernel about files, and what became of their pages.

use clap::{Args, ValueEnum};
use pagecache::advice::{Advised, FileAdvice, advise};

use super::fincore::FileArguments;
use super::import::Failures;
use super::{Result, fincore, print};

const AFTER_HELP: &str = "\
  dontneed    drop the pages of the files from the page cache; what is changed is written first (fdatasync)
  willneed    read the files into the page cache, in the background
  random      no readahead         } for as long as the file stays open, which this command cannot do for
  sequential  twice the readahead  } another program: only to see that the kernel takes the advice
  normal      as without advice    }

An experiment starts with an empty cache, without dropping that of the whole machine:
  roundel fadvise --advice dontneed /var/lib/mrtg
  roundel fincore --summary /var/lib/mrtg";

/// Options of `fadvise`.
#[derive(Debug, Args)]
#[command(about = "Tell the kernel what files are needed for, and show what that did to their pages", after_long_help = AFTER_HELP)]
pub struct Arguments {
    /// The advice
    #[arg(long, value_enum)]
    advice: Word,
    #[command(flatten)]
    files: FileArguments,
    /// A line for each file, too
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Word {
    Dontneed,
    Random,
    Willneed,
    Sequential,
    Normal,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result {
    let advice = match arguments.advice {
        Word::Dontneed => FileAdvice::DontNeed,
        Word::Random => FileAdvice::Random,
        Word::Willneed => FileAdvice::WillNeed,
        Word::Sequential => FileAdvice::Sequential,
        Word::Normal => FileAdvice::Normal,
    };
    let (mut files, mut unknown, mut failures) = (0u64, 0u64, Failures::default());
    let mut sum = Advised { is_known: true, ..Advised::default() };
    let bar = fincore::bar();
    for found in arguments.files.found() {
        let path = match found {
            Ok(path) => path,
            Err(unreadable) => {
                failures.push(unreadable.to_string());
                continue;
            }
        };
        bar.inc(1);
        match advise(&path, advice) {
            Ok(advised) => {
                files += 1;
                if advised.is_known {
                    sum.before.add(advised.before);
                    sum.after.add(advised.after);
                    sum.synced += advised.synced;
                } else {
                    unknown += 1;
                }
                if arguments.verbose {
                    let line = format!("{}: {}\n", path.display(), text(&advised));
                    bar.suspend(|| print(line))?;
                }
            }
            Err(error) => failures.push(format!("cannot advise about \"{}\": {error}", path.display())),
        }
    }
    bar.finish_and_clear();
    print(format!("{files} files: {}\n", text(&sum)))?;
    if unknown > 0 {
        print(format!("{unknown} files are not in these sums: {}\n", fincore::NOT_TOLD))?;
    }
    if advice.ends_with_descriptor() {
        eprintln!("roundel: this advice ended with the command: it holds for an open file only");
    }
    failures.report()
}

fn text(advised: &Advised) -> String {
    let Advised { is_known, before, synced, after } = advised;
    if !is_known {
        return format!("unknown of {} pages in the page cache", before.pages);
    }
    let mut text = format!(
        "{} of {} pages in the page cache before, {} after",
        before.cached, before.pages, after.cached
    );
    if *synced > 0 {
        text += &format!("; {synced} were written first");
    }
    text
}
