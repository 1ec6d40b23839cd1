use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::disk::{Disk, RealDisk};

const DIR: &str = "shard";

fn start() -> Position {
    Position { generation: 1, offset: 0 }
}

fn stamp(sequence: u64) -> Stamp {
    Stamp { producer: 1, epoch: 0, sequence, time_ms: 0 }
}

/// Sequences and bodies from `from` on, and how replay ended.
fn read_all(disk: &dyn Disk, from: Position) -> (Vec<(u64, Vec<u8>)>, ReplayEnd) {
    let mut records = Vec::new();
    let end = replay(disk, Path::new(DIR), from, &mut |record| {
        records.push((record.stamp.sequence, record.body.to_vec()));
        Ok::<(), Infallible>(())
    });
    (records, end.unwrap())
}

fn sequences(disk: &dyn Disk, from: Position) -> Vec<u64> {
    read_all(disk, from).0.into_iter().map(|(sequence, _)| sequence).collect()
}

fn open(disk: &Arc<dyn Disk>, end: Position) -> LogWriter {
    let options = Options { file_bytes_max: 1000, spare_files_max: 2 };
    LogWriter::open(Arc::clone(disk), Path::new(DIR), end, options).unwrap()
}

/// Appends and commits records of these sequences, each with a body of 100 bytes.
fn write(log: &mut LogWriter, sequences: impl Iterator<Item = u64>) {
    for sequence in sequences {
        log.append(Kind::Updates, stamp(sequence), &[sequence as u8; 100]).unwrap();
        log.commit().unwrap();
    }
}

#[test]
fn what_is_committed_comes_back_in_order_across_files_and_restarts() {
    let root = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(root.path()).unwrap());
    assert_eq!(read_all(&*disk, start()).1.end, start());
    let mut log = open(&disk, start());
    write(&mut log, 0..20);
    assert_eq!(log.committed().offset, 20 * 164);
    let syncer = log.syncer();
    assert_eq!(syncer.durable(), start());
    assert_eq!(syncer.sync().unwrap(), log.committed());
    drop(log);
    let (records, end) = read_all(&*disk, start());
    assert_eq!(records, (0..20).map(|n| (n, vec![n as u8; 100])).collect::<Vec<_>>());
    assert_eq!((end.end.offset, end.record_count, end.damage.len()), (20 * 164, 20, 0));
    let mut log = open(&disk, end.end);
    write(&mut log, 20..30);
    assert_eq!(sequences(&*disk, start()), (0..30).collect::<Vec<_>>());
    assert_eq!(sequences(&*disk, Position { offset: 164 * 7, ..start() }), (7..30).collect::<Vec<_>>());
    let names = disk.list(Path::new(DIR)).unwrap();
    assert_eq!(names.len(), 5, "six records of 164 bytes fill a file of 1,000: {names:?}");
}
