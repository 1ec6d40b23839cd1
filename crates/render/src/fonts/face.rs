//! An open font: its characters and their metrics.

use std::sync::OnceLock;

use graph::picture::text::FontFile;
use harfrust::ShaperData;
use skrifa::instance::{LocationRef, Size};
use skrifa::metrics::Metrics;
use skrifa::raw::TableProvider;
use skrifa::{FontRef, MetadataProvider};

/// The printable characters of ASCII.
const ASCII: std::ops::RangeInclusive<u8> = 0x20..=0x7e;

/// An open font.
pub(super) struct Face {
    pub(super) file: FontFile,
    /// Its weight.
    pub(super) weight: u16,
    /// Whether it is italic or oblique.
    pub(super) italic: bool,
    /// Whether shaping does not change ASCII, so that a table is enough.
    plain_ascii: bool,
    /// Glyph and advance (font units) of each of [`ASCII`].
    ascii: OnceLock<Vec<(u32, u16)>>,
    metrics: OnceLock<Metrics>,
    shaper: OnceLock<ShaperData>,
}

/// Heights in pixels.
#[derive(Clone, Copy)]
pub(super) struct Extents {
    /// Above the baseline.
    pub(super) ascent: f64,
    /// Below the baseline.
    pub(super) descent: f64,
}

impl Face {
    /// None if the file does not contain the font.
    pub(super) fn open(file: FontFile, plain_ascii: bool) -> Option<Face> {
        let font = FontRef::from_index((*file.bytes).as_ref(), file.index).ok()?;
        let attributes = font.attributes();
        let weight = attributes.weight.value().clamp(1.0, 1000.0) as u16;
        let italic = attributes.style != skrifa::attribute::Style::Normal;
        Some(Face {
            file,
            weight,
            italic,
            plain_ascii,
            ascii: OnceLock::new(),
            metrics: OnceLock::new(),
            shaper: OnceLock::new(),
        })
    }

    /// The font in its file.
    pub(super) fn font(&self) -> FontRef<'_> {
        let bytes = (*self.file.bytes).as_ref();
        FontRef::from_index(bytes, self.file.index).expect("it was opened before")
    }

    /// The shaper's data for the font.
    pub(super) fn shaper(&self) -> &ShaperData {
        self.shaper.get_or_init(|| ShaperData::new(&self.font()))
    }

    /// Whether it has a glyph for `character`.
    pub(super) fn has(&self, character: char) -> bool {
        self.font().charmap().map(character).is_some()
    }

    /// In font units.
    pub(super) fn metrics(&self) -> &Metrics {
        self.metrics.get_or_init(|| self.font().metrics(Size::unscaled(), LocationRef::default()))
    }

    /// Pixels for a font unit at `size` pixels an em.
    pub(super) fn scale(&self, size: f64) -> f64 {
        size / f64::from(self.metrics().units_per_em.max(1))
    }

    /// Compat: RRDtool's Pango uses hinted heights in every render mode and image format: both are whole pixels.
    pub(super) fn extents(&self, size: f64) -> Extents {
        let (metrics, scale) = (self.metrics(), self.scale(size));
        // FreeType's fixed point: 64ths of a pixel, rounded to the nearest, then up.
        let whole = |units: f32| ((f64::from(units) * scale * 64.0).round() / 64.0).ceil();
        Extents { ascent: whole(metrics.ascent), descent: whole(-metrics.descent) }
    }

    /// Size of superscript or subscript and how far it moves up, in thousandths of an em.
    pub(super) fn raised(&self, up: bool) -> Option<(f64, f64)> {
        let font = self.font();
        let table = font.os2().ok()?;
        let em = f64::from(self.metrics().units_per_em.max(1));
        let (size, by) = if up {
            (table.y_superscript_y_size(), table.y_superscript_y_offset())
        } else {
            (table.y_subscript_y_size(), -table.y_subscript_y_offset())
        };
        Some((f64::from(size) / em, f64::from(by) / em))
    }

    /// (glyph, advance in font units) of printable ASCII, if shaping does not change it.
    pub(super) fn ascii(&self) -> Option<&[(u32, u16)]> {
        self.plain_ascii.then(|| self.ascii.get_or_init(|| self.read_ascii()).as_slice())
    }

    fn read_ascii(&self) -> Vec<(u32, u16)> {
        let font = self.font();
        let charmap = font.charmap();
        let widths = font.glyph_metrics(Size::unscaled(), LocationRef::default());
        ASCII
            .map(|byte| {
                let glyph = charmap.map(char::from(byte)).unwrap_or_default();
                (glyph.to_u32(), widths.advance_width(glyph).unwrap_or(0.0) as u16)
            })
            .collect()
    }
}

/// Whether `text` is only printable ASCII.
pub(super) fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|byte| ASCII.contains(byte))
}
