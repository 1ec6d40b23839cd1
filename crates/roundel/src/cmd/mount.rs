//! `roundel mount`: a store as a file system. Under the name `mount.roundel` it is called by `mount(8)`.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Args;
use mount::options::Options;
use mount::session::{Session, leave_terminal};
use mount::store::Store;
use server::idle_memory::use_small_pages;
use server::private::{PrivateDaemon, StopSignals};

use super::{Result, address, peer, print};

/// Options of `mount`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory to mount on
    directory: PathBuf,
    /// The daemon's address, as in RRDCACHED_ADDRESS, or the directory of a store that no daemon holds [default:
    /// RRDCACHED_ADDRESS, else unix:var/rrdcached.sock]
    #[arg(long, value_name = "ADDRESS|DIR")]
    from: Option<String>,
    /// Options, separated by commas: ro (nothing can be changed), allow_other (for all users), uid=NUMBER and gid=NUMBER
    /// (the owner of all files, instead of the placeholders'), extra=DIR (where files live that are no RRDs)
    #[arg(short, value_name = "OPTIONS")]
    options: Vec<String>,
    /// Stay in the foreground
    #[arg(long, short)]
    foreground: bool,
}

/// What the process in the background says when all is well.
const MOUNTED: &str = "mounted";
/// Set for that process.
const IN_BACKGROUND: &str = "ROUNDEL_MOUNT_IN_BACKGROUND";
/// How long programs may keep files open after SIGTERM.
const LEFT_OPEN: Duration = Duration::from_secs(10);

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result {
    let mut options = Options::default();
    for text in &arguments.options {
        options.add(text)?;
    }
    if let Some(extra) = &options.extra {
        let real = extra.canonicalize();
        options.extra = Some(real.map_err(|error| format!("cannot use extra={}: {error}", extra.display()))?);
    }
    if arguments.foreground || std::env::var_os(IN_BACKGROUND).is_some() {
        serve(arguments, &options)
    } else {
        start_in_background()
    }
}

/// Starts this command again, and waits until it has mounted.
fn start_in_background() -> Result {
    let cannot = |error: std::io::Error| format!("cannot go to the background: {error}");
    let program = std::env::current_exe().map_err(cannot)?;
    let mut words = std::env::args_os();
    let mut command = Command::new(program);
    if let Some(name) = words.next() {
        std::os::unix::process::CommandExt::arg0(&mut command, name);
    }
    command.args(words).env(IN_BACKGROUND, "1").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(cannot)?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line).map_err(cannot)?;
    }
    if line.trim_end() == MOUNTED {
        return Ok(());
    }
    // It has said why, and its status is what mount(8) expects.
    let status = child.wait().map_err(cannot)?;
    std::process::exit(status.code().unwrap_or(1));
}

/// Mounts, and serves until the end.
fn serve(arguments: &Arguments, options: &Options) -> Result {
    // The buffers for the kernel's requests are large, and mostly empty.
    use_small_pages();
    crate::allocator::give_back_soon();
    let store_directory = arguments.from.as_deref().map(Path::new).filter(|path| path.is_dir());
    let private = store_directory.map(Private::start).transpose()?;
    let address = match &private {
        Some(private) => private.address(),
        None => {
            address::daemon(arguments.from.as_deref())?.unwrap_or_else(|| address::SOCKET_HERE.to_string())
        }
    };
    let store = Store::at(&address);
    store.check().map_err(|error| {
        format!(
            "cannot mount the store of the daemon at \"{address}\": {error}; start it, or name one by --from"
        )
    })?;
    let cannot = |error: std::io::Error| {
        let directory = arguments.directory.display();
        let advice = match error.kind() {
            std::io::ErrorKind::NotConnected => {
                format!(
                    "; the process of an earlier mount there has ended: first `umount {directory}` (or `fusermount3 -u {directory}`)"
                )
            }
            _ => String::new(),
        };
        format!("cannot mount on \"{directory}\": {error}{advice}")
    };
    let signals = StopSignals::new().map_err(cannot)?;
    let source = arguments.from.as_deref().unwrap_or(&address);
    let session = Session::mount(store, source, &arguments.directory, options).map_err(cannot)?;
    let unmounter = session.unmounter();
    std::thread::Builder::new()
        .name("stop".to_string())
        .spawn(move || {
            signals.wait();
            if let Err(error) = unmounter.unmount() {
                eprintln!("roundel: cannot unmount: {error}");
            }
            std::thread::sleep(LEFT_OPEN);
            std::process::exit(0);
        })
        .map_err(cannot)?;
    if std::env::var_os(IN_BACKGROUND).is_some() {
        print(format!("{MOUNTED}\n"))?;
        leave_terminal().map_err(cannot)?;
    }
    let served = session.run().map_err(|error| format!("the mount has ended: {error}"));
    served.and(private.map_or(Ok(()), Private::stop))
}

/// The daemon of a store at rest, in this process.
struct Private {
    daemon: PrivateDaemon,
    /// The directory of its socket.
    directory: PathBuf,
}

impl Private {
    fn start(store: &Path) -> Result<Self> {
        let settings = peer::settings_of(store)?;
        let directory = std::env::temp_dir().join(format!("roundel-mount-{}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&directory);
        made.map_err(|error| format!("cannot make \"{}\": {error}", directory.display()))?;
        match PrivateDaemon::start(&settings, &directory.join(SOCKET)) {
            Ok(daemon) => Ok(Private { daemon, directory }),
            Err(error) => {
                std::fs::remove_dir_all(&directory).ok();
                Err(error)
            }
        }
    }

    fn address(&self) -> String {
        format!("unix:{}", self.directory.join(SOCKET).display())
    }

    fn stop(self) -> Result {
        let stopped = self.daemon.stop();
        std::fs::remove_dir_all(&self.directory).ok();
        stopped
    }
}

/// The name of the socket in its directory.
const SOCKET: &str = "socket";

/// Runs as `mount.roundel SOURCE DIR [-o OPTIONS]`, as `mount(8)` calls it.
pub fn run_for_mount(words: &[OsString]) -> ExitCode {
    let done = arguments_of_mount(words).and_then(|arguments| arguments.as_ref().map_or(Ok(()), run));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("mount.roundel: {text}");
            // mount(8): the mount has failed.
            ExitCode::from(32)
        }
    }
}

/// The arguments that `mount(8)` gives; `None` = it only wants to know whether it could.
fn arguments_of_mount(words: &[OsString]) -> Result<Option<Arguments>> {
    const USAGE: &str = "usage: mount.roundel SOURCE DIR [-o OPTIONS]";
    let (mut places, mut options, mut is_fake) = (Vec::new(), Vec::new(), false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_str().ok_or(USAGE)?;
        match text {
            "-o" => options.push(words.next().and_then(|word| word.to_str()).ok_or(USAGE)?.to_string()),
            // The type and a name space say nothing new.
            "-t" | "-N" => drop(words.next()),
            "-f" => is_fake = true,
            _ if text.len() > 1 && text.starts_with('-') => {}
            _ => places.push(text.to_string()),
        }
    }
    let [source, directory] = <[String; 2]>::try_from(places).map_err(|_| USAGE)?;
    let from = Some(source).filter(|source| !matches!(source.as_str(), "none" | "roundel"));
    let arguments = Arguments { directory: directory.into(), from, options, foreground: false };
    Ok(Some(arguments).filter(|_| !is_fake))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Arguments>> {
        arguments_of_mount(&text.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn mount_calls_with_source_and_directory() {
        let arguments = parse("unix:/run/x.sock /srv/rrd -n -o rw,uid=33 -t roundel").unwrap().unwrap();
        assert_eq!(
            (arguments.from.as_deref(), arguments.directory.to_str()),
            (Some("unix:/run/x.sock"), Some("/srv/rrd"))
        );
        assert_eq!((arguments.options, arguments.foreground), (vec!["rw,uid=33".to_string()], false));
        assert_eq!(parse("roundel /srv/rrd").unwrap().unwrap().from, None);
        assert!(parse("roundel /srv/rrd -f").unwrap().is_none());
        for text in ["/srv/rrd", "a b c", "a b -o"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
