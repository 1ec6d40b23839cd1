//! What is sent at once: readings in the order of the log, and RRDs that were made before them.

use std::ops::Range;
use std::sync::Arc;

use rrd::definition::Definition;
use rrd::time::Timestamp;
use store::name::RrdName;

/// Readings of one or more shards, in the order of their logs.
#[derive(Debug, Default)]
pub struct ForwardBatch {
    text: Vec<u8>,
    updates: Vec<BatchUpdate>,
    /// RRDs that were created. They are made first: an RRD that is there already stays as it is.
    pub created: Vec<CreatedRrd>,
    /// RRDs whose definition is not what it was.
    pub redefined: Vec<RrdName>,
}

#[derive(Debug)]
struct BatchUpdate {
    name: Range<usize>,
    /// Time and values, with a colon between them.
    reading: Range<usize>,
    values_from: usize,
    time: Timestamp,
}

/// An RRD that was created.
#[derive(Debug)]
pub struct CreatedRrd {
    /// Its name.
    pub name: RrdName,
    /// Its definition.
    pub definition: Arc<Definition>,
    /// Its start, in seconds since the epoch.
    pub start: i64,
}

/// One reading of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchReading<'a> {
    /// The RRD.
    pub name: &'a [u8],
    /// `time:value:value...`, as in an UPDATE.
    pub reading: &'a [u8],
    /// The values alone.
    pub values: &'a [u8],
    /// The time, in seconds since the epoch.
    pub time: Timestamp,
}

impl ForwardBatch {
    /// Adds a reading.
    pub fn push(&mut self, name: &[u8], time: Timestamp, values: &[u8]) {
        use std::io::Write;
        let from = self.text.len();
        self.text.extend_from_slice(name);
        let middle = self.text.len();
        // Writing to memory does not fail.
        let _ = match time.micros {
            0 => write!(self.text, "{}:", time.whole),
            micros => write!(self.text, "{}.{micros:06}:", time.whole),
        };
        let values_from = self.text.len();
        self.text.extend_from_slice(values);
        let reading = middle..self.text.len();
        self.updates.push(BatchUpdate { name: from..middle, reading, values_from, time });
    }

    /// Its readings.
    pub fn readings(&self) -> impl ExactSizeIterator<Item = BatchReading<'_>> {
        self.updates.iter().map(|update| BatchReading {
            name: &self.text[update.name.clone()],
            reading: &self.text[update.reading.clone()],
            values: &self.text[update.values_from..update.reading.end],
            time: update.time,
        })
    }

    /// How many readings it has.
    pub fn len(&self) -> usize {
        self.updates.len()
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.updates.is_empty() && self.created.is_empty()
    }

    /// Bytes of its names and readings.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Empties it, for the next one.
    pub fn clear(&mut self) {
        self.text.clear();
        self.updates.clear();
        self.created.clear();
        self.redefined.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_written_as_update_takes_it() {
        let mut batch = ForwardBatch::default();
        batch.push(b"a", Timestamp::new(1000, 0), b"1:U");
        batch.push(b"b c", Timestamp::new(1001, 5000), b"2.5");
        let seen: Vec<_> = batch.readings().map(|one| (one.name, one.reading, one.values)).collect();
        let want: [(&[u8], &[u8], &[u8]); 2] =
            [(b"a", b"1000:1:U", b"1:U"), (b"b c", b"1001.005000:2.5", b"2.5")];
        assert_eq!(seen, want);
        assert_eq!((batch.len(), batch.is_empty()), (2, false));
        batch.clear();
        assert_eq!((batch.len(), batch.is_empty(), batch.bytes()), (0, true, 0));
    }
}
