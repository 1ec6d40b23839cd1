use super::*;
use crate::create::new_live;
use crate::definition::text;
use crate::definition::{ComputeNode, ComputeProgram, Consolidation, Ds, DsKind, DsType, PlainCf, Rra};

fn example(units_per_second: u32) -> (Definition, Live) {
    let fed = DsKind::Fed { ds_type: DsType::Gauge, heartbeat: 20, min: 0.0, max: 100.0 };
    let program = ComputeProgram { nodes: vec![ComputeNode { op: 1, operand: 0 }] };
    let definition = Definition {
        version: 3,
        units_per_second,
        step: 10,
        ds: vec![
            Ds { name: "in".to_string(), kind: fed },
            Ds { name: "sum".to_string(), kind: DsKind::Compute(program) },
        ],
        rra: vec![Rra {
            cf: Consolidation::Plain { cf: PlainCf::Average, xff: 0.5 },
            pdp_per_row: 1,
            row_count: 5,
        }],
    };
    let live = new_live(&definition, 1_000_000_000);
    (definition, live)
}

#[test]
fn words_change_sources() {
    let check = |args: &[&str], ds: usize, want: &str| {
        let (mut definition, mut live) = example(1);
        tune(&mut definition, &mut live, args).unwrap();
        let ds = &definition.ds[ds];
        let shown = match &ds.kind {
            DsKind::Fed { ds_type, heartbeat, min, max } => {
                format!("{} {} {heartbeat} {min} {max}", ds.name, ds_type.name())
            }
            DsKind::Compute(_) => format!("{} COMPUTE", ds.name),
        };
        assert_eq!(shown, want, "{args:?}");
    };
    check(&[], 0, "in GAUGE 20 0 100");
    check(&["-h", "in:30", "--maximum=in:U", "-iin:-5"], 0, "in GAUGE 30 -5 NaN");
    check(&["-r", "in:out", "-h", "out:7"], 0, "out GAUGE 7 0 100");
    check(&["-d", "in:DERIVE", "--step", "300"], 0, "in DERIVE 20 0 100");
    check(&["-h", "sum:60", "-d", "sum:GAUGE"], 1, "sum GAUGE 60 NaN NaN");
    check(&["-d", "sum:GAUGE"], 1, "sum GAUGE 20 NaN NaN");
    check(&["-d", "sum:COMPUTE"], 1, "sum COMPUTE");
}

#[test]
fn a_bad_word_leaves_everything_as_it_was() {
    let check = |args: &[&str], want: &str| {
        let (mut definition, mut live) = example(1);
        let before = (definition.clone(), live.clone());
        let error = tune(&mut definition, &mut live, args).unwrap_err();
        assert_eq!(error.to_string(), want, "{args:?}");
        assert_eq!(format!("{:?}", (definition, live)), format!("{before:?}"));
    };
    check(&["-d", "in:DERIVE", "-h", "x:3"], "unknown data source name 'x'");
    check(&["-r", "in:out", "foo"], "unparseable argument: foo");
    check(&["-r", "in:out", "--", "-h"], "unparseable argument: -h");
    check(&["-r", "in:out", "DEL:in"], "cannot change the layout of this RRD in place: DEL:in");
    check(&["-h"], "option requires an argument -- 'h'");
    check(&["--heartbeat"], "option requires argument -- 'heartbeat'");
    check(&["-é"], "invalid option -- 'é'");
    check(
        &["-h", "sum:3"],
        "cannot set heartbeat, minimum or maximum of the COMPUTE data source 'sum'; \
         change its type in the same command",
    );
    check(
        &["-d", "in:COMPUTE"],
        "cannot make 'in' a COMPUTE data source: it has no expression; \
         add a new one with DS:name:COMPUTE:expression",
    );
}

#[test]
fn a_heartbeat_is_given_in_seconds_and_kept_in_units() {
    let check = |units_per_second, argument: &str, want: Option<u64>| {
        let (mut definition, mut live) = example(units_per_second);
        let done = tune(&mut definition, &mut live, &["-h", argument]).map(|_| ());
        let DsKind::Fed { heartbeat, .. } = definition.ds[0].kind else { unreachable!() };
        assert_eq!(done.is_ok().then_some(heartbeat), want, "{argument}");
    };
    check(1000, "in:2", Some(2000));
    check(1000, "in:0.3", Some(300));
    check(1000, "in:1.5s", Some(1500));
    check(1000, "in:0.0001", None);
    // RRDtool reads an integer.
    check(1, "in:1.5", Some(1));
}

#[test]
fn words_that_change_the_layout_are_told_from_the_others() {
    let check = |args: &[&str], want| assert_eq!(is_structural(args), want, "{args:?}");
    check(&["-h", "DEL:in"], false);
    check(&["-h", "in:3", "foo"], false);
    check(&["-h", "in:3", "DEL:in"], true);
    check(&["RRA#0:+5", "--foo"], true);
    check(&["--", "DS:x:GAUGE:20:U:U"], true);
}

/// Sources `a`, `b` and COMPUTE `sum` of `b`; a Holt-Winters set between plain archives.
fn sample() -> Rrd {
    let args = [
        "DS:a:GAUGE:20:U:U",
        "DS:b:GAUGE:20:U:U",
        "DS:sum:COMPUTE:b,2,*",
        "RRA:AVERAGE:0.5:1:3",
        "RRA:HWPREDICT:6:0.1:0.1:4",
        "RRA:MAX:0.5:2:2",
    ];
    let options = text::CreateOptions {
        step: crate::when::Step { units: 10, units_per_second: 1 },
        limits: text::Limits::FILE,
        file_name: b"",
    };
    let definition = text::parse_create(&options, &args).unwrap();
    let live = new_live(&definition, 1_000_000_000);
    let mut next = 0.0;
    let archives = definition
        .rra
        .iter()
        .map(|rra| {
            let count = if rra.cf.is_season() { 0 } else { rra.row_count * 3 };
            (0..count)
                .map(|_| {
                    next += 1.0;
                    next
                })
                .collect()
        })
        .collect();
    Rrd { definition, live, archives }
}

#[test]
fn rows_and_references_follow_their_archives_and_sources() {
    let mut rrd = sample();
    tune_content(&mut rrd, &["DEL:a", "DELRRA:0", "RRA#6:+1", "DS:new:COMPUTE:sum,b,+"]).unwrap();
    let names: Vec<&str> = rrd.definition.ds.iter().map(|ds| ds.name.as_str()).collect();
    assert_eq!(names, ["b", "sum", "new"]);
    let reads = |ds: usize| match &rrd.definition.ds[ds].kind {
        DsKind::Compute(program) => program.nodes[0].operand,
        DsKind::Fed { .. } => -1,
    };
    assert_eq!((reads(1), reads(2)), (0, 1));
    assert!(matches!(rrd.definition.rra[0].cf, Consolidation::Predict { seasonal: 1, .. }));
    assert!(matches!(rrd.definition.rra[4].cf, Consolidation::Failures { devseasonal: 2, .. }));
    let seasons: Vec<usize> = rrd.live.seasons.iter().map(|season| season.rra).collect();
    assert_eq!(seasons, [1, 2]);
    assert_eq!(rrd.live.words.len(), rrd.shape().word_count());
    let max = &rrd.archives[5];
    assert!(max[..3].iter().all(|value| value.is_nan()));
    let before = &sample().archives[6];
    assert_eq!((max[3], max[4], max[6], max[7]), (before[1], before[2], before[4], before[5]));
    assert!(max[5].is_nan() && max[8].is_nan());
    assert_eq!(rrd.archives.len(), rrd.definition.rra.len());
}

#[test]
fn a_new_archive_has_the_past_that_others_know() {
    let mut rrd = sample();
    tune_content(&mut rrd, &["RRA:AVERAGE:0.5:1:4", "DS:new:GAUGE:20:U:U"]).unwrap();
    let rows: Vec<&[f64]> = rrd.archives[7].chunks(4).collect();
    assert_eq!(rows.len(), 4);
    assert!(rows[0].iter().all(|value| value.is_nan()));
    for (new, old) in rows[1..].iter().zip(sample().archives[0].chunks(3)) {
        assert!(new.iter().zip(old).all(|(new, old)| (new - old).abs() < 1e-12), "{new:?} {old:?}");
        assert!(new[3].is_nan());
    }
}

#[test]
fn a_layout_that_cannot_be_is_refused_and_nothing_changes() {
    let check = |args: &[&str], want: &str| {
        let mut rrd = sample();
        let error = tune_content(&mut rrd, args).unwrap_err();
        assert_eq!(error.to_string(), want, "{args:?}");
        assert_eq!(format!("{rrd:?}"), format!("{:?}", sample()));
    };
    check(&["DEL:b"], "cannot delete data source 'b': the COMPUTE data source 'sum' needs it; delete both");
    check(&["DEL:a", "DEL:b", "DEL:sum"], "you must define at least one Data Source");
    check(&["DELRRA:2"], "cannot delete RRA 2: the Holt-Winters RRA 1 needs it; delete both");
    check(&["RRA#2:+1"], "cannot resize RRA 2: a season is as long as its period");
    check(
        &["RRA#0:=2000000000"],
        "cannot tune: 6000000078 values would be more than 67108864; take fewer rows",
    );
    check(
        &["-t", "5", "DEL:a"],
        "cannot change the step together with data sources or archives; create a new RRD",
    );
    check(&["-h", "a:5", "RRA#0:*1"], "Failed to parse RRA# command: invalid operation: *");
}
