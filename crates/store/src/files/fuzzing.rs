//! One function for each decoder of the files layout, for fuzzers: any bytes in, a panic is a finding.

use super::journal::{self, Record};
use super::updates;

/// The body of a journal frame, and the updates of its updates.
pub fn fuzz_journal(bytes: &[u8]) {
    let mut frame = journal::Frame::default();
    let read = journal::records(bytes, &mut |record| {
        if let Record::Update { updates, .. } = record {
            let mut again = Vec::new();
            updates::iter(updates).for_each(|update| updates::push(&mut again, update));
            assert!(updates.starts_with(&again) && (again == updates) == updates::is_sound(updates));
        }
        frame.put(record);
    });
    assert!(read.is_err() || frame.is_empty() == bytes.is_empty());
}

#[cfg(test)]
mod tests {
    use rrd::time::Timestamp;
    use testkit::shake;

    use super::*;

    #[test]
    fn decoders_survive_changed_bytes() {
        let mut updates = Vec::new();
        for second in 0..5 {
            updates::push(
                &mut updates,
                updates::PendingUpdate { time: Timestamp::whole(second), values: b"1:U:3" },
            );
        }
        let mut frame = journal::Frame::default();
        frame.put(Record::Update { name: b"a/b.rrd", updates: &updates });
        frame.put(Record::Written { name: b"a/b.rrd", until: Timestamp::new(3, 4) });
        frame.put(Record::Forgotten { name: b"c" });
        shake(frame.body_for_test(), 50_000, fuzz_journal);
    }
}
