//! An RRD to XML, byte for byte as RRDtool writes it.

use std::io::{self, Write};

use super::{FINE_SUFFIX, UNITS_TAG};
use crate::content::Rrd;
use crate::definition::{Consolidation, Definition, Ds, DsKind, Rra};
use crate::grid;
use crate::info::failure_flags;
use crate::live::{CdpPrep, Head, HeadShape, HwPrep, Live};
use crate::portable::dump::{push_parameter, push_value};
use crate::portable::push_whole;
use crate::rpn;

/// Bytes collected before they go to the sink: half of what a pipe holds, so that its reader can work while the
/// next ones are made.
const BUFFER_BYTES: usize = 32 << 10;

/// What precedes the dump (`rrddump(1)`, `--header`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// Nothing.
    None,
    /// An XML declaration and a document type.
    #[default]
    Dtd,
    /// An XML declaration and a schema.
    Xsd,
}

impl Header {
    /// The argument of `--header`; RRDtool takes anything unknown for `dtd`.
    pub fn from_arg(arg: &str) -> Header {
        match arg {
            "none" => Header::None,
            "xsd" => Header::Xsd,
            _ => Header::Dtd,
        }
    }
}

/// Appends the text of a time in seconds since the epoch, which RRDtool prints as `%Y-%m-%d %H:%M:%S %Z` in
/// local time.
pub type TimeText<'a> = dyn FnMut(i64, &mut Vec<u8>) + 'a;

/// Values that are written before the buffer is looked at again.
const CHUNK_VALUES: usize = 64;

/// Writes the dump of `rrd`, its times by `time_text`.
///
/// # Errors
/// The sink's.
pub fn dump(rrd: &Rrd, header: Header, time_text: &mut TimeText<'_>, sink: &mut dyn Write) -> io::Result<()> {
    let mut out = Vec::with_capacity(BUFFER_BYTES + 8192);
    let mut writer = Dumper::new(&rrd.definition, &rrd.live, time_text, &mut out);
    writer.begin(header);
    let width = rrd.definition.ds.len().max(1);
    for (index, rra) in rrd.definition.rra.iter().enumerate() {
        writer.begin_archive(index);
        // A season is a ring; its rows are dumped oldest first, like all others.
        let (newer, older) = match rrd.live.seasons.iter().find(|season| season.rra == index) {
            Some(season) => {
                let oldest = (season.current_row + 1) % rra.row_count;
                season.values.split_at(oldest as usize * width)
            }
            None => (&[][..], &*rrd.archives[index]),
        };
        let mut row = writer.oldest_row(index);
        for rows in [older, newer] {
            for rows in rows.chunks((CHUNK_VALUES / width).max(1) * width) {
                writer.rows(index, row, rows);
                row += (rows.len() / width) as i64;
                if writer.out.len() >= BUFFER_BYTES {
                    sink.write_all(writer.out)?;
                    writer.out.clear();
                }
            }
        }
        writer.end_archive();
    }
    writer.end();
    sink.write_all(&out)
}

/// Appends a dump part by part, for a caller that does not have all rows at once: [`Dumper::begin`], for each archive
/// [`Dumper::begin_archive`], its rows and [`Dumper::end_archive`], then [`Dumper::end`].
pub struct Dumper<'a> {
    definition: &'a Definition,
    shape: HeadShape,
    head: Head<'a>,
    out: &'a mut Vec<u8>,
    time_text: &'a mut TimeText<'a>,
}

impl<'a> Dumper<'a> {
    /// A writer of the dump of this RRD, its times by `time_text`, to `out`.
    pub fn new<'t: 'a>(
        definition: &'a Definition,
        live: &'a Live,
        time_text: &'a mut TimeText<'t>,
        out: &'a mut Vec<u8>,
    ) -> Self {
        let shape = HeadShape::of(definition);
        let head = shape.split(&live.words);
        Dumper { definition, head, shape, out, time_text }
    }

    /// Appends what precedes the archives.
    pub fn begin(&mut self, header: Header) {
        self.top(header);
        for (index, ds) in self.definition.ds.iter().enumerate() {
            self.source(ds, index);
        }
        self.line("\t<!-- Round Robin Archives -->");
    }

    /// Appends what precedes the rows of an archive.
    pub fn begin_archive(&mut self, index: usize) {
        self.archive(index, &self.definition.rra[index]);
    }

    /// The number of the oldest row of an archive.
    pub fn oldest_row(&self, index: usize) -> i64 {
        let newest = self.definition.newest_row(index, self.head.last_update.whole);
        newest - (self.definition.rra[index].row_count as i64 - 1)
    }

    /// Appends consecutive rows of an archive, row-major, of which the first has this number.
    pub fn rows(&mut self, index: usize, first: i64, values: &[f64]) {
        let span = self.definition.rra[index].span(self.definition.step);
        let suffix = self.unit_suffix();
        for (row, values) in (first..).zip(values.chunks_exact(self.definition.ds.len().max(1))) {
            let time = grid::row_time(row, span);
            self.out.extend_from_slice(b"\t\t\t<!-- ");
            self.time(time);
            self.out.extend_from_slice(b" / ");
            push_whole(self.out, time);
            if !suffix.is_empty() {
                self.out.extend_from_slice(suffix.as_bytes());
            }
            self.out.extend_from_slice(b" --> <row>");
            for &value in values {
                self.out.extend_from_slice(b"<v>");
                push_value(self.out, value);
                self.out.extend_from_slice(b"</v>");
            }
            self.out.extend_from_slice(b"</row>\n");
        }
    }

    /// Appends what follows the rows of an archive.
    pub fn end_archive(&mut self) {
        self.line("\t\t</database>\n\t</rra>");
    }

    /// Appends the end.
    pub fn end(&mut self) {
        self.line("</rrd>");
    }

    fn line(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(b'\n');
    }

    /// `<name>value</name>` after `indent`, and a line end.
    fn tag(&mut self, indent: &str, name: &str, value: &[u8]) {
        for part in [indent.as_bytes(), b"<", name.as_bytes(), b">", value, b"</", name.as_bytes(), b">\n"] {
            self.out.extend_from_slice(part);
        }
    }

    fn value(&mut self, indent: &str, name: &str, value: f64) {
        let mut text = Vec::with_capacity(24);
        push_value(&mut text, value);
        self.tag(indent, name, &text);
    }

    /// A parameter. Here alone, NaN is printed as C prints it.
    fn parameter(&mut self, name: &str, value: f64) {
        let mut text = Vec::with_capacity(24);
        push_parameter(&mut text, value);
        self.tag("\t\t", name, &text);
    }

    fn count(&mut self, indent: &str, name: &str, count: u64) {
        self.tag(indent, name, count.to_string().as_bytes());
    }

    fn unit_suffix(&self) -> &'static str {
        if self.definition.units_per_second == 1 { "" } else { FINE_SUFFIX }
    }

    fn unit_name(&self) -> &'static str {
        if self.definition.units_per_second == 1 { "Seconds" } else { "Milliseconds" }
    }

    /// The text of a time in units.
    fn time(&mut self, units: i64) {
        let unit = i64::from(self.definition.units_per_second.max(1));
        (self.time_text)(if unit == 1 { units } else { units.div_euclid(unit) }, self.out);
    }

    fn top(&mut self, header: Header) {
        if header != Header::None {
            self.line("<?xml version=\"1.0\" encoding=\"utf-8\"?>");
        }
        if header == Header::Dtd {
            self.line("<!DOCTYPE rrd SYSTEM \"https://oss.oetiker.ch/rrdtool/rrdtool.dtd\">");
        }
        self.line("<!-- Round Robin Database Dump -->");
        self.line(if header == Header::Xsd {
            "<rrd xmlns=\"https://oss.oetiker.ch/rrdtool/rrdtool-dump.xml\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n\
             \txsi:schemaLocation=\"https://oss.oetiker.ch/rrdtool/rrdtool-dump.xml \
             https://oss.oetiker.ch/rrdtool/rrdtool-dump.xsd\">"
        } else {
            "<rrd>"
        });
        let definition = self.definition;
        let (suffix, seconds) = (self.unit_suffix(), self.unit_name());
        // Compat: older versions are dumped as version 3.
        self.tag("\t", "version", format!("{:04}", definition.version.max(3)).as_bytes());
        if definition.units_per_second != 1 {
            self.tag("\t", UNITS_TAG, definition.units_per_second.to_string().as_bytes());
        }
        self.line(&format!("\t<step>{}{suffix}</step> <!-- {seconds} -->", definition.step));
        let last_update = self.head.last_update.whole;
        self.out
            .extend_from_slice(format!("\t<lastupdate>{last_update}{suffix}</lastupdate> <!-- ").as_bytes());
        self.time(last_update);
        self.line(" -->\n");
    }

    fn source(&mut self, ds: &Ds, index: usize) {
        let suffix = self.unit_suffix();
        self.line("\t<ds>");
        self.line(&format!("\t\t<name> {} </name>\n\t\t<type> {} </type>", ds.name, ds.kind.name()));
        match &ds.kind {
            DsKind::Fed { heartbeat, min, max, .. } => {
                self.tag("\t\t", "minimal_heartbeat", format!("{heartbeat}{suffix}").as_bytes());
                self.value("\t\t", "min", *min);
                self.value("\t\t", "max", *max);
            }
            DsKind::Compute(program) => {
                let sources = &self.definition.ds;
                let text = rpn::decompile(program, |index| sources.get(index).map(|ds| ds.name.as_str()));
                self.line(&format!("\t\t<cdef> {text} </cdef>"));
            }
        }
        self.line("\n\t\t<!-- PDP Status -->");
        let pdp = &self.head.pdp[index];
        self.tag("\t\t", "last_ds", pdp.last_ds.as_bytes());
        self.value("\t\t", "value", pdp.value);
        self.line(&format!("\t\t<unknown_sec> {}{suffix} </unknown_sec>\n\t</ds>\n", pdp.unknown_units));
    }

    fn archive(&mut self, index: usize, rra: &Rra) {
        let head = self.head;
        self.line("\t<rra>");
        self.tag("\t\t", "cf", rra.cf.cf().name().as_bytes());
        let (units, seconds) = (rra.span(self.definition.step), self.unit_name().to_ascii_lowercase());
        let per_row = rra.pdp_per_row;
        self.line(&format!("\t\t<pdp_per_row>{per_row}</pdp_per_row> <!-- {units} {seconds} -->\n"));
        self.line("\t\t<params>");
        self.parameters(rra);
        self.line("\t\t</params>\n\t\t<cdp_prep>");
        let ds_count = self.definition.ds.len();
        for ds in 0..ds_count {
            let hw =
                self.shape.hw_index(index).map_or(HwPrep { words: [0; 6] }, |hw| head.hw[hw * ds_count + ds]);
            self.prepared(rra, &head.cdp[index * ds_count + ds], hw);
        }
        self.line("\t\t</cdp_prep>\n\t\t<database>");
    }

    fn parameters(&mut self, rra: &Rra) {
        let mate = |writer: &mut Self, index: usize| writer.count("\t\t", "dependent_rra_idx", index as u64);
        match rra.cf {
            Consolidation::Plain { xff, .. } => self.parameter("xff", xff),
            Consolidation::Predict { alpha, beta, seasonal, .. } => {
                self.parameter("hw_alpha", alpha);
                self.parameter("hw_beta", beta);
                mate(self, seasonal);
            }
            Consolidation::Seasonal { gamma, smoothing_window, predict, smooth_index, .. } => {
                self.parameter("seasonal_gamma", gamma);
                self.count("\t\t", "seasonal_smooth_idx", smooth_index);
                if self.definition.version >= crate::definition::VERSION_SMOOTHING_WINDOW {
                    self.parameter("smoothing_window", smoothing_window);
                }
                mate(self, predict);
            }
            Consolidation::DevPredict { devseasonal } => mate(self, devseasonal),
            Consolidation::Failures { delta_pos, delta_neg, devseasonal, window_length, threshold } => {
                self.parameter("delta_pos", delta_pos);
                self.parameter("delta_neg", delta_neg);
                self.count("\t\t", "window_len", window_length);
                self.count("\t\t", "failure_threshold", threshold);
                mate(self, devseasonal);
            }
        }
    }

    fn prepared(&mut self, rra: &Rra, cell: &CdpPrep, hw: HwPrep) {
        const INDENT: &str = "\t\t\t";
        self.line("\t\t\t<ds>");
        self.value(INDENT, "primary_value", cell.primary);
        self.value(INDENT, "secondary_value", cell.secondary);
        let number = |index: usize| f64::from_bits(hw.words[index]);
        match rra.cf {
            Consolidation::Plain { .. } => {
                self.value(INDENT, "value", cell.value);
                self.count(INDENT, "unknown_datapoints", cell.unknown_pdps);
            }
            Consolidation::Predict { .. } => {
                for (index, name) in
                    ["intercept", "last_intercept", "slope", "last_slope"].into_iter().enumerate()
                {
                    self.value(INDENT, name, number(index));
                }
                self.count(INDENT, "nan_count", hw.words[4]);
                self.count(INDENT, "last_nan_count", hw.words[5]);
            }
            Consolidation::Seasonal { .. } => {
                self.value(INDENT, "seasonal", number(0));
                self.value(INDENT, "last_seasonal", number(1));
                self.count(INDENT, "init_flag", hw.words[4]);
            }
            Consolidation::DevPredict { .. } => {}
            Consolidation::Failures { window_length, .. } => {
                let flags = failure_flags(cell, hw);
                let length = usize::try_from(window_length).map_or(flags.len(), |n| n.min(flags.len()));
                let history: String = flags[..length].iter().map(u8::to_string).collect();
                self.tag(INDENT, "history", history.as_bytes());
            }
        }
        self.line("\t\t\t</ds>");
    }
}
