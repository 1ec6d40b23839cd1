//! `bench/RESULTS.md`: the machine, the table, and how each row was measured.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::figures::{Goal, Runs, Unit};

mod against;

const HEAD: &str = "# Roundel beside its peers

Written by `make bench`; both sides measured in one run, alternating, on the same machine with the same
client. Median [min..max]. A value is one (RRD, time) pair. Workloads W1 and W2, \"accepted\" and
\"drained\": see the notes below. Where the peer column is empty, the goal is a bound of its own.

";
const COLUMNS: &str = "\
| figure | peer | Roundel | ratio | goal | aim | met |
|---|---|---|---|---|---|---|
";

/// One row of the table.
pub struct Row {
    /// What is measured.
    pub figure: String,
    /// The peer's.
    pub peer: Runs,
    /// Ours.
    pub ours: Runs,
    /// The unit of both.
    pub unit: Unit,
    /// The goal that must be reached.
    pub goal: Goal,
    /// The aim.
    pub aim: Goal,
}

/// The results of an earlier run: lines of the table by figure, and sections by title.
#[derive(Default)]
struct Earlier {
    rows: Vec<(String, String)>,
    notes: Vec<(String, Vec<String>)>,
}

impl Earlier {
    fn parse(text: &str) -> Self {
        let mut earlier = Earlier::default();
        let figures = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| figure |"));
        for line in figures {
            let figure = line[2..].split(" |").next().unwrap_or_default();
            earlier.rows.push((figure.to_string(), line.to_string()));
        }
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                earlier.notes.push((title.to_string(), Vec::new()));
            } else if let (Some(note), Some((_, lines))) = (line.strip_prefix("* "), earlier.notes.last_mut())
            {
                lines.push(note.to_string());
            }
        }
        earlier
    }
}

/// The results so far; rewritten after every scenario, so that an interrupted run loses nothing.
pub struct Report {
    path: PathBuf,
    head: String,
    rows: Vec<Row>,
    notes: Vec<(String, Vec<String>)>,
    earlier: Earlier,
    /// Two builds of ours are compared.
    is_against: bool,
}

impl Report {
    /// A report for `path`; `mode` says how it was called. With `update`, rows not measured this time stay as an
    /// earlier run left them.
    pub fn new(path: &Path, mode: &str, update: bool) -> Self {
        let head = format!("{}\nMode: {mode}.\n", machine());
        let text = if update { fs::read_to_string(path).unwrap_or_default() } else { String::new() };
        let earlier = Earlier::parse(&text);
        let head = if earlier.rows.is_empty() {
            head
        } else {
            format!(
                "{head}The other rows stand from an earlier run; both sides of a row are always from the same one.\n"
            )
        };
        Report {
            path: path.to_path_buf(),
            head,
            rows: Vec::new(),
            notes: Vec::new(),
            earlier,
            is_against: false,
        }
    }

    /// The same for two builds of ours, of which the other is in `before`.
    pub fn against(path: &Path, mode: &str, update: bool, before: &Path) -> Self {
        let mode = format!("{mode}; before: {}", before.display());
        Report { is_against: true, ..Self::new(path, &mode, update) }
    }

    /// Adds a row.
    pub fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Adds a line on how `scenario` was measured beside the peers.
    pub fn note(&mut self, scenario: &str, text: String) {
        if !self.is_against {
            self.omit(scenario, text);
        }
    }

    /// Adds a line on what could not be measured.
    pub fn omit(&mut self, scenario: &str, text: String) {
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

    /// How many rows of this run are slower than the other build's, and which; `None` beside peers.
    pub fn verdict(&self) -> Option<String> {
        self.is_against.then(|| against::verdict(&self.rows))
    }

    fn render(&self) -> String {
        let mut text = if self.is_against { against::HEAD.to_string() } else { HEAD.to_string() };
        text.push_str(&self.head);
        text.push('\n');
        text.push_str(if self.is_against { against::COLUMNS } else { COLUMNS });
        let mut lines = self.earlier.rows.clone();
        for row in &self.rows {
            let line = if self.is_against { against::line(row) } else { row.line() };
            match lines.iter_mut().find(|(figure, _)| *figure == row.figure) {
                Some(place) => place.1 = line,
                None => lines.push((row.figure.clone(), line)),
            }
        }
        for (_, line) in lines {
            text.push_str(&line);
            text.push('\n');
        }
        let mut notes = self.earlier.notes.clone();
        for (title, lines) in &self.notes {
            match notes.iter_mut().find(|(earlier, _)| earlier == title) {
                Some(place) => place.1.clone_from(lines),
                None => notes.push((title.clone(), lines.clone())),
            }
        }
        for (title, lines) in &notes {
            write!(text, "\n## {title}\n\n").ok();
            for line in lines {
                writeln!(text, "* {line}").ok();
            }
        }
        text
    }
}

impl Row {
    /// Its line of the table.
    fn line(&self) -> String {
        let (ours, peer) = (self.ours.median(), self.peer.median());
        let met = |goal: Goal| match goal.met(ours, peer) {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        let verdict = match (met(self.goal), met(self.aim)) {
            ("yes", "yes") => "yes, aim too",
            (goal, _) => goal,
        };
        let text = |runs: &Runs| if runs.median().is_nan() { String::new() } else { runs.text(self.unit) };
        format!(
            "| {} | {} | {} | {} | {} | {} | {verdict} |",
            self.figure,
            text(&self.peer),
            text(&self.ours),
            self.goal.ratio_text(ours, peer),
            self.goal,
            self.aim
        )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_measured_again_stays() {
        let row = |figure: &str, ours: f64| Row {
            figure: figure.to_string(),
            peer: Runs::one(2.0),
            ours: Runs::one(ours),
            unit: Unit::Number,
            goal: Goal::Times(2.0),
            aim: Goal::None,
        };
        let mut first = Report {
            path: PathBuf::new(),
            head: String::new(),
            rows: Vec::new(),
            notes: Vec::new(),
            earlier: Earlier::default(),
            is_against: false,
        };
        first.row(row("a", 4.0));
        first.row(row("b", 1.0));
        first.note("How", "so".to_string());
        let text = first.render();
        assert!(text.contains("| a | 2.00 | 4.00 | 2.00x | 2x | - | yes |\n"), "{text}");
        let mut second =
            Report { earlier: Earlier::parse(&text), rows: Vec::new(), notes: Vec::new(), ..first };
        second.row(row("b", 8.0));
        let text = second.render();
        assert!(text.contains("| a | 2.00 | 4.00 |") && text.contains("| b | 2.00 | 8.00 |"), "{text}");
        assert!(!text.contains("| b | 2.00 | 1.00 |") && text.contains("## How\n\n* so"), "{text}");
    }
}
