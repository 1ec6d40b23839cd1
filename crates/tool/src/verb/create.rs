//! `rrdtool create`: a new RRD.

use std::path::Path;

use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::{Step, parse_step};
use store::direct::{Existing, create};

use crate::failure::{Done, Failure, text};
use crate::options::{Known, Options, flag, with_argument};
use crate::target::{Remote, file_failure, remote};
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

const OPTIONS: &[Known<Tag>] = &[
    with_argument(b'b', "start", Tag::Start),
    with_argument(b's', "step", Tag::Step),
    flag(b'O', "no-overwrite", Tag::NoOverwrite),
    with_argument(b'd', "daemon", Tag::Daemon),
    with_argument(b'r', "source", Tag::Source),
    with_argument(b't', "template", Tag::Template),
];

/// What the words of a create ask for.
struct Wish<'w> {
    name: &'w [u8],
    start: Option<i64>,
    step: Option<Step>,
    sources: Vec<&'w [u8]>,
    template: Option<&'w [u8]>,
    existing: Existing,
    daemon: Option<&'w [u8]>,
    definitions: Vec<&'w [u8]>,
}

impl<'w> Wish<'w> {
    fn read(tool: &Tool, words: Words<'w>) -> Done<Self> {
        let mut wish = Wish {
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
                    let start = times::start(word, &tool.surroundings)?;
                    if start < START_MIN {
                        return Err(Failure::new("the first entry to the RRD should be after 1980"));
                    }
                    wish.start = Some(start);
                }
                (Tag::Step, word) => {
                    let step = parse_step(text(word)?, false);
                    wish.step = Some(step.map_err(|error| Failure::new(format!("step size: {error}")))?);
                }
                (Tag::Source, word) => wish.sources.push(word),
                (Tag::Template, word) => wish.template = Some(word),
                (Tag::NoOverwrite, _) => wish.existing = Existing::Refuse,
                (Tag::Daemon, word) => wish.daemon = Some(word),
            }
        }
        let rest = options.rest();
        let Some((&name, definitions)) = rest.split_first() else {
            return Err(Failure::new("need name of an rrd file to create"));
        };
        Ok(Wish { name, definitions: definitions.to_vec(), ..wish })
    }

    /// Asks a daemon for it.
    fn send(&self, target: &mut Remote<'_>) -> Done {
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
pub fn run(tool: &mut Tool, words: Words<'_>) -> Done {
    let wish = Wish::read(tool, words)?;
    let path = tool.surroundings.path(wish.name)?.to_path_buf();
    for word in wish.sources.iter().chain(&wish.template) {
        tool.surroundings.path(word)?;
    }
    let address = tool.address(wish.daemon)?;
    // Compat: a daemon that cannot be reached is not missed.
    if address.is_some_and(|address| tool.link.connect(&address).is_ok()) {
        return wish.send(&mut remote(tool.link.current(), wish.name)?);
    }
    if let Some(mut target) = tool.placeholder(wish.name)? {
        return wish.send(&mut target);
    }
    local(tool, &wish, &path)
}

fn local(tool: &Tool, wish: &Wish<'_>, path: &Path) -> Done {
    let definitions: Vec<&str> = wish
        .definitions
        .iter()
        .map(|word| {
            std::str::from_utf8(word).map_err(|_| Failure::of_name("can't parse argument '", word, "'"))
        })
        .collect::<Done<_>>()?;
    let options = CreateOptions {
        step: wish.step.unwrap_or(Step::DEFAULT),
        limits: Limits::FILE,
        file_name: wish.name,
    };
    let definition = parse_create(&options, &definitions).map_err(|error| Failure::new(error.to_string()))?;
    let start = wish.start.unwrap_or_else(|| (tool.surroundings.now)().whole - START_BEFORE_NOW);
    create(path, &definition, start, wish.existing).map_err(|error| file_failure(&error))
}
