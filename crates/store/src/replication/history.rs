//! The history of a store that has a copy on another server: the file HISTORY beside STORE (`docs/format/store.md`). A store without one
//! takes changes and was never anything else.

use std::io;
use std::path::Path;

use crate::disk::{Disk, Mode};
use crate::error::OpenError;
use crate::filenames;
use crate::identity::SHARDS_MAX;
use crate::manifest::replace;
use crate::position::Position;

/// Version of the text.
const VERSION: u32 = 1;
/// Epochs that are remembered: more than promotions in the life of a store.
const EPOCHS_MAX: usize = 1000;
/// The longest text: all epochs of the most shards would be longer, and is refused.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// What a store is to the others that have its RRDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// It takes changes.
    #[default]
    Primary = 0,
    /// It takes what its primary's log says, and no other change.
    Follower = 1,
    /// It was the primary until another one was promoted, and takes no changes.
    Fenced = 2,
    /// It is being promoted, and takes no changes for the moment.
    Promoting = 3,
    /// It was made of a copy of another one and was not open since: it begins an epoch of its own, unless it follows a primary.
    Restored = 4,
}

impl Role {
    /// The role of this number; of an unknown one, that which takes no changes.
    pub fn of_number(number: u8) -> Role {
        match number {
            0 => Role::Primary,
            1 => Role::Follower,
            3 => Role::Promoting,
            4 => Role::Restored,
            _ => Role::Fenced,
        }
    }

    /// Its word in the file and for the operator.
    pub fn word(self) -> &'static str {
        match self {
            Role::Primary => "primary",
            Role::Follower => "follower",
            Role::Fenced => "fenced",
            Role::Promoting => "promoting",
            Role::Restored => "restored",
        }
    }

    fn of_word(word: &str) -> Option<Role> {
        [Role::Primary, Role::Follower, Role::Fenced, Role::Restored]
            .into_iter()
            .find(|role| role.word() == word)
    }

    /// Why it takes no changes, if so.
    pub fn refusal(self) -> Option<&'static str> {
        match self {
            Role::Primary => None,
            Role::Follower => Some(
                "this server follows another one and takes no changes: send them there, or make this one the primary (roundel promote)",
            ),
            Role::Fenced => Some(
                "this server takes no changes any more: another one was made the primary in its place; send them there",
            ),
            Role::Promoting | Role::Restored => {
                Some("this server is being made the primary; try again in a moment")
            }
        }
    }
}

/// The time of one primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Its number; the first primary of a store has 0, which is not listed.
    pub number: u32,
    /// Where each shard's log ended when it began: no record before is of this epoch, none after is of an earlier one.
    pub began: Vec<Position>,
}

/// What a store was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// What it is.
    pub role: Role,
    /// The epochs of its log, in order.
    pub epochs: Vec<Epoch>,
    /// The epoch of the primary in whose favour it takes no changes, if that is a later one.
    pub fenced_by: u32,
    /// It was promoted, and no follower has caught up since.
    pub is_alone: bool,
}

impl History {
    /// The epoch of the last record, or of the next.
    pub fn epoch(&self) -> u32 {
        self.epochs.last().map_or(0, |epoch| epoch.number)
    }

    /// What a copy of a store with this history is, whose logs end at `ends`: until it follows the primary of the store it came from, it has
    /// nothing to do with that any more. `known` is the latest epoch of which is known that another copy has it.
    pub fn of_copy(&self, ends: &[Position], known: u32) -> History {
        let is_in = |epoch: &&Epoch| epoch.began.iter().zip(ends).all(|(began, end)| began <= end);
        let epochs = self.epochs.iter().filter(is_in).cloned().collect();
        let later = self.epoch().max(self.fenced_by).max(known);
        History { role: Role::Restored, epochs, fenced_by: later, is_alone: false }
    }

    /// The epoch of the next primary.
    pub fn next_epoch(&self) -> u32 {
        self.epoch().max(self.fenced_by).saturating_add(1)
    }

    /// Whether a log with this history goes on where one with an earlier history ends: it has the epochs of that, and none of its own
    /// began before.
    pub fn continues(&self, earlier: &History, ends: &[Position]) -> bool {
        earlier.epochs.iter().all(|epoch| self.epochs.contains(epoch))
            && self.divergence(earlier.epoch(), ends).is_none()
    }

    /// Begins an epoch where the logs end at `began`, as a primary without a follower.
    pub fn begin_epoch(&mut self, number: u32, began: Vec<Position>) {
        if self.epochs.len() >= EPOCHS_MAX {
            // A log that ends in so old an epoch has to be copied: its last record is not there any more.
            self.epochs.remove(0);
        }
        self.epochs.push(Epoch { number, began });
        (self.role, self.fenced_by, self.is_alone) = (Role::Primary, 0, true);
    }

    /// The shard and position where a log that ends at `ends`, and knows of no epoch after `epoch`, diverges from this one: it has records
    /// that this one does not have.
    pub fn divergence(&self, epoch: u32, ends: &[Position]) -> Option<(usize, Position)> {
        let next = self.epochs.iter().find(|known| known.number > epoch)?;
        let beyond = |(end, began): (&Position, &Position)| end > began;
        let shard = ends.iter().zip(&next.began).position(beyond)?;
        Some((shard, next.began[shard]))
    }

    /// Reads it; what a store without the file has is the default.
    ///
    /// # Errors
    /// When it cannot be read, is damaged or of a newer version.
    pub fn load(disk: &dyn Disk) -> Result<History, OpenError> {
        let path = filenames::history(Path::new(""));
        let failed = |error| OpenError::caused("cannot read the store's file HISTORY", error);
        let file = match disk.open(&path, Mode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(History::default()),
            opened => opened.map_err(failed)?,
        };
        let length = file.length().map_err(failed)?.min(TEXT_BYTES_MAX);
        let mut bytes = vec![0; length as usize];
        let count = file.read_at(&mut bytes, 0).map_err(failed)?;
        bytes.truncate(count);
        let text = String::from_utf8(bytes).unwrap_or_default();
        History::decode(&text)
    }

    /// Writes it.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn store(&self, disk: &dyn Disk) -> io::Result<()> {
        let root = Path::new("");
        replace(disk, &filenames::history_new(root), &filenames::history(root), &self.encode())
    }

    /// The text of the file.
    pub fn encode(&self) -> String {
        let mut body = format!("roundel-history {VERSION}\nrole {}\n", self.role.word());
        if self.is_alone {
            body += "alone\n";
        }
        if self.fenced_by > 0 {
            body += &format!("fenced-by {}\n", self.fenced_by);
        }
        for Epoch { number, began } in &self.epochs {
            let began: Vec<String> = began.iter().map(Position::to_string).collect();
            body += &format!("epoch {number} began {}\n", began.join(" "));
        }
        format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()))
    }

    /// Parses the file's text.
    ///
    /// # Errors
    /// When it is damaged or has another version.
    pub fn decode(text: &str) -> Result<History, OpenError> {
        let damaged = || {
            OpenError::new(
                "the file HISTORY of the store is damaged: whether another server has taken its place is not known. If none has, remove \
                 the file; else begin again as its follower, in an empty directory",
            )
        };
        let covered = text.rfind("crc32c ").ok_or_else(damaged)?;
        let crc = crc32c::crc32c(&text.as_bytes()[..covered]);
        if text[covered..] != format!("crc32c {crc:08x}\n") {
            return Err(damaged());
        }
        let mut lines = text[..covered].lines();
        let version =
            lines.next().and_then(|line| line.strip_prefix("roundel-history ")?.parse::<u32>().ok());
        match version.ok_or_else(damaged)? {
            VERSION => parse(lines).ok_or_else(damaged),
            newer => Err(OpenError::new(format!(
                "the store's file HISTORY is of version {newer}, this program knows {VERSION}; use the newer version"
            ))),
        }
    }
}

fn parse<'t>(mut lines: impl Iterator<Item = &'t str>) -> Option<History> {
    let role = Role::of_word(lines.next()?.strip_prefix("role ")?)?;
    let mut history = History { role, ..History::default() };
    for line in lines {
        if line == "alone" {
            history.is_alone = true;
            continue;
        }
        if let Some(number) = line.strip_prefix("fenced-by ") {
            history.fenced_by = number.parse().ok()?;
            continue;
        }
        let (number, began) = line.strip_prefix("epoch ")?.split_once(" began ")?;
        let number = number.parse().ok().filter(|number| *number > history.epoch())?;
        let began: Vec<Position> = began.split(' ').map(position).collect::<Option<_>>()?;
        if began.len() > SHARDS_MAX as usize || history.epochs.len() >= EPOCHS_MAX {
            return None;
        }
        history.epochs.push(Epoch { number, began });
    }
    Some(history)
}

fn position(word: &str) -> Option<Position> {
    let (generation, offset) = word.split_once(':')?;
    Some(Position { generation: generation.parse().ok()?, offset: offset.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> Position {
        Position { generation: 1, offset }
    }

    fn sample() -> History {
        let epochs = vec![
            Epoch { number: 1, began: vec![at(100), at(200)] },
            Epoch { number: 4, began: vec![at(300), at(250)] },
        ];
        History { role: Role::Fenced, epochs, fenced_by: 5, is_alone: true }
    }

    #[test]
    fn a_history_is_its_text_and_damage_is_found() {
        for history in [History::default(), sample()] {
            assert_eq!(History::decode(&history.encode()).unwrap(), history);
        }
        let text = sample().encode();
        assert!(
            text.starts_with(
                "roundel-history 1\nrole fenced\nalone\nfenced-by 5\nepoch 1 began 1:100 1:200\n"
            ),
            "{text}"
        );
        for byte in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[byte] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert!(History::decode(&changed).is_err(), "byte {byte}");
        }
        for wrong in ["role nothing\n", "role primary\nepoch 0 began 1:1\n", "role primary\nepoch x began\n"]
        {
            let body = format!("roundel-history 1\n{wrong}");
            let text = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
            assert!(History::decode(&text).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_copy_knows_the_epochs_of_its_log_and_begins_a_later_one_than_any() {
        let history = sample();
        let mut copy = history.of_copy(&[at(299), at(260)], 2);
        assert_eq!((copy.role, copy.epoch(), copy.next_epoch()), (Role::Restored, 1, 6));
        assert_eq!(History::decode(&copy.encode()).unwrap(), copy);
        assert_eq!(history.of_copy(&[at(300), at(260)], 9).next_epoch(), 10);
        assert_eq!(History::default().of_copy(&[at(5)], 0).next_epoch(), 1);
        // What it was copied from goes on with what it has up to there, and not with what it writes.
        let ends = [at(299), at(260)];
        assert!(copy.continues(&copy.clone(), &ends));
        let before = copy.clone();
        copy.begin_epoch(copy.next_epoch(), ends.into());
        assert!(copy.continues(&before, &ends) && !copy.continues(&before, &[at(299), at(261)]));
        assert!(!copy.continues(&history, &ends) && !history.continues(&copy, &ends));
    }

    #[test]
    fn the_oldest_epochs_are_forgotten() {
        let mut history = History::default();
        for number in 1..=EPOCHS_MAX as u32 + 5 {
            history.begin_epoch(number, vec![at(u64::from(number))]);
        }
        assert_eq!((history.epochs.len(), history.epoch()), (EPOCHS_MAX, EPOCHS_MAX as u32 + 5));
        assert_eq!(History::decode(&history.encode()).unwrap(), history);
    }

    #[test]
    fn logs_part_where_an_epoch_began_that_one_of_them_does_not_know() {
        let history = sample();
        assert_eq!(history.divergence(0, &[at(100), at(200)]), None);
        assert_eq!(history.divergence(0, &[at(100), at(201)]), Some((1, at(200))));
        assert_eq!(history.divergence(1, &[at(300), at(200)]), None);
        assert_eq!(history.divergence(3, &[at(301), at(200)]), Some((0, at(300))));
        // It knows the last epoch: what is beyond is for the positions to tell.
        assert_eq!(history.divergence(4, &[at(1000), at(1000)]), None);
    }
}
