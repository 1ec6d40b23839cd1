//! CREATE: words to a definition, and the answer.

use protocol::rrdcached::command::{Command, Verb};
use protocol::rrdcached::request::integer;
use protocol::rrdcached::words::Words;
use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::prefill::{Forecasts, default_start, origins, prefill};
use rrd::when::{Step, parse_step};
use store::engine::{CreateRequest, StoreError};
use tokio::sync::oneshot;

use super::answer::{self, Refusal};
use crate::metrics::Drop;
use crate::names::{NameFailure, Named};
use crate::service::Service;

/// Seconds in an RRD's PDP when CREATE does not say.
const STEP_DEFAULT: u64 = 300;
/// The first second RRDtool takes as a start: ten years of 365 days.
const START_MIN: i64 = 315_360_000;
/// Seconds before now when CREATE does not say when to start.
const START_BEFORE_NOW: i64 = 10;

/// Most RRDs that one is filled from: each is in memory meanwhile. Guessed: far above any in use.
const SOURCES_MAX: usize = 64;

/// A CREATE the store has not answered yet.
#[derive(Debug)]
pub struct SentCreate {
    receiver: oneshot::Receiver<Result<(), StoreError>>,
    path: Vec<u8>,
}

impl SentCreate {
    /// Waits for the store.
    pub async fn settle(self, service: &Service) -> Result<(), Refusal> {
        let result = self.receiver.await.unwrap_or(Err(StoreError::Stopping));
        let refusal = match result {
            Ok(()) => return Ok(()),
            Err(error) => refusal(&self.path, &error),
        };
        service.metrics.drop_line(refusal.reason);
        Err(refusal)
    }
}

/// Why the store did not make the RRD of a path.
pub fn refusal(path: &[u8], error: &StoreError) -> Refusal {
    match error {
        StoreError::Exists(_) => {
            Refusal::of_path(Drop::Refused, "RRD Error: creating '", path, "': File exists")
        }
        error => Refusal::of_store("RRD Error: ", error),
    }
}

/// Where an RRD is to be made.
pub fn place(service: &Service, word: &[u8]) -> Result<Named, Refusal> {
    let named = match service.names.resolve(word) {
        Ok(named) => named,
        Err(NameFailure::Denied(path)) => {
            return Err(Refusal::of_path(Drop::Name, "", &path, ": Permission denied"));
        }
        Err(NameFailure::Missing(path)) => {
            let refusal = ("RRD Error: creating '", "': Is a directory");
            return Err(Refusal::of_path(Drop::Name, refusal.0, &path, refusal.1));
        }
    };
    check_directory(service, &named)?;
    Ok(named)
}

/// What the words of a CREATE ask for.
#[derive(Debug, Default)]
struct Wish {
    start: Option<i64>,
    step: Option<Step>,
    no_overwrite: bool,
    template: Option<Vec<u8>>,
    sources: Vec<Vec<u8>>,
    definitions: Vec<String>,
}

/// Reads a CREATE and hands it to the store.
pub fn send(service: &Service, word: &[u8], words: Words<'_>) -> Result<SentCreate, Refusal> {
    let wish = read(words)?;
    let named = place(service, word)?;
    let (definition, template_start) = define(service, &wish, word)?;
    let no_overwrite = wish.no_overwrite || service.create.no_overwrite;
    let (sender, receiver) = oneshot::channel();
    if !wish.sources.is_empty() {
        // Reads whole RRDs and waits for the log: not on a thread that others' connections wait for.
        let filled = service.waits.run(false, || -> Result<_, Refusal> {
            let rrd = fill(service, &wish, definition)?;
            Ok(service.engine.import(named.name, rrd, no_overwrite))
        })?;
        // A connection that has gone does not want the answer.
        drop(sender.send(filled));
        return Ok(SentCreate { receiver, path: named.path });
    }
    let start = wish.start.or(template_start).unwrap_or_else(|| service.now() - START_BEFORE_NOW);
    let request = CreateRequest { definition, start, no_overwrite };
    // A connection that has gone does not want the answer.
    service.engine.create(named.name, request, Box::new(move |result| drop(sender.send(result))));
    Ok(SentCreate { receiver, path: named.path })
}

/// The RRD of this definition with the past of the sources; it starts, unless told otherwise, where the newest
/// of them stands.
fn fill(service: &Service, wish: &Wish, definition: Definition) -> Result<Rrd, Refusal> {
    let mut sources = Vec::with_capacity(wish.sources.len());
    for word in &wish.sources {
        let missing = |_| {
            let text = ("RRD Error: error checking for source RRD ", ": No such file or directory");
            Refusal::of_path(Drop::NoSuchRrd, text.0, word, text.1)
        };
        let (named, _) = answer::snapshot(service, word).map_err(missing)?;
        let read = service.engine.read(&named.name);
        sources.push(read.map_err(|error| Refusal::of_store("RRD Error: ", &error))?);
    }
    let sources: Vec<&Rrd> = sources.iter().collect();
    let origins = origins(&definition, &wish.definitions);
    let start = wish.start.or_else(|| default_start(&sources));
    let start = start.unwrap_or_else(|| service.now() - START_BEFORE_NOW);
    let start = start.saturating_mul(i64::from(definition.units_per_second));
    Ok(prefill(definition, start, &origins, &sources, Forecasts::Filled))
}

fn usage() -> Refusal {
    Refusal::new(Drop::Usage, format!("Usage: {}", Command::of(Verb::Create).usage))
}

fn read(mut words: Words<'_>) -> Result<Wish, Refusal> {
    let mut wish = Wish::default();
    while let Some(word) = words.next() {
        match &*word {
            b"-b" => {
                let start = integer(&words.next().ok_or_else(usage)?).unwrap_or(0);
                if start < START_MIN {
                    return Err(Refusal::new(Drop::Refused, "The first entry must be after 1980."));
                }
                wish.start = Some(start);
            }
            b"-s" => wish.step = step(&words.next().ok_or_else(usage)?)?,
            b"-O" => wish.no_overwrite = true,
            b"-t" => wish.template = Some(words.next().ok_or_else(usage)?.into_owned()),
            b"-r" => {
                let source = words.next().ok_or_else(usage)?.into_owned();
                if wish.sources.len() == SOURCES_MAX {
                    return Err(Refusal::new(
                        Drop::Refused,
                        format!("RRD Error: at most {SOURCES_MAX} sources (-r)"),
                    ));
                }
                wish.sources.push(source);
            }
            definition if definition.starts_with(b"DS:") || definition.starts_with(b"RRA:") => {
                wish.definitions.push(answer::text(definition)?.to_string());
            }
            _ => return Err(usage()),
        }
    }
    Ok(wish)
}

/// Compat: an integer with anything behind it, as `strtol` reads it, 0 being the default. Only `100ms` and
/// fractions, which rrdcached does not know, are read as the store's own.
fn step(word: &[u8]) -> Result<Option<Step>, Refusal> {
    let word = answer::text(word)?;
    if word.ends_with("ms") || word.contains('.') {
        let refuse = |error| Refusal::new(Drop::Refused, format!("RRD Error: step size: {error}"));
        return parse_step(word, true).map(Some).map_err(refuse);
    }
    match integer(word.as_bytes()).unwrap_or(0) {
        0 => Ok(None),
        seconds if seconds < 0 => {
            Err(Refusal::new(Drop::Refused, "RRD Error: step size should be no less than one second"))
        }
        seconds => Ok(Some(Step { units: seconds.unsigned_abs(), units_per_second: 1 })),
    }
}

fn define(service: &Service, wish: &Wish, word: &[u8]) -> Result<(Definition, Option<i64>), Refusal> {
    if let Some(template) = &wish.template {
        if !wish.definitions.is_empty() {
            return Err(Refusal::new(
                Drop::Refused,
                "RRD Error: CREATE takes a template (-t) or definitions, not both",
            ));
        }
        let refuse = || {
            let shown = String::from_utf8_lossy(template);
            Refusal::new(Drop::NoSuchRrd, format!("RRD Error: Cannot open template RRD {shown}"))
        };
        let (_, snapshot) = answer::snapshot(service, template).map_err(|_| refuse())?;
        let mut definition = Definition::clone(&snapshot.definition);
        if let Some(step) = wish.step {
            definition.step = step.units;
            definition.units_per_second = step.units_per_second;
        }
        let start = answer::last_update(&snapshot).in_seconds(snapshot.definition.units_per_second);
        return Ok((definition, Some(start.whole)));
    }
    let step = wish.step.unwrap_or(Step { units: STEP_DEFAULT, units_per_second: 1 });
    let limits = if service.create.file_limits { Limits::FILE } else { Limits::STORE };
    let options = CreateOptions { step, limits, file_name: &service.names.path(word) };
    match parse_create(&options, &wish.definitions) {
        Ok(definition) => Ok((definition, None)),
        Err(error) => Err(Refusal::new(Drop::Refused, format!("RRD Error: {error}"))),
    }
}

/// Without `-R`, the directory must be there: on the disk, or because the store has RRDs in it.
fn check_directory(service: &Service, named: &Named) -> Result<(), Refusal> {
    use std::os::unix::ffi::OsStrExt;
    let name = named.name.as_bytes();
    let Some(slash) = name.iter().rposition(|&byte| byte == b'/') else { return Ok(()) };
    if service.create.make_directories {
        return Ok(());
    }
    let directory = &name[..slash];
    let path = [service.names.base(), directory].concat();
    if std::path::Path::new(std::ffi::OsStr::from_bytes(&path)).is_dir() {
        return Ok(());
    }
    match service.engine.list(directory, false) {
        Ok(found) if !found.is_empty() => Ok(()),
        _ => Err(Refusal::of_path(
            Drop::Refused,
            "No permission to recursively create: ",
            &path,
            "\nDid you pass -R to the daemon?",
        )),
    }
}
