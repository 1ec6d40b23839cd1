//! CREATE: parses its arguments into a definition, and answers.

use std::fmt::Display;

use protocol::frames::code::ErrorCode;
use protocol::rrdcached::command::{Command, Verb};
use protocol::rrdcached::request::integer;
use protocol::rrdcached::words::Words;
use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::definition::text::{CreateOptions, DECIMALS_IN_FILE, Limits, parse_create};
use rrd::prefill::{Forecasts, default_start, origins, prefill, unfit_source};
use rrd::when::{Step, parse_step};
use store::engine::{CreateRequest, StoreError};

use super::{find, text};
use crate::connection::inbox::ReplyTo;
use crate::connection::refusal::Refusal;
use crate::connection::session::StoreReply;
use crate::metrics::DropReason;
use crate::names::ResolvedName;
use crate::service::Service;

/// Default step in seconds.
const STEP_DEFAULT: u64 = 300;
/// The earliest start that RRDtool accepts: ten years of 365 days after the epoch.
const START_MIN: i64 = 315_360_000;
/// Default start, in seconds before now.
const START_BEFORE_NOW: i64 = 10;

/// The most RRDs from which one can be filled: each is held in memory meanwhile. Guessed: far more than
/// needed in practice.
const SOURCES_MAX: usize = 64;

/// The refusal for a path whose RRD the store did not create.
pub fn refusal(path: &[u8], error: &StoreError) -> Refusal {
    match error {
        StoreError::Exists(_) => {
            let text = ("RRD Error: creating '", "': File exists");
            Refusal::of_path(DropReason::Refused, text.0, path, text.1).with_code(ErrorCode::Exists)
        }
        error => Refusal::of_store("RRD Error: ", error),
    }
}

/// The name and path of the RRD to create.
///
/// # Errors
/// When no RRD can have that path.
pub fn place(service: &Service, word: &[u8]) -> Result<ResolvedName, Refusal> {
    let named = match service.names.resolve(word) {
        Ok(named) => named,
        Err(failure) => {
            return Err(Refusal::of_name(failure, |path| {
                Refusal::of_path(DropReason::Name, "RRD Error: creating '", path, "': Is a directory")
            }));
        }
    };
    check_directory(service, &named)?;
    Ok(named)
}

/// The arguments of CREATE.
#[derive(Debug, Default)]
struct CreateArgs {
    start: Option<i64>,
    step: Option<Step>,
    no_overwrite: bool,
    template: Option<Vec<u8>>,
    sources: Vec<Vec<u8>>,
    definitions: Vec<String>,
}

/// Parses a CREATE and sends it to the store.
pub fn create(service: &Service, word: &[u8], words: Words<'_>, reply: ReplyTo) {
    let (named, new) = match prepare(service, word, words) {
        Ok(prepared) => prepared,
        Err(refusal) => return reply.send(StoreReply::Created(Err(refusal))),
    };
    let ResolvedName { name, path } = named;
    let answer = move |result: Result<(), StoreError>| {
        reply.send(StoreReply::Created(result.map_err(|error| refusal(&path, &error))));
    };
    match new {
        New::Empty(request) => service.engine.create(name, request, Box::new(answer)),
        New::Filled(rrd, no_overwrite) => {
            // Waits for the log, so not on a thread that serves other connections.
            answer(service.calls.run(false, || service.engine.import(name, *rrd, no_overwrite)));
        }
    }
}

/// The RRD that a CREATE asks for.
enum New {
    Empty(CreateRequest),
    /// Filled with the history of other RRDs (`-r`); the flag keeps an existing RRD.
    Filled(Box<Rrd>, bool),
}

fn prepare(service: &Service, word: &[u8], words: Words<'_>) -> Result<(ResolvedName, New), Refusal> {
    let args = read(words, service.create.file_limits)?;
    let named = place(service, word)?;
    let (definition, template_start) = define(service, &args, word)?;
    let no_overwrite = args.no_overwrite || service.create.no_overwrite;
    if !args.sources.is_empty() {
        // Reads whole RRDs.
        let rrd = service.calls.run(false, || fill(service, &args, definition))?;
        return Ok((named, New::Filled(Box::new(rrd), no_overwrite)));
    }
    let start = args.start.or(template_start).unwrap_or_else(|| service.now() - START_BEFORE_NOW);
    Ok((named, New::Empty(CreateRequest { definition, start, no_overwrite })))
}

/// The RRD of this definition with the history of the sources. Unless given, it starts at the time of the
/// newest of them.
fn fill(service: &Service, args: &CreateArgs, definition: Definition) -> Result<Rrd, Refusal> {
    let too_large = |error| Refusal::of_store("RRD Error: ", &error);
    service.engine.check_filled(&definition).map_err(too_large)?;
    let mut sources = Vec::with_capacity(args.sources.len());
    for word in &args.sources {
        let missing = |_| {
            let text = ("RRD Error: error checking for source RRD ", ": No such file or directory");
            Refusal::of_path(DropReason::NoSuchRrd, text.0, word, text.1)
        };
        let (named, _) = find(service, word, |engine, name| engine.status(name)).map_err(missing)?;
        let read = service.engine.read(&named.name);
        sources.push(read.map_err(|error| Refusal::of_store("RRD Error: ", &error))?);
    }
    let sources: Vec<&Rrd> = sources.iter().collect();
    let origins = origins(&definition, &args.definitions);
    if let Some((index, why)) = unfit_source(&definition, &sources) {
        let name = &args.sources[index];
        return Err(Refusal::of_path(
            DropReason::Refused,
            "RRD Error: cannot fill it from ",
            name,
            &format!(": {why}"),
        ));
    }
    let in_units = |seconds: i64| seconds.saturating_mul(i64::from(definition.units_per_second));
    let start = args.start.map(in_units).or_else(|| default_start(&sources));
    let start = start.unwrap_or_else(|| in_units(service.now() - START_BEFORE_NOW));
    Ok(prefill(definition, start, &origins, &sources, Forecasts::Filled))
}

fn usage() -> Refusal {
    Refusal::usage(Command::of(Verb::Create))
}

fn read(mut words: Words<'_>, file_limits: bool) -> Result<CreateArgs, Refusal> {
    let mut args = CreateArgs::default();
    while let Some(word) = words.next() {
        match &*word {
            b"-b" => {
                let start = integer(&words.next().ok_or_else(usage)?).unwrap_or(0);
                if start < START_MIN {
                    return Err(Refusal::new(DropReason::Refused, "The first entry must be after 1980."));
                }
                args.start = Some(start);
            }
            b"-s" => args.step = step(&words.next().ok_or_else(usage)?, file_limits)?,
            b"-O" => args.no_overwrite = true,
            b"-t" => args.template = Some(words.next().ok_or_else(usage)?.into_owned()),
            b"-r" => {
                let source = words.next().ok_or_else(usage)?.into_owned();
                if args.sources.len() == SOURCES_MAX {
                    return Err(Refusal::new(
                        DropReason::Refused,
                        format!("RRD Error: at most {SOURCES_MAX} sources (-r)"),
                    ));
                }
                args.sources.push(source);
            }
            definition if definition.starts_with(b"DS:") || definition.starts_with(b"RRA:") => {
                args.definitions.push(text(definition)?.to_string());
            }
            _ => return Err(usage()),
        }
    }
    Ok(args)
}

/// Compat: an integer followed by anything, as `strtol` reads it; 0 means the default.
///
/// Decimals are ours, as on the command line: rrdcached reads only what precedes the point. Milliseconds are refused,
/// because `100ms` would be 100 s to rrdcached and 100 minutes to `rrdtool create`.
fn step(word: &[u8], file_limits: bool) -> Result<Option<Step>, Refusal> {
    let word = text(word)?;
    let refuse =
        |why: &dyn Display| Refusal::new(DropReason::Refused, format!("RRD Error: step size: {why}"));
    if word.contains('.') {
        let step = parse_step(word, true).map_err(|error| refuse(&error))?;
        return if file_limits { Err(refuse(&DECIMALS_IN_FILE)) } else { Ok(Some(step)) };
    }
    if word.strip_suffix("ms").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
        let why = "ms is minutes to rrdtool and nothing to rrdcached; for a step below a second give decimals, as 0.1";
        return Err(refuse(&why));
    }
    match integer(word.as_bytes()).unwrap_or(0) {
        0 => Ok(None),
        seconds if seconds < 0 => {
            Err(Refusal::new(DropReason::Refused, "RRD Error: step size should be no less than one second"))
        }
        seconds => Ok(Some(Step { units: seconds.unsigned_abs(), units_per_second: 1 })),
    }
}

fn define(service: &Service, args: &CreateArgs, word: &[u8]) -> Result<(Definition, Option<i64>), Refusal> {
    if let Some(template) = &args.template {
        if !args.definitions.is_empty() {
            return Err(Refusal::new(
                DropReason::Refused,
                "RRD Error: CREATE takes a template (-t) or definitions, not both",
            ));
        }
        let refuse = || {
            let shown = String::from_utf8_lossy(template);
            Refusal::new(DropReason::NoSuchRrd, format!("RRD Error: Cannot open template RRD {shown}"))
        };
        let (_, status) =
            find(service, template, |engine, name| engine.status(name)).map_err(|_| refuse())?;
        let mut definition = Definition::clone(&status.definition);
        if let Some(step) = args.step {
            definition.set_step(step);
        }
        let start = status.last_update.in_seconds(status.definition.units_per_second);
        return Ok((definition, Some(start.whole)));
    }
    let step = args.step.unwrap_or(Step { units: STEP_DEFAULT, units_per_second: 1 });
    let limits = if service.create.file_limits { Limits::FILE } else { Limits::STORE };
    let options = CreateOptions { step, limits, file_name: &service.names.path(word) };
    match parse_create(&options, &args.definitions) {
        Ok(definition) => Ok((definition, None)),
        Err(error) => Err(Refusal::new(DropReason::Refused, format!("RRD Error: {error}"))),
    }
}

/// Without `-R`, the directory must exist: on disk, or because the store has RRDs in it.
fn check_directory(service: &Service, named: &ResolvedName) -> Result<(), Refusal> {
    use std::os::unix::ffi::OsStrExt;
    let name = named.name.as_bytes();
    let Some(slash) = name.iter().rposition(|&byte| byte == b'/') else { return Ok(()) };
    if service.create.make_directories {
        return Ok(());
    }
    let directory = &name[..slash];
    let path = [service.names.base(), directory].concat();
    if service.sees_all_below(directory) && std::path::Path::new(std::ffi::OsStr::from_bytes(&path)).is_dir()
    {
        return Ok(());
    }
    let mut share = service.memory.share();
    match service.engine.list_within(directory, false, &mut |bytes| share.try_grow(bytes)) {
        Ok(found) if !found.is_empty() => Ok(()),
        Err(StoreError::TooLarge(_)) => {
            Err(Refusal::no_memory("the directory's list", share.bytes(), &share))
        }
        _ => Err(Refusal::of_path(
            DropReason::Refused,
            "No permission to recursively create: ",
            &path,
            "\nDid you pass -R to the daemon?",
        )),
    }
}
