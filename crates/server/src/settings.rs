//! The daemon's settings, from the configuration file or rrdcached's options.

use std::path::{Path, PathBuf};
use std::time::Duration;

use store::stripes::Adopted;
use suggest::MetricRules;

use protocol::rrdcached::command::Permissions;

use crate::access::{AccessSettings, Anonymous};
use crate::agent::AgentSettings;
use crate::agents::AgentsSettings;
use crate::cluster::ClusterSettings;
use crate::collectors::collectd::CollectdSettings;
use crate::collectors::ganglia::GangliaSettings;
use crate::collectors::mrtg::MrtgSettings;
use crate::collectors::snmp::config::SnmpSettings;
use crate::forward::ForwardSettings;
use crate::http::access::{Door, WebAccess};
use crate::ingest::IngestSettings;
use crate::limits::CONNECTIONS_MAX;
use crate::listener::Listen;
use crate::machine;
use crate::push::PushSettings;
use crate::replication::{FollowSettings, ReplicationSettings};

/// Where RRDs are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Log and segments: the default.
    Stripes(StripesSettings),
    /// Standard `.rrd` files in the base directory.
    Files(FilesSettings),
}

/// How long files that were taken in are kept in the store's archive, unless the configuration says otherwise.
pub const KEEP_ADOPTED_DEFAULT: Duration = Duration::from_hours(30 * 24);
/// How long a file must be unchanged before it is taken in without being named, unless the configuration says otherwise: twice the usual step of programs that write
/// their files themselves.
pub const ADOPT_UNUSED_DEFAULT: Duration = Duration::from_mins(10);
/// How long removed RRDs are kept.
pub const TRASH_DEFAULT: Duration = Duration::from_hours(7 * 24);
/// Percent of all RRDs that may go with their placeholders at a stroke.
pub const MAX_REMOVED_DEFAULT: u32 = 10;

/// The stripes layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripesSettings {
    /// Directory of the store; created if missing.
    pub store: PathBuf,
    /// Shards of a new store; `None` = depends on the machine.
    pub shards: Option<u32>,
    /// Where placeholders are written; `None` = nowhere.
    pub placeholders: Option<PathBuf>,
    /// The tree from which `.rrd` files of other programs are imported; `None` = none.
    pub adopt: Option<PathBuf>,
    /// What becomes of these files.
    pub adopted: Adopted,
    /// Those that no program names are imported, too, once they have been unchanged for so long; `None` = not.
    pub adopt_unused: Option<Duration>,
    /// How long removed RRDs are kept.
    pub trash: Duration,
    /// The share of all RRDs that may go with their placeholders at a stroke, in percent.
    pub max_removed: u32,
    /// Bytes of open rows kept in memory; `None` = the store's default.
    pub open_bytes: Option<usize>,
    /// Bytes of log that a restart may have to read; `None` = the store's default.
    pub log_bytes: Option<u64>,
    /// Every block is verified once in this time; `None` = never.
    pub scrub: Option<Duration>,
}

/// The files layout: rrdcached's own options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesSettings {
    /// `-j`; `None` = no journal.
    pub journal: Option<PathBuf>,
    /// `-w`
    pub write_interval: Duration,
    /// `-z`
    pub write_jitter: Duration,
    /// `-f`
    pub flush_interval: Duration,
    /// `-t`; `None` = the store's default.
    pub write_threads: Option<usize>,
    /// `-F`
    pub flush_at_stop: bool,
    /// Every file is read and judged once in this time; `None` = never.
    pub scrub: Option<Duration>,
}

/// How often every block of a striped store, and every file of the other layout, is verified, unless the configuration says otherwise.
pub const SCRUB_DEFAULT: Duration = Duration::from_secs(30 * 86_400);

impl Default for FilesSettings {
    fn default() -> Self {
        // rrdcached's defaults.
        FilesSettings {
            journal: None,
            write_interval: Duration::from_secs(300),
            write_jitter: Duration::ZERO,
            flush_interval: Duration::from_secs(3600),
            write_threads: None,
            flush_at_stop: false,
            scrub: None,
        }
    }
}

/// When an acknowledged update survives a loss of power. It always survives a crash of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before it is acknowledged.
    Always,
    /// At most this long after.
    Every(Duration),
}

/// What clients may make the daemon hold in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Bytes that all connections together may hold: requests that have arrived in part, answers in the making, and those not
    /// yet read.
    pub memory: u64,
    /// How long a client may be silent in the middle of something.
    pub idle: Duration,
    /// Connections at once; fewer where the process may not open so many files.
    pub connections: usize,
    /// Bytes that one RRD may take: its definition, live head and seasons.
    pub rrd_memory: u64,
    /// Bytes that all RRDs of a striped store may take.
    pub store_memory: u64,
}

impl Default for LimitSettings {
    fn default() -> Self {
        let machine = machine::memory_bytes();
        LimitSettings {
            memory: (machine / 4).min(1_000_000_000),
            idle: Duration::from_secs(60),
            connections: CONNECTIONS_MAX,
            rrd_memory: rrd::footprint::LIVE_BYTES_MAX,
            store_memory: machine / 2,
        }
    }
}

/// How much is logged, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

impl LogLevel {
    /// The level as a directive of the log filter.
    pub fn directive(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        }
    }
}

/// All settings of a daemon.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where RRDs are stored.
    pub layout: Layout,
    /// The directory that names are relative to; absolute, created if missing.
    pub base: PathBuf,
    /// When updates are durable.
    pub sync: SyncPolicy,
    /// What clients may make the daemon hold in memory.
    pub limits: LimitSettings,
    /// Sockets of rrdcached's protocol.
    pub listen: Vec<Listen>,
    /// Who clients are, and what they may do.
    pub access: AccessSettings,
    /// Addresses of HTTP.
    pub http: Vec<String>,
    /// What clients of HTTP may do that do not say who they are; `None`: everything, if only this machine reaches it and no passwords are
    /// asked for.
    pub http_anonymous: Option<Anonymous>,
    /// Who gets in there.
    pub web_access: WebAccess,
    /// The directory of saved graphs (`/graph?template=`); absolute.
    pub templates: Option<PathBuf>,
    /// Whether clients of HTTP may save views there; `None`: those of this machine may, if HTTP listens on loopback only.
    pub save_views: Option<bool>,
    /// CREATE never replaces an existing RRD (`-O`).
    pub no_overwrite: bool,
    /// CREATE creates missing directories (`-R`).
    pub make_directories: bool,
    /// Stay in the foreground (`-g`).
    pub foreground: bool,
    /// File for the process id while the daemon runs (`-p`).
    pub pid_file: Option<PathBuf>,
    /// User to change to (`-U`).
    pub user: Option<u32>,
    /// Group to change to (`-G`).
    pub group: Option<u32>,
    /// The log level.
    pub log_level: LogLevel,
    /// The log file; `None` = standard error, or syslog in the background.
    pub log_file: Option<PathBuf>,
    /// Record the host's own metrics under this directory of the store; `None` = do not.
    pub collect_host: Option<String>,
    /// Receive collectd's packets; `None` = do not.
    pub collectd: Option<CollectdSettings>,
    /// Do gmetad's work; `None` = do not.
    pub ganglia: Option<GangliaSettings>,
    /// Files of MRTG to poll by.
    pub mrtg: Vec<MrtgSettings>,
    /// SNMP devices to poll; `None` = none.
    pub snmp: Option<SnmpSettings>,
    /// Run as an agent; `None` = as the daemon.
    pub agent: Option<AgentSettings>,
    /// Receive the readings of agents; `None` = do not.
    pub agents: Option<AgentsSettings>,
    /// How others follow this server.
    pub replication: ReplicationSettings,
    /// Whom it follows; `None` = no other server.
    pub follow: Option<FollowSettings>,
    /// How it is a node of a cluster; `None` = it is not.
    pub cluster: Option<ClusterSettings>,
    /// The directory in which rrdcached left its journal, which is applied at the start; `None` = none.
    pub rrdcached_journal: Option<PathBuf>,
    /// The directory in which clients may have snapshots of the store made; absolute. `None` = nowhere.
    pub snapshots: Option<PathBuf>,
    /// The backup of the store; `None` = none.
    #[cfg(feature = "backup")]
    pub backup: Option<backup::run::BackupSettings>,
    /// What is pushed.
    pub ingest: IngestSettings,
    /// Ports that others push to.
    pub push: PushSettings,
    /// Where updates are forwarded to.
    pub forward: Vec<ForwardSettings>,
    /// Where rows go, again in each interval.
    pub sinks: Vec<crate::sink::SinkSettings>,
    /// What RRDs are called as metrics, before the rules that are shipped.
    pub metrics: MetricRules,
    /// What a reader of the configuration should know that is no error: sections of carbon's files that cannot be used.
    pub remarks: Vec<String>,
    /// The file to read again on SIGHUP.
    pub config_file: Option<PathBuf>,
}

impl Settings {
    /// The directory whose file system must have room: of the store, or of the `.rrd` files.
    pub fn data_directory(&self) -> &Path {
        match &self.layout {
            Layout::Stripes(stripes) => &stripes.store,
            Layout::Files(_) => &self.base,
        }
    }

    /// The directory in which a store keeps what is not of RRDs.
    pub fn own_directory(&self) -> &Path {
        match &self.layout {
            Layout::Stripes(stripes) => &stripes.store,
            Layout::Files(files) => files.journal.as_deref().unwrap_or(&self.base),
        }
    }

    /// The file of tokens, unless the configuration says another one.
    pub fn tokens_in_store(&self) -> PathBuf {
        self.own_directory().join("tokens")
    }

    /// Where rrdcached may have left its journal: where the settings say, else where ours is in the files layout.
    pub fn journal_to_take_over(&self) -> Option<&Path> {
        let own = match &self.layout {
            Layout::Files(files) => files.journal.as_deref(),
            Layout::Stripes(_) => None,
        };
        self.rrdcached_journal.as_deref().or(own)
    }

    /// What clients of HTTP may do that do not say who they are; `None`: what follows from whether passwords are asked for.
    pub fn anonymous_of_http(&self, door: &Door) -> Option<Anonymous> {
        let is_local = |address: &String| AgentsSettings::is_local(address) == Some(true);
        match &self.http_anonymous {
            None if !door.asks() && !self.http.iter().all(is_local) => Some(Anonymous::Nothing),
            written => written.clone(),
        }
    }

    /// Settings without listeners, with stripes in `store` and names relative to `base`.
    pub fn new(store: PathBuf, base: PathBuf) -> Self {
        Settings {
            layout: Layout::Stripes(StripesSettings {
                store,
                shards: None,
                placeholders: Some(base.clone()),
                adopt: Some(base.clone()),
                adopted: Adopted::Archived(KEEP_ADOPTED_DEFAULT),
                adopt_unused: Some(ADOPT_UNUSED_DEFAULT),
                trash: TRASH_DEFAULT,
                max_removed: MAX_REMOVED_DEFAULT,
                open_bytes: None,
                log_bytes: None,
                scrub: None,
            }),
            base,
            sync: SyncPolicy::Every(Duration::from_secs(1)),
            limits: LimitSettings::default(),
            listen: Vec::new(),
            access: AccessSettings::default(),
            http: Vec::new(),
            http_anonymous: None,
            web_access: WebAccess::default(),
            templates: None,
            save_views: None,
            no_overwrite: false,
            make_directories: true,
            foreground: true,
            pid_file: None,
            user: None,
            group: None,
            log_level: LogLevel::Info,
            log_file: None,
            collect_host: None,
            collectd: None,
            ganglia: None,
            mrtg: Vec::new(),
            snmp: None,
            agent: None,
            agents: None,
            replication: ReplicationSettings::default(),
            follow: None,
            cluster: None,
            rrdcached_journal: None,
            snapshots: None,
            #[cfg(feature = "backup")]
            backup: None,
            ingest: IngestSettings::default(),
            push: PushSettings::default(),
            forward: Vec::new(),
            sinks: Vec::new(),
            metrics: MetricRules::default(),
            remarks: Vec::new(),
            config_file: None,
        }
    }
}

/// Parses a duration as in rrdcached's options and `roundel.toml`: a number with an optional suffix `ms s m h d w`;
/// seconds without.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let unit_ms: u64 = match &text[digits..] {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 604_800_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(unit_ms)?))
}

/// Parses a number of bytes, at least one: a number with an optional unit, `kB MB GB TB` of 1000 or `KiB MiB GiB TiB`
/// of 1024.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let unit: u64 = match text[digits..].trim_start() {
        "" | "B" => 1,
        "kB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(unit).filter(|&bytes| bytes > 0)
}

/// A socket whose clients may use every command.
pub fn listen_plain(address: protocol::rrdcached::address::Address) -> Listen {
    let anonymous = Anonymous::All;
    Listen { address, permissions: Permissions::ALL, mode: None, group: None, anonymous, tls: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        let check = |text: &str, bytes: Option<u64>| assert_eq!(parse_bytes(text), bytes, "{text:?}");
        check("5", Some(5));
        check("16 MiB", Some(16 << 20));
        check("2GB", Some(2_000_000_000));
        for bad in ["", "0", "GB", "-1", "1.5 GiB", "1 gb", "99999999999 TiB"] {
            check(bad, None);
        }
    }

    #[test]
    fn durations_have_suffixes() {
        let check = |text: &str, ms: Option<u64>| {
            assert_eq!(parse_duration(text), ms.map(Duration::from_millis), "{text:?}");
        };
        check("5", Some(5_000));
        check("250ms", Some(250));
        check("5m", Some(300_000));
        check("1h", Some(3_600_000));
        check("2d", Some(172_800_000));
        check("0", Some(0));
        for bad in ["", "m", "-1", "5x", "1.5s", "99999999999999999999", "99999999999999999w"] {
            check(bad, None);
        }
    }
}
