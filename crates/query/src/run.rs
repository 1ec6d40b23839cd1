//! Runs a query: one set of arguments, many RRDs, several threads, one answer in order.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use client::{Daemon, Daemons};
use graph::language::{Element, Script};
use graph::plan::{TimeRange, plan};
use graph::xport::Table;
use protocol::rrdcached::address::Address;
use rrd::rpn::Symbol;
use rrdgraph::{Evaluator, GraphContext};

use crate::AHEAD;
use crate::error::QueryError;
use crate::format::{Block, Format, Heading, RRD, sink};
use crate::names::{self, Match};
use crate::source::Source;

/// Batches of [`AHEAD`] answers that may wait for their turn, per thread.
const WAITING_MAX: usize = 2;

/// Answers that a thread hands over at once: waking the receiver costs as much as a small RRD.
type Batch = Vec<Result<Block, String>>;

/// A query.
#[derive(Clone, Debug)]
pub struct Query {
    /// DEF, CDEF, VDEF, PRINT and XPORT as in graphs; the file of a DEF may have wildcards.
    pub arguments: Vec<Vec<u8>>,
    /// Percentiles of every exported variable, or of all if none is exported; as texts, for their names.
    pub percentiles: Vec<String>,
    /// Range and step.
    pub range: TimeRange,
    /// What `now` means: seconds since the epoch.
    pub now: i64,
    /// Address of the daemon to ask; `None` = files are read.
    pub daemon: Option<String>,
    /// Threads; at least one.
    pub threads: usize,
}

/// The result of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many RRDs (or groups of them) were answered.
    pub answered: usize,
    /// The names of the others, and why they were not.
    pub failures: Vec<(String, String)>,
}

/// One file for each pattern of the DEFs.
struct Group {
    name: String,
    /// One per pattern.
    files: Vec<Vec<u8>>,
}

impl Query {
    /// Runs the query and writes the answer.
    ///
    /// # Errors
    /// [`QueryError`]; failures of single RRDs are in the report instead.
    pub fn run(&self, format: Format, out: &mut (dyn Write + Send)) -> Result<Report, QueryError> {
        let evaluator = self.parse()?;
        let patterns = patterns(&evaluator.script);
        let daemons = Daemons::default();
        let daemon = self.daemon.as_deref().map(|address| connect(&daemons, address)).transpose()?;
        let daemon = daemon.as_deref();
        let (groups, mut report) = self.groups(&evaluator.script, &patterns, daemon)?;
        let heading = heading(&evaluator, &groups);
        let mut sink = sink(format, heading, out)?;
        let threads = self.threads.clamp(1, groups.len().max(1));
        thread::scope(|scope| {
            let mut answers: Vec<Answers> = Vec::new();
            for worker in 0..threads {
                let (sender, receiver) = sync_channel(WAITING_MAX);
                let own: Vec<&Group> = groups.iter().skip(worker).step_by(threads).collect();
                let (evaluator, patterns) = (evaluator.clone(), patterns.as_slice());
                let source = Source::new(daemon, &daemons);
                scope.spawn(move || self.work(evaluator, patterns, &own, source, &sender));
                answers.push(Answers { receiver, lot: Vec::new().into_iter() });
            }
            for (index, group) in groups.iter().enumerate() {
                match answers[index % threads].next() {
                    Some(Ok(block)) => {
                        sink.add(&block)?;
                        report.answered += 1;
                    }
                    Some(Err(why)) => report.failures.push((group.name.clone(), why)),
                    None => report.failures.push((group.name.clone(), "its thread has ended".to_string())),
                }
            }
            sink.finish()
        })?;
        Ok(report)
    }

    /// Parses the arguments, with VDEFs for the percentiles, and refuses elements that a query cannot use.
    fn parse(&self) -> Result<Evaluator, QueryError> {
        let parse = |arguments: &[Vec<u8>]| {
            Evaluator::parse(arguments, self.range, GraphContext::at(self.now)).map_err(QueryError::Language)
        };
        let mut arguments = self.arguments.clone();
        let evaluator = parse(&arguments)?;
        let script = &evaluator.script;
        if script.series_count() == 0 {
            return Err(QueryError::Nothing);
        }
        for (element, line) in script.elements.iter().zip(&arguments) {
            let of_graphs = match element {
                Element::Print(print) => print.inside,
                element => {
                    matches!(element, Element::Comment(_) | Element::TextAlign(_) | Element::Graphic(_))
                }
            };
            if of_graphs {
                return Err(QueryError::Element(String::from_utf8_lossy(line).into_owned()));
            }
        }
        if has_prints(script) && has_rows(script) {
            return Err(QueryError::PrintBesideRows);
        }
        let columns = columns(&evaluator);
        for percentile in &self.percentiles {
            let number = percentile.parse::<f64>();
            if !number.is_ok_and(|number| (0.0..=100.0).contains(&number)) {
                return Err(QueryError::Percentile(percentile.clone()));
            }
            for (series, _) in &columns {
                let name = display(evaluator.name(*series));
                arguments.push(format!("VDEF:{name}_p{percentile}={name},{percentile},PERCENT").into_bytes());
            }
        }
        if self.percentiles.is_empty() {
            return Ok(evaluator);
        }
        // Percentiles replace the rows.
        arguments.retain(|line| !line.starts_with(b"XPORT"));
        parse(&arguments)
    }

    /// The files that belong together, in the order of their names.
    fn groups(
        &self,
        script: &Script,
        patterns: &[Vec<u8>],
        daemon: Option<&Daemon>,
    ) -> Result<(Vec<Group>, Report), QueryError> {
        let Some(first) = patterns.first() else {
            let name = defs(script).next().unwrap_or_default();
            return Ok((vec![Group { name: display(&name), files: Vec::new() }], Report::default()));
        };
        let relative = |pattern: &Vec<u8>| !pattern.starts_with(b"/");
        let listed = match daemon {
            // A daemon's names are relative to its base directory; absolute ones are files of this host.
            Some(daemon) if patterns.iter().any(relative) => {
                Some(daemon.list_all().map_err(|error| QueryError::of_daemon(daemon.address(), &error))?)
            }
            _ => None,
        };
        let mut matches: Vec<BTreeMap<Match, Vec<u8>>> = Vec::new();
        for pattern in patterns {
            matches.push(match &listed {
                Some(listed) if relative(pattern) => {
                    names::of_list(pattern, listed.iter().map(Vec::as_slice))
                }
                _ => names::of_files(pattern),
            });
        }
        let mut report = Report::default();
        let mut groups = Vec::new();
        for (matched, name) in &matches[0] {
            let others = matches.iter().zip(patterns).map(|(files, pattern)| {
                if files.keys().next().is_some_and(|other| other.len() != matched.len()) {
                    return Err(QueryError::Wildcards(display(first), display(pattern)));
                }
                Ok(files.get(matched).cloned())
            });
            let files = others.collect::<Result<Vec<_>, _>>()?;
            match patterns.iter().zip(&files).find(|(_, file)| file.is_none()) {
                Some((pattern, _)) => {
                    report
                        .failures
                        .push((display(name), format!("nothing beside it matches \"{}\"", display(pattern))));
                }
                None => {
                    groups.push(Group { name: display(name), files: files.into_iter().flatten().collect() })
                }
            }
        }
        if groups.is_empty() && report.failures.is_empty() {
            return Err(QueryError::NoRrd(display(first)));
        }
        groups.sort_by(|one, other| one.name.cmp(&other.name));
        Ok((groups, report))
    }

    /// Answers one thread's share of the groups. Ends early if the receiver is gone.
    fn work(
        &self,
        mut evaluator: Evaluator,
        patterns: &[Vec<u8>],
        groups: &[&Group],
        mut source: Source<'_>,
        sender: &SyncSender<Batch>,
    ) {
        let defs = defs_with_patterns(&evaluator.script, patterns);
        for groups in groups.chunks(AHEAD) {
            let mut requests = Vec::new();
            for group in groups {
                put(&mut evaluator.script, &defs, group);
                requests.extend(plan(&evaluator.script, self.range).requests);
            }
            let asked = source.ask_ahead(&requests).map_err(|error| error.to_string());
            let answer = |group: &&Group| {
                put(&mut evaluator.script, &defs, group);
                asked.clone().and_then(|()| block(&evaluator, &mut source, &group.name))
            };
            if sender.send(groups.iter().map(answer).collect()).is_err() {
                return;
            }
        }
    }
}

/// The lines of one group of files.
fn block(evaluator: &Evaluator, source: &mut Source, name: &str) -> Result<Block, String> {
    let data = evaluator.evaluate(source).map_err(|error| error.to_string())?;
    let mut block = Block { name: name.to_string(), ..Block::default() };
    if !has_rows(&evaluator.script) {
        block.columns = data.scalars.iter().map(|scalar| vec![scalar.value]).collect();
        let printed = evaluator.print(&data, BASE).map_err(|error| error.to_string())?;
        block.texts = printed.outside.iter().map(|text| display(text)).collect();
        return Ok(block);
    }
    let columns: Vec<_> = columns(evaluator).iter().map(|(series, _)| &data.series[*series]).collect();
    let table = Table::of(evaluator.range, &columns).ok_or("there are no rows")?;
    block.times = (0..table.rows()).map(|index| table.time(index)).collect();
    let rows = table.rows() as usize;
    block.columns = table.cells().into_iter().map(|cells| cells.take(rows).collect()).collect();
    Ok(block)
}

/// The answers of one thread, in order.
struct Answers {
    receiver: Receiver<Batch>,
    lot: std::vec::IntoIter<Result<Block, String>>,
}

impl Iterator for Answers {
    type Item = Result<Block, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.lot.len() == 0 {
            self.lot = self.receiver.recv().ok()?.into_iter();
        }
        self.lot.next()
    }
}

/// The patterns of a script, each once.
fn patterns(script: &Script) -> Vec<Vec<u8>> {
    let mut patterns: Vec<Vec<u8>> = Vec::new();
    for file in defs(script).filter(|file| args::pattern::has_wildcards(file)) {
        if !patterns.contains(&file) {
            patterns.push(file);
        }
    }
    patterns
}

fn defs(script: &Script) -> impl Iterator<Item = Vec<u8>> + '_ {
    script.elements.iter().filter_map(|element| match element {
        Element::Def(def) => Some(def.file.clone()),
        _ => None,
    })
}

/// The DEFs with patterns: (index of the element, index of the pattern).
fn defs_with_patterns(script: &Script, patterns: &[Vec<u8>]) -> Vec<(usize, usize)> {
    let mut defs = Vec::new();
    for (index, element) in script.elements.iter().enumerate() {
        let Element::Def(def) = element else { continue };
        if let Some(pattern) = patterns.iter().position(|pattern| *pattern == def.file) {
            defs.push((index, pattern));
        }
    }
    defs
}

/// Puts a group's files into the DEFs.
fn put(script: &mut Script, defs: &[(usize, usize)], group: &Group) {
    for &(element, pattern) in defs {
        if let Element::Def(def) = &mut script.elements[element] {
            def.file.clone_from(&group.files[pattern]);
        }
    }
}

/// The base of `%s`: a graph's default.
const BASE: u32 = 1000;

/// Whether rows are written: not if there are VDEFs or PRINTs and nothing is exported.
fn has_rows(script: &Script) -> bool {
    let exports = script.elements.iter().any(|element| matches!(element, Element::Xport(_)));
    exports || (script.scalar_count() == 0 && !has_prints(script))
}

fn has_prints(script: &Script) -> bool {
    script.elements.iter().any(|element| matches!(element, Element::Print(_)))
}

/// The series that the answer shows and their names: the exported ones, else all.
fn columns(evaluator: &Evaluator) -> Vec<(usize, String)> {
    let mut columns = evaluator.exports();
    if columns.is_empty() {
        let series = 0..evaluator.script.series_count();
        columns = series.map(|series| (series, evaluator.name(series).to_vec())).collect();
    }
    columns.into_iter().map(|(series, name)| (series, display(&name))).collect()
}

fn heading(evaluator: &Evaluator, groups: &[Group]) -> Heading {
    let script = &evaluator.script;
    let times = has_rows(script);
    let columns = if times {
        columns(evaluator).into_iter().map(|(_, name)| name).collect()
    } else {
        let scalars = script.variables().iter().filter(|one| matches!(one.symbol, Symbol::Scalar(_)));
        scalars.map(|variable| display(&variable.name)).collect()
    };
    let prints = script.elements.iter().filter(|element| matches!(element, Element::Print(_))).count();
    // Named as in graphv.
    let texts = (0..prints).map(|number| format!("print[{number}]")).collect();
    let name_bytes_max = groups.iter().map(|group| group.name.len()).max().unwrap_or(0);
    Heading { key: RRD, labels: Vec::new(), times, columns, texts, name_bytes_max }
}

fn connect(daemons: &Daemons, address: &str) -> Result<Arc<Daemon>, QueryError> {
    if let Err(error) = Address::parse(address) {
        return Err(QueryError::Daemon { address: address.to_string(), why: error.to_string() });
    }
    let daemon = daemons.at(address.as_bytes());
    daemon.connect().map_err(|error| QueryError::of_daemon(address.as_bytes(), &error))?;
    Ok(daemon)
}

fn display(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
