//! `rrdtool update`: readings into an RRD.

use std::os::unix::ffi::OsStrExt;

use rrd::time::{MICROS, Timestamp};
use store::direct::{DirectError, UpdateOptions, UpdateReport, update as update_file};

use crate::failure::{Done, Failure};
use crate::known::Place;
use crate::options::{Known, Options, flag, with_argument};
use crate::surroundings::Surroundings;
use crate::target::{Remote, Target, file_failure, is_missing, remote};
use crate::{Tool, Words, times};

/// What it does and its syntax.
pub const SYNTAX: &str = "update - readings into an RRD\n\n\
    \trrdtool update filename\n\
    \t\t[--template|-t ds-name:ds-name:...]\n\
    \t\t[--skip-past-updates|-s]\n\
    \t\t[--locking|-L try|block|none]\n\
    \t\t[--daemon|-d address]\n\
    \t\ttime|N:value[:value...]\n\
    \t\tat-time@value[:value...] ...\n";

/// What the options of `update` and `updatev` are.
#[derive(Clone, Copy)]
pub(crate) enum Tag {
    Template,
    SkipPast,
    Locking,
    Daemon,
}

const OPTIONS: &[Known<Tag>] = &[
    with_argument(b't', "template", Tag::Template),
    with_argument(b'd', "daemon", Tag::Daemon),
    flag(b's', "skip-past-updates", Tag::SkipPast),
    with_argument(b'L', "locking", Tag::Locking),
];

/// What `update` and `updatev` are told.
pub struct Wish<'w> {
    /// The RRD.
    pub name: &'w [u8],
    /// The readings, each `time:value[:value...]`.
    pub readings: Vec<&'w [u8]>,
    /// Names of the data sources that the values are of, with colons between.
    pub template: Option<&'w [u8]>,
    /// Whether readings that are too old are passed over.
    pub skip_past: bool,
    /// How the file is locked, where not as the environment says.
    pub locking: Option<store::direct::Locking>,
    /// The daemon to ask, where it is given.
    pub daemon: Option<&'w [u8]>,
}

impl<'w> Wish<'w> {
    /// Reads the words by the options given.
    pub(crate) fn read(known: &[Known<Tag>], words: Words<'w>) -> Done<Self> {
        let mut options = Options::new(known, words);
        let (mut template, mut skip_past, mut locking, mut daemon) = (None, false, None, None);
        while let Some(given) = options.next() {
            match given? {
                (Tag::Template, word) => template = Some(word),
                (Tag::SkipPast, _) => skip_past = true,
                (Tag::Locking, word) => locking = Some(times::locking(word)?),
                (Tag::Daemon, word) => daemon = Some(word),
            }
        }
        let rest = options.rest();
        match rest.split_first() {
            Some((&name, readings)) if !readings.is_empty() => {
                Ok(Wish { name, readings: readings.to_vec(), template, skip_past, locking, daemon })
            }
            _ => Err(Failure::new("Not enough arguments")),
        }
    }

    /// Puts the readings into the file.
    pub(crate) fn apply(
        &self,
        surroundings: &Surroundings,
        collect_rows: bool,
    ) -> Result<UpdateReport, DirectError> {
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(self.name));
        let options = UpdateOptions {
            locking: self.locking.unwrap_or(surroundings.locking),
            now: (surroundings.now)(),
            at_time: &|word| times::at(word, surroundings),
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
pub fn run(tool: &mut Tool, words: Words<'_>) -> Done {
    let wish = Wish::read(OPTIONS, words)?;
    update(tool, &wish)
}

/// Updates an RRD as it is wished.
///
/// # Errors
/// As [`run`].
pub fn update(tool: &mut Tool, wish: &Wish<'_>) -> Done {
    tool.surroundings.path(wish.name)?;
    if let Some(address) = tool.address(wish.daemon)? {
        let mapping = Mapping::of(tool, wish)?;
        let mut readings = Vec::with_capacity(wish.readings.len());
        for reading in &wish.readings {
            readings.push(mapping.map(&stamped(reading, (tool.surroundings.now)()))?);
        }
        tool.link.connect(&address)?;
        return send(&mut remote(tool.link.current(), wish.name)?, &readings);
    }
    match wish.apply(&tool.surroundings, false) {
        Ok(_) => Ok(()),
        Err(DirectError::Placeholder { .. }) => to_store(tool, wish, None),
        Err(error) => Err(file_failure(&error)),
    }
}

/// The same for the C functions that know no daemon: the file is updated, or its store behind a placeholder. Only
/// where there is neither, the daemon that the environment names is asked.
///
/// # Errors
/// As [`run`].
pub fn update_here_first(tool: &mut Tool, wish: &Wish<'_>) -> Done {
    let address = tool.surroundings.daemon.take();
    if let Some(place) = tool.known_place(wish.name) {
        if tool.link.connect(&place.address).is_ok() {
            return to_store(tool, wish, Some(place));
        }
        if let Some(known) = tool.link.known() {
            known.forget(wish.name);
        }
    }
    match wish.apply(&tool.surroundings, false) {
        Ok(_) => Ok(()),
        Err(DirectError::Placeholder { .. }) => to_store(tool, wish, None),
        Err(error) if address.is_some() && is_missing(&error) => {
            tool.surroundings.daemon = address;
            update(tool, wish)
        }
        Err(error) => Err(file_failure(&error)),
    }
}

/// The readings of a wish as a store takes them: all that a file takes.
pub(crate) fn for_store(tool: &mut Tool, wish: &Wish<'_>) -> Done<Vec<Vec<u8>>> {
    let mapping = Mapping::of(tool, wish)?;
    let map = |reading: &&[u8]| mapping.map(&plain(reading, wish.name, &tool.surroundings)?);
    wish.readings.iter().map(map).collect()
}

/// Whether a refusal says that a reading is too old.
pub(crate) fn is_past(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"illegal attempt to update").is_some()
}

/// An update of an RRD whose placeholder stands in the tree. `place` is where it is, where that is known and connected
/// to. A command line asks by a command of ours, which says as of a file what is wrong with a reading; threads that
/// share connections send theirs together instead.
fn to_store(tool: &mut Tool, wish: &Wish<'_>, place: Option<Place>) -> Done {
    if !tool.link.is_shared()
        && let Some(written) = super::updatev::to_store(tool, wish)?
    {
        return written.failure.map_or(Ok(()), Err);
    }
    let readings = for_store(tool, wish)?;
    let mut remote = match place {
        Some(place) => {
            // To look up a template may have led elsewhere.
            tool.link.connect(&place.address)?;
            tool.link.at(place, wish.name)
        }
        None => tool.placeholder(wish.name)?.ok_or_else(|| {
            Failure::of_name("opening '", wish.name, "': it was replaced while it was used")
        })?,
    };
    if !wish.skip_past {
        return send(&mut remote, &readings);
    }
    for reading in &readings {
        match send(&mut remote, std::slice::from_ref(reading)) {
            Err(failure) if is_past(failure.text()) => {}
            done => done?,
        }
    }
    Ok(())
}

fn send(remote: &mut Remote<'_>, readings: &[Vec<u8>]) -> Done {
    let words: Vec<&[u8]> = readings.iter().map(Vec::as_slice).collect();
    remote.daemon.update(&remote.name, &words)
}

/// Compat: for a daemon only `N` is made a time here.
fn stamped(reading: &[u8], now: Timestamp) -> Vec<u8> {
    match reading.strip_prefix(b"N:") {
        Some(values) => [now.whole.to_string().as_bytes(), b":", values].concat(),
        None => reading.to_vec(),
    }
}

/// A reading with a time in seconds, whatever way it was given.
fn plain(reading: &[u8], name: &[u8], surroundings: &Surroundings) -> Done<Vec<u8>> {
    let now = (surroundings.now)();
    if let Some(at) = memchr::memchr(b'@', reading) {
        let (time, values) = (&reading[..at], &reading[at + 1..]);
        let seconds = times::at(time, surroundings).map_err(|why| {
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
    fn of(tool: &mut Tool, wish: &Wish<'_>) -> Done<Mapping> {
        let Some(template) = wish.template else { return Ok(Mapping { places: None }) };
        let sources = sources(tool, wish)?;
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

    fn map(&self, reading: &[u8]) -> Done<Vec<u8>> {
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
fn sources(tool: &mut Tool, wish: &Wish<'_>) -> Done<Vec<String>> {
    match tool.target(wish.name, wish.daemon)? {
        Target::File(file) => {
            let fed = |ds: &&rrd::definition::Ds| matches!(ds.kind, rrd::definition::DsKind::Fed { .. });
            Ok(file.definition().ds.iter().filter(fed).map(|ds| ds.name.clone()).collect())
        }
        Target::Remote(mut remote) => {
            let items = super::info::of_daemon(&mut remote)?;
            let named = items.iter().filter_map(|item| {
                let name = item.key.strip_prefix("ds[")?.strip_suffix("].type")?;
                let compute = item.value == rrd::info::Value::Text(b"COMPUTE".to_vec());
                (!compute).then(|| name.to_string())
            });
            Ok(named.collect())
        }
    }
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
        let surroundings = Surroundings { now, ..Surroundings::of_process() };
        let check = |reading: &str, want: Result<&str, &str>| {
            let got = plain(reading.as_bytes(), b"a.rrd", &surroundings);
            let got = got.map(|text| String::from_utf8(text).unwrap()).map_err(|failure| failure.to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), want, "{reading}");
        };
        check("N:1:2", Ok("1000.250000:1:2"));
        check("-5:1", Ok("995.250000:1"));
        check("-0.5:1", Ok("999.750000:1"));
        check("12.5:1", Ok("12.5:1"));
        check("1000000000@1:2", Ok("1000000000:1:2"));
        check("now-5s@U", Ok("995:U"));
        assert!(plain(b"noon noon@1", b"a.rrd", &surroundings).is_err());
    }
}
