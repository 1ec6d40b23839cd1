//! Graphs beside Debian's rrdtool: in a session and one per process; and over HTTP without load and while W1 arrives.

mod http;

use std::fs;
use std::path::Path;

use super::Bench;
use super::tool::pipe::Pipe;
use super::tool::{DEBIAN, Side, sides};
use crate::Outcome;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::volume::Volume;

/// Room for files and pictures.
const VOLUME_BYTES: u64 = 1 << 30;
/// RRDs, all with the same rows.
const FILES: usize = 50;
/// Where the rows end; a multiple of a day.
const END: i64 = 1_699_920_000;
/// Steps of 300 s in a year.
const STEPS: i64 = 365 * 288;

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let volume = Volume::isolated(&bench.place("graph"), VOLUME_BYTES)?;
    let place = volume.path();
    let [theirs, ours] = sides(bench, place)?;
    fill(&theirs.directory)?;
    fs::create_dir(&ours.directory)?;
    for file in 0..FILES {
        let name = format!("{file}.rrd");
        fs::copy(theirs.directory.join(&name), ours.directory.join(&name))?;
    }
    sessions(bench, &theirs, &ours)?;
    processes(bench, &theirs, &ours)?;
    http::run(bench)?;
    bench.report.note(
        "Graphs",
        "RRDs of two data sources in steps of 300 s with a year of rows, page cache warm, both sides in turn. Session: \
         one `rrdtool -`, wall time from writing the commands until the last OK, pictures into a file. One process: \
         wall time of starting it until it has ended, 20 a run. HTTP: one connection a graph, one after the other, of \
         W1's RRDs; under load W1 arrives at full speed on another connection."
            .to_string(),
    );
    Ok(())
}

/// Makes the files with Debian's rrdtool.
fn fill(directory: &Path) -> Outcome<()> {
    fs::create_dir_all(directory)?;
    let mut pipe = Pipe::start(Path::new(DEBIAN), directory)?;
    let start = END - STEPS * 300;
    let create = format!(
        "create 0.rrd --start {start} --step 300 DS:in:GAUGE:600:0:U DS:out:GAUGE:600:0:U RRA:AVERAGE:0.5:1:600 \
         RRA:AVERAGE:0.5:6:700 RRA:AVERAGE:0.5:24:775 RRA:AVERAGE:0.5:288:797 RRA:MAX:0.5:1:600 RRA:MAX:0.5:6:700 \
         RRA:MAX:0.5:24:775 RRA:MAX:0.5:288:797\n"
    );
    pipe.run(create.as_bytes(), 1)?;
    for piece in 0..STEPS / 288 {
        let mut command = String::from("update 0.rrd");
        for step in piece * 288 + 1..=piece * 288 + 288 {
            let (wave, noise) = ((step % 288 - 144).abs() * 4_000, (step * 7_919) % 100_000);
            command.push_str(&format!(" {}:{}:{}", start + step * 300, wave + noise, wave / 2 + noise * 2));
        }
        command.push('\n');
        pipe.run(command.as_bytes(), 1)?;
    }
    for file in 1..FILES {
        fs::copy(directory.join("0.rrd"), directory.join(format!("{file}.rrd")))?;
    }
    Ok(())
}

/// The graph that most pages show: two DEFs, an area, a line, six texts.
fn usual(span: i64) -> String {
    format!(
        "--start {} --end {END} --width 400 --height 100 --title Traffic --vertical-label bits/s \
         DEF:i=0.rrd:in:AVERAGE DEF:o=0.rrd:out:AVERAGE AREA:i#00cc00:in LINE1:o#0000ff:out GPRINT:i:LAST:%6.2lf%s \
         GPRINT:i:AVERAGE:%6.2lf%s GPRINT:i:MAX:%6.2lf%s GPRINT:o:LAST:%6.2lf%s GPRINT:o:AVERAGE:%6.2lf%s \
         GPRINT:o:MAX:%6.2lf%s",
        END - span
    )
}

/// Twenty areas on top of each other, in a picture of a screen's width.
fn stacked(format: &str) -> String {
    let mut words =
        format!("--imgformat {format} --start {} --end {END} --width 1200 --height 600", END - 86_400);
    for index in 0..20 {
        let (stack, colour) = (if index == 0 { "" } else { ":STACK" }, index * 0x0c_0a_08 % 0xff_ff_ff);
        words.push_str(&format!(
            " DEF:v{index}={index}.rrd:in:AVERAGE AREA:v{index}#{colour:06x}:host{index}{stack}"
        ));
    }
    words
}

/// A hundred percentiles and no picture.
fn printed() -> String {
    let mut words = format!("--start {} --end {END}", END - 86_400);
    for index in 0..100 {
        let (file, ds) = (index / 2, if index % 2 == 0 { "in" } else { "out" });
        words.push_str(&format!(
            " DEF:v{index}={file}.rrd:{ds}:AVERAGE VDEF:p{index}=v{index},95,PERCENT PRINT:p{index}:%lf"
        ));
    }
    words
}

fn sessions(bench: &mut Bench, theirs: &Side, ours: &Side) -> Outcome<()> {
    let day = 86_400;
    let cases = [
        (
            "Graph 400x100 of a day, PNG, graphs/s in a session",
            format!("graph g.png {}", usual(day)),
            5.0,
            10.0,
        ),
        (
            "Graph 400x100 of a year, PNG, graphs/s in a session",
            format!("graph y.png {}", usual(365 * day)),
            5.0,
            10.0,
        ),
        (
            "Graph 1200x600 of 20 stacked DEFs, PNG, graphs/s in a session",
            format!("graph s.png {}", stacked("PNG")),
            4.0,
            0.0,
        ),
        (
            "Graph 1200x600 of 20 stacked DEFs, SVG, graphs/s in a session",
            format!("graph s.svg {}", stacked("SVG")),
            4.0,
            0.0,
        ),
        (
            "`graphv` of 100 DEFs with PRINT only, calls/s in a session",
            format!("graphv p.png {}", printed()),
            5.0,
            0.0,
        ),
    ];
    for (figure, command, goal, aim) in cases {
        bench.say(&format!("Graph: {figure}"));
        let mut pipes = [theirs.pipe()?, ours.pipe()?];
        let line = format!("{command}\n");
        let [their_text, our_text] = pipes.each_mut().map(|pipe| pipe.text(line.as_bytes()));
        if their_text? != our_text? {
            let text = format!("{figure}: the two print different texts, so it was not timed.");
            bench.report.omit("Graphs", text);
            continue;
        }
        let commands = line.repeat(20);
        let (mut peer, mut our) = (Runs::default(), Runs::default());
        let [their_pipe, our_pipe] = &mut pipes;
        for _ in 0..bench.pick(9, 25) {
            peer.push(20.0 / their_pipe.run(commands.as_bytes(), 20)?.as_secs_f64());
            our.push(20.0 / our_pipe.run(commands.as_bytes(), 20)?.as_secs_f64());
        }
        let aim = if aim > 0.0 { Goal::Times(aim) } else { Goal::None };
        let (figure, unit) = (figure.to_string(), Unit::PerSecond);
        bench.report.row(Row { figure, peer, ours: our, unit, goal: Goal::Times(goal), aim });
    }
    for (figure, file) in
        [("a day, 400x100", "g.png"), ("a year, 400x100", "y.png"), ("20 stacked DEFs", "s.png")]
    {
        let bytes =
            |side: &Side| fs::metadata(side.directory.join(file)).map(|found| Runs::one(found.len() as f64));
        bench.report.row(Row {
            figure: format!("Bytes of the PNG of {figure} (at most 1.1 times, aimed at 1/1.25)"),
            peer: bytes(theirs)?,
            ours: bytes(ours)?,
            unit: Unit::Bytes,
            goal: Goal::Part(1.0 / 1.1),
            aim: Goal::Part(1.0 / 0.8),
        });
    }
    Ok(())
}

fn processes(bench: &mut Bench, theirs: &Side, ours: &Side) -> Outcome<()> {
    bench.say("Graph: one a process");
    let commands = vec![format!("graph g.png {}", usual(86_400)); 20];
    let (mut peer, mut our) = (Runs::default(), Runs::default());
    for run in 0..bench.pick(10, 30) {
        let (theirs, ours) = (theirs.calls(&commands)?, ours.calls(&commands)?);
        // The first brings programs and fonts into the page cache.
        if run > 0 {
            peer.push(1.0 / theirs);
            our.push(1.0 / ours);
        }
    }
    bench.report.row(Row {
        figure: "Graph 400x100 of a day, PNG, graphs/s, one process each".to_string(),
        peer,
        ours: our,
        unit: Unit::PerSecond,
        goal: Goal::Times(8.0),
        aim: Goal::Times(15.0),
    });
    Ok(())
}
