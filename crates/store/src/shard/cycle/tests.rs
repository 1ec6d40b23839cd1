use std::sync::mpsc::{Receiver, channel, sync_channel};

use rrd::definition::{Consolidation, Definition, Ds, DsKind, DsType, PlainCf, Rra};
use rrd::time::Timestamp;

use super::*;

const START: i64 = 1_700_000_000;

struct Harness {
    state: State,
    cycle: Cycle,
    jobs: Receiver<Job>,
    position: Position,
    time: i64,
}

impl Harness {
    fn new(rrd_count: u32, jobs_max: usize) -> Harness {
        let mut state = State::new(START, 1024);
        let kind = DsKind::Fed { ds_type: DsType::Gauge, heartbeat: 20, min: f64::NAN, max: f64::NAN };
        let ds = vec![Ds { name: "a".into(), kind }];
        let cf = Consolidation::Plain { cf: PlainCf::Average, xff: 0.5 };
        let rra = vec![Rra { cf, pdp_per_row: 1, row_count: 100 }];
        let definition = Definition { version: 3, units_per_second: 1, step: 10, ds, rra };
        for id in 0..rrd_count {
            state.create(id, format!("{id}.rrd").as_bytes(), definition.clone(), START);
        }
        let (sender, jobs) = sync_channel(jobs_max);
        let cycle = Cycle::new(sender, Position::default(), 64, 1000);
        Harness { state, cycle, jobs, position: Position::default(), time: START }
    }

    /// A row for each RRD.
    fn update(&mut self) {
        self.time += 10;
        for id in 0..self.state.catalogue.next_id() {
            self.state.replay_update(id, Timestamp::whole(self.time), b"1").unwrap();
        }
    }

    fn turn(&mut self, busy: bool) {
        self.cycle.turn(&mut self.state, self.position, &|| START, &|| busy);
    }

    /// The jobs sent to the checkpointer: B(egin), P(age), E(nd).
    fn handed_over(&self) -> String {
        let letter = |job| match job {
            Job::Begin { .. } => 'B',
            Job::Page(_) => 'P',
            Job::End(..) => 'E',
        };
        self.jobs.try_iter().map(letter).collect()
    }
}

#[test]
fn a_cycle_starts_when_the_open_rows_or_the_log_reach_their_limit() {
    let mut by_rows = Harness::new(1, 16);
    let limit = by_rows.cycle.open_bytes_max(&by_rows.state);
    // At least what one RRD may have, although the options say 64 bytes.
    assert_eq!(limit, OPEN_BYTES_PER_RRD);
    while by_rows.state.open().bytes() < limit {
        by_rows.turn(false);
        assert_eq!(by_rows.handed_over(), "");
        by_rows.update();
    }
    by_rows.turn(false);
    assert_eq!(by_rows.handed_over(), "BPE");

    let mut by_log = Harness::new(1, 16);
    by_log.position.offset = 999;
    by_log.turn(false);
    assert_eq!(by_log.handed_over(), "");
    by_log.position.offset = 1000;
    by_log.turn(false);
    assert_eq!(by_log.handed_over(), "BPE");
}

#[test]
fn under_load_a_round_takes_one_page() {
    let mut harness = Harness::new(PAGE_IDS * 2 + 1, 16);
    harness.position.offset = 1000;
    for want in ["BP", "P", "P", "E", "", ""] {
        harness.turn(true);
        assert_eq!(harness.handed_over(), want);
    }
}

#[test]
fn a_lagging_checkpointer_loses_no_job() {
    let mut harness = Harness::new(PAGE_IDS + 1, 1);
    harness.position.offset = 1000;
    let mut jobs = String::new();
    for want_held in [true, true, true, false, false] {
        harness.turn(false);
        assert_eq!(harness.cycle.holds_job(), want_held, "after {jobs}");
        jobs += &harness.handed_over();
    }
    assert_eq!(jobs, "BPPE");
}

#[test]
fn replay_starts_where_the_last_completed_cycle_began() {
    let mut harness = Harness::new(1, 16);
    harness.position.offset = 5000;
    harness.turn(false);
    harness.position.offset = 5900;
    assert_eq!((harness.cycle.replay_from().offset, harness.cycle.log_bytes(harness.position)), (0, 5900));
    harness.cycle.end(&Ok(()));
    assert_eq!((harness.cycle.replay_from().offset, harness.cycle.log_bytes(harness.position)), (5000, 900));
    harness.turn(false);
    assert_eq!(harness.handed_over(), "BPE", "no second cycle is due yet");
}

#[test]
fn a_failed_cycle_keeps_its_rows_and_is_reported() {
    let mut harness = Harness::new(1, 16);
    harness.position.offset = 1000;
    harness.turn(false);
    let failure = StoreError::Poisoned("worn out".into());
    harness.cycle.end(&Err(failure.clone()));
    assert_eq!(harness.cycle.failure(), Some(&failure));
    assert_eq!(harness.cycle.replay_from().offset, 0);
    harness.position.offset = 9000;
    harness.turn(false);
    assert_eq!(harness.handed_over(), "BPE", "the next one does not start");
    assert!(!harness.cycle.is_overdue(&harness.state), "commands are refused, not held back");
}

#[test]
fn memory_that_fills_up_during_a_cycle_blocks_commands() {
    let mut harness = Harness::new(1, 16);
    let limit = harness.cycle.open_bytes_max(&harness.state);
    let fill = |harness: &mut Harness| {
        while harness.state.open().bytes() < limit {
            harness.update();
        }
    };
    fill(&mut harness);
    assert!(!harness.cycle.is_overdue(&harness.state), "the cycle has only to start");
    harness.turn(false);
    assert!(!harness.cycle.is_overdue(&harness.state));
    fill(&mut harness);
    assert!(harness.cycle.is_overdue(&harness.state));
    harness.cycle.end(&Ok(()));
    assert!(!harness.cycle.is_overdue(&harness.state));
}

#[test]
fn a_request_is_answered_by_a_cycle_that_starts_later() {
    let mut harness = Harness::new(1, 16);
    let (sender, answers) = channel();
    let reply = |name: &'static str| -> Reply<Result<(), StoreError>> {
        let sender = sender.clone();
        Box::new(move |result| sender.send((name, result)).unwrap())
    };
    harness.cycle.ask(reply("first"));
    assert!(harness.cycle.wants_turn());
    harness.turn(false);
    harness.cycle.ask(reply("second"));
    assert!(!harness.cycle.wants_turn(), "the first cycle is still with the checkpointer");
    harness.cycle.end(&Ok(()));
    harness.cycle.answer(&Ok(()));
    assert_eq!(answers.try_iter().collect::<Vec<_>>(), [("first", Ok(()))]);
    assert!(harness.cycle.wants_turn());
    harness.cycle.refuse_requested(&StoreError::Stopping);
    assert_eq!(answers.try_iter().collect::<Vec<_>>(), [("second", Err(StoreError::Stopping))]);
}
