//! History that other tools kept, into new RRDs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use exchange::history::fill::Filler;
use exchange::history::influx;
use exchange::history::openmetrics::{LINE_BYTES_MAX, OpenMetricsReader};
use exchange::history::servers::{self, RenderSeries};
pub(super) use exchange::history::table::HistoryTable;
use exchange::history::whisper::WhisperFile;
use exchange::history::{History, Refused, SAMPLES_MAX};
use rrd::codec::xml::{RestoreOptions, restore};
use rrd::content::Rrd;
use rrd::when::at::resolve_pair;
use store::name::RrdName;

use super::options::HistoryArguments;
use super::{Arguments, Failures, Result, SourceFormat, progress};
use crate::cmd::peer::Peer;
use crate::cmd::remote::Server;

/// Seconds of a request to a Prometheus: a day of samples of one job is some hundred megabytes at most.
const WINDOW_SECONDS: i64 = 86_400;
/// How long ago, in seconds, windows of requests to a Graphite begin: it answers with the finest archive that reaches back to
/// the beginning of a window.
const GRAPHITE_AGES: [i64; 9] = [
    6 * 3600,
    86_400,
    2 * 86_400,
    7 * 86_400,
    14 * 86_400,
    30 * 86_400,
    90 * 86_400,
    365 * 86_400,
    2 * 365 * 86_400,
];

/// Seconds that samples may be ahead of this machine's clock.
const AHEAD_MAX: i64 = 600;
/// Bytes of InfluxDB's lines that are read at once.
const INFLUX_BLOCK_BYTES: usize = 4 << 20;

/// How the RRDs of series are made.
///
/// # Errors
/// What is wrong with the options or the configuration.
pub(super) fn table(arguments: &HistoryArguments) -> Result<HistoryTable> {
    let config = match &arguments.create {
        Some(path) => {
            let cannot = |error| format!("cannot read \"{}\": {error}", path.display());
            Some(std::fs::read_to_string(path).map_err(cannot)?)
        }
        None => None,
    };
    HistoryTable::new(config.as_deref(), arguments.step.as_deref(), &arguments.archives)
}

fn put(peer: &Peer, name: &str, rrd: Rrd, arguments: &Arguments) -> Result {
    let name = RrdName::new(name.as_bytes()).map_err(|error| format!("{name}: {error}"))?;
    let done = match (arguments.history.overwrite, arguments.no_overwrite) {
        (false, false) => peer.fill(&name, rrd),
        (_, is_kept) => peer.import_made(&name, rrd, is_kept),
    };
    done.map_err(|error| format!("{name}: {error}"))
}

/// Imports one file of a format that has an RRD's history in each file.
pub(super) fn import_file(
    peer: &Peer,
    name: &RrdName,
    bytes: &[u8],
    table: &Mutex<HistoryTable>,
    arguments: &Arguments,
) -> Result {
    let text = name.to_string();
    if arguments.format == SourceFormat::Xml {
        let options = RestoreOptions { range_check: false, long_names: true };
        let rrd = restore(bytes, options).map_err(|error| error.to_string())?;
        let stem = text.strip_suffix(".xml").unwrap_or(&text);
        let name = if stem.ends_with(".rrd") { stem.to_string() } else { format!("{stem}.rrd") };
        return put(peer, &name, rrd, arguments);
    }
    let file = WhisperFile::decode(bytes, latest() / 1000).map_err(|error| error.to_string())?;
    let mut history = History::default();
    let metric = text.strip_suffix(".wsp").unwrap_or(&text);
    add_graphite(&mut history, &metric_of(metric))?;
    let (key, collected) = history.into_series().swap_remove(0);
    let placed =
        table.lock().unwrap_or_else(PoisonError::into_inner).place_key(&key, &collected, file.step());
    let (path, new) = placed?;
    let is_own = arguments.history.step.is_none() && arguments.history.archives.is_empty();
    let args = if is_own { None } else { Some(&new) };
    let rrd = file
        .to_rrd(new.ds(), args.map(|new| (new.step, new.archives())))
        .map_err(|error| error.to_string())?;
    put(peer, &path, rrd, arguments)
}

/// The metric of a Whisper file: its path with dots, or what graphite-web made of a tagged name.
fn metric_of(path: &str) -> String {
    match (path.starts_with("_tagged/"), path.rsplit_once('/')) {
        (true, Some((_, name))) => name.replace("_DOT_", "."),
        _ => path.replace('/', "."),
    }
}

/// Adds a series without samples, `name;tag=value;...`.
fn add_graphite(history: &mut History, metric: &str) -> Result {
    let mut parts = metric.split(';');
    let name = parts.next().unwrap_or_default();
    let tags = parts.filter_map(|tag| tag.split_once('='));
    let added =
        history.add(name, tags, ingest::sample::Kind::Gauge, &[]).map_err(|error| error.to_string())?;
    added.map_err(|error| format!("{metric}: {error}"))
}

/// Imports the series of all sources.
pub(super) fn run(arguments: &Arguments) -> Result {
    let mut table = table(&arguments.history)?;
    let peer = Peer::find(arguments.to.as_deref(), true)?;
    let mut failures = Failures::default();
    let mut history = History::until(latest());
    let mut rrds: Vec<(String, Rrd)> = Vec::new();
    for from in &arguments.from {
        let read = match arguments.format {
            SourceFormat::Openmetrics => open_metrics(from, &mut history, &mut failures),
            SourceFormat::Influx => influx(from, &mut history, &mut failures),
            SourceFormat::Prometheus => prometheus(from, &arguments.history, &mut history, &mut failures),
            _ => graphite(from, &arguments.history, &mut table, &mut rrds, &mut failures),
        };
        read.map_err(|error| format!("{}: {error}", from.display()))?;
    }
    if history.ahead() > 0 {
        let count = history.ahead();
        failures.push(format!("{count} samples are more than ten minutes ahead of this machine's clock: is their unit another one?"));
    }
    let series = history.into_series();
    let bar = progress((series.len() + rrds.len()) as u64);
    let (mut imported, mut late) = (0, 0);
    let filled = series.into_iter().map(|(key, collected)| {
        let shown = || ingest::sample::Series::of_key(&key).to_string();
        table.fill(&key, &collected).map_err(|why| format!("{}: {why}", shown()))
    });
    let filled = rrds.into_iter().map(|(name, rrd)| Ok((name, rrd, 0))).chain(filled);
    for filled in filled {
        let put = filled.and_then(|(name, rrd, refused)| {
            late += refused;
            put(&peer, &name, rrd, arguments)
        });
        match put {
            Ok(()) => imported += 1,
            Err(why) => failures.push(why),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let closed = peer.close();
    println!(
        "imported {imported} RRDs, {} failed, {late} samples too near to the one before",
        failures.count()
    );
    failures.report().and(closed)
}

/// A file, or standard input.
fn opened(from: &Path) -> Result<Box<dyn Read>> {
    if from == Path::new("-") {
        return Ok(Box::new(std::io::stdin()));
    }
    Ok(Box::new(std::fs::File::open(from).map_err(|error| error.to_string())?))
}

fn influx(from: &Path, history: &mut History, failures: &mut Failures) -> Result {
    let mut input = BufReader::with_capacity(1 << 20, opened(from)?);
    let (mut block, mut line) = (Vec::new(), 1);
    loop {
        let room = (INFLUX_BLOCK_BYTES as u64).saturating_sub(block.len() as u64);
        let read = input.by_ref().take(room).read_to_end(&mut block).map_err(|error| error.to_string())?;
        let is_end = read == 0;
        let end_of_lines = block.iter().rposition(|&byte| byte == b'\n').filter(|_| !is_end);
        let whole = end_of_lines.map_or(block.len(), |at| at + 1);
        let mut refused = |refused: Refused| failures.push(format!("{}: {refused}", from.display()));
        let added = influx::read_block(&block[..whole], line, history, &mut refused);
        added.map_err(|error| error.to_string())?;
        line += block[..whole].iter().filter(|&&byte| byte == b'\n').count();
        block.drain(..whole);
        if is_end {
            return Ok(());
        }
        if end_of_lines.is_none() {
            // A line as long as a block was refused as too long; what is left of it is no line of its own.
            input.skip_until(b'\n').map_err(|error| error.to_string())?;
            line += 1;
        }
    }
}

fn open_metrics(from: &Path, history: &mut History, failures: &mut Failures) -> Result {
    let mut input = BufReader::with_capacity(1 << 20, opened(from)?);
    let mut reader = OpenMetricsReader::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = LINE_BYTES_MAX as u64 + 2;
        let read =
            input.by_ref().take(limit).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        if read == 0 {
            return Ok(());
        }
        if read as u64 == limit && !line.ends_with(b"\n") {
            input.skip_until(b'\n').map_err(|error| error.to_string())?;
        }
        let told = |refused: Refused| failures.push(format!("{}: {refused}", from.display()));
        reader.line(&line, history).map_err(|error| error.to_string())?.unwrap_or_else(told);
    }
}

/// Seconds since the epoch.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// The last time that history may have, in milliseconds since the epoch: as what is pushed, because an RRD that had a later sample
/// would take nothing until then.
fn latest() -> i64 {
    (now() + AHEAD_MAX) * 1000
}

/// The range of the options, in seconds.
fn range(arguments: &HistoryArguments) -> Result<(i64, i64)> {
    let now = now();
    let range = resolve_pair(&arguments.start, &arguments.end, now, &localtime::Local);
    let (start, end) = range.map_err(|error| error.to_string())?;
    if start >= end { Err("the start is not before the end".to_string()) } else { Ok((start, end)) }
}

fn server(from: &Path) -> Result<Server> {
    Server::new(from.to_str().ok_or("the URL is not UTF-8")?)
}

fn prometheus(
    from: &Path,
    arguments: &HistoryArguments,
    history: &mut History,
    failures: &mut Failures,
) -> Result {
    let (start, end) = range(arguments)?;
    let server = server(from)?;
    let bar = progress(((end - start) / WINDOW_SECONDS + 1) as u64 * arguments.matches.len() as u64);
    for selector in &arguments.matches {
        let mut at = start;
        while at < end {
            let until = (at + WINDOW_SECONDS).min(end);
            // The samples themselves, not values at steps.
            let query = format!("{selector}[{}s]", until - at);
            let body = server.get("/api/v1/query", &[("query", &query), ("time", &until.to_string())])?;
            let mut refused = |why| failures.push(format!("{selector} up to {until}: {why}"));
            servers::add_matrix(&body, history, &mut refused).map_err(|error| error.to_string())?;
            at = until;
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(())
}

fn graphite(
    from: &Path,
    arguments: &HistoryArguments,
    table: &mut HistoryTable,
    rrds: &mut Vec<(String, Rrd)>,
    failures: &mut Failures,
) -> Result {
    let (start, end) = range(arguments)?;
    let server = server(from)?;
    // The oldest window first.
    let mut borders: Vec<i64> =
        GRAPHITE_AGES.iter().map(|age| end - age).filter(|border| *border > start).collect();
    borders.extend([start, end]);
    borders.sort_unstable();
    let bar = progress((borders.len() - 1) as u64 * arguments.matches.len() as u64);
    let mut windows: BTreeMap<String, Vec<RenderSeries>> = BTreeMap::new();
    let mut samples = 0;
    for pattern in &arguments.matches {
        for window in borders.windows(2) {
            let (from, until) = (window[0].to_string(), window[1].to_string());
            let query =
                [("target", pattern.as_str()), ("from", &*from), ("until", &until), ("format", "json")];
            let body = server.get("/render", &query)?;
            for series in servers::render(&body)? {
                samples += series.datapoints.len();
                if samples > SAMPLES_MAX {
                    return Err(exchange::history::HistoryError::TooManySamples.to_string());
                }
                windows.entry(series.target.clone()).or_default().push(series);
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    for (target, windows) in windows {
        match graphite_rrd(&target, &windows, table) {
            Ok(Some(rrd)) => rrds.push(rrd),
            Ok(None) => {}
            Err(why) => failures.push(format!("{target}: {why}")),
        }
    }
    Ok(())
}

/// The RRD of a series that came in windows, the oldest first; `None` when no value is known.
fn graphite_rrd(
    target: &str,
    windows: &[RenderSeries],
    table: &mut HistoryTable,
) -> Result<Option<(String, Rrd)>> {
    let steps: Vec<i64> = windows.iter().map(|window| window.step().unwrap_or(60)).collect();
    let known = |window: &RenderSeries| Some(window.datapoints.iter().find(|point| point.0.is_some())?.1);
    let Some(first) = windows.iter().find_map(known) else { return Ok(None) };
    let mut history = History::default();
    add_graphite(&mut history, target)?;
    let (key, collected) = history.into_series().swap_remove(0);
    let (path, new) = table.place_key(&key, &collected, steps.last().copied().unwrap_or(60))?;
    let definition = new.definition(&path)?;
    let filler = Filler::new(definition, first.saturating_mul(1000)).map_err(|error| error.to_string())?;
    let mut filler = filler.by_intervals();
    windows.iter().zip(steps).for_each(|(window, step)| window.fill(&mut filler, step));
    Ok(Some((path, filler.finish().0)))
}
