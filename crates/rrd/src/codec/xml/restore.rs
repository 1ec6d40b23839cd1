//! XML to an RRD, exactly as tolerant as RRDtool.
//!
//! Tags are found by name, in any case and mostly in any order. Their content is bounded by the length of the
//! input, and nothing recurses. What RRDtool accepts and then cannot read back - a step of zero, an archive
//! without rows or without a known function - is refused here.

use super::UNITS_TAG;
use crate::content::Rrd;
use crate::definition::text::{PARTS_MAX, check_archives};
use crate::definition::{Cf, Definition, Ds, DsKind, DsType, FormatVersion, Rra};
use crate::live::{CdpPrep, HeadShape, HwPrep, LAST_DS_BYTES_MAX, LastDs, Live, PdpPrep, Season, UNKNOWN};
use crate::number::leading_integer;
use crate::rpn;
use crate::time::Timestamp;
use crate::when::FINE_UNITS;

mod archive;
mod error;
mod reader;

pub use error::RestoreError;
use reader::{Reader, Tag};

/// Characters of a name field of the file, including its NUL.
const NAME_CHARACTERS: usize = 20;
/// Longest name a store takes.
const NAME_CHARACTERS_STORE: usize = crate::definition::text::DS_NAME_BYTES_STORE + 1;
/// The newest version.
const VERSION_MAX: u64 = 5;
/// Characters of a version, with the NUL.
const VERSION_BYTES: usize = 5;

/// Bytes checked for forbidden characters at a time.
const CHARACTERS_AT_ONCE: usize = 4096;

/// How to restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreOptions {
    /// `--range-check`: values outside a source's limits become unknown.
    pub range_check: bool,
    /// Names may be as long as in a store.
    pub long_names: bool,
}

/// Reads a dump.
///
/// # Errors
/// [`RestoreError`], with the line where it is known. The text is RRDtool's where it has one.
pub fn restore(xml: &[u8], options: RestoreOptions) -> Result<Rrd, RestoreError> {
    let xml = std::str::from_utf8(xml).map_err(|error| RestoreError::Malformed {
        line: 1 + memchr::memchr_iter(b'\n', &xml[..error.valid_up_to()]).count(),
        what: "Input is not proper UTF-8".to_string(),
    })?;
    // Characters that XML must not contain anywhere.
    let forbidden = |byte: &u8| (*byte < b' ') & (*byte != b'\t') & (*byte != b'\n') & (*byte != b'\r');
    // Without an early exit the compiler checks many bytes at once.
    let has_forbidden = |chunk: &[u8]| chunk.iter().fold(false, |any, byte| any | forbidden(byte));
    if xml.as_bytes().chunks(CHARACTERS_AT_ONCE).any(has_forbidden)
        && let Some(at) = xml.as_bytes().iter().position(forbidden)
    {
        let line = 1 + memchr::memchr_iter(b'\n', &xml.as_bytes()[..at]).count();
        let what = format!("invalid xmlChar value {}", xml.as_bytes()[at]);
        return Err(RestoreError::Malformed { line, what });
    }
    let mut reader = Reader::new(xml);
    let mut draft = Draft::default();
    match reader.tag()? {
        Tag::Open(name) if name == "rrd" => {}
        tag => return Err(reader.expected("<rrd>", &tag)),
    }
    loop {
        match reader.tag()? {
            Tag::Close(_) => break,
            Tag::Open(name) => draft.top(&mut reader, &name, options)?,
            Tag::End => return Err(RestoreError::Ended),
        }
    }
    if reader.tag()? != Tag::End {
        return Err(reader.malformed("Extra content at the end of the document"));
    }
    draft.finish()
}

/// A source and its state.
struct Source {
    ds: Ds,
    pdp: PdpPrep,
}

/// An archive, its state, and its rows, oldest first.
struct Archive {
    rra: Rra,
    /// `scratch[10]` for each source.
    prepared: Vec<[u64; 10]>,
    values: Vec<f64>,
}

#[derive(Default)]
struct Draft {
    version: u64,
    units_per_second: u32,
    step: u64,
    last_update: i64,
    sources: Vec<Source>,
    archives: Vec<Archive>,
}

impl Draft {
    fn top(
        &mut self,
        reader: &mut Reader<'_>,
        name: &str,
        options: RestoreOptions,
    ) -> Result<(), RestoreError> {
        match name {
            "version" => {
                // As C's `atoi`; what is negative is older than all.
                let text = limited(&reader.text(name)?, VERSION_BYTES)?;
                let (negative, digits) = leading_integer(&text);
                self.version = if negative { 0 } else { digits.parse().unwrap_or(0) };
                if self.version > VERSION_MAX {
                    return Err(RestoreError::Version(self.version));
                }
            }
            UNITS_TAG => {
                if reader.count(name)? != u64::from(FINE_UNITS) {
                    return Err(RestoreError::Refused(format!("{UNITS_TAG} is not {FINE_UNITS}")));
                }
                self.units_per_second = FINE_UNITS;
            }
            "step" => self.step = reader.count(name)?,
            "lastupdate" => self.last_update = reader.time(name)?,
            "ds" if !self.archives.is_empty() => return Err(RestoreError::LateSource),
            "ds" => {
                let source = self.source(reader, options)?;
                self.sources.push(source);
            }
            "rra" => {
                let archive = archive::read(reader, self.version, &self.sources, options)?;
                self.archives.push(archive);
            }
            _ => return Err(RestoreError::UnknownTag("rrd", name.to_string())),
        }
        if self.sources.len() > PARTS_MAX || self.archives.len() > PARTS_MAX {
            return Err(RestoreError::Refused(format!("more than {PARTS_MAX} sources or archives")));
        }
        Ok(())
    }

    fn source(&self, reader: &mut Reader<'_>, options: RestoreOptions) -> Result<Source, RestoreError> {
        let characters = if options.long_names { NAME_CHARACTERS_STORE } else { NAME_CHARACTERS };
        let mut name = String::new();
        let mut kind = None;
        // What the dump lacks is zero, as in RRDtool.
        let (mut heartbeat, mut min, mut max) = (0, 0.0, 0.0);
        let mut program = None;
        let mut pdp = PdpPrep { last_ds: LastDs::new(b""), value: 0.0, unknown_units: 0 };
        while let Tag::Open(tag) = reader.tag_within("ds")? {
            match &*tag {
                "name" => name = limited(&reader.text(&tag)?, characters)?,
                "type" => {
                    let text = limited(&reader.text(&tag)?, NAME_CHARACTERS)?;
                    let ds_type = DsType::from_name(&text);
                    if ds_type.is_none() && text != "COMPUTE" {
                        return Err(RestoreError::DsType(text));
                    }
                    kind = Some(ds_type);
                }
                "minimal_heartbeat" => heartbeat = reader.count(&tag)?,
                "min" => min = reader.number(&tag)?,
                "max" => max = reader.number(&tag)?,
                "cdef" => {
                    let names: Vec<&str> =
                        self.sources.iter().map(|source| source.ds.name.as_str()).collect();
                    let text = reader.text(&tag)?;
                    let text = word(&text);
                    // A final number needs a comma after it, which a dump does not have.
                    let compiled = rpn::compile(text, &names).or_else(|error| match text.is_empty() {
                        true => Err(error),
                        false => rpn::compile(&format!("{text},"), &names).map_err(|_| error),
                    });
                    program = Some(compiled.map_err(|error| RestoreError::Refused(error.to_string()))?);
                }
                "last_ds" => {
                    let text = limited(&reader.text(&tag)?, LAST_DS_BYTES_MAX + 1)?;
                    pdp.last_ds = LastDs::new(text.as_bytes());
                }
                "value" => pdp.value = reader.number(&tag)?,
                "unknown_sec" => pdp.unknown_units = reader.count(&tag)?,
                _ => return Err(RestoreError::UnknownTag("ds", tag.into_owned())),
            }
        }
        let kind = match (kind, program) {
            (Some(None), Some(program)) => DsKind::Compute(program),
            (Some(Some(ds_type)), _) => DsKind::Fed { ds_type, heartbeat, min, max },
            _ => {
                return Err(RestoreError::Refused(format!("data source '{name}' has no type or expression")));
            }
        };
        if name.is_empty() || name.contains('\0') {
            return Err(RestoreError::Refused("a data source has no name".to_string()));
        }
        Ok(Source { ds: Ds { name, kind }, pdp })
    }

    fn finish(self) -> Result<Rrd, RestoreError> {
        let refused = |what: &str| Err(RestoreError::Refused(what.to_string()));
        if self.version == 0 {
            return refused("the dump has no version");
        }
        if self.step == 0 {
            return refused("the dump has no step");
        }
        if self.sources.is_empty() {
            return refused("the dump has no data source");
        }
        if self.archives.is_empty() {
            return refused("the dump has no archive");
        }
        // 2^53 units: the engine's limit for a time.
        if self.last_update.unsigned_abs() > 1 << 53 || self.step > 1 << 53 {
            return refused("the step or the last update is no time");
        }
        let definition = Definition {
            version: self.version as FormatVersion,
            units_per_second: self.units_per_second.max(1),
            step: self.step,
            ds: self.sources.iter().map(|source| source.ds.clone()).collect(),
            rra: self.archives.iter().map(|archive| archive.rra.clone()).collect(),
        };
        check_archives(&definition).map_err(|error| RestoreError::Refused(error.to_string()))?;
        Ok(self.content(definition))
    }

    fn content(self, definition: Definition) -> Rrd {
        let shape = HeadShape::of(&definition);
        let mut words = vec![0; shape.word_count()];
        let head = shape.split_mut(&mut words);
        *head.last_update = Timestamp::whole(self.last_update);
        for (pdp, source) in head.pdp.iter_mut().zip(&self.sources) {
            *pdp = source.pdp;
        }
        let ds_count = definition.ds.len();
        let (mut seasons, mut archives) = (Vec::new(), Vec::new());
        for (index, archive) in self.archives.into_iter().enumerate() {
            for (ds, scratch) in archive.prepared.iter().enumerate() {
                head.cdp[index * ds_count + ds] = CdpPrep {
                    value: f64::from_bits(scratch[0]),
                    unknown_pdps: scratch[1],
                    primary: f64::from_bits(scratch[8]),
                    secondary: f64::from_bits(scratch[9]),
                };
                if let Some(hw) = shape.hw_index(index) {
                    head.hw[hw * ds_count + ds] = HwPrep { words: std::array::from_fn(|at| scratch[2 + at]) };
                }
            }
            if archive.rra.cf.is_season() {
                let current_row = archive.rra.row_count - 1;
                seasons.push(Season { rra: index, current_row, values: archive.values });
                archives.push(Vec::new());
            } else {
                archives.push(archive.values);
            }
        }
        Rrd { definition, live: Live { words, seasons }, archives }
    }
}

/// The first word; RRDtool does not see the rest.
fn word(text: &str) -> &str {
    text.split_ascii_whitespace().next().unwrap_or_default()
}

/// The first word, if it fits in a field of `characters` including the NUL.
fn limited(text: &str, characters: usize) -> Result<String, RestoreError> {
    let word = word(text);
    if word.len() >= characters {
        return Err(RestoreError::TooLong(word.to_string(), characters));
    }
    Ok(word.to_string())
}
