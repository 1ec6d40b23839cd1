use std::path::Path;

use rrd::definition::{Consolidation, Definition, Ds, DsKind, DsType, PlainCf, Rra};
use rrd::time::Timestamp;

use super::survey::{Frame, Visitor, survey};
use super::*;
use crate::disk::sim::SimDisk;
use crate::group::Geometry;
use crate::shard::pages::{take_end, take_page};
use crate::shard::state::State;

const START: i64 = 1_700_000_000;
/// Enough for several threads.
const RRDS: u32 = PAGE_IDS * 40 + 3;

fn state() -> State {
    let mut state = State::new(START, 1024);
    let kind = |heartbeat| DsKind::Fed { ds_type: DsType::Gauge, heartbeat, min: f64::NAN, max: f64::NAN };
    let cf = Consolidation::Plain { cf: PlainCf::Average, xff: 0.5 };
    for id in 0..RRDS {
        let ds = vec![Ds { name: "a".into(), kind: kind(20 + u64::from(id % 3)) }];
        let rra = vec![Rra { cf: cf.clone(), pdp_per_row: 1, row_count: 10 + u64::from(id % 2) }];
        let definition = Definition { version: 3, units_per_second: 1, step: 10, ds, rra };
        state.create(id, format!("{id}.rrd").as_bytes(), definition, START);
        state.replay_update(id, Timestamp::whole(START + 20), id.to_string().as_bytes()).unwrap();
    }
    state.delete(5);
    state
}

fn path() -> &'static Path {
    Path::new("checkpoint")
}

fn write(state: &State) -> SimDisk {
    let disk = SimDisk::new(1);
    let mut writer =
        CheckpointWriter::create(&*disk.handle(), path(), Label { owner: 5, number: 9 }).unwrap();
    let position = |id| Position { generation: 0, offset: u64::from(id) };
    for first_id in (0..RRDS).step_by(PAGE_IDS as usize) {
        writer.push(&take_page(state, first_id, position(first_id))).unwrap();
    }
    writer.push(&take_end(state, position(RRDS))).unwrap();
    writer.finish().unwrap();
    disk
}

/// What came, as text.
#[derive(Default)]
struct Seen {
    rrds: Vec<String>,
    groups: Vec<Geometry>,
    frames: Vec<Frame>,
    damage: Vec<String>,
}

impl Loader for Seen {
    fn group(&mut self, geometry: Geometry) {
        self.groups.push(geometry);
    }

    fn page(&mut self, _: &[PageDefinition<'_>]) {}

    fn rrd(&mut self, rrd: LoadedRrd<'_>) {
        let name = String::from_utf8_lossy(rrd.name);
        self.rrds.push(format!(
            "{} {name} {:?} {:?} {:?}",
            rrd.id,
            rrd.definition.definition,
            rrd.head_words(),
            rrd.open
        ));
    }
}

impl Visitor for Seen {
    fn frame(&mut self, frame: &Frame) {
        self.frames.push(*frame);
    }

    fn damage(&mut self, error: CheckpointError) {
        self.damage.push(error.to_string());
    }
}

#[test]
fn checkpoints_round_trip_in_order() {
    let state = state();
    let disk = write(&state);
    let mut seen = Seen::default();
    let loaded = load(&*disk.handle(), path(), 5, &mut seen).unwrap();
    assert_eq!((loaded.next_id, loaded.pages.len()), (RRDS, 41));
    assert_eq!(loaded.label, Label { owner: 5, number: 9 });
    assert_eq!(loaded.pages[1], (2 * PAGE_IDS, Position { generation: 0, offset: u64::from(PAGE_IDS) }));
    assert_eq!(seen.groups, state.groups().iter().map(|one| one.group.geometry.clone()).collect::<Vec<_>>());
    assert_eq!(seen.rrds.len(), RRDS as usize - 1);
    for (id, rrd) in state.catalogue.ids().zip(&seen.rrds) {
        let entry = *state.catalogue.get(id).unwrap();
        let definition = state.catalogue.definition(entry.definition);
        let start = format!("{id} {id}.rrd {definition:?} {:?} [", state.live(id, &entry).words);
        assert!(rrd.starts_with(&start), "{rrd}\n{start}");
        assert!(rrd.contains("LoadedRows"), "{rrd}");
    }
}

#[test]
fn a_damaged_page_costs_its_rrds_and_inspect_skips_it() {
    let disk = write(&state());
    let mut whole = Seen::default();
    assert!(survey(&*disk.handle(), path(), &mut whole).unwrap());
    let page = whole.frames[30];
    disk.flip_bit(path(), (page.offset + 100) * 8).unwrap();
    let want = format!(
        "checkpoint checkpoint is damaged at byte {}: the checksum does not match; `roundel repair` says what can be restored",
        page.offset
    );
    let mut seen = Seen::default();
    let loaded = load(&*disk.handle(), path(), 5, &mut seen).unwrap();
    let [lost] = &loaded.lost[..] else { panic!("{:?}", loaded.lost) };
    assert_eq!((lost.ids.clone(), lost.error.to_string()), (30 * PAGE_IDS..31 * PAGE_IDS, want.clone()));
    assert_eq!(loaded.pages.len(), 41);
    assert_eq!(loaded.pages[30], (31 * PAGE_IDS, Position::default()), "the log is asked for all of it");
    let mut survived = Seen::default();
    assert!(survey(&*disk.handle(), path(), &mut survived).unwrap());
    assert_eq!(survived.damage, [want]);
    assert_eq!(survived.rrds.len(), whole.rrds.len() - PAGE_IDS as usize);
}

/// Whatever happens to the head of a page, the frames after it are found.
#[test]
fn a_damaged_head_costs_its_page_and_a_damaged_end_the_checkpoint() {
    let state = state();
    let mut whole = Seen::default();
    assert!(survey(&*write(&state).handle(), path(), &mut whole).unwrap());
    for bit in (0..FRAME_HEAD_BYTES as u64 * 8).step_by(7) {
        let disk = write(&state);
        disk.flip_bit(path(), whole.frames[7].offset * 8 + bit).unwrap();
        let mut seen = Seen::default();
        let loaded = load(&*disk.handle(), path(), 5, &mut seen).unwrap();
        let [lost] = &loaded.lost[..] else { panic!("bit {bit}: {:?}", loaded.lost) };
        assert_eq!(lost.ids, 7 * PAGE_IDS..8 * PAGE_IDS, "bit {bit}");
        let at = format!("at byte {}:", whole.frames[7].offset);
        assert!(lost.error.to_string().contains(&at), "bit {bit}: {}", lost.error);
        assert_eq!(seen.rrds.len(), whole.rrds.len() - PAGE_IDS as usize);
        let disk = write(&state);
        let end = whole.frames.last().unwrap();
        disk.flip_bit(path(), end.offset * 8 + bit).unwrap();
        assert!(load(&*disk.handle(), path(), 5, &mut Seen::default()).is_err(), "bit {bit} of the end");
    }
}
