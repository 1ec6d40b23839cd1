//! What the fuzzer and the tests feed with any bytes.

use std::path::Path;

use disk::{Disk, SimDisk};
use store::filenames;
use store::records::{Kind, Known, Position, Record, replay};
use store::transfer::DecodeError;

use super::opening::{GENERATION, HERE, SpoolContents, look};
use super::record;
use crate::wire::put_batch;

const PARTITIONS: u32 = 4;

/// Reads the bytes as a spool's only file. It must end within them, no partition can be drained beyond, and what can be read of a batch must be the same
/// after another encoding.
///
/// # Panics
/// When that is not so.
pub fn fuzz(bytes: &[u8]) {
    let (disk, dir, from) =
        (SimDisk::new(1), Path::new(HERE), Position { generation: GENERATION, offset: 0 });
    let written = disk.create(&filenames::log(dir, from)).and_then(|file| file.write_at(bytes, 0));
    assert!(written.is_ok(), "a simulated disk without limits");
    // A record of another kind of log, or of a newer program, stops it.
    let Ok(SpoolContents { end, drained, .. }) = look(&disk, PARTITIONS) else { return };
    assert!(end.end.offset <= bytes.len() as u64);
    assert!(drained.iter().all(|offset| *offset <= end.end.offset));
    let mut see = |record: Record<'_>| -> Result<(), DecodeError> {
        if record.kind == Kind::Named
            && let Ok(batch) = record::batch_of(&record)
        {
            let mut again = Vec::new();
            put_batch(&mut again, &batch);
            let second = record::batch_of(&Record { body: &again, ..record })?;
            assert_eq!((batch.text, batch.lines.len()), (second.text, second.lines.len()));
        }
        Ok(())
    };
    assert!(replay(&disk, dir, from, Known::default(), &mut see).is_ok(), "it was read before");
}

#[cfg(test)]
mod tests {
    use store::engine::UpdateBatch;
    use store::records::{LogWriter, Options};

    use super::*;

    /// The file of a spool with batches and marks.
    fn spool_file() -> Vec<u8> {
        let (disk, dir) = (SimDisk::new(1), Path::new(HERE));
        let from = Position { generation: GENERATION, offset: 0 };
        let mut log = LogWriter::open(disk.handle(), dir, from, Options::default()).unwrap();
        for number in 0..6u32 {
            let mut batch = UpdateBatch::default();
            for line in 0..=number {
                batch
                    .push(format!("d{line}/x.rrd").as_bytes(), format!("{number}:1 {number}.5:U").as_bytes());
            }
            record::append_batch(&mut log, (number % PARTITIONS, PARTITIONS), 1_700_000_000_000, &batch)
                .unwrap();
            record::append_mark(&mut log, (number % PARTITIONS, PARTITIONS), u64::from(number) * 50).unwrap();
        }
        let end = log.commit().unwrap().offset;
        let mut bytes = vec![0; end as usize];
        let file = disk.open(&filenames::log(dir, from), disk::Mode::Read).unwrap();
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
        bytes
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        let good = spool_file();
        fuzz(&good);
        let mut random = testkit::random::Random::new(1);
        for _ in 0..3000 {
            let mut bytes = good.clone();
            for _ in 0..random.between(1, 3) {
                let at = random.below(bytes.len().max(1) as u64) as usize;
                match random.below(5) {
                    0 => bytes.truncate(at),
                    1 => drop(bytes.splice(at..at, good[at.min(good.len())..].iter().take(90).copied())),
                    2 => bytes.extend_from_slice(&good[..at.min(good.len())]),
                    _ if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
                    _ => bytes.push(0),
                }
            }
            fuzz(&bytes);
        }
    }
}
