//! A store as it was written before files had owners opens, and is converted.

use super::*;
use crate::filenames::FileKind;
use crate::log::envelope;

fn seal(bytes: &mut [u8], covered: usize) {
    let crc = crc32c::crc32c(&bytes[..covered]).to_le_bytes();
    bytes[covered..covered + 4].copy_from_slice(&crc);
}

fn manifest(bytes: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).unwrap();
    let is_old =
        |line: &&str| !["store ", "durable ", "file ", "crc32c "].iter().any(|new| line.starts_with(new));
    let without_hash = |line: &str| line.split(" content ").next().unwrap_or_default().to_owned() + "\n";
    let body: String = text.lines().filter(is_old).map(without_hash).collect();
    let body = body.replace("roundel-manifest 2", "roundel-manifest 1");
    format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes())).into_bytes()
}

fn log(mut bytes: Vec<u8>, start: crate::log::Position) -> Vec<u8> {
    let mut at = 0;
    while bytes.len() - at >= envelope::ENVELOPE_BYTES
        && let Ok(length) = envelope::peek(&bytes[at..], start.plus(at as u64))
    {
        let record = &mut bytes[at..at + length];
        record[envelope::VERSION_AT] = envelope::VERSION_UNOWNED;
        record[envelope::OWNER_AT..envelope::OWNER_AT + 3].fill(0);
        envelope::close(record);
        at += length;
    }
    assert!(at > 0, "a log with records");
    bytes
}

fn segment(mut bytes: Vec<u8>) -> Vec<u8> {
    let trailer = bytes.len() - 64;
    assert_eq!(bytes[trailer + 8], 3);
    let number: [u8; 8] = bytes[trailer + 40..trailer + 48].try_into().unwrap();
    let blocks_end = u64::from_le_bytes(bytes[trailer + 24..trailer + 32].try_into().unwrap()) as usize;
    let mut at = 32;
    while at < blocks_end {
        let end = at + 12 + u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        let place = [number, (at as u64).to_le_bytes()].concat();
        let crc = crc32c::crc32c_append(crc32c::crc32c(&place), &bytes[at + 4..end]);
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
        at = end;
    }
    bytes[trailer + 8] = 1;
    bytes[trailer + 56..trailer + 60].fill(0);
    seal(&mut bytes[trailer..], 60);
    assert_eq!(bytes[8], 3);
    bytes[8] = 1;
    bytes[24..28].fill(0);
    seal(&mut bytes, 28);
    bytes
}

fn checkpoint(mut bytes: Vec<u8>) -> Vec<u8> {
    assert_eq!(bytes[7], 2);
    bytes[7] = 1;
    let mut at = 8;
    while at < bytes.len() {
        let word = |place: usize| u32::from_le_bytes(bytes[at + place..at + place + 4].try_into().unwrap());
        let (kind, stored) = (word(0), word(4) as usize);
        if kind == 2 {
            bytes[at + 12..at + 16].fill(0);
        }
        bytes[at + 32..at + 36].fill(0);
        let crc =
            crc32c::crc32c_append(crc32c::crc32c(&bytes[at..at + 36]), &bytes[at + 40..at + 40 + stored]);
        bytes[at + 36..at + 40].copy_from_slice(&crc.to_le_bytes());
        at += 40 + stored;
    }
    bytes
}

/// Rewrites every file of a shard as version 1 had it.
fn downgrade(shard: &Path) {
    for entry in fs::read_dir(shard).unwrap().map(Result::unwrap) {
        let bytes = fs::read(entry.path()).unwrap();
        let old = match filenames::kind_of(&entry.file_name()).unwrap() {
            FileKind::ManifestCopy => {
                fs::remove_file(entry.path()).unwrap();
                continue;
            }
            FileKind::Manifest => manifest(&bytes),
            FileKind::Log(start) => log(bytes, start),
            FileKind::Segment(_) => segment(bytes),
            FileKind::Checkpoint(_) => checkpoint(bytes),
            FileKind::ManifestNew => unreachable!("nothing is being written"),
        };
        fs::write(entry.path(), old).unwrap();
    }
}

#[test]
fn a_store_of_version_1_opens_and_is_converted() {
    let directory = store();
    let want = content(&open(directory.path()).unwrap());
    for shard in ["shard-000", "shard-001"] {
        downgrade(&directory.path().join(shard));
    }
    let opened = open(directory.path()).unwrap();
    assert_eq!(content(&opened), want);
    update(&opened, 120..130);
    let want = content(&opened);
    opened.stop().unwrap();
    drop(opened);
    let manifest = fs::read_to_string(directory.path().join("shard-000/manifest")).unwrap();
    assert!(manifest.starts_with("roundel-manifest 2\nstore "), "{manifest}");
    assert_eq!(content(&open(directory.path()).unwrap()), want);
    assert_eq!(run(directory.path(), false, false).0, Outcome::default());
}
