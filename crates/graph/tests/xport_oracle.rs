//! `xport` against Debian's rrdtool: random arguments over four RRDs, byte for byte.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod support;

use roundel_graph::plan::TimeRange;
use roundel_graph::xport::{XportOptions, xport};
use support::{EPOCH, UtcDates, make_rrds, run};
use testkit::RrdTool;
use testkit::random::Random;

/// One call of xport: its options and the rest.
struct Call {
    range: TimeRange,
    options: String,
    form: XportOptions,
    arguments: Vec<String>,
}

fn call(random: &mut Random) -> Call {
    let start = EPOCH + 500 + random.below(28_000) as i64;
    let span = [0, 1, 9, 100, 500, 3000, 9000][random.below(7) as usize];
    let end = start + random.below(span + 1) as i64;
    let step = [0, 0, 0, 1, 13, 60, 100, 300, 700][random.below(9) as usize];
    let columns = [400, 400, 10, 50, 1000][random.below(5) as usize];
    let form =
        XportOptions { json: random.once_in(2), show_time: random.once_in(3), numbered: random.once_in(5) };
    let mut options = format!("-s {start} -e {end} -m {columns} --step {step}");
    for (chosen, option) in [(form.json, " --json"), (form.show_time, " -t"), (form.numbered, " --enumds")] {
        options += if chosen { option } else { "" };
    }
    Call {
        range: TimeRange::new(start, end, step, columns),
        options,
        form,
        arguments: elements(random, start, end),
    }
}

fn elements(random: &mut Random, start: i64, end: i64) -> Vec<String> {
    let (mut all, mut series, mut scalars) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..random.below(4) + 1 {
        let name = format!("d{number}");
        all.push(def(random, &name, start, end));
        series.push(name);
    }
    for number in 0..random.below(3) {
        let name = format!("c{number}");
        let (a, b) = (pick(random, &series), pick(random, &series));
        all.push(match random.below(5) {
            0 => format!("CDEF:{name}={a}"),
            1 => format!("CDEF:{name}={a},UN,0,{a},IF"),
            // For PREV of another series RRDtool reads one row before the first.
            2 => format!("CDEF:{name}={a},PREV({a}),-"),
            3 => format!("CDEF:{name}={a},{b},ADDNAN,TIME,+,COUNT,*"),
            _ => format!("CDEF:{name}={a},{b},-"),
        });
        series.push(name);
    }
    for number in 0..random.below(3) {
        let name = format!("v{number}");
        let function = ["MAXIMUM", "MINIMUM", "AVERAGE", "LAST", "FIRST", "TOTAL", "95,PERCENT", "STDEV"];
        all.push(format!("VDEF:{name}={},{}", pick(random, &series), random.pick(&function)));
        scalars.push(name);
    }
    for _ in 0..random.below(3) + 1 {
        let legend = random.pick(&["", ":in", r":a\:b", r":<x&y>", ":legend=z", ":%"]);
        all.push(format!("XPORT:{}{legend}", pick(random, &series)));
    }
    if random.once_in(3) {
        texts(random, &series, &scalars, &mut all);
    }
    for _ in 0..random.below(8).saturating_sub(4) {
        all.push(drawn(random, &series, &scalars));
    }
    all
}

/// Elements that a graph would draw: legends and rules are exported. No SHIFT: RRDtool reads out of bounds.
fn drawn(random: &mut Random, series: &[String], scalars: &[String]) -> String {
    let what = match random.below(3) {
        0 => "7.5".to_string(),
        1 if !scalars.is_empty() => pick(random, scalars),
        _ => pick(random, series),
    };
    let colour = random.pick(&["#ff0000", "#00ff0080", ""]);
    let legend = random.pick(&["", ":in", ":  led", r":a\:b\l", ": "]);
    match random.below(5) {
        0 => format!("LINE{}:{what}{colour}{legend}", random.below(3)),
        1 => format!("AREA:{what}{colour}{legend}"),
        2 => format!("LINE1:{what}#0000ff{legend}:dashes=5,5"),
        3 => format!("{}:{what}#0000ff{legend}", random.pick(&["HRULE", "VRULE"])),
        _ => format!("TICK:{}#0000ff:0.5{legend}", pick(random, series)),
    }
}

fn pick(random: &mut Random, names: &[String]) -> String {
    names[random.below(names.len() as u64) as usize].clone()
}

fn def(random: &mut Random, name: &str, start: i64, end: i64) -> String {
    let file = random.pick(&["a", "b", "c", "d", "a"]);
    let cf = random.pick(&["AVERAGE", "AVERAGE", "AVERAGE", "MIN", "MAX", "LAST"]);
    let mut text = format!("DEF:{name}={file}.rrd:in:{cf}");
    if random.once_in(5) {
        text += &format!(":step={}", [7, 10, 60, 333, 1200][random.below(5) as usize]);
    }
    if random.once_in(5) {
        text += random.pick(&[":reduce=MAX", ":reduce=MIN", ":reduce=LAST", ":reduce=AVERAGE"]);
    }
    // RRDtool reads out of bounds if the range is narrower than the graph's.
    if random.once_in(7) {
        text += random.pick(&[":start=end-4h", ":end=start+5h"]);
    } else if random.once_in(10) {
        text +=
            &format!(":start={}:end={}", start - random.below(900) as i64, end + random.below(900) as i64);
    }
    text
}

fn texts(random: &mut Random, series: &[String], scalars: &[String], all: &mut Vec<String>) {
    for _ in 0..random.below(4) + 1 {
        let element = random.pick(&["PRINT", "GPRINT"]);
        let format = random.pick(&["%lf", "%.3lf%s", "%10.2le", "x%6.2lf%S.", "%lg"]);
        let text = match random.below(4) {
            0 => random.pick(&[r"COMMENT:a\:b", "TEXTALIGN:left", "COMMENT:<"]).to_string(),
            1 if !scalars.is_empty() => {
                let time = random.pick(&["%s:strftime", "%H.%M:strftime", "%.2lf:valstrftime"]);
                format!("PRINT:{}:{time}", pick(random, scalars))
            }
            2 if !scalars.is_empty() => format!("{element}:{}:{format}", pick(random, scalars)),
            _ => {
                let cf = random.pick(&["AVERAGE", "MIN", "MAX", "LAST"]);
                format!("{element}:{}:{cf}:{format}", pick(random, series))
            }
        };
        all.push(text);
    }
}

/// Makes one argument wrong in some way.
fn spoil(random: &mut Random, arguments: &mut [String]) {
    let index = random.below(arguments.len() as u64) as usize;
    let argument = &mut arguments[index];
    match random.below(5) {
        0 => argument.push_str(random.pick(&[":x", ":", ":step=0", ":foo=1", ",+", "x"])),
        1 => argument.truncate(argument.rfind(':').unwrap_or(0)),
        2 => {
            *argument = argument.replacen(
                random.pick(&[":", "=", ",", "D", "E", "A"]),
                random.pick(&["", "X", ":"]),
                1,
            )
        }
        3 => {
            argument.remove(0);
        }
        _ => *argument = argument.replace("rrd", "rdd"),
    }
}

fn ours(call: &Call, directory: &std::path::Path) -> Result<String, String> {
    let (script, data) = run(directory, call.range, &call.arguments)?;
    let mut bytes = Vec::new();
    match xport(&script, call.range, &data, call.form, &UtcDates, &mut bytes) {
        Ok(()) => Ok(String::from_utf8(bytes).unwrap()),
        Err(error) => Err(error.to_string()),
    }
}

fn check(tool: &mut RrdTool, call: &Call, case: &str) -> bool {
    let words: Vec<String> = call.arguments.iter().map(|word| format!("'{word}'")).collect();
    let want = tool.run(&format!("xport {} {}", call.options, words.join(" ")));
    // Some of RRDtool's messages end with a line feed of their own; its empty line precedes the next answer.
    let want = want.map(|text| text.trim_start_matches('\n').to_string());
    let got = ours(call, tool.directory());
    let trim = |text: String| text.trim_end().to_string();
    let case = format!("{case}: xport {} {}", call.options, call.arguments.join(" "));
    if let (Ok(got), Ok(want)) = (&got, &want) {
        // RRDtool's xport writes uninitialised memory for a value without a time; we write what graph does.
        let no_time = |line: &str| line.contains(">-</") || line.contains(": \"-\"");
        let differs = |(_, (got, want)): &(usize, (&str, &str))| got != want && !no_time(got);
        // The first lines that differ say more than all of them.
        let first = got.lines().zip(want.lines()).enumerate().find(differs);
        assert!(first.is_none(), "{case}\nours and theirs: {first:?}");
        assert_eq!(got.lines().count(), want.lines().count(), "{case}");
    } else {
        assert_eq!(got.clone().map_err(trim), want.map_err(trim), "{case}");
    }
    got.is_ok()
}

#[test]
fn random_calls_give_the_same_bytes_and_errors() {
    let mut tool = RrdTool::start().unwrap();
    make_rrds(&mut tool);
    let mut good = 0;
    for seed in 0..8000 {
        let mut random = Random::new(seed);
        let mut call = call(&mut random);
        if random.once_in(7) {
            spoil(&mut random, &mut call.arguments);
        }
        // Legends in JSON are escaped, as in 1.9.
        if call.form.json && call.arguments.iter().any(|argument| argument.replace(r"\:", ":").contains('\\'))
        {
            continue;
        }
        good += usize::from(check(&mut tool, &call, &format!("seed {seed}")));
    }
    assert!(good > 5000, "only {good} calls gave rows");
}

#[test]
fn kept_cases() {
    let mut tool = RrdTool::start().unwrap();
    make_rrds(&mut tool);
    let (start, end) = (EPOCH + 1405, EPOCH + 1480);
    let mut check = |step: u64, form: XportOptions, arguments: &[&str]| {
        let options = format!("-s {start} -e {end} --step {step}{}", if form.json { " --json" } else { "" });
        let arguments = arguments.iter().map(|argument| argument.to_string()).collect();
        let call = Call { range: TimeRange::new(start, end, step, 400), options, form, arguments };
        kept(&mut tool, &call);
    };
    let (xml, json) = (XportOptions::default(), XportOptions { json: true, ..XportOptions::default() });
    const D: &str = "DEF:a=a.rrd:in:AVERAGE";
    // A step beyond 32 bits, a range inside one row, rows of different steps.
    check(300, xml, &[D, "XPORT:a"]);
    check(26, xml, &[D, "DEF:c=c.rrd:in:AVERAGE", "XPORT:a", "XPORT:c"]);
    check(
        0,
        json,
        &[D, "CDEF:i=a,POP,INF", "CDEF:n=a,POP,NEGINF", "CDEF:z=a,0,*,-1,*", "XPORT:i", "XPORT:n", "XPORT:z"],
    );
    check(
        0,
        xml,
        &[D, "CDEF:i=a,POP,INF", "CDEF:n=a,POP,NEGINF", "CDEF:z=a,0,*,-1,*", "XPORT:i", "XPORT:n", "XPORT:z"],
    );
    // Which error comes first: the file, the data source, the expression, or that nothing is exported.
    check(0, xml, &[D]);
    check(0, xml, &["DEF:a=no.rrd:in:AVERAGE"]);
    check(0, xml, &["DEF:a=a.rrd:no:AVERAGE", "CDEF:b=a,+"]);
    check(0, xml, &[D, "CDEF:b=a,+"]);
    check(0, xml, &[D, "CDEF:b=a,+", "DEF:c=no.rrd:in:AVERAGE", "XPORT:a"]);
    check(300, xml, &["DEF:a=a.rrd:no:AVERAGE", "XPORT:a"]);
    // A text that cannot be printed.
    check(0, xml, &[D, "VDEF:v=a,LAST", "PRINT:v:%foo", "XPORT:a"]);
    check(0, json, &[D, "VDEF:v=a,LAST", "PRINT:v:%lf%S%s", "XPORT:a"]);
    check(0, xml, &[D, "VDEF:v=a,LAST", "PRINT:v:%Y:valstrftime", "XPORT:a"]);
    check(0, xml, &[D, "VDEF:v=a,LAST", "PRINT:v:%H:valstrfduration", "XPORT:a"]);
    // Duplicate DEFs, names of DEF's own, names beyond 255 bytes.
    check(0, xml, &[D, "DEF:a=b.rrd:in:AVERAGE", "XPORT:a"]);
    check(0, xml, &["DEF:step=a.rrd:in:AVERAGE", "XPORT:step"]);
    check(0, xml, &["DEF:ds=a.rrd:in:AVERAGE", D, "XPORT:a"]);
    check(0, xml, &["DEF:step=60:a=a.rrd:in:AVERAGE", "XPORT:a"]);
    let long = "x".repeat(256);
    check(0, xml, &[&format!("DEF:{long}=a.rrd:in:AVERAGE"), &format!("XPORT:{long}")]);
    check(0, xml, &[&format!("DEF:{}=a.rrd:in:AVERAGE", &long[1..]), &format!("XPORT:{}", &long[1..])]);
    check(0, xml, &[D, "XPORT:foo=a#ff0000:legend=x"]);
    check(0, xml, &[D, "XPORT:a:legend=p:legend=q"]);
    check(0, xml, &[D, "XPORT:a:vname=b"]);
}

fn kept(tool: &mut RrdTool, call: &Call) {
    check(tool, call, "kept");
}
