//! One function for each decoder of the files layout, for fuzzers: any bytes in, a panic is a finding.

use super::journal::{self, Record};
use super::words;

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

#[cfg(test)]
mod tests {
    use oracle::shake;
    use rrd::time::Timestamp;

    use super::*;

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
    }
}
