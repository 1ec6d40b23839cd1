//! Apache Kafka beside a test: a cluster of brokers, which can be killed, paused and started again.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::peer;
use crate::ports::free_port;
use crate::running::{Running, Signal};
use crate::wait::wait_until;

/// What a broker says when it answers clients.
const STARTED: &str = "Kafka Server started";
/// The settings of all brokers, but for names and ports: a dead broker is noticed after two seconds (after nine by default), and what was asked of a
/// controller that was stopped is asked of the next one after as long (after thirty).
const SETTINGS: &str = "\
process.roles=broker,controller
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
unclean.leader.election.enable=false
auto.create.topics.enable=false
offsets.topic.num.partitions=1
message.max.bytes=4194304
replica.fetch.max.bytes=4194304
log.segment.bytes=134217728
log.cleaner.dedupe.buffer.size=4194304
log.retention.check.interval.ms=500
log.initial.task.delay.ms=500
num.network.threads=2
num.io.threads=4
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=300
replica.lag.time.max.ms=2000
controller.quorum.fetch.timeout.ms=1000
controller.quorum.election.timeout.ms=500
controller.socket.timeout.ms=2000
controlled.shutdown.enable=true
";

/// Listeners of a broker beside the usual one, and its users.
#[derive(Clone, Copy, Debug, Default)]
pub struct Doors<'a> {
    /// The name of each, the protocol spoken there (`SSL`, `SASL_SSL`), and its port.
    pub listeners: &'a [(&'a str, &'a str, u16)],
    /// Names and passwords, for SCRAM-SHA-512.
    pub users: &'a [(&'a str, &'a str)],
}

/// What brokers are started with.
struct Setup<'a> {
    host: &'a str,
    brokers: usize,
    settings: &'a [&'a str],
    doors: &'a Doors<'a>,
    disk: &'a mut dyn FnMut(usize, &Path),
}

/// A cluster of brokers on 127.0.0.1, each a controller, too. It ends with this value.
#[derive(Debug)]
pub struct Kafka {
    installed: PathBuf,
    brokers: Vec<Broker>,
    /// Where clients reach the brokers.
    host: String,
    directory: tempfile::TempDir,
}

#[derive(Debug)]
struct Broker {
    /// From 1 on.
    number: usize,
    port: u16,
    process: Option<Running>,
}

impl Kafka {
    /// Starts brokers, with settings in addition to the usual ones ("name=value" each), and waits until all of them answer.
    /// Returns `None`, and skips the test, if Kafka is not installed.
    ///
    /// # Panics
    /// When a broker does not start.
    #[must_use]
    pub fn start(brokers: usize, settings: &[&str]) -> Option<Kafka> {
        Kafka::start_on("127.0.0.1", brokers, settings, |_, _| {})
    }

    /// As [`Kafka::start`], for clients that reach this machine at an address of IPv4. `disk` gets the number of each broker and
    /// its data directory, which is still empty, to mount something there.
    ///
    /// # Panics
    /// As [`Kafka::start`].
    #[must_use]
    pub fn start_on(
        host: &str,
        brokers: usize,
        settings: &[&str],
        mut disk: impl FnMut(usize, &Path),
    ) -> Option<Kafka> {
        let doors = Doors::default();
        Kafka::start_with(Setup { host, brokers, settings, doors: &doors, disk: &mut disk })
    }

    /// One broker with more doors than the usual one, which asks nothing.
    ///
    /// # Panics
    /// As [`Kafka::start`].
    #[must_use]
    pub fn start_guarded(doors: &Doors<'_>, settings: &[&str]) -> Option<Kafka> {
        let host = "127.0.0.1";
        Kafka::start_with(Setup { host, brokers: 1, settings, doors, disk: &mut |_, _| {} })
    }

    fn start_with(setup: Setup<'_>) -> Option<Kafka> {
        let installed = peer::kafka()?;
        Some(Kafka::start_installed(installed, setup).expect("the brokers of Kafka start"))
    }

    fn start_installed(installed: PathBuf, setup: Setup<'_>) -> io::Result<Kafka> {
        let Setup { host, brokers, settings, doors, disk } = setup;
        let (directory, host) = (tempfile::tempdir()?, host.to_string());
        let mut kafka = Kafka { installed, directory, brokers: Vec::new(), host };
        let controllers: Vec<u16> = (0..brokers).map(|_| free_port()).collect();
        let cluster = random_id();
        for number in 1..=brokers {
            let broker = Broker { number, port: free_port(), process: None };
            kafka.write_settings(&broker, &controllers, doors, settings)?;
            let data = kafka.path("data", number);
            std::fs::create_dir(&data)?;
            disk(number, &data);
            kafka.make_data(number, &cluster, doors)?;
            kafka.brokers.push(broker);
        }
        for index in 0..brokers {
            kafka.spawn(index)?;
        }
        (0..brokers).for_each(|index| kafka.wait_until_started(index));
        Ok(kafka)
    }

    /// Where clients find the brokers: `bootstrap.servers`.
    #[must_use]
    pub fn addresses(&self) -> String {
        let addresses: Vec<String> =
            self.brokers.iter().map(|broker| format!("{}:{}", self.host, broker.port)).collect();
        addresses.join(",")
    }

    /// Kills a broker (`kill -9`). Their numbers begin at 1.
    pub fn kill(&mut self, number: usize) {
        self.brokers[number - 1].process = None;
    }

    /// Starts a broker that was killed, and waits until it answers. Of several, most of which were killed, none answers alone: [`Kafka::start_again`].
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn restart(&mut self, number: usize) -> io::Result<()> {
        self.start_again(number)?;
        self.wait_until_started(number - 1);
        Ok(())
    }

    /// Whether a broker runs: one whose disk has no room left ends by itself.
    pub fn runs(&mut self, number: usize) -> bool {
        let process = self.brokers[number - 1].process.as_mut();
        process.is_some_and(|process| process.ended().is_none())
    }

    /// Starts those that were killed, all at once, and waits until they answer.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn restart_all(&mut self) -> io::Result<()> {
        let killed = |kafka: &Kafka, index: &usize| kafka.brokers[*index].process.is_none();
        let killed: Vec<usize> = (0..self.brokers.len()).filter(|index| killed(self, index)).collect();
        killed.iter().try_for_each(|index| self.spawn(*index))?;
        killed.into_iter().for_each(|index| self.wait_until_started(index));
        Ok(())
    }

    /// Starts a broker that was killed.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_again(&mut self, number: usize) -> io::Result<()> {
        self.spawn(number - 1)
    }

    /// Stops a broker in the middle of what it does: its connections stay, and nothing answers.
    pub fn pause(&self, number: usize) {
        self.signal(number, Signal::STOP);
    }

    /// Lets a paused broker go on.
    pub fn resume(&self, number: usize) {
        self.signal(number, Signal::CONT);
    }

    fn signal(&self, number: usize, signal: Signal) {
        self.brokers[number - 1].process.as_ref().expect("the broker runs").signal(signal);
    }

    fn path(&self, kind: &str, number: usize) -> PathBuf {
        self.directory.path().join(format!("{kind}-{number}"))
    }

    fn write_settings(
        &self,
        broker: &Broker,
        controllers: &[u16],
        doors: &Doors<'_>,
        more: &[&str],
    ) -> io::Result<()> {
        let number = broker.number;
        let voters: Vec<String> =
            (1..).zip(controllers).map(|(n, port)| format!("{n}@127.0.0.1:{port}")).collect();
        let mut clients = format!("PLAINTEXT://{}:{}", self.host, broker.port);
        let mut protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT".to_string();
        for (name, protocol, port) in doors.listeners {
            clients += &format!(",{name}://{}:{port}", self.host);
            protocols += &format!(",{name}:{protocol}");
        }
        let controller = controllers[number - 1];
        let data = self.path("data", number);
        let copies = controllers.len().min(3);
        let text = format!(
            "{SETTINGS}node.id={number}\nlog.dirs={}\ncontroller.quorum.voters={}\n\
             listener.security.protocol.map={protocols}\n\
             listeners={clients},CONTROLLER://127.0.0.1:{controller}\nadvertised.listeners={clients}\n\
             offsets.topic.replication.factor={copies}\ntransaction.state.log.replication.factor={copies}\n{}\n",
            data.display(),
            voters.join(","),
            more.join("\n"),
        );
        std::fs::write(self.path("settings", number), text)
    }

    /// What is in an empty data directory, as `kafka-storage format` makes it; by that itself if there are users, whose passwords only it knows how to write.
    fn make_data(&self, number: usize, cluster: &str, doors: &Doors<'_>) -> io::Result<()> {
        let data = self.path("data", number);
        if doors.users.is_empty() {
            let meta =
                format!("version=1\ncluster.id={cluster}\nnode.id={number}\ndirectory.id={}\n", random_id());
            return std::fs::write(data.join("meta.properties"), meta);
        }
        let mut command = self.java("kafka.tools.StorageTool");
        command.args(["format", "-t", cluster, "-c"]).arg(self.path("settings", number));
        for (name, password) in doors.users {
            command.arg("--add-scram").arg(format!("SCRAM-SHA-512=[name={name},password={password}]"));
        }
        let output = command.output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(io::Error::other(format!("kafka-storage format: {output:?}"))),
        }
    }

    /// A Java program of Kafka.
    fn java(&self, class: &str) -> Command {
        let mut command = Command::new("java");
        command
            .args([
                "-Xms256m",
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                // Without it, a broker that is killed leaves a file in /tmp/hsperfdata_USER.
                "-XX:-UsePerfData",
                "-Djava.awt.headless=true",
            ])
            .arg(format!("-XX:SharedArchiveFile={}", self.installed.join("classes.jsa").display()))
            .arg("-Dlog4j2.configurationFile=log4j2.properties")
            // As in prepare.sh: the archive is for exactly this path of classes.
            .args(["-cp", "lib/*", class])
            .current_dir(&self.installed)
            .stdin(Stdio::null());
        command
    }

    fn spawn(&mut self, index: usize) -> io::Result<()> {
        let number = self.brokers[index].number;
        let log = self.path("log", number);
        // An earlier start of the broker says that it has started, too.
        if log.exists() {
            std::fs::remove_file(&log)?;
        }
        let mut command = self.java("kafka.Kafka");
        command.arg(self.path("settings", number));
        self.brokers[index].process = Some(Running::start(&mut command, log));
        Ok(())
    }

    /// # Panics
    /// When it does not start, with the end of its log.
    fn wait_until_started(&mut self, index: usize) {
        let broker = self.brokers[index].process.as_mut().expect("it was started");
        wait_until("a broker of Kafka to start", || {
            let log = broker.log();
            if let Some(status) = broker.ended() {
                let last: Vec<&str> = log.lines().rev().take(20).collect();
                panic!("a broker ended ({status}); the end of its log, backwards: {last:#?}");
            }
            log.contains(STARTED)
        });
    }
}

/// An identifier as Kafka draws them: 16 random bytes in the URL alphabet of base 64.
fn random_id() -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digit = |at: u32| {
        // Each state has keys of its own, and the last digit stands for two bits only.
        let bits = if at == 21 { 0 } else { RandomState::new().hash_one(at) as usize % ALPHABET.len() };
        char::from(ALPHABET[bits])
    };
    // An id may not begin with a hyphen, which a command line would take for an option.
    std::iter::once('R').chain((1..22).map(digit)).collect()
}
