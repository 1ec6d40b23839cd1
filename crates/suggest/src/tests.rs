use args::times::Clock;
use graph::language::{Script, ScriptContext};
use graph::picture::options::parse::parse;
use rrd::definition::Definition;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;
use rrd::when::calendar::Utc;

use super::*;

const ROWS: &str = "RRA:AVERAGE:0.5:1:100";
const BANDS: &str = "RRA:AVERAGE:0.5:1:100 RRA:MIN:0.5:6:100 RRA:MAX:0.5:6:100";

fn of(name: &str, sources: &str, archives: &str) -> (String, Definition) {
    let sources: Vec<String> = sources.split(' ').map(|name| format!("DS:{name}:GAUGE:30:U:U")).collect();
    let args = format!("{} {archives}", sources.join(" "));
    let args: Vec<&str> = args.split(' ').collect();
    let options = CreateOptions {
        step: Step { units: 10, units_per_second: 1 },
        limits: Limits::STORE,
        file_name: b"x",
    };
    (name.to_string(), parse_create(&options, &args).unwrap())
}

fn graphs_of(all: &[(String, Definition)], make: impl Fn(&[Rrd<'_>]) -> Vec<Suggestion>) -> Vec<Suggestion> {
    let rrds: Vec<Rrd<'_>> =
        all.iter().map(|(name, definition)| Rrd { name: name.as_bytes(), definition, label: None }).collect();
    let graphs = make(&rrds);
    graphs.iter().for_each(check);
    graphs
}

/// The graph language reads every suggestion.
fn check(graph: &Suggestion) {
    let words: Vec<&[u8]> =
        std::iter::once(&b"-"[..]).chain(graph.arguments.iter().map(Vec::as_slice)).collect();
    let read = parse(&words, Clock { now: 1_000_000_000, calendar: &Utc }, None);
    let read = read.unwrap_or_else(|error| panic!("{error}: {graph:?}"));
    let context = ScriptContext { start: 0, end: 1, now: 1, calendar: &Utc };
    Script::parse(&read.elements, context).unwrap_or_else(|error| panic!("{error}: {graph:?}"));
}

fn text(graph: &Suggestion) -> String {
    let words: Vec<_> = graph.arguments.iter().map(|word| String::from_utf8_lossy(word)).collect();
    words.join(" ")
}

#[test]
fn a_preset_gives_title_unit_and_factor() {
    let all = [of("router/interface-eth0.rrd", "receive_bytes transmit_bytes other", ROWS)];
    let graphs = graphs_of(&all, |rrds| each(&Presets::shipped(), rrds[0]));
    let titles: Vec<_> = graphs.iter().map(|graph| (graph.title.as_str(), graph.unit.as_str())).collect();
    assert_eq!(titles, [("Traffic of router eth0", "bit/s"), ("router interface-eth0", "")]);
    assert!(text(&graphs[0]).contains("CDEF:v0=vraw0,8,*"), "{}", text(&graphs[0]));
    assert!(text(&graphs[1]).contains("DEF:v0=router/interface-eth0.rrd:other:AVERAGE"));
}

#[test]
fn lines_have_a_band_where_extremes_are_kept() {
    let band = |archives: &str, sources: &str| {
        let all = [of("a.rrd", sources, archives)];
        text(&graphs_of(&all, |rrds| each(&Presets::default(), rrds[0]))[0]).contains("STACK")
    };
    assert!(band(BANDS, "a b"));
    assert!(!band(BANDS, "a b c"), "three bands would hide one another");
    assert!(!band(ROWS, "a"));
    assert!(!band("RRA:LAST:0.5:1:10", "a"));
}

#[test]
fn forecasts_are_drawn_where_they_are_kept() {
    let graph = |archives: &str| {
        let all = [of("a.rrd", "a", archives)];
        text(&graphs_of(&all, |rrds| each(&Presets::default(), rrds[0]))[0])
    };
    // rrdcreate(1): HWPREDICT alone makes the others.
    let whole =
        graph("RRA:AVERAGE:0.5:1:100 RRA:MIN:0.5:6:100 RRA:MAX:0.5:6:100 RRA:HWPREDICT:1440:0.1:0.0035:288");
    for part in [
        "DEF:p0=a.rrd:a:HWPREDICT DEF:d0=a.rrd:a:DEVPREDICT DEF:f0=a.rrd:a:FAILURES",
        "TICK:f0#d6272850:1:  unlike the forecast",
        "CDEF:low0=p0,d0,2,*,- CDEF:usual0=d0,4,* AREA:low0 AREA:usual0#",
        "LINE1:p0#",
    ] {
        assert!(whole.contains(part), "{part}: {whole}");
    }
    assert!(!whole.contains("DEF:n0"), "two bands would hide one another: {whole}");
    assert!(graph("RRA:AVERAGE:0.5:1:100 RRA:MHWPREDICT:1440:0.1:0.0035:288").contains(":MHWPREDICT"));
    assert!(!graph(BANDS).contains("forecast"));
}

#[test]
fn many_sources_make_several_graphs() {
    let sources: Vec<String> = (0..70).map(|number| format!("s{number}")).collect();
    let all = [of("a.rrd", &sources.join(" "), ROWS)];
    assert_eq!(graphs_of(&all, |rrds| each(&Presets::shipped(), rrds[0])).len(), 3);
}

#[test]
fn a_family_is_one_graph() {
    let all = [
        of("host/cpu-0/cpu-idle.rrd", "value", ROWS),
        of("host/cpu-0/cpu-user.rrd", "value", ROWS),
        of("host/cpu-1/cpu-idle.rrd", "value", ROWS),
        of("host/load.rrd", "shortterm midterm longterm", ROWS),
    ];
    let graphs = graphs_of(&all, |rrds| directory(&Presets::shipped(), rrds));
    let titles: Vec<_> = graphs.iter().map(|graph| graph.title.as_str()).collect();
    assert_eq!(titles, ["cpu-0 cpu", "cpu-1 cpu-idle", "Load of host"]);
    let first = text(&graphs[0]);
    assert!(
        first.contains("AREA:v0#2f7ed8c0:idle") && first.contains("AREA:v1#e0751cc0:user:STACK"),
        "{first}"
    );
    assert_eq!(graphs[0].names.len(), 2);
}

#[test]
fn rrds_together_are_lines_a_stack_or_a_sum() {
    let all = [of("net/r1/eth0.rrd", "in out", ROWS), of("net/r2/eth0.rrd", "in out", ROWS)];
    let make = |how| graphs_of(&all, |rrds| together(&Presets::shipped(), rrds, how));
    for (how, want) in [
        (Together::Overlay, "LINE1.5:v1#e0751c:r2/eth0"),
        (Together::Stack, "AREA:v1#e0751cc0:r2/eth0:STACK"),
        (Together::Sum, "CDEF:sum=v0,v1,ADDNAN"),
    ] {
        let graphs = make(how);
        assert_eq!(graphs.len(), 2, "one for in, one for out");
        assert_eq!((graphs[0].title.as_str(), graphs[0].unit.as_str()), ("net in", "bit/s"));
        assert!(text(&graphs[0]).contains(want), "{}", text(&graphs[0]));
    }
}

#[test]
fn hostile_names_stay_names() {
    for name in
        ["a:b.rrd", "x y/<b>%s\\n:LINE1:v0.rrd", "-l/--x.rrd", "%0A/%2F.rrd", "\u{202e}.rrd", "\n.rrd"]
    {
        let all = [of(name, "a", BANDS), of("other.rrd", "a", BANDS)];
        let graphs = graphs_of(&all, |rrds| {
            let presets = Presets::shipped();
            let mut graphs = directory(&presets, rrds);
            graphs.extend(together(&presets, rrds, Together::Overlay));
            graphs
        });
        assert!(graphs.iter().all(|graph| !graph.title.contains('\n')), "{name}");
    }
}

#[test]
fn bad_presets_are_refused_with_their_place() {
    for (text, want) in [
        ("[[graph]]\nlines = []", "graph 1 has no lines"),
        ("[[graph]]\nlines = [{ source = 'a', as = 'bar' }]", "line 2"),
        ("[[graph]]\ntitel = 'x'\nlines = [{ source = 'a' }]", "titel"),
    ] {
        let error = Presets::parse(text).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    let mine = Presets::parse("[[graph]]\ntitle = 'mine'\nlines = [{ source = 'one' }]").unwrap();
    let all = [of("h/load.rrd", "one five fifteen", ROWS)];
    let graphs = graphs_of(&all, |rrds| each(&Presets::shipped().with(mine.clone()), rrds[0]));
    assert_eq!(graphs[0].title, "mine");
}
