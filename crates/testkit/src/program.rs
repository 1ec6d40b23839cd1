//! Programs that a test starts beside us, and the files they make.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A program that is killed when dropped.
pub struct Program(Child);

impl Program {
    /// Starts `program` with these words, without input and with its output in the file `log`.
    ///
    /// # Panics
    /// If the file cannot be created or the program not started.
    #[must_use]
    pub fn start(log: &Path, program: &str, words: &[&str]) -> Self {
        let file = fs::File::create(log).expect("the log can be made");
        let mut command = Command::new(program);
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a descriptor can be copied"))
            .stderr(file);
        Program(command.env("LC_ALL", "C").spawn().expect("the program starts"))
    }

    /// Asks it to end, so that it writes what it holds, and waits.
    ///
    /// # Panics
    /// If it cannot be asked.
    pub fn terminate(mut self) {
        Command::new("kill").arg(self.0.id().to_string()).status().expect("kill is there");
        self.0.wait().expect("a child can be waited for");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The names of the `.rrd` files below a directory, relative to it.
#[must_use]
pub fn rrd_files(base: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut directories = vec![base.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rrd") {
                found.insert(path.strip_prefix(base).map(Path::to_path_buf).unwrap_or(path));
            }
        }
    }
    found
}
