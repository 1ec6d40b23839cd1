//! `.rrd` files compared byte for byte, without what Debian's rrdtool draws at random or takes from memory that it has
//! not set.

/// Bytes of the head, of a data source, of an archive, of the open point of a source, of an open row.
const HEAD: usize = 128;
const DEFINITION: usize = 120;
const POINT: usize = 112;
const ROW: usize = 80;
/// The operation that ends the expression of a COMPUTE source.
const END: u8 = 32;

/// The bytes of a file with all rings turned so that they begin at their oldest row; other bytes as they are.
/// `None` if it is no `.rrd` file.
pub fn canonical(file: &[u8]) -> Option<Vec<u8>> {
    let number = |at: usize| -> Option<usize> {
        let bytes = file.get(at..at + 8)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    if !file.starts_with(b"RRD\0") {
        return None;
    }
    let mut bytes = file.to_vec();
    let (sources, archives) = (number(24)?, number(32)?);
    let archives_at = HEAD + sources.checked_mul(DEFINITION)?;
    let points_at = archives_at + archives.checked_mul(DEFINITION)? + 16;
    let rows_at = points_at + sources * POINT;
    let rings_at = rows_at + archives * sources * ROW;
    let mut at = rings_at + archives * 8;
    for source in 0..sources {
        let definition = HEAD + source * DEFINITION;
        end_text(&mut bytes, definition..definition + 20)?;
        end_text(&mut bytes, definition + 20..definition + 40)?;
        let parameters = bytes.get_mut(definition + 40..definition + DEFINITION)?;
        if file.get(definition + 20..)?.starts_with(b"COMPUTE") {
            // Four bytes per operation, up to the one that ends the expression.
            let end = parameters.chunks(4).position(|operation| operation[0] == END);
            parameters[(end.map_or(20, |end| end + 1) * 4).min(80)..].fill(0);
        } else {
            // Heartbeat, minimum and maximum.
            parameters[24..].fill(0);
        }
        let point = points_at + source * POINT;
        end_text(&mut bytes, point..point + 30)?;
        bytes.get_mut(point + 30..point + 32)?.fill(0);
        // Seconds unknown, value.
        bytes.get_mut(point + 48..point + POINT)?.fill(0);
    }
    for archive in 0..archives {
        let definition = archives_at + archive * DEFINITION;
        end_text(&mut bytes, definition..definition + 20)?;
        if bytes.get(definition..)?.starts_with(b"SEASONAL")
            || bytes[definition..].starts_with(b"DEVSEASONAL")
        {
            // The row where seasons are smoothed.
            bytes.get_mut(definition + 40 + 32..definition + 40 + 40)?.fill(0);
        }
        let (rows, newest) = (number(definition + 24)?, number(rings_at + archive * 8)?);
        bytes.get_mut(rings_at + archive * 8..rings_at + archive * 8 + 8)?.fill(0);
        let ring = rows.checked_mul(sources)?.checked_mul(8)?;
        let oldest = (newest + 1).checked_rem(rows)? * sources * 8;
        bytes.get_mut(at..at.checked_add(ring)?)?.rotate_left(oldest);
        at += ring;
    }
    Some(bytes)
}

/// What the head of a file says.
pub struct Head {
    pub version: String,
    pub step: usize,
    pub archives: usize,
    /// The names of COMPUTE sources.
    pub computed: Vec<String>,
}

/// The head of a file. `None` if it is no `.rrd` file.
pub fn head(file: &[u8]) -> Option<Head> {
    canonical(file)?;
    let text = |at: usize| {
        let bytes = file[at..].iter().take_while(|byte| **byte != 0).copied().collect();
        String::from_utf8(bytes).unwrap_or_default()
    };
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().expect("8 bytes")) as usize;
    let sources = (0..number(24)).map(|source| HEAD + source * DEFINITION);
    let computed = sources.filter(|at| text(at + 20) == "COMPUTE").map(text).collect();
    Some(Head { version: text(4), step: number(40), archives: number(32), computed })
}

/// Clears what follows the end of a text: stray bytes.
fn end_text(bytes: &mut [u8], range: std::ops::Range<usize>) -> Option<()> {
    let text = bytes.get_mut(range)?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    text[end..].fill(0);
    Some(())
}
