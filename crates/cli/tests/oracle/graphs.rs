//! Random graphs: elements and options in all spellings, valid and invalid, and their rows in every format.

use crate::harness::{Answer, Draw, Pair, Program};
use testkit::Share;
use testkit::random::seeds;

/// Graphs per run.
const GRAPHS: u64 = 250;

/// Output about the positions in an image, which the tests of `graph` compare.
const PLACES: [&str; 5] = ["graph_", "image_", "value_", "legend", "coords"];

const NUMBERS: &[&str] = &[
    "5", "-5", "0", "1e3", "x", "5x", "", "nan", "inf", ".5", "1e", "5.", "+3", "0x5", " 5", "5 ", "1,5",
    "100",
];
const NAMES: &[&str] =
    &["a", "b", "v", "w", "a", "v", "zz", "5", "1e3", "nan", "", "x=a", "vname=a", "value=v", "a=b"];
const COLOURS: &[&str] = &[
    "",
    "#ff0000",
    "#00ff0080",
    "#fff",
    "#abc4",
    "#ff0000#00ff00",
    "#f",
    "#xx0000",
    "#",
    "#ff0000#",
    "##00ff00",
];
const EXTRAS: &[&str] = &[
    "foo",
    "legend=l",
    "label=l",
    "STACK",
    "STACK=1",
    "skipscale",
    "skipscale=1",
    "dashes",
    "dashes=1,2",
    "dashes=x",
    "dashes=3:dash-offset=2",
    "dash-offset=x",
    "gradheight=5",
    "gradheight=x",
    "color2=00ff00",
    "color=ff0000",
    "fraction=0.5",
    "shift=10",
    r"x\:y",
    "vname=b",
    "",
];
const FORMATS: &[&str] = &[
    "%lf",
    "%6.2lf%s",
    "%le",
    "%lg%S",
    "%H:strftime",
    r"%H\:%M:valstrftime",
    "%H:valstrfduration",
    "%d",
    "foo",
    "%lf %lf",
    "%%%lf",
    "",
    "%lf:strftime",
    "format=%lf",
    "%-10.3lf|",
    "%+lf",
    "%.0lf",
];
const DEFS: &[&str] = &[
    "d=a.rrd:d0:AVERAGE",
    "d=a.rrd:d1:MAX:step=20",
    "d=nope.rrd:d0:AVERAGE",
    "d=a.rrd:nope:AVERAGE",
    "d=a.rrd:d0:FOO",
    "a=a.rrd:d1:AVERAGE",
    "d=a.rrd",
];
const OPTIONS: &[(&str, &[&str])] = &[
    ("-w", &["100", "9", "x", "400", "37", ""]),
    ("--height", &["50", "9", "x", "31"]),
    ("-b", &["1000", "1024", "1", "x"]),
    ("-m", &["1", "2", "0", "-1", "x", "1x", ""]),
    ("-u", NUMBERS),
    ("--lower-limit", NUMBERS),
    ("-o", &[]),
    ("-X", &["3", "x", "0", "-6"]),
    ("-y", &["none", "1:2", "1:", "0:2", "1:0", "x", "1.2.3:1", "5:1", "e:1", "1e1:2x"]),
    ("-x", &["none", "HOUR", r"SECOND:30:MINUTE:1:MINUTE:1:0:%H:%M", "MINUTE:1:FOO:1:HOUR:1:0:%X", ""]),
    (
        "-c",
        &["BACK#ff0000", "FOO#ff0000", "BACK", "BACK#ff", "GRID#f00", "CANVAS#xx", "FOO#ff", "BACK#0xff00"],
    ),
    (
        "-n",
        &["DEFAULT:10", "TITLE:x", "FOO:3", "DEFAULT:10xyz", "FOO:x", "FOO:eee", "FOO:10xyz", "UNIT:1.2.3"],
    ),
    ("-R", &["normal", "light", "x"]),
    ("-G", &["mono", "x"]),
    ("-S", &["0", "10", "20", "60", "x", "-5"]),
    ("-f", &["%s %lu %lu", "foo", "", "%s"]),
    ("--border", &["0", "x"]),
    ("--grid-dash", &["1:2", "1", "x:1", "1.2.3:1"]),
    ("--right-axis", &["1:0", "0:1", "x", "1:x", ""]),
    ("--right-axis-format", &["%lf", "%d", "%.1lf%s"]),
    ("--left-axis-format", &["%lf", "foo", "%5.2lf"]),
    ("--left-axis-formatter", &["numeric", "timestamp", "duration", "x"]),
    ("--units", &["si", "x", ""]),
    ("--legend-position", &["north", "x"]),
    ("--legend-direction", &["bottomup2", "x"]),
    ("--disable-rrdtool-tag", &[]),
    ("-s", &["1000000100", "1000000300", "zz", "5", "end-100s", "start", "999"]),
    ("-e", &["1000000500", "zz", "start+300", "1000000200", "end"]),
    ("-d", &[""]),
    ("--graph-type", &["time"]),
    ("--bogus", &[]),
];

/// One of `from`; in every other graph one of the first `good`, so that some graphs have no error.
fn of<'a>(draw: &mut Draw, from: &[&'a str], good: usize) -> &'a str {
    let end = if draw.tame { good } else { from.len() };
    from[draw.below(end)]
}

/// One element.
fn element(draw: &mut Draw) -> String {
    const KINDS: &[&str] = &[
        "LINE1",
        "AREA",
        "XPORT",
        "PRINT",
        "GPRINT",
        "LINE.5",
        "COMMENT",
        "CDEF",
        "VDEF",
        "TICK",
        "SHIFT",
        "TEXTALIGN",
        "DEF",
        "LINE",
        "PRINT",
        "HRULE",
        "VRULE",
        "STACK",
        "LINEx",
        "LINE-1",
        "BAD",
    ];
    let kind = of(draw, KINDS, 13);
    let rest = match kind {
        "CDEF" => {
            of(draw, &["c=a,1,+", "c=a,b,/", "c=a,v,+", "c=zz", "a=a,1,+", "c=a,1,+:x", "c"], 3).to_string()
        }
        "VDEF" => of(draw, &["u=a,MAXIMUM", "u=a,95,PERCENT", "u=zz,LAST", "v=a,LAST", "u=a,FOO", "u"], 2)
            .to_string(),
        "DEF" => of(draw, DEFS, 2).to_string(),
        "TEXTALIGN" => of(draw, &["left", "justified", "up", ""], 2).to_string(),
        "COMMENT" => of(draw, &["x", r"a b\l", "", "legend=q", "x:y"], 4).to_string(),
        "PRINT" | "GPRINT" => {
            let name = of(draw, &["v", "w", "a:AVERAGE", "b:MAX", "vname=v", "a", "a:FOO", "zz", ""], 5);
            format!("{name}:{}", of(draw, FORMATS, 6))
        }
        "SHIFT" => {
            let by = of(draw, &["10", "-20", "v", "shift=5", "a", "x", "1e3", "0x5", "", "10:x"], 4);
            format!("{}:{by}", of(draw, NAMES, 2))
        }
        _ => {
            let mut rest = format!("{}{}", of(draw, NAMES, 2), of(draw, COLOURS, 5));
            if kind == "TICK" {
                rest = format!("{rest}:{}", of(draw, NUMBERS, 4));
            }
            if draw.tame {
                return format!("{kind}:{rest}:{}", of(draw, EXTRAS, 3));
            }
            while draw.once_in(2) {
                rest = format!("{rest}:{}", draw.of(EXTRAS));
            }
            rest
        }
    };
    if !draw.tame && draw.once_in(20) { kind.to_string() } else { format!("{kind}:{rest}") }
}

/// The arguments of one graph, and whether it is a table.
fn graph(draw: &mut Draw) -> (Vec<String>, bool) {
    let end = draw.of(&["1000000500", "1000000140", "1000000117"]);
    let mut words: Vec<String> =
        [draw.of(&["graph", "graphv"]), "out", "-s", "1000000100", "-e", end].map(str::to_string).to_vec();
    for _ in 0..draw.below(3) {
        // The last ones are invalid.
        let end = if draw.tame { OPTIONS.len() - 2 } else { OPTIONS.len() };
        let (option, arguments) = OPTIONS[draw.below(end)];
        words.push(option.to_string());
        if !arguments.is_empty() {
            words.push(of(draw, arguments, 1).to_string());
        }
    }
    let table = draw.once_in(3);
    if table {
        let format = draw.of(&["XML", "XMLENUM", "JSON", "JSONTIME", "CSV", "TSV", "SSV"]);
        words.extend(["-a", format].map(str::to_string));
    }
    words.extend(
        ["DEF:a=a.rrd:d0:AVERAGE", "DEF:b=a.rrd:d1:MAX", "VDEF:v=a,LAST", "VDEF:w=b,MAXIMUM"]
            .map(str::to_string),
    );
    words.extend((0..draw.below(4)).map(|_| element(draw)));
    (words, table)
}

/// The answer of a program, and the table it wrote.
fn answer(program: &Program, words: &[String], table: bool) -> (Answer, Option<Vec<u8>>) {
    let path = program.directory.join("out");
    std::fs::remove_file(&path).ok();
    let mut answer = program.run(words, b"");
    // The messages of cairo, pango and libpng are not an interface.
    let own =
        |line: &&str| !["OOPS", "libpng", "(process", "(rrdtool"].iter().any(|other| line.starts_with(other));
    answer.error = answer.error.lines().filter(own).filter(|line| !line.is_empty()).collect();
    if !table {
        let told = |line: &&str| !PLACES.iter().any(|place| line.starts_with(place)) && !is_size(line);
        answer.output = answer.output.lines().filter(told).map(|line| format!("{line}\n")).collect();
    }
    let made = std::fs::read(path).ok().filter(|_| table && answer.status == Some(0));
    (answer, made)
}

/// Debian's rrdtool prints uninitialised memory here: times that do not exist, and rows of tables before a
/// shifted series.
fn is_undefined(word: &str, table: bool) -> bool {
    let of_series =
        ["PRINT:a", "PRINT:b", "GPRINT:a", "GPRINT:b"].iter().any(|start| word.starts_with(start));
    (of_series && word.ends_with(":strftime")) || (table && word.starts_with("SHIFT"))
}

fn is_size(line: &str) -> bool {
    line.split_once('x')
        .is_some_and(|(one, other)| [one, other].iter().all(|side| side.parse::<i64>().is_ok()))
        || line.starts_with("out ")
}

pub fn check() {
    let pair = Pair::new();
    let maker = pair.theirs.as_ref().unwrap_or(&pair.ours);
    let create = "create a.rrd -b 1000000000 -s 10 DS:d0:GAUGE:30:U:U DS:d1:GAUGE:30:U:U \
        RRA:AVERAGE:0.5:1:100 RRA:MAX:0.5:6:30";
    let words: Vec<&str> = create.split_whitespace().collect();
    assert_eq!(maker.run(&words, b"").status, Some(0));
    let mut update = vec!["update".to_string(), "a.rrd".to_string()];
    update.extend((1..=90).map(|row| format!("{}:{row}:{}", 1_000_000_000 + row * 10, row * row % 37)));
    assert_eq!(maker.run(&update, b"").status, Some(0));
    let bytes = std::fs::read(maker.directory.join("a.rrd")).expect("it is there");
    for directory in pair.directories() {
        std::fs::write(directory.join("a.rrd"), &bytes).expect("a file");
    }
    let (mut tables, mut refused) = (0, 0);
    let mut differences = Vec::new();
    let mut drawn = 0;
    let mut compared = Share::default();
    for seed in seeds(GRAPHS) {
        let mut draw = Draw::new(seed);
        let (words, table) = graph(&mut draw);
        drawn += 1;
        if words.iter().any(|word| is_undefined(word, table)) {
            continue;
        }
        let ours = answer(&pair.ours, &words, table);
        assert!(matches!(ours.0.status, Some(0 | 1)), "seed {seed}, {words:?}: {ours:?}");
        tables += usize::from(ours.1.is_some());
        refused += usize::from(ours.0.status == Some(1));
        let Some(program) = &pair.theirs else { continue };
        let theirs = answer(program, &words, table);
        compared.add(theirs.0.status.is_some());
        // If Debian's rrdtool crashes, there is nothing to compare.
        if theirs.0.status.is_some() && ours != theirs {
            differences.push(format!(
                "seed {seed}: {}\n  ours:     {ours:?}\n  Debian's: {theirs:?}",
                words.join(" ")
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    // A run of a single seed says nothing about the mixture.
    let is_mixed = drawn < 50 || (tables * 25 > drawn && refused * 5 > drawn);
    assert!(is_mixed, "{tables} tables, {refused} refused of {drawn}: the graphs are too alike");
    if pair.theirs.is_some() {
        compared.require("graphs", 80);
    }
}
