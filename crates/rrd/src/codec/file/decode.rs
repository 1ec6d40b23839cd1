//! Bytes of a `.rrd` file to [`Rrd`]. Trusts no field before it is checked.

use super::layout::{FileLayout, live_head_bytes};
use super::{
    CDP_PREP_BYTES, COMPUTE_END, COMPUTE_NODES_MAX, DS_DEF_BYTES, FAILURES_WINDOW_MAX, FLOAT_COOKIE,
    FileError, FileParts, NAME_BYTES, PARAMETERS_AT, PDP_PREP_BYTES, RRA_DEF_BYTES, RRA_PTR_BYTES,
    STAT_HEAD_BYTES, VERSION_MAX, VERSION_MICROSECONDS,
};
use crate::content::Rrd;
use crate::definition::{
    Cf, ComputeNode, ComputeProgram, Consolidation, Definition, Ds, DsKind, DsType, FormatVersion, PlainCf,
    Rra,
};
use crate::live::{CdpPrep, HeadShape, HwPrep, LAST_DS_BYTES_MAX, LastDs, Live, PdpPrep, Season};
use crate::time::{MICROS, Timestamp};

/// Longest span of an archive in seconds (292 million years): keeps every sum of times within `i64`.
const SPAN_MAX: u64 = 1 << 53;

/// The header of a file, without its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct FileHead {
    /// What the RRD is.
    pub definition: Definition,
    /// The words of its live head ([`HeadShape::split`]).
    pub words: Vec<u64>,
    /// For each archive, the ring position of its newest row.
    pub current_rows: Vec<u64>,
    /// Offset of every part.
    pub layout: FileLayout,
}

/// Reads a complete file. Bytes after the last archive are ignored, as RRDtool does.
///
/// The result is sound: step, rows and PDPs per row are at least 1 and no archive spans more than 2^53
/// seconds; ring positions are within their rings; archives that Holt-Winters archives refer to exist and
/// have the right kind; COMPUTE reads only earlier sources.
///
/// # Errors
/// [`FileError`]; its `Damaged` names the offset.
pub fn decode(bytes: &[u8]) -> Result<FileParts, FileError> {
    let head = decode_head(bytes, bytes.len() as u64)?;
    let ds_count = head.definition.ds.len();
    let mut archives = Vec::with_capacity(head.layout.archives.len());
    let mut seasons = Vec::new();
    for (index, archive) in head.layout.archives.iter().enumerate() {
        let ring = &bytes[archive.offset as usize..(archive.offset + archive.ring_bytes()) as usize];
        let current_row = head.current_rows[index];
        if head.definition.rra[index].cf.is_season() {
            seasons.push(season(index, current_row, ring));
            archives.push(Vec::new());
        } else {
            let (newer, older) = ring.split_at((current_row as usize + 1) * ds_count * 8);
            let mut rows = Vec::with_capacity(ring.len() / 8);
            rows.extend(values(older));
            rows.extend(values(newer));
            archives.push(rows);
        }
    }
    let rrd = Rrd { definition: head.definition, live: Live { words: head.words, seasons }, archives };
    Ok(FileParts { rrd, current_rows: head.current_rows })
}

/// The season of archive `rra` from the bytes of its ring.
pub fn season(rra: usize, current_row: u64, ring: &[u8]) -> Season {
    Season { rra, current_row, values: values(ring).collect() }
}

fn values(bytes: &[u8]) -> impl Iterator<Item = f64> {
    bytes.chunks_exact(8).map(|chunk| f64::from_le_bytes(chunk.try_into().expect("chunks of eight")))
}

/// Length of this file's header in bytes, from its first 128 bytes (or all of a shorter file).
///
/// `file_bytes` is the length of the file; a header that does not fit in it is an error, so the answer is
/// safe to allocate.
///
/// # Errors
/// [`FileError`] when these are not the first bytes of a `.rrd` file.
pub fn head_bytes(prefix: &[u8], file_bytes: u64) -> Result<usize, FileError> {
    let stat = StatHead::read(prefix, file_bytes)?;
    Ok(stat.header_bytes)
}

/// Bytes before the live part of this file: those that define the RRD. Arguments and errors as for
/// [`head_bytes`].
///
/// # Errors
/// [`FileError`] when these are not the first bytes of a `.rrd` file.
pub fn definition_bytes(prefix: &[u8], file_bytes: u64) -> Result<usize, FileError> {
    let stat = StatHead::read(prefix, file_bytes)?;
    Ok(STAT_HEAD_BYTES + stat.ds_count * DS_DEF_BYTES + stat.rra_count * RRA_DEF_BYTES)
}

/// Reads the header of a file of `file_bytes` bytes; `bytes` holds at least the header.
///
/// # Errors
/// [`FileError`] as for [`decode`].
pub fn decode_head(bytes: &[u8], file_bytes: u64) -> Result<FileHead, FileError> {
    let stat = StatHead::read(bytes, file_bytes)?;
    if bytes.len() < stat.header_bytes {
        return Err(FileError::HeaderCut("rra_ptr"));
    }
    let input = Input { bytes };
    let rra_at = STAT_HEAD_BYTES + stat.ds_count * DS_DEF_BYTES;
    let ds = (0..stat.ds_count).map(|index| read_ds(input, index)).collect::<Result<Vec<_>, _>>()?;
    let rra = (0..stat.rra_count)
        .map(|index| read_rra(input, rra_at + index * RRA_DEF_BYTES, stat.step))
        .collect::<Result<Vec<_>, _>>()?;
    check_references(&rra, rra_at)?;
    let definition = Definition { version: stat.version, units_per_second: 1, step: stat.step, ds, rra };
    let layout = FileLayout::of(&definition);
    if layout.file_bytes > file_bytes {
        return Err(FileError::TooSmall { should_be: layout.file_bytes });
    }
    let (words, current_rows) = decode_live(bytes, &definition, &HeadShape::of(&definition), &layout)?;
    Ok(FileHead { definition, words, current_rows, layout })
}

/// Reads what updates change from a complete header whose definition, shape and layout are known: the words
/// of the live head and, for each archive, the ring position of its newest row.
///
/// # Errors
/// [`FileError`] as for [`decode`].
pub fn decode_live(
    bytes: &[u8],
    definition: &Definition,
    shape: &HeadShape,
    layout: &FileLayout,
) -> Result<(Vec<u64>, Vec<u64>), FileError> {
    if bytes.len() < layout.header_bytes {
        return Err(FileError::HeaderCut("rra_ptr"));
    }
    let input = Input { bytes };
    let words = read_live(input, definition, shape, layout)?;
    let mut current_rows = Vec::with_capacity(definition.rra.len());
    for (index, rra) in definition.rra.iter().enumerate() {
        let at = layout.rra_ptr + index * RRA_PTR_BYTES;
        let row = input.u64(at);
        check(row < rra.row_count, at, "a ring position is outside its archive")?;
        current_rows.push(row);
    }
    Ok((words, current_rows))
}

/// `stat_head_t`, checked.
struct StatHead {
    version: FormatVersion,
    ds_count: usize,
    rra_count: usize,
    step: u64,
    header_bytes: usize,
}

impl StatHead {
    fn read(bytes: &[u8], file_bytes: u64) -> Result<StatHead, FileError> {
        if bytes.len() < STAT_HEAD_BYTES {
            return Err(FileError::HeaderCut("stat_head"));
        }
        if !bytes.starts_with(b"RRD\0") {
            return Err(FileError::NotRrd);
        }
        let input = Input { bytes };
        if input.u64(16) != FLOAT_COOKIE.to_bits() {
            return Err(FileError::OtherArchitecture);
        }
        let version = read_version(&bytes[4..9])?;
        let header_bytes = header_bytes(version, input.u64(24), input.u64(32), file_bytes)?;
        let step = input.u64(40);
        check((1..=SPAN_MAX).contains(&step), 40, "the step is out of range")?;
        // The length of the file bounds both counts now.
        Ok(StatHead {
            version,
            ds_count: input.u64(24) as usize,
            rra_count: input.u64(32) as usize,
            step,
            header_bytes,
        })
    }
}

fn read_version(field: &[u8]) -> Result<FormatVersion, FileError> {
    let text = field.split(|&byte| byte == 0).next().unwrap_or_default();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0u32, |number, &byte| number * 10 + u32::from(byte - b'0'));
    if number > u32::from(VERSION_MAX) {
        return Err(FileError::Version(String::from_utf8_lossy(text).into_owned()));
    }
    check(number >= 1 && text.len() == 4, 4, "the version is none")?;
    Ok(number as FormatVersion)
}

fn header_bytes(version: FormatVersion, ds: u64, rra: u64, file_bytes: u64) -> Result<usize, FileError> {
    check(ds >= 1, 24, "there is no data source")?;
    check(rra >= 1, 32, "there is no archive")?;
    let (ds, rra) = (u128::from(ds), u128::from(rra));
    let parts = [
        ("ds_def", ds * DS_DEF_BYTES as u128),
        ("rra_def", rra * RRA_DEF_BYTES as u128),
        ("live_head", live_head_bytes(version) as u128),
        ("pdp_prep", ds * PDP_PREP_BYTES as u128),
        ("cdp_prep", (ds * rra).saturating_mul(CDP_PREP_BYTES as u128)),
        ("rra_ptr", rra * RRA_PTR_BYTES as u128),
    ];
    let mut end = STAT_HEAD_BYTES as u128;
    for (name, bytes) in parts {
        end = end.saturating_add(bytes);
        if end > u128::from(file_bytes) {
            return Err(FileError::HeaderCut(name));
        }
    }
    usize::try_from(end).map_err(|_| FileError::Damaged { offset: 24, what: "the counts are too large" })
}

fn read_ds(input: Input<'_>, index: usize) -> Result<Ds, FileError> {
    let at = STAT_HEAD_BYTES + index * DS_DEF_BYTES;
    let name = input.name(at)?;
    check(!name.is_empty(), at, "a data source has no name")?;
    let parameters = at + PARAMETERS_AT;
    let type_name = input.name(at + NAME_BYTES)?;
    let kind = if type_name == "COMPUTE" {
        DsKind::Compute(read_compute(&input.bytes[parameters..at + DS_DEF_BYTES], index, parameters)?)
    } else {
        DsKind::Fed {
            ds_type: DsType::from_name(type_name)
                .ok_or_else(|| FileError::UnknownDsType(type_name.to_string()))?,
            heartbeat: input.u64(parameters),
            min: input.f64(parameters + 8),
            max: input.f64(parameters + 16),
        }
    };
    Ok(Ds { name: name.to_string(), kind })
}

/// Reads the nodes of a COMPUTE program up to its end mark. The evaluator checks that the operators exist
/// and that operands name sources before `ds_index`.
fn read_compute(bytes: &[u8], ds_index: usize, at: usize) -> Result<ComputeProgram, FileError> {
    /// `OP_VARIABLE`: the operand is the index of an earlier source.
    const VARIABLE: u8 = 1;
    let mut nodes = Vec::new();
    for (index, node) in bytes.chunks_exact(4).enumerate() {
        if node[0] == COMPUTE_END {
            return Ok(ComputeProgram { nodes });
        }
        check(index < COMPUTE_NODES_MAX && node[0] < 128, at + index * 4, "a COMPUTE program has no end")?;
        let operand = i16::from_le_bytes([node[2], node[3]]);
        let known = node[0] != VARIABLE || (0..ds_index as i64).contains(&i64::from(operand));
        check(known, at + index * 4, "a COMPUTE program reads a data source that does not come before it")?;
        nodes.push(ComputeNode { op: node[0], operand });
    }
    Err(FileError::Damaged { offset: at as u64, what: "a COMPUTE program has no end" })
}

fn read_rra(input: Input<'_>, at: usize, step: u64) -> Result<Rra, FileError> {
    let name = input.name(at)?;
    let cf = Cf::from_name(name).ok_or_else(|| FileError::UnknownCf(name.to_string()))?;
    let (row_count, pdp_per_row) = (input.u64(at + 24), input.u64(at + 32));
    let parameter = |index: usize| input.u64(at + PARAMETERS_AT + index * 8);
    let number = |index: usize| f64::from_bits(parameter(index));
    // A number too large for memory fits no archive either; the reference check refuses it.
    let archive = usize::try_from(parameter(3)).unwrap_or(usize::MAX);
    let plain = |cf| Consolidation::Plain { cf, xff: number(0) };
    let cf = match cf {
        Cf::Average => plain(PlainCf::Average),
        Cf::Min => plain(PlainCf::Min),
        Cf::Max => plain(PlainCf::Max),
        Cf::Last => plain(PlainCf::Last),
        Cf::HwPredict | Cf::MhwPredict => Consolidation::Predict {
            multiplicative: cf == Cf::MhwPredict,
            alpha: number(1),
            beta: number(2),
            seasonal: archive,
            period: number(4),
        },
        Cf::Seasonal | Cf::DevSeasonal => Consolidation::Seasonal {
            deviation: cf == Cf::DevSeasonal,
            gamma: number(1),
            smoothing_window: number(2),
            predict: archive,
            smooth_index: parameter(4),
        },
        Cf::DevPredict => Consolidation::DevPredict { devseasonal: archive },
        Cf::Failures => Consolidation::Failures {
            delta_pos: number(1),
            delta_neg: number(2),
            devseasonal: archive,
            window_length: parameter(4),
            threshold: parameter(5),
        },
    };
    check(row_count >= 1, at + 24, "an archive has no rows")?;
    check(pdp_per_row >= 1, at + 32, "an archive has no PDPs in a row")?;
    // The product of two of them fits in 128 bits, of three perhaps not.
    let span = (u128::from(step) * u128::from(pdp_per_row)).saturating_mul(u128::from(row_count));
    check(span <= u128::from(SPAN_MAX), at + 24, "an archive spans too long a time")?;
    check(pdp_per_row == 1 || !cf.is_holt_winters(), at + 32, "a Holt-Winters archive consolidates")?;
    Ok(Rra { cf, pdp_per_row, row_count })
}

fn check_references(rra: &[Rra], rra_at: usize) -> Result<(), FileError> {
    for (index, archive) in rra.iter().enumerate() {
        let sound = match archive.cf {
            Consolidation::Plain { .. } => true,
            Consolidation::Predict { seasonal, .. } => {
                matches!(rra.get(seasonal).map(|rra| rra.cf.cf()), Some(Cf::Seasonal))
            }
            Consolidation::Seasonal { predict, .. } => {
                matches!(rra.get(predict).map(|rra| rra.cf.cf()), Some(Cf::HwPredict | Cf::MhwPredict))
            }
            Consolidation::DevPredict { devseasonal } => is_devseasonal(rra, devseasonal),
            Consolidation::Failures { devseasonal, window_length, .. } => {
                is_devseasonal(rra, devseasonal) && (1..=FAILURES_WINDOW_MAX).contains(&window_length)
            }
        };
        check(
            sound,
            rra_at + index * RRA_DEF_BYTES + PARAMETERS_AT,
            "a Holt-Winters archive lacks its mate",
        )?;
    }
    Ok(())
}

fn is_devseasonal(rra: &[Rra], index: usize) -> bool {
    matches!(rra.get(index).map(|rra| rra.cf.cf()), Some(Cf::DevSeasonal))
}

fn read_live(
    input: Input<'_>,
    definition: &Definition,
    shape: &HeadShape,
    layout: &FileLayout,
) -> Result<Vec<u64>, FileError> {
    let mut words = vec![0; shape.word_count()];
    let head = shape.split_mut(&mut words);
    let whole = input.u64(layout.live_head) as i64;
    let sane = whole.unsigned_abs() <= SPAN_MAX;
    check(sane, layout.live_head, "the last update is no time")?;
    let mut micros = 0;
    if definition.version >= VERSION_MICROSECONDS {
        micros = input.u64(layout.live_head + 8);
        check(micros < u64::from(MICROS), layout.live_head + 8, "the microseconds are out of range")?;
    }
    *head.last_update = Timestamp::new(whole, micros as u32);
    for (index, pdp) in head.pdp.iter_mut().enumerate() {
        let at = layout.pdp_prep + index * PDP_PREP_BYTES;
        let text = &input.bytes[at..at + LAST_DS_BYTES_MAX];
        *pdp = PdpPrep {
            last_ds: LastDs::new(text.split(|&byte| byte == 0).next().unwrap_or_default()),
            unknown_units: input.u64(at + 32),
            value: input.f64(at + 40),
        };
    }
    let ds_count = definition.ds.len();
    for (index, cell) in head.cdp.iter_mut().enumerate() {
        let at = layout.cdp_prep + index * CDP_PREP_BYTES;
        *cell = CdpPrep {
            value: input.f64(at),
            unknown_pdps: input.u64(at + 8),
            primary: input.f64(at + 64),
            secondary: input.f64(at + 72),
        };
        if let Some(hw) = shape.hw_index(index / ds_count) {
            head.hw[hw * ds_count + index % ds_count] =
                HwPrep { words: std::array::from_fn(|word| input.u64(at + 16 + word * 8)) };
        }
    }
    Ok(words)
}

/// Bytes that are known to be long enough for every read.
#[derive(Clone, Copy)]
struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("a slice of eight bytes"))
    }

    fn f64(self, at: usize) -> f64 {
        f64::from_bits(self.u64(at))
    }

    fn name(self, at: usize) -> Result<&'a str, FileError> {
        let field = &self.bytes[at..at + NAME_BYTES];
        let length = field.iter().position(|&byte| byte == 0);
        let text = length.and_then(|length| std::str::from_utf8(&field[..length]).ok());
        text.ok_or(FileError::Damaged { offset: at as u64, what: "a name is no text" })
    }
}

fn check(good: bool, at: usize, what: &'static str) -> Result<(), FileError> {
    if good { Ok(()) } else { Err(FileError::Damaged { offset: at as u64, what }) }
}
