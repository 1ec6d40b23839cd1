//! `roundel man` and `roundel completions`: generated from the definitions of `--help`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use super::Result;

/// Options of `man`.
#[derive(Debug, Args)]
pub struct ManArguments {
    /// The directory to write the pages to: roundel.1, and one for each command
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell to complete for; the script goes to standard output
    shell: Shell,
}

/// Writes the manual pages.
pub fn man(arguments: &ManArguments, command: Command) -> Result {
    let directory = &arguments.directory;
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("cannot make directory \"{}\": {error}", directory.display()))?;
    let mut command = command;
    // Gives each command the name of its page, such as roundel-serve.
    command.build();
    let mut pages = 0;
    write_pages(&command, directory, &mut pages)?;
    println!("wrote {pages} pages in {}", directory.display());
    Ok(())
}

fn write_pages(command: &Command, directory: &Path, pages: &mut usize) -> Result {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_string();
    let path = directory.join(format!("{name}.1"));
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut page)
        .and_then(|()| std::fs::write(&path, &page))
        .map_err(|error| format!("cannot write \"{}\": {error}", path.display()))?;
    *pages += 1;
    let below = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
    for below in below {
        write_pages(below, directory, pages)?;
    }
    Ok(())
}

/// Writes the completion script for a shell.
pub fn completions(arguments: &CompletionsArguments, mut command: Command) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "roundel", &mut script);
    std::io::stdout().write_all(&script).map_err(|error| format!("cannot write the script: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_has_a_page_and_every_option_is_on_it() {
        let directory = tempfile::tempdir().unwrap();
        let arguments = ManArguments { directory: directory.path().to_path_buf() };
        man(&arguments, crate::Arguments::command()).unwrap();
        let mut command = crate::Arguments::command();
        command.build();
        let whole = std::fs::read_to_string(directory.path().join("roundel.1")).unwrap();
        let mut count = 0;
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            let name = below.get_name();
            let page = std::fs::read_to_string(directory.path().join(format!("roundel-{name}.1"))).unwrap();
            assert!(whole.contains(&format!("roundel\\-{name}")), "roundel.1 does not name {name}");
            for option in below.get_arguments().filter_map(|argument| argument.get_long()) {
                assert!(
                    page.contains(&option.replace('-', "\\-")),
                    "roundel-{name}.1 does not name --{option}"
                );
            }
            count += 1;
        }
        assert!(count >= 8, "only {count} commands");
    }

    #[test]
    fn every_shell_gets_a_script() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut crate::Arguments::command(), "roundel", &mut script);
            let script = String::from_utf8(script).unwrap();
            for word in ["serve", "export", "completions"] {
                assert!(script.contains(word), "{shell}: {word} is not completed");
            }
        }
    }
}
