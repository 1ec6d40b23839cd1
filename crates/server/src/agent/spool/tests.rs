use protocol::frames::agent::AGENT_BODY_BYTES_MAX;
use protocol::frames::agent::block::{
    BlockHead, BlockReader, BlockSink, BlockValue, BlockWriter, RrdDefinition,
};
use protocol::frames::{self};
use rrd::time::Timestamp;

use super::*;

/// A spool in a new directory.
fn options(directory: &Path, bytes_max: u64) -> SpoolOptions {
    SpoolOptions { directory: directory.to_path_buf(), bytes_max, keep: Duration::from_secs(3600) }
}

/// Feeds a spool with one reading a block.
struct Source {
    writer: BlockWriter,
    rrd: u32,
    second: i64,
}

impl Source {
    fn new() -> Self {
        Source { writer: BlockWriter::default(), rrd: 0, second: 0 }
    }

    /// Appends a block whose reading has its number as its time.
    fn append(&mut self, spool: &mut Spool) {
        if self.writer.begins_context() || spool.wants_segment() {
            self.writer.begin_context();
            let definition = self.writer.add_definition(1, 1, &[]).unwrap();
            self.rrd = self.writer.add_rrd(definition, 0, b"a.rrd", 2).unwrap();
        }
        self.second = spool.last() as i64 + 1;
        let values = [BlockValue::Unsigned(self.second as u64), BlockValue::Unknown];
        self.writer.push(self.rrd, Timestamp::whole(self.second), values);
        let (mut frame, begins) = (Vec::new(), self.writer.begins_context());
        self.writer.finish(spool.last() + 1, &mut frame).unwrap();
        spool.append(&frame, begins).unwrap();
    }
}

/// The readings sent, as (block, time, dropped).
#[derive(Default)]
struct Seen {
    block: u64,
    readings: Vec<(u64, i64, u64)>,
}

impl BlockSink for Seen {
    fn begin_context(&mut self) {}
    fn definition(&mut self, _: RrdDefinition<'_>) {}
    fn rrd(&mut self, _: u32, _: u64, name: &[u8], values: usize) {
        assert_eq!((name, values), (&b"a.rrd"[..], 2));
    }
    fn reading(&mut self, _: u32, time: Timestamp, values: &[BlockValue<'_>]) {
        let dropped = if let BlockValue::Dropped(count) = values[0] { count } else { 0 };
        self.readings.push((self.block, time.whole, dropped));
    }
}

/// Everything from a cursor on that a store would apply after `number`.
fn read_all(spool: &Spool, cursor: &mut Cursor, number: u64) -> Vec<(u64, i64, u64)> {
    let (mut reader, mut seen, mut applied) = (BlockReader::default(), Seen::default(), number);
    loop {
        let mut out = Vec::new();
        spool.read(cursor, 100, u64::MAX, &mut out).unwrap();
        if out.is_empty() {
            return seen.readings;
        }
        let mut rest = out.as_slice();
        while let Some((frame, used)) = frames::scan(rest, AGENT_BODY_BYTES_MAX).unwrap() {
            rest = &rest[used..];
            seen.block = BlockHead::parse(frame.body).unwrap().sequence;
            let before = seen.readings.len();
            reader.read(frame.body, &mut seen).unwrap();
            if seen.block <= applied {
                seen.readings.truncate(before);
            }
            applied = applied.max(seen.block);
        }
        assert!(rest.is_empty());
    }
}

#[test]
fn what_is_durable_is_read_once_and_again_after_a_lost_connection() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(options(directory.path(), 20_000)).unwrap();
    let mut source = Source::new();
    let (mut cursor, gone) = spool.resume(0).unwrap();
    assert_eq!(gone, 0);
    (0..40).for_each(|_| source.append(&mut spool));
    let mut out = Vec::new();
    let unsynced = spool.durable();
    spool.sync().unwrap();
    assert!(unsynced < 40 && spool.durable() == 40);
    let first = read_all(&spool, &mut cursor, 0);
    assert_eq!(first, (1..=40).map(|number| (number, number as i64, 0)).collect::<Vec<_>>());
    spool.read(&mut cursor, 100, u64::MAX, &mut out).unwrap();
    assert!(out.is_empty());
    source.append(&mut spool);
    spool.sync().unwrap();
    // In the same session, only what is new.
    spool.read(&mut cursor, 100, u64::MAX, &mut out).unwrap();
    assert_eq!(cursor.before(), 41);
    for acknowledged in [0, 17, 40, 41] {
        let (mut cursor, _) = spool.resume(acknowledged).unwrap();
        let again = read_all(&spool, &mut cursor, acknowledged);
        let numbers: Vec<u64> = again.iter().map(|reading| reading.0).collect();
        assert_eq!(numbers, (acknowledged + 1..=41).collect::<Vec<_>>());
    }
}

#[test]
fn a_spool_opens_again_without_its_torn_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut source = Source::new();
    let mut spool = Spool::open(options(directory.path(), 1 << 30)).unwrap();
    (0..10).for_each(|_| source.append(&mut spool));
    spool.sync().unwrap();
    assert!(Spool::open(options(directory.path(), 1 << 30)).unwrap_err().contains("another agent"));
    let (epoch, bytes) = (spool.epoch(), spool.bytes());
    drop(spool);
    let file = directory.path().join("segment-0000000000000001");
    let whole = fs::read(&file).unwrap();
    assert_eq!(whole.len() as u64, bytes);
    fs::write(&file, &whole[..whole.len() - 3]).unwrap();
    let mut spool = Spool::open(options(directory.path(), 1 << 30)).unwrap();
    assert_eq!((spool.epoch(), spool.last()), (epoch, 9));
    let mut source = Source::new();
    source.append(&mut spool);
    spool.sync().unwrap();
    let (mut cursor, _) = spool.resume(5).unwrap();
    let numbers: Vec<u64> = read_all(&spool, &mut cursor, 5).iter().map(|reading| reading.0).collect();
    assert_eq!(numbers, [6, 7, 8, 9, 10]);
    spool.begin_epoch().unwrap();
    assert!(spool.epoch() > epoch);
}

#[test]
fn a_full_spool_drops_its_oldest_readings_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(options(directory.path(), 16_000)).unwrap();
    let mut source = Source::new();
    for _ in 0..2_000 {
        source.append(&mut spool);
        spool.tidy(16_000, true).unwrap();
    }
    spool.sync().unwrap();
    assert!(spool.bytes() <= 16_000 + 1_000, "{}", spool.bytes());
    drop(spool);
    // It is still known after a restart.
    let mut spool = Spool::open(options(directory.path(), 16_000)).unwrap();
    let (mut cursor, gone) = spool.resume(0).unwrap();
    assert_eq!(gone, 0);
    let all = read_all(&spool, &mut cursor, 0);
    let (block, time, dropped) = all[0];
    assert!(dropped > 1_000, "{:?}", all[0]);
    // One unknown reading, at the time of the last one that is missing.
    assert_eq!((block, time), (dropped, dropped as i64));
    let rest: Vec<_> = (dropped + 1..=2_000).map(|number| (number, number as i64, 0)).collect();
    assert_eq!(all[1..], rest);
    assert_eq!(
        fs::read_dir(directory.path())
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("gap-") })
            .count(),
        1
    );
}

#[test]
fn what_the_store_has_is_dropped_without_a_gap() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(options(directory.path(), 16_000)).unwrap();
    let mut source = Source::new();
    for _ in 0..1_000 {
        source.append(&mut spool);
        spool.acknowledge(spool.last());
        spool.tidy(16_000, true).unwrap();
    }
    spool.sync().unwrap();
    assert_eq!(spool.dropped(), 0);
    assert!(spool.bytes() <= 16_000 + 1_000 && spool.waiting_bytes() <= 1_000);
    // A store that was restored from an old copy.
    let (mut cursor, gone) = spool.resume(3).unwrap();
    assert!(gone > 100);
    let first = read_all(&spool, &mut cursor, 3)[0];
    assert_eq!(first, (3 + gone + 1, (3 + gone + 1) as i64, 0));
}

#[test]
fn only_a_spool_that_no_store_knows_overtakes_a_later_one() {
    let directory = tempfile::tempdir().unwrap();
    let options = || SpoolOptions {
        directory: directory.path().to_path_buf(),
        bytes_max: 1 << 20,
        keep: Duration::ZERO,
    };
    let mut spool = Spool::open(options()).unwrap();
    let first = spool.epoch();
    assert!(!spool.overtake(first - 1).unwrap(), "that is no later one");
    let later = first + 1_000_000_000_000;
    assert!(spool.overtake(later).unwrap());
    assert!(spool.epoch() > later);
    let epoch = spool.epoch();
    drop(spool);
    let mut spool = Spool::open(options()).unwrap();
    assert_eq!(spool.epoch(), epoch, "it is kept");
    spool.resume(0).unwrap();
    assert!(!spool.overtake(epoch + 1).unwrap(), "a store knows it");
    drop(spool);
    let mut spool = Spool::open(options()).unwrap();
    assert!(!spool.overtake(epoch + 1).unwrap(), "a store knew it before");
    assert_eq!(spool.epoch(), epoch);
}
