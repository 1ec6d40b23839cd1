//! The devices that the store has given to this agent, beside those of its own configuration.
//!
//! They are kept in the spool's directory, so that the agent goes on polling without the store, also after its own restart.
//! The file holds communities and passwords: only its owner may read it, and none of them is logged.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use collect::snmp::profile::Profiles;
use collect::snmp::source::SnmpSource;
use protocol::frames::agent::work::{DEVICES_MAX, WorkPart};
use tokio::sync::watch;

use crate::collectors::snmp::config::SnmpSettings;

/// The file, in the spool's directory.
const FILE: &str = "work";
/// Its first line. Then come a line per device, its assignment and its settings as JSON, and the checksum of all before.
const FIRST_LINE: &str = "roundel-work 1";

/// What this agent polls.
#[derive(Debug)]
pub struct AgentWork {
    file: PathBuf,
    own: SnmpSettings,
    /// Both.
    all: watch::Sender<SnmpSettings>,
}

/// Work that is being received.
#[derive(Debug, Default)]
pub struct IncomingWork(Vec<SnmpSource>);

impl AgentWork {
    /// Reads what the store gave last. A file that is damaged is as good as none, until the store says what there is to do.
    pub fn open(directory: &Path, own: Option<SnmpSettings>) -> Self {
        let own = own.unwrap_or_else(|| SnmpSettings { sources: Vec::new(), profiles: Profiles::default() });
        let file = directory.join(FILE);
        let given = read(&file).unwrap_or_else(|error| {
            tracing::error!(%error, file = %file.display(), "cannot read which devices the store gave to this agent");
            Vec::new()
        });
        let all = watch::Sender::new(merged(&own, given));
        AgentWork { file, own, all }
    }

    /// What is to be polled.
    pub fn settings(&self) -> watch::Receiver<SnmpSettings> {
        self.all.subscribe()
    }

    /// Takes a part of what the store gives.
    ///
    /// # Errors
    /// When there is too much of it.
    pub fn take(&self, part: &WorkPart<'_>, incoming: &mut IncomingWork) -> io::Result<()> {
        if incoming.0.len() + part.devices.len() > DEVICES_MAX {
            return Err(io::Error::other(format!("the store gives more than {DEVICES_MAX} devices")));
        }
        for device in &part.devices {
            match serde_json::from_slice::<SnmpSource>(device.settings) {
                Ok(source) => incoming.0.push(SnmpSource { assignment: device.assignment, ..source }),
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

    /// Polls these devices from now on.
    fn put(&self, given: Vec<SnmpSource>) {
        let text = text_of(&given);
        let devices = given.len();
        let new = merged(&self.own, given);
        if self.all.borrow().sources == new.sources {
            return;
        }
        if let Err(error) = text.and_then(|text| write(&self.file, &text)) {
            tracing::error!(%error, file = %self.file.display(), "cannot keep which devices the store gives to this agent");
        }
        tracing::info!(devices, "the store has given other devices to this agent");
        self.all.send_replace(new);
    }
}

/// The agent's own devices, and what is given to it; of one name, its own.
fn merged(own: &SnmpSettings, given: Vec<SnmpSource>) -> SnmpSettings {
    let mut all = own.clone();
    let names: HashSet<String> = own.sources.iter().map(|source| source.name().to_string()).collect();
    for source in given {
        if names.contains(source.name()) {
            let device = source.name();
            tracing::error!(
                device,
                "the store gives a device that the agent's configuration has: its own counts"
            );
        } else {
            all.sources.push(source);
        }
    }
    all
}

fn text_of(given: &[SnmpSource]) -> io::Result<String> {
    let mut text = format!("{FIRST_LINE}\n");
    for source in given {
        text.push_str(&format!("{} {}\n", source.assignment, serde_json::to_string(source)?));
    }
    let sum = crc32c::crc32c(text.as_bytes());
    Ok(text + &format!("crc32c {sum:08x}\n"))
}

/// Replaces the file by one that only its owner may read.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let new = file.with_extension("new");
    fs::remove_file(&new).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    fs::rename(&new, file)?;
    File::open(file.parent().unwrap_or(Path::new(".")))?.sync_all()
}

fn read(file: &Path) -> io::Result<Vec<SnmpSource>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    of_text(&text).ok_or_else(|| io::Error::other("it is damaged, or of another version"))
}

fn of_text(text: &str) -> Option<Vec<SnmpSource>> {
    let end = text.trim_end().rfind('\n')? + 1;
    let sum = format!("crc32c {:08x}\n", crc32c::crc32c(&text.as_bytes()[..end]));
    let mut lines = text[..end].lines();
    if text[end..] != sum || lines.next() != Some(FIRST_LINE) {
        return None;
    }
    let one = |line: &str| {
        let (assignment, settings) = line.split_once(' ')?;
        let source = serde_json::from_str(settings).ok()?;
        Some(SnmpSource { assignment: assignment.parse().ok()?, ..source })
    };
    lines.map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use protocol::frames::agent::work::AssignedDevice;

    use super::*;

    fn names(work: &AgentWork) -> Vec<(String, u64)> {
        let all = work.all.borrow();
        all.sources.iter().map(|source| (source.name().to_string(), source.assignment)).collect()
    }

    #[test]
    fn what_is_given_is_kept_for_the_next_start() {
        let directory = tempfile::tempdir().unwrap();
        let own = || SnmpSettings { sources: vec![SnmpSource::new("own")], profiles: Profiles::default() };
        let work = AgentWork::open(directory.path(), Some(own()));
        assert_eq!(names(&work), [("own".to_string(), 0)]);
        let mut watching = work.settings();
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
        assert!(!watching.has_changed().unwrap(), "that is only a part");
        work.take(&WorkPart { has_more: false, devices: devices[1..].to_vec() }, &mut incoming).unwrap();
        assert!(watching.has_changed().unwrap());
        watching.mark_unchanged();
        let want = [("own", 0), ("r1", 5), ("r2", 7)].map(|(name, number)| (name.to_string(), number));
        assert_eq!(names(&work), want);
        work.take(&WorkPart { has_more: false, devices: devices.clone() }, &mut incoming).unwrap();
        assert!(!watching.has_changed().unwrap(), "it is the same");
        let file = directory.path().join(FILE);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let again = AgentWork::open(directory.path(), Some(own()));
        assert_eq!(names(&again), want);
        assert_eq!(again.all.borrow().sources, work.all.borrow().sources);
        let good = fs::read(&file).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&file, &bad).unwrap();
            assert_eq!(names(&AgentWork::open(directory.path(), None)), [], "byte {at}");
        }
    }
}
