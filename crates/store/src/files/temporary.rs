//! Temporary files beside `.rrd` files that are being made, and removing those that a kill has left.
//!
//! With a journal the name says which: `.roundel-JOURNAL-GENERATION-NUMBER.tmp`. Each start begins a generation, and only one
//! daemon holds a journal's lock, so at a start every file of this journal and an older generation is left over, whatever
//! became of process ids, on any host. Without a journal, and in release 0.1, it is `.roundel-PID-NUMBER.tmp`. A process id
//! may belong to another host or container, so such a file is only removed when it is old as well.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rrd_file::system_text;
use rrd_file::tree::sweep;
use rustix::process::{Pid, test_kill_process};

use crate::files::shared::Shared;

/// A file of a process that is gone here was not written for so long: it takes minutes at most.
const LEFT_AGE: Duration = Duration::from_secs(3600);
/// A file of another journal, or of a process id that is in use, was not written for so long.
const LEFT_AGE_UNKNOWN: Duration = Duration::from_secs(86_400);

static COUNT: AtomicU64 = AtomicU64::new(0);

/// Who makes a temporary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// A daemon, by its journal and the first generation of its start.
    Journal {
        /// The first half of the journal's id.
        id: u64,
        /// The generation with which the daemon started.
        generation: u64,
    },
    /// A process.
    Process(u32),
}

impl Maker {
    /// A name that no other file has.
    pub fn name(self) -> String {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        match self {
            Maker::Journal { id, generation } => format!(".roundel-{id:016x}-{generation:016x}-{number}.tmp"),
            Maker::Process(pid) => format!(".roundel-{pid}-{number}.tmp"),
        }
    }

    /// Who made the file of this name, if it is a temporary file.
    fn of(name: &[u8]) -> Option<Maker> {
        let text = std::str::from_utf8(name).ok()?.strip_prefix(".roundel-")?.strip_suffix(".tmp")?;
        let words: Vec<&str> = text.split('-').collect();
        let all_digits = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !words.iter().all(all_digits) {
            return None;
        }
        match words[..] {
            [id, generation, number] if id.len() == 16 && generation.len() == 16 => {
                number.parse::<u64>().ok()?;
                let hexadecimal = |word| u64::from_str_radix(word, 16).ok();
                Some(Maker::Journal { id: hexadecimal(id)?, generation: hexadecimal(generation)? })
            }
            [pid, number] => {
                number.parse::<u64>().ok()?;
                pid.parse().ok().map(Maker::Process)
            }
            _ => None,
        }
    }

    /// Whether this daemon may remove a file of `other`, last written `age` ago.
    fn may_remove(self, other: Maker, age: Duration) -> bool {
        match (other, self) {
            (Maker::Journal { id, generation }, Maker::Journal { id: own, generation: now }) if id == own => {
                generation < now
            }
            (Maker::Process(pid), _) if is_gone(pid) => age > LEFT_AGE,
            _ => age > LEFT_AGE_UNKNOWN,
        }
    }
}

/// Whether no process has this id here.
fn is_gone(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

/// Removes the files that daemons which are gone have left in the tree.
pub fn remove_left(shared: &Shared) {
    let maker = shared.maker();
    let is_left = |name: &[u8], age| Maker::of(name).is_some_and(|other| maker.may_remove(other, age));
    match sweep(&shared.tree, &is_left, &|| shared.stopping.load(Ordering::Acquire)) {
        Ok(0) => {}
        Ok(count) => tracing::info!("removed {count} temporary files that a killed daemon had left"),
        Err(error) => {
            tracing::warn!("cannot look for temporary files that a kill has left: {}", system_text(&error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_one_can_be_writing_is_removed() {
        let own = Maker::Journal { id: 7, generation: 9 };
        assert_eq!(Maker::of(own.name().as_bytes()), Some(own));
        assert_eq!(Maker::of(Maker::Process(77).name().as_bytes()), Some(Maker::Process(77)));
        for name in
            [".roundel-daemon", ".roundel-1.tmp", ".roundel-x-1.tmp", ".roundel-1-x.tmp", "roundel-1-1.tmp"]
        {
            assert_eq!(Maker::of(name.as_bytes()), None, "{name}");
        }
        let now = Duration::ZERO;
        assert!(own.may_remove(Maker::Journal { id: 7, generation: 8 }, now));
        assert!(!own.may_remove(own, LEFT_AGE_UNKNOWN));
        let other = Maker::Journal { id: 8, generation: 1 };
        assert!(!own.may_remove(other, LEFT_AGE) && own.may_remove(other, LEFT_AGE_UNKNOWN * 2));
        let alive = Maker::Process(std::process::id());
        assert!(!own.may_remove(alive, LEFT_AGE * 2) && own.may_remove(alive, LEFT_AGE_UNKNOWN * 2));
        // Above the largest process id of Linux.
        let gone = Maker::Process((1 << 22) + 1);
        assert!(!own.may_remove(gone, now) && own.may_remove(gone, LEFT_AGE * 2));
    }
}
