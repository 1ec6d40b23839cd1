//! The journal's bytes, and what each kind of damage costs.

use super::*;

fn update<'a>(name: &'a str, updates: &'a str) -> Record<'a> {
    Record::Update { name: name.as_bytes(), updates: updates.as_bytes() }
}

/// Every record replayed, as text, and how many damages were met.
fn replayed(path: &Path) -> (Vec<String>, Vec<Damage>) {
    let mut records = Vec::new();
    let directory = Directory::open(path.parent().unwrap()).unwrap();
    let damages = replay(&directory, path.file_name().unwrap(), |record| {
        records.push(match record {
            Record::Update { name, updates } => {
                format!("{} {}", String::from_utf8_lossy(name), String::from_utf8_lossy(updates))
            }
            Record::Written { name, until } => {
                format!("{} written {}.{}", String::from_utf8_lossy(name), until.whole, until.micros)
            }
            Record::Forgotten { name } => format!("{} forgotten", String::from_utf8_lossy(name)),
        });
    })
    .unwrap();
    (records, damages)
}

/// A journal of three frames; their offsets.
fn three_frames(directory: &Path) -> (PathBuf, Vec<u64>) {
    let mut journal = Journal::create(&Directory::open(directory).unwrap(), 7, 1).unwrap();
    let mut offsets = Vec::new();
    for number in 0..3 {
        offsets.push(journal.bytes());
        let mut frame = Frame::default();
        frame.put(update("a.rrd", &format!("{number}:1")));
        journal.append(&mut frame).unwrap();
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
    let bytes = frame.seal();
    assert_eq!(bytes[..4], (body.len() as u32).to_le_bytes());
    assert_eq!(bytes[4..8], frame_checksum([body.len() as u8, 0, 0, 0], body).to_le_bytes());
    assert_eq!(&bytes[8..], body);
    let header = header(0x0102, 3);
    assert_eq!(&header[..28], b"ROUNDELJ\x01\0\0\0\x03\0\0\0\x02\x01\0\0\0\0\0\0\0\0\0\0");
}

#[test]
fn records_are_replayed_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(&Directory::open(directory.path()).unwrap(), 7, 1).unwrap();
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
    let mut journal = Journal::create(&Directory::open(directory.path()).unwrap(), 0, 0).unwrap();
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
    for bit in (offsets[1] as usize + 4) * 8..offsets[2] as usize * 8 {
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
