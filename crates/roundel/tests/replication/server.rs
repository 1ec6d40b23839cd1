//! A daemon of a pair, with its configuration.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Client, Running, Signal, free_port, wait_for};

const ROUNDEL: &str = env!("CARGO_BIN_EXE_roundel");
/// What follows the name in CREATE: each second has its own row.
pub const CREATE: &str = "-b 1000000000 -s 1 DS:v:GAUGE:1000000000:U:U RRA:LAST:0:1:2000";

/// Two servers of one store: the first is the primary, and runs; the second is to follow it.
pub struct Pair {
    pub servers: [Server; 2],
    _directory: tempfile::TempDir,
}

pub struct Server {
    directory: PathBuf,
    pub followers_port: u16,
    follow: Option<u16>,
    replication: String,
    /// The section of a node of a cluster, which has no `[replication]`.
    cluster: Option<String>,
    more: String,
    /// What runs the daemon.
    wrapper: Vec<String>,
    /// Where it listens for followers, and where the other one is.
    addresses: [String; 2],
    process: Option<Running>,
}

impl Pair {
    /// With these further lines in `[replication]` of both.
    pub fn start(replication: &str) -> Pair {
        Pair::placed(replication, |_, _| {})
    }

    /// The same; `place` says where each of them runs.
    pub fn placed(replication: &str, mut place: impl FnMut(usize, &mut Server)) -> Pair {
        let directory = tempfile::tempdir().unwrap();
        let mut servers = ["a", "b"].map(|name| Server::new(directory.path(), name, replication));
        servers.iter_mut().enumerate().for_each(|(side, server)| place(side, server));
        servers[0].start();
        // From now on each has the other in its configuration, the primary, too.
        let [a, b] = &mut servers;
        a.follow = Some(b.followers_port);
        b.follow = Some(a.followers_port);
        Pair { servers, _directory: directory }
    }
}

impl Server {
    pub fn new(parent: &Path, name: &str, replication: &str) -> Server {
        let directory = parent.join(name);
        std::fs::create_dir_all(directory.join("base")).unwrap();
        let (replication, followers_port) = (replication.to_string(), free_port());
        Server {
            directory,
            followers_port,
            follow: None,
            replication,
            cluster: None,
            more: String::new(),
            wrapper: Vec::new(),
            addresses: ["127.0.0.1".to_string(), "127.0.0.1".to_string()],
            process: None,
        }
    }

    /// A node of a cluster, with this section of its configuration.
    pub fn node(parent: &Path, name: &str, section: &str) -> Server {
        let mut server = Server::new(parent, name, "");
        server.cluster = Some(section.to_string());
        server
    }

    /// As a node of a cluster, with another log from its next start on: `to` in place of `from` in its section.
    pub fn set_log(&mut self, from: &str, to: &str) {
        self.cluster = self.cluster.take().map(|section| section.replace(from, to));
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.as_ref().unwrap().signal(signal);
    }

    /// Runs it by these words, which must end in running what follows them.
    pub fn run_in(&mut self, words: &[&str]) {
        self.wrapper = words.iter().map(ToString::to_string).collect();
    }

    /// It listens for followers at this address of IP.
    pub fn listen_at(&mut self, address: &str) {
        self.addresses[0] = address.to_string();
    }

    /// The other one is at this address of IP.
    pub fn follow_at(&mut self, address: &str) {
        self.addresses[1] = address.to_string();
    }

    /// It runs in this directory, which is there.
    pub fn move_to(&mut self, directory: &Path) {
        self.directory = directory.to_path_buf();
        std::fs::create_dir_all(self.base()).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub fn store(&self) -> PathBuf {
        self.path("store")
    }

    pub fn base(&self) -> PathBuf {
        self.path("base")
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub fn follow(&mut self, port: u16) {
        self.follow = Some(port);
    }

    pub fn follow_through(&mut self, port: u16) {
        self.follow(port);
    }

    pub fn follow_none(&mut self) {
        self.follow = None;
    }

    /// Further sections of its configuration.
    pub fn more(&mut self, text: &str) {
        self.more.push_str(text);
    }

    /// These further sections in place of those before.
    pub fn replace_more(&mut self, text: &str) {
        self.more.clear();
        self.more(text);
    }

    /// A new token, with these options.
    pub fn add_token(&self, name: &str, options: &[&str]) -> String {
        self.token(&[&["add", name], options].concat()).trim().to_string()
    }

    pub fn revoke_token(&self, name: &str) {
        self.token(&["revoke", name]);
    }

    fn token(&self, options: &[&str]) -> String {
        let output = Command::new(ROUNDEL)
            .args([&["token"], options, &["--config", "roundel.toml"]].concat())
            .current_dir(&self.directory)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Writes its configuration.
    pub fn write_config(&self) {
        let [own, other] = &self.addresses;
        let follow = self.follow.map(|port| format!("[follow]\nprimary = '{other}:{port}'\n"));
        let replication = match &self.cluster {
            Some(section) => section.clone(),
            None => format!(
                "[replication]\nlisten = ['{own}:{}']\n{}{}",
                self.followers_port,
                self.replication,
                follow.unwrap_or_default()
            ),
        };
        let config = format!(
            "store = 'store'\nbase = 'base'\n[[listen]]\naddress = 'unix:sock'\n{replication}{}",
            self.more
        );
        std::fs::write(self.path("roundel.toml"), config).unwrap();
    }

    fn spawn(&self) -> Running {
        self.write_config();
        let words: Vec<&str> = self.wrapper.iter().map(String::as_str).chain([ROUNDEL, "serve"]).collect();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .current_dir(&self.directory)
            .env_remove("RRDCACHED_ADDRESS")
            .env_remove("RUST_LOG");
        Running::start(&mut command, self.path("log"))
    }

    /// Starts it, and waits until it answers.
    pub fn start(&mut self) {
        self.spawn_only();
        self.client();
    }

    /// Starts it; it answers later.
    pub fn spawn_only(&mut self) {
        assert!(self.process.is_none());
        self.process = Some(self.spawn());
    }

    /// Starts it where it cannot start; what it says.
    pub fn fails(&mut self) -> String {
        assert!(!self.spawn().wait().success());
        self.log()
    }

    /// Kills it, as a power cut would without the disk.
    pub fn kill(&mut self) {
        self.process.take().unwrap().kill();
    }

    /// Asks it to stop, and waits until it has.
    pub fn stop(&mut self) {
        assert!(self.process.take().unwrap().terminate().success());
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    pub fn client(&self) -> Client {
        wait_for("the daemon to answer", || {
            let mut client = Client::connect(&self.path("sock")).ok()?;
            client.ask("PING").ok()?;
            Some(client)
        })
    }

    /// One command, and the first line of its answer.
    pub fn say(&self, command: &str) -> String {
        let answer = self.client().ask(command).unwrap();
        format!("{} {}", answer.status, answer.message)
    }

    pub fn dump(&self, name: &str) -> Vec<String> {
        let answer = self.client().ask(&format!("DUMP {name}")).unwrap();
        assert!(answer.status > 0, "{answer:?}");
        answer.lines
    }

    /// A value of REPLICATION; empty when there is none, or no answer.
    pub fn status(&self, key: &str) -> String {
        let Ok(mut client) = Client::connect(&self.path("sock")) else { return String::new() };
        let Ok(answer) = client.ask("REPLICATION") else { return String::new() };
        let value = answer.lines.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        value.unwrap_or_default().to_string()
    }

    /// Runs `roundel` with these words and `--daemon`.
    pub fn run(&self, words: &[&str]) -> String {
        let sock = format!("unix:{}", self.path("sock").display());
        self.tool(&[words, &["--daemon", &sock]].concat())
    }

    /// Runs `roundel`.
    pub fn tool(&self, words: &[&str]) -> String {
        let output = Command::new(ROUNDEL).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `roundel`, which refuses; what it says.
    pub fn tool_refuses(&self, words: &[&str]) -> String {
        let output = Command::new(ROUNDEL).args(words).output().unwrap();
        assert!(!output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Reads every checksum.
    pub fn verify(&self) {
        self.run(&["verify"]);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}:\n{}", self.directory.display(), self.log());
        }
    }
}
