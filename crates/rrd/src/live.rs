//! The live head of an RRD: everything an update reads and changes, in one contiguous slice of words.
//!
//! A [`HeadShape`] says how many 8-byte words an RRD of a definition needs and where each part lies. The
//! words belong to the caller (a `Vec` for one file, a slab for a million RRDs); splitting them into parts
//! copies nothing. Cost: `2 + 6*ds + 4*ds*rra (+ 6*ds` per Holt-Winters archive`)` words: 544 bytes for one
//! source in 15 archives, 624 bytes for two sources in 8.

use bytemuck::{Pod, Zeroable};

use crate::definition::Definition;
use crate::grid::Divider;
use crate::time::Timestamp;

/// Longest text kept of a source's last reading, in bytes: RRDtool's `LAST_DS_LEN` less the NUL.
pub const LAST_DS_BYTES_MAX: usize = 29;

/// The NaN that RRDtool writes (the x86 default NaN, sign bit set).
pub const UNKNOWN: f64 = f64::from_bits(0xfff8_0000_0000_0000);

/// The text of a source's last reading, as it arrived, cut at 29 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct LastDs {
    bytes: [u8; 31],
    length: u8,
}

impl LastDs {
    /// Keeps the first 29 bytes of `text`.
    pub fn new(text: &[u8]) -> Self {
        let mut last = LastDs { bytes: [0; 31], length: 0 };
        last.set(text);
        last
    }

    /// Replaces the text, keeping the first 29 bytes.
    pub fn set(&mut self, text: &[u8]) {
        let length = text.len().min(LAST_DS_BYTES_MAX);
        self.bytes = [0; 31];
        self.bytes[..length].copy_from_slice(&text[..length]);
        self.length = length as u8;
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length).min(LAST_DS_BYTES_MAX)]
    }
}

/// The state of one data source (`pdp_prep_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct PdpPrep {
    /// The last reading's text.
    pub last_ds: LastDs,
    /// Sum of rate x seconds of the open PDP; NaN when nothing is known (`scratch[1]`).
    pub value: f64,
    /// Whole units of the open PDP that are unknown (`scratch[0]`).
    pub unknown_units: u64,
}

/// The state of one data source in one archive (`cdp_prep_t`, the words all kinds share).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct CdpPrep {
    /// The open row's value (`scratch[0]`).
    pub value: f64,
    /// Unknown PDPs of the open row (`scratch[1]`).
    pub unknown_pdps: u64,
    /// Value of the first row the last update wrote (`scratch[8]`).
    pub primary: f64,
    /// Value of the other rows the last update wrote (`scratch[9]`).
    pub secondary: f64,
}

/// Words 2 to 7 of `cdp_prep_t`, which only Holt-Winters archives use.
///
/// Their meaning depends on the function: for HWPREDICT intercept, last intercept, slope, last slope, null
/// count, last null count; for SEASONAL the coefficient, the last coefficient, and an init flag in word 6.
/// FAILURES treats words 0 to 7 as 28 bytes of violation flags; words 0 and 1 are [`CdpPrep`]'s first two.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct HwPrep {
    /// Bits of `scratch[2]` to `scratch[7]`.
    pub words: [u64; 6],
}

/// The rows of a SEASONAL or DEVSEASONAL archive, which updates read ahead and smoothing rewrites.
#[derive(Clone, Debug, PartialEq)]
pub struct Season {
    /// The archive's index.
    pub rra: usize,
    /// The row written last (`rra_ptr`).
    pub current_row: u64,
    /// `row_count * ds_count` values, row-major.
    pub values: Vec<f64>,
}

/// Where the parts of a live head lie in its words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeadShape {
    ds_count: usize,
    rra_count: usize,
    /// For each archive, its index among the Holt-Winters archives.
    hw_index: Vec<Option<usize>>,
    hw_count: usize,
    /// For each archive, the division of PDP numbers into rows.
    dividers: Vec<Divider>,
}

const TIMESTAMP_WORDS: usize = size_of::<Timestamp>() / 8;
const PDP_WORDS: usize = size_of::<PdpPrep>() / 8;
const CDP_WORDS: usize = size_of::<CdpPrep>() / 8;
const HW_WORDS: usize = size_of::<HwPrep>() / 8;

impl HeadShape {
    /// The shape for heads of this definition.
    pub fn of(definition: &Definition) -> Self {
        let archives = definition.rra.iter().map(|rra| (rra.pdp_per_row, rra.cf.is_holt_winters()));
        HeadShape::new(definition.ds.len(), archives)
    }

    /// The shape for `ds_count` sources and, for each archive, its PDPs per row and whether it is a
    /// Holt-Winters archive.
    pub fn new(ds_count: usize, archives: impl Iterator<Item = (u64, bool)>) -> Self {
        let mut hw_count = 0;
        let mut dividers = Vec::new();
        let hw_index: Vec<_> = archives
            .map(|(pdp_per_row, holt_winters)| {
                dividers.push(Divider::new(pdp_per_row));
                holt_winters.then(|| {
                    hw_count += 1;
                    hw_count - 1
                })
            })
            .collect();
        HeadShape { ds_count, rra_count: hw_index.len(), hw_index, hw_count, dividers }
    }

    /// Number of 8-byte words in a head of this shape.
    pub fn word_count(&self) -> usize {
        TIMESTAMP_WORDS + self.ds_count * (PDP_WORDS + self.rra_count * CDP_WORDS + self.hw_count * HW_WORDS)
    }

    /// Number of data sources.
    pub fn ds_count(&self) -> usize {
        self.ds_count
    }

    /// The index of archive `rra` among the Holt-Winters archives, if it is one.
    pub fn hw_index(&self, rra: usize) -> Option<usize> {
        self.hw_index[rra]
    }

    /// The divisions of PDP numbers into rows, one per archive.
    pub fn dividers(&self) -> &[Divider] {
        &self.dividers
    }

    /// True when the head has Holt-Winters words.
    pub fn has_holt_winters(&self) -> bool {
        self.hw_count != 0
    }

    fn bounds(&self) -> (usize, usize) {
        let pdp_end = TIMESTAMP_WORDS + self.ds_count * PDP_WORDS;
        (pdp_end, pdp_end + self.ds_count * self.rra_count * CDP_WORDS)
    }

    /// The parts of a head, for reading. `words` must have exactly [`HeadShape::word_count`] words.
    pub fn split<'a>(&self, words: &'a [u64]) -> Head<'a> {
        let (pdp_end, cdp_end) = self.bounds();
        Head {
            last_update: bytemuck::cast_slice::<u64, Timestamp>(&words[..TIMESTAMP_WORDS])[0],
            pdp: bytemuck::cast_slice(&words[TIMESTAMP_WORDS..pdp_end]),
            cdp: bytemuck::cast_slice(&words[pdp_end..cdp_end]),
            hw: bytemuck::cast_slice(&words[cdp_end..]),
        }
    }

    /// The parts of a head, for changing. `words` must have exactly [`HeadShape::word_count`] words.
    pub fn split_mut<'a>(&self, words: &'a mut [u64]) -> HeadMut<'a> {
        let (pdp_end, cdp_end) = self.bounds();
        let (front, hw) = words.split_at_mut(cdp_end);
        let (front, cdp) = front.split_at_mut(pdp_end);
        let (time, pdp) = front.split_at_mut(TIMESTAMP_WORDS);
        HeadMut {
            last_update: &mut bytemuck::cast_slice_mut::<u64, Timestamp>(time)[0],
            pdp: bytemuck::cast_slice_mut(pdp),
            cdp: bytemuck::cast_slice_mut(cdp),
            hw: bytemuck::cast_slice_mut(hw),
        }
    }
}

/// A live head, for reading.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The time of the last update.
    pub last_update: Timestamp,
    /// One per data source.
    pub pdp: &'a [PdpPrep],
    /// Archive-major: `cdp[rra * ds_count + ds]`.
    pub cdp: &'a [CdpPrep],
    /// Archive-major over the Holt-Winters archives only: `hw[hw_index * ds_count + ds]`.
    pub hw: &'a [HwPrep],
}

/// A live head, for changing.
#[derive(Debug)]
pub struct HeadMut<'a> {
    /// The time of the last update.
    pub last_update: &'a mut Timestamp,
    /// One per data source.
    pub pdp: &'a mut [PdpPrep],
    /// Archive-major: `cdp[rra * ds_count + ds]`.
    pub cdp: &'a mut [CdpPrep],
    /// Archive-major over the Holt-Winters archives only: `hw[hw_index * ds_count + ds]`.
    pub hw: &'a mut [HwPrep],
}

/// A live head that owns its words, and its seasons: the state of one RRD.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// [`HeadShape::word_count`] words.
    pub words: Vec<u64>,
    /// One for each SEASONAL and DEVSEASONAL archive, in the order of the archives.
    pub seasons: Vec<Season>,
}
