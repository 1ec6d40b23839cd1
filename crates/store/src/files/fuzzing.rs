//! One function for each decoder of the files layout, for fuzzers: any bytes in, a panic is a finding.

use std::sync::Arc;

use super::apply::{Loaded, Workspace};
use super::geometry::Geometries;
use super::journal::{self, Record};
use super::words;
use crate::placeholder;

/// The body of a journal frame, and the words of its updates.
pub fn fuzz_journal(bytes: &[u8]) {
    let mut frame = journal::Frame::default();
    let read = journal::records(bytes, &mut |record| {
        if let Record::Update { words, .. } = record {
            let mut again = Vec::new();
            words::iter(words).for_each(|word| words::push(&mut again, word));
            assert!(words.starts_with(&again) && (again == words) == words::is_sound(words));
        }
        frame.put(record);
    });
    assert!(read.is_err() || frame.is_empty() == bytes.is_empty());
}

/// A placeholder: what is read is written the same.
pub fn fuzz_placeholder(bytes: &[u8]) {
    if let Ok(Some(found)) = placeholder::decode(bytes) {
        assert!(bytes.starts_with(&placeholder::encode(found.store, &found.name)));
    }
}

/// A `.rrd` file that updates are applied to and written into, as the writers do it.
pub fn fuzz_write(bytes: &[u8]) {
    let geometries = Geometries::default();
    let Ok(header) = geometries.read(bytes, bytes.len() as u64, None) else { return };
    // A second look, with the geometry known, must see the same.
    let again = geometries.read(bytes, bytes.len() as u64, Some(&Arc::clone(&header.geometry)));
    assert!(
        again.is_ok_and(|again| again.words == header.words && again.current_rows == header.current_rows)
    );
    let mut copy = bytes.to_vec();
    let Ok(mut loaded) = Loaded::from_bytes(header, bytes) else { return };
    let fed = loaded.header.geometry.definition.fed_count();
    let values = vec!["7"; fed].join(":");
    let mut pending = Vec::new();
    let last = loaded.last_update().whole;
    for gap in [1, 100, 10_000, 1 << 33] {
        let time = rrd::time::Timestamp::whole(last.saturating_add(gap));
        words::push(&mut pending, words::Word { time, values: values.as_bytes() });
    }
    let mut work = Workspace::default();
    loaded.apply(&pending, &mut work);
    assert!(loaded.write(&mut work, &mut copy).is_ok(), "all offsets are within the file");
    assert_eq!(copy.len(), bytes.len());
}

#[cfg(test)]
mod tests {
    use oracle::shake;
    use rrd::time::Timestamp;

    use super::*;
    use crate::name::RrdName;

    #[test]
    fn decoders_stand_up_to_changed_bytes() {
        let mut words = Vec::new();
        for second in 0..5 {
            words::push(&mut words, words::Word { time: Timestamp::whole(second), values: b"1:U:3" });
        }
        let mut frame = journal::Frame::default();
        frame.put(Record::Update { name: b"a/b.rrd", words: &words });
        frame.put(Record::Written { name: b"a/b.rrd", until: Timestamp::new(3, 4) });
        frame.put(Record::Forgotten { name: b"c" });
        shake(frame.body_for_test(), 50_000, fuzz_journal);
        let store = placeholder::StoreIdentity([3; 16]);
        shake(&placeholder::encode(store, &RrdName::new(b"a/b.rrd").unwrap()), 20_000, fuzz_placeholder);
    }

    #[test]
    fn changed_files_take_updates_or_refuse_them() {
        let mut tool = oracle::RrdTool::start().unwrap();
        let words = "DS:a:GAUGE:600:U:U DS:b:COUNTER:600:U:U RRA:AVERAGE:0.5:1:5 RRA:MAX:0.5:3:4 RRA:HWPREDICT:6:0.1:0.01:4";
        tool.run(&format!("create x.rrd -b 1000000000 -s 60 {words}")).unwrap();
        for minute in 1..12 {
            tool.run(&format!("update x.rrd {}:{minute}:{minute}", 1_000_000_000 + 61 * minute)).unwrap();
        }
        let good = std::fs::read(tool.path("x.rrd")).unwrap();
        shake(&good, 20_000, fuzz_write);
        let head = rrd::codec::file::head_bytes(&good, good.len() as u64).unwrap();
        shake(&good[..head], 30_000, |front| fuzz_write(&[front, &good[head..]].concat()));
    }
}
