//! Random scenarios: lists of commands, given to both programs, one process each. The shortest list that
//! still makes a difference is printed in the form of a case.

use crate::harness::{Answer, Draw, Pair};

/// Scenarios of one ordinary run. `ROUNDEL_ROUNDS` gives more.
const ROUNDS: u64 = 40;
/// Commands of one scenario.
const COMMANDS: usize = 14;
/// The second that histories start at.
const EPOCH: i64 = 1_000_000_000;

/// Whole lives of RRDs.
pub fn check() {
    run(scenario);
}

/// Command lines in any spelling.
pub fn check_spellings() {
    run(crate::spellings::scenario);
}

/// A number of the environment.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn run(scenario: impl Fn(&mut Draw) -> Vec<Command>) {
    if Pair::new().theirs.is_none() {
        println!("  (Debian's rrdtool is not installed)");
        return;
    }
    let first = number("ROUNDEL_SEED", 1);
    let mut differences = 0;
    for seed in first..first + number("ROUNDEL_ROUNDS", ROUNDS) {
        let scenario = scenario(&mut Draw::new(seed));
        if lasting_difference(&scenario).is_some() {
            let shortest = shrink(scenario);
            let text = difference(&shortest).unwrap_or_default();
            println!("seed {seed}:\n{text}");
            differences += 1;
        }
    }
    assert_eq!(differences, 0, "{differences} scenarios were answered differently");
}

/// The words of a command; `set NAME=value` is for the environment of those that follow.
pub type Command = Vec<String>;

/// A difference that is there each time: what counts from now may fall into another second for the second
/// program, and Debian's draws at random when the seasons of Holt-Winters archives are smoothed.
fn lasting_difference(scenario: &[Command]) -> Option<String> {
    let random = scenario.iter().flatten().any(|word| word.starts_with("RRA:HWPREDICT"));
    let mut found = None;
    for _ in 0..if random { 8 } else { 2 } {
        found = Some(difference(scenario)?);
    }
    found
}

/// Leaves out commands and words for as long as there is a difference.
fn shrink(mut scenario: Vec<Command>) -> Vec<Command> {
    let mut at = 0;
    while at < scenario.len() {
        let mut shorter = scenario.clone();
        shorter.remove(at);
        if lasting_difference(&shorter).is_some() {
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
            if lasting_difference(&shorter).is_some() {
                scenario = shorter;
            } else {
                word += 1;
            }
        }
    }
    scenario
}

/// The commands up to the first difference, with both answers.
fn difference(scenario: &[Command]) -> Option<String> {
    let mut pair = Pair::new();
    let mut theirs = pair.theirs.take()?;
    for directory in [&pair.ours.directory, &theirs.directory] {
        std::fs::create_dir(directory.join("sub")).expect("a directory");
        std::fs::write(directory.join("bad.rrd"), "x\n").expect("a file");
        std::fs::write(directory.join("empty.rrd"), "").expect("a file");
    }
    let mut text = String::new();
    let mut tries = 5;
    for words in scenario {
        let quoted: Vec<String> = words
            .iter()
            .map(
                |word| if word.is_empty() || word.contains(' ') { format!("'{word}'") } else { word.clone() },
            )
            .collect();
        text.push_str(&format!("$ {}\n", quoted.join(" ")));
        if words[0] == "set" {
            let (name, value) = words[1].split_once('=')?;
            for program in [&mut pair.ours, &mut theirs] {
                program.environment.push((name.to_string(), value.to_string()));
            }
            continue;
        }
        let answer = |program: &crate::harness::Program| normal(&pair, program.run(words, b""));
        let (mut ours, mut want) = (answer(&pair.ours), answer(&theirs));
        if words[0] == "restore" && want.error.starts_with("ERROR: error reading/parsing XML") {
            // What libxml2 says about what is no XML: ours only has to refuse it too.
            want.error.clone_from(&ours.error);
        }
        // A fetch up to now: between the two the clock may have gone on.
        while ours != want && tries > 0 && words[0] == "fetch" {
            tries -= 1;
            (ours, want) = (answer(&pair.ours), answer(&theirs));
        }
        // What Debian's dies of is no measure.
        want.status?;
        if ours != want {
            text.push_str(&format!("theirs: {}\nours:   {}\n", show(&want), show(&ours)));
            return Some(text);
        }
        if leaves_other_files(words, &want) {
            return None;
        }
    }
    pair.theirs = Some(theirs);
    let differing = compare_files(&pair);
    (!differing.is_empty()).then(|| text + &differing)
}

/// Whether it is known that Debian's leaves other files behind this: half of a tune, a broken copy, no output
/// where an older one was. `docs/compatibility.md` has them.
fn leaves_other_files(words: &[String], answer: &Answer) -> bool {
    let broken_copy = answer.error.starts_with("ERROR: Do not know how to handle RRD version");
    answer.status == Some(1) && (broken_copy || matches!(words[0].as_str(), "tune" | "dump"))
}

/// What differs between the files that are left. One that Debian's cannot read itself is no measure.
pub fn compare_files(pair: &Pair) -> String {
    let dumps = pair.dumps();
    let mut text = String::new();
    for (name, want) in dumps[1].iter().filter(|(_, want)| want.status == Some(0)) {
        let ours = dumps[0].get(name);
        if ours != Some(want) {
            let ours = ours.map_or(String::from("missing"), |answer| first_difference(answer, want));
            text.push_str(&format!("{name}: {ours}\n"));
        }
    }
    for name in dumps[0].keys().filter(|name| !dumps[1].contains_key(*name)) {
        text.push_str(&format!("{name}: only ours\n"));
    }
    text
}

/// The first line that differs, and both texts of it.
pub fn first_difference(ours: &Answer, theirs: &Answer) -> String {
    let lines = ours.output.lines().zip(theirs.output.lines());
    match lines.enumerate().find(|(_, (ours, theirs))| ours != theirs) {
        Some((line, (ours, theirs))) => format!("line {line}: theirs {theirs:?}, ours {ours:?}"),
        None => format!("theirs {}, ours {}", show(theirs), show(ours)),
    }
}

fn normal(pair: &Pair, answer: Answer) -> Answer {
    // The usage page is in our words, and so is what libxml2 says on the side.
    let usage = answer.output.starts_with("RRDtool 1.");
    // A remark without an error is list's.
    let error = answer.error.lines().rfind(|line| line.starts_with("ERROR: "));
    let error = error.unwrap_or(if answer.status == Some(0) { &answer.error } else { "" });
    Answer {
        output: if usage { "usage".to_string() } else { pair.normal(&answer.output) },
        error: pair.normal(error),
        status: answer.status,
    }
}

fn show(answer: &Answer) -> String {
    let mut output = answer.output.clone();
    output.truncate(output.floor_char_boundary(600));
    format!("{:?} {:?} {output:?}", answer.status, answer.error)
}

fn scenario(draw: &mut Draw) -> Vec<Command> {
    let mut clock = EPOCH;
    let mut commands = vec![create(draw, "a.rrd")];
    if draw.once_in(2) {
        commands.push(create(draw, "sub/b.rrd"));
    }
    while commands.len() < COMMANDS {
        let words = command(draw, &mut clock);
        commands.push(spoil(draw, words));
    }
    commands
}

/// Now and then a word goes, comes twice or is another one.
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

pub fn words(text: &str) -> Command {
    text.split_whitespace().map(str::to_string).collect()
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
        let time = if draw.once_in(8) { format!("{clock}.{}", draw.below(1000)) } else { clock.to_string() };
        let mark = if draw.once_in(10) { '@' } else { ':' };
        all.push(format!("{time}{mark}{}", values.join(":")));
    }
    all
}

fn command(draw: &mut Draw, clock: &mut i64) -> Command {
    let name = file(draw);
    match draw.below(20) {
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
    // Twice, for without an end one word less would make it millions of rows.
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
