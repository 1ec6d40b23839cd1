//! Which blocks wait for the other lane: an RRD that has moved from there must not be overtaken by its own later readings. A file of
//! lines, each with the number of a block, and the block of the other lane that the store must have before it is sent. Both grow from
//! line to line.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::durable;

/// The file.
const FILE: &str = "after";
/// Lines of the file from which on those that no longer matter are left out.
const LINES_MAX: usize = 1_000;

/// What blocks of a lane wait for.
#[derive(Debug)]
pub struct Order {
    file: PathBuf,
    /// Block, and the block of the other lane.
    waits: VecDeque<(u64, u64)>,
}

impl Order {
    /// Reads the file of a spool's directory, if there is one. What a crash has torn is of a block that was not written.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(directory: &Path) -> io::Result<Order> {
        let file = directory.join(FILE);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut order = Order { file, waits: VecDeque::new() };
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        for line in whole {
            let numbers = line.trim_end().split_once(' ');
            if let Some((Ok(block), Ok(other))) = numbers.map(|(block, other)| (block.parse(), other.parse()))
            {
                order.keep(block, other);
            }
        }
        Ok(order)
    }

    /// From block `block` on, the store must have block `other` of the other lane; durable when this returns.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn wait(&mut self, block: u64, other: u64) -> io::Result<()> {
        if self.waits.back().is_some_and(|(_, known)| *known >= other) {
            return Ok(());
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&self.file)?;
        // After a line that a crash has torn.
        let line = if file.metadata()?.len() > 0 { "\n" } else { "" };
        file.write_all(format!("{line}{block} {other}\n").as_bytes())?;
        file.sync_data()?;
        self.keep(block, other);
        Ok(())
    }

    fn keep(&mut self, block: u64, other: u64) {
        // A block that was not written leaves its line; another block has its number then.
        while self.waits.back().is_some_and(|(known, _)| *known >= block) {
            self.waits.pop_back();
        }
        self.waits.push_back((block, other));
    }

    /// The last block that may be sent, of those from `next` on, while the store has the other lane's blocks up to `other` of
    /// `other_last`. Blocks that the other lane no longer has, because its spool was lost, are not waited for.
    pub fn last_allowed(&self, next: u64, other: u64, other_last: u64) -> u64 {
        let is_waited_for = |needed: u64| other < needed && needed <= other_last;
        let waiting = self.waits.iter().find(|(block, needed)| *block >= next && is_waited_for(*needed));
        waiting.map_or(u64::MAX, |(block, _)| block - 1)
    }

    /// Blocks before `first` are no longer kept.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn forget_before(&mut self, first: u64) -> io::Result<()> {
        let gone = self.waits.iter().take_while(|(block, _)| *block < first).count();
        // The last one says what needs no further line.
        let gone = gone.min(self.waits.len().saturating_sub(1));
        if gone < LINES_MAX {
            return Ok(());
        }
        let lines = self.waits.iter().skip(gone).map(|(block, other)| format!("{block} {other}\n"));
        durable::replace(&self.file, lines.collect::<String>().as_bytes())?;
        self.waits.drain(..gone);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_wait_until_the_other_lane_is_there() {
        let place = tempfile::tempdir().unwrap();
        let mut order = Order::open(place.path()).unwrap();
        assert_eq!(order.last_allowed(1, 0, 99), u64::MAX);
        order.wait(5, 10).unwrap();
        order.wait(6, 10).unwrap();
        order.wait(9, 20).unwrap();
        for order in [&order, &Order::open(place.path()).unwrap()] {
            assert_eq!(order.waits, [(5, 10), (9, 20)]);
            assert_eq!(order.last_allowed(1, 9, 99), 4);
            assert_eq!(order.last_allowed(5, 9, 99), 4);
            assert_eq!(order.last_allowed(6, 9, 99), 8, "block 5 has been sent");
            assert_eq!(order.last_allowed(1, 10, 99), 8);
            assert_eq!(order.last_allowed(1, 20, 99), u64::MAX);
            assert_eq!(order.last_allowed(1, 0, 15), 4);
            assert_eq!(order.last_allowed(1, 0, 9), u64::MAX, "the other spool was lost");
        }
    }

    #[test]
    fn a_torn_line_and_a_block_that_was_not_written_do_no_harm() {
        let place = tempfile::tempdir().unwrap();
        let mut order = Order::open(place.path()).unwrap();
        order.wait(5, 10).unwrap();
        let torn = OpenOptions::new().append(true).open(place.path().join(FILE)).unwrap().write_all(b"7 9");
        torn.unwrap();
        let mut order = Order::open(place.path()).unwrap();
        assert_eq!(order.waits, [(5, 10)]);
        order.wait(5, 11).unwrap();
        assert_eq!(Order::open(place.path()).unwrap().waits, [(5, 11)]);
    }

    #[test]
    fn the_file_stays_short() {
        let place = tempfile::tempdir().unwrap();
        let mut order = Order::open(place.path()).unwrap();
        for block in 1..=LINES_MAX as u64 + 5 {
            order.keep(block, block);
        }
        order.forget_before(u64::MAX).unwrap();
        let last = (LINES_MAX as u64 + 5, LINES_MAX as u64 + 5);
        assert_eq!(order.waits, [last]);
        assert_eq!(Order::open(place.path()).unwrap().waits, [last]);
    }
}
