use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::disk::sim::Operation;
use crate::disk::{Disk, Mode, RealDisk, SimDisk};
use crate::filenames;

const DIR: &str = "shard";
/// Bytes of a record with a body of 100.
const RECORD: u64 = 164;
/// Records in a file of the tests.
const PER_FILE: u64 = 6;

fn options() -> Options {
    Options { file_bytes_max: 1000, spare_files_max: 2, owner: 0 }
}

fn start() -> Position {
    Position { generation: 1, offset: 0 }
}

fn at(record: u64) -> Position {
    Position { offset: record * RECORD, ..start() }
}

fn stamp(sequence: u64) -> Stamp {
    Stamp { producer: 1, epoch: 0, sequence, time_ms: 0 }
}

/// Sequences and bodies from `from` on, and how replay ended.
fn read_all(disk: &dyn Disk, from: Position) -> (Vec<(u64, Vec<u8>)>, ReplayEnd) {
    let mut records = Vec::new();
    let end = replay(disk, Path::new(DIR), from, Known::default(), &mut |record| {
        records.push((record.stamp.sequence, record.body.to_vec()));
        Ok::<(), Infallible>(())
    });
    (records, end.unwrap())
}

fn sequences(disk: &dyn Disk, from: Position) -> Vec<u64> {
    read_all(disk, from).0.into_iter().map(|(sequence, _)| sequence).collect()
}

fn open(disk: &Arc<dyn Disk>, end: Position) -> LogWriter {
    LogWriter::open(Arc::clone(disk), Path::new(DIR), end, options()).unwrap()
}

fn log_file(start: Position) -> std::path::PathBuf {
    filenames::log(Path::new(DIR), start)
}

/// Appends and commits records of these sequences, each with a body of 100 bytes.
fn write(log: &mut LogWriter, sequences: impl IntoIterator<Item = u64>) {
    for sequence in sequences {
        log.append(Kind::Updates, stamp(sequence), &[sequence as u8; 100]).unwrap();
        log.commit().unwrap();
    }
}

#[test]
fn commits_are_replayed_in_order_across_files_and_restarts() {
    let root = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(root.path()).unwrap());
    assert_eq!(read_all(&*disk, start()).1.end, start());
    let mut log = open(&disk, start());
    write(&mut log, 0..20);
    assert_eq!(log.committed(), at(20));
    let syncer = log.syncer();
    assert_eq!(syncer.durable(), start());
    assert_eq!(syncer.sync().unwrap(), log.committed());
    drop(log);
    let (records, end) = read_all(&*disk, start());
    assert_eq!(records, (0..20).map(|n| (n, vec![n as u8; 100])).collect::<Vec<_>>());
    assert_eq!((end.end, end.record_count, end.damage.len()), (at(20), 20, 0));
    let mut log = open(&disk, end.end);
    write(&mut log, 20..30);
    assert_eq!(sequences(&*disk, start()), (0..30).collect::<Vec<_>>());
    assert_eq!(sequences(&*disk, at(7)), (7..30).collect::<Vec<_>>());
    let names = disk.list(Path::new(DIR)).unwrap();
    assert_eq!(names.len() as u64, 30 / PER_FILE, "{names:?}");
}

#[test]
fn a_commit_is_one_write_and_a_body_may_be_written_in_place() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk.handle(), start());
    for sequence in 0..5 {
        log.begin(Kind::Create, stamp(sequence)).extend_from_slice(b"in place");
        assert_eq!(log.end().unwrap().offset, (sequence + 1) * 72);
    }
    log.begin(Kind::Create, stamp(9)).extend_from_slice(b"given up");
    log.cancel();
    assert_eq!((log.pending_bytes(), log.committed(), log.position().offset), (360, start(), 360));
    log.commit().unwrap();
    assert_eq!(disk.counts().writes, 1);
    log.append(Kind::Create, stamp(9), b"given up too").unwrap();
    log.discard();
    log.commit().unwrap();
    assert_eq!(disk.counts().writes, 1);
    let (records, end) = read_all(&disk, start());
    assert_eq!(records, (0..5).map(|n| (n, b"in place".to_vec())).collect::<Vec<_>>());
    assert_eq!(end.end, log.committed());
}

#[test]
fn a_body_over_the_limit_is_refused_and_nothing_else_is_lost() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk.handle(), start());
    log.append(Kind::Import, stamp(0), b"small").unwrap();
    let error = log.append(Kind::Import, stamp(1), &vec![0; BODY_BYTES_MAX + 1]).unwrap_err();
    assert_eq!(error.to_string(), "cannot log a record of 67108865 bytes: 67108864 are the limit");
    // Larger than a file: a file of its own.
    log.append(Kind::Import, stamp(2), &[7; 5000]).unwrap();
    log.commit().unwrap();
    write(&mut log, 3..5);
    assert_eq!(sequences(&disk, start()), [0, 2, 3, 4]);
    assert_eq!(disk.list(Path::new(DIR)).unwrap().len(), 2);
}

#[test]
fn old_records_of_reused_files_never_reappear() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk.handle(), start());
    let syncer = log.syncer();
    for round in 0..10 {
        write(&mut log, round * PER_FILE..(round + 1) * PER_FILE);
        syncer.sync().unwrap();
        log.release_before(at(round * PER_FILE + 3)).unwrap();
        let files = disk.list(Path::new(DIR)).unwrap().len();
        assert!(files <= 4, "one in use, one behind, two spare: {files}");
    }
    // Three records into a recycled file whose old records end at the same places.
    write(&mut log, 60..63);
    let (records, end) = read_all(&disk, at(57));
    assert_eq!(records.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [57, 58, 59, 60, 61, 62]);
    assert_eq!((end.end, end.damage), (at(63), vec![]));
    assert!(disk.open(&log_file(at(60)), Mode::Read).unwrap().length().unwrap() == 1000);
    assert_eq!(log.bytes_since(at(57)), 6 * RECORD);
}

#[test]
fn a_full_disk_refuses_commits_until_there_is_room() {
    for capacity in (0..4000).step_by(61) {
        let disk = SimDisk::new(capacity);
        let mut log = open(&disk.handle(), start());
        disk.set_capacity(capacity);
        let mut refused = 0;
        for sequence in 0..20 {
            log.append(Kind::Updates, stamp(sequence), &[0; 100]).unwrap();
            match log.commit() {
                Ok(_) => {}
                Err(LogError::Full(error)) => {
                    refused += 1;
                    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
                    let kept = log.committed().offset / RECORD;
                    assert_eq!(sequences(&disk, start()), (0..kept).collect::<Vec<_>>());
                    assert!(matches!(log.commit(), Err(LogError::Full(_))), "full twice");
                    disk.set_capacity(u64::MAX);
                    assert_eq!(log.commit().unwrap(), at(sequence + 1), "the same records go in later");
                }
                Err(other) => panic!("capacity {capacity}: {other}"),
            }
        }
        assert!(refused == 1 || capacity >= 4000, "capacity {capacity}: {refused}");
        assert_eq!(log.syncer().sync().unwrap(), at(20));
        assert_eq!(sequences(&disk.crash(), start()), (0..20).collect::<Vec<_>>());
    }
}

#[test]
fn after_a_full_disk_refused_records_can_be_discarded() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk.handle(), start());
    write(&mut log, 0..1);
    disk.fail(Operation::Write, 0, io::ErrorKind::StorageFull);
    log.append(Kind::Updates, stamp(66), &[0; 100]).unwrap();
    assert!(matches!(log.commit(), Err(LogError::Full(_))));
    log.discard();
    write(&mut log, 1..3);
    assert_eq!(sequences(&disk, start()), [0, 1, 2]);
}

#[test]
fn a_failed_write_or_sync_poisons_the_log() {
    let check = |fail: &dyn Fn(&SimDisk, &mut LogWriter) -> LogError, want: &str| {
        let disk = SimDisk::new(1);
        let mut log = open(&disk.handle(), start());
        write(&mut log, 0..1);
        let first = fail(&disk, &mut log).to_string();
        assert!(first.contains(want), "{first}");
        let refused = [
            log.commit().unwrap_err(),
            log.release_before(start()).unwrap_err(),
            log.syncer().sync().unwrap_err(),
        ];
        for error in refused {
            assert_eq!(error.to_string(), first);
        }
        assert_eq!(sequences(&disk, start()).first(), Some(&0), "reads go on");
    };
    let write_fails = |disk: &SimDisk, log: &mut LogWriter| {
        disk.fail(Operation::Write, 0, io::ErrorKind::Other);
        log.append(Kind::Updates, stamp(1), b"x").unwrap();
        log.commit().unwrap_err()
    };
    check(&write_fails, "the log takes no more writes: cannot write shard/log-00000001-0000000000000000:");
    let sync_fails = |disk: &SimDisk, log: &mut LogWriter| {
        disk.fail(Operation::Sync, 0, io::ErrorKind::StorageFull);
        log.syncer().sync().unwrap_err()
    };
    check(&sync_fails, "the log takes no more writes: cannot sync shard/log-00000001-0000000000000000:");
    let names_fail = |disk: &SimDisk, log: &mut LogWriter| {
        disk.fail(Operation::SyncDir, 0, io::ErrorKind::Other);
        log.syncer().sync().unwrap_err()
    };
    check(&names_fail, "the log takes no more writes: cannot sync directory shard:");
    let roll_fails = |disk: &SimDisk, log: &mut LogWriter| {
        disk.fail(Operation::Create, 0, io::ErrorKind::PermissionDenied);
        log.append(Kind::Updates, stamp(1), &[0; 900]).unwrap();
        log.commit().unwrap_err()
    };
    check(&roll_fails, "cannot create shard/log-00000001-00000000000000a4:");
    let cut_fails = |disk: &SimDisk, log: &mut LogWriter| {
        disk.fail(Operation::Write, 0, io::ErrorKind::StorageFull);
        disk.fail(Operation::Truncate, 0, io::ErrorKind::Other);
        log.append(Kind::Updates, stamp(1), b"x").unwrap();
        log.commit().unwrap_err()
    };
    check(&cut_fails, "cannot truncate shard/log-00000001-0000000000000000:");
}

#[test]
fn damage_to_durable_records_is_reported_and_contained() {
    // Two files of six records; a sync after each, so that record n carries the mark n.
    let written = || {
        let disk = SimDisk::new(1);
        let mut log = open(&disk.handle(), start());
        for sequence in 0..12 {
            write(&mut log, [sequence]);
            log.syncer().sync().unwrap();
        }
        disk
    };
    for bit in (0..10 * RECORD * 8).step_by(7) {
        let (file, within) = (bit / (PER_FILE * RECORD * 8), bit % (PER_FILE * RECORD * 8));
        let hit = bit / (RECORD * 8);
        let disk = written();
        disk.flip_bit(&log_file(at(file * PER_FILE)), within).unwrap();
        let (records, end) = read_all(&disk, start());
        let want: Vec<u64> = (0..12).filter(|&sequence| sequence != hit).collect();
        assert_eq!(records.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), want, "bit {bit}");
        let [damage] = &end.damage[..] else { panic!("bit {bit}: {:?}", end.damage) };
        assert_eq!((damage.from, damage.to, end.end), (at(hit), at(hit + 1), at(12)), "bit {bit}");
        assert_eq!(damage.path, log_file(at(file * PER_FILE)));
        assert_eq!(damage.file_offset, (hit - file * PER_FILE) * RECORD);
    }
    // A file that is gone.
    let disk = written();
    disk.remove(&log_file(start())).unwrap();
    let (records, end) = read_all(&disk, start());
    assert_eq!(records.len(), 6);
    assert_eq!(
        end.damage[0].to_string(),
        "log file shard/log-00000001-0000000000000000 is damaged at byte 0 (position 1:0, 984 bytes lost): \
         the file is missing or too short"
    );
    // The limit of the rule: damage to the last record, with nothing after it, looks like the end.
    let disk = written();
    disk.flip_bit(&log_file(at(6)), (5 * RECORD + 70) * 8).unwrap();
    let (records, end) = read_all(&disk, start());
    assert_eq!((records.len(), end.end, end.damage.len()), (11, at(11), 0));
}

#[test]
fn what_was_never_durable_is_cut_with_all_behind_it_and_stays_away() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk.handle(), start());
    write(&mut log, 0..4);
    disk.flip_bit(&log_file(start()), (RECORD + 3) * 8).unwrap();
    let (records, end) = read_all(&disk, start());
    assert_eq!((records.len(), end.end, end.damage.len()), (1, at(1), 0));
    // Records 2 and 3 are good and at their positions, and must not reappear after a new record 1.
    let disk = disk.kill();
    let mut log = open(&disk.handle(), end.end);
    write(&mut log, [8]);
    assert_eq!(sequences(&disk, start()), [0, 8]);
}

#[test]
fn a_checkpoint_may_be_ahead_of_the_log() {
    for ahead in [5, 7, 100] {
        let disk = SimDisk::new(1);
        let mut log = open(&disk.handle(), start());
        write(&mut log, 0..3);
        log.syncer().sync().unwrap();
        assert_eq!(read_all(&disk, at(ahead)).1.end, at(ahead));
        let disk = disk.kill();
        let mut log = open(&disk.handle(), at(ahead));
        write(&mut log, ahead..ahead + 4);
        log.syncer().sync().unwrap();
        let want: Vec<u64> = (ahead..ahead + 4).collect();
        assert_eq!(sequences(&disk.crash(), at(ahead)), want, "ahead {ahead}");
    }
}

#[test]
fn a_new_generation_goes_on_after_the_old_one() {
    let disk = SimDisk::new(1);
    write(&mut open(&disk.handle(), start()), 0..3);
    let disk = disk.kill();
    let mut log = open(&disk.handle(), Position { generation: 2, offset: 0 });
    write(&mut log, 3..5);
    let (records, end) = read_all(&disk, start());
    assert_eq!(records.len(), 5);
    assert_eq!(end.end, Position { generation: 2, offset: 2 * RECORD });
    log.release_before(Position { generation: 2, offset: 0 }).unwrap();
    assert_eq!(sequences(&disk, Position { generation: 2, offset: 0 }), [3, 4]);
}

#[test]
fn records_of_a_newer_program_stop_replay() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk.handle(), start());
    write(&mut log, 0..3);
    let file = disk.open(&log_file(start()), Mode::Write).unwrap();
    let mut record = vec![0; RECORD as usize];
    file.read_at(&mut record, RECORD).unwrap();
    record[envelope::VERSION_AT] = 3;
    envelope::close(&mut record);
    file.write_at(&record, RECORD).unwrap();
    let error = replay(&disk, Path::new(DIR), start(), Known::default(), &mut |_| Ok::<(), Infallible>(()))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read log file shard/log-00000001-0000000000000000 at byte 164: a record of version 3, kind 1; \
         use the newer program that wrote it"
    );
    let stopped =
        replay(&disk, Path::new(DIR), start(), Known::default(), &mut |_| Err("no more")).unwrap_err();
    assert!(matches!(stopped, ReplayError::Visitor("no more")));
}

mod damage;
mod document;
mod simulation;
