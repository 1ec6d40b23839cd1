//! A query, run: one script, many RRDs, several threads, one answer in order.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use graph::eval::evaluate;
use graph::language::{Element, Script, Setting};
use graph::plan::{Frame, plan};
use graph::print::{Printed, TimeFormat};
use graph::xport::Table;
use rrd::rpn::{Surroundings, Symbol};

use crate::AHEAD;
use crate::daemon::Connection;
use crate::error::QueryError;
use crate::form::{Block, Form, Heading, sink};
use crate::names::{self, Match};
use crate::source::Source;

/// Lots of answers, [`AHEAD`] each, that wait for their turn, per thread.
const WAITING_MAX: usize = 2;

/// Answers that a thread hands over at once: waking whoever takes them costs as much as a small RRD.
type Lot = Vec<Result<Block, String>>;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Query {
    /// DEF, CDEF, VDEF, PRINT and XPORT, as a graph takes them; the file of a DEF may have wildcards.
    pub arguments: Vec<Vec<u8>>,
    /// Percentiles of every exported variable, or of all when none is exported; as texts, for their names.
    pub percentiles: Vec<String>,
    /// Range and step.
    pub frame: Frame,
    /// What `now` is, in seconds since the epoch.
    pub now: i64,
    /// The daemon to ask; without one files are read.
    pub daemon: Option<String>,
    /// Threads; at least one.
    pub threads: usize,
}

/// What a query came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// RRDs (or groups of them) that gave their lines.
    pub answered: usize,
    /// Those that did not, and why.
    pub failures: Vec<(String, String)>,
}

/// One set of files for the DEFs, and what it is called.
struct Group {
    name: String,
    /// For each pattern its file.
    files: Vec<Vec<u8>>,
}

impl Query {
    /// Runs it and writes the answer.
    ///
    /// # Errors
    /// [`QueryError`]; what is wrong with one RRD is in the report instead.
    pub fn run(&self, form: Form, out: &mut (dyn Write + Send)) -> Result<Report, QueryError> {
        let script = self.script()?;
        let patterns = patterns(&script);
        let (groups, mut report) = self.groups(&script, &patterns)?;
        let heading = heading(&script, &groups);
        let mut sink = sink(form, heading, out)?;
        let threads = self.threads.clamp(1, groups.len().max(1));
        thread::scope(|scope| {
            let mut answers: Vec<Answers> = Vec::new();
            for worker in 0..threads {
                let (sender, receiver) = sync_channel(WAITING_MAX);
                let connection = self.daemon.as_deref().map(Connection::open).transpose()?;
                let own: Vec<&Group> = groups.iter().skip(worker).step_by(threads).collect();
                let (script, patterns) = (script.clone(), patterns.as_slice());
                scope.spawn(move || self.work(script, patterns, &own, connection, &sender));
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

    /// The script with the percentiles behind it, checked for what a query has no use for.
    fn script(&self) -> Result<Script, QueryError> {
        let setting = Setting {
            start: self.frame.start,
            end: self.frame.end,
            now: self.now,
            calendar: &localtime::Local,
        };
        let mut arguments = self.arguments.clone();
        let script = Script::parse(&arguments, setting).map_err(QueryError::Language)?;
        if script.series_count() == 0 {
            return Err(QueryError::Nothing);
        }
        for (element, line) in script.elements.iter().zip(&arguments) {
            let of_graphs = match element {
                Element::Print(print) => print.inside,
                element => matches!(element, Element::Note(_) | Element::Drawn(_)),
            };
            if of_graphs {
                return Err(QueryError::Element(String::from_utf8_lossy(line).into_owned()));
            }
        }
        if has_prints(&script) && has_rows(&script) {
            return Err(QueryError::PrintBesideRows);
        }
        let wanted = wanted(&script);
        for percentile in &self.percentiles {
            let number = percentile.parse::<f64>();
            if !number.is_ok_and(|number| (0.0..=100.0).contains(&number)) {
                return Err(QueryError::Percentile(percentile.clone()));
            }
            for (series, _) in &wanted {
                let Some(name) = variable(&script, *series) else { continue };
                arguments.push(format!("VDEF:{name}_p{percentile}={name},{percentile},PERCENT").into_bytes());
            }
        }
        if self.percentiles.is_empty() {
            return Ok(script);
        }
        // The values are wanted, not the rows that they come from.
        arguments.retain(|line| !line.starts_with(b"XPORT"));
        Script::parse(&arguments, setting).map_err(QueryError::Language)
    }

    /// The groups of files that belong together, in the order of their names.
    fn groups(&self, script: &Script, patterns: &[Vec<u8>]) -> Result<(Vec<Group>, Report), QueryError> {
        let Some(first) = patterns.first() else {
            let name = defs(script).next().unwrap_or_default();
            return Ok((vec![Group { name: display(&name), files: Vec::new() }], Report::default()));
        };
        let relative = |pattern: &Vec<u8>| !pattern.starts_with(b"/");
        let listed = match &self.daemon {
            // A daemon's names are below its base directory; absolute ones are this host's.
            Some(address) if patterns.iter().any(relative) => Some(list(address)?),
            _ => None,
        };
        let mut found: Vec<BTreeMap<Match, Vec<u8>>> = Vec::new();
        for pattern in patterns {
            names::check(pattern)?;
            found.push(match &listed {
                Some(listed) if relative(pattern) => {
                    names::of_list(pattern, listed.iter().map(Vec::as_slice))
                }
                _ => names::of_files(pattern),
            });
        }
        let mut report = Report::default();
        let mut groups = Vec::new();
        for (matched, name) in &found[0] {
            let others = found.iter().zip(patterns).map(|(files, pattern)| {
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

    /// One thread's share. Ends early when nobody wants its answers any more.
    fn work(
        &self,
        mut script: Script,
        patterns: &[Vec<u8>],
        groups: &[&Group],
        connection: Option<Connection>,
        sender: &SyncSender<Lot>,
    ) {
        let places = places(&script, patterns);
        let mut source = Source::new(connection);
        for groups in groups.chunks(AHEAD) {
            let mut requests = Vec::new();
            for group in groups {
                put(&mut script, &places, group);
                requests.extend(plan(&script, self.frame).requests);
            }
            let asked = source.ask_ahead(&requests).map_err(|error| error.to_string());
            let answer = |group: &&Group| {
                put(&mut script, &places, group);
                asked.clone().and_then(|()| self.block(&script, &mut source, &group.name))
            };
            if sender.send(groups.iter().map(answer).collect()).is_err() {
                return;
            }
        }
    }

    fn block(&self, script: &Script, source: &mut Source, name: &str) -> Result<Block, String> {
        let surroundings = Surroundings { now: self.now, first_weekday: 0, calendar: &localtime::Local };
        let data = evaluate(script, self.frame, source, &surroundings).map_err(|error| error.to_string())?;
        let mut block = Block { name: name.to_string(), ..Block::default() };
        if !has_rows(script) {
            block.columns = data.scalars.iter().map(|scalar| vec![scalar.value]).collect();
            let printed = Printed::of(script, &data, &Dates, BASE).map_err(|error| error.to_string())?;
            block.texts = printed.outside.iter().map(|text| display(text)).collect();
            return Ok(block);
        }
        let columns: Vec<_> = wanted(script).iter().map(|(series, _)| &data.series[*series]).collect();
        let table = Table::of(self.frame, &columns).ok_or("there are no rows")?;
        block.times = (0..table.rows()).map(|index| table.time(index)).collect();
        let rows = table.rows() as usize;
        block.columns = table.cells().into_iter().map(|cells| cells.take(rows).collect()).collect();
        Ok(block)
    }
}

/// The answers of one thread, in its order.
struct Answers {
    receiver: Receiver<Lot>,
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

/// The wildcards of a script, each once.
fn patterns(script: &Script) -> Vec<Vec<u8>> {
    let mut patterns: Vec<Vec<u8>> = Vec::new();
    for file in defs(script).filter(|file| names::has_wildcards(file)) {
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

/// Which element takes the file of which pattern.
fn places(script: &Script, patterns: &[Vec<u8>]) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    for (index, element) in script.elements.iter().enumerate() {
        let Element::Def(def) = element else { continue };
        if let Some(pattern) = patterns.iter().position(|pattern| *pattern == def.file) {
            places.push((index, pattern));
        }
    }
    places
}

/// Puts a group's files into the script.
fn put(script: &mut Script, places: &[(usize, usize)], group: &Group) {
    for &(element, pattern) in places {
        if let Element::Def(def) = &mut script.elements[element] {
            def.file.clone_from(&group.files[pattern]);
        }
    }
}

/// What `%s` counts in: a graph's without `--base`.
const BASE: u32 = 1000;

/// Dates by the C library, in local time; numbers with a point in every locale.
struct Dates;

impl TimeFormat for Dates {
    fn strftime(&self, format: &[u8], time: i64) -> Vec<u8> {
        localtime::strftime(OsStr::from_bytes(format), time).unwrap_or_default()
    }
}

/// Rows are written unless there are VDEFs or PRINTs and nothing is exported.
fn has_rows(script: &Script) -> bool {
    let exports = script.elements.iter().any(|element| matches!(element, Element::Xport(_)));
    exports || (script.scalar_count() == 0 && !has_prints(script))
}

fn has_prints(script: &Script) -> bool {
    script.elements.iter().any(|element| matches!(element, Element::Print(_)))
}

/// What a series is called.
fn variable(script: &Script, series: usize) -> Option<String> {
    let its = |symbol: Symbol| symbol == Symbol::Series(series);
    script.variables().iter().find(|variable| its(variable.symbol)).map(|variable| display(&variable.name))
}

/// The series that are wanted, with what they are called: the exported ones, else all.
fn wanted(script: &Script) -> Vec<(usize, String)> {
    let exported = script.elements.iter().filter_map(|element| match element {
        Element::Xport(xport) if xport.legend.is_empty() => Some((xport.series, None)),
        Element::Xport(xport) => Some((xport.series, Some(display(&xport.legend)))),
        _ => None,
    });
    let mut chosen: Vec<(usize, Option<String>)> = exported.collect();
    if chosen.is_empty() {
        chosen = (0..script.series_count()).map(|series| (series, None)).collect();
    }
    let named = |(series, title): (usize, Option<String>)| {
        (series, title.or_else(|| variable(script, series)).unwrap_or_default())
    };
    chosen.into_iter().map(named).collect()
}

fn heading(script: &Script, groups: &[Group]) -> Heading {
    let times = has_rows(script);
    let columns = if times {
        wanted(script).into_iter().map(|(_, name)| name).collect()
    } else {
        let scalars = script.variables().iter().filter(|one| matches!(one.symbol, Symbol::Scalar(_)));
        scalars.map(|variable| display(&variable.name)).collect()
    };
    let prints = script.elements.iter().filter(|element| matches!(element, Element::Print(_))).count();
    // As graphv calls them.
    let texts = (0..prints).map(|number| format!("print[{number}]")).collect();
    let name_bytes_max = groups.iter().map(|group| group.name.len()).max().unwrap_or(0);
    Heading { times, columns, texts, name_bytes_max }
}

fn list(address: &str) -> Result<Vec<Vec<u8>>, QueryError> {
    let failed =
        |error: std::io::Error| QueryError::Daemon { address: address.to_string(), why: error.to_string() };
    Connection::open(address)?.list().map_err(failed)
}

fn display(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
