//! What the manifest knows of a log, and what is put aside and put in its place.

use super::*;
use crate::log::{put_aside, straighten};

fn known(durable: u64, newest_file: u64) -> Known {
    Known { durable: at(durable), newest_file: at(newest_file), owner: 0 }
}

/// Two files of six records each, synced only once, at the end: no record's mark proves anything.
fn written() -> SimDisk {
    let disk = SimDisk::new(1);
    let mut log = open(&disk.handle(), start());
    write(&mut log, 0..12);
    log.syncer().sync().unwrap();
    assert_eq!((log.syncer().durable(), log.syncer().newest_file()), (at(12), at(6)));
    disk
}

fn replay_known(disk: &SimDisk, known: Known) -> (Vec<u64>, ReplayEnd) {
    let mut sequences = Vec::new();
    let end = replay(disk, Path::new(DIR), start(), known, &mut |record| {
        sequences.push(record.stamp.sequence);
        Ok::<(), Infallible>(())
    });
    (sequences, end.unwrap())
}

#[test]
fn a_log_that_ends_before_its_durable_end_is_damaged() {
    // The last record, the last file, and all of it.
    let disk = written();
    disk.flip_bit(&log_file(at(6)), (5 * RECORD + 70) * 8).unwrap();
    let (sequences, end) = replay_known(&disk, known(12, 6));
    assert_eq!((sequences.len(), end.end, end.damage.len()), (11, at(12), 1));
    assert_eq!((end.damage[0].from, end.damage[0].to), (at(11), at(12)));
    let disk = written();
    disk.remove(&log_file(at(6))).unwrap();
    let (sequences, end) = replay_known(&disk, known(12, 6));
    assert_eq!((sequences.len(), end.end), (6, at(12)));
    assert_eq!((&end.damage[0].path, end.damage[0].file_offset), (&log_file(at(6)), 0));
    disk.remove(&log_file(start())).unwrap();
    let (sequences, end) = replay_known(&disk, known(12, 6));
    assert_eq!((sequences.len(), end.end, end.damage.len()), (0, at(12), 1));
    // Writing continues there, and the range stays damaged, not the end.
    write(&mut open(&disk.handle(), end.end), 12..14);
    let (sequences, end) = replay_known(&disk, Known::default());
    assert_eq!((sequences, end.end, end.damage.len()), (vec![12, 13], at(14), 1));
}

#[test]
fn records_before_the_durable_end_survive_what_is_missing_before_them() {
    let disk = written();
    disk.flip_bit(&log_file(start()), (2 * RECORD + 70) * 8).unwrap();
    let (sequences, end) = replay_known(&disk, Known::default());
    assert_eq!((sequences.len(), end.end, end.damage.len()), (2, at(2), 0));
    let cut = end.cut.unwrap();
    assert_eq!((cut.from, cut.to, cut.record_count), (at(2), at(12), 9));
    assert_eq!(
        cut.to_string(),
        "log file shard/log-00000001-0000000000000000 ends at byte 328 (position 1:328); \
         9 complete records in the 1640 bytes after it lack what was before them"
    );
    let (sequences, end) = replay_known(&disk, known(12, 6));
    assert_eq!((sequences.len(), end.end, end.damage.len(), end.cut), (11, at(12), 1, None));
    // The manifest vouches for some of them only.
    disk.flip_bit(&log_file(at(6)), (3 * RECORD + 70) * 8).unwrap();
    let (sequences, end) = replay_known(&disk, known(8, 6));
    assert_eq!((sequences.len(), end.end, end.damage.len()), (8, at(9), 1));
    assert_eq!(end.cut.unwrap().record_count, 2);
}

#[test]
fn what_is_cut_is_copied_aside_once() {
    let disk = written();
    disk.flip_bit(&log_file(start()), (2 * RECORD + 70) * 8).unwrap();
    let end = replay_known(&disk, Known::default()).1;
    let copies = put_aside(&disk, Path::new(DIR), &end).unwrap();
    assert_eq!(copies.len(), 2, "{copies:?}");
    assert_eq!(
        copies[1],
        Path::new(DIR)
            .join(log_file(at(6)).file_name().unwrap().to_string_lossy().replace("log", "damaged-log"))
    );
    assert!(put_aside(&disk, Path::new(DIR), &end).unwrap().is_empty());
    // A torn record, as a crash leaves it, needs no attention.
    let disk = written();
    disk.flip_bit(&log_file(at(6)), (5 * RECORD + 70) * 8).unwrap();
    let end = replay_known(&disk, Known::default()).1;
    assert_eq!(end.cut.as_ref().map(|cut| cut.record_count), Some(0));
    assert!(put_aside(&disk, Path::new(DIR), &end).unwrap().is_empty());
}

#[test]
fn records_that_were_shifted_are_put_back() {
    for (removed, added) in
        [(0..50, 0), (RECORD - 20..2 * RECORD, 0), (0..RECORD, 0), (0..0, 33), (7..9, 300)]
    {
        let what = format!("{removed:?} {added}");
        let disk = written();
        let path = log_file(start());
        let file = disk.open(&path, Mode::Write).unwrap();
        let mut bytes = vec![0; file.length().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        let from = (2 * RECORD + removed.start) as usize..(2 * RECORD + removed.end) as usize;
        bytes.splice(from, vec![1; added]);
        disk.remove(&path).unwrap();
        disk.create(&path).unwrap().write_at(&bytes, 0).unwrap();
        let end = replay_known(&disk, known(12, 6)).1;
        assert_eq!(end.misplaced, std::slice::from_ref(&path), "{what}");
        straighten(&disk, Path::new(DIR), &path, 0).unwrap();
        let (sequences, end) = replay_known(&disk, known(12, 6));
        assert_eq!((end.end, end.misplaced.len()), (at(12), 0), "{what}");
        let lost: Vec<u64> = (0..12).filter(|sequence| !sequences.contains(sequence)).collect();
        let hit = removed.end.div_ceil(RECORD).max(1);
        let want: Vec<u64> = if removed.is_empty() { Vec::new() } else { (2..2 + hit).collect() };
        assert_eq!(lost, want, "{what}");
    }
}

#[test]
fn records_of_another_shard_are_damage() {
    let disk = SimDisk::new(1);
    let options = Options { owner: 7, ..options() };
    let mut log = LogWriter::open(disk.handle(), Path::new(DIR), start(), options).unwrap();
    write(&mut log, 0..5);
    let read = |owner| replay_known(&disk, Known { owner, ..known(5, 0) });
    assert_eq!(read(7).0.len(), 5);
    assert_eq!(read(0).0.len(), 5);
    let (sequences, end) = read(8);
    assert_eq!((sequences.len(), end.end), (0, at(5)));
    assert_eq!((end.damage.len(), end.damage[0].fault), (1, Fault::Stranger));
}
