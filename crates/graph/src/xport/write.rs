//! The bytes of an xport.

use std::io::Write;

use rrd::portable::push_whole;
use rrd::portable::xport::push_value;

use super::{Cells, Stamp, Table, Texts, XportError};

/// Bytes that are collected before they go to the sink: half of what a pipe holds, so that its reader works while the
/// next ones are made.
const BUFFER_BYTES: usize = 32 << 10;
/// Extra room for the last row, of some hundred columns.
const ROW_BYTES: usize = 8 << 10;

/// How `xport` writes its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XportOptions {
    /// JSON instead of XML.
    pub json: bool,
    /// Each row with its time.
    pub show_time: bool,
    /// Values in numbered tags (XML only).
    pub numbered: bool,
}

/// Writes the table; where a text cannot be printed, only what comes before the texts.
pub(super) fn write(
    sink: &mut dyn Write,
    table: &Table<'_>,
    options: XportOptions,
    stamp: Option<Stamp<'_>>,
    texts: Result<Texts, String>,
) -> Result<(), XportError> {
    let mut gathered = Vec::with_capacity(BUFFER_BYTES + ROW_BYTES);
    let out = &mut gathered;
    if options.json {
        json_head(out, table, stamp);
    } else {
        xml_head(out, table, stamp);
    }
    let texts = match texts {
        Ok(texts) => texts,
        Err(message) => {
            sink.write_all(out)?;
            return Err(XportError::Print(message));
        }
    };
    if options.json {
        json_texts(out, &texts);
        out.extend_from_slice(b"     },\n  \"data\": [\n");
    } else {
        xml_texts(out, &texts);
        out.extend_from_slice(b"  </meta>\n  <data>\n");
    }
    let (rows, mut cells) = (table.rows(), table.cells());
    for index in 0..rows {
        let time = options.show_time.then(|| (table.time(index), stamp));
        if options.json {
            json_row(out, &mut cells, time, index + 1 == rows);
        } else if options.numbered {
            numbered_row(out, &mut cells, time);
        } else {
            xml_row(out, &mut cells, time);
        }
        if out.len() >= BUFFER_BYTES {
            sink.write_all(out)?;
            out.clear();
        }
    }
    out.extend_from_slice(if options.json { &b"  ]\n}\n"[..] } else { b"  </data>\n</xport>\n" });
    sink.write_all(out)?;
    Ok(())
}

fn push(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    if out.write_fmt(arguments).is_err() {
        unreachable!("writing to a Vec does not fail");
    }
}

/// A row's time, where it is shown.
type Time<'a> = Option<(i64, Option<Stamp<'a>>)>;

fn push_time(out: &mut Vec<u8>, time: i64, stamp: Option<Stamp<'_>>) {
    match stamp {
        Some(stamp) => stamp.push(out, time),
        None => push_whole(out, time),
    }
}

fn xml_head(out: &mut Vec<u8>, table: &Table<'_>, stamp: Option<Stamp<'_>>) {
    out.extend_from_slice(
        b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n\n<xport>\n  <meta>\n    <start>",
    );
    push_time(out, table.time(0), stamp);
    out.extend_from_slice(b"</start>\n    <end>");
    push_time(out, table.end, stamp);
    push(
        out,
        format_args!(
            "</end>\n    <step>{}</step>\n    <rows>{}</rows>\n    <columns>{}</columns>\n    <legend>\n",
            table.step,
            table.rows(),
            table.legends.len(),
        ),
    );
    for legend in &table.legends {
        out.extend_from_slice(b"      <entry>");
        out.extend_from_slice(legend);
        out.extend_from_slice(b"</entry>\n");
    }
    out.extend_from_slice(b"    </legend>\n");
}

fn xml_texts(out: &mut Vec<u8>, texts: &Texts) {
    for (section, texts) in [("prints", &texts.prints), ("gprints", &texts.inside), ("rules", &texts.rules)] {
        if texts.is_empty() {
            continue;
        }
        push(out, format_args!("    <{section}>\n"));
        for (kind, text) in texts {
            push(out, format_args!("        <{kind}>"));
            out.extend_from_slice(text);
            push(out, format_args!("</{kind}>\n"));
        }
        push(out, format_args!("    </{section}>\n"));
    }
}

fn xml_row(out: &mut Vec<u8>, cells: &mut [Cells<'_>], time: Time<'_>) {
    begin_row(out, time);
    for value in values(cells) {
        out.extend_from_slice(b"<v>");
        xml_value(out, value);
        out.extend_from_slice(b"</v>");
    }
    out.extend_from_slice(b"</row>\n");
}

fn numbered_row(out: &mut Vec<u8>, cells: &mut [Cells<'_>], time: Time<'_>) {
    begin_row(out, time);
    for (column, value) in values(cells).enumerate() {
        push(out, format_args!("<v{column}>"));
        xml_value(out, value);
        push(out, format_args!("</v{column}>"));
    }
    out.extend_from_slice(b"</row>\n");
}

fn begin_row(out: &mut Vec<u8>, time: Time<'_>) {
    out.extend_from_slice(b"    <row>");
    if let Some((time, stamp)) = time {
        out.extend_from_slice(b"<t>");
        push_time(out, time, stamp);
        out.extend_from_slice(b"</t>");
    }
}

/// The values of the next row.
pub(super) fn values(cells: &mut [Cells<'_>]) -> impl Iterator<Item = f64> {
    cells.iter_mut().filter_map(Iterator::next)
}

#[inline]
pub(super) fn xml_value(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else {
        push_value(out, value);
    }
}

fn json_head(out: &mut Vec<u8>, table: &Table<'_>, stamp: Option<Stamp<'_>>) {
    // Dates are texts, seconds are numbers.
    let quote: &[u8] = if stamp.is_some() { b"\"" } else { b"" };
    let mut time = |before: &[u8], time: i64| {
        out.extend_from_slice(before);
        out.extend_from_slice(quote);
        push_time(out, time, stamp);
        out.extend_from_slice(quote);
    };
    time(b"{ \"about\": \"RRDtool graph JSON output\",\n  \"meta\": {\n    \"start\": ", table.time(0));
    time(b",\n    \"end\": ", table.end);
    push(out, format_args!(",\n    \"step\": {},\n    \"legend\": [\n", table.step));
    for (index, legend) in table.legends.iter().enumerate() {
        out.extend_from_slice(b"      \"");
        push_escaped(out, legend);
        out.extend_from_slice(if index + 1 < table.legends.len() { b"\",\n" } else { b"\"\n" });
    }
    out.extend_from_slice(b"          ]\n");
}

/// Compat: with a PRINT this is not valid JSON, as in RRDtool: a comma is missing before it, and one follows too many.
fn json_texts(out: &mut Vec<u8>, texts: &Texts) {
    const HEADS: [&[u8]; 3] = [b"    \"prints\": [\n", b"    ,\"gprints\": [\n", b"    ,\"rules\": [\n"];
    const TAILS: [&[u8]; 3] = [b"        ],\n", b"        ]\n", b"        ]\n"];
    for (section, texts) in [&texts.prints, &texts.inside, &texts.rules].into_iter().enumerate() {
        if texts.is_empty() {
            continue;
        }
        out.extend_from_slice(HEADS[section]);
        for (index, (kind, text)) in texts.iter().enumerate() {
            push(out, format_args!("        {{ \"{kind}\": \""));
            push_escaped(out, text);
            out.extend_from_slice(if index + 1 < texts.len() { b"\" },\n" } else { b"\" }\n" });
        }
        out.extend_from_slice(TAILS[section]);
    }
}

fn json_row(out: &mut Vec<u8>, cells: &mut [Cells<'_>], time: Time<'_>, last: bool) {
    out.extend_from_slice(b"    [ ");
    if let Some((time, stamp)) = time {
        out.push(b'"');
        push_time(out, time, stamp);
        out.extend_from_slice(b"\",");
    }
    for (column, value) in values(cells).enumerate() {
        if column > 0 {
            out.extend_from_slice(b", ");
        }
        if value.is_finite() {
            push_value(out, value);
        } else {
            out.extend_from_slice(b"null");
        }
    }
    out.extend_from_slice(if last { &b" ]\n"[..] } else { b" ],\n" });
}

/// Bytes of a JSON string. Debian's RRDtool escapes nothing in legends; 1.9 does.
fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => push(out, format_args!("\\u{byte:04x}")),
            _ => out.push(byte),
        }
    }
}
