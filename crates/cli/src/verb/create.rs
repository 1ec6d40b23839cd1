//! `rrdtool create`: a new RRD.

use std::path::PathBuf;

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::definition::text::{CreateOptions, DefinitionError, Limits, extend, parse_create};
use rrd::prefill::{Forecasts, origins, prefill};
use rrd::when::{Step, parse_step};
use store::direct::{Existing, create as create_file, create_filled};

use crate::failure::{Failure, Result, system_text, text};
use crate::options::{OptionSpec, Options, flag, with_argument};
use crate::target::{Location, Policy, Remote, file_failure};
use crate::{Tool, Words, times};

/// What it does and its syntax.
pub const SYNTAX: &str = "create - a new RRD\n\n\
    \trrdtool create filename [--start|-b start time]\n\
    \t\t[--step|-s step]\n\
    \t\t[--template|-t template-file]\n\
    \t\t[--source|-r source-file]\n\
    \t\t[--no-overwrite|-O]\n\
    \t\t[--daemon|-d address]\n\
    \t\t[DS:ds-name[=mapped-ds-name[[source-index]]]:DST:dst arguments]\n\
    \t\t[RRA:CF:cf arguments]\n";

/// The first second that RRDtool takes as a start: ten years of 365 days.
const START_MIN: i64 = 315_360_000;
/// Seconds before now when no start is given.
const START_BEFORE_NOW: i64 = 10;

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

/// What the words of a create ask for.
#[derive(Clone)]
pub struct CreateArgs<'w> {
    /// The RRD.
    pub name: &'w [u8],
    /// Its start in seconds since the epoch, where it is given.
    pub start: Option<i64>,
    /// Its step, where it is given.
    pub step: Option<Step>,
    /// RRDs that fill it.
    pub sources: Vec<&'w [u8]>,
    /// An RRD that describes it.
    pub template: Option<&'w [u8]>,
    /// What becomes of an RRD that is there.
    pub existing: Existing,
    /// The daemon to ask, where it is given.
    pub daemon: Option<&'w [u8]>,
    /// `DS:` and `RRA:` words.
    pub definitions: Vec<&'w [u8]>,
}

impl<'w> CreateArgs<'w> {
    fn read(tool: &Tool, words: Words<'w>) -> Result<Self> {
        let mut wish = CreateArgs {
            name: b"",
            start: None,
            step: None,
            sources: Vec::new(),
            template: None,
            existing: Existing::Replace,
            daemon: None,
            definitions: Vec::new(),
        };
        let mut options = Options::new(OPTIONS, words);
        while let Some(given) = options.next() {
            match given? {
                (Tag::Start, word) => {
                    let start = times::start(word, &tool.environment)?;
                    if start < START_MIN {
                        return Err(Failure::new("the first entry to the RRD should be after 1980"));
                    }
                    wish.start = Some(start);
                }
                (Tag::Step, word) => {
                    let step = parse_step(text(word)?, false);
                    wish.step = Some(step.map_err(|error| Failure::new(format!("step size: {error}")))?);
                }
                (Tag::Source, word) => {
                    tool.environment.path(word)?.metadata().map_err(|error| {
                        let why = format!(": {}", system_text(&error));
                        Failure::of_name("error checking for source RRD ", word, &why)
                    })?;
                    wish.sources.push(word);
                }
                (Tag::Template, word) => wish.template = Some(word),
                (Tag::NoOverwrite, _) => wish.existing = Existing::Refuse,
                (Tag::Daemon, word) => wish.daemon = Some(word),
            }
        }
        let rest = options.rest();
        let Some((&name, definitions)) = rest.split_first() else {
            return Err(Failure::new("need name of an rrd file to create"));
        };
        Ok(CreateArgs { name, definitions: definitions.to_vec(), ..wish })
    }

    /// Asks a daemon for it.
    fn send(&self, target: &Remote) -> Result {
        let start = self.start.map(|start| start.to_string());
        let step = self.step.map(|step| step.units.to_string());
        let mut words: Vec<&[u8]> = Vec::new();
        if let Some(start) = &start {
            words.extend([b"-b", start.as_bytes()]);
        }
        if let Some(step) = &step {
            words.extend([b"-s", step.as_bytes()]);
        }
        if self.existing == Existing::Refuse {
            words.push(b"-O");
        }
        for source in &self.sources {
            words.extend([b"-r", *source]);
        }
        if let Some(template) = self.template {
            words.extend([b"-t", template]);
        }
        words.extend(&self.definitions);
        target.ask("create", &words).map(|_| ())
    }
}

/// Makes an RRD.
///
/// # Errors
/// In RRDtool's words; what was there stays as it was.
pub fn run(tool: &mut Tool, words: Words<'_>) -> Result {
    let wish = CreateArgs::read(tool, words)?;
    create(tool, &wish)
}

/// Makes an RRD as it is wished.
///
/// # Errors
/// As [`run`].
pub fn create(tool: &mut Tool, wish: &CreateArgs<'_>) -> Result {
    tool.environment.path(wish.name)?;
    for word in wish.sources.iter().chain(&wish.template) {
        tool.environment.path(word)?;
    }
    match tool.write_target(Policy::CREATE, wish.name, wish.daemon)? {
        Location::Remote(remote) if remote.in_place_of.is_none() => wish.send(&remote),
        location => make(tool, wish, &location),
    }
}

/// Makes it in a file, or in the store that has the name.
fn make(tool: &mut Tool, wish: &CreateArgs<'_>, location: &Location<PathBuf>) -> Result {
    let words: Vec<&str> = wish
        .definitions
        .iter()
        .map(|word| {
            std::str::from_utf8(word).map_err(|_| Failure::of_name("can't parse argument '", word, "'"))
        })
        .collect::<Result<_>>()?;
    if wish.existing == Existing::Refuse && tool.environment.path(wish.name)?.exists() {
        return Err(Failure::of_name("creating '", wish.name, "': File exists"));
    }
    let mut sources = Vec::with_capacity(wish.sources.len());
    for word in &wish.sources {
        sources.push(content(tool, word)?);
    }
    let sources: Vec<&Rrd> = sources.iter().collect();
    let (definition, template_start) = define(tool, wish, &words)?;
    let start = wish
        .start
        .or_else(|| sources.iter().map(|source| last_update(source)).max())
        .or(template_start)
        .unwrap_or_else(|| (tool.environment.now)().whole - START_BEFORE_NOW);
    let made = match location {
        Location::Remote(remote) if sources.is_empty() && wish.template.is_none() => {
            return CreateArgs { start: Some(start), ..wish.clone() }.send(remote);
        }
        Location::Local(path) if sources.is_empty() => create_file(path, &definition, start, wish.existing),
        location => {
            let origins = origins(&definition, &words);
            let filled = prefill(definition, start, &origins, &sources, Forecasts::Filled);
            match location {
                Location::Remote(remote) => return remote.import(&filled, wish.existing),
                Location::Local(path) => create_filled(path, &filled, wish.existing),
            }
        }
    };
    made.map_err(|error| file_failure(&error))
}

/// The definition, and when the template it was made from was last updated.
fn define(tool: &mut Tool, wish: &CreateArgs<'_>, words: &[&str]) -> Result<(Definition, Option<i64>)> {
    let options = |step| CreateOptions { step, limits: Limits::FILE, file_name: wish.name };
    let refused = |error: DefinitionError| Failure::new(error.to_string());
    let Some(name) = wish.template else {
        let step = wish.step.unwrap_or(Step::DEFAULT);
        return parse_create(&options(step), words).map(|made| (made, None)).map_err(refused);
    };
    let missing = |_| Failure::of_name("Cannot open template RRD ", name, "");
    let template = content(tool, name).map_err(missing)?;
    let start = last_update(&template);
    let mut definition = template.definition;
    if let Some(step) = wish.step {
        (definition.step, definition.units_per_second) = (step.units, step.units_per_second);
    }
    let step = Step { units: definition.step, units_per_second: definition.units_per_second };
    extend(&mut definition, &options(step), words).map_err(refused)?;
    Ok((definition, Some(start)))
}

/// When an RRD was last updated, in seconds.
fn last_update(rrd: &Rrd) -> i64 {
    let last_update = rrd.shape().split(&rrd.live.words).last_update;
    last_update.in_seconds(rrd.definition.units_per_second).whole
}

/// All of an RRD that a new one is made from: a file's or a store's.
fn content(tool: &mut Tool, word: &[u8]) -> Result<Rrd> {
    match tool.read_target(Policy::READ, word, None)? {
        Location::Local(file) => Ok(file.content().map_err(|error| file_failure(&error))?.rrd),
        Location::Remote(remote) => remote.content(),
    }
}
