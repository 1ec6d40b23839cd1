//! One fuzz target for each reader of foreign bytes in this crate. A panic is a finding.
//!
//! Where possible, a target checks more than the absence of panics.

use crate::codec::file;
use crate::definition::text::{CreateOptions, Limits, parse_create};
use crate::definition::{Cf, Definition, DsKind};
use crate::fetch::FetchRequest;
use crate::live::{CdpPrep, Live};
use crate::reading::{Reading, parse_argument};
use crate::rpn::{EvalContext, Expression, Series, Symbol, Vdef};
use crate::time::Timestamp;
use crate::update::{RowSink, Scratch, Updater};
use crate::when::calendar::Utc;
use crate::when::{Step, parse_step};
use crate::{number, plan, rpn};

/// A sink that only checks the rows.
struct Rows<'a>(&'a Definition);

impl RowSink for Rows<'_> {
    fn rows(&mut self, rra: usize, _first_row: i64, count: u64, cells: &[CdpPrep]) {
        assert!(count >= 1 && count <= self.0.rra[rra].row_count && cells.len() == self.0.ds.len());
    }
}

/// A `.rrd` file: what was read is written back unchanged, takes updates, and can be fetched.
pub fn fuzz_file(bytes: &[u8]) {
    let Ok(parts) = file::decode(bytes) else { return };
    let written = file::encode(&parts.rrd, &parts.current_rows);
    let Ok(written) = written else { panic!("what a file held cannot be written: {written:?}") };
    let Ok(again) = file::decode(&written) else { panic!("what was written cannot be read") };
    assert_eq!(file::encode(&again.rrd, &again.current_rows).as_ref(), Ok(&written));
    let file::FileParts { mut rrd, .. } = parts;
    let shape = rrd.shape();
    let definition = &rrd.definition;
    let mut scratch = Scratch::default();
    for gap in [1, definition.step as i64 / 3 + 1, 3 * definition.step as i64, 1 << 32] {
        let Live { words, seasons } = &mut rrd.live;
        let head = shape.split_mut(words);
        let time = Timestamp::new(head.last_update.whole.saturating_add(gap), 500_000);
        let values: Vec<&[u8]> = vec![b"12"; definition.fed_count()];
        let reading = Reading { time, values: &values };
        // Refused or not: it must return.
        let (scratch, sink) = (&mut scratch, Rows(definition));
        let _ = Updater { definition, shape: &shape, head, seasons, scratch, sink }.apply(&reading);
    }
    let last = shape.split(&rrd.live.words).last_update.whole;
    for cf in Cf::ALL {
        for (start, end, resolution) in [(last - 3600, last, 1), (0, last, 300), (last, last + 7, 1 << 40)] {
            if let Ok(plan) = plan::plan(definition, last, &FetchRequest::new(cf, start, end, resolution)) {
                assert!(plan.rra < definition.rra.len() && plan.rows.start <= plan.rows.end);
            }
        }
    }
}

/// A number, as RRDtool reads it.
pub fn fuzz_number(bytes: &[u8]) {
    let _ = number::parse(bytes);
    if let Some(at) = bytes.iter().position(|&byte| byte == b' ') {
        let (a, b) = (&bytes[..at], &bytes[at + 1..]);
        let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        if digits(a) && digits(b) {
            let (up, down) = (number::difference(a, b), number::difference(b, a));
            assert!(up == -down || (up.is_nan() && down.is_nan()), "{up} {down}");
        }
    }
}

/// Update arguments, separated by line feeds, for an RRD with one source of each type.
pub fn fuzz_update(bytes: &[u8]) {
    let args = [
        "DS:a:GAUGE:600:U:U",
        "DS:b:COUNTER:600:0:1e9",
        "DS:c:DERIVE:600:U:U",
        "DS:d:ABSOLUTE:600:U:U",
        "DS:e:DCOUNTER:600:U:U",
        "DS:f:DDERIVE:600:U:U",
        "DS:g:COMPUTE:a,b,+",
        "RRA:AVERAGE:0.5:1:20",
        "RRA:MAX:0.5:4:10",
        "RRA:HWPREDICT:20:0.1:0.01:5",
    ];
    let options = CreateOptions { step: ONE_STEP, limits: Limits::FILE, file_name: b"x.rrd" };
    let Ok(definition) = parse_create(&options, &args) else { panic!("these arguments are good") };
    let mut live = crate::create::new_live(&definition, 1_000_000_000);
    let shape = crate::live::HeadShape::of(&definition);
    let now = Timestamp::whole(1_000_000_000);
    let mut scratch = Scratch::default();
    let mut values = Vec::new();
    for argument in bytes.split(|&byte| byte == b'\n') {
        let at_time = |_: &[u8]| Err("no".to_string());
        let Ok(reading) = parse_argument(argument, now, &definition, None, &at_time, &mut values) else {
            continue;
        };
        let fed = definition.ds.iter().filter(|ds| matches!(ds.kind, DsKind::Fed { .. })).count();
        assert_eq!(reading.values.len(), fed);
        let before = live.words.clone();
        let Live { words, seasons } = &mut live;
        let (head, scratch, sink) = (shape.split_mut(words), &mut scratch, Rows(&definition));
        let mut updater = Updater { definition: &definition, shape: &shape, head, seasons, scratch, sink };
        if updater.apply(&reading).is_err() {
            assert!(live.words == before, "a refused update changed something");
        }
    }
}

const ONE_STEP: Step = Step { units: 60, units_per_second: 1 };

/// Arguments of `create`, separated by line feeds: what parses can be created, unless it is huge.
pub fn fuzz_create(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let args: Vec<&str> = text.split('\n').collect();
    for limits in [Limits::FILE, Limits::STORE] {
        let options = CreateOptions { step: ONE_STEP, limits, file_name: b"x.rrd" };
        let Ok(definition) = parse_create(&options, &args) else { continue };
        let cells: u64 = definition.rra.iter().map(|rra| rra.row_count.min(1 << 30)).sum();
        if cells * (definition.ds.len() as u64) < 10_000 {
            crate::create::new_live(&definition, 1_000_000_000);
        }
    }
}

/// The expression of a COMPUTE source: if it compiles, it decompiles to text that compiles to the same program.
/// (RRDtool takes a final number only with a comma after it, but writes it without.)
pub fn fuzz_compute(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let earlier = ["a", "b", "c"];
    let Ok(program) = rpn::compile(text, &earlier) else { return };
    let back = rpn::decompile(&program, |index| earlier.get(index).copied());
    if let Ok(again) = rpn::compile(&back, &earlier) {
        assert_eq!(again, program, "{back}");
    }
}

/// A CDEF and, after a line feed, perhaps a VDEF of it: the result has the rows that its series have in
/// common.
pub fn fuzz_expression(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (text, vdef) = text.split_once('\n').unwrap_or((text, "c,95,PERCENT"));
    let values = [1.5, f64::NAN, -3.0, 0.0, f64::INFINITY, 1e300, -0.0, f64::NEG_INFINITY, 7.0];
    let series = [(1_000_000_000, 100, 30), (999_999_900, 300, 12), (1_000_000_200, 200, 9)];
    let series = series.map(|(start, step, count)| Series {
        start,
        step,
        values: values.iter().copied().cycle().take(count).collect(),
    });
    let lookup = |name: &str| match name {
        "v" => Some(Symbol::Scalar(0)),
        name => ["a", "b", "z"].iter().position(|known| *known == name).map(Symbol::Series),
    };
    let Ok(expression) = Expression::parse(text, lookup) else { return };
    let context = EvalContext { now: 1_000_000_000, first_weekday: 1, calendar: &Utc };
    let all: Vec<&Series> = series.iter().collect();
    let Ok(rows) = expression.evaluate_within(1 << 20, &all, &[95.0], &context) else { return };
    let read: Vec<&Series> = expression
        .symbols()
        .iter()
        .filter_map(|symbol| match symbol {
            Symbol::Series(index) => Some(all[*index]),
            Symbol::Scalar(_) => None,
        })
        .collect();
    for input in read {
        assert!(rows.start >= input.start && rows.end() <= input.end() && input.step % rows.step == 0);
    }
    if let Ok(vdef) = Vdef::parse("q", vdef, |name| (name == "c").then_some(Symbol::Series(0))) {
        let time = vdef.evaluate(&rows).time;
        assert!(time.is_none_or(|time| time >= rows.start && time <= rows.end()), "{time:?}");
    }
}

/// A duration.
pub fn fuzz_duration(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for sub_second in [false, true] {
        let _ = parse_step(text, sub_second);
    }
}

#[cfg(test)]
mod tests {
    use testkit::shake;

    use super::*;

    #[test]
    fn numbers_and_durations() {
        for good in ["-12.5e+3", "18446744073709551615", "nan", "123456789012345678901234567890 7"] {
            shake(good.as_bytes(), 20_000, fuzz_number);
        }
        for good in ["300", "5m", "1d", "0.1", "2.5s"] {
            shake(good.as_bytes(), 5_000, fuzz_duration);
        }
    }

    #[test]
    fn updates() {
        let good = "1000000060:1:2:3:4:5:6\nN:1.5:U:-3:4e3:0.5:U\n1000000360.25:1:4294967296:3:4:5:6\n\
            1000100000:1:2:3:4:5:6\n-5:1:2:3:4:5:6\n1000100060:7:9:9:9:9:9";
        shake(good.as_bytes(), 10_000, fuzz_update);
    }

    #[test]
    fn create_args_and_expressions() {
        let good = "DS:a:GAUGE:600:U:U\nDS:b:COMPUTE:a,2,*\nRRA:AVERAGE:0.5:1:20\nRRA:HWPREDICT:20:0.1:0.01:5\n\
            RRA:FAILURES:20:3:5:4";
        shake(good.as_bytes(), 20_000, fuzz_create);
        shake(b"a,b,+,c,UN,0,IF,10,LIMIT", 20_000, fuzz_compute);
        shake(b"a,1,2,3,4,5,SORT,POP,EXC,%,TIME,-", 20_000, fuzz_compute);
        let good = [
            "a,b,z,3,SORT,POP,EXC,600,2,300,95,z,PREDICTPERC,PREV(b),+,PREV,ADDNAN,9,INDEX,2,1,ROLL\nc,LAST",
            "a,v,500,TREND,1,COPY,DEPTH,COPY,DEPTH,AVG,NEWWEEK,300,-3,450,b,PREDICTSIGMA,LIMIT\nc,50,PERCENT",
            "a,b,1.5e3,4,REV,z,2,MEDIAN,4,STDEV,COUNT,STEPWIDTH,99,2,PERCENT,IF,LTIME,-\nc,LSLSLOPE",
        ];
        for good in good {
            shake(good.as_bytes(), 30_000, fuzz_expression);
        }
    }

    #[test]
    fn files() {
        let mut tool = testkit::RrdTool::start().unwrap();
        let args = "DS:a:COUNTER:600:U:U DS:b:COMPUTE:a,2,* RRA:AVERAGE:0.5:1:5 RRA:LAST:0.5:3:4 \
            RRA:MHWPREDICT:6:0.1:0.01:4";
        tool.run(&format!("create x.rrd -b 1000000000 -s 60 {args}")).unwrap();
        for minute in 1..12 {
            tool.run(&format!("update x.rrd {}:{}", 1_000_000_000 + 61 * minute, minute * minute)).unwrap();
        }
        let good = std::fs::read(tool.path("x.rrd")).unwrap();
        shake(&good, 20_000, fuzz_file);
        // Most of the file is rows and zeros; the interesting part is the header.
        let head = crate::codec::file::head_bytes(&good, good.len() as u64).unwrap();
        shake(&good[..head], 60_000, |front| fuzz_file(&[front, &good[head..]].concat()));
        for at in 0..head {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = value;
                fuzz_file(&bytes);
            }
        }
    }
}
