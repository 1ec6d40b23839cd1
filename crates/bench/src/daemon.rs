//! Starts, kills and restarts the two daemons, and never leaves one running.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::builds::Program;
use crate::client::Client;
use crate::usage::ProcessUsage;

/// Longest wait for the first answer after a start: a million RRDs on a cold disk.
const START_LIMIT: Duration = Duration::from_secs(600);
/// Longest wait for an end after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(120);

/// Which daemon, in which layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Debian's `/usr/bin/rrdcached`, with `-j`.
    Rrdcached,
    /// `roundel serve`, stripes.
    Roundel,
    /// `roundel serve`, stripes, without placeholders.
    RoundelBare,
    /// `roundel serve --layout files`.
    RoundelFiles,
}

impl Kind {
    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Kind::Rrdcached => "rrdcached",
            Kind::Roundel => "roundel",
            Kind::RoundelBare => "roundel, no placeholders",
            Kind::RoundelFiles => "roundel, files layout",
        }
    }
}

/// A daemon with its directory, running or not.
pub struct Daemon {
    program: Program,
    real_time: bool,
    http: Option<String>,
    sections: String,
    directory: PathBuf,
    child: Option<Child>,
}

impl Daemon {
    /// A daemon over an empty `directory` (made here), not yet started.
    pub fn new(program: &Program, directory: &Path) -> Outcome<Self> {
        fs::create_dir_all(directory.join("rrd"))?;
        fs::create_dir_all(directory.join("journal"))?;
        // The base directory of rrdcached must not be reached through a symbolic link.
        let directory = directory.canonicalize()?;
        let (program, sections) = (program.clone(), String::new());
        Ok(Daemon { program, real_time: false, http: None, sections, directory, child: None })
    }

    /// rrdcached as in real use (`-w 60 -z 60`) instead of writing at FLUSHALL only; from the next start on.
    pub fn set_real_time(&mut self) {
        self.real_time = true;
    }

    /// Listens for HTTP on a free port of this host, from the next start on. Returns the address. Roundel only.
    pub fn set_http(&mut self) -> Outcome<String> {
        let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        self.http = Some(free.clone());
        Ok(free)
    }

    /// Adds sections to its configuration, from the next start on. Roundel only.
    pub fn configure(&mut self, sections: &str) {
        self.sections += sections;
    }

    /// Its UNIX socket as clients write it.
    pub fn address(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    /// Its directory: RRDs, journal or store, socket, log.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn socket(&self) -> PathBuf {
        self.directory.join("sock")
    }

    /// Starts it and waits until it answers PING. Returns the time that took.
    pub fn start(&mut self) -> Outcome<Duration> {
        fs::remove_file(self.socket()).ok();
        let log = File::options().create(true).append(true).open(self.directory.join("daemon.log"))?;
        let mut command = match self.program.kind {
            Kind::Rrdcached => self.rrdcached_command(),
            _ => self.roundel_command()?,
        };
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let start = Instant::now();
        let child =
            command.spawn().map_err(|error| format!("cannot start {:?}: {error}", self.program.kind))?;
        self.child = Some(child);
        loop {
            if let Ok(mut client) = Client::connect(&self.address())
                && client.ask("PING").is_ok()
            {
                return Ok(start.elapsed());
            }
            if let Some(child) = &mut self.child
                && let Some(status) = child.try_wait()?
            {
                self.child = None;
                let log = fs::read_to_string(self.directory.join("daemon.log")).unwrap_or_default();
                return Err(format!("{} ended with {status}: {log}", self.program.title()).into());
            }
            if start.elapsed() > START_LIMIT {
                return Err(format!("{} does not answer after {START_LIMIT:?}", self.program.title()).into());
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// `-w 3600`: nothing is written before FLUSHALL unless the caller asks for it with real-time options.
    fn rrdcached_command(&self) -> Command {
        let mut command = Command::new("/usr/bin/rrdcached");
        let rrd = self.directory.join("rrd");
        command.args(["-g", "-B", "-R", "-t", "4", "-f", "7200"]);
        if self.real_time {
            command.args(["-w", "60", "-z", "60"]);
        } else {
            command.args(["-w", "3600"]);
        }
        command.arg("-b").arg(rrd).arg("-j").arg(self.directory.join("journal"));
        command.arg("-l").arg(self.address()).arg("-p").arg(self.directory.join("pid"));
        command
    }

    fn roundel_command(&self) -> Outcome<Command> {
        let config = self.directory.join("roundel.toml");
        let base = self.directory.display();
        let placeholders = self.program.kind == Kind::Roundel;
        let (layout, files) = match self.program.kind {
            // As rrdcached here: nothing is written before FLUSHALL.
            Kind::RoundelFiles => ("files", "\n[files]\nwrite_interval = \"1h\"\n"),
            _ => ("stripes", ""),
        };
        let http = self
            .http
            .as_ref()
            .map_or_else(String::new, |address| format!("[http]\nlisten = [\"{address}\"]\n"));
        fs::write(
            &config,
            format!(
                "layout = \"{layout}\"\nstore = \"{base}/store\"\nbase = \"{base}/rrd\"\n\
                 placeholders = {placeholders}\nsync = \"1s\"\n\n\
                 [[listen]]\naddress = \"{}\"\n{files}{http}{}",
                self.address(),
                self.sections
            ),
        )?;
        let mut command = Command::new(&self.program.roundel);
        command.args(["serve", "--config"]).arg(config);
        Ok(command)
    }

    /// The process.
    pub fn pid(&self) -> Outcome<u32> {
        Ok(self.child.as_ref().ok_or("the daemon is not running")?.id())
    }

    /// Its usage since its start.
    pub fn usage(&self) -> Outcome<ProcessUsage> {
        ProcessUsage::of(self.pid()?)
    }

    /// Bytes written on its behalf since its start. Syncs first, so that a page that gets dirty again counts again.
    pub fn written(&self) -> Outcome<u64> {
        rustix::fs::syncfs(File::open(&self.directory)?)?;
        Ok(self.usage()?.write_bytes)
    }

    /// kill -9.
    pub fn kill(&mut self) -> Outcome<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Sends SIGTERM and waits; kills with -9 when that takes too long.
    pub fn stop(&mut self) -> Outcome<Duration> {
        let start = Instant::now();
        let Some(child) = &mut self.child else { return Ok(Duration::ZERO) };
        let pid = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        while child.try_wait()?.is_none() {
            if start.elapsed() > STOP_LIMIT {
                self.kill()?;
                return Err(format!("{} did not stop in {STOP_LIMIT:?}", self.program.title()).into());
            }
            thread::sleep(Duration::from_millis(2));
        }
        self.child = None;
        Ok(start.elapsed())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill().ok();
    }
}
