//! For tests that talk to daemons: processes that end with the test.

#![allow(clippy::unwrap_used, reason = "tests")]
// Each test program uses a part of it.
#![allow(dead_code)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub use testkit::{Client, DEADLINE};

/// The daemon of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `roundel serve`, stripes.
    Stripes,
    /// `roundel serve`, standard `.rrd` files.
    Files,
    /// Debian's rrdcached, as the reference.
    Rrdcached,
}

/// A daemon over a directory; killed when dropped.
pub struct Daemon {
    kind: Kind,
    directory: PathBuf,
    tcp_port: u16,
    more_settings: String,
    child: Option<Child>,
}

impl Daemon {
    /// A daemon that is not started yet; creates the directory.
    pub fn new(kind: Kind, directory: &Path) -> Self {
        fs::create_dir_all(directory.join("rrd")).unwrap();
        Daemon {
            kind,
            directory: directory.canonicalize().unwrap(),
            tcp_port: testkit::free_port(),
            more_settings: String::new(),
            child: None,
        }
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("sock")
    }

    /// Lines appended to its `roundel.toml`, from the next start or [`Daemon::reload`] on.
    pub fn configure(&mut self, lines: &str) {
        self.more_settings = lines.to_string();
    }

    /// Its port on 127.0.0.1.
    pub fn tcp_port(&self) -> u16 {
        self.tcp_port
    }

    /// The tree of placeholders.
    pub fn base(&self) -> PathBuf {
        self.directory.join("rrd")
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts the process without waiting.
    pub fn spawn(&mut self) {
        let command = match self.kind {
            Kind::Rrdcached => self.rrdcached(),
            Kind::Stripes | Kind::Files => self.roundel(),
        };
        self.spawn_as(command);
    }

    /// As `spawn`, with the test's own command, which must make it listen at [`Daemon::socket`].
    pub fn spawn_as(&mut self, mut command: Command) {
        fs::remove_file(self.socket()).ok();
        let log = File::options().create(true).append(true).open(self.directory.join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
    }

    /// Starts it and waits until it answers.
    pub fn start(&mut self) -> Client {
        self.spawn();
        self.wait_for_answer()
    }

    /// Waits until a spawned daemon answers PING.
    pub fn wait_for_answer(&mut self) -> Client {
        let start = Instant::now();
        loop {
            if let Ok(mut client) = Client::connect(&self.socket())
                && client.ask("PING").is_ok()
            {
                return client;
            }
            let ended = self.child.as_mut().and_then(|child| child.try_wait().unwrap());
            if ended.is_some() || start.elapsed() > DEADLINE {
                panic!("the daemon does not answer ({ended:?}): {}", self.log());
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Its output.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// The process's number.
    pub fn process(&self) -> u32 {
        self.child.as_ref().expect("the daemon runs").id()
    }

    /// Releases the process, to be killed by the caller.
    pub fn take(&mut self) -> Child {
        self.child.take().expect("the daemon runs")
    }

    /// kill -9.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }

    fn rrdcached(&self) -> Command {
        let options = ["-B", "-R", "-t", "1", "-l", &format!("127.0.0.1:{}", self.tcp_port)];
        testkit::rrdcached(&self.base(), &self.socket(), &self.directory.join("pid"), &options)
    }

    /// `ROUNDEL_EXECUTABLE` may name another program that takes `serve --config FILE`.
    /// The command that starts our daemon with its settings.
    pub fn roundel(&self) -> Command {
        let program =
            std::env::var("ROUNDEL_EXECUTABLE").unwrap_or_else(|_| env!("CARGO_BIN_EXE_roundel").to_string());
        let config = self.write_config();
        let mut command = Command::new(program);
        command.args(["serve", "--config"]).arg(config).env("TZ", "UTC").env("LC_ALL", "C");
        command
    }

    /// Writes its `roundel.toml`, and has the process read it.
    pub fn reload(&self) {
        self.write_config();
        hang_up(self.process());
    }

    fn write_config(&self) -> PathBuf {
        let config = self.directory.join("roundel.toml");
        let layout = if self.kind == Kind::Files { "files" } else { "stripes" };
        let base = self.directory.display();
        let text = format!(
            "layout = \"{layout}\"\nstore = \"{base}/store\"\nbase = \"{base}/rrd\"\n\n\
             [[listen]]\naddress = \"unix:{base}/sock\"\n\n\
             [[listen]]\naddress = \"127.0.0.1:{port}\"\n\n{more}",
            port = self.tcp_port,
            more = self.more_settings,
        );
        fs::write(&config, text).unwrap();
        config
    }
}

/// SIGHUP.
pub fn hang_up(process: u32) {
    let process = rustix::process::Pid::from_raw(process as i32).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::HUP).unwrap();
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}
