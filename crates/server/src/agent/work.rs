//! The devices that the store has given to this agent, beside those of its own configuration.
//!
//! They are kept in the spool's directory, so that the agent goes on polling without the store, also after its own restart.
//! The file holds communities and passwords: only its owner may read it, and none of them is logged.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use collect::snmp::profile::{ProfileFile, is_file};
use collect::snmp::source::SnmpSource;
use protocol::frames::agent::work::{DEVICES_MAX, GivenProfile, PROFILES_MAX, WorkPart};

use crate::collectors::snmp::config::{HandedOut, SnmpSettings};
use crate::collectors::snmp::devices::{self, DeviceReceiver, DeviceSender};
use crate::durable;

/// The file, in the spool's directory.
const FILE: &str = "work";
/// Its first line. Then come a line per profile, its name and its text as JSON, a line per device, its assignment and its settings as
/// JSON, and the checksum of all before.
const FIRST_LINE: &str = "roundel-work 2";
/// Before, there were no profiles.
const FIRST_LINE_BEFORE: &str = "roundel-work 1";
/// What begins the line of a profile.
const PROFILE: &str = "profile ";

/// What this agent polls.
#[derive(Debug)]
pub struct AgentWork {
    file: PathBuf,
    parts: Mutex<Parts>,
    /// Both.
    all: DeviceSender,
}

/// Whose devices they are.
#[derive(Debug)]
struct Parts {
    /// Of the agent's configuration.
    own: SnmpSettings,
    given: HandedOut,
}

/// Work that is being received.
#[derive(Debug, Default)]
pub struct IncomingWork(HandedOut);

impl IncomingWork {
    /// Takes a profile, for devices that follow.
    ///
    /// # Errors
    /// When there are too many.
    pub fn take_profile(&mut self, profile: &GivenProfile<'_>) -> io::Result<()> {
        if self.0.profiles.len() >= PROFILES_MAX {
            return Err(io::Error::other(format!("the store gives more than {PROFILES_MAX} profiles")));
        }
        self.0.profiles.insert(profile.name.to_string(), profile.text.into());
        Ok(())
    }
}

impl AgentWork {
    /// Reads what the store gave last. A file that is damaged is as good as none, until the store says what there is to do.
    ///
    /// # Errors
    /// A text for the operator, when the agent's own devices are none for an agent.
    pub fn open(directory: &Path, own: SnmpSettings) -> Result<(Self, DeviceReceiver), String> {
        check_own(&own)?;
        let file = directory.join(FILE);
        let given = read(&file).unwrap_or_else(|error| {
            tracing::error!(%error, file = %file.display(), "cannot read which devices the store gave to this agent");
            HandedOut::default()
        });
        let (all, receiver) = devices::channel(merged(&own, &given));
        Ok((AgentWork { file, parts: Mutex::new(Parts { own, given }), all }, receiver))
    }

    /// Polls these devices of the agent's own configuration instead of those so far.
    ///
    /// # Errors
    /// A text for the operator; then nothing has changed.
    pub fn replace_own(&self, own: SnmpSettings) -> Result<(), String> {
        check_own(&own)?;
        let mut parts = self.lock();
        parts.own = own;
        self.all.send(merged(&parts.own, &parts.given));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a part of what the store gives.
    ///
    /// # Errors
    /// When there is too much of it.
    pub fn take(&self, part: &WorkPart<'_>, incoming: &mut IncomingWork) -> io::Result<()> {
        if incoming.0.sources.len() + part.devices.len() > DEVICES_MAX {
            return Err(io::Error::other(format!("the store gives more than {DEVICES_MAX} devices")));
        }
        for device in &part.devices {
            match serde_json::from_slice::<SnmpSource>(device.settings) {
                Ok(source) => incoming.0.sources.push(SnmpSource { assignment: device.assignment, ..source }),
                // The text of the error may hold a password.
                Err(_) => tracing::error!(
                    assignment = device.assignment,
                    "the settings of a device are none that this version knows: it is not polled"
                ),
            }
        }
        if !part.has_more {
            self.put(std::mem::take(&mut incoming.0));
        }
        Ok(())
    }

    /// Polls these devices of the store's from now on.
    fn put(&self, given: HandedOut) {
        let mut parts = self.lock();
        if parts.given == given {
            return;
        }
        if let Err(error) =
            text_of(&given).and_then(|text| durable::replace_private(&self.file, text.as_bytes()))
        {
            tracing::error!(%error, file = %self.file.display(), "cannot keep which devices the store gives to this agent");
        }
        tracing::info!(devices = given.sources.len(), "the store has given other devices to this agent");
        self.all.send(merged(&parts.own, &given));
        parts.given = given;
    }
}

/// What is wrong with an agent's own devices.
fn check_own(own: &SnmpSettings) -> Result<(), String> {
    match own.sources.iter().find(|source| !source.agents.is_empty()) {
        None => Ok(()),
        Some(source) => Err(format!(
            "[[snmp]] \"{}\": agents is for the store's configuration; leave it out here",
            source.name()
        )),
    }
}

/// The agent's own devices, and what is given to it; of one name, its own.
fn merged(own: &SnmpSettings, given: &HandedOut) -> SnmpSettings {
    let mut all = own.clone();
    for (name, text) in &given.profiles {
        match ProfileFile::parse(text).and_then(|file| file.profile(&HashMap::new())) {
            Ok(profile) => all.profiles.add(&of_store(name), profile),
            Err(error) => tracing::error!(name, error, "cannot use a profile that the store gives"),
        }
    }
    let names: HashSet<&str> = own.sources.iter().map(SnmpSource::name).collect();
    for source in &given.sources {
        if names.contains(source.name()) {
            let device = source.name();
            tracing::error!(
                device,
                "the store gives a device that the agent's configuration has: its own counts"
            );
        } else {
            let profile = |name: &String| if is_file(name) { of_store(name) } else { name.clone() };
            let profiles = source.profiles.iter().map(profile).collect();
            all.sources.push(SnmpSource { profiles, ..source.clone() });
        }
    }
    all
}

/// What a file on the store's machine is called here, where the same name may be that of another file.
fn of_store(name: &str) -> String {
    format!("{name} of the store")
}

fn text_of(given: &HandedOut) -> io::Result<String> {
    let mut text = format!("{FIRST_LINE}\n");
    for profile in &given.profiles {
        text.push_str(&format!("{PROFILE}{}\n", serde_json::to_string(&(profile.0, &**profile.1))?));
    }
    for source in &given.sources {
        text.push_str(&format!("{} {}\n", source.assignment, serde_json::to_string(source)?));
    }
    let sum = crc32c::crc32c(text.as_bytes());
    Ok(text + &format!("crc32c {sum:08x}\n"))
}

fn read(file: &Path) -> io::Result<HandedOut> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HandedOut::default()),
        text => text?,
    };
    of_text(&text).ok_or_else(|| io::Error::other("it is damaged, or of another version"))
}

fn of_text(text: &str) -> Option<HandedOut> {
    let end = text.trim_end().rfind('\n')? + 1;
    let sum = format!("crc32c {:08x}\n", crc32c::crc32c(&text.as_bytes()[..end]));
    let mut lines = text[..end].lines();
    if text[end..] != sum || !lines.next().is_some_and(|line| [FIRST_LINE, FIRST_LINE_BEFORE].contains(&line))
    {
        return None;
    }
    let mut given = HandedOut::default();
    for line in lines {
        if let Some(profile) = line.strip_prefix(PROFILE) {
            let (name, text): (String, String) = serde_json::from_str(profile).ok()?;
            given.profiles.insert(name, text.into());
            continue;
        }
        let (assignment, settings) = line.split_once(' ')?;
        let source = serde_json::from_str(settings).ok()?;
        given.sources.push(SnmpSource { assignment: assignment.parse().ok()?, ..source });
    }
    Some(given)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use protocol::frames::agent::work::AssignedDevice;

    use super::*;

    fn names(work: &AgentWork) -> Vec<(String, u64)> {
        let all = work.all.current();
        all.sources.iter().map(|source| (source.name().to_string(), source.assignment)).collect()
    }

    #[test]
    fn profiles_are_kept_with_their_devices() {
        let directory = tempfile::tempdir().unwrap();
        let text = |oid: u32| {
            format!(
                "[[table]]\nname = 't'\npath = '{{device}}.rrd'\n\
                 ds = [{{ name = 'a', objects = ['1.3.6.{oid}'], kind = 'gauge' }}]"
            )
        };
        // The agent has a file of the same name with something else in it.
        let mut own = SnmpSettings::default();
        own.profiles.add("/a.toml", ProfileFile::parse(&text(1)).unwrap().profile(&HashMap::new()).unwrap());
        let with = |name: &str| SnmpSource { profiles: vec!["/a.toml".to_string()], ..SnmpSource::new(name) };
        own.sources.push(with("own"));
        let settings = serde_json::to_vec(&with("r")).unwrap();
        let give = |work: &AgentWork, text: &str| {
            let mut incoming = IncomingWork::default();
            incoming.take_profile(&GivenProfile { name: "/a.toml", text }).unwrap();
            let devices = vec![AssignedDevice { assignment: 5, settings: &settings }];
            work.take(&WorkPart { has_more: false, devices }, &mut incoming).unwrap();
        };
        let polled = |work: &AgentWork| {
            let all = work.all.current();
            let oid = |source: &SnmpSource| {
                let profile = all.profiles.find(&source.profiles[0]).unwrap();
                profile.tables[0].columns[0].oid.to_string()
            };
            all.sources.iter().map(oid).collect::<Vec<_>>().join(" ")
        };
        let (work, mut watching) = AgentWork::open(directory.path(), own.clone()).unwrap();
        give(&work, &text(2));
        assert_eq!(polled(&work), ".1.3.6.1 .1.3.6.2");
        watching.take();
        give(&work, &text(2));
        assert!(!watching.has_changed(), "it is the same");
        give(&work, &text(3));
        assert!(watching.has_changed());
        let (again, _receiver) = AgentWork::open(directory.path(), own).unwrap();
        assert_eq!(polled(&again), ".1.3.6.1 .1.3.6.3");
        let mut many = IncomingWork::default();
        let mut add = |nth: usize| many.take_profile(&GivenProfile { name: &nth.to_string(), text: "" });
        assert!((0..PROFILES_MAX).all(|nth| add(nth).is_ok()) && add(PROFILES_MAX).is_err());
    }

    #[test]
    fn what_is_given_is_kept_for_the_next_start() {
        let directory = tempfile::tempdir().unwrap();
        let own = || SnmpSettings { sources: vec![SnmpSource::new("own")], ..Default::default() };
        let open = |own| AgentWork::open(directory.path(), own).unwrap();
        let (work, mut watching) = open(own());
        assert_eq!(names(&work), [("own".to_string(), 0)]);
        let given = ["r1", "own", "r2"].map(|name| {
            let source = SnmpSource { community: "se cret".to_string(), ..SnmpSource::new(name) };
            serde_json::to_vec(&source).unwrap()
        });
        let devices: Vec<AssignedDevice<'_>> = (5..)
            .zip(given.iter().map(Vec::as_slice).chain([&b"{\"devise\": 3}"[..]]))
            .map(|(assignment, settings)| AssignedDevice { assignment, settings })
            .collect();
        let mut incoming = IncomingWork::default();
        work.take(&WorkPart { has_more: true, devices: devices[..1].to_vec() }, &mut incoming).unwrap();
        assert!(!watching.has_changed(), "that is only a part");
        work.take(&WorkPart { has_more: false, devices: devices[1..].to_vec() }, &mut incoming).unwrap();
        assert!(watching.has_changed());
        watching.take();
        let want = [("own", 0), ("r1", 5), ("r2", 7)].map(|(name, number)| (name.to_string(), number));
        assert_eq!(names(&work), want);
        work.take(&WorkPart { has_more: false, devices: devices.clone() }, &mut incoming).unwrap();
        assert!(!watching.has_changed(), "it is the same");
        let file = directory.path().join(FILE);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let (again, _receiver) = open(own());
        assert_eq!(names(&again), want);
        assert_eq!(again.all.current().sources, work.all.current().sources);
        again.replace_own(SnmpSettings::default()).unwrap();
        let want = [("r1", 5), ("own", 6), ("r2", 7)].map(|(name, number)| (name.to_string(), number));
        assert_eq!(names(&again), want);
        let bad = SnmpSource { agents: vec!["a".to_string()], ..SnmpSource::new("r9") };
        let bad = SnmpSettings { sources: vec![bad], ..Default::default() };
        assert!(again.replace_own(bad).unwrap_err().contains("r9"));
        assert_eq!(names(&again), want, "nothing has changed");
        let good = fs::read(&file).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&file, &bad).unwrap();
            assert_eq!(names(&open(SnmpSettings::default()).0), [], "byte {at}");
        }
    }
}
