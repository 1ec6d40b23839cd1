//! `bench/RESULTS.md`: the machine, the table, and how each row was measured.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::figures::{Goal, Runs, Unit};

/// One row of the table.
pub struct Row {
    /// What is measured.
    pub figure: String,
    /// The peer's.
    pub peer: Runs,
    /// Ours.
    pub ours: Runs,
    /// Of both.
    pub unit: Unit,
    /// To reach.
    pub goal: Goal,
    /// To aim at.
    pub aim: Goal,
}

/// The results so far; written anew after every scenario, so that nothing is lost when a run is broken off.
pub struct Report {
    path: PathBuf,
    head: String,
    rows: Vec<Row>,
    notes: Vec<(String, Vec<String>)>,
}

impl Report {
    /// An empty report to be written to `path`; `mode` says how it was called.
    pub fn new(path: &Path, mode: &str) -> Self {
        let head = format!("{}\nMode: {mode}.\n", machine());
        Report { path: path.to_path_buf(), head, rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Adds a line on how `scenario` was measured.
    pub fn note(&mut self, scenario: &str, text: String) {
        match self.notes.iter_mut().find(|(title, _)| title == scenario) {
            Some((_, lines)) => lines.push(text),
            None => self.notes.push((scenario.to_string(), vec![text])),
        }
    }

    /// Writes the file.
    pub fn write(&self) -> Outcome<()> {
        let text = self.render();
        fs::write(&self.path, text).map_err(|error| format!("cannot write {:?}: {error}", self.path))?;
        Ok(())
    }

    fn render(&self) -> String {
        let mut text = String::from("# Roundel beside its peers\n\n");
        text.push_str(
            "Written by `make bench`; both sides measured in one run, alternating, on the same machine with the same\n\
             client. Median [min..max]. A value is one (RRD, time) pair. Workloads W1 and W2, \"accepted\" and\n\
             \"drained\": see the notes below. Where the peer column is empty, the goal is a bound of its own.\n\n",
        );
        text.push_str(&self.head);
        text.push_str(
            "\n| figure | peer | Roundel | ratio | goal | aim | met |\n|---|---|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            let (ours, peer) = (row.ours.median(), row.peer.median());
            let met = |goal: Goal| match goal.met(ours, peer) {
                Some(true) => "yes",
                Some(false) => "**no**",
                None => "",
            };
            let verdict = match (met(row.goal), met(row.aim)) {
                ("yes", "yes") => "yes, aim too",
                (goal, _) => goal,
            };
            let peer_text = if peer.is_nan() { String::new() } else { row.peer.text(row.unit) };
            let ours_text = if ours.is_nan() { String::new() } else { row.ours.text(row.unit) };
            writeln!(
                text,
                "| {} | {peer_text} | {ours_text} | {} | {} | {} | {verdict} |",
                row.figure,
                row.goal.ratio_text(ours, peer),
                row.goal,
                row.aim
            )
            .ok();
        }
        for (title, lines) in &self.notes {
            write!(text, "\n## {title}\n\n").ok();
            for line in lines {
                writeln!(text, "* {line}").ok();
            }
        }
        text
    }
}

/// The machine in a few lines: processor, memory, kernel, the peers' versions.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or("?", |(_, value)| value.trim()).to_string()
    };
    let cpu = read("/proc/cpuinfo");
    let cores = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let load = read("/proc/loadavg");
    let kernel = read("/proc/sys/kernel/osrelease");
    format!(
        "Machine: {cores} x {}, {memory} of memory, Linux {}, load {} at the start. Peers: {}, {}.\n",
        field(&cpu, "model name"),
        kernel.trim(),
        load.split(' ').next().unwrap_or("?"),
        package("rrdcached"),
        package("victoria-metrics"),
    )
}

fn package(name: &str) -> String {
    let output =
        std::process::Command::new("dpkg-query").args(["-W", "-f", "${Package} ${Version}", name]).output();
    match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => format!("{name} (not installed)"),
    }
}
