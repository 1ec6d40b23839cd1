//! Shared by the oracle tests of this crate: RRDs made by Debian's rrdtool, their rows, and a clock.

use std::error::Error;
use std::path::{Path, PathBuf};

use roundel_graph::eval::{Data, evaluate};
use roundel_graph::language::{Script, ScriptContext};
use roundel_graph::plan::{Request, Rows, TimeRange};
use roundel_graph::print::TimeFormat;
use rrd::codec::file::decode;
use rrd::fetch::FetchRows;
use rrd::rpn::EvalContext;
use rrd::when::calendar::{Calendar, Utc};
use testkit::RrdTool;
use testkit::random::Random;

/// The RRDs start here.
pub const EPOCH: i64 = 1_000_000_000;
/// Approximate end of their data.
pub const END: i64 = EPOCH + 30_000;

/// Four RRDs of different steps, archives and gaps: `a.rrd` to `d.rrd`.
pub fn make_rrds(tool: &mut RrdTool) {
    let creates = [
        "create a.rrd --step 10 DS:in:GAUGE:25:U:U DS:out:COUNTER:25:U:U RRA:AVERAGE:0.5:1:1500 RRA:AVERAGE:0.5:6:900 \
         RRA:MAX:0.5:6:900 RRA:LAST:0.1:30:200",
        "create b.rrd --step 7 DS:in:GAUGE:20:U:U RRA:AVERAGE:0.5:1:2000 RRA:MIN:0.5:5:1000 RRA:AVERAGE:0.9:20:300",
        "create c.rrd --step 60 DS:in:GAUGE:120:U:U DS:out:GAUGE:120:U:U DS:x:DERIVE:200:0:U RRA:AVERAGE:0.5:1:600 \
         RRA:MAX:0.5:5:200 RRA:LAST:0.5:1:600",
        "create d.rrd --step 300 DS:in:GAUGE:600:U:U RRA:AVERAGE:0.5:1:50 RRA:AVERAGE:0.5:12:20 RRA:MAX:0.5:12:20 \
         RRA:HWPREDICT:40:0.1:0.0035:8",
    ];
    for create in creates {
        tool.run(&format!("{create} --start {EPOCH}")).unwrap();
    }
    let mut random = Random::new(7);
    for (name, step, sources) in
        [("a.rrd", 10u64, 2u64), ("b.rrd", 7, 1), ("c.rrd", 60, 3), ("d.rrd", 300, 1)]
    {
        let (mut time, mut count) = (EPOCH, 0);
        let mut line = format!("update {name}");
        while time < END {
            time += (step - step / 5) as i64 + random.below(step / 3 + 2) as i64;
            if random.once_in(100) {
                time += step as i64 * 6;
            }
            count += random.below(5000);
            let mut value = |column: u64| match random.below(12) {
                _ if column > 0 => count.to_string(),
                0 => "U".to_string(),
                1 => "0".to_string(),
                2 => format!("-{}.5", random.below(1000)),
                3 => format!("{}e{}", random.below(1000), random.below(24) as i64 - 9),
                _ => format!("{}.{:03}", random.below(100_000), random.below(1000)),
            };
            line += &format!(" {time}:{}", (0..sources).map(&mut value).collect::<Vec<_>>().join(":"));
            if line.len() > 3000 {
                tool.run(&line).unwrap();
                line = format!("update {name}");
            }
        }
        if line.contains(':') {
            tool.run(&line).unwrap();
        }
    }
}

/// Rows of files in a directory.
pub struct Files(pub PathBuf);

impl Rows for Files {
    fn fetch(&mut self, request: &Request) -> Result<FetchRows, Box<dyn Error + Send + Sync>> {
        let name = String::from_utf8(request.file.clone())?;
        let bytes = std::fs::read(self.0.join(&name))
            .map_err(|_| format!("opening '{name}': No such file or directory"))?;
        let rrd = decode(&bytes)?.rrd;
        let definition = &rrd.definition;
        let last = rrd.shape().split(&rrd.live.words).last_update;
        let plan = rrd::plan::plan(definition, last.whole, &request.fetch)?;
        let newest = definition.newest_row(plan.rra, last.whole);
        let (rows, ds) = (definition.rra[plan.rra].row_count as i64, definition.ds.len());
        let mut values = Vec::new();
        for row in plan.rows.clone() {
            let index = row - (newest - rows + 1);
            if (0..rows).contains(&index) {
                let at = index as usize * ds;
                values.extend_from_slice(&rrd.archives[plan.rra][at..at + ds]);
            } else {
                values.extend(std::iter::repeat_n(rrd::live::UNKNOWN, ds));
            }
        }
        Ok(FetchRows::new(definition, &plan, values))
    }
}

/// Dates in UTC: the few conversions that the tests use.
pub struct UtcDates;

impl TimeFormat for UtcDates {
    fn strftime(&self, format: &[u8], time: i64) -> Vec<u8> {
        let civil = Utc.local(time);
        let text = String::from_utf8_lossy(format).replace("%s", &time.to_string());
        let text =
            text.replace("%H", &format!("{:02}", civil.hour)).replace("%M", &format!("{:02}", civil.minute));
        text.replace("%Y", &civil.year.to_string()).into_bytes()
    }

    fn strftime_utc(&self, format: &[u8], time: i64) -> Vec<u8> {
        self.strftime(format, time)
    }
}

/// Parses, fetches and evaluates.
pub fn run(directory: &Path, range: TimeRange, arguments: &[String]) -> Result<(Script, Data), String> {
    let now = END + 1000;
    let context = ScriptContext { start: range.start, end: range.end, now, calendar: &Utc };
    let script = Script::parse(arguments, context).map_err(|error| error.to_string())?;
    let surroundings = EvalContext { now, first_weekday: 0, calendar: &Utc };
    let mut files = Files(directory.to_path_buf());
    let data = evaluate(&script, range, &mut files, &surroundings).map_err(|error| error.to_string())?;
    Ok((script, data))
}
