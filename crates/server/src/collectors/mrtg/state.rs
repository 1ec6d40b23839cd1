//! `ThreshDir`: a file for each threshold that is broken, as MRTG keeps them, so that a restart does not act twice.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use collect::mrtg::config::Config;
use collect::mrtg::threshold::{Bound, Broken, Thresholds};

/// The directory, and what its files begin with.
#[derive(Clone, Debug)]
pub struct ThreshDir {
    directory: PathBuf,
    prefix: String,
}

impl ThreshDir {
    /// That of a configuration in the file `path`, if it has one.
    pub fn of(config: &Config, path: &Path) -> Option<Self> {
        let directory = PathBuf::from(config.get("threshdir").filter(|directory| !directory.is_empty())?);
        let prefix = path.file_name()?.to_str()?.to_string();
        Some(ThreshDir { directory, prefix })
    }

    fn file(&self, target: &str, bound: Bound) -> PathBuf {
        self.directory.join(format!("{}.{target}.{}", self.prefix, bound.file_ending()))
    }

    /// Adds the thresholds that were broken when the files were written.
    pub fn recall(&self, thresholds: &Thresholds, broken: &mut Broken) {
        broken.extend(thresholds.keys().filter(|(target, bound)| self.file(target, *bound).exists()));
    }

    /// Makes the files agree with what is broken now; `before` is what was.
    ///
    /// # Errors
    /// When a file cannot be made or removed.
    pub fn remember(&self, thresholds: &Thresholds, before: &Broken, now: &Broken) -> io::Result<()> {
        for key in thresholds.keys() {
            let (was, is) = (before.contains(&key), now.contains(&key));
            let file = self.file(&key.0, key.1);
            if is && !was {
                fs::write(file, b"")?;
            } else if was && !is {
                fs::remove_file(file).or_else(|error| match error.kind() {
                    io::ErrorKind::NotFound => Ok(()),
                    _ => Err(error),
                })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collect::mrtg::config;
    use collect::mrtg::threshold::Rates;

    /// The names of the files are those of Debian's mrtg.
    #[test]
    fn what_is_broken_survives_in_files() {
        let directory = tempfile::tempdir().unwrap();
        let text = format!(
            "WorkDir: /\nThreshDir: {}\nTarget[ab.c-d]: `x`\nTitle[ab.c-d]: t\nMaxBytes[ab.c-d]: 1000\n\
             ThreshMaxI[ab.c-d]: 100\nThreshMinO[ab.c-d]: 50%\n",
            directory.path().display()
        );
        let mut none = |_: &str| Err(String::new());
        let config = config::parse("x", text.as_bytes(), &mut none).unwrap();
        let thresholds = Thresholds::of(&config, &config.targets[0]).unwrap();
        let state = ThreshDir::of(&config, Path::new("/etc/t6.cfg")).unwrap();
        let mut broken = Broken::new();
        let mut step = |input, output| {
            let before = broken.clone();
            let rates = Rates { rates: [Some(input), Some(output)], failures: [None; 2] };
            thresholds.decide(&rates, &mut broken);
            state.remember(&thresholds, &before, &broken).unwrap();
            let mut recalled = Broken::new();
            state.recall(&thresholds, &mut recalled);
            assert_eq!(recalled, broken);
            let files = fs::read_dir(directory.path()).unwrap();
            let mut files: Vec<String> =
                files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            files.sort();
            files
        };
        assert_eq!(step(200.0, 10.0), ["t6.cfg.ab.c-d.threshmaxI", "t6.cfg.ab.c-d.threshminO"]);
        assert_eq!(step(200.0, 900.0), ["t6.cfg.ab.c-d.threshmaxI"]);
        assert_eq!(step(20.0, 900.0), [""; 0]);
    }
}
