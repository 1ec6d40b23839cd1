//! Random command lines of `graph`, `graphv` and `xport` for the scenarios of `anything.rs`.

use crate::anything::{CFS, SOURCES, of, range};
use crate::harness::Draw;
use crate::random::{Command, words};

const EXPRESSIONS: &[&str] = &[
    "a,2,*",
    "a,b,+",
    "a,UN,0,a,IF",
    "a,PREV,+",
    "TIME,a,*",
    "a,0,/",
    "a,100,%",
    "a,LOG",
    "a,20,TREND",
    "a,b",
    "1",
    "",
    "c,c,-",
    "a,DUP,MAX",
    "a,STEPWIDTH,*",
    "COUNT,a,+",
    "a,INF,EQ",
    "a,1e3,LT,a,UNKN,IF",
];
const VARIABLES: &[&str] = &[
    "a,MAXIMUM",
    "a,MINIMUM",
    "a,AVERAGE",
    "a,LAST",
    "a,FIRST",
    "a,TOTAL",
    "a,95,PERCENT",
    "a,50,PERCENTNAN",
    "a,STDEV",
    "a,LSLSLOPE",
    "a,LSLINT",
    "a,LSLCORREL",
    "a,x",
    "c,MAXIMUM",
    "a",
];

/// Formats of a PRINT; the last ones are for times.
const FORMATS: &[&str] = &[
    "%lf",
    "%6.2lf",
    "%le %s",
    "%lg%S",
    "%.3lf%%",
    "%s",
    "%d",
    "x",
    "",
    "%8.3lf x %s",
    "%lf %lf",
    "%lf\ty",
    "%c:strftime",
    "%s:strftime",
    "%5.1lf%s:valstrftime",
    "%H\\:%M:valstrftime",
    "%d %H:valstrfduration",
];
const GRAPH_OPTIONS: &[&str] = &[
    "-a SVG",
    "-a PDF",
    "-a CSV",
    "-a TSV",
    "-a SSV",
    "-a XML",
    "-a XMLENUM",
    "-a JSON",
    "-a JSONTIME",
    "-w 200 -h 60",
    "-D -w 300",
    "--lazy",
    "-z",
    "-i",
    "-j",
    "-g",
    "-o",
    "-r -u 50",
    "-l 1",
    "-A",
    "-M",
    "-N",
    "-E",
    "-m 2",
    "-t title",
    "-v units",
    "-W water",
    "-T 20",
    "-T x",
    "-T 0",
    "-b 1024",
    "-X 3",
    "-x none -y none",
    "--right-axis 2:1",
    "--imginfo %s",
    "--imginfo x",
    "-f",
    "-S 20",
    "-S 0",
    "-S x",
    "-Z",
    "-F",
    "-P",
];
const XPORT_OPTIONS: &[&str] = &[
    "--json",
    "--json",
    "-t",
    "-t --json",
    "--showtime",
    "--enumds",
    "--json --enumds",
    "-m 5",
    "-m 0",
    "-m x",
    "-m 400",
    "--step 1",
    "--step 10",
    "--step 60",
    "--step 7",
    "--step 0",
    "--step x",
];

/// A graph or an export of one or two variables.
pub fn plot(draw: &mut Draw) -> Command {
    let verb = draw.of(&["graph", "graphv", "xport"]);
    let graph = verb != "xport";
    let mut all = vec![verb.to_string()];
    if graph {
        let files = ["x.png", "x.svg", "/dev/null", "/dev/null", "-", "no/x.png"];
        // Alone it would be an image on standard output.
        let file = draw.of(if verb == "graphv" { &files } else { &files[..4] });
        all.push(file.to_string());
    }
    range(draw, &mut all);
    for _ in 0..draw.below(3) {
        let option = draw.of(if graph { GRAPH_OPTIONS } else { XPORT_OPTIONS });
        all.extend(words(option));
        if option == "-f" {
            all.push(of(draw, &["%s %lu %lu", "%s", "x", "%lu"]));
        }
    }
    let definition = |draw: &mut Draw, name: &str| {
        format!(
            "DEF:{name}={}:{}:{}{}",
            draw.of(&["a.rrd", "a.rrd", "a.rrd", "b.rrd", "n.rrd", "no.rrd"]),
            of(draw, SOURCES),
            of(draw, CFS),
            draw.of(&["", "", "", ":step=20", ":reduce=MAX", ":step=x", ":reduce=x", ":x", ":step=0"])
        )
    };
    all.push(definition(draw, "a"));
    if draw.once_in(2) {
        all.push(definition(draw, "b"));
    }
    for _ in 0..1 + draw.below(5) {
        all.push(if graph { element(draw) } else { export(draw) });
    }
    all
}

fn computed(draw: &mut Draw) -> String {
    if draw.once_in(4) {
        return format!("VDEF:{}={}", draw.of(&["v", "v", "w", "a"]), draw.of(VARIABLES));
    }
    format!("CDEF:{}={}", draw.of(&["c", "c", "d", "a", ""]), draw.of(EXPRESSIONS))
}

fn print(draw: &mut Draw, verb: &str) -> String {
    let name = draw.of(&["v", "v", "w", "a:AVERAGE", "c:MAX", "a:LAST", "a", "c", "c:MIN"]);
    format!("{verb}:{name}:{}", draw.of(FORMATS))
}

/// An element of a graph.
fn element(draw: &mut Draw) -> String {
    match draw.below(8) {
        0..=2 => computed(draw),
        3..=4 => print(draw, "PRINT"),
        5 => print(draw, "GPRINT"),
        _ => of(
            draw,
            &[
                "LINE1:a#ff0000:x",
                "LINE2:a#00ff00:a\tb",
                "LINE1:v#ff0000:y",
                "LINE1:7#ff0000",
                "AREA:a",
                "AREA:b#0000ff:z\\l:STACK",
                "COMMENT:x",
                "COMMENT:a\tb\\t",
                "COMMENT:end\\n",
                "HRULE:5#f00",
                "HRULE:v#ff0000:h",
                "VRULE:1000000050#ff0000:t",
                "TICK:a#ff0000:0.1",
                "SHIFT:a:10",
                "TEXTALIGN:left",
                "TEXTALIGN:justified",
                "LINE:c",
                "STACK:a",
                "XPORT:a:l",
            ],
        ),
    }
}

/// An element of an export.
fn export(draw: &mut Draw) -> String {
    match draw.below(8) {
        0..=2 => computed(draw),
        3..=6 => format!(
            "XPORT:{}{}",
            draw.of(&["a", "a", "b", "c", "v", "x"]),
            draw.of(&["", ":legend", ":a b", ":\"q\"", ":x\\:y", ":", ":a\tb"])
        ),
        _ if draw.once_in(2) => print(draw, "PRINT"),
        _ => of(draw, &["SHIFT:a:10", "LINE1:a#ff0000:x", "PRINT:v:%lf", "x", "GPRINT:v:%s", "SHIFT:a:-20"]),
    }
}
