//! `/api/v1/status`: how the daemon is doing, and what to do about what is wrong.

mod late;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use collect::statistics::Statistic;
use procfs::WithCurrentSystemInfo;
use procfs::process::Process;
use serde::Serialize;
use store::engine::Stats;

use crate::agents::seen::AgentState;
use crate::http::slow::{SlowRequest, SlowRequests};
use crate::logging::{LogLine, recent};
use crate::service::Service;
use late::Late;

/// A rate is that of at least so many seconds.
const RATE_SECONDS_MIN: f64 = 1.0;
/// A file system with less room than this part of it is a problem.
const DISK_FREE_MIN: f64 = 0.05;
/// An agent that is away for longer is a problem: it tries to connect every 10 s.
const AGENT_AWAY_SECONDS: i64 = 60;
/// Log lines that are answered.
const LINES: usize = 20;

/// What the answers remember from one to the next.
pub struct StatusWatch {
    service: Arc<Service>,
    /// The directory of the store.
    store: Option<PathBuf>,
    started: i64,
    rate: Mutex<Rate>,
    late: Late,
    /// HTTP requests that took long.
    pub slow: Arc<SlowRequests>,
}

struct Rate {
    at: Instant,
    received: u64,
    per_second: f64,
}

/// How the daemon is doing; `openapi.json` says what each member is.
#[derive(Debug, Serialize)]
pub struct Status {
    /// The daemon's version.
    pub version: &'static str,
    /// When it started, in seconds since the epoch.
    pub started: i64,
    /// The time of this answer.
    pub now: i64,
    /// RRDs in the store.
    pub rrds: u64,
    /// Updates since the start.
    pub updates: Updates,
    /// The store on disk.
    pub store: Disk,
    /// Memory.
    pub memory: Memory,
    /// Requests of clients of rrdcached's protocol that were not done, by reason.
    pub dropped: Vec<Dropped>,
    /// HTTP requests that took long, newest first.
    pub slow: Vec<SlowRequest>,
    /// Agents that have connected since the start.
    pub agents: Vec<AgentState>,
    /// What collectors say of themselves.
    pub collectors: Vec<CollectorState>,
    /// RRDs that get no readings, the latest first.
    pub late: Vec<late::LateRrd>,
    /// How many there are.
    pub late_count: usize,
    /// The last warnings and errors.
    pub errors: Vec<LogLine>,
    /// What someone should look at, with what to do.
    pub problems: Vec<Problem>,
}

/// See [`Status::updates`].
#[derive(Debug, Serialize)]
pub struct Updates {
    /// Accepted.
    pub received: u64,
    /// Refused.
    pub refused: u64,
    /// Accepted in a second, lately.
    pub per_second: f64,
}

/// See [`Status::store`].
#[derive(Debug, Serialize)]
pub struct Disk {
    /// Whether no updates are taken.
    pub read_only: bool,
    /// Bytes of log that a restart reads.
    pub log_bytes: u64,
    /// Bytes of segments.
    pub segment_bytes: u64,
    /// Free bytes of the file system; `None` when unknown.
    pub disk_free: Option<u64>,
    /// All its bytes.
    pub disk_total: Option<u64>,
}

/// See [`Status::memory`].
#[derive(Debug, Serialize)]
pub struct Memory {
    /// Resident bytes of the daemon.
    pub rss: Option<u64>,
    /// Bytes that clients hold, of those they may.
    pub clients: u64,
    /// Bytes that clients may hold.
    pub clients_max: u64,
}

/// See [`Status::dropped`].
#[derive(Debug, Serialize)]
pub struct Dropped {
    /// Why; as in `/metrics`.
    pub reason: &'static str,
    /// How many since the start.
    pub count: u64,
}

/// See [`Status::collectors`].
#[derive(Debug, Serialize)]
pub struct CollectorState {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub numbers: Vec<Number>,
}

/// A number of a collector.
#[derive(Debug, Serialize)]
pub struct Number {
    /// Its name.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// Its value.
    pub value: u64,
    /// Whether it is a count since the start, and not a level.
    pub grows: bool,
}

/// See [`Status::problems`].
#[derive(Debug, Serialize)]
pub struct Problem {
    /// What is wrong.
    pub text: String,
    /// What to do.
    pub advice: &'static str,
}

impl StatusWatch {
    /// Of a daemon that starts now; `store` is the directory of its store.
    pub fn new(service: Arc<Service>, store: Option<PathBuf>) -> Self {
        let started = service.now();
        let rate = Mutex::new(Rate { at: Instant::now(), received: 0, per_second: 0.0 });
        StatusWatch { late: Late::default(), slow: Arc::default(), service, store, started, rate }
    }

    /// The daemon's numbers, as its own RRD keeps them; `None` when the system does not say some.
    pub fn numbers(&self) -> Option<Vec<Statistic>> {
        let Status { rrds, updates, store, memory, late_count, .. } = self.status();
        Some(vec![
            Statistic::count("updates", "values accepted", updates.received),
            Statistic::count("refused", "updates refused", updates.refused),
            Statistic::level("rrds", "RRDs in the store", rrds),
            Statistic::level("late", "RRDs that get no readings", late_count as u64),
            Statistic::level("segment_bytes", "bytes of segments", store.segment_bytes),
            Statistic::level("log_bytes", "bytes of log that a restart reads", store.log_bytes),
            Statistic::level("disk_free", "free bytes of the store's file system", store.disk_free?),
            Statistic::level("memory", "resident bytes of the daemon", memory.rss?),
            Statistic::level("client_memory", "bytes held by clients", memory.clients),
        ])
    }

    /// How the daemon is doing now.
    pub fn status(&self) -> Status {
        let service = &self.service;
        let (stats, now) = (service.engine.stats(), service.now());
        let late = self.late.of(service, now);
        let disk = self.disk(&stats);
        let mut errors = recent();
        errors.truncate(LINES);
        let agents = service.agents.all(now);
        let dropped = service.metrics.dropped_lines();
        let collectors = service.metrics.collectors.all();
        Status {
            version: env!("CARGO_PKG_VERSION"),
            started: self.started,
            now,
            rrds: stats.rrd_count,
            updates: Updates {
                received: stats.updates_received,
                refused: stats.updates_refused,
                per_second: self.rate(stats.updates_received),
            },
            problems: self.with_cluster(self.with_replication(
                self.with_forwarding(self.with_backup(problems(&disk, &late, &agents, now))),
            )),
            dropped: dropped.into_iter().map(|(reason, count)| Dropped { reason, count }).collect(),
            slow: self.slow.all(),
            agents,
            store: disk,
            memory: Memory {
                rss: Process::myself()
                    .and_then(|process| process.stat())
                    .ok()
                    .map(|stat| stat.rss_bytes().get()),
                clients: service.memory.used(),
                clients_max: service.memory.max(),
            },
            collectors: collectors.iter().map(|(name, numbers)| CollectorState::new(name, numbers)).collect(),
            late_count: late.count,
            late: late.first.clone(),
            errors,
        }
    }

    fn rate(&self, received: u64) -> f64 {
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = rate.at.elapsed().as_secs_f64();
        if seconds >= RATE_SECONDS_MIN {
            let per_second = received.saturating_sub(rate.received) as f64 / seconds;
            *rate = Rate { at: Instant::now(), received, per_second };
        }
        rate.per_second
    }

    fn disk(&self, stats: &Stats) -> Disk {
        let room = self.store.as_ref().and_then(|store| rustix::fs::statvfs(store).ok());
        Disk {
            read_only: stats.read_only != 0,
            log_bytes: stats.log_bytes_live,
            segment_bytes: stats.segment_bytes,
            disk_free: room.as_ref().map(|room| room.f_bavail.saturating_mul(room.f_frsize)),
            disk_total: room.map(|room| room.f_blocks.saturating_mul(room.f_frsize)),
        }
    }
}

impl Status {
    /// Seconds since the epoch as text, in this host's time.
    pub fn time_text(&self, time: &u64) -> String {
        let time = i64::try_from(*time).unwrap_or(i64::MAX);
        let text = localtime::strftime(std::ffi::OsStr::new("%F %T"), time).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl CollectorState {
    fn new(name: &'static str, numbers: &[Statistic]) -> Self {
        let number =
            |one: &Statistic| Number { name: one.name, help: one.help, value: one.value, grows: one.grows };
        CollectorState { name, numbers: numbers.iter().map(number).collect() }
    }
}

impl StatusWatch {
    /// Adds what is wrong with a second server.
    fn with_replication(&self, mut problems: Vec<Problem>) -> Vec<Problem> {
        let text = self.service.metrics.replication.get().and_then(|state| state.problem());
        let advice = "Reading works. roundel replication says more; see docs/replication.md.";
        problems.extend(text.map(|text| Problem { text, advice }));
        problems
    }

    /// Adds what is wrong with a cluster.
    fn with_cluster(&self, mut problems: Vec<Problem>) -> Vec<Problem> {
        let texts = self.service.node.get().map_or_else(Vec::new, |node| crate::cluster::problems(node));
        let advice = "roundel cluster status says who has what; see docs/cluster.md.";
        problems.extend(texts.into_iter().map(|text| Problem { text, advice }));
        let text = self.service.metrics.spool.get().and_then(|spool| spool.problem());
        let advice = "Updates are taken as long as the spool has room, and drained once the log answers; reads do not show them before. See docs/cluster.md.";
        problems.extend(text.map(|text| Problem { text, advice }));
        problems
    }

    /// Adds what is wrong with the backup.
    #[cfg(feature = "backup")]
    fn with_backup(&self, mut problems: Vec<Problem>) -> Vec<Problem> {
        let text = self.service.metrics.backing.get().and_then(|backing| backing.problem());
        problems.extend(text.map(|text| Problem {
            text,
            advice: "Updates are not affected. The backup is tried again and goes on by itself; see [backup] in roundel.toml.",
        }));
        let restoring = self.service.metrics.restoring.get();
        let text = restoring.and_then(|awaited| crate::restoring::problem(awaited));
        problems.extend(text.map(|text| Problem {
            text,
            advice: "Updates are not affected. Reads fetch what they need; the rest comes by itself. roundel_restore_left_bytes in /metrics says how much.",
        }));
        problems
    }

    /// Adds what is wrong with forwarding.
    fn with_forwarding(&self, mut problems: Vec<Problem>) -> Vec<Problem> {
        let targets = self.service.metrics.forwarding.get().into_iter().flatten();
        problems.extend(targets.filter_map(|target| target.problem()).map(|text| Problem {
            text,
            advice: "Updates are not affected. It is tried again and goes on by itself; see [[forward]] in roundel.toml.",
        }));
        problems
    }

    /// There is none in this build.
    #[cfg(not(feature = "backup"))]
    fn with_backup(&self, problems: Vec<Problem>) -> Vec<Problem> {
        problems
    }
}

fn problems(disk: &Disk, late: &late::LateRrds, agents: &[AgentState], now: i64) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut add = |text: String, advice| problems.push(Problem { text, advice });
    if disk.read_only {
        add(
            "The store takes no updates: the disk is full or failing.".to_string(),
            "Read the last errors below. When there is room again, updates are taken again by themselves.",
        );
    }
    if let (Some(free), Some(total)) = (disk.disk_free, disk.disk_total)
        && (free as f64) < total as f64 * DISK_FREE_MIN
    {
        let percent = 100.0 * free as f64 / total.max(1) as f64;
        add(
            format!("The disk of the store is nearly full: {percent:.1} % are free."),
            "Make room: the store stops taking updates when nothing is left, but loses nothing.",
        );
    }
    for agent in agents.iter().filter(|agent| !agent.connected && now - agent.heard > AGENT_AWAY_SECONDS) {
        add(
            format!("The agent {} has been away for {} s.", agent.name, now - agent.heard),
            "See whether it runs, and whether it reaches the address of [agents]. Its spool keeps what it reads.",
        );
    }
    if late.count > 0 {
        let text = match late.count {
            1 => "1 RRD gets no readings.".to_string(),
            count => format!("{count} RRDs get no readings."),
        };
        add(text, "See whether their collector or device is still there; they are listed under Late.");
    }
    problems
}
