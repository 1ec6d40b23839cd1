//! The bytes of an xport.

use std::io::{self, Write};

use rrd::portable::push_whole;

use super::{Table, Texts, Written, number};

/// Bytes gathered before they go to the sink.
const BUFFER_BYTES: usize = 64 << 10;
/// Room for what is added before they are counted again: a row of some hundred columns.
const ROW_BYTES: usize = 8 << 10;

/// How it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// JSON instead of XML.
    pub json: bool,
    /// Each row with its time.
    pub show_time: bool,
    /// Values in numbered tags (XML only).
    pub numbered: bool,
}

/// Writes all of it, or up to where the texts belong that cannot be printed.
pub(super) fn write(
    sink: &mut dyn Write,
    table: &Table<'_>,
    form: Form,
    texts: Result<Texts, String>,
) -> io::Result<Written> {
    let mut gathered = Vec::with_capacity(BUFFER_BYTES + ROW_BYTES);
    let out = &mut gathered;
    if form.json {
        json_head(out, table);
    } else {
        xml_head(out, table);
    }
    let texts = match texts {
        Ok(texts) => texts,
        Err(message) => {
            sink.write_all(out)?;
            return Ok(Written::UpTo(message));
        }
    };
    if form.json {
        json_texts(out, &texts);
        out.extend_from_slice(b"     },\n  \"data\": [\n");
    } else {
        xml_texts(out, &texts);
        out.extend_from_slice(b"  </meta>\n  <data>\n");
    }
    let rows = table.rows();
    for index in 0..rows {
        if form.json {
            json_row(out, table, form, index, index + 1 == rows);
        } else {
            xml_row(out, table, form, index);
        }
        if out.len() >= BUFFER_BYTES {
            sink.write_all(out)?;
            out.clear();
        }
    }
    out.extend_from_slice(if form.json { &b"  ]\n}\n"[..] } else { b"  </data>\n</xport>\n" });
    sink.write_all(out)?;
    Ok(Written::All)
}

fn push(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    if out.write_fmt(arguments).is_err() {
        unreachable!("writing to a Vec does not fail");
    }
}

fn xml_head(out: &mut Vec<u8>, table: &Table<'_>) {
    push(
        out,
        format_args!(
            "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n\n<xport>\n  <meta>\n    <start>{}</start>\n    \
             <end>{}</end>\n    <step>{}</step>\n    <rows>{}</rows>\n    <columns>{}</columns>\n    <legend>\n",
            table.time(0),
            table.end,
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

fn xml_row(out: &mut Vec<u8>, table: &Table<'_>, form: Form, index: u64) {
    let time = table.time(index);
    out.extend_from_slice(b"    <row>");
    if form.show_time {
        out.extend_from_slice(b"<t>");
        push_whole(out, time);
        out.extend_from_slice(b"</t>");
    }
    for (column, value) in table.row(time).enumerate() {
        if form.numbered {
            push(out, format_args!("<v{column}>"));
        } else {
            out.extend_from_slice(b"<v>");
        }
        if value.is_nan() {
            out.extend_from_slice(b"NaN");
        } else {
            number::push(out, value);
        }
        if form.numbered {
            push(out, format_args!("</v{column}>"));
        } else {
            out.extend_from_slice(b"</v>");
        }
    }
    out.extend_from_slice(b"</row>\n");
}

fn json_head(out: &mut Vec<u8>, table: &Table<'_>) {
    push(
        out,
        format_args!(
            "{{ \"about\": \"RRDtool graph JSON output\",\n  \"meta\": {{\n    \"start\": {},\n    \
             \"end\": {},\n    \"step\": {},\n    \"legend\": [\n",
            table.time(0),
            table.end,
            table.step,
        ),
    );
    for (index, legend) in table.legends.iter().enumerate() {
        out.extend_from_slice(b"      \"");
        push_escaped(out, legend);
        out.extend_from_slice(if index + 1 < table.legends.len() { b"\",\n" } else { b"\"\n" });
    }
    out.extend_from_slice(b"          ]\n");
}

/// Compat: with a PRINT in it this is no JSON, in RRDtool either: a comma is missing before, one too many behind.
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

fn json_row(out: &mut Vec<u8>, table: &Table<'_>, form: Form, index: u64, last: bool) {
    let time = table.time(index);
    out.extend_from_slice(b"    [ ");
    if form.show_time {
        out.push(b'"');
        push_whole(out, time);
        out.extend_from_slice(b"\",");
    }
    for (column, value) in table.row(time).enumerate() {
        if column > 0 {
            out.extend_from_slice(b", ");
        }
        if value.is_finite() {
            number::push(out, value);
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
