//! COMPUTE against Debian's rrdtool: the nodes it writes, the values they give, the errors.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

#[path = "support/operators.rs"]
mod operators;
mod support;

use operators::{BINARY, UNARY};
use roundel_rrd::definition::{ComputeProgram, DsKind};
use roundel_rrd::rpn::{Context, compile, evaluate};
use support::Random;
use testkit::RrdTool;

const SOURCES: [&str; 4] = ["v0", "v1", "v2", "v3"];
const NULLARY: [&str; 9] = ["v0", "v1", "v2", "v3", "3,", "-7,", "UNKN", "INF", "NEGINF"];
/// Besides those of `operators`.
const OWN_UNARY: [&str; 4] = ["DUP", "1,INDEX", "1,COPY", "2,POW"];
const OWN_BINARY: [&str; 10] =
    ["EXC", "POP", "2,SORT", "2,REV", "2,AVG", "2,STDEV", "2,SMIN", "2,SMAX", "2,1,ROLL", "v0,3,MEDIAN"];
const TERNARY: [&str; 11] = [
    "IF",
    "LIMIT",
    "3,AVG",
    "3,STDEV",
    "3,SMIN",
    "3,SMAX",
    "3,SORT",
    "60,3,PERCENT",
    "3,REV",
    "3,2,ROLL",
    "5,4,MEDIAN",
];

/// A random expression; mostly one that leaves a single value.
fn expression(random: &mut Random) -> String {
    let unary = [&UNARY[..], &OWN_UNARY].concat();
    let binary = [&BINARY[..], &OWN_BINARY].concat();
    let mut words: Vec<&str> = Vec::new();
    for _ in 0..random.below(4) + 1 {
        words.push(random.pick(&NULLARY));
    }
    for _ in 0..random.below(6) {
        let kind = [&NULLARY[..], &unary, &binary, &TERNARY][random.below(4) as usize];
        words.push(random.pick(kind));
    }
    for _ in 0..random.below(4) {
        words.push(random.pick(&BINARY[..12]));
    }
    words.join(",").replace(",,", ",")
}

fn value(random: &mut Random) -> String {
    match random.below(6) {
        0 => "U".to_string(),
        1 => "0".to_string(),
        2 => format!("-{}.{}", random.below(100), random.below(1000)),
        _ => format!("{}.{}", random.below(1000), random.below(100_000)),
    }
}

fn decoded(tool: &RrdTool) -> (ComputeProgram, Vec<f64>) {
    let bytes = std::fs::read(tool.path("c.rrd")).unwrap();
    let parts = roundel_rrd::codec::file::decode(&bytes).unwrap();
    let DsKind::Compute(program) = parts.rrd.definition.ds[4].kind.clone() else {
        panic!("no COMPUTE source")
    };
    let rows = &parts.rrd.archives[0];
    (program, rows[rows.len() - 5..].to_vec())
}

#[test]
fn random_expressions_compile_and_evaluate_as_in_rrdtool() {
    let mut tool = RrdTool::start().unwrap();
    let mut good = 0;
    for seed in 0..2500 {
        let mut random = Random::new(seed);
        let text = expression(&mut random);
        let case = format!("seed {seed}: {text}");
        let fed: String = SOURCES.map(|name| format!("DS:{name}:GAUGE:20:U:U ")).concat();
        let created = tool.run(&format!(
            "create c.rrd --start 1000000000 --step 1 {fed} DS:c:COMPUTE:{text} RRA:AVERAGE:0.5:1:3"
        ));
        let compiled = compile(&text, &SOURCES);
        assert_eq!(created.clone().err(), compiled.clone().err().map(|error| error.to_string()), "{case}");
        let Ok(program) = compiled else { continue };
        assert_eq!(decoded(&tool).0, program, "{case}");
        let values: Vec<String> = SOURCES.iter().map(|_| value(&mut random)).collect();
        let updated = tool.run(&format!("update c.rrd 1000000001:{}", values.join(":")));
        let (_, row) = decoded(&tool);
        match evaluate(&program, &row[..4], Context { now: 0 }, &mut Vec::new()) {
            Ok(got) => {
                assert_eq!(updated, Ok(String::new()), "{case} {values:?}");
                assert_eq!(got.to_bits(), row[4].to_bits(), "{case} {values:?}: {got} {}", row[4]);
                good += 1;
            }
            Err(error) => assert_eq!(updated, Err(format!("c.rrd: {error}")), "{case}"),
        }
    }
    assert!(good > 300, "only {good} expressions had a value");
}
