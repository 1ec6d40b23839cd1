use std::path::Path;

use rrd::definition::{Consolidation, Definition, Ds, DsKind, DsType, PlainCf, Rra};

use super::*;
use crate::disk::sim::SimDisk;
use crate::log::catalogue::{Create, Delete, Rename};
use crate::log::{Known, LogWriter, Options, Stamp, UpdatesBody};

const START: i64 = 1_700_000_000;
const DIR: &str = "shard";
const RRDS: u32 = 40;

fn definition() -> Definition {
    let kind = DsKind::Fed { ds_type: DsType::Gauge, heartbeat: 600, min: f64::NAN, max: f64::NAN };
    let rra = [1, 3].map(|pdp_per_row| Rra {
        cf: Consolidation::Plain { cf: PlainCf::Average, xff: 0.5 },
        pdp_per_row,
        row_count: 100,
    });
    let ds = vec![Ds { name: "a".into(), kind }];
    Definition { version: 3, units_per_second: 1, step: 10, ds, rra: rra.to_vec() }
}

struct Log {
    disk: SimDisk,
    writer: LogWriter,
}

impl Log {
    /// A log that makes the RRDs.
    fn new() -> Log {
        let disk = SimDisk::new(1);
        disk.handle().create_dir_all(Path::new(DIR)).unwrap();
        let writer =
            LogWriter::open(disk.handle(), Path::new(DIR), Position::default(), Options::default()).unwrap();
        let mut log = Log { disk, writer };
        for id in 0..RRDS {
            let name = format!("{id}.rrd");
            log.record(Kind::Create, |body| Create::encode(body, id, name.as_bytes(), &definition(), START));
        }
        log
    }

    fn record(&mut self, kind: Kind, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(self.writer.begin(kind, Stamp::default()));
        self.writer.end().unwrap();
        self.writer.commit().unwrap();
    }

    /// One record with a reading of each id for each time, in tens of seconds from the start.
    fn updates(&mut self, ids: &[u32], times: std::ops::Range<i64>) {
        let mut updates = UpdatesBody::default();
        for time in times {
            for &id in ids {
                let value = format!("{}", i64::from(id) * 1000 + time);
                updates.push(id, Timestamp::whole(START + time * 10), value.as_bytes());
            }
        }
        self.record(Kind::Updates, |body| updates.finish(body));
    }

    /// Opens a shard's state over it.
    fn open(&self) -> (State, Recovery) {
        let mut state = State::new(START, 1024);
        let (from, loaded) = (Position::default(), Loaded::default());
        let disk = self.disk.handle();
        let scanned =
            scan(&*disk, Path::new(DIR), from, Known::default(), (&loaded, &[]), &mut state).unwrap();
        let recovery = Recovery::start(disk, DIR.into(), from, &loaded, scanned).unwrap();
        (state, recovery)
    }
}

fn all() -> Vec<u32> {
    (0..RRDS).collect()
}

/// Three records with a tune between them.
fn sample() -> Log {
    let mut log = Log::new();
    log.updates(&all(), 1..4);
    log.record(Kind::Tune, |body| Tune::encode(body, 7, &["--minimum".into(), "a:7005".into()]));
    log.updates(&all(), 4..8);
    log.updates(&[1, 7, 7, 9], 8..9);
    log.updates(&[7], 9..12);
    log
}

fn finish(state: &mut State, recovery: &mut Recovery) -> u64 {
    loop {
        if let Progress::Done { refused } = recovery.apply_some(state).unwrap() {
            return refused;
        }
    }
}

/// Definition, head and open rows of an RRD.
fn shown(state: &State, id: u32) -> String {
    let entry = *state.catalogue.get(id).unwrap();
    let group = &state.groups()[entry.group as usize].group;
    let (rows, chain) = state.open_chain_of(id).unwrap();
    let runs: Vec<_> = rows.runs(chain, group).map(|run| (run.source, run.first_row, run.values)).collect();
    let definition = state.catalogue.definition(entry.definition);
    format!("{definition:?} {:?} {runs:?}", state.live(id, &entry))
}

#[test]
fn an_rrd_is_brought_up_to_date_alone_at_any_point_exactly_once() {
    let log = sample();
    let (mut want, mut recovery) = log.open();
    // The second reading of one time by RRD 7 is refused, live and on replay alike.
    assert_eq!(finish(&mut want, &mut recovery), 1);
    assert!(shown(&want, 7).contains("min: 7005.0"));
    for (applied, ids) in (0..5).flat_map(|applied| [(applied, [7, 9]), (applied, [9, 7])]) {
        let (mut state, mut recovery) = log.open();
        for _ in 0..applied {
            let before = (recovery.at.position, recovery.at.applied);
            while (recovery.at.position, recovery.at.applied) == before {
                assert_eq!(recovery.apply_some(&mut state), Ok(Progress::More));
            }
        }
        for id in ids {
            assert_eq!(recovery.advance(&mut state, id), Ok(true));
            assert_eq!(shown(&state, id), shown(&want, id), "after {applied} records");
        }
        // What is applied twice is refused the second time.
        assert_eq!(finish(&mut state, &mut recovery), 1, "after {applied} records");
        for id in 0..RRDS {
            assert_eq!(shown(&state, id), shown(&want, id), "after {applied} records");
        }
    }
}

#[test]
fn what_a_page_of_the_checkpoint_holds_is_not_applied_again() {
    let mut log = Log::new();
    log.updates(&all(), 1..4);
    let taken_at = log.writer.position();
    // The state of that moment stands for a checkpoint whose only page was taken then.
    let (mut state, mut recovery) = log.open();
    assert_eq!(finish(&mut state, &mut recovery), 0);
    log.record(Kind::Tune, |body| Tune::encode(body, 7, &["--minimum".into(), "a:7005".into()]));
    log.updates(&all(), 4..8);
    let loaded = Loaded { pages: vec![(RRDS, taken_at)], next_id: RRDS, ..Loaded::default() };
    let (disk, from) = (log.disk.handle(), Position::default());
    let scanned = scan(&*disk, Path::new(DIR), from, Known::default(), (&loaded, &[]), &mut state).unwrap();
    let mut recovery = Recovery::start(disk, DIR.into(), from, &loaded, scanned).unwrap();
    assert_eq!(recovery.advance(&mut state, 9), Ok(true));
    assert_eq!(finish(&mut state, &mut recovery), 0, "nothing is refused, for nothing came twice");
    let (mut want, mut recovery) = log.open();
    finish(&mut want, &mut recovery);
    for id in 0..RRDS {
        assert_eq!(shown(&state, id), shown(&want, id));
    }
}

/// The pages of a checkpoint are taken one after the other, and renames go on meanwhile.
#[test]
fn a_name_that_an_rrd_of_a_later_page_got_since_is_free_at_the_time_of_a_record() {
    let disk = SimDisk::new(1);
    disk.handle().create_dir_all(Path::new(DIR)).unwrap();
    let from = Position::default();
    let writer = LogWriter::open(disk.handle(), Path::new(DIR), from, Options::default()).unwrap();
    let mut log = Log { disk, writer };
    let (early, late) = (7, PAGE_IDS);
    for (id, name) in [(early, b"b"), (early, b"c"), (late, b"b")] {
        log.record(Kind::Rename, |body| Rename::encode(body, id, name, None));
    }
    // One is created in between and renamed, too.
    let made = PAGE_IDS * 2;
    let mut state = State::new(START, 1024);
    state.create(early, b"a", definition(), START);
    state.create(late, b"b", definition(), START);
    let pages = vec![(late, from), (made, log.writer.position())];
    log.record(Kind::Rename, |body| Rename::encode(body, late, b"e", Some(b"b")));
    log.record(Kind::Create, |body| Create::encode(body, made, b"b", &definition(), START));
    let loaded = Loaded { pages, next_id: made, ..Loaded::default() };
    let disk = log.disk.handle();
    let scanned = scan(&*disk, Path::new(DIR), from, Known::default(), (&loaded, &[]), &mut state).unwrap();
    assert_eq!(scanned.refused, 0);
    let names = [&b"c"[..], b"e", b"b"].map(|name| state.catalogue.find(name));
    assert_eq!(names, [Some(early), Some(late), Some(made)]);
}

#[test]
fn queries_of_too_many_rrds_wait_for_the_end() {
    let log = sample();
    let (mut state, mut recovery) = log.open();
    for id in 0..RRDS {
        assert_eq!(recovery.advance(&mut state, id), Ok((id as usize) < ADVANCED_MAX));
    }
    assert_eq!(recovery.advance(&mut state, 0), Ok(true), "it is up to date already");
}

#[test]
fn updates_of_an_rrd_removed_later_are_not_counted_as_refused() {
    let mut log = Log::new();
    log.updates(&[1, 2], 1..4);
    log.record(Kind::Delete, |body| Delete::encode(body, 2, None));
    log.updates(&[1, RRDS], 4..6);
    let (mut state, mut recovery) = log.open();
    assert!(state.catalogue.get(2).is_none());
    // Nothing ever made the RRD after the last.
    assert_eq!(finish(&mut state, &mut recovery), 2);
}

#[test]
fn a_log_that_cannot_be_read_again_fails_queries() {
    let log = sample();
    let (mut state, mut recovery) = (State::new(START, 1024), None);
    let (from, loaded) = (Position::default(), Loaded::default());
    let disk = log.disk.handle();
    let scanned = scan(&*disk, Path::new(DIR), from, Known::default(), (&loaded, &[]), &mut state).unwrap();
    for name in disk.list(Path::new(DIR)).unwrap() {
        disk.remove(&Path::new(DIR).join(name)).unwrap();
    }
    let recovery: &mut Recovery =
        recovery.insert(Recovery::start(disk, DIR.into(), from, &loaded, scanned).unwrap());
    let error = loop {
        match recovery.apply_some(&mut state) {
            Ok(progress) => assert_eq!(progress, Progress::More),
            Err(error) => break error,
        }
    };
    assert_eq!(error, "it has become shorter since it was checked");
    assert!(!recovery.is_running());
    assert!(recovery.advance(&mut state, 1).is_err() && recovery.apply_some(&mut state).is_err());
}
