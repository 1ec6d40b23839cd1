//! Commands whose cargo feature this build lacks: `--help` lists them with a mark, and they refuse to run.

use clap::Command;

/// The commands that are features: name, feature, and whether this build has it.
const OPTIONAL: [(&str, &str, bool); 7] = [
    ("backup", "backup", cfg!(feature = "backup")),
    ("capacity", "pagecache", cfg!(feature = "pagecache")),
    ("cluster", "cluster", cfg!(feature = "cluster")),
    ("fadvise", "pagecache", cfg!(feature = "pagecache")),
    ("fincore", "pagecache", cfg!(feature = "pagecache")),
    ("mount", "mount", cfg!(feature = "mount")),
    ("pagecache", "pagecache", cfg!(feature = "pagecache")),
];

/// Marks the missing commands in the help text.
pub fn marked(command: Command) -> Command {
    let missing = OPTIONAL.iter().filter(|(.., is_built)| !is_built);
    missing.fold(command, |command, (name, feature, _)| {
        command.mut_subcommand(name, |command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            command.about(format!("{about} [not in this build: feature \"{feature}\"]"))
        })
    })
}

/// Defines a module with the command `roundel $name`, which needs `$feature`.
#[allow(unused_macros, reason = "a build with all features defines none")]
macro_rules! absent {
    ($module:ident, $feature:literal) => {
        #[doc = concat!("`roundel ", stringify!($module), "`, which needs the feature `", $feature, "`.")]
        #[cfg(not(feature = $feature))]
        pub mod $module {
            use std::ffi::OsString;

            /// Any words.
            #[derive(Debug, clap::Args)]
            #[command(disable_help_flag = true)]
            pub struct Arguments {
                #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
                words: Vec<OsString>,
            }

            /// Refuses.
            ///
            /// # Errors
            /// Always: this build lacks the feature.
            pub fn run(arguments: &Arguments) -> crate::cmd::Result {
                let _ = &arguments.words;
                Err(args::feature::missing(stringify!($module), $feature))
            }
        }
    };
}

absent!(backup, "backup");
absent!(capacity, "pagecache");
absent!(cluster, "cluster");
absent!(fadvise, "pagecache");
absent!(fincore, "pagecache");
absent!(mount, "mount");
absent!(pagecache, "pagecache");
