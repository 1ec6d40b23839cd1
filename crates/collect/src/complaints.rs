//! What goes wrong, said once: a device that does not answer is one line in the log, not one line a poll.

use std::collections::HashMap;

/// Most subjects remembered; beyond that, only their number is known. A sender can make up subjects.
const SUBJECTS_MAX: usize = 10_000;

/// A change for the worse or the better, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about, such as `router1: .1.3.6.1.2.1.2.2.1.10.3`.
    pub subject: String,
    /// What is wrong and what to do, or that it is over.
    pub text: String,
    /// True when it is over.
    pub is_over: bool,
}

/// The complaints that stand, by subject.
#[derive(Clone, Debug, Default)]
pub struct Complaints {
    standing: HashMap<String, String>,
    notices: Vec<Notice>,
    unremembered: u64,
}

impl Complaints {
    /// Notes that `text` is wrong with `subject`; a [`Notice`] follows unless that is known.
    pub fn raise(&mut self, subject: &str, text: impl Into<String>) {
        let text = text.into();
        if self.standing.get(subject) == Some(&text) {
            return;
        }
        if self.standing.len() >= SUBJECTS_MAX && !self.standing.contains_key(subject) {
            self.unremembered += 1;
            return;
        }
        self.standing.insert(subject.to_string(), text.clone());
        self.notices.push(Notice { subject: subject.to_string(), text, is_over: false });
    }

    /// Notes that all is well with `subject` again.
    pub fn resolve(&mut self, subject: &str) {
        if let Some(text) = self.standing.remove(subject) {
            self.notices.push(Notice { subject: subject.to_string(), text, is_over: true });
        }
    }

    /// Forgets what was wrong with `subject` and its parts, as in `subject: part`: it is gone, and not well again.
    pub fn forget(&mut self, subject: &str) {
        let is_part = |other: &str| other.strip_prefix(subject).is_some_and(|rest| rest.starts_with(": "));
        self.standing.retain(|other, _| other != subject && !is_part(other));
    }

    /// The notices since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// How many subjects have a complaint that stands.
    pub fn standing(&self) -> usize {
        self.standing.len()
    }

    /// Complaints of subjects that were too many to remember.
    pub fn unremembered(&self) -> u64 {
        self.unremembered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_said_once_until_it_changes_or_is_over() {
        let mut complaints = Complaints::default();
        let texts = |complaints: &mut Complaints| -> Vec<(String, bool)> {
            complaints.take_notices().into_iter().map(|notice| (notice.text, notice.is_over)).collect()
        };
        complaints.raise("r1", "silent");
        complaints.raise("r1", "silent");
        complaints.resolve("r2");
        assert_eq!(texts(&mut complaints), [("silent".to_string(), false)]);
        complaints.raise("r1", "wrong id");
        complaints.resolve("r1");
        complaints.resolve("r1");
        assert_eq!(texts(&mut complaints), [("wrong id".to_string(), false), ("wrong id".to_string(), true)]);
        assert_eq!(complaints.standing(), 0);
    }

    #[test]
    fn what_is_gone_is_not_well_again() {
        let mut complaints = Complaints::default();
        for subject in ["r1", "r1: pace", "r10"] {
            complaints.raise(subject, "silent");
        }
        complaints.forget("r1");
        assert_eq!(complaints.standing(), 1);
        ["r1", "r1: pace", "r10"].iter().for_each(|subject| complaints.resolve(subject));
        let over: Vec<Notice> =
            complaints.take_notices().into_iter().filter(|notice| notice.is_over).collect();
        assert_eq!(over.len(), 1, "{over:?}");
    }

    #[test]
    fn made_up_subjects_are_bounded() {
        let mut complaints = Complaints::default();
        (0..SUBJECTS_MAX + 3).for_each(|number| complaints.raise(&number.to_string(), "silent"));
        assert_eq!((complaints.standing(), complaints.unremembered()), (SUBJECTS_MAX, 3));
    }
}
