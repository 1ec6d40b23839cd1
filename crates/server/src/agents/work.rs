//! Hands devices out to agents: each is polled by one of the agents that may, and by another one when that is gone.
//!
//! Of several agents, rendezvous hashing of the device's name chooses, so that few devices move when an agent comes or goes. A
//! device leaves an agent only once that has been gone for the time of `handover`, and goes back, or to a new agent, only once
//! that has been there as long: an agent that comes and goes moves nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use args::pattern;
use collect::snmp::profile::is_file;
use collect::snmp::source::SnmpSource;
use collect::statistics::Statistic;
use protocol::frames::agent::work::{
    AssignedDevice, GivenProfile, PROFILES_MAX, SETTINGS_BYTES_MAX, push_profile, push_work,
};
use tokio::sync::watch;
use xxhash_rust::xxh3::xxh3_64;

use super::assignments::{Assignments, AssignmentsError};
use crate::collectors::snmp::config::HandedOut;

/// What begins a pattern of tags.
const TAG: &str = "tag:";

/// What is handed out.
#[derive(Clone, Debug)]
pub struct WorkSettings {
    /// The devices.
    pub devices: HandedOut,
    /// How long an agent is gone before its devices go to others.
    pub handover: Duration,
    /// The file with the assignments.
    pub file: PathBuf,
}

/// Gives work to the agents that are connected.
#[derive(Debug)]
pub struct Dispatcher {
    handover: Duration,
    file: PathBuf,
    state: Mutex<State>,
    /// Counts changes of assignments.
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    devices: BTreeMap<String, Device>,
    /// The texts of profiles that devices name.
    profiles: BTreeMap<String, Arc<str>>,
    workers: HashMap<String, Worker>,
    /// When agents left that were there before, and when the store began to wait for those of its file.
    gone: HashMap<String, Instant>,
    assignments: Arc<Assignments>,
    /// When it is decided again, unless agents come or go before that.
    due: Option<Instant>,
    sessions: u64,
    moves: u64,
    unassigned: usize,
    is_failing: bool,
}

/// A device that is handed out.
#[derive(Debug)]
struct Device {
    patterns: Vec<String>,
    /// Profiles that an agent must be given with it.
    profiles: Vec<String>,
    settings: Vec<u8>,
}

/// An agent that is connected and takes work.
#[derive(Debug)]
struct Worker {
    session: u64,
    tags: Vec<String>,
    /// It can be given profiles.
    takes_profiles: bool,
    since: Instant,
}

/// The work of one session; dropped, its agent is gone.
#[derive(Debug)]
pub struct Seat {
    dispatcher: Arc<Dispatcher>,
    agent: String,
    session: u64,
    changed: watch::Receiver<u64>,
    /// The hash of what was said last.
    said: Option<u64>,
}

/// Microseconds since 1970.
fn now_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}

/// Whether an agent is one of those that a pattern means.
fn is_meant(text: &str, agent: &str, tags: &[String]) -> bool {
    let matches = |text: &str, name: &str| pattern::matches(text.as_bytes(), name.as_bytes());
    match text.strip_prefix(TAG) {
        Some(tag) => tags.iter().any(|name| matches(tag, name)),
        None => matches(text, agent),
    }
}

/// What an agent scores for a device: the highest one gets it.
fn score(device: &str, agent: &str) -> u64 {
    xxh3_64(format!("{agent}\n{device}").as_bytes())
}

impl Device {
    fn may_go_to(&self, agent: &str, worker: &Worker) -> bool {
        self.is_meant_for(agent, &worker.tags) && (worker.takes_profiles || self.profiles.is_empty())
    }

    fn is_meant_for(&self, agent: &str, tags: &[String]) -> bool {
        self.patterns.iter().any(|text| is_meant(text, agent, tags))
    }

    /// The same of an agent that is gone, whose tags are not known.
    fn may_stay_with(&self, agent: &str) -> bool {
        self.patterns.iter().any(|text| text.starts_with(TAG) || is_meant(text, agent, &[]))
    }
}

impl State {
    /// The agent that is to have a device, and when this may change.
    fn choose(&self, name: &str, device: &Device, now: Instant, handover: Duration) -> Option<String> {
        let can = |(agent, worker): &(&String, &Worker)| device.may_go_to(agent, worker);
        let best = |settled: bool| {
            let is_settled = |worker: &Worker| now.duration_since(worker.since) >= handover;
            let fit = self.workers.iter().filter(can).filter(|(_, worker)| !settled || is_settled(worker));
            fit.map(|(agent, _)| (score(name, agent), agent)).max()
        };
        let any = || best(true).or_else(|| best(false)).map(|(_, agent)| agent.clone());
        let Some((_, current)) = self.assignments.of(name) else { return any() };
        match self.workers.get_key_value(current) {
            Some(connected) if can(&connected) => {
                let rival = best(true).filter(|rival| *rival > (score(name, current), connected.0));
                Some(rival.map_or_else(|| current.to_string(), |(_, agent)| agent.clone()))
            }
            Some(_) => any(),
            None if !device.may_stay_with(current) => any(),
            None => {
                let gone = self.gone.get(current).is_none_or(|since| now.duration_since(*since) >= handover);
                Some(any().filter(|_| gone).unwrap_or_else(|| current.to_string()))
            }
        }
    }

    /// Says that an agent of an earlier release cannot have all devices that are meant for it.
    fn complain_of_profiles(&self, agent: &str) {
        let Some(worker) = self.workers.get(agent).filter(|worker| !worker.takes_profiles) else { return };
        let meant = |(_, device): &(_, &Device)| {
            !device.profiles.is_empty() && device.is_meant_for(agent, &worker.tags)
        };
        let devices = self.devices.iter().filter(meant).count();
        if devices > 0 {
            tracing::warn!(
                agent,
                devices,
                "an agent of an earlier release polls no devices whose profiles are files: update it"
            );
        }
    }

    /// When an agent will have been gone, or there, for long enough.
    fn next(&self, now: Instant, handover: Duration) -> Option<Instant> {
        let since = self.gone.values().chain(self.workers.values().map(|worker| &worker.since));
        since.map(|since| *since + handover).filter(|due| *due > now).min()
    }
}

impl Dispatcher {
    /// Reads the assignments.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn open(settings: WorkSettings) -> Result<Arc<Self>, String> {
        let WorkSettings { devices: HandedOut { sources, profiles }, handover, file } = settings;
        let assignments = load(&file)?;
        let started = Instant::now();
        let agents = assignments.devices().filter_map(|device| assignments.of(device));
        let gone = agents.map(|(_, agent)| (agent.to_string(), started)).collect();
        let state = State {
            devices: devices_of(sources, &profiles)?,
            profiles,
            workers: HashMap::new(),
            gone,
            assignments: Arc::new(assignments),
            due: Some(started),
            sessions: 0,
            moves: 0,
            unassigned: 0,
            is_failing: false,
        };
        let changed = watch::Sender::new(0);
        Ok(Arc::new(Dispatcher { handover, file, state: Mutex::new(state), changed }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An agent takes work, and profiles with it, unless it is of an earlier release.
    pub fn join(self: &Arc<Self>, agent: &[u8], tags: Vec<String>, takes_profiles: bool) -> Seat {
        let agent = String::from_utf8_lossy(agent).into_owned();
        let mut state = self.lock();
        state.sessions += 1;
        let session = state.sessions;
        // A newer session of the same agent goes on as the older one.
        let since = state.workers.get(&agent).map_or_else(Instant::now, |worker| worker.since);
        state.workers.insert(agent.clone(), Worker { session, tags, takes_profiles, since });
        state.gone.remove(&agent);
        state.complain_of_profiles(&agent);
        self.decide(&mut state);
        drop(state);
        let changed = self.changed.subscribe();
        Seat { dispatcher: Arc::clone(self), agent, session, changed, said: None }
    }

    /// Decides again, if it is time.
    pub fn tick(&self) {
        let mut state = self.lock();
        if state.due.is_some_and(|due| due <= Instant::now()) {
            self.decide(&mut state);
        }
    }

    /// Hands out these devices instead of those so far. Agents that are connected are told at once.
    ///
    /// # Errors
    /// A text for the operator, when it cannot be written who polls what by then: nothing has changed.
    pub fn replace(&self, new: HandedOut) -> Result<(), String> {
        let HandedOut { sources, profiles } = new;
        let devices = devices_of(sources, &profiles)?;
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.devices, devices);
        if let Err(error) = self.try_to_decide(&mut state) {
            state.devices = before;
            let file = self.file.display();
            return Err(format!("cannot write which agent polls what to \"{file}\": {error}"));
        }
        state.profiles = profiles;
        drop(state);
        // Of devices that stay with their agent, the settings may be others.
        self.changed.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Decides which agent has which device. What cannot be made durable is not done, and tried again.
    fn decide(&self, state: &mut State) {
        match self.try_to_decide(state) {
            Ok(()) => state.is_failing = false,
            Err(error) => {
                if !std::mem::replace(&mut state.is_failing, true) {
                    tracing::error!(%error, file = %self.file.display(), "cannot write which agent polls what: nothing moves");
                }
                state.due = Some(Instant::now() + Duration::from_secs(1));
            }
        }
    }

    /// The same; what cannot be made durable is not done.
    fn try_to_decide(&self, state: &mut State) -> io::Result<()> {
        let now = Instant::now();
        let mut moves: BTreeMap<(String, String), usize> = BTreeMap::new();
        let mut assignments = Assignments::clone(&state.assignments);
        let mut unassigned = Vec::new();
        for (name, device) in &state.devices {
            let chosen = state.choose(name, device, now, self.handover);
            let current = state.assignments.of(name).map(|(_, agent)| agent);
            if chosen.as_deref() != current {
                let pair = (current.unwrap_or_default(), chosen.as_deref().unwrap_or_default());
                *moves.entry((pair.0.to_string(), pair.1.to_string())).or_default() += 1;
                match &chosen {
                    Some(agent) => assignments.assign(name, agent, now_micros()),
                    None => assignments.end(name, now_micros()),
                }
            }
            if chosen.is_none() {
                unassigned.push(name.as_str());
            }
        }
        for name in state.assignments.devices().filter(|name| !state.devices.contains_key(*name)) {
            assignments.end(name, now_micros());
        }
        if let (Some(first), true) = (unassigned.first(), unassigned.len() > state.unassigned) {
            let devices = unassigned.len();
            tracing::warn!(devices, first, "no agent is connected that may poll these devices");
        }
        state.unassigned = unassigned.len();
        state.gone.retain(|_, since| now.duration_since(*since) < self.handover);
        state.due = state.next(now, self.handover);
        if assignments == *state.assignments {
            return Ok(());
        }
        assignments.forget_old();
        assignments.save(&self.file)?;
        for ((from, to), devices) in &moves {
            tracing::info!(from, to, devices, "devices go to another agent");
        }
        state.moves += moves.values().sum::<usize>() as u64;
        state.assignments = Arc::new(assignments);
        self.changed.send_modify(|count| *count += 1);
        Ok(())
    }

    /// The assignments as they are now.
    pub fn assignments(&self) -> Arc<Assignments> {
        Arc::clone(&self.lock().assignments)
    }

    /// The numbers for `/metrics`.
    pub fn numbers(&self) -> Vec<Statistic> {
        let state = self.lock();
        vec![
            Statistic::level("devices", "Devices handed out to agents", state.devices.len() as u64),
            Statistic::level(
                "unassigned",
                "Of these, devices that no agent may poll that is connected",
                state.unassigned as u64,
            ),
            Statistic::count("moves", "Devices given to an agent", state.moves),
        ]
    }
}

/// Devices by their names, with the settings that agents get.
fn devices_of(
    sources: Vec<SnmpSource>,
    profiles: &BTreeMap<String, Arc<str>>,
) -> Result<BTreeMap<String, Device>, String> {
    if profiles.len() > PROFILES_MAX {
        return Err(format!(
            "agents: {} files of profiles, and {PROFILES_MAX} are handed out",
            profiles.len()
        ));
    }
    let device = |source: SnmpSource| {
        let name = source.name().to_string();
        let settings = serde_json::to_vec(&source).map_err(|error| format!("device {name}: {error}"))?;
        if settings.len() > SETTINGS_BYTES_MAX {
            return Err(format!("device {name}: more than {SETTINGS_BYTES_MAX} bytes are not handed out"));
        }
        let profiles = source.profiles.into_iter().filter(|name| is_file(name)).collect();
        Ok((name, Device { patterns: source.agents, profiles, settings }))
    };
    sources.into_iter().map(device).collect()
}

/// Reads the file. A damaged one is put aside: what it said is as good as lost.
fn load(file: &PathBuf) -> Result<Assignments, String> {
    let cannot =
        |cause: String| format!("cannot read which agent polls what from \"{}\": {cause}", file.display());
    match Assignments::load(file) {
        Ok(Some(assignments)) => Ok(assignments),
        Ok(None) => Ok(Assignments::new(now_micros())),
        Err(AssignmentsError::Io(error)) => Err(cannot(error.to_string())),
        Err(AssignmentsError::Newer) => Err(cannot("it was written by a newer version".to_string())),
        Err(AssignmentsError::Damaged(line)) => {
            let aside = file.with_file_name("damaged-assignments");
            std::fs::rename(file, &aside).map_err(|error| cannot(error.to_string()))?;
            tracing::error!(
                file = %file.display(), line, aside = %aside.display(),
                "which agent polls what is damaged and was put aside: all devices are handed out again"
            );
            Ok(Assignments::new(now_micros()))
        }
    }
}

impl Seat {
    /// Waits until the work may have changed.
    pub async fn changed(&mut self) {
        // The sender is in the dispatcher.
        self.changed.changed().await.ok();
    }

    /// Appends the agent's work, if it is not what was said last.
    pub fn push_changes(&mut self, out: &mut Vec<u8>) {
        self.changed.mark_unchanged();
        let state = self.dispatcher.lock();
        let start = out.len();
        let mut profiles = BTreeSet::new();
        let mut device = |(name, device): (&String, &'_ Device)| {
            let (assignment, _) = state.assignments.of(name).filter(|(_, agent)| *agent == self.agent)?;
            profiles.extend(device.profiles.iter().cloned());
            Some((assignment, device.settings.clone()))
        };
        let devices: Vec<(u64, Vec<u8>)> = state.devices.iter().filter_map(&mut device).collect();
        for (name, text) in profiles.iter().filter_map(|name| state.profiles.get_key_value(name)) {
            push_profile(out, &GivenProfile { name, text });
        }
        drop(state);
        let devices = devices.iter().map(|(assignment, settings)| (*assignment, settings.as_slice()));
        push_work(out, devices.map(|(assignment, settings)| AssignedDevice { assignment, settings }));
        let hash = xxh3_64(&out[start..]);
        if self.said.replace(hash) == Some(hash) {
            out.truncate(start);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.dispatcher.lock();
        if state.workers.get(&self.agent).is_some_and(|worker| worker.session == self.session) {
            let now = Instant::now();
            state.workers.remove(&self.agent);
            state.gone.insert(self.agent.clone(), now);
            let next = state.next(now, self.dispatcher.handover);
            state.due = [state.due, next].into_iter().flatten().min();
        }
    }
}

#[cfg(test)]
mod tests;
