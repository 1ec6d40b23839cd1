//! `rrdtool create`: a new RRD.

use std::path::PathBuf;

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::definition::text::{CreateOptions, DECIMALS_IN_FILE, DefinitionError, Limits, extend, parse_create};
use rrd::footprint::value_count;
use rrd::prefill::{Forecasts, default_start, origins, prefill, unfit_source};
use rrd::when::{Step, parse_step};
use rrd_file::{Existing, ReadFile, create as create_file, create_filled};

use crate::failure::{Failure, Result, system_text, text};
use crate::options::{OptionSpec, Options, flag, with_argument};
use crate::target::{Location, Policy, Remote, file_failure};
use crate::{Args, Tool, times};

/// Summary and syntax.
pub const SYNTAX: &str = "create - a new RRD\n\n\
    \trrdtool create filename [--start|-b start time]\n\
    \t\t[--step|-s step]\n\
    \t\t[--template|-t template-file]\n\
    \t\t[--source|-r source-file]\n\
    \t\t[--no-overwrite|-O]\n\
    \t\t[--daemon|-d address]\n\
    \t\t[DS:ds-name[=mapped-ds-name[[source-index]]]:DST:dst arguments]\n\
    \t\t[RRA:CF:cf arguments]\n\n\
    A step, a heartbeat or the steps and rows of an archive may have decimals of a second, as 0.1 or\n\
    0.25s, where a daemon of Roundel keeps the RRD in stripes; 100ms are 100 minutes, as in RRDtool.\n";

/// The earliest start that RRDtool accepts: ten years of 365 days after the epoch.
const START_MIN: i64 = 315_360_000;
/// Default start, in seconds before now.
const START_BEFORE_NOW: i64 = 10;

/// Most values of an RRD that is filled from others, because it is held whole meanwhile: 1 GiB of them.
const VALUES_MAX: u64 = 128 << 20;

#[derive(Clone, Copy)]
enum Tag {
    Start,
    Step,
    Source,
    Template,
    NoOverwrite,
    Daemon,
}

const OPTIONS: &[OptionSpec<Tag>] = &[
    with_argument(b'b', "start", Tag::Start),
    with_argument(b's', "step", Tag::Step),
    flag(b'O', "no-overwrite", Tag::NoOverwrite),
    with_argument(b'd', "daemon", Tag::Daemon),
    with_argument(b'r', "source", Tag::Source),
    with_argument(b't', "template", Tag::Template),
];

/// The arguments of `create`.
#[derive(Clone)]
pub struct CreateArgs<'w> {
    /// The RRD.
    pub name: &'w [u8],
    /// Its start in seconds since the epoch, if given.
    pub start: Option<i64>,
    /// Its step, if given.
    pub step: Option<Step>,
    /// RRDtool's refusal of the step, if it has decimals, which only a store takes.
    pub decimal_step: Option<Failure>,
    /// RRDs whose history fills it.
    pub sources: Vec<&'w [u8]>,
    /// An RRD that serves as a template.
    pub template: Option<&'w [u8]>,
    /// What to do about an existing RRD.
    pub existing: Existing,
    /// The daemon to ask, if given.
    pub daemon: Option<&'w [u8]>,
    /// `DS:` and `RRA:` arguments.
    pub definitions: Vec<&'w [u8]>,
}

impl<'w> CreateArgs<'w> {
    fn read(tool: &mut Tool, args: Args<'w>) -> Result<Self> {
        let mut decimal_step = None;
        match Self::read_words(tool, args, &mut decimal_step) {
            Ok(parsed) => Ok(CreateArgs { decimal_step, ..parsed }),
            // RRDtool gets no further than the step.
            Err(failure) => Err(decimal_step.unwrap_or(failure)),
        }
    }

    fn read_words(tool: &mut Tool, args: Args<'w>, decimal_step: &mut Option<Failure>) -> Result<Self> {
        let mut parsed = CreateArgs {
            name: b"",
            start: None,
            step: None,
            decimal_step: None,
            sources: Vec::new(),
            template: None,
            existing: Existing::Replace,
            daemon: None,
            definitions: Vec::new(),
        };
        let mut options = Options::new(OPTIONS, args);
        while let Some(given) = options.next() {
            match given? {
                (Tag::Start, word) => {
                    let start = times::start(word, &tool.environment)?;
                    if start < START_MIN {
                        return Err(Failure::new("the first entry to the RRD should be after 1980"));
                    }
                    parsed.start = Some(start);
                }
                (Tag::Step, word) => {
                    let (step, refused) = step(text(word)?)?;
                    parsed.step = Some(step);
                    *decimal_step = decimal_step.take().or(refused);
                }
                (Tag::Source, word) => {
                    check_source(tool, word)?;
                    parsed.sources.push(word);
                }
                (Tag::Template, _) if parsed.template.is_some() => {
                    return Err(Failure::new("template already set"));
                }
                (Tag::Template, word) => parsed.template = Some(word),
                (Tag::NoOverwrite, _) => parsed.existing = Existing::Refuse,
                (Tag::Daemon, word) => parsed.daemon = Some(word),
            }
        }
        let rest = options.rest();
        let Some((&name, definitions)) = rest.split_first() else {
            return Err(Failure::new("need name of an rrd file to create"));
        };
        Ok(CreateArgs { name, definitions: definitions.to_vec(), ..parsed })
    }

    /// The definitions as text.
    fn definitions(&self) -> Result<Vec<&'w str>> {
        let refused = |word: &[u8]| Failure::of_name("can't parse argument '", word, "'");
        self.definitions.iter().map(|word| std::str::from_utf8(word).map_err(|_| refused(word))).collect()
    }

    /// Sends it to a daemon.
    fn send(&self, target: &Remote) -> Result {
        let start = self.start.map(|start| start.to_string());
        let step = self.step.map(|step| step.to_string());
        if self.step.is_some_and(|step| step.units_per_second != 1) && !target.daemon.is_ours() {
            return Err(Failure::new(
                "step size: decimals need a daemon of Roundel; rrdcached counts whole seconds",
            ));
        }
        let mut args: Vec<&[u8]> = Vec::new();
        if let Some(start) = &start {
            args.extend([b"-b", start.as_bytes()]);
        }
        if let Some(step) = &step {
            args.extend([b"-s", step.as_bytes()]);
        }
        if self.existing == Existing::Refuse {
            args.push(b"-O");
        }
        for source in &self.sources {
            args.extend([b"-r", *source]);
        }
        if let Some(template) = self.template {
            args.extend([b"-t", template]);
        }
        args.extend(&self.definitions);
        target.ask("create", &args).map(|_| ())
    }
}

/// Creates an RRD.
///
/// # Errors
/// RRDtool's; an existing RRD is then unchanged.
pub fn run(tool: &mut Tool, args: Args<'_>) -> Result {
    let args = CreateArgs::read(tool, args)?;
    create(tool, &args)
}

/// Creates the RRD that the arguments describe.
///
/// # Errors
/// As [`run`].
pub fn create(tool: &mut Tool, args: &CreateArgs<'_>) -> Result {
    tool.environment.path(args.name)?;
    for word in args.sources.iter().chain(&args.template) {
        tool.environment.path(word)?;
    }
    match tool.write_target(Policy::CREATE, args.name, args.daemon)? {
        Location::Remote(remote) if remote.in_place_of.is_none() => args.send(&remote),
        Location::Local(_) if let Some(refused) = &args.decimal_step => {
            Err(refuse_decimals(tool, args, refused))
        }
        location => make(tool, args, &location),
    }
}

/// Creates it in a file, or in the store that owns the name.
fn make(tool: &mut Tool, args: &CreateArgs<'_>, location: &Location<PathBuf>) -> Result {
    let definitions = args.definitions()?;
    if args.existing == Existing::Refuse && tool.environment.path(args.name)?.exists() {
        return Err(Failure::of_name("creating '", args.name, "': File exists"));
    }
    let in_store = matches!(location, Location::Remote(_));
    let limits = Limits { sub_second: in_store, ..Limits::FILE };
    let (definition, template_start) = define(tool, args, &definitions, limits)?;
    let mut sources = Vec::with_capacity(args.sources.len());
    for word in &args.sources {
        sources.push(source(tool, word)?);
    }
    let sources: Vec<&Rrd> = sources.iter().collect();
    if let Some((index, why)) = unfit_source(&definition, &sources) {
        return Err(Failure::of_name("cannot fill it from '", args.sources[index], &format!("': {why}")));
    }
    let unit = i64::from(definition.units_per_second);
    let in_units = |seconds: i64| seconds.saturating_mul(unit);
    let start = args
        .start
        .map(in_units)
        .or_else(|| default_start(&sources))
        .or(template_start.map(in_units))
        .unwrap_or_else(|| in_units((tool.environment.now)().whole - START_BEFORE_NOW));
    let made = match location {
        Location::Remote(remote) if sources.is_empty() && args.template.is_none() => {
            return CreateArgs { start: Some(start.div_euclid(unit)), ..args.clone() }.send(remote);
        }
        Location::Local(path) if sources.is_empty() => create_file(path, &definition, start, args.existing),
        location => {
            let values = value_count(&definition);
            if values > VALUES_MAX {
                return Err(Failure::new(format!(
                    "{values} values are too many to fill, {VALUES_MAX} are the limit"
                )));
            }
            let origins = origins(&definition, &definitions);
            let filled = prefill(definition, start, &origins, &sources, Forecasts::Filled);
            match location {
                Location::Remote(remote) => return remote.import(&filled, args.existing),
                Location::Local(path) => create_filled(path, &filled, args.existing),
            }
        }
    };
    made.map_err(|error| file_failure(&error))
}

/// The definition, and the last update of the template it comes from.
fn define(
    tool: &mut Tool,
    args: &CreateArgs<'_>,
    definitions: &[&str],
    limits: Limits,
) -> Result<(Definition, Option<i64>)> {
    let options = |step| CreateOptions { step, limits, file_name: args.name };
    let refused = |error: DefinitionError| Failure::new(error.to_string());
    let Some(name) = args.template else {
        let step = args.step.unwrap_or(Step::DEFAULT);
        return parse_create(&options(step), definitions).map(|made| (made, None)).map_err(refused);
    };
    let missing = |_| Failure::of_name("Cannot open template RRD ", name, "");
    let template = content(tool, name).map_err(missing)?;
    let start = last_update(&template);
    let mut definition = template.definition;
    if let Some(step) = args.step {
        definition.set_step(step);
    }
    let step = Step { units: definition.step, units_per_second: definition.units_per_second };
    extend(&mut definition, &options(step), definitions).map_err(refused)?;
    Ok((definition, Some(start)))
}

/// A step, and RRDtool's refusal if it is written with decimals.
fn step(word: &str) -> Result<(Step, Option<Failure>)> {
    let refused = match parse_step(word, false) {
        Ok(step) => return Ok((step, None)),
        Err(error) => Failure::new(format!("step size: {error}")),
    };
    match parse_step(word, true) {
        Ok(step) => Ok((step, Some(refused))),
        Err(_) => Err(refused),
    }
}

/// Why a file cannot have a step with decimals: `refused`, RRDtool's reason, unless a store would take the RRD.
fn refuse_decimals(tool: &mut Tool, args: &CreateArgs<'_>, refused: &Failure) -> Failure {
    let limits = Limits { sub_second: true, ..Limits::FILE };
    match args.definitions().and_then(|definitions| define(tool, args, &definitions, limits)) {
        Ok(_) => Failure::new(format!("step size: {DECIMALS_IN_FILE}")),
        Err(_) => refused.clone(),
    }
}

/// The time of an RRD's last update, in seconds.
fn last_update(rrd: &Rrd) -> i64 {
    let last_update = rrd.shape().split(&rrd.live.words).last_update;
    last_update.in_seconds(rrd.definition.units_per_second).whole
}

/// Checks that a source is a file before anything else is looked at. Where no file is, a daemon of ours may have the RRD.
fn check_source(tool: &mut Tool, name: &[u8]) -> Result {
    let error = match tool.environment.path(name)?.metadata() {
        Ok(found) if found.is_file() => return Ok(()),
        Ok(_) => return Err(Failure::of_name("Not a regular file: ", name, "")),
        Err(error) => error,
    };
    if let Some(address) = tool.address(None)?
        && tool.link.connect(&address).is_ok_and(|daemon| daemon.is_ours())
    {
        return Ok(());
    }
    Err(Failure::of_name("error checking for source RRD ", name, &format!(": {}", system_text(&error))))
}

/// A source to fill a new RRD from. RRDtool does not tell why it cannot read a file.
fn source(tool: &mut Tool, word: &[u8]) -> Result<Rrd> {
    content(tool, word).or_else(|failure| {
        let path = tool.environment.path(word)?;
        let unreadable = match ReadFile::open(path, tool.environment.locking) {
            Ok(_) | Err(rrd_file::Error::Placeholder { .. }) => false,
            Err(_) => path.exists(),
        };
        Err(if unreadable { Failure::of_name("Cannot open source RRD ", word, "") } else { failure })
    })
}

/// The whole RRD that is the source or the template of a new one: from a file or a store.
fn content(tool: &mut Tool, word: &[u8]) -> Result<Rrd> {
    match tool.read_target(Policy::READ, word, None)? {
        Location::Local(file) => Ok(file.content().map_err(|error| file_failure(&error))?.rrd),
        Location::Remote(remote) => remote.content(),
    }
}
