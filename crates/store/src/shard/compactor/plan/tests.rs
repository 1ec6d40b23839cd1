use super::*;
use crate::column::codec::ColumnHint;
use crate::group::{ArchiveGeometry, Geometry};
use crate::segments::retention_class;
use rrd::definition::Cf;

const STEP: u64 = 10;
/// Rows that the only source keeps.
const KEPT: i64 = 8000;

fn groups() -> Vec<Arc<Group>> {
    let archives =
        vec![ArchiveGeometry { cf: Cf::Average, pdp_per_row: 1, row_count: KEPT as u64, is_apart: false }];
    vec![Arc::new(Group::of(Geometry { units_per_second: 1, step: STEP, ds_count: 1, archives }))]
}

/// The class of the only source.
fn class() -> u8 {
    retention_class(KEPT as u64 * STEP)
}

fn file(level: u8, class: u8, first_row: i64, end_row: i64) -> Candidate {
    let hint = ColumnHint { units_per_second: 1, step: STEP, pdp_per_row: 1 };
    let (group, source, ds_count, entry_count, bytes) = (0, 0, 1, 1, 1 << 20);
    let summary = SourceSummary { group, source, ds_count, hint, first_row, end_row, entry_count, bytes };
    Candidate { level, class, bytes, sources: vec![summary], failed: false }
}

/// `count` consecutive files of 10 rows each.
fn short(level: u8, class: u8, count: i64) -> Vec<Candidate> {
    (0..count).map(|nth| file(level, class, nth * 10, nth * 10 + 10)).collect()
}

fn check(files: &[Candidate], want: Option<(&[usize], u8)>) {
    let want = want.map(|(inputs, level)| Plan { inputs: inputs.to_vec(), level });
    assert_eq!(plan(files, &groups(), 8), want);
}

#[test]
fn eight_segments_of_a_kind_are_merged_and_seven_are_not() {
    check(&short(0, CLASS_MIXED, 7), None);
    check(&short(0, CLASS_MIXED, 8), Some((&[0, 1, 2, 3, 4, 5, 6, 7], 1)));
    check(&short(1, class(), 7), None);
    check(&short(1, class(), 8), Some((&[0, 1, 2, 3, 4, 5, 6, 7], 2)));
    let mixed: Vec<_> = [short(0, CLASS_MIXED, 7), short(1, class(), 7)].concat();
    check(&mixed, None);
}

#[test]
fn a_lagging_compactor_merges_all_segments_of_the_largest_kind() {
    let files = [short(0, CLASS_MIXED, 9), short(1, class(), 12)].concat();
    check(&files, Some((&(9..21).collect::<Vec<_>>(), 2)));
    let files = [short(0, CLASS_MIXED, 12), short(1, class(), 9)].concat();
    check(&files, Some((&(0..12).collect::<Vec<_>>(), 1)));
    let many = short(0, CLASS_MIXED, 100);
    check(&many, Some((&(0..INPUTS_MAX).collect::<Vec<_>>(), 1)));
}

#[test]
fn a_segment_of_an_eighth_of_its_retention_is_left_alone() {
    let enough = (class_seconds(class()) / SPAN_PARTS).div_ceil(STEP) as i64;
    check(&vec![file(3, class(), 0, enough); 1], None);
    // Two shorter ones that reach it together are merged at once.
    let two = [file(3, class(), 0, enough / 2), file(3, class(), enough / 2, enough + 1)];
    check(&two, Some((&[0, 1], 4)));
    // A long one between them keeps them apart.
    let apart = [file(3, class(), 0, 10), file(3, class(), 10, 10 + enough), file(3, class(), 2000, 2010)];
    check(&apart, None);
}

#[test]
fn a_flushed_segment_that_spans_much_of_its_shortest_source_is_split_at_once() {
    check(&[file(0, CLASS_MIXED, 0, KEPT / 8 - 1)], None);
    check(&[file(0, CLASS_MIXED, 0, KEPT / 8)], Some((&[0], 1)));
}

#[test]
fn four_tiny_segments_are_merged() {
    let mut files = short(1, class(), 4);
    check(&files, None);
    files.iter_mut().for_each(|file| file.bytes = TINY_BYTES - 1);
    check(&files, Some((&[0, 1, 2, 3], 2)));
}

#[test]
fn expired_segments_are_removed_and_half_expired_ones_rewritten_once() {
    let newest = file(5, class(), 20_000 - 2000, 20_000);
    let with = |older: Candidate| vec![older, newest.clone()];
    // A row is expired when more than KEPT rows lie between its end and the newest.
    check(&with(file(5, class(), 9000, 20_000 - KEPT - 1)), Some((&[0], LEVEL_SILENT)));
    check(&with(file(5, class(), 10_000, 13_000)), Some((&[0], LEVEL_TRIMMED)));
    check(&with(file(5, class(), 11_100, 13_000)), None);
    check(&with(file(LEVEL_TRIMMED, class(), 10_000, 13_000)), None);
    check(&short(LEVEL_TRIMMED, class(), 8), None);
    check(&with(file(LEVEL_TRIMMED, class(), 9000, 20_000 - KEPT - 1)), Some((&[0], LEVEL_SILENT)));
    check(&with(file(LEVEL_SILENT, class(), 9000, 20_000 - KEPT - 1)), None);
}

#[test]
fn a_segment_that_failed_stays_and_separates_its_neighbours() {
    let mut files = short(0, CLASS_MIXED, 15);
    files[7].failed = true;
    check(&files, None);
    files.push(file(0, CLASS_MIXED, 150, 160));
    check(&files, Some((&[8, 9, 10, 11, 12, 13, 14, 15], 1)));
    let mut expired = vec![file(5, class(), 9000, 11_000), file(5, class(), 18_000, 20_000)];
    expired[0].failed = true;
    check(&expired, None);
}
