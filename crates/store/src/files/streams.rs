//! How far streams have been applied: in the journal of the first shard, and again in each file that follows it.

use std::io;

use crate::engine::{NO_STREAMS, StoreError, StreamPosition};
use crate::files::journal::{Frame, Journal, Record};
use crate::files::shared::{Shared, lock};

impl Shared {
    /// How far a stream has been applied.
    ///
    /// # Errors
    /// Without a journal.
    pub fn stream_position(&self, name: &[u8]) -> Result<Option<StreamPosition>, StoreError> {
        match self.journal {
            Some(_) => Ok(lock(&self.streams).get(name)),
            None => Err(StoreError::Unsupported(NO_STREAMS)),
        }
    }

    /// Makes everything accepted durable, then records how far a stream has been applied, durably too.
    ///
    /// # Errors
    /// Without a journal, with too many streams, or when the journal cannot be written or synced.
    pub fn set_stream_position(&self, name: &[u8], position: StreamPosition) -> Result<(), StoreError> {
        self.stream_position(name)?;
        self.check_sound()?;
        lock(&self.streams).check(name)?;
        self.sync_all_journals()?;
        // First: a file that begins from now on repeats it.
        lock(&self.streams).advance(name, position);
        let mut frame = Frame::default();
        frame.put(Record::Stream { name, position });
        self.commit(&self.shards[0], &mut frame)?;
        self.sync_journal(0)?;
        self.check_sound()
    }

    /// Writes all positions to a file of the first shard, whose older files are about to go.
    ///
    /// # Errors
    /// When it cannot be written or synced.
    pub fn repeat_streams(&self, shard: usize, journal: &mut Journal) -> io::Result<()> {
        let streams = lock(&self.streams);
        if shard != 0 || streams.iter().len() == 0 {
            return Ok(());
        }
        let mut frame = Frame::default();
        streams.iter().for_each(|(name, position)| frame.put(Record::Stream { name, position }));
        journal.append(&mut frame)?;
        journal.sync().map(drop)
    }
}
