//! Random life cycles of RRDs: created, updated, queried, tuned, dumped, restored, filled from others.

use crate::harness::Draw;

/// The arguments of a command; `set NAME=value` sets the environment of later ones.
pub type Command = Vec<String>;

/// Splits a line without quotes into arguments.
pub fn words(text: &str) -> Command {
    text.split_whitespace().map(str::to_string).collect()
}

/// Removes commands and arguments as long as a scenario stays `bad`.
pub fn shrink(mut scenario: Vec<Command>, bad: impl Fn(&[Command]) -> bool) -> Vec<Command> {
    let mut at = 0;
    while at < scenario.len() {
        let mut shorter = scenario.clone();
        shorter.remove(at);
        if bad(&shorter) {
            scenario = shorter;
        } else {
            at += 1;
        }
    }
    for at in 0..scenario.len() {
        let mut word = 1;
        while word < scenario[at].len() {
            let mut shorter = scenario.clone();
            shorter[at].remove(word);
            if bad(&shorter) {
                scenario = shorter;
            } else {
                word += 1;
            }
        }
    }
    scenario
}

/// Commands of one scenario.
const COMMANDS: usize = 14;
/// Start of all histories, in seconds.
const EPOCH: i64 = 1_000_000_000;

/// The commands of one life cycle.
pub fn scenario(draw: &mut Draw) -> Vec<Command> {
    let mut clock = EPOCH;
    let mut commands = environment(draw);
    commands.push(create(draw, "a.rrd"));
    if draw.once_in(2) {
        commands.push(create(draw, "sub/b.rrd"));
    }
    let length = commands.len() + COMMANDS;
    while commands.len() < length {
        let words = command(draw, &mut clock);
        if words.iter().any(|word| word.starts_with("N") || word.starts_with('-')) {
            commands.push(words_of_clock(clock));
        }
        commands.push(spoil(draw, words));
    }
    commands
}

fn words_of_clock(clock: i64) -> Command {
    vec!["set".to_string(), format!("FAKETIME={clock}")]
}

/// Stops the clock for both programs, because another second might begin between the two.
pub fn stop_clock() -> Vec<Command> {
    let library = testkit::faketime().display().to_string();
    if testkit::peer::debian("faketime", &library).is_none() {
        return Vec::new();
    }
    let library = vec!["set".to_string(), format!("LD_PRELOAD={library}")];
    vec![library, words("set FAKETIME_FMT=%s"), words_of_clock(EPOCH + 500)]
}

/// A fixed clock, a time zone, a language.
fn environment(draw: &mut Draw) -> Vec<Command> {
    let set = |text: String| vec!["set".to_string(), text];
    let mut all = stop_clock();
    if draw.once_in(4) {
        let zone = draw.of(&["Europe/Berlin", "America/New_York", "Asia/Kolkata", "EST5EDT"]);
        all.push(set(format!("TZ={zone}")));
    }
    if let Some(path) = crate::locales::path().filter(|_| draw.once_in(3)) {
        all.push(set(format!("LOCPATH={}", path.display())));
        let variable = draw.of(&["LC_ALL", "LC_NUMERIC", "LANG"]);
        if variable != "LC_ALL" {
            // The harness sets it.
            all.push(set("LC_ALL=".to_string()));
        }
        all.push(set(format!("{variable}={}", draw.of(crate::locales::NAMES))));
    }
    all
}

/// Occasionally removes, repeats or replaces an argument.
fn spoil(draw: &mut Draw, mut words: Command) -> Command {
    if draw.once_in(12) && words.len() > 1 {
        let at = 1 + draw.below(words.len() - 1);
        match draw.below(4) {
            0 => drop(words.remove(at)),
            1 => words.insert(at, words[at].clone()),
            2 => {
                words[at] = draw
                    .of(&["", "-", "--", "x", "1", "-1", "99999999999999999999", "nan", "a:b:c"])
                    .to_string()
            }
            _ => words.insert(at, draw.of(&["--", "-q", "--bogus", "-s", "--help"]).to_string()),
        }
    }
    words
}

fn file(draw: &mut Draw) -> String {
    draw.of(&[
        "a.rrd",
        "a.rrd",
        "a.rrd",
        "a.rrd",
        "sub/b.rrd",
        "c.rrd",
        "./a.rrd",
        "nope.rrd",
        "bad.rrd",
        "empty.rrd",
        "sub",
    ])
    .to_string()
}

fn create(draw: &mut Draw, name: &str) -> Command {
    let step = [1, 10, 60, 300][draw.below(4)];
    let mut all = words(&format!("create {name} -b {EPOCH} -s {step}"));
    for index in 0..1 + draw.below(3) {
        let kinds = ["GAUGE", "GAUGE", "COUNTER", "DERIVE", "ABSOLUTE", "DCOUNTER", "DDERIVE"];
        let kind = draw.of(if draw.tame { &kinds } else { &kinds[..5] });
        let limits = draw.of(&["U:U", "0:U", "0:1000", "-100:100", "U:1e6", "10:5"]);
        all.push(format!("DS:d{index}:{kind}:{}:{limits}", step * (1 + draw.below(4))));
    }
    if draw.once_in(6) {
        all.push(format!("DS:sum:COMPUTE:d0,{}", draw.of(&["2,*", "UN,0,d0,IF", "d0,+,", "foo,+", "1,+,"])));
    }
    for _ in 0..1 + draw.below(3) {
        let cf = draw.of(&["AVERAGE", "MAX", "MIN", "LAST"]);
        let xff = draw.of(&["0", "0.5", "0.999", "1", "x"]);
        let xff = if draw.once_in(8) { xff } else { "0.5" };
        all.push(format!("RRA:{cf}:{xff}:{}:{}", 1 + draw.below(6), 1 + draw.below(12)));
    }
    if draw.once_in(8) {
        all.push("RRA:HWPREDICT:30:0.1:0.01:7".to_string());
    }
    if draw.once_in(10) {
        let odd = draw.of(&[
            "--no-overwrite",
            "-O",
            "DS:d0:GAUGE:10:U:U",
            "RRA:FOO:1:2:3",
            "DS:toolongnameofadatasource:GAUGE:1:U:U",
            "RRA:AVERAGE:0.5:5m:1h",
        ]);
        all.push(odd.to_string());
    }
    all
}

fn value(draw: &mut Draw) -> String {
    match draw.below(10) {
        0 => "U".to_string(),
        1 if !draw.tame => draw
            .of(&["-5", "1e3", "0.1", "12345678901234567890", "x", "", "inf", "nan", "1,5", " 7"])
            .to_string(),
        2 => format!("{}.{:02}", draw.below(100), draw.below(100)),
        _ => draw.below(100_000).to_string(),
    }
}

fn update(draw: &mut Draw, verb: &str, clock: &mut i64) -> Command {
    let mut all = vec![verb.to_string(), file(draw)];
    let mut width = 1 + draw.below(3);
    if draw.once_in(4) {
        width = 1 + draw.below(2);
        let names: Vec<&str> =
            ["d0", "d1", "d2", "d9"][draw.below(3)..].iter().take(width).copied().collect();
        all.extend(["-t".to_string(), names.join(":")]);
    }
    if draw.once_in(5) {
        all.push("--skip-past-updates".to_string());
    }
    for _ in 0..1 + draw.below(4) {
        *clock += [1, 7, 10, 60, 300, 1000, 0, -5][draw.below(8)];
        let values: Vec<String> = (0..width).map(|_| value(draw)).collect();
        let time = match draw.below(16) {
            0 | 1 => format!("{clock}.{}", draw.below(1000)),
            2 => "N".to_string(),
            // Relative to now.
            3 => format!("-{}", draw.below(30)),
            _ => clock.to_string(),
        };
        let mark = if draw.once_in(10) { '@' } else { ':' };
        let time = if mark == '@' && draw.once_in(3) { draw.of(&["now", "now-5", "N"]) } else { &time };
        all.push(format!("{time}{mark}{}", values.join(":")));
    }
    all
}

fn command(draw: &mut Draw, clock: &mut i64) -> Command {
    let name = file(draw);
    match draw.below(23) {
        20 => xport(draw),
        21 => tune_layout(draw, &name),
        22 => words(&format!(
            "{} {name} {}",
            draw.of(&["fetch -s now-5min -e now", "fetch -s end-90", "fetch -s now-2h -r 60"]),
            draw.of(&["AVERAGE", "MAX", "LAST"])
        )),
        0..=5 => update(draw, "update", clock),
        6 => update(draw, "updatev", clock),
        7..=9 => fetch(draw, &name),
        10 => words(&format!("info {name}{}", draw.of(&["", " -F", " --noflush", " x"]))),
        11 => words(&format!("{} {name}", draw.of(&["last", "lastupdate", "first"]))),
        12 => words(&format!("first {name} --rraindex {}", draw.of(&["0", "1", "2", "9", "-1", "x"]))),
        13 => words(&format!(
            "dump {name} {}",
            draw.of(&["", "-n", "-h xsd", "--header=none", "out.xml", "-h dtd out.xml"])
        )),
        14 => words(&format!(
            "restore out.xml {} {}",
            draw.of(&["c.rrd", "a.rrd", "sub/c.rrd"]),
            draw.of(&["", "-f", "-r", "-r -f"])
        )),
        15 => words(&format!(
            "list {}",
            draw.of(&[
                ".",
                "sub",
                "-r .",
                "--recursive sub",
                "nope",
                "a.rrd",
                "./*.rrd",
                "./a.rrd",
                "-r sub/b.rrd",
                "./out.xml",
                "s*/b.rrd",
                "*/*.rrd",
                "./[a-c].r?d",
                "-r ./*",
                "sub/.*",
                "a.rrd/*",
                "./s*/",
            ])
        )),
        16 => words(&format!(
            "resize {name} {} {} {}",
            draw.below(3),
            draw.of(&["GROW", "SHRINK"]),
            1 + draw.below(5)
        )),
        17 => words(&format!(
            "tune {name} {}",
            draw.of(&[
                "-h d0:77",
                "-i d0:1 -a d0:U",
                "-d d0:GAUGE",
                "-r d0:e0",
                "--maximum d1:5",
                "-h d9:1",
                "-r d0:d1",
                "foo",
                "-x 0.5",
                "--deltapos 3",
                "-d d0:COUNTER -h d0:1"
            ])
        )),
        18 => {
            let mut all = create(draw, "c.rrd");
            if draw.once_in(2) {
                all.extend(words(draw.of(&[
                    "-r a.rrd",
                    "-t a.rrd",
                    "-r a.rrd -r sub/b.rrd",
                    "-r nope.rrd",
                    "-t nope.rrd -O",
                ])));
            }
            all
        }
        _ => words(draw.of(&[
            "flushcached a.rrd",
            "last",
            "help",
            "bogus x",
            "info",
            "flushcached",
            "update a.rrd",
            "list",
        ])),
    }
}

fn fetch(draw: &mut Draw, name: &str) -> Command {
    let cf = draw.of(&[
        "AVERAGE",
        "AVERAGE",
        "MAX",
        "MIN",
        "LAST",
        "HWPREDICT",
        "SEASONAL",
        "FAILURES",
        "average",
    ]);
    let start = EPOCH - 100 + draw.below(600) as i64;
    let end = start + [0, 1, 60, 300, 3000][draw.below(5)] - i64::from(draw.once_in(15)) * 5000;
    // Given twice, because without an end, one argument less would mean millions of rows.
    let mut all = words(&format!("fetch --start {start} --end {end} {name} {cf} -s {start} -e {end}"));
    if draw.once_in(3) {
        all.extend(words(&format!("-r {}", draw.of(&["1", "10", "60", "5m", "1h", "0", "x", "7"]))));
    }
    if draw.once_in(4) {
        all.push("--align-start".to_string());
    }
    if draw.once_in(8) {
        all.extend(words(&format!(
            "-s {}",
            draw.of(&["end-1h", "e-60", "20010909", "00:00", "start-5", "now+"])
        )));
    }
    all
}

/// Columns and a range, in all the forms of the output; drawn elements among them.
fn xport(draw: &mut Draw) -> Command {
    let start = EPOCH - 100 + draw.below(600) as i64;
    let end = start + [1, 60, 300, 3000][draw.below(4)];
    let mut all = words(&format!("xport -s {start} -e {end}"));
    for _ in 0..draw.below(3) {
        all.extend(words(draw.of(&[
            "--json",
            "-t",
            "--showtime",
            "--enumds",
            "-m 10",
            "-m 17",
            "--maxrows 9",
            "--step 60",
            "--step 7",
            "--step 0",
        ])));
    }
    for index in 0..1 + draw.below(2) {
        let (name, source) = (draw.of(&["a.rrd", "a.rrd", "sub/b.rrd"]), draw.below(2));
        let cf = draw.of(&["AVERAGE", "MAX", "MIN", "LAST"]);
        // With a start or end inside the range, Debian's rrdtool reads beyond its data.
        let more = draw.of(&["", "", ":step=30", ":reduce=MAX"]);
        all.push(format!("DEF:v{index}={name}:d{source}:{cf}{more}"));
    }
    for _ in 0..1 + draw.below(4) {
        all.push(
            draw.of(&[
                "CDEF:c=v0,2,*",
                "CDEF:c=v0,UN,0,v0,IF",
                "CDEF:c=v0,TIME,+",
                "CDEF:w=TIME,NEWWEEK,NEWDAY,+,v0,0,*,+",
                "VDEF:x=v0,MAXIMUM",
                "VDEF:x=v0,95,PERCENT",
                "XPORT:v0",
                "XPORT:v0:a legend",
                "XPORT:c:\"quoted\" <x> & y",
                "XPORT:x",
                "XPORT:v1:b\\:c",
                "PRINT:x:%lf",
                "GPRINT:x:%6.2lf %s",
                "LINE1:v0#ff0000:red",
                "LINE:c",
                "AREA:v0#00ff0080",
                "STACK:v0#0000ff",
                "HRULE:5#000000:five",
                "VRULE:1000000100#ff0000",
                "TICK:v0#ff0000:0.5:t",
                "SHIFT:v0:60",
                "SHIFT:c:x",
                "COMMENT:some text",
                "TEXTALIGN:left",
                "LINE1:nope#ff0000",
                "LINE1:v0#ff00",
                "AREA:v0#ff0000:x:STACK:skipscale",
            ])
            .to_string(),
        );
    }
    if draw.once_in(2) {
        all.push("XPORT:v0:v".to_string());
    }
    all
}

/// Adding and removing sources and archives, except changes that compute rows from others differently than
/// Debian's rrdtool.
fn tune_layout(draw: &mut Draw, name: &str) -> Command {
    let mut all = words(&format!("tune {name}"));
    for _ in 0..1 + draw.below(2) {
        all.push(
            draw.of(&[
                "DS:n0:GAUGE:60:U:U",
                "DS:n1:COUNTER:20:0:100",
                "DS:d0:GAUGE:60:U:U",
                "DS:n2:COMPUTE:d0,2,*",
                "DEL:d0",
                "DEL:d1",
                "DEL:n0",
                "DEL:nope",
                "DEL:",
                "DELRRA:9",
                "RRA#0:-1",
                "RRA#1:-2",
                "RRA#9:+1",
                "RRA#0:x",
                "RRA:FOO:1:2:3",
                "-h d0:44",
            ])
            .to_string(),
        );
    }
    all
}
