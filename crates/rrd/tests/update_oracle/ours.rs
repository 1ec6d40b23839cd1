//! One of our RRDs beside rrdtool's file, with its archives in plain rings.

use roundel_rrd::codec::file::FileParts;
use roundel_rrd::create::new_live;
use roundel_rrd::definition::{Consolidation, Definition};
use roundel_rrd::live::{CdpPrep, HeadShape, Live};
use roundel_rrd::reading::parse_argument;
use roundel_rrd::time::Timestamp;
use roundel_rrd::update::{RowSink, Scratch, UpdateError, Updater};

pub struct Ours {
    definition: Definition,
    shape: HeadShape,
    live: Live,
    rings: Rings,
    scratch: Scratch,
}

/// Rows, oldest first, and how far the newest one has moved round the ring of the file.
#[derive(Clone)]
struct Rings {
    ds_count: usize,
    archives: Vec<Vec<f64>>,
    current_rows: Vec<u64>,
    newest: Vec<i64>,
}

impl RowSink for Rings {
    fn rows(&mut self, rra: usize, first_row: i64, count: u64, cells: &[CdpPrep]) {
        let archive = &mut self.archives[rra];
        let row_count = (archive.len() / self.ds_count) as u64;
        assert!(count >= 1 && count <= row_count, "archive {rra}: {count} rows of {row_count}");
        for index in 0..count {
            archive.drain(..self.ds_count);
            archive.extend(cells.iter().map(|cell| if index == 0 { cell.primary } else { cell.secondary }));
        }
        self.current_rows[rra] = (self.current_rows[rra] + count) % row_count;
        let newest = first_row + count as i64 - 1;
        assert!(first_row > self.newest[rra], "archive {rra}: row {first_row} after {}", self.newest[rra]);
        self.newest[rra] = newest;
    }
}

impl Ours {
    pub fn new(parts: FileParts) -> Ours {
        let FileParts { rrd, current_rows } = parts;
        let shape = rrd.shape();
        let last = shape.split(&rrd.live.words).last_update.whole;
        let rras = 0..rrd.definition.rra.len();
        let rings = Rings {
            ds_count: rrd.definition.ds.len(),
            archives: rrd.archives,
            current_rows,
            newest: rras.map(|rra| rrd.definition.newest_row(rra, last)).collect(),
        };
        Ours { definition: rrd.definition, shape, live: rrd.live, rings, scratch: Scratch::default() }
    }

    /// Compares the state after `create` with ours; ring positions may differ.
    pub fn check_fresh(&self, theirs: &FileParts) -> Result<(), String> {
        let last = self.shape.split(&self.live.words).last_update.whole;
        let mut live = new_live(&self.definition, last);
        for (ours, theirs) in live.seasons.iter_mut().zip(&self.live.seasons) {
            ours.current_row = theirs.current_row;
        }
        let fresh = Ours {
            definition: self.definition.clone(),
            shape: self.shape.clone(),
            live,
            rings: self.rings.clone(),
            scratch: Scratch::default(),
        };
        fresh.compare(theirs).map_err(|what| format!("fresh: {what}"))
    }

    pub fn update(&mut self, word: &[u8]) -> Result<(), UpdateError> {
        let mut values = Vec::new();
        let no_at = |_: &[u8]| Err("no AT times here".to_string());
        let reading = parse_argument(word, Timestamp::whole(0), &self.definition, None, &no_at, &mut values)?;
        Updater {
            definition: &self.definition,
            shape: &self.shape,
            head: self.shape.split_mut(&mut self.live.words),
            seasons: &mut self.live.seasons,
            scratch: &mut self.scratch,
            sink: &mut self.rings,
        }
        .apply(&reading)
    }

    pub fn take_texts(&mut self, theirs: &FileParts) {
        let from = self.shape.split(&theirs.rrd.live.words);
        let to = self.shape.split_mut(&mut self.live.words);
        for (to, from) in to.pdp.iter_mut().zip(from.pdp) {
            to.last_ds = from.last_ds;
        }
    }

    /// Lists where the two states differ in any bit.
    pub fn compare(&self, theirs: &FileParts) -> Result<(), String> {
        let mut found = Vec::new();
        let mut check = |what: String, same: bool, ours: String, theirs: String| {
            if !same {
                found.push(format!("{what}: rrdtool {theirs}, we {ours}"));
            }
        };
        let ours = self.shape.split(&self.live.words);
        let other = self.shape.split(&theirs.rrd.live.words);
        let time = (ours.last_update, other.last_update);
        check("last update".into(), time.0 == time.1, format!("{:?}", time.0), format!("{:?}", time.1));
        for (ds, (a, b)) in ours.pdp.iter().zip(other.pdp).enumerate() {
            let same = bytes(a) == bytes(b);
            check(format!("ds {ds}"), same, format!("{a:?}"), format!("{b:?}"));
        }
        for (index, (a, b)) in ours.cdp.iter().zip(other.cdp).enumerate() {
            let rra = index / self.definition.ds.len();
            check(self.cell(index, rra), bytes(a) == bytes(b), show_cell(a), show_cell(b));
        }
        for rra in 0..self.definition.rra.len() {
            let Some(hw) = self.shape.hw_index(rra) else { continue };
            for ds in 0..self.definition.ds.len() {
                let index = hw * self.definition.ds.len() + ds;
                let (a, b) = (ours.hw[index], other.hw[index]);
                let name = self.cell(rra * self.definition.ds.len() + ds, rra) + " hw";
                check(name, a == b, show_hw(&a.words), show_hw(&b.words));
            }
        }
        for (a, b) in self.live.seasons.iter().zip(&theirs.rrd.live.seasons) {
            check(
                format!("season {}", a.rra),
                same(&a.values, &b.values) && a.current_row == b.current_row,
                format!("{} {:?}", a.current_row, a.values),
                format!("{} {:?}", b.current_row, b.values),
            );
        }
        for rra in 0..self.definition.rra.len() {
            let (a, b) = (&self.rings.archives[rra], &theirs.rrd.archives[rra]);
            check(format!("rows of archive {rra}"), same(a, b), format!("{a:?}"), format!("{b:?}"));
            if !matches!(self.definition.rra[rra].cf, Consolidation::Seasonal { .. }) {
                let (a, b) = (self.rings.current_rows[rra], theirs.current_rows[rra]);
                check(format!("position of archive {rra}"), a == b, a.to_string(), b.to_string());
            }
        }
        if found.is_empty() { Ok(()) } else { Err(found.join("\n  ")) }
    }

    fn cell(&self, index: usize, rra: usize) -> String {
        let ds = index % self.definition.ds.len();
        format!("archive {rra} ({}), ds {ds}", self.definition.rra[rra].cf.cf().name())
    }
}

/// The Holt-Winters words and the seasons of a file as text.
pub fn show(parts: &FileParts) -> String {
    let shape = parts.rrd.shape();
    let head = shape.split(&parts.rrd.live.words);
    let mut text: String = head.hw.iter().map(|hw| format!("    {}\n", show_hw(&hw.words))).collect();
    for season in &parts.rrd.live.seasons {
        text += &format!("    season {} at {}: {:?}\n", season.rra, season.current_row, season.values);
    }
    text
}

fn bytes<T: bytemuck::Pod>(value: &T) -> &[u8] {
    bytemuck::bytes_of(value)
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// Shows the bits, which tell NaNs apart.
fn show_cell(cell: &CdpPrep) -> String {
    let bits = [cell.value, cell.primary, cell.secondary].map(f64::to_bits);
    format!("{cell:?} {bits:x?}")
}

fn show_hw(words: &[u64; 6]) -> String {
    words.map(|word| format!("{word:x}={:?}", f64::from_bits(word))).join(" ")
}
