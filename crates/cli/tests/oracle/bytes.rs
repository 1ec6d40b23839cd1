//! `.rrd` files compared byte for byte, without what Debian's rrdtool draws at random or takes from memory that it has
//! not set.

use std::ops::Range;

/// Bytes of the head, of a data source, of an archive, of the open point of a source, of an open row.
const HEAD: usize = 128;
const DEFINITION: usize = 120;
const POINT: usize = 112;
const ROW: usize = 80;
/// The operation that ends the expression of a COMPUTE source.
const END: u8 = 32;

/// Where the parts of a `.rrd` file are, as ranges of bytes.
#[derive(PartialEq, Eq)]
pub struct Layout {
    pub sources: usize,
    pub archives: usize,
    /// The rows of each archive.
    rows: Vec<usize>,
}

impl Layout {
    /// The layout that a file's head tells. `None` if it is no `.rrd` file, or ends early.
    pub fn of(file: &[u8]) -> Option<Layout> {
        if !file.starts_with(b"RRD\0") {
            return None;
        }
        let [sources, archives] = [number(file, 24)?, number(file, 32)?];
        if file.len() < sources.checked_add(archives)?.checked_mul(DEFINITION)? {
            return None;
        }
        let mut layout = Layout { sources, archives, rows: Vec::new() };
        for archive in 0..archives {
            layout.rows.push(number(file, layout.archive(archive).start + 24)?);
        }
        let values = layout.rows.iter().try_fold(0usize, |sum, rows| sum.checked_add(*rows))?;
        let end = values.checked_mul(sources)?.checked_mul(8)?.checked_add(layout.newest(archives))?;
        (file.len() >= end).then_some(layout)
    }

    /// The definition of a source.
    pub fn source(&self, source: usize) -> Range<usize> {
        let at = HEAD + source * DEFINITION;
        at..at + DEFINITION
    }

    /// The definition of an archive.
    pub fn archive(&self, archive: usize) -> Range<usize> {
        let at = HEAD + (self.sources + archive) * DEFINITION;
        at..at + DEFINITION
    }

    /// The open point of a source.
    fn point(&self, source: usize) -> Range<usize> {
        let at = HEAD + (self.sources + self.archives) * DEFINITION + 16 + source * POINT;
        at..at + POINT
    }

    /// The open points of all sources.
    pub fn points(&self) -> Range<usize> {
        self.point(0).start..self.point(self.sources).start
    }

    /// The part of one source in the open row of an archive.
    fn open_row(&self, archive: usize, source: usize) -> Range<usize> {
        let at = self.point(self.sources).start + (archive * self.sources + source) * ROW;
        at..at + ROW
    }

    /// All open rows.
    pub fn open_rows(&self) -> Range<usize> {
        self.open_row(0, 0).start..self.open_row(self.archives, 0).start
    }

    /// Where the position of an archive's newest row is.
    fn newest(&self, archive: usize) -> usize {
        self.open_row(self.archives, 0).start + archive * 8
    }

    /// The rows of all archives.
    pub fn rings(&self) -> Range<usize> {
        self.ring(0).start..self.ring(self.archives).start
    }

    /// The rows of an archive.
    pub fn ring(&self, archive: usize) -> Range<usize> {
        let rows = |archives: usize| self.rows.iter().take(archives).sum::<usize>();
        let begin = self.newest(self.archives);
        let [start, end] = [archive, archive + 1].map(|at| begin + rows(at) * self.sources * 8);
        start..end
    }

    /// The values of a source in all rows, each a range of its own.
    pub fn column(&self, source: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let rows: usize = self.rows.iter().sum();
        (0..rows).map(move |row| {
            let at = self.rings().start + (row * self.sources + source) * 8;
            at..at + 8
        })
    }
}

fn number(file: &[u8], at: usize) -> Option<usize> {
    let bytes = file.get(at..at + 8)?.try_into().ok()?;
    usize::try_from(u64::from_le_bytes(bytes)).ok()
}

/// The bytes of a file with all rings turned so that they begin at their oldest row; other bytes as they are.
/// `None` if it is no `.rrd` file.
pub fn canonical(file: &[u8]) -> Option<Vec<u8>> {
    let layout = Layout::of(file)?;
    let mut bytes = file.to_vec();
    for source in 0..layout.sources {
        let definition = layout.source(source);
        end_text(&mut bytes, definition.start..definition.start + 20)?;
        end_text(&mut bytes, definition.start + 20..definition.start + 40)?;
        let parameters = bytes.get_mut(definition.start + 40..definition.end)?;
        if file.get(definition.start + 20..)?.starts_with(b"COMPUTE") {
            // Four bytes per operation, up to the one that ends the expression.
            let end = parameters.chunks(4).position(|operation| operation[0] == END);
            parameters[(end.map_or(20, |end| end + 1) * 4).min(80)..].fill(0);
        } else {
            // Heartbeat, minimum and maximum.
            parameters[24..].fill(0);
        }
        let point = layout.point(source);
        end_text(&mut bytes, point.start..point.start + 30)?;
        bytes.get_mut(point.start + 30..point.start + 32)?.fill(0);
        // Seconds unknown, value.
        bytes.get_mut(point.start + 48..point.end)?.fill(0);
    }
    for archive in 0..layout.archives {
        let definition = layout.archive(archive).start;
        end_text(&mut bytes, definition..definition + 20)?;
        if bytes.get(definition..)?.starts_with(b"SEASONAL")
            || bytes[definition..].starts_with(b"DEVSEASONAL")
        {
            // The row where seasons are smoothed.
            bytes.get_mut(definition + 40 + 32..definition + 40 + 40)?.fill(0);
            // How often the seasons have begun again, from a first row that Debian's rrdtool chooses at random.
            for source in 0..layout.sources {
                let open = layout.open_row(archive, source).start;
                bytes.get_mut(open + 48..open + 56)?.fill(0);
            }
        }
        let newest = layout.newest(archive);
        let oldest = (number(file, newest)? + 1).checked_rem(layout.rows[archive])? * layout.sources * 8;
        bytes.get_mut(newest..newest + 8)?.fill(0);
        bytes.get_mut(layout.ring(archive))?.rotate_left(oldest);
    }
    Some(bytes)
}

/// What the head of a file says.
pub struct Head {
    pub version: String,
    pub step: usize,
    /// The rows of each archive.
    pub rows: Vec<usize>,
    /// The names of the sources.
    pub sources: Vec<String>,
    /// Which of them are COMPUTE sources.
    pub computed: Vec<usize>,
}

/// The head of a file. `None` if it is no `.rrd` file.
pub fn head(file: &[u8]) -> Option<Head> {
    canonical(file)?;
    let layout = Layout::of(file)?;
    let text = |at: usize| {
        let bytes = file[at..].iter().take_while(|byte| **byte != 0).copied().collect();
        String::from_utf8(bytes).unwrap_or_default()
    };
    let sources = || (0..layout.sources).map(|source| layout.source(source).start);
    let computed = (0..layout.sources).filter(|source| text(layout.source(*source).start + 20) == "COMPUTE");
    Some(Head {
        version: text(4),
        step: number(file, 40)?,
        rows: layout.rows.clone(),
        sources: sources().map(text).collect(),
        computed: computed.collect(),
    })
}

/// Clears what follows the end of a text: stray bytes.
fn end_text(bytes: &mut [u8], range: Range<usize>) -> Option<()> {
    let text = bytes.get_mut(range)?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    text[end..].fill(0);
    Some(())
}
