//! The journal's bytes, and what each kind of damage costs.

use super::*;

fn update<'a>(name: &'a str, updates: &'a str) -> Record<'a> {
    Record::Update { name: name.as_bytes(), updates: updates.as_bytes() }
}

const ID: [u8; 16] = *b"0123456789abcdef";

/// Every record replayed, as text, and what was wrong.
fn replayed(path: &Path) -> (Vec<String>, Vec<Damage>) {
    replayed_with(path, &Noted { id: Some(ID), durable: 0 })
}

fn replayed_with(path: &Path, known: &Noted) -> (Vec<String>, Vec<Damage>) {
    let mut records = Vec::new();
    let directory = Directory::open(path.parent().unwrap()).unwrap();
    let found = scan(&directory, path.file_name().unwrap(), known, |record| {
        records.push(match record {
            Record::Update { name, updates } => {
                format!("{} {}", String::from_utf8_lossy(name), String::from_utf8_lossy(updates))
            }
            Record::Written { name, until } => {
                format!("{} written {}.{}", String::from_utf8_lossy(name), until.whole, until.micros)
            }
            Record::Forgotten { name } => format!("{} forgotten", String::from_utf8_lossy(name)),
            Record::Stream { name, position: StreamPosition { epoch, sequence } } => {
                format!("{} {epoch}/{sequence}", String::from_utf8_lossy(name))
            }
        });
    })
    .unwrap();
    (records, found.damages)
}

/// A journal of three frames, each synced; their offsets.
fn three_frames(directory: &Path) -> (PathBuf, Vec<u64>) {
    frames(directory, &ID, 3, true)
}

fn frames(directory: &Path, id: &[u8; 16], count: usize, synced: bool) -> (PathBuf, Vec<u64>) {
    let mut journal = Journal::create(&Directory::open(directory).unwrap(), id, 7, 1).unwrap();
    let mut offsets = Vec::new();
    for number in 0..count {
        offsets.push(journal.bytes());
        let mut frame = Frame::default();
        frame.put(update("a.rrd", &format!("{number}:1")));
        journal.append(&mut frame).unwrap();
        if synced {
            journal.sync().unwrap();
        }
    }
    (journal.path().to_path_buf(), offsets)
}

#[test]
fn the_encoding_is_fixed() {
    let mut frame = Frame::default();
    frame.put(update("a", "5:1"));
    frame.put(Record::Written { name: b"a", until: Timestamp::new(5, 6) });
    frame.put(Record::Forgotten { name: b"b" });
    let body =
        b"\x01\x01\0\x03\0\0\0a5:1\x02\x01\0\x0c\0\0\0a\x05\0\0\0\0\0\0\0\x06\0\0\0\x03\x01\0\0\0\0\0b";
    let bytes = frame.seal(0x30, 0x20, 7);
    assert_eq!(bytes[..4], (body.len() as u32).to_le_bytes());
    assert_eq!(bytes[8..24], *b"\x30\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0");
    assert_eq!(bytes[4..8], frame_checksum(7, &bytes[..24], body).to_le_bytes());
    assert_eq!(&bytes[24..], body);
    let header = header(&ID, 0x0102, 3);
    assert_eq!(&header[..44], b"ROUNDELJ\x02\0\0\0\x03\0\0\0\x02\x01\0\0\0\0\0\x000123456789abcdef\0\0\0\0");
}

#[test]
fn records_are_replayed_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(&Directory::open(directory.path()).unwrap(), &ID, 7, 1).unwrap();
    let mut frame = Frame::default();
    frame.put(update("x y.rrd", "1:2 3:4"));
    frame.put(Record::Written { name: b"x y.rrd", until: Timestamp::new(-3, 999_999) });
    frame.put(Record::Forgotten { name: b"z" });
    journal.append(&mut frame).unwrap();
    assert!(journal.sync().unwrap() && !journal.sync().unwrap());
    let found = Directory::open(directory.path()).unwrap().files().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, 7);
    let (records, damages) = replayed(&directory.path().join(&found[0].1));
    assert_eq!(records, ["x y.rrd 1:2 3:4", "x y.rrd written -3.999999", "z forgotten"]);
    assert!(damages.is_empty());
}

#[test]
fn a_large_batch_becomes_several_frames() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(&Directory::open(directory.path()).unwrap(), &ID, 0, 0).unwrap();
    let updates = "1:2 ".repeat(UPDATES_BYTES_MAX / 4);
    let mut frame = Frame::default();
    (0..9).for_each(|_| frame.put(update("a", &updates)));
    journal.append(&mut frame).unwrap();
    let (records, damages) = replayed(journal.path());
    assert_eq!((records.len(), damages.len()), (9, 0));
}

#[test]
fn a_tail_cut_anywhere_costs_only_the_torn_frame_and_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let (path, offsets) = three_frames(directory.path());
    let bytes = std::fs::read(&path).unwrap();
    for length in 0..=bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let whole = offsets[1..].iter().filter(|&&end| end <= length as u64).count()
            + usize::from(length == bytes.len());
        let (records, damages) = replayed(&path);
        let is_torn = length < bytes.len() && !offsets.contains(&(length as u64));
        assert_eq!((records.len(), damages.len()), (whole, usize::from(is_torn)), "cut at {length}");
        assert!(damages.iter().all(|damage| damage.is_tear), "cut at {length}");
    }
}

#[test]
fn every_flipped_bit_costs_at_most_its_frame_and_is_reported_with_its_offset() {
    let directory = tempfile::tempdir().unwrap();
    let (path, offsets) = three_frames(directory.path());
    let bytes = std::fs::read(&path).unwrap();
    for bit in offsets[1] as usize * 8..offsets[2] as usize * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bad).unwrap();
        let (records, damages) = replayed(&path);
        assert_eq!(records, ["a.rrd 0:1", "a.rrd 2:1"], "bit {bit}");
        assert_eq!(damages[0].offset, offsets[1]);
    }
    for bit in 0..HEADER_BYTES * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bad).unwrap();
        let (records, damages) = replayed(&path);
        assert_eq!((records.len(), damages.len()), (0, 1), "bit {bit}");
    }
}

#[test]
fn emptied_and_exchanged_files_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = three_frames(directory.path());
    let other = directory.path().join("0000000000000007-0002.journal");
    std::fs::copy(&path, &other).unwrap();
    let (records, damages) = replayed(&other);
    assert_eq!((records.len(), damages.len()), (0, 1));
    assert!(
        damages[0].to_string().contains("the content of 0000000000000007-0001.journal"),
        "{}",
        damages[0]
    );
    std::fs::write(&path, b"").unwrap();
    let (records, damages) = replayed(&path);
    assert_eq!((records.len(), damages.len()), (0, 1));
    assert!(damages[0].to_string().contains("less than its header"), "{}", damages[0]);
}

/// What is cut where nothing shows it is noticed when it was noted as durable.
#[test]
fn a_file_that_ends_before_its_durable_end_lacks_updates() {
    let directory = tempfile::tempdir().unwrap();
    let (path, offsets) = three_frames(directory.path());
    let bytes = std::fs::read(&path).unwrap();
    let known = Noted { id: Some(ID), durable: bytes.len() as u64 };
    assert!(replayed_with(&path, &known).1.is_empty());
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let (records, damages) = replayed_with(&path, &known);
        assert_eq!(records.len(), offsets[1..].iter().filter(|&&end| end <= length as u64).count());
        assert!(damages.len() == 1 && !damages[0].is_tear, "cut at {length}: {damages:?}");
    }
}

#[test]
fn bytes_that_are_removed_added_or_zeroed_cost_only_what_they_hit() {
    let directory = tempfile::tempdir().unwrap();
    let (path, offsets) = three_frames(directory.path());
    let bytes = std::fs::read(&path).unwrap();
    let (one, two) = (offsets[1] as usize, offsets[2] as usize);
    let check = |content: Vec<u8>, want: &[&str], what: &str| {
        std::fs::write(&path, content).unwrap();
        let (records, damages) = replayed(&path);
        assert_eq!(records, want, "{what}: {damages:?}");
        assert!(damages.len() == 1 && !damages[0].is_tear, "{what}: {damages:?}");
        assert_eq!(damages[0].offset, offsets[1], "{what}");
    };
    let outer = ["a.rrd 0:1", "a.rrd 2:1"];
    check([&bytes[..one], &bytes[two..]].concat(), &outer, "the second frame is removed");
    check([&bytes[..one], &bytes[one + 5..]].concat(), &outer, "its first bytes are removed");
    check([&bytes[..one], &vec![0; two - one], &bytes[two..]].concat(), &outer, "it is zeroed");
    let all = ["a.rrd 0:1", "a.rrd 1:1", "a.rrd 2:1"];
    check([&bytes[..one], b"more", &bytes[one..]].concat(), &all, "bytes are added");
    check([&bytes[..one], &bytes[one - 60..one], &bytes[one..]].concat(), &all, "a frame is there twice");
}

/// What a power loss leaves: a hole in what was never synced, so nothing after it may be applied.
#[test]
fn a_hole_after_the_last_sync_is_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let (path, offsets) = frames(directory.path(), &ID, 3, false);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[offsets[1] as usize..offsets[2] as usize].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let (records, damages) = replayed(&path);
    assert_eq!(records, ["a.rrd 0:1"]);
    assert!(damages.len() == 1 && damages[0].is_tear, "{damages:?}");
    let known = Noted { id: Some(ID), durable: offsets[2] };
    let (records, damages) = replayed_with(&path, &known);
    assert_eq!(records, ["a.rrd 0:1", "a.rrd 2:1"], "it was durable");
    assert!(damages.len() == 1 && !damages[0].is_tear, "{damages:?}");
}

#[test]
fn another_journals_file_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = frames(directory.path(), b"another journal.", 3, true);
    let (records, damages) = replayed(&path);
    assert_eq!(records.len(), 0);
    assert!(damages[0].to_string().contains("it belongs to another journal"), "{}", damages[0]);
}

/// Byte for byte as release 0.1 wrote it.
#[test]
fn files_of_version_1_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let mut bytes = b"ROUNDELJ\x01\0\0\0\x01\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    for body in [b"\x01\x01\0\x03\0\0\0a5:1".as_slice(), b"\x03\x01\0\0\0\0\0b"] {
        let length = (body.len() as u32).to_le_bytes();
        bytes.extend(length);
        bytes.extend(crc32c::crc32c_append(crc32c::crc32c(&length), body).to_le_bytes());
        bytes.extend(body);
    }
    let path = directory.path().join("0000000000000007-0001.journal");
    for (length, count) in [(bytes.len(), 2), (bytes.len() - 1, 1), (40, 0), (31, 0)] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let (records, damages) = replayed(&path);
        assert_eq!((records.len(), damages.len()), (count, usize::from(count < 2)), "{length}: {damages:?}");
        assert!(damages.iter().all(|damage| damage.is_tear));
    }
}
