//! `rrdtool update`: readings into an RRD.

use std::path::Path;

use rrd::time::{MICROS, Timestamp};
use rrd::updatev::UpdateReport;
use rrd_file::{UpdateOptions, update as update_file};

use crate::environment::Environment;
use crate::failure::{Failure, Result};
use crate::options::{OptionSpec, Options, flag, with_argument};
use crate::target::{Location, Policy, Remote};
use crate::{Args, Tool, times};

/// The syntax of a verb that updates: its name and what it does.
macro_rules! syntax {
    ($verb:literal, $summary:literal) => {
        concat!(
            $verb,
            " - ",
            $summary,
            "\n\n\trrdtool ",
            $verb,
            " filename\n\
             \t\t[--template|-t ds-name:ds-name:...]\n\
             \t\t[--skip-past-updates|-s]\n\
             \t\t[--locking|-L try|block|none]\n\
             \t\t[--daemon|-d address]\n\
             \t\ttime|N:value[:value...]\n\
             \t\tat-time@value[:value...] ...\n"
        )
    };
}
pub(super) use syntax;

/// What it does and its syntax.
pub const SYNTAX: &str = syntax!("update", "readings into an RRD");

/// What the options are.
#[derive(Clone, Copy)]
enum Tag {
    Template,
    SkipPast,
    Locking,
    Daemon,
}

/// The options of `update` and `updatev`.
const OPTIONS: &[OptionSpec<Tag>] = &[
    with_argument(b't', "template", Tag::Template),
    with_argument(b'd', "daemon", Tag::Daemon),
    flag(b's', "skip-past-updates", Tag::SkipPast),
    with_argument(b'L', "locking", Tag::Locking),
];

/// What `update` and `updatev` are told.
pub struct UpdateArgs<'w> {
    /// The RRD.
    pub name: &'w [u8],
    /// The readings, each `time:value[:value...]`.
    pub readings: Vec<&'w [u8]>,
    /// Names of the data sources that the values are of, with colons between.
    pub template: Option<&'w [u8]>,
    /// Whether readings that are too old are passed over.
    pub skip_past: bool,
    /// How the file is locked, where not as the environment says.
    pub locking: Option<rrd_file::Locking>,
    /// The daemon to ask, where it is given.
    pub daemon: Option<&'w [u8]>,
}

impl<'w> UpdateArgs<'w> {
    /// Reads the arguments.
    pub(crate) fn read(args: Args<'w>) -> Result<Self> {
        let mut options = Options::new(OPTIONS, args);
        let (mut template, mut skip_past, mut locking, mut daemon) = (None, false, None, None);
        while let Some(given) = options.next() {
            match given? {
                (Tag::Template, word) => template = Some(word),
                (Tag::SkipPast, _) => skip_past = true,
                (Tag::Locking, word) => locking = Some(times::locking(word)?),
                (Tag::Daemon, word) => daemon = Some(word),
            }
        }
        let mut readings = options.rest();
        if readings.len() < 2 {
            return Err(Failure::new("Not enough arguments"));
        }
        let name = readings.remove(0);
        Ok(UpdateArgs { name, readings, template, skip_past, locking, daemon })
    }

    /// Puts the readings into the file at `path`.
    pub(crate) fn apply(
        &self,
        path: &Path,
        environment: &Environment,
        collect_rows: bool,
    ) -> Result<UpdateReport, rrd_file::Error> {
        let options = UpdateOptions {
            locking: self.locking.unwrap_or(environment.locking),
            now: (environment.now)(),
            at_time: &|word| times::at(word, environment),
            template: self.template,
            skip_past: self.skip_past,
            collect_rows,
        };
        update_file(path, &self.readings, &options)
    }
}

/// Updates an RRD.
///
/// # Errors
/// In RRDtool's words; the readings before the bad one are in.
pub fn run(tool: &mut Tool, args: Args<'_>) -> Result {
    let args = UpdateArgs::read(args)?;
    update(tool, &args)
}

/// Updates an RRD.
///
/// # Errors
/// As [`run`].
pub fn update(tool: &mut Tool, args: &UpdateArgs<'_>) -> Result {
    update_at(tool, Policy::UPDATE, args)
}

/// The same for the C functions that know no daemon ([`Policy::UPDATE_HERE_FIRST`]).
///
/// # Errors
/// As [`run`].
pub fn update_here_first(tool: &mut Tool, args: &UpdateArgs<'_>) -> Result {
    update_at(tool, Policy::UPDATE_HERE_FIRST, args)
}

fn update_at(tool: &mut Tool, policy: Policy, args: &UpdateArgs<'_>) -> Result {
    let apply = |path: &Path, environment: &Environment| args.apply(path, environment, false);
    match tool.locate(policy, args.name, args.daemon, apply)? {
        Location::Local(_) => Ok(()),
        Location::Remote(remote) if remote.in_place_of.is_some() => to_store(tool, args, &remote),
        Location::Remote(remote) => {
            let mapping = Mapping::of(args, &remote)?;
            let now = || (tool.environment.now)();
            let map = |reading: &&[u8]| mapping.map(&stamped(reading, now()));
            remote.update(&args.readings.iter().map(map).collect::<Result<Vec<_>>>()?)
        }
    }
}

/// The readings as a store takes them: all that a file takes.
pub(crate) fn for_store(
    environment: &Environment,
    args: &UpdateArgs<'_>,
    remote: &Remote,
) -> Result<Vec<Vec<u8>>> {
    let mapping = Mapping::of(args, remote)?;
    let map = |reading: &&[u8]| mapping.map(&plain(reading, args.name, environment)?);
    args.readings.iter().map(map).collect()
}

/// Updates the RRD of a placeholder. A command line sends a command of ours, which says what is wrong with a reading in
/// the words for a file; threads that share connections send their updates together instead.
fn to_store(tool: &Tool, args: &UpdateArgs<'_>, remote: &Remote) -> Result {
    let readings = for_store(&tool.environment, args, remote)?;
    if !tool.link.is_shared()
        && let Some(written) = super::updatev::send(args, remote, &readings)?
    {
        return written.failure.map_or(Ok(()), Err);
    }
    if !args.skip_past {
        return remote.update(&readings);
    }
    readings.iter().try_for_each(|reading| remote.update_unless_past(reading))
}

/// Compat: for a daemon only `N` is made a time here.
fn stamped(reading: &[u8], now: Timestamp) -> Vec<u8> {
    match reading.strip_prefix(b"N:") {
        Some(values) => [now.whole.to_string().as_bytes(), b":", values].concat(),
        None => reading.to_vec(),
    }
}

/// A reading with a time in seconds, whatever way it was given.
fn plain(reading: &[u8], name: &[u8], environment: &Environment) -> Result<Vec<u8>> {
    let now = (environment.now)();
    if let Some(at) = memchr::memchr(b'@', reading) {
        let (time, values) = (&reading[..at], &reading[at + 1..]);
        let seconds = times::at(time, environment).map_err(|why| {
            let time = String::from_utf8_lossy(time).into_owned();
            Failure::of_name("", name, &format!(": ds time: {time}: {why}"))
        })?;
        return Ok([seconds.to_string().as_bytes(), b":", values].concat());
    }
    let values = memchr::memchr(b':', reading).map_or(&b""[..], |at| &reading[at..]);
    if reading.starts_with(b"N:") {
        return Ok([format!("{}.{:06}", now.whole, now.micros).as_bytes(), values].concat());
    }
    match rrd::number::parse_prefix(reading) {
        Some((time, _)) if time < 0.0 => {
            let time = now.whole as f64 + f64::from(now.micros) / f64::from(MICROS) + time;
            Ok([format!("{time:.6}").as_bytes(), values].concat())
        }
        _ => Ok(reading.to_vec()),
    }
}

/// Which value of a reading goes to which source: what a file does with a template, done before sending.
struct Mapping {
    /// For each source that is fed its place in the template; `None` = there is no template.
    places: Option<(Vec<Option<usize>>, usize)>,
}

impl Mapping {
    fn of(args: &UpdateArgs<'_>, remote: &Remote) -> Result<Mapping> {
        let Some(template) = args.template else { return Ok(Mapping { places: None }) };
        let sources = sources(remote)?;
        let fields: Vec<&[u8]> = template.split(|&byte| byte == b':').collect();
        let place = |name: &String| fields.iter().position(|field| *field == name.as_bytes());
        let places: Vec<Option<usize>> = sources.iter().map(place).collect();
        if places.iter().flatten().count() < fields.len() {
            let template = String::from_utf8_lossy(template);
            return Err(Failure::new(format!(
                "rrd_map_template_to_values: there are fields in template ({template}) that are not in the \
                 rrdfile ({})",
                sources.join(":")
            )));
        }
        Ok(Mapping { places: Some((places, fields.len())) })
    }

    fn map(&self, reading: &[u8]) -> Result<Vec<u8>> {
        let Some((places, field_count)) = &self.places else { return Ok(reading.to_vec()) };
        let mut parts = reading.split(|&byte| byte == b':');
        let mut mapped = parts.next().unwrap_or_default().to_vec();
        let values: Vec<&[u8]> = parts.collect();
        if values.len() != *field_count {
            return Err(Failure::new(format!(
                "rrd_map_template_to_values: mismatch of number of fields in template ({field_count}) with \
                 number of fields in values ({})",
                values.len()
            )));
        }
        for place in places {
            mapped.push(b':');
            mapped.extend_from_slice(place.map_or(b"U", |place| values[place]));
        }
        Ok(mapped)
    }
}

/// Names of the sources that clients feed.
fn sources(remote: &Remote) -> Result<Vec<String>> {
    let items = super::info::of_daemon(remote)?;
    let named = items.iter().filter_map(|item| {
        let name = item.key.strip_prefix("ds[")?.strip_suffix("].type")?;
        let compute = item.value == rrd::info::Value::Text(b"COMPUTE".to_vec());
        (!compute).then(|| name.to_string())
    });
    Ok(named.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_applied_before_sending() {
        let check = |places: &[Option<usize>], fields, reading: &str, want: Option<&str>| {
            let mapping = Mapping { places: Some((places.to_vec(), fields)) };
            let got = mapping.map(reading.as_bytes()).ok().map(|text| String::from_utf8(text).unwrap());
            assert_eq!(got.as_deref(), want, "{reading}");
        };
        check(&[Some(1), Some(0)], 2, "1:a:b", Some("1:b:a"));
        check(&[None, Some(0)], 1, "1:a", Some("1:U:a"));
        check(&[None, Some(0)], 1, "1:a:b", None);
    }

    #[test]
    fn now_is_made_a_time_for_a_daemon() {
        let now = Timestamp::new(1000, 250_000);
        assert_eq!(stamped(b"N:1:2", now), b"1000:1:2");
        assert_eq!(stamped(b"-5:1", now), b"-5:1");
    }

    #[test]
    fn a_store_is_told_times_in_seconds() {
        let now = || Timestamp::new(1000, 250_000);
        let environment = Environment { now, ..Environment::of_process() };
        let check = |reading: &str, want: Result<&str, &str>| {
            let got = plain(reading.as_bytes(), b"a.rrd", &environment);
            let got = got.map(|text| String::from_utf8(text).unwrap()).map_err(|failure| failure.to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), want, "{reading}");
        };
        check("N:1:2", Ok("1000.250000:1:2"));
        check("-5:1", Ok("995.250000:1"));
        check("-0.5:1", Ok("999.750000:1"));
        check("12.5:1", Ok("12.5:1"));
        check("1000000000@1:2", Ok("1000000000:1:2"));
        check("now-5s@U", Ok("995:U"));
        assert!(plain(b"noon noon@1", b"a.rrd", &environment).is_err());
    }
}
