//! Which agent polls which device, as the store's directory keeps it (`docs/format/store.md`, `assignments`).
//!
//! An assignment has a number that is never given twice, also not after the file was lost or restored from a copy: each is
//! higher than the one before, and at least the time in microseconds.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;

use rrd::time::{MICROS, Timestamp};

use crate::durable;

/// The first line of the file.
const FIRST_LINE: &str = "roundel-assignments 1";
/// Assignments of a device that are remembered after they ended. Guessed: an agent's spool reaches back over few of them.
const ENDED_MAX: usize = 8;

/// A device that is, or was, an agent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The agent's name.
    pub agent: String,
    /// The device's name.
    pub device: String,
    /// When it ended, in microseconds since 1970.
    pub until: Option<i64>,
}

/// All assignments, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignments {
    /// What was assigned before this time, in microseconds since 1970, is not known.
    begun: i64,
    by_number: BTreeMap<u64, Assignment>,
    /// Those that have not ended.
    by_device: HashMap<String, u64>,
}

/// Why the file cannot be used.
#[derive(Debug)]
pub enum AssignmentsError {
    /// It cannot be read.
    Io(io::Error),
    /// It is of a version that this program does not know.
    Newer,
    /// It is damaged from this line on.
    Damaged(usize),
}

impl Assignments {
    /// None so far.
    pub fn new(now: i64) -> Self {
        Assignments { begun: now, by_number: BTreeMap::new(), by_device: HashMap::new() }
    }

    /// The number of a device's assignment, and its agent.
    pub fn of(&self, device: &str) -> Option<(u64, &str)> {
        let number = *self.by_device.get(device)?;
        Some((number, &self.by_number.get(&number)?.agent))
    }

    /// The devices that are assigned, in no order.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.by_device.keys().map(String::as_str)
    }

    /// Gives a device to an agent, and takes it from the one that had it.
    pub fn assign(&mut self, device: &str, agent: &str, now: i64) {
        self.end(device, now);
        let last = self.by_number.last_key_value().map_or(0, |(number, _)| *number);
        let number = (last + 1).max(now.max(0) as u64);
        let assignment = Assignment { agent: agent.to_string(), device: device.to_string(), until: None };
        self.by_number.insert(number, assignment);
        self.by_device.insert(device.to_string(), number);
    }

    /// Takes a device from its agent.
    pub fn end(&mut self, device: &str, now: i64) {
        let Some(number) = self.by_device.remove(device) else { return };
        if let Some(assignment) = self.by_number.get_mut(&number) {
            assignment.until = Some(now);
        }
    }

    /// Forgets what ended long ago.
    pub fn forget_old(&mut self) {
        let mut ended: HashMap<String, usize> = HashMap::new();
        let mut old = Vec::new();
        for (number, assignment) in self.by_number.iter().rev().filter(|(_, one)| one.until.is_some()) {
            let count = ended.entry(assignment.device.clone()).or_default();
            *count += 1;
            if *count > ENDED_MAX {
                old.push(*number);
            }
        }
        old.iter().for_each(|number| drop(self.by_number.remove(number)));
    }

    /// Whether an agent's reading may be stored: it has no assignment, as its own devices, or its assignment is the agent's, and
    /// was so at the time of the reading. Of an assignment that is not known, only what was read before all that is known.
    pub fn admits(&self, number: u64, agent: &[u8], time: Timestamp) -> bool {
        if number == 0 {
            return true;
        }
        let time = time.whole.saturating_mul(i64::from(MICROS)).saturating_add(i64::from(time.micros));
        match self.by_number.get(&number) {
            Some(assignment) => {
                assignment.agent.as_bytes() == agent && assignment.until.is_none_or(|until| time <= until)
            }
            None => time <= self.begun,
        }
    }

    fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\nbegun {}\n", self.begun);
        for (number, Assignment { agent, device, until }) in &self.by_number {
            let until = until.map_or_else(|| "-".to_string(), |until| until.to_string());
            text.push_str(&format!("{number} {until} {agent} {device}\n"));
        }
        let sum = crc32c::crc32c(text.as_bytes());
        text + &format!("crc32c {sum:08x}\n")
    }

    fn of_text(text: &str) -> Result<Self, AssignmentsError> {
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.first().copied().unwrap_or_default();
        if first != FIRST_LINE {
            let is_newer = first.starts_with("roundel-assignments ");
            return Err(if is_newer { AssignmentsError::Newer } else { AssignmentsError::Damaged(1) });
        }
        let end = text.rfind("crc32c ").ok_or(AssignmentsError::Damaged(lines.len()))?;
        let sum = format!("crc32c {:08x}\n", crc32c::crc32c(&text.as_bytes()[..end]));
        let begun = lines.get(1).and_then(|line| line.strip_prefix("begun ")?.parse().ok());
        let mut assignments = Assignments::new(begun.ok_or(AssignmentsError::Damaged(2))?);
        if text[end..] != sum {
            return Err(AssignmentsError::Damaged(lines.len()));
        }
        for (index, line) in lines[..lines.len() - 1].iter().enumerate().skip(2) {
            assignments.take_line(line).ok_or(AssignmentsError::Damaged(index + 1))?;
        }
        Ok(assignments)
    }

    fn take_line(&mut self, line: &str) -> Option<()> {
        let mut words = line.splitn(4, ' ');
        let number = words.next()?.parse().ok()?;
        let until = match words.next()? {
            "-" => None,
            until => Some(until.parse().ok()?),
        };
        let (agent, device) = (words.next()?.to_string(), words.next()?.to_string());
        if until.is_none() {
            self.by_device.insert(device.clone(), number);
        }
        self.by_number.insert(number, Assignment { agent, device, until });
        Some(())
    }

    /// Reads the file; `None` when there is none.
    ///
    /// # Errors
    /// [`AssignmentsError`].
    pub fn load(path: &Path) -> Result<Option<Self>, AssignmentsError> {
        match fs::read_to_string(path) {
            Ok(text) => Self::of_text(&text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(AssignmentsError::Damaged(1)),
            Err(error) => Err(AssignmentsError::Io(error)),
        }
    }

    /// Writes the file; after a crash it is this one, or the one before.
    ///
    /// # Errors
    /// When it cannot be made durable.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        durable::replace(path, self.to_text().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000_000;

    #[test]
    fn an_assignment_is_one_agents_until_it_ends() {
        let mut assignments = Assignments::new(NOW);
        assignments.assign("r 1", "a", NOW);
        let (first, agent) = assignments.of("r 1").unwrap();
        assert_eq!((first, agent), (NOW as u64, "a"));
        // The clock has gone back.
        assignments.assign("r 1", "b", NOW - 500_000);
        let (second, agent) = assignments.of("r 1").unwrap();
        assert_eq!((second, agent), (first + 1, "b"));
        let at =
            |micros: i64| Timestamp::new(micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000) as u32);
        for (number, agent, time, want) in [
            (first, "a", NOW - 500_000, true),
            (first, "a", NOW - 499_999, false),
            (first, "b", NOW - 600_000, false),
            (second, "b", NOW + 5_000_000, true),
            (second, "a", NOW - 5_000_000, false),
            (7, "a", NOW, true),
            (7, "a", NOW + 1, false),
            (0, "a", NOW + 1, true),
        ] {
            assert_eq!(
                assignments.admits(number, agent.as_bytes(), at(time)),
                want,
                "{number} {agent} {time}"
            );
        }
        assignments.end("r 1", NOW);
        assert_eq!((assignments.of("r 1"), assignments.devices().count()), (None, 0));
        assert!(!assignments.admits(second, b"b", at(NOW + 1)));
    }

    #[test]
    fn the_file_holds_them_and_any_damage_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("assignments");
        assert!(Assignments::load(&path).unwrap().is_none());
        let mut assignments = Assignments::new(NOW);
        for round in 0..20 {
            assignments.assign("r 1", if round % 2 == 0 { "a" } else { "b" }, NOW + round);
            assignments.assign("crc32c 0", "a", NOW + round);
        }
        assignments.forget_old();
        assert_eq!(assignments.by_number.len(), 2 * (ENDED_MAX + 1));
        assignments.save(&path).unwrap();
        assert_eq!(Assignments::load(&path).unwrap(), Some(assignments));
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            assert!(Assignments::load(&path).is_err(), "byte {at}");
            fs::write(&path, &good[..at]).unwrap();
            assert!(Assignments::load(&path).is_err(), "cut at {at}");
        }
        fs::write(&path, "roundel-assignments 2\n").unwrap();
        assert!(matches!(Assignments::load(&path), Err(AssignmentsError::Newer)));
    }
}
