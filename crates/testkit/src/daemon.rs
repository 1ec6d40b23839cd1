//! A daemon over a directory of the test: ours in two layouts, or Debian's rrdcached.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::{Client, Running, send_signal};

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
#[derive(Debug)]
pub struct Daemon {
    executable: PathBuf,
    kind: Kind,
    directory: PathBuf,
    tcp_port: u16,
    more_settings: String,
    process: Option<Running>,
}

/// Returns a [`Daemon`] of this package's executable `roundel` that is not started yet: of a kind, over a directory.
#[macro_export]
macro_rules! daemon {
    ($kind:expr, $directory:expr) => {
        $crate::Daemon::new(env!("CARGO_BIN_EXE_roundel"), $kind, $directory)
    };
}

impl Daemon {
    /// Returns a daemon that is not started yet; creates the directory. Tests of the package `roundel` use [`daemon!`](crate::daemon!).
    ///
    /// `ROUNDEL_EXECUTABLE` may name another program than `executable` that takes `serve --config FILE`.
    ///
    /// # Panics
    /// If the directory cannot be created.
    #[must_use]
    pub fn new(executable: impl Into<PathBuf>, kind: Kind, directory: &Path) -> Self {
        fs::create_dir_all(directory.join("rrd")).expect("the directory can be made");
        let given = std::env::var_os("ROUNDEL_EXECUTABLE").map(PathBuf::from);
        Daemon {
            executable: given.unwrap_or_else(|| executable.into()),
            kind,
            directory: directory.canonicalize().expect("the directory is there"),
            tcp_port: crate::free_port(),
            more_settings: String::new(),
            process: None,
        }
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.directory.join("sock")
    }

    /// Lines appended to its `roundel.toml`, from the next start or [`Daemon::reload`] on.
    pub fn configure(&mut self, lines: &str) {
        self.more_settings = lines.to_string();
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn tcp_port(&self) -> u16 {
        self.tcp_port
    }

    /// The tree of placeholders.
    #[must_use]
    pub fn base(&self) -> PathBuf {
        self.directory.join("rrd")
    }

    /// Its directory.
    #[must_use]
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
        self.process = Some(Running::start(&mut command, self.directory.join("log")));
    }

    /// Starts it and waits until it answers.
    pub fn start(&mut self) -> Client {
        self.spawn();
        self.wait_for_answer()
    }

    /// Waits until a spawned daemon answers PING.
    ///
    /// # Panics
    /// If it was not started, ends, or does not answer within [`DEADLINE`](crate::DEADLINE).
    pub fn wait_for_answer(&mut self) -> Client {
        let socket = self.socket();
        let process = self.process.as_mut().expect("the daemon was started");
        process.wait_for("the daemon to answer PING", || {
            let mut client = Client::connect(&socket).ok()?;
            client.ask("PING").is_ok().then_some(client)
        })
    }

    /// Its output.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// The process's number.
    ///
    /// # Panics
    /// If it does not run.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process.as_ref().expect("the daemon runs").id()
    }

    /// Releases the process to the caller.
    ///
    /// # Panics
    /// If it does not run.
    pub fn take(&mut self) -> Running {
        self.process.take().expect("the daemon runs")
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.process = None;
    }

    fn rrdcached(&self) -> Command {
        let options = ["-B", "-R", "-t", "1", "-l", &format!("127.0.0.1:{}", self.tcp_port)];
        crate::rrdcached(&self.base(), &self.socket(), &self.directory.join("pid"), &options)
    }

    /// The command that starts our daemon with its settings.
    #[must_use]
    pub fn roundel(&self) -> Command {
        let config = self.write_config();
        let mut command = Command::new(&self.executable);
        command.args(["serve", "--config"]).arg(config).env("TZ", "UTC").env("LC_ALL", "C");
        command
    }

    /// Writes its `roundel.toml`, and has the process read it.
    pub fn reload(&self) {
        self.write_config();
        send_signal(self.process(), Signal::HUP);
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
        fs::write(&config, text).expect("the configuration can be written");
        config
    }
}
