//! CDEF and VDEF against RRDtool's library: every bit of every row, the texts of errors.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

#[path = "support/operators.rs"]
mod operators;
mod support;

use operators::{BINARY, UNARY};
use roundel_rrd::live::UNKNOWN;
use roundel_rrd::rpn::{EvalContext, Expression, Series, Symbol, Vdef};
use roundel_rrd::when::calendar::Utc;
use support::Random;
use testkit::random::seeds;
use testkit::{Bindings, RrdTool};

const STEP: i64 = 100;
/// Where the graphs start and end; not a multiple of every step.
const START: i64 = 1_000_004_000;
const END: i64 = 1_000_006_500;

/// The variables: name, source, step of its archive, where it starts.
const VARIABLES: [(&str, &str, u64, i64); 6] = [
    ("a", "a", 100, START),
    ("b", "b", 100, START),
    ("c", "c", 100, START),
    ("long", "a", 100, START - 2500),
    ("w", "b", 300, START - 24_000),
    ("z", "c", 200, START - 15_000),
];
const A_VDEF: &str = "VDEF:v=a,AVERAGE";

struct Pair {
    perl: Bindings,
    file: String,
    series: Vec<Series>,
    _tool: RrdTool,
}

impl Pair {
    fn start() -> Pair {
        let mut tool = RrdTool::start().unwrap();
        let sources = "DS:a:GAUGE:200:U:U DS:b:GAUGE:200:U:U DS:c:GAUGE:200:U:U";
        let archives = "RRA:AVERAGE:0.5:1:100 RRA:AVERAGE:0.5:2:100 RRA:AVERAGE:0.5:3:100";
        tool.run(&format!("create f.rrd --start 1000000000 --step {STEP} {sources} {archives}")).unwrap();
        let mut random = Random::new(77);
        for row in 1..90 {
            let a = format!("{}.{}", random.below(2000) as i64 - 1000, random.next());
            let b = match random.below(4) {
                0 => "U".to_string(),
                _ => format!("{}e{}", random.next(), random.below(20) as i64 - 15),
            };
            let c = ["0", "1", "-1", "2.5", "U", "7", "-0.5"][random.below(7) as usize];
            tool.run(&format!("update f.rrd {}:{a}:{b}:{c}", 1_000_000_000 + row * STEP)).unwrap();
        }
        let mut perl = Bindings::start("UTC").unwrap();
        let file = tool.path("f.rrd").to_str().unwrap().to_string();
        let series = VARIABLES.iter().map(|variable| rows_of(&mut perl, &file, variable)).collect();
        Pair { perl, file, series, _tool: tool }
    }

    fn defs(&self) -> Vec<String> {
        let mut words: Vec<String> =
            ["--start", &START.to_string(), "--end", &END.to_string(), "--step", "100"]
                .map(str::to_string)
                .to_vec();
        for (name, source, step, start) in VARIABLES {
            words.push(format!("DEF:{name}={}:{source}:AVERAGE:step={step}:start={start}", self.file));
        }
        words.push(A_VDEF.to_string());
        words
    }

    /// RRDtool's rows of an expression: their times and values.
    fn theirs(&mut self, text: &str) -> Result<Vec<(i64, f64)>, String> {
        let mut words = self.defs();
        words.extend([format!("CDEF:result={text}"), "XPORT:result".to_string()]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let exported = self.perl.xport(&words);
        if exported.as_ref().is_err_and(|error| error == "perl ended") {
            self.perl = Bindings::start("UTC").unwrap();
        }
        let exported = exported?;
        let times = (0..).map(|index| exported.start + index * exported.step as i64);
        Ok(times.zip(exported.rows.iter().map(|row| row[0])).collect())
    }

    fn ours(&self, text: &str) -> Result<Series, String> {
        let expression = Expression::parse(text, lookup).map_err(|error| error.to_string())?;
        let scalar = Vdef::parse("v", "a,AVERAGE", lookup).unwrap().evaluate(&self.series[0]).value;
        let series: Vec<&Series> = self.series.iter().collect();
        let context = EvalContext { now: 0, first_weekday: 0, calendar: &Utc };
        expression.evaluate(&series, &[scalar], &context).map_err(|error| error.to_string())
    }

    /// Describes the difference, if there is one.
    fn difference(&mut self, text: &str) -> Option<String> {
        let (theirs, ours) = (self.theirs(text), self.ours(text));
        match (theirs, ours) {
            (Err(theirs), _) if theirs == "perl ended" => None,
            (Err(theirs), Err(ours)) if theirs == ours => None,
            (Ok(theirs), Ok(ours)) => theirs.iter().find_map(|&(time, value)| {
                let index = (time - ours.start) / ours.step as i64 - 1;
                let got = usize::try_from(index).ok().and_then(|index| ours.values.get(index).copied());
                let same = got
                    .is_some_and(|got| got.to_bits() == value.to_bits() || (got.is_nan() && value.is_nan()));
                (!same).then(|| format!("row {index}: {value:?} became {got:?}"))
            }),
            (theirs, ours) => Some(format!("{theirs:?} became {ours:?}")),
        }
    }
}

fn lookup(name: &str) -> Option<Symbol> {
    let index = VARIABLES.iter().position(|variable| variable.0 == name).map(Symbol::Series);
    index.or((name == "v").then_some(Symbol::Scalar(0)))
}

fn rows_of(perl: &mut Bindings, file: &str, variable: &(&str, &str, u64, i64)) -> Series {
    let (_, source, step, start) = *variable;
    let words = [file, "AVERAGE", "-r", &step.to_string(), "-s", &start.to_string(), "-e", &END.to_string()];
    let fetched = perl.fetch(&words).unwrap();
    assert_eq!(fetched.step, step);
    let column = ["a", "b", "c"].iter().position(|name| *name == source).unwrap();
    // A file's unknown value has the sign bit; Perl only knows that it is unknown.
    let signed = |value: f64| if value.is_nan() { UNKNOWN } else { value };
    let values = fetched.rows.iter().map(|row| signed(row[column])).collect();
    Series { start: fetched.start - step as i64, step, values }
}

/// In addition to those of `operators`.
const OWN_UNARY: [&str; 3] = ["1,INDEX,EXC,POP", "1,COPY,POP", "DUP,POP"];
const OWN_BINARY: [&str; 6] = ["2,AVG", "2,STDEV", "2,SMIN", "2,SMAX", "EXC,POP", "2,SORT,POP"];
const LEAVES: [&str; 28] = [
    "a",
    "b",
    "c",
    "long",
    "w",
    "z",
    "v",
    "UNKN",
    "INF",
    "NEGINF",
    "TIME",
    "LTIME",
    "COUNT",
    "STEPWIDTH",
    "PREV",
    "PREV(a)",
    "PREV(b)",
    "PREV(long)",
    "PREV(v)",
    "PREV(w)",
    "PREV(z)",
    "NEWDAY",
    "NEWWEEK",
    "NEWMONTH",
    "NEWYEAR",
    "DEPTH,1,ADDNAN",
    "NOW,NOW,-",
    "0,",
];

fn unary(random: &mut Random) -> String {
    random.pick(&[&UNARY[..], &OWN_UNARY].concat()).to_string()
}

fn binary(random: &mut Random) -> String {
    random.pick(&[&BINARY[..], &OWN_BINARY].concat()).to_string()
}

fn leaf(random: &mut Random) -> String {
    match random.below(6) {
        0 => format!("{}.{}e{},", random.below(1000), random.next(), random.below(24) as i64 - 12),
        1 => format!("-{},", random.below(10)),
        2 => window(random),
        _ => random.pick(&LEAVES).to_string(),
    }
}

fn window(random: &mut Random) -> String {
    let name = random.pick(&["a", "b", "c", "long", "w", "z"]);
    let seconds = random.below(15) as f64 * 50.0 + random.pick(&[&0.0, &0.0, &0.5, &0.99]);
    let shift = |random: &mut Random, count| {
        let seconds = random.below(count) as f64 * 50.0 + random.pick(&[&50.0, &50.0, &50.5, &1.0]);
        seconds.to_string()
    };
    match random.below(5) {
        0 => format!("{name},{seconds},TREND"),
        1 => format!("{name},{seconds},TRENDNAN"),
        kind => {
            let shifts: Vec<String> = (0..random.below(4)).map(|_| shift(random, 30)).collect();
            let mut words = shifts.clone();
            // With wider rows, the shift of 0 that this form begins with would read after the last row, where
            // RRDtool finds anything.
            match random.chance(30) && name != "w" && name != "z" {
                true => words = vec![shift(random, 9), format!("-{}", random.below(4))],
                false => words.push(shifts.len().to_string()),
            }
            words.push(seconds.to_string());
            if kind == 4 {
                words.push(((random.below(2000) as i64 - 1000) as f64 / 10.0).to_string());
            }
            let kind = ["PREDICT", "PREDICTSIGMA", "PREDICTPERC"][kind as usize - 2];
            format!("{},{name},{kind}", words.join(","))
        }
    }
}

/// A random expression as tokens that mostly keep the stack sound.
fn expression(random: &mut Random) -> Vec<String> {
    let mut words = vec![random.pick(&["a", "b", "c", "long", "w", "z"]).to_string()];
    let mut depth = 1;
    for _ in 0..random.below(12) {
        match random.below(10) {
            0..4 => {
                words.push(leaf(random));
                depth += 1;
            }
            4 | 5 => words.push(unary(random)),
            6 | 7 if depth > 1 => {
                words.push(binary(random));
                depth -= 1;
            }
            8 if depth > 2 => {
                let three = [
                    "IF",
                    "LIMIT",
                    "3,AVG",
                    "3,STDEV",
                    "3,SMAX",
                    "3,REV,POP,POP",
                    "50,3,PERCENT",
                    "5,2,PERCENT,+",
                    "50,0,PERCENT,+,+,+",
                ];
                words.push(random.pick(&three).to_string());
                depth -= 2;
            }
            9 if depth > 1 => {
                let count = 2 + random.below(depth - 1);
                let set = ["AVG", "STDEV", "SMIN", "SMAX", "MEDIAN"];
                words.push(format!("0,{},{}", count + 1, random.pick(&set)));
                depth -= count - 1;
            }
            _ => {}
        }
        if random.chance(1) {
            words
                .push(random.pick(&["+", "POP", "DUP", "IF", "3,SORT", "foo", "PREV(", "2,REV"]).to_string());
        }
    }
    for _ in 1..depth {
        words.push(random.pick(&BINARY).to_string());
    }
    words
}

fn text_of(words: &[String]) -> String {
    words.join(",").replace(",,", ",")
}

/// The shortest sublist of `words` that still differs, and how.
fn shrink(
    mut words: Vec<String>,
    mut difference: impl FnMut(&[String]) -> Option<String>,
) -> (String, String) {
    let mut how = difference(&words).unwrap_or_default();
    let mut index = 0;
    while index < words.len() {
        let mut fewer = words.clone();
        fewer.remove(index);
        match difference(&fewer) {
            Some(found) => {
                how = found;
                words = fewer;
                index = 0;
            }
            None => index += 1,
        }
    }
    (text_of(&words), how)
}

#[test]
fn random_expressions_give_rrdtools_rows() {
    let mut pair = Pair::start();
    let (mut found, mut rows) = (Vec::new(), 0);
    for seed in seeds(5000) {
        let words = expression(&mut Random::new(seed));
        rows += pair.ours(&text_of(&words)).map_or(0, |series| series.values.len());
        if pair.difference(&text_of(&words)).is_some() {
            let (text, how) = shrink(words, |words| pair.difference(&text_of(words)));
            found.push(format!("seed {seed}: {text}: {how}"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(rows > 50_000, "only {rows} rows");
}

const FUNCTIONS: [&str; 17] = [
    "MAXIMUM",
    "MINIMUM",
    "AVERAGE",
    "STDEV",
    "LAST",
    "FIRST",
    "TOTAL",
    "LSLSLOPE",
    "LSLINT",
    "LSLCORREL",
    "95,PERCENT",
    "50,PERCENT",
    "0,PERCENT",
    "100,PERCENT",
    "12.5,PERCENT",
    "90,PERCENTNAN",
    "33.3,PERCENTNAN",
];

impl Pair {
    /// Describes the difference between the values and times of every function over the same rows.
    fn vdef_difference(&mut self, text: &str) -> Option<String> {
        let ours = self.ours(text).ok()?;
        let mut words = self.defs();
        words.push(format!("CDEF:result={text}"));
        let mut wanted = Vec::new();
        for (index, function) in FUNCTIONS.iter().enumerate() {
            let vdef = format!("result,{function}");
            let result = |name: &str| (name == "result").then_some(Symbol::Series(0));
            let value = Vdef::parse("q", &vdef, result).unwrap().evaluate(&ours);
            if function.ends_with("PERCENTNAN") && ours.values.iter().all(|value| value.is_nan()) {
                assert!(value.value.is_nan() && value.time.is_none(), "{value:?}");
                continue;
            }
            wanted.push((function, value));
            words.push(format!("VDEF:q{index}={vdef}"));
            words.push(format!("PRINT:q{index}:%.17le"));
            words.push(format!("PRINT:q{index}:%s:strftime"));
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let printed = match self.perl.prints(&words) {
            Ok(printed) => printed,
            Err(error) => return Some(error),
        };
        wanted.iter().zip(printed.chunks(2)).find_map(|(&(function, want), printed)| {
            let value: f64 = printed[0].parse().unwrap();
            let time = want.time.map_or("-".to_string(), |time| time.to_string());
            // PRINT shows the sign of an unknown value.
            let same = match value.is_nan() && want.value.is_nan() {
                true => printed[0].starts_with('-') == want.value.is_sign_negative(),
                false => value.to_bits() == want.value.to_bits(),
            };
            (!same || time != printed[1]).then(|| format!("{function}: {printed:?} became {want:?}"))
        })
    }
}

#[test]
fn vdefs_of_random_expressions_are_rrdtools() {
    let mut pair = Pair::start();
    let mut found = Vec::new();
    for seed in seeds(1500) {
        let words = expression(&mut Random::new(seed));
        // A VDEF sees all rows, including those where RRDtool reads before or after the data (the rows before a
        // wider row of a variable, the shift of 0 in the last row). What it finds there is arbitrary.
        let wide = |word: &str| word.contains("w,") || word.contains("z,") || word.contains(",-");
        let outside =
            |word: &String| word.contains("(w") || word.contains("(z") || word.len() > 1 && wide(word);
        if words.iter().any(outside) {
            continue;
        }
        if pair.vdef_difference(&text_of(&words)).is_some() {
            let (text, how) = shrink(words, |words| pair.vdef_difference(&text_of(words)));
            found.push(format!("seed {seed}: {text}: {how}"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The text with some letters changed, as if mistyped.
fn mistyped(random: &mut Random, text: &str, letters: &[u8]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + random.below(3) {
        let index = random.below(bytes.len() as u64 + 1) as usize;
        let letter = letters[random.below(letters.len() as u64) as usize];
        match random.below(3) {
            0 => bytes.insert(index, letter),
            1 if index < bytes.len() => bytes[index] = letter,
            _ => bytes.truncate(bytes.len() - usize::from(index < bytes.len() && index > 0)),
        }
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn mistyped_expressions_are_refused_in_rrdtools_words() {
    let mut pair = Pair::start();
    let (mut found, mut refused) = (Vec::new(), 0);
    for seed in seeds(3000) {
        let mut random = Random::new(seed);
        let good = text_of(&expression(&mut random));
        let text = mistyped(&mut random, &good, b"awv,,,+-.0159ePREV()TIM%_ ");
        refused += usize::from(pair.ours(&text).is_err());
        // Two cases where RRDtool reads outside its data: the name of a PREV that is not closed, and the value
        // before the set for a small percentage.
        let last = text.rsplit(',').next().unwrap_or_default();
        let open = last
            .strip_prefix("PREV(")
            .is_some_and(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
        let small = text.contains(".0,3,PERCENT") || text.contains(",0,3,PERCENT");
        if open || small {
            continue;
        }
        if let Some(how) = pair.difference(&text) {
            found.push(format!("seed {seed}: {text}: {how}"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(refused > 500, "only {refused} refused");
}

#[test]
fn mistyped_vdefs_are_refused_in_rrdtools_words() {
    let mut pair = Pair::start();
    let mut found = Vec::new();
    for seed in seeds(3000) {
        let mut random = Random::new(seed);
        let good = format!("{},{}", random.pick(&["a", "w", "v", "long"]), random.pick(&FUNCTIONS));
        let text = mistyped(&mut random, &good, b"awv,,,+-.0159eNAPRXM() ");
        let ours =
            Vdef::parse("q", &text, lookup).map(drop).map_err(|error| error.to_string().replace('\n', "\\n"));
        let mut words = pair.defs();
        words.extend([format!("VDEF:q={text}"), "PRINT:q:%le".to_string()]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let theirs = pair.perl.prints(&words).map(drop);
        if ours != theirs {
            found.push(format!("seed {seed}: {text}: {theirs:?} became {ours:?}"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Random tokens for the stack, whatever its depth.
fn shuffles(random: &mut Random) -> Vec<String> {
    let words = [
        "a",
        "b",
        "c",
        "COUNT",
        "TIME",
        "DUP",
        "EXC",
        "POP",
        "DEPTH",
        "1,COPY",
        "2,COPY",
        "3,COPY",
        "DEPTH,COPY",
        "1,INDEX",
        "2,INDEX",
        "3,INDEX",
        "DEPTH,INDEX",
        "2,REV",
        "3,REV",
        "DEPTH,REV",
        "2,SORT",
        "DEPTH,SORT",
        "-0,",
        "0,",
        "UNKN",
        "INF",
        "NEGINF",
        "IF",
        "LIMIT",
        "3,SMAX",
        "DEPTH,SMIN",
        "DEPTH,AVG",
        "DEPTH,STDEV",
        "MINNAN",
    ];
    let mut list = vec!["a".to_string(), "b".to_string(), "c".to_string()];
    list.extend((0..random.below(15)).map(|_| random.pick(&words).to_string()));
    // One value computed from everything, which depends on the order too.
    if random.chance(70) {
        list.push("DEPTH,REV,POP".to_string());
        list.push("2,/,+".repeat(random.below(4) as usize + 1).replace("+2", "+,2"));
    } else {
        list.push("DEPTH,1,-,INDEX,DEPTH,SMAX".to_string());
    }
    list
}

#[test]
fn stacks_are_shuffled_as_in_rrdtool() {
    let mut pair = Pair::start();
    let (mut found, mut good) = (Vec::new(), 0);
    for seed in seeds(3000) {
        let words = shuffles(&mut Random::new(seed));
        good += usize::from(pair.ours(&text_of(&words)).is_ok());
        if pair.difference(&text_of(&words)).is_some() {
            let (text, how) = shrink(words, |words| pair.difference(&text_of(words)));
            found.push(format!("seed {seed}: {text}: {how}"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(good > 300, "only {good} expressions had rows");
}
