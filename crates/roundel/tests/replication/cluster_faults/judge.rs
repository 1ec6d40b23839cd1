//! What the replicas have in the end: all that was acknowledged, once and in its order, and all of them the same.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::load::{self, BEGIN, Sent};

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub acknowledged: u64,
    /// Not acknowledged, and there all the same.
    pub applied_besides: u64,
    /// Acknowledged, and not there: RRD and second.
    pub lost: Vec<(usize, u64)>,
    /// RRDs that are not what RRDtool makes of the updates that are there, each once and in their order.
    pub strange: Vec<usize>,
    /// RRDs of which replicas differ.
    pub different: Vec<usize>,
    /// RRDs that have fewer replicas than two.
    pub single: Vec<usize>,
}

fn rrdtool_dump(file: &Path) -> String {
    let output = Command::new("/usr/bin/rrdtool").arg("dump").arg(file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The first value of each row of the first archive, by its second.
fn levels(dump: &str) -> BTreeMap<u64, f64> {
    let first = dump.split("</rra>").next().unwrap();
    let rows = first.lines().filter(|line| line.contains("<row>"));
    let level = |line: &str| {
        let second = line.split("-->").next()?.rsplit('/').next()?.trim().parse().ok()?;
        let value: f64 = line.split("<v>").nth(1)?.split("</v>").next()?.parse().ok()?;
        (!value.is_nan()).then_some((second, value))
    };
    rows.filter_map(level).collect()
}

/// What Debian's rrdtool makes of these updates.
fn expected(place: &Path, rows: u64, seconds: &[u64]) -> String {
    let mut text = format!("create x.rrd {}\n", load::definition(rows));
    for some in seconds.chunks(100) {
        let readings: Vec<String> = some.iter().map(|second| load::reading(*second)).collect();
        text += &format!("update x.rrd {}\n", readings.join(" "));
    }
    let mut command = Command::new("/usr/bin/rrdtool");
    command.arg("-").current_dir(place).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // It answers meanwhile, which nothing reads before the end: a line each.
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!said.contains("ERROR"), "{said}");
    rrdtool_dump(&place.join("x.rrd"))
}

impl Verdict {
    /// Judges an RRD by the files that its replicas were exported to.
    pub fn take(&mut self, sent: &Sent, rows: u64, files: &[impl AsRef<Path>], place: &Path) {
        let dumps: Vec<String> = files.iter().map(|file| rrdtool_dump(file.as_ref())).collect();
        if dumps.len() < 2 {
            self.single.push(sent.rrd);
        }
        if dumps.iter().any(|dump| *dump != dumps[0]) {
            self.different.push(sent.rrd);
        }
        for dump in &dumps {
            let levels = levels(dump);
            let is_there = |second: u64| levels.get(&second) == Some(&((second - BEGIN) as f64));
            let mut applied = Vec::new();
            for (second, is_acknowledged) in sent.seconds.iter().skip(1) {
                match (is_there(*second), *is_acknowledged) {
                    (true, _) => applied.push(*second),
                    (false, true) => self.lost.push((sent.rrd, *second)),
                    (false, false) => {}
                }
            }
            let acknowledged = sent.seconds.iter().skip(1).filter(|(_, is)| *is).count() as u64;
            if std::ptr::eq(dump, &dumps[0]) {
                self.acknowledged += acknowledged;
                self.applied_besides += (applied.len() as u64).saturating_sub(acknowledged);
            }
            if *dump != expected(place, rows, &applied) {
                self.strange.push(sent.rrd);
            }
        }
    }
}
