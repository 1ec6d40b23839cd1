use super::*;
use crate::create::new_live;
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
    let check = |words: &[&str], ds: usize, want: &str| {
        let (mut definition, mut live) = example(1);
        tune(&mut definition, &mut live, words).unwrap();
        let ds = &definition.ds[ds];
        let shown = match &ds.kind {
            DsKind::Fed { ds_type, heartbeat, min, max } => {
                format!("{} {} {heartbeat} {min} {max}", ds.name, ds_type.name())
            }
            DsKind::Compute(_) => format!("{} COMPUTE", ds.name),
        };
        assert_eq!(shown, want, "{words:?}");
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
    let check = |words: &[&str], want: &str| {
        let (mut definition, mut live) = example(1);
        let before = (definition.clone(), live.clone());
        let error = tune(&mut definition, &mut live, words).unwrap_err();
        assert_eq!(error.to_string(), want, "{words:?}");
        assert_eq!(format!("{:?}", (definition, live)), format!("{before:?}"));
    };
    check(&["-d", "in:DERIVE", "-h", "x:3"], "unknown data source name 'x'");
    check(&["-r", "in:out", "foo"], "unparseable argument: foo");
    check(&["-r", "in:out", "--", "-h"], "unparseable argument: -h");
    check(&["-r", "in:out", "DEL:in"], "cannot change the layout of this RRD in place: DEL:in");
    check(&["-h"], "option requires an argument -- 'h'");
    check(&["--heartbeat"], "missing file name");
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
    let (mut definition, mut live) = example(1000);
    tune(&mut definition, &mut live, &["-h", "in:2"]).unwrap();
    assert!(matches!(definition.ds[0].kind, DsKind::Fed { heartbeat: 2000, .. }));
}

#[test]
fn words_that_change_the_layout_are_told_from_the_others() {
    let check = |words: &[&str], want| assert_eq!(is_structural(words), want, "{words:?}");
    check(&["-h", "DEL:in"], false);
    check(&["-h", "in:3", "foo"], false);
    check(&["-h", "in:3", "DEL:in"], true);
    check(&["RRA#0:+5", "--foo"], true);
    check(&["--", "DS:x:GAUGE:20:U:U"], true);
}
