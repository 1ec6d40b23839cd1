//! What `rrdinfo(1)` says about an RRD: its items in RRDtool's order, and their two spellings.
//!
//! Owns the keys, their order and their types. For an RRD with a step below one second, times that RRDtool
//! gives as whole seconds are numbers with decimals.

use crate::codec::file::FileLayout;
use crate::definition::{Consolidation, Definition, Ds, DsKind, Rra, VERSION_SMOOTHING_WINDOW};
use crate::format::push_tool;
use crate::live::{CdpPrep, Head, HeadShape, HwPrep, Live};
use crate::rpn;
use crate::time::Moment;

/// Bytes of violation flags before a FAILURES archive's last two words.
const HISTORY_BYTES: usize = 28;

/// One line of `info`.
#[derive(Clone, Debug, PartialEq)]
pub struct InfoItem {
    /// The key as RRDtool spells it: `step`, `ds[a].type`, `rra[0].cdp_prep[1].value`.
    pub key: String,
    /// Its value.
    pub value: Value,
}

/// The value of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A double (`RD_I_VAL`).
    Number(f64),
    /// A count (`RD_I_CNT`).
    Count(u64),
    /// A time of an RRD with a step below a second (`RD_I_VAL`): seconds with three decimals.
    Moment(Moment),
    /// A text (`RD_I_STR`); readings may be any bytes.
    Text(Vec<u8>),
}

impl Value {
    /// RRDtool's number for the type, which the daemon's INFO shows.
    fn type_number(&self) -> u8 {
        match self {
            Value::Number(_) | Value::Moment(_) => 0,
            Value::Count(_) => 1,
            Value::Text(_) => 2,
        }
    }

    /// Appends the value as text, without quotes.
    pub fn push(&self, out: &mut Vec<u8>) {
        match self {
            Value::Number(value) => push_tool(out, *value),
            Value::Count(count) => out.extend_from_slice(count.to_string().as_bytes()),
            Value::Moment(moment) => out.extend_from_slice(moment.to_string().as_bytes()),
            Value::Text(text) => out.extend_from_slice(text),
        }
    }
}

/// Appends the lines of `rrdtool info`: `key = value`, strings in quotes.
pub fn push_text(out: &mut Vec<u8>, items: &[InfoItem]) {
    for item in items {
        let quote: &[u8] = if matches!(item.value, Value::Text(_)) { b"\"" } else { b"" };
        out.extend_from_slice(item.key.as_bytes());
        out.extend_from_slice(b" = ");
        out.extend_from_slice(quote);
        item.value.push(out);
        out.extend_from_slice(quote);
        out.push(b'\n');
    }
}

/// Appends the lines of the daemon's INFO: `key type value`.
pub fn push_wire(out: &mut Vec<u8>, items: &[InfoItem]) {
    for item in items {
        out.extend_from_slice(item.key.as_bytes());
        out.extend_from_slice(&[b' ', b'0' + item.value.type_number(), b' ']);
        item.value.push(out);
        out.push(b'\n');
    }
}

/// Appends what `rrdtool lastupdate` prints: the names, an empty line, the time and the last readings.
pub fn push_last_update(out: &mut Vec<u8>, definition: &Definition, live: &Live) {
    let shape = HeadShape::of(definition);
    let head = shape.split(&live.words);
    for ds in &definition.ds {
        out.push(b' ');
        out.extend_from_slice(ds.name.as_bytes());
    }
    let last_update = definition.moment(head.last_update.whole);
    out.extend_from_slice(format!("\n\n{last_update}:").as_bytes());
    for pdp in head.pdp {
        out.push(b' ');
        out.extend_from_slice(pdp.last_ds.as_bytes());
    }
    out.push(b'\n');
}

/// The items of an RRD. `live` must belong to `definition`; `current_rows` has the ring position of each
/// archive's newest row (a season uses its own); `file_name` is shown unchanged.
pub fn info(definition: &Definition, live: &Live, current_rows: &[u64], file_name: &[u8]) -> Vec<InfoItem> {
    let shape = HeadShape::of(definition);
    let head = shape.split(&live.words);
    let mut items = Items { items: Vec::new(), units_per_second: definition.units_per_second };
    items.text("filename".to_string(), file_name);
    items.text("rrd_version".to_string(), format!("{:04}", definition.version).as_bytes());
    items.time("step".to_string(), definition.step);
    let value = match definition.moment(head.last_update.whole) {
        Moment { units, units_per_second: 1 } => Value::Count(units as u64),
        moment => Value::Moment(moment),
    };
    items.items.push(InfoItem { key: "last_update".to_string(), value });
    items.count("header_size".to_string(), FileLayout::of(definition).header_bytes as u64);
    for (index, ds) in definition.ds.iter().enumerate() {
        source(&mut items, definition, head, index, ds);
    }
    for (index, rra) in definition.rra.iter().enumerate() {
        let season = live.seasons.iter().find(|season| season.rra == index);
        let current_row = season.map(|season| season.current_row).or(current_rows.get(index).copied());
        archive(&mut items, definition.version, index, rra, current_row.unwrap_or(0));
        let ds_count = definition.ds.len();
        for ds in 0..ds_count {
            let hw = shape.hw_index(index).map(|hw| head.hw[hw * ds_count + ds]);
            let key = format!("rra[{index}].cdp_prep[{ds}]");
            prepared(&mut items, &key, rra, &head.cdp[index * ds_count + ds], hw);
        }
    }
    items.items
}

fn source(items: &mut Items, definition: &Definition, head: Head<'_>, index: usize, ds: &Ds) {
    let key = |name: &str| format!("ds[{}].{name}", ds.name);
    items.count(key("index"), index as u64);
    items.text(key("type"), ds.kind.name().as_bytes());
    match &ds.kind {
        DsKind::Fed { heartbeat, min, max, .. } => {
            items.time(key("minimal_heartbeat"), *heartbeat);
            items.number(key("min"), *min);
            items.number(key("max"), *max);
        }
        DsKind::Compute(program) => {
            let name_of = |index: usize| definition.ds.get(index).map(|ds| ds.name.as_str());
            items.text(key("cdef"), rpn::decompile(program, name_of).as_bytes());
        }
    }
    let pdp = &head.pdp[index];
    items.text(key("last_ds"), pdp.last_ds.as_bytes());
    items.number(key("value"), pdp.value / f64::from(definition.units_per_second));
    items.time(key("unknown_sec"), pdp.unknown_units);
}

fn archive(items: &mut Items, version: u8, index: usize, rra: &Rra, current_row: u64) {
    let key = |name: &str| format!("rra[{index}].{name}");
    items.text(key("cf"), rra.cf.cf().name().as_bytes());
    items.count(key("rows"), rra.row_count);
    items.count(key("cur_row"), current_row);
    items.count(key("pdp_per_row"), rra.pdp_per_row);
    match rra.cf {
        Consolidation::Plain { xff, .. } => items.number(key("xff"), xff),
        Consolidation::Predict { alpha, beta, .. } => {
            items.number(key("alpha"), alpha);
            items.number(key("beta"), beta);
        }
        Consolidation::Seasonal { gamma, smoothing_window, .. } => {
            items.number(key("gamma"), gamma);
            if version >= VERSION_SMOOTHING_WINDOW {
                items.number(key("smoothing_window"), smoothing_window);
            }
        }
        Consolidation::DevPredict { .. } => {}
        Consolidation::Failures { delta_pos, delta_neg, window_length, threshold, .. } => {
            items.number(key("delta_pos"), delta_pos);
            items.number(key("delta_neg"), delta_neg);
            items.count(key("failure_threshold"), threshold);
            items.count(key("window_length"), window_length);
        }
    }
}

fn prepared(items: &mut Items, key: &str, rra: &Rra, cell: &CdpPrep, hw: Option<HwPrep>) {
    let key = |name: &str| format!("{key}.{name}");
    let word = |index: usize| hw.map_or(0, |hw| hw.words[index]);
    match rra.cf {
        Consolidation::Plain { .. } => {
            items.number(key("value"), cell.value);
            items.count(key("unknown_datapoints"), cell.unknown_pdps);
        }
        Consolidation::Predict { .. } => {
            items.number(key("intercept"), f64::from_bits(word(0)));
            items.number(key("slope"), f64::from_bits(word(2)));
            items.count(key("NaN_count"), word(4));
        }
        Consolidation::Seasonal { deviation, .. } => {
            let name = if deviation { "deviation" } else { "seasonal" };
            items.number(key(name), f64::from_bits(word(0)));
        }
        Consolidation::DevPredict { .. } => {}
        Consolidation::Failures { window_length, .. } => {
            let mut flags = failure_flags(cell, hw.unwrap_or(HwPrep { words: [0; 6] }));
            for flag in &mut flags {
                *flag = if *flag == 1 { b'1' } else { b'0' };
            }
            let length = usize::try_from(window_length).map_or(HISTORY_BYTES, |n| n.min(HISTORY_BYTES));
            items.text(key("history"), &flags[..length]);
        }
    }
}

/// The violation flags of a FAILURES archive, newest first: the first 28 bytes of its scratch.
pub fn failure_flags(cell: &CdpPrep, hw: HwPrep) -> [u8; HISTORY_BYTES] {
    let words = [cell.value.to_bits(), cell.unknown_pdps, hw.words[0], hw.words[1]];
    std::array::from_fn(|index| words[index / 8].to_le_bytes()[index % 8])
}

struct Items {
    items: Vec<InfoItem>,
    units_per_second: u32,
}

impl Items {
    fn number(&mut self, key: String, value: f64) {
        self.items.push(InfoItem { key, value: Value::Number(value) });
    }

    fn count(&mut self, key: String, count: u64) {
        self.items.push(InfoItem { key, value: Value::Count(count) });
    }

    fn text(&mut self, key: String, text: &[u8]) {
        self.items.push(InfoItem { key, value: Value::Text(text.to_vec()) });
    }

    /// A time in units, shown in seconds.
    fn time(&mut self, key: String, units: u64) {
        if self.units_per_second == 1 {
            self.count(key, units);
        } else {
            self.number(key, units as f64 / f64::from(self.units_per_second));
        }
    }
}
