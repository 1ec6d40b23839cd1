//! `roundel query` over many RRDs, beside one pipe of `rrdtool graph ... PRINT` commands. The script makes the
//! files, runs both in turn and compares their answers; it can be run by hand too.

use std::io::Write;
use std::process::{Command, Stdio};

use super::Bench;
use crate::Outcome;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::volume::Volume;

const SCRIPT: &str = include_str!("../query.sh");
/// RRDs of 78 kB.
const COUNT: usize = 10_000;
const VOLUME_BYTES: u64 = 2 << 30;

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    bench.say("Query: 10000 RRDs are made, then read by both");
    let volume = Volume::isolated(&bench.place("query"), VOLUME_BYTES)?;
    let mut script = Command::new("sh");
    if let Some(before) = &bench.before {
        // Short rounds: more of them.
        script.env("BEFORE", before.roundel()).env("ROUNDS", "15");
    }
    let mut script = script
        .args(["-s", &COUNT.to_string()])
        .arg(volume.path().join("files"))
        .env("ROUNDEL", bench.ours.roundel())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = script.stdin.take() {
        stdin.write_all(SCRIPT.as_bytes())?;
    }
    let output = script.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("query.sh: {}: {text}", output.status).into());
    }
    let (mut peer, mut ours) = (Runs::default(), Runs::default());
    for (theirs, own) in text.lines().filter_map(round) {
        peer.push(theirs);
        ours.push(own);
    }
    bench.report.row(Row {
        figure: format!("`roundel query`, 95th percentile of {COUNT} RRDs over a month, from files"),
        peer,
        ours,
        unit: Unit::Seconds,
        goal: Goal::Part(20.0),
        aim: Goal::None,
    });
    bench.report.note(
        "Query",
        "8,640 rows of five minutes an RRD, page cache warm, three rounds in turn. The peer is one `rrdtool -` \
         with a `graph ... VDEF:p=in,95,PERCENT PRINT:p` for each RRD, at the rows' own step. The answers were \
         compared."
            .to_string(),
    );
    Ok(())
}

/// `round N: peer X ms, roundel Y ms` in seconds.
fn round(line: &str) -> Option<(f64, f64)> {
    let (theirs, ours) = line.strip_prefix("round ")?.split_once(": peer ")?.1.split_once(" ms, roundel ")?;
    let milliseconds = |text: &str| text.parse::<f64>().ok().map(|value| value / 1e3);
    Some((milliseconds(theirs)?, milliseconds(ours.strip_suffix(" ms")?)?))
}

#[cfg(test)]
mod tests {
    use super::round;

    #[test]
    fn rounds_are_read() {
        assert_eq!(round("round 2: peer 9060 ms, roundel 464 ms"), Some((9.06, 0.464)));
        assert_eq!(round("the answers differ"), None);
    }
}
