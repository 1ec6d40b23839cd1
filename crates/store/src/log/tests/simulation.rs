//! The log against a disk that loses, tears and fills up: random histories by seed, checked against a model.

use super::*;

/// The records that must and that may be replayed.
struct Model {
    /// Where each record starts and its body, in order; the sequence is the index.
    records: Vec<(Position, Vec<u8>)>,
    /// Records before this one survive anything.
    durable: usize,
    /// Records that were committed.
    committed: usize,
    /// The record replay starts from.
    kept: usize,
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Checks a replay from `kept` against the model and returns how many records there are in all.
fn check(model: &Model, disk: &SimDisk, at_least: usize, what: &str) -> (usize, Position) {
    let from = model.start_of(model.kept);
    let (records, end) = read_all(disk, from);
    assert!(end.damage.is_empty(), "{what}: {:?}", end.damage);
    assert_eq!(end.record_count, records.len() as u64);
    for (index, (sequence, body)) in records.iter().enumerate() {
        assert_eq!(*sequence as usize, model.kept + index, "{what}");
        assert!(
            model.records[model.kept + index].1 == *body,
            "{what}: record {sequence} is not what was written"
        );
    }
    let count = model.kept + records.len();
    assert!(count >= at_least.max(model.kept), "{what}: {count} records, {at_least} were promised");
    (count, end.end)
}

impl Model {
    fn start_of(&self, record: usize) -> Position {
        self.records.get(record).map_or_else(|| self.end(), |(start, _)| *start)
    }

    fn end(&self) -> Position {
        let after =
            |(start, body): &(Position, Vec<u8>)| start.plus((envelope::ENVELOPE_BYTES + body.len()) as u64);
        self.records.last().map_or_else(start, after)
    }
}

fn append(model: &mut Model, log: &mut LogWriter, random: &mut Random) {
    let length = if random.below(20) == 0 { random.below(2500) } else { random.below(200) };
    let body: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
    model.records.push((log.position(), body.clone()));
    log.append(Kind::Updates, stamp(model.records.len() as u64 - 1), &body).unwrap();
}

fn one_history(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut disk = SimDisk::new(seed);
    let mut log = open(&disk.handle(), start());
    let mut model = Model { records: Vec::new(), durable: 0, committed: 0, kept: 0 };
    for step in 0..60 {
        let what = format!("seed {seed}, step {step}");
        match random.below(12) {
            0..=4 => {
                append(&mut model, &mut log, &mut random);
                if random.below(3) > 0 {
                    log.commit().unwrap();
                    model.committed = model.records.len();
                }
            }
            5..=6 => {
                log.syncer().sync().unwrap();
                model.durable = model.committed;
            }
            7 => {
                // A checkpoint may be of anything committed: it does not need the log it covers.
                model.kept += random.below((model.committed - model.kept) as u64 + 1) as usize;
                model.durable = model.durable.max(model.kept);
                log.release_before(model.start_of(model.kept)).unwrap();
            }
            8 => {
                append(&mut model, &mut log, &mut random);
                // Nearly always it is the reservation that finds the disk full; a write may, too.
                match random.below(2) {
                    0 => disk.set_capacity(disk.used_bytes() + random.below(1500)),
                    _ => disk.fail(Operation::Write, 0, io::ErrorKind::StorageFull),
                }
                match log.commit() {
                    Ok(_) => model.committed = model.records.len(),
                    Err(LogError::Full(_)) if random.below(2) == 0 => {
                        log.discard();
                        model.records.truncate(model.committed);
                    }
                    Err(LogError::Full(_)) => {}
                    Err(other) => panic!("{what}: {other}"),
                }
                disk.set_capacity(u64::MAX);
            }
            9 => {
                disk = disk.kill();
                restart(&mut model, &mut log, &disk, &what, false);
            }
            10 if random.below(2) == 0 => {
                // The power goes in the middle of a commit or a roll or a sync.
                disk.power_off_after(random.below(4));
                append(&mut model, &mut log, &mut random);
                if log.commit().is_ok() {
                    model.committed = model.records.len();
                    if log.syncer().sync().is_ok() {
                        model.durable = model.committed;
                    }
                }
                disk = disk.crash();
                restart(&mut model, &mut log, &disk, &what, true);
            }
            _ => {
                disk = disk.crash();
                restart(&mut model, &mut log, &disk, &what, true);
            }
        }
    }
    check(&model, &disk, model.committed, &format!("seed {seed}, at the end"));
}

fn restart(model: &mut Model, log: &mut LogWriter, disk: &SimDisk, what: &str, power_lost: bool) {
    let promised = if power_lost { model.durable } else { model.committed };
    let (count, end) = check(model, disk, promised, what);
    model.records.truncate(count);
    model.committed = count;
    *log = open(&disk.handle(), end);
    // Opening makes what was found durable.
    model.durable = count;
}

#[test]
fn exactly_the_promised_records_are_replayed() {
    for seed in 0..4000 {
        one_history(seed);
    }
}
