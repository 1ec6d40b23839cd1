//! The daemon under the name `rrdcached`: with its options and its error texts.
//!
//! `--layout files|stripes` and `--store DIR` are ours. Options that have no meaning for stripes are accepted
//! with a note.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use protocol::rrdcached::address::{Address, SOCKET_DEFAULT};
use protocol::rrdcached::command::Permissions;
use server::access::Anonymous;
use server::listener::Listen;
use server::privileges;
use server::settings::{FilesSettings, Layout, LogLevel, Settings, parse_duration};

/// The default pid file, as in Debian's rrdcached.
const PID_FILE_DEFAULT: &str = "/var/run/rrdcached.pid";
/// The default directory of the store, within the base directory.
const STORE_IN_BASE: &str = ".roundel";

const USAGE: &str = "\
Usage: rrdcached [options]

Options of rrdcached, with what Roundel makes of them:
  -a <size>     Allocation chunk size: taken and ignored.
  -B            Only names within -b <dir>; always so here.
  -b <dir>      Base directory. Default: /tmp
  -F            Write everything out at shutdown (files layout).
  -f <seconds>  How often to look for old updates (files layout).
  -G <group>    Group to run as.
  -g            Stay in the foreground.
  -j <dir>      Directory of the journal (files layout), or of the store.
                What an rrdcached left there is applied at the start.
  -L            Listen on the default port of all interfaces.
  -l <address>  Address to listen on. Default: unix:/tmp/rrdcached.sock
  -m <mode>     Mode (octal) of the UNIX sockets that follow.
  -O            CREATE never overwrites.
  -o <file>     Log to this file.
  -P <perms>    Commands accepted on the sockets that follow.
  -p <file>     Pid file.
  -R            CREATE makes directories in -b <dir>.
  -s <id|name>  Group of the UNIX sockets that follow.
  -t <threads>  Write threads (files layout).
  -U <user>     User to run as.
  -V <LOGLEVEL> LOG_EMERG to LOG_DEBUG.
  -w <seconds>  Interval in which to write (files layout).
  -z <delay>    Spread of writes (files layout).
Of Roundel:
  --layout <stripes|files>  Where RRDs are kept. Default: stripes
  --store <dir>             Where it keeps its own files. Default: that of -j

rrdcached(1) describes the options; docs/compatibility.md the differences.
";

/// Why the options are invalid: the text to print, and the exit status (rrdcached's own).
#[derive(Debug, PartialEq, Eq)]
struct Bad {
    text: String,
    status: u8,
}

fn bad(status: u8, text: impl Into<String>) -> Bad {
    Bad { text: text.into(), status }
}

/// Runs the daemon with the arguments after the program's name.
pub fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    match parse(words) {
        Ok((settings, notes)) => {
            for note in notes {
                eprintln!("rrdcached: {note}");
            }
            crate::allocator::give_back_soon();
            match server::lifecycle::run(settings) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("rrdcached: {error}");
                    ExitCode::FAILURE
                }
            }
        }
        Err(Bad { text, status }) => {
            eprintln!("{}", text.trim_end());
            ExitCode::from(status)
        }
    }
}

/// The options parsed so far.
struct Options {
    settings: Settings,
    files: FilesSettings,
    use_files: bool,
    journal: Option<PathBuf>,
    store: Option<PathBuf>,
    base: PathBuf,
    restrict: bool,
    make_directories: bool,
    permissions: Permissions,
    mode: Option<u32>,
    group: Option<u32>,
    notes: Vec<String>,
}

/// Options with a value.
const WITH_VALUE: &[u8] = b"abfGjlmoPpstUVwz";
/// Options without a value.
const WITHOUT_VALUE: &[u8] = b"BFgLORh";

fn parse(words: impl Iterator<Item = OsString>) -> Result<(Settings, Vec<String>), Bad> {
    let mut options = Options {
        settings: Settings { foreground: false, ..Settings::new(PathBuf::new(), PathBuf::new()) },
        files: FilesSettings::default(),
        use_files: false,
        journal: None,
        store: None,
        base: "/tmp".into(),
        restrict: false,
        make_directories: false,
        permissions: Permissions::ALL,
        mode: None,
        group: None,
        notes: Vec::new(),
    };
    options.settings.log_level = LogLevel::Error;
    options.settings.pid_file = Some(PID_FILE_DEFAULT.into());
    let mut words: VecDeque<OsString> = words.collect();
    while let Some(word) = words.pop_front() {
        let bytes = word.as_bytes();
        if bytes == b"--" {
            break;
        }
        if let Some(long) = bytes.strip_prefix(b"--") {
            let missing = || bad(1, format!("option requires an argument -- '{}'", word.to_string_lossy()));
            match long {
                b"layout" => options.layout(&words.pop_front().ok_or_else(missing)?)?,
                b"store" => options.store = Some(words.pop_front().ok_or_else(missing)?.into()),
                b"help" => return Err(bad(0, USAGE)),
                _ => return Err(bad(1, format!("invalid option -- '{}'\n{USAGE}", word.to_string_lossy()))),
            }
            continue;
        }
        // As in rrdcached, arguments that are not options are ignored.
        let Some(letters) = bytes.strip_prefix(b"-").filter(|letters| !letters.is_empty()) else { continue };
        for (index, &letter) in letters.iter().enumerate() {
            let shown = char::from(letter);
            if WITH_VALUE.contains(&letter) {
                let rest = &letters[index + 1..];
                let value = if rest.is_empty() {
                    let missing = || bad(0, format!("option requires an argument -- '{shown}'\n{USAGE}"));
                    words.pop_front().ok_or_else(missing)?
                } else {
                    std::ffi::OsStr::from_bytes(rest).to_os_string()
                };
                options.take(letter, &value)?;
                break;
            }
            if !WITHOUT_VALUE.contains(&letter) {
                return Err(bad(0, format!("invalid option -- '{shown}'\n{USAGE}")));
            }
            options.flag(letter)?;
        }
    }
    options.finish()
}

impl Options {
    fn flag(&mut self, letter: u8) -> Result<(), Bad> {
        match letter {
            b'B' => self.restrict = true,
            b'F' => self.files.flush_at_stop = true,
            b'g' => self.settings.foreground = true,
            b'L' => self.listen("")?,
            b'O' => self.settings.no_overwrite = true,
            b'R' => self.make_directories = true,
            _ => return Err(bad(1, USAGE)),
        }
        Ok(())
    }

    fn layout(&mut self, value: &OsString) -> Result<(), Bad> {
        self.use_files = match value.as_bytes() {
            b"files" => true,
            b"stripes" => false,
            _ => return Err(bad(1, format!("no such layout: {}", value.to_string_lossy()))),
        };
        Ok(())
    }

    fn take(&mut self, letter: u8, value: &OsString) -> Result<(), Bad> {
        let text = value.to_string_lossy();
        let text = text.as_ref();
        match letter {
            b'a' => match text.parse::<u32>() {
                Ok(size) if size > 0 => self.note("-a", "there are no value pointers to allocate"),
                _ => return Err(bad(10, format!("Invalid allocation size: {text}"))),
            },
            b'b' => self.base = PathBuf::from(value),
            b'f' => self.files.flush_interval = interval("flush interval", text, 3)?,
            b'w' => self.files.write_interval = interval("write interval", text, 2)?,
            b'z' => self.files.write_jitter = interval("write jitter", text, 2)?,
            b'G' => self.settings.group = Some(find_group(text)?),
            b's' => self.group = Some(find_group(text)?),
            b'U' => {
                let user = privileges::user_id(text);
                let missing = || bad(5, format!("read_options: couldn't map \"{text}\" to a user, Sorry"));
                self.settings.user = Some(user.ok_or_else(missing)?);
            }
            b'j' => self.journal = Some(PathBuf::from(value)),
            b'l' => self.listen(text)?,
            b'm' => {
                let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
                let wrong = || bad(5, format!("read_options: Invalid file mode \"{text}\"."));
                self.mode = Some(mode.ok_or_else(wrong)?);
            }
            b'o' => self.settings.log_file = Some(absolute(Path::new(value))?),
            b'P' => {
                self.permissions = Permissions::parse(text).map_err(|word| {
                    bad(
                        4,
                        format!(
                            "read_options: Adding permission \"{word}\" to socket failed. Most likely, this \
                             permission doesn't exist. Check your command line."
                        ),
                    )
                })?;
            }
            b'p' => self.settings.pid_file = Some(absolute(Path::new(value))?),
            b't' => match text.parse::<usize>() {
                Ok(threads) if threads > 0 => self.files.write_threads = Some(threads),
                _ => return Err(bad(1, format!("Invalid thread count: -t {text}"))),
            },
            b'V' => self.settings.log_level = self.log_level(text),
            _ => return Err(bad(1, USAGE)),
        }
        Ok(())
    }

    fn log_level(&mut self, text: &str) -> LogLevel {
        match text {
            "LOG_EMERG" | "LOG_ALERT" | "LOG_CRIT" | "LOG_ERR" => LogLevel::Error,
            "LOG_WARNING" => LogLevel::Warn,
            "LOG_NOTICE" | "LOG_INFO" => LogLevel::Info,
            "LOG_DEBUG" => LogLevel::Debug,
            _ => {
                let note = format!("Unrecognized log level '{text}'; falling back to default LOG_ERR.");
                self.notes.push(note);
                LogLevel::Error
            }
        }
    }

    fn listen(&mut self, text: &str) -> Result<(), Bad> {
        let address = Address::parse(text).map_err(|error| bad(5, error.to_string()))?;
        let address = match address {
            Address::Unix(path) => Address::Unix(absolute(&path)?),
            tcp => tcp,
        };
        let (permissions, mode, group) = (self.permissions, self.mode, self.group);
        let anonymous = Anonymous::All;
        self.settings.listen.push(Listen { address, permissions, mode, group, anonymous, tls: None });
        Ok(())
    }

    fn note(&mut self, option: &str, why: &str) {
        self.notes.push(format!("{option} has no effect: {why}"));
    }

    fn finish(mut self) -> Result<(Settings, Vec<String>), Bad> {
        if self.settings.listen.is_empty() {
            self.listen(SOCKET_DEFAULT)?;
        }
        let base = absolute(&self.base)?;
        // Compat: the base directory must be given by its real path.
        if let Ok(real) = std::fs::canonicalize(&base)
            && real != base
        {
            let text = format!(
                "Base directory (-b) resolved via file system links!\nPlease consult rrdcached '-b' \
                 documentation!\nConsider specifying the real directory ({})",
                real.display()
            );
            return Err(bad(5, text));
        }
        if self.make_directories && !self.restrict {
            self.notes.push("WARNING: -R does not make sense without -B!".to_string());
        }
        if self.files.write_jitter > self.files.write_interval {
            let note = "WARNING: write delay (-z) should NOT be larger than write interval (-w) !";
            self.notes.push(note.to_string());
        }
        let journal = self.journal.as_deref().map(absolute).transpose()?;
        let store = self.store.as_deref().map(absolute).transpose()?.or_else(|| journal.clone());
        let mut settings = Settings {
            make_directories: self.make_directories,
            rrdcached_journal: journal,
            ..Settings::new(store.clone().unwrap_or_else(|| base.join(STORE_IN_BASE)), base.clone())
        };
        if self.use_files {
            settings.layout = Layout::Files(FilesSettings { journal: store, ..self.files.clone() });
        } else if self.files != FilesSettings::default() {
            self.note("-F, -f, -t, -w or -z", "the stripes layout writes in sequence by itself");
        }
        let given = self.settings;
        let settings = Settings {
            listen: given.listen,
            no_overwrite: given.no_overwrite,
            foreground: given.foreground,
            pid_file: given.pid_file,
            user: given.user,
            group: given.group,
            log_level: given.log_level,
            log_file: given.log_file,
            ..settings
        };
        Ok((settings, self.notes))
    }
}

fn interval(what: &str, text: &str, status: u8) -> Result<Duration, Bad> {
    let wrong = || bad(status, format!("Invalid {what} {text}: value must be (suffixed) positive number"));
    let duration = parse_duration(text).filter(|_| !text.ends_with("ms")).ok_or_else(wrong)?;
    if duration.is_zero() && what != "write jitter" {
        return Err(bad(status, format!("Invalid {what} {text}: value must be positive")));
    }
    Ok(duration)
}

fn find_group(text: &str) -> Result<u32, Bad> {
    privileges::group_id(text)
        .ok_or_else(|| bad(5, format!("read_options: couldn't map \"{text}\" to a group, Sorry")))
}

fn absolute(path: &Path) -> Result<PathBuf, Bad> {
    server::config::absolute(path).map_err(|error| bad(5, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(Settings, Vec<String>), Bad> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn all_options_are_accepted() {
        let (settings, notes) = read(
            "-a 5 -b /tmp -B -F -f 1h -G 0 -g -j /tmp/j -L -m 0660 -s 0 -l unix:/tmp/x.sock -O -o /tmp/log \
             -P FLUSH,BATCH -l 127.0.0.1:4242 -p /tmp/pid -R -t 2 -U 0 -V LOG_DEBUG -w 5m -z 60",
        )
        .unwrap();
        assert!(settings.foreground && settings.no_overwrite && settings.make_directories);
        assert_eq!(settings.listen.len(), 3);
        assert_eq!(settings.listen[0].permissions, Permissions::ALL);
        assert_eq!((settings.listen[1].mode, settings.listen[1].group), (Some(0o660), Some(0)));
        assert_eq!(settings.listen[2].permissions, Permissions::parse("FLUSH,BATCH").unwrap());
        assert_eq!(settings.log_level, LogLevel::Debug);
        assert_eq!((settings.user, settings.group), (Some(0), Some(0)));
        let Layout::Stripes(stripes) = &settings.layout else { panic!() };
        assert_eq!(stripes.store, Path::new("/tmp/j"));
        assert_eq!(settings.rrdcached_journal.as_deref(), Some(Path::new("/tmp/j")));
        assert_eq!(notes.len(), 2, "{notes:?}");
    }

    #[test]
    fn short_options_may_be_combined() {
        let (settings, _) = read("-gB -b/tmp -lunix:/tmp/y.sock --layout files -w90").unwrap();
        let Layout::Files(files) = &settings.layout else { panic!() };
        assert_eq!(files.write_interval, Duration::from_secs(90));
        assert_eq!(settings.listen[0].address, Address::Unix("/tmp/y.sock".into()));
        let (settings, _) = read("-j /tmp/old --store /tmp/new").unwrap();
        let Layout::Stripes(stripes) = &settings.layout else { panic!() };
        assert_eq!(stripes.store, Path::new("/tmp/new"));
        assert_eq!(settings.rrdcached_journal.as_deref(), Some(Path::new("/tmp/old")));
        let (settings, _) = read("").unwrap();
        assert_eq!(settings.rrdcached_journal, None);
        assert_eq!(settings.listen[0].address, Address::Unix("/tmp/rrdcached.sock".into()));
        assert!(!settings.foreground);
    }

    #[test]
    fn errors_have_rrdcacheds_texts() {
        let check = |line: &str, status, text: &str| {
            let got = read(line).expect_err(line);
            assert_eq!(got.status, status, "{line}");
            assert!(got.text.starts_with(text), "{line}: {}", got.text);
        };
        check("-x", 0, "invalid option -- 'x'");
        check("-a", 0, "option requires an argument -- 'a'");
        check("-h", 1, "Usage: rrdcached [options]");
        check("-a x", 10, "Invalid allocation size: x");
        check("-w x", 2, "Invalid write interval x: value must be (suffixed) positive number");
        check("-w 0", 2, "Invalid write interval 0: value must be positive");
        check("-f -1", 3, "Invalid flush interval -1: value must be (suffixed) positive number");
        check("-m 999", 5, "read_options: Invalid file mode \"999\".");
        check("-s nogroup2", 5, "read_options: couldn't map \"nogroup2\" to a group, Sorry");
        check("-U nouser", 5, "read_options: couldn't map \"nouser\" to a user, Sorry");
        check("-t 0", 1, "Invalid thread count: -t 0");
        check("-P FOO", 4, "read_options: Adding permission \"FOO\" to socket failed.");
    }
}
