//! Polls what mrtg.cfg says, in MRTG's place: programs in back-quotes, thresholds, reload.

mod actions;
pub mod files;
mod programs;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use collect::complaints::Complaints;
use collect::mrtg::plan::{Answer, MrtgPlan, PlannedTarget};
use collect::mrtg::program;
use collect::mrtg::report::Report;
use collect::mrtg::term::Term;
use collect::mrtg::threshold::Broken;
use collect::reading::Readings;
use rrd::definition::DsKind;
use store::engine::RrdStatus;
use store::name::RrdName;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use self::files::{LoadError, LoadedConfig};
use super::recorder::Recorder;
use crate::service::{Service, stopped};

/// How often the files are looked at.
const LOOK_SECONDS: i64 = 10;

/// Programs that run at once. MRTG runs one after the other; a program mostly waits, and a machine has memory for so many.
const PROGRAMS_AT_ONCE: usize = 32;

/// How long a program may take, unless the configuration says otherwise. Guessed: MRTG has no limit.
pub const PROGRAM_TIMEOUT: Duration = Duration::from_secs(30);

/// A `[[mrtg]]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MrtgSettings {
    /// mrtg.cfg.
    pub config: PathBuf,
    /// Whether programs are run: those in back-quotes and those of thresholds.
    pub programs: bool,
    /// How long a program may take.
    pub program_timeout: Duration,
}

/// Polls until `stop` becomes true.
///
/// # Errors
/// When SIGHUP cannot be received. A configuration that cannot be used is logged, and read again when it changes.
pub async fn run(
    service: Arc<Service>,
    settings: MrtgSettings,
    base: PathBuf,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut poller = Poller::new(service, settings, base);
    poller.load();
    let cancelled = Arc::clone(&poller.cancelled);
    loop {
        let wait = poller.seconds_to_wait();
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return Ok(()),
            _ = hang_up.recv() => poller.load(),
            () = tokio::time::sleep(wait) => {
                tokio::select! {
                    biased;
                    () = stopped(&mut stop) => {
                        // Programs are killed, so that the runtime can end.
                        cancelled.store(true, Ordering::Relaxed);
                        return Ok(());
                    }
                    () = poller.wake() => {}
                }
            }
        }
    }
}

struct Poller {
    service: Arc<Service>,
    settings: MrtgSettings,
    base: PathBuf,
    loaded: Option<LoadedConfig>,
    /// The files as they were when they could not be used.
    failed: Option<LoadError>,
    recorder: Recorder,
    complaints: Complaints,
    broken: Broken,
    /// When the next round begins, in seconds since the epoch.
    due: i64,
    /// Targets whose RRD is brought up to the configuration in the next round.
    untuned: Vec<usize>,
    cancelled: Arc<AtomicBool>,
}

impl Poller {
    fn new(service: Arc<Service>, settings: MrtgSettings, base: PathBuf) -> Self {
        let recorder = Recorder::new(Arc::clone(&service), "mrtg");
        Poller {
            service,
            settings,
            base,
            loaded: None,
            failed: None,
            recorder,
            complaints: Complaints::default(),
            broken: Broken::new(),
            due: i64::MIN,
            untuned: Vec::new(),
            cancelled: Arc::default(),
        }
    }

    fn seconds_to_wait(&self) -> Duration {
        let now = self.service.now();
        let due = if self.loaded.is_some() { self.due } else { i64::MAX };
        Duration::from_secs((due.saturating_sub(now)).clamp(0, LOOK_SECONDS) as u64)
    }

    /// Reads the configuration. One that cannot be used changes nothing.
    fn load(&mut self) {
        let subject = self.settings.config.display().to_string();
        let loaded = tokio::task::block_in_place(|| LoadedConfig::read(&self.settings.config, &self.base));
        match loaded {
            Ok(loaded) => {
                self.failed = None;
                self.complaints.resolve(&subject);
                self.take(loaded);
            }
            Err(error) => {
                let consequence =
                    if self.loaded.is_some() { "; what was read before stays in force" } else { "" };
                self.complaints.raise(&subject, format!("{}{consequence}", error.text));
                self.failed = Some(error);
            }
        }
        self.tell();
    }

    /// Puts a configuration in force: only RRDs whose definition it changes are tuned.
    fn take(&mut self, loaded: LoadedConfig) {
        let before: HashMap<String, Vec<String>> = match &self.loaded {
            None => HashMap::new(),
            Some(old) => {
                let targets = old.plan.targets.iter();
                targets.map(|target| (target.name.clone(), target.tune_args.clone())).collect()
            }
        };
        let plan = &loaded.plan;
        let is_new = |index: &usize| {
            let target = &plan.targets[*index];
            before.get(&target.name) != Some(&target.tune_args)
        };
        self.untuned = (0..plan.targets.len()).filter(is_new).collect();
        let same_interval = self.loaded.as_ref().is_some_and(|old| old.plan.interval == plan.interval);
        if !same_interval {
            // The first round at once, as in MRTG.
            self.due = self.service.now();
        }
        let without_effect = Report::new(&loaded.config, plan).not_honoured.len();
        tracing::info!(
            config = %self.settings.config.display(),
            targets = plan.targets.len(),
            new_or_changed = self.untuned.len(),
            without_effect,
            "polling in MRTG's place; \"roundel mrtg --check FILE\" lists the lines without effect"
        );
        self.recorder = Recorder::new(Arc::clone(&self.service), "mrtg");
        self.loaded = Some(loaded);
    }

    /// Reads the files again if they have changed, and polls if it is time.
    async fn wake(&mut self) {
        let has_changed = match &self.failed {
            Some(error) => error.has_changed(),
            None => self.loaded.as_ref().is_none_or(LoadedConfig::has_changed),
        };
        if has_changed {
            self.load();
        }
        let now = self.service.now();
        let Some(loaded) = self.loaded.take() else { return };
        if now >= self.due {
            // By the clock from the second round on, so that rounds neither drift nor depend on the start.
            let step = loaded.plan.interval.step().max(1) as i64;
            self.due = (now.div_euclid(step) + 1) * step;
            self.round(&loaded, now).await;
            self.tell();
        }
        self.loaded = Some(loaded);
    }

    async fn round(&mut self, loaded: &LoadedConfig, now: i64) {
        let plan = &loaded.plan;
        self.tune(plan);
        let answers = self.ask(plan, now).await;
        let mut readings = Readings::default();
        for target in &plan.targets {
            if self.can_read(plan, target) && self.is_young_enough(plan, target, now) {
                plan.push_reading(target, &answers, now, &mut readings);
            }
        }
        self.recorder.record(&plan.inventory, &readings).await;
        self.check_thresholds(loaded, now).await;
    }

    /// The answers of all terms; those that are not read are unknown.
    async fn ask(&mut self, plan: &MrtgPlan, now: i64) -> Vec<Answer> {
        let unknown = Answer { time: now, ..Answer::default() };
        let mut answers = vec![unknown; plan.terms.len()];
        let places = Arc::new(Semaphore::new(PROGRAMS_AT_ONCE));
        let limit = self.settings.program_timeout.min(Duration::from_secs(plan.interval.step().max(1)));
        let mut running = JoinSet::new();
        for (id, (_, term)) in plan.terms.iter().enumerate() {
            let Term::Program(command) = term else { continue };
            if !self.settings.programs {
                continue;
            }
            let (places, command, cancelled) =
                (Arc::clone(&places), command.clone(), Arc::clone(&self.cancelled));
            let service = Arc::clone(&self.service);
            running.spawn(async move {
                let _place = places.acquire().await;
                let run = move || programs::run(&command, limit, &cancelled);
                let output = tokio::task::spawn_blocking(run).await;
                (id, service.now(), output.unwrap_or_else(|_| Err("could not be run".to_string())))
            });
        }
        while let Some(ended) = running.join_next().await {
            let Ok((id, time, output)) = ended else { continue };
            let subject = &plan.terms[id].0;
            answers[id].time = time;
            match output.map(|bytes| program::read(&bytes)) {
                Ok(output) => {
                    match output.complaint {
                        Some(complaint) => self.complaints.raise(subject, complaint),
                        None => self.complaints.resolve(subject),
                    }
                    (answers[id].input, answers[id].output) = (output.input, output.output);
                }
                Err(cause) => self.complaints.raise(subject, cause),
            }
        }
        answers
    }

    /// Whether this daemon can read what the target reads. What cannot be understood is read: as unknown, like MRTG.
    fn can_read(&mut self, plan: &MrtgPlan, target: &PlannedTarget) -> bool {
        let terms = || target.terms.iter().map(|term| &plan.terms[*term].1);
        let cause = if terms().any(|term| matches!(term, Term::Snmp(_))) {
            Some("SNMP targets of mrtg.cfg are not polled yet")
        } else if !self.settings.programs && terms().any(|term| matches!(term, Term::Program(_))) {
            Some("programs are switched off (programs = false)")
        } else {
            None
        };
        let config = self.settings.config.display().to_string();
        if let Some(cause) = cause {
            self.complaints.raise(&format!("{config}: {cause}"), "some targets get no readings");
        }
        if let Err(cause) = &target.expression {
            let subject = format!("{}: target[{}]", target.place, target.name);
            self.complaints.raise(&subject, format!("its values are unknown: {cause}"));
        }
        cause.is_none()
    }

    fn status(&self, plan: &MrtgPlan, target: &PlannedTarget) -> Option<(RrdName, RrdStatus)> {
        let name = RrdName::new(plan.inventory.name(target.rrd)).ok()?;
        let status = tokio::task::block_in_place(|| self.service.engine.status(&name)).ok()?;
        Some((name, status))
    }

    /// `MaxAge`: an RRD whose last reading is older is not touched.
    fn is_young_enough(&mut self, plan: &MrtgPlan, target: &PlannedTarget, now: i64) -> bool {
        let Some(max_age) = plan.max_age else { return true };
        let Some((name, status)) = self.status(plan, target) else { return true };
        let unit = i64::from(status.definition.units_per_second.max(1));
        let age = now.saturating_sub(status.last_update.whole.div_euclid(unit));
        let subject = name.to_string();
        if status.is_updated && age > max_age as i64 {
            self.complaints
                .raise(&subject, format!("is older than MaxAge ({max_age} s) and gets no readings"));
            return false;
        }
        self.complaints.resolve(&subject);
        true
    }

    /// Brings RRDs that are there up to the configuration: types and maxima.
    fn tune(&mut self, plan: &MrtgPlan) {
        for index in std::mem::take(&mut self.untuned) {
            let target = &plan.targets[index];
            let Some((name, status)) = self.status(plan, target) else { continue };
            if is_tuned(&status, &target.tune_args) {
                continue;
            }
            let tuned = tokio::task::block_in_place(|| self.service.engine.tune(&name, &target.tune_args));
            match tuned {
                Ok(()) => tracing::info!(name = %name, "tuned to {}", target.tune_args.join(" ")),
                Err(error) => self.complaints.raise(&name.to_string(), format!("cannot be tuned: {error}")),
            }
        }
    }

    async fn check_thresholds(&mut self, loaded: &LoadedConfig, now: i64) {
        for target in &loaded.plan.targets {
            let Some(thresholds) = &target.thresholds else { continue };
            let name = loaded.plan.inventory.name(target.rrd);
            let step = loaded.plan.interval.step();
            let engine = &self.service.engine;
            let rates =
                tokio::task::block_in_place(|| actions::rates(&**engine, name, step, now, thresholds));
            for action in thresholds.decide(&rates, &mut self.broken) {
                tracing::info!(target_name = target.name, ?action, "a threshold");
                actions::act(action, loaded, &self.settings, &self.cancelled);
            }
        }
    }

    /// Logs what has become wrong or right since the last call.
    fn tell(&mut self) {
        for notice in self.complaints.take_notices() {
            let subject = notice.subject;
            if notice.is_over {
                tracing::info!(subject, "over: {}", notice.text);
            } else {
                tracing::warn!(subject, "{}", notice.text);
            }
        }
    }
}

/// Whether an RRD already has what `rrdtune` would give it.
fn is_tuned(status: &RrdStatus, args: &[String]) -> bool {
    args.chunks(2).all(|pair| {
        let [option, value] = pair else { return false };
        let Some((name, wanted)) = value.split_once(':') else { return false };
        let source = status.definition.ds.iter().find(|ds| ds.name == name);
        let Some(DsKind::Fed { ds_type, max, .. }) = source.map(|ds| &ds.kind) else { return false };
        match option.as_str() {
            "-a" => wanted.parse::<f64>().map_or(max.is_nan(), |wanted| wanted == *max),
            _ => format!("{ds_type:?}").eq_ignore_ascii_case(wanted),
        }
    })
}
