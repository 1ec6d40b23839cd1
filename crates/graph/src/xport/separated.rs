//! The table of a graph as CSV, TSV or SSV.

use std::io::{self, Write};

use rrd::portable::push_whole;

use super::write::{values, xml_value};
use super::{Stamp, Table};

/// Bytes that are collected before they go to the sink.
const BUFFER_BYTES: usize = 32 << 10;

/// Writes the table. Compat: legends and values are in quotes, times are not; nothing is escaped.
pub(super) fn write(
    sink: &mut dyn Write,
    table: &Table<'_>,
    separator: u8,
    stamp: Option<Stamp<'_>>,
) -> io::Result<()> {
    let mut out = b"\"time\"".to_vec();
    for legend in &table.legends {
        out.extend_from_slice(&[separator, b'"']);
        out.extend_from_slice(legend);
        out.push(b'"');
    }
    out.extend_from_slice(b"\r\n");
    let mut cells = table.cells();
    for index in 0..table.rows() {
        match stamp {
            Some(stamp) => stamp.push(&mut out, table.time(index)),
            None => push_whole(&mut out, table.time(index)),
        }
        for value in values(&mut cells) {
            out.extend_from_slice(&[separator, b'"']);
            xml_value(&mut out, value);
            out.push(b'"');
        }
        out.extend_from_slice(b"\r\n");
        if out.len() >= BUFFER_BYTES {
            sink.write_all(&out)?;
            out.clear();
        }
    }
    sink.write_all(&out)
}
