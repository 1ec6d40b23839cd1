use super::*;
use crate::sample::{Kind, Samples};
use crate::table::CreateTable;
use crate::testing::pieces_at_random;

/// Sections as carbon's own examples have them.
const SCHEMAS: &str = r"
# Carbon's own
[carbon]
pattern = ^carbon\.
retentions = 60:90d

; comment
[collectd]
pattern = ^collectd\..*\.cpu
retentions = 10s:6h, 1m:7d,10min:5y

[default]
pattern = .*
retentions = 60s:1d
";

const AGGREGATION: &str = r"
[min]
pattern = \.lower$
xFilesFactor = 0.1
aggregationMethod = min

[count]
pattern = \.count$
xFilesFactor = 0
aggregationMethod = sum

[default]
pattern = .*
xFilesFactor = 0.25
aggregationMethod = average
";

fn parse(schemas: &str, aggregation: Option<&str>) -> (CarbonSchemas, Vec<String>) {
    let mut faults = Vec::new();
    let read = CarbonSchemas::parse(schemas, aggregation, &mut |file, fault| {
        faults.push(format!("{file}: {fault}"))
    });
    (read, faults)
}

#[test]
fn the_first_section_that_fits_counts() {
    let (read, faults) = parse(SCHEMAS, Some(AGGREGATION));
    let sum = "the mean is kept, and the sum is the mean times the number of rows";
    let want = format!("storage-aggregation.conf: line 10: aggregationMethod \"sum\" is not an RRD's: {sum}");
    assert_eq!(faults, [want]);
    let layout = read.layout("carbon.agents.a.cpu");
    assert_eq!(
        (layout.section, layout.retentions),
        ("carbon", &[Retention { seconds: 60, rows: 129_600 }][..])
    );
    let layout = read.layout("collectd.host.cpu.lower");
    let rows: Vec<_> = layout.retentions.iter().map(|archive| (archive.seconds, archive.rows)).collect();
    assert_eq!(rows, [(10, 2160), (60, 10_080), (600, 262_800)]);
    assert_eq!((layout.cf, layout.xff), (Cf::Min, 0.9));
    let layout = read.layout("a.count");
    assert_eq!((layout.section, layout.cf, layout.xff), ("default", Cf::Average, XFF_MAX));
    assert_eq!(read.layout("x").xff, 0.75);
}

#[test]
fn rules_of_the_table_say_the_same() {
    let (read, _) = parse(SCHEMAS, Some(AGGREGATION));
    let table = CreateTable::new(&read.rules("graphite/{name/}")).unwrap();
    let mut samples = Samples::default();
    let mut check = |name: &str, want_step: u64, want_first: &str| {
        let series = samples.begin(name).end(Kind::Gauge).unwrap();
        let place = table.place(samples.series(series)).unwrap();
        assert_eq!(place.path, format!("graphite/{}.rrd", name.replace('.', "/")));
        let new = table.new_rrd(place.rule, samples.series(series), Kind::Gauge);
        assert_eq!((new.step, new.args[1].as_str()), (want_step, want_first), "{name}");
    };
    check("carbon.agents.a.cpu", 60, "RRA:AVERAGE:0.75:1:129600");
    check("collectd.host.cpu.lower", 10, "RRA:MIN:0.9:1:2160");
    check("a.count", 60, "RRA:AVERAGE:0.99999:1:1440");
    let (read, _) = parse("", Some("[x]\npattern=^x\naggregationMethod=max\n"));
    let table = CreateTable::new(&read.rules("{name/}")).unwrap();
    for (name, want) in [("x", "RRA:MAX:0.5:1:10080"), ("y", "RRA:AVERAGE:0.5:1:10080")] {
        let series = samples.begin(name).end(Kind::Gauge).unwrap();
        let rule = table.place(samples.series(series)).unwrap().rule;
        assert_eq!(table.new_rrd(rule, samples.series(series), Kind::Gauge).args[1], want);
    }
}

#[test]
fn without_files_there_is_a_week_of_minutes() {
    let (read, faults) = parse("", None);
    assert!(read.is_empty() && faults.is_empty());
    let layout = read.layout("x");
    assert_eq!((layout.section, layout.cf, layout.xff), ("", Cf::Average, 0.5));
    assert_eq!(layout.retentions, [RETENTION_DEFAULT]);
}

#[test]
fn a_bad_section_is_left_out_and_named() {
    let text = "x = 1\n[a]\npattern = (\nretentions = 60:1\n[b]\npattern = b\nretentions = 60:1,90:1\n\
                [c]\nretentions = 60:1\n[d]\npattern = d\n[e]\npattern = .\nretentions = 1q:5\nwhat\n\
                [f]\npattern = f\nretentions = 0:5\n[g]\npattern = (?=g)\nretentions = 60:1\n[ok]\npattern=ok\nretentions=1s:1m";
    let (read, faults) =
        parse(text, Some("[x]\npattern = x\nxFilesFactor = 2\n[y]\npattern=y\naggregationMethod = p95\n"));
    assert_eq!(
        faults,
        [
            "storage-schemas.conf: line 1: \"x = 1\" stands before the first [section]",
            "storage-schemas.conf: line 15: \"what\" is neither [section] nor key = value",
            "storage-schemas.conf: line 3: the pattern \"(\" cannot be used: unclosed group",
            "storage-schemas.conf: line 7: rows of 90 s cannot be made of rows of 60 s: give a multiple",
            "storage-schemas.conf: line 8: the section [c] cannot be used: it has no pattern",
            "storage-schemas.conf: line 10: the section [d] cannot be used: it has no retentions",
            "storage-schemas.conf: line 14: \"1q:5\" is not precision:length, as in 60s:1d or 60:1440",
            "storage-schemas.conf: line 18: \"0:5\" has no rows, or too many",
            "storage-schemas.conf: line 20: the pattern \"(?=g)\" cannot be used: look-around, including look-ahead and look-behind, is not supported",
            "storage-aggregation.conf: line 3: xFilesFactor is \"2\", and not a number from 0 to 1",
            "storage-aggregation.conf: line 6: aggregationMethod \"p95\" is not known: average, sum, last, max or min",
        ]
    );
    assert_eq!(read.layout("ok").section, "ok");
    assert_eq!(read.layout("b").section, "");
}

#[test]
fn random_files_cause_no_panic() {
    const PIECES: &[&str] = &[
        "[a]\n",
        "pattern = ",
        "retentions = ",
        "60s:1d",
        ",",
        "\n",
        "99999999999999999999:1",
        "1y:9999999999999y",
        ".*",
        "(",
        "xFilesFactor = ",
        "0.5",
        "aggregationMethod = ",
        "sum",
        ":",
        "=",
        "#",
        "1:1",
        "7d:1",
    ];
    pieces_at_random(2_000, PIECES, crate::fuzzing::fuzz_carbon_schemas);
}
