//! `docs/format/log.md` against the constants it describes.

use super::*;
use crate::log::envelope::*;

const DOCUMENT: &str = include_str!("../../../../../docs/format/log.md");

/// The rows of the table under the first line that starts so, as trimmed cells.
fn table(head: &str) -> Vec<Vec<&'static str>> {
    DOCUMENT
        .lines()
        .skip_while(|line| !line.starts_with(head))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn the_envelope_is_where_the_document_says() {
    let fields = [
        (0, "magic"),
        (VERSION_AT, "version"),
        (CRC_AT, "CRC32C"),
        (BODY_LENGTH_AT, "body length"),
        (KIND_AT, "kind"),
        (OWNER_AT, "owner"),
        (GENERATION_AT, "generation"),
        (EPOCH_AT, "epoch"),
        (OFFSET_AT, "offset"),
        (DURABLE_AT, "durable mark"),
        (PRODUCER_AT, "producer"),
        (SEQUENCE_AT, "sequence"),
        (TIME_AT, "time"),
        (ENVELOPE_BYTES, "body"),
    ];
    let mut want: Vec<Vec<String>> = fields
        .windows(2)
        .map(|pair| vec![pair[0].0.to_string(), (pair[1].0 - pair[0].0).to_string(), pair[0].1.to_string()])
        .collect();
    want.push(vec![ENVELOPE_BYTES.to_string(), "n".to_owned(), "body".to_owned()]);
    let found: Vec<Vec<&str>> =
        table("| offset | bytes | field |").into_iter().map(|row| row[..3].to_vec()).collect();
    assert_eq!(found, want);
    let meaning = |field: &str| {
        let rows = table("| offset | bytes | field |");
        rows.into_iter().find(|row| row[2] == field).map(|row| row[3]).unwrap()
    };
    assert_eq!(meaning("magic"), format!("`{}`", String::from_utf8_lossy(&MAGIC)));
    assert!(meaning("version").starts_with(&format!("{VERSION}. ")));
    assert_eq!(meaning("body length").replace(',', ""), format!("In bytes at most {BODY_BYTES_MAX}."));
}

#[test]
fn kinds_and_nibbles_are_those_of_the_document() {
    let kinds: Vec<Vec<String>> = Kind::ALL
        .iter()
        .map(|kind| vec![(*kind as u8).to_string(), format!("{kind:?}").to_lowercase()])
        .collect();
    let found: Vec<Vec<&str>> = table("| kind | name |").into_iter().map(|row| row[..2].to_vec()).collect();
    assert_eq!(found, kinds);
    let nibbles = table("| nibble |");
    // Each character that has a nibble of its own, as a body of that one character holds it.
    for row in nibbles.iter().filter(|row| row[1].len() == 3) {
        let mut updates = UpdatesBody::default();
        updates.push(0, rrd::time::Timestamp::whole(0), &row[1].as_bytes()[1..2]);
        let mut body = Vec::new();
        updates.finish(&mut body);
        assert_eq!((body[7] & 0xf).to_string(), row[0]);
    }
    let escape = nibbles.iter().find(|row| row[0] == "12").unwrap()[1];
    let listed: Vec<u8> = escape.split('`').skip(1).step_by(2).map(|text| text.as_bytes()[0]).collect();
    assert_eq!(listed, crate::log::updates::ESCAPED);
}
