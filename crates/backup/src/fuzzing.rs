//! The entry point of the fuzz target of manifests, which `cargo test fuzzing` drives by seeds. A panic is a finding.

use store::replication::History;

use crate::manifest::{
    BackedEnd, BackedFile, BackedShard, BackupManifest, LogChunk, STORE_BYTES_MAX, VERSION, runs,
};
use crate::moments::{Found, Moment, goes_on, is_up_to, reaches_back_to};
use crate::restore::{Wanted, has_room};

/// Numbers of manifests that are listed here. There may be sixteen millions, which would take nearly all of the time.
const NUMBERS_MAX: u64 = 100_000;
/// Texts that changes put in, besides bytes of the data.
const PIECES: &[&str] =
    &["0", "1", "4503599627370496", "18446744073709551615", "-1", "null", "[]", "\"\"", "{}", ","];

/// Bytes as the content of a manifest's object, as its text, and as changes of the text of a good one.
pub fn fuzz_manifest(data: &[u8]) {
    let changed = changed(data);
    let texts = [BackupManifest::of_text(data), BackupManifest::of_text(&changed)];
    for manifest in texts.into_iter().chain([BackupManifest::decode(data)]).flatten() {
        let again = manifest.encode().ok().and_then(|bytes| BackupManifest::decode(&bytes));
        assert_eq!(again.as_ref(), Some(&manifest));
        use_it(manifest);
    }
}

/// What is made of a manifest before an object that it names is fetched.
fn use_it(manifest: BackupManifest) {
    let other = good();
    let earlier = manifest.earlier_of_next();
    let later = BackupManifest { number: manifest.number + 1, earlier, ..manifest.clone() };
    let listed = later.earlier.iter().map(|(first, last)| last - first).fold(0, u64::saturating_add);
    if listed < NUMBERS_MAX {
        assert!(runs(&later.numbers()).len() <= later.earlier.len() + 1);
    }
    for moment in [Moment::Newest, Moment::Time(1_000), Moment::Positions(vec![(0, 40), (1, u64::MAX)])] {
        let _either = is_up_to(&manifest, &moment) || reaches_back_to(&manifest, &moment);
        let wanted = Wanted { moment: &moment, shards: None, later: None, own: true, is_replica: false };
        let bytes: u64 = manifest.shards.iter().enumerate().map(|shard| wanted.bytes_of(shard)).sum();
        assert!(bytes <= STORE_BYTES_MAX);
    }
    let _either = goes_on(&manifest, &other) || goes_on(&other, &manifest);
    let known_epoch = manifest.history().next_epoch() - 1;
    assert!(manifest.objects().count() >= manifest.files().count());
    assert!(manifest.shards.iter().flat_map(|shard| &shard.log).all(|chunk| chunk.end() >= chunk.from.1));
    let found = Found { base: manifest, after: Some(later), is_earlier: false, known_epoch };
    let _full = has_room(&found, 1 << 40).err();
}

/// A manifest that a store of two shards could have.
fn good() -> BackupManifest {
    let object = || "objects/00112233".to_string();
    let end = Some(BackedEnd { bytes: 30, object: object() });
    let file = |number, end| BackedFile { number, bytes: 100, content: Some(7), object: object(), end };
    let shard = |number| BackedShard {
        manifest: "roundel-manifest 1\n".to_string(),
        log_from: (number, 40),
        log_end: (number, 90),
        since: (number, 20),
        checkpoint: Some(file(1, None)),
        segments: vec![file(2, end.clone()), file(3, None)],
        log: vec![
            LogChunk { from: (number, 20), bytes: 30, object: object() },
            LogChunk { from: (number, 50), bytes: 40, object: object() },
        ],
    };
    BackupManifest {
        version: VERSION,
        number: 12,
        time_ms: 2_000,
        store: "roundel-store 1\n".to_string(),
        history: History::default().encode(),
        writer: 5,
        base: 10,
        base_ms: Some(900),
        shards: vec![shard(0), shard(1)],
        earlier: vec![(1, 3), (5, 11)],
        mark: None,
        own: Some(object()),
    }
}

/// The text of a good manifest with changes, four bytes each and what they put in: where, how much goes, and what comes.
fn changed(mut data: &[u8]) -> Vec<u8> {
    let mut text = serde_json::to_vec(&good()).unwrap_or_default();
    while let [low, high, gone, kind, rest @ ..] = data {
        let at = usize::from(u16::from_le_bytes([*low, *high])) % (text.len() + 1);
        let end = (at + usize::from(gone % 32)).min(text.len());
        let mut rest = rest;
        let piece = match PIECES.get(usize::from(*kind)) {
            Some(piece) => piece.as_bytes(),
            None => {
                let (piece, after) = rest.split_at(usize::from(kind % 8).min(rest.len()));
                rest = after;
                piece
            }
        };
        text.splice(at..end, piece.iter().copied());
        data = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzzing_by_seeds() {
        assert!(BackupManifest::of_text(&changed(&[])).is_some());
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        let mut used = 0;
        for _ in 0..3_000 {
            let changes = 1 + next() % 2;
            // Few bytes go, mostly for one of the pieces.
            let data: Vec<u8> =
                (0..changes).flat_map(|_| [next(), next() % 8, next() % 3, next() % 12]).collect();
            used += u32::from(BackupManifest::of_text(&changed(&data)).is_some());
            fuzz_manifest(&data);
        }
        fuzz_manifest(&good().encode().unwrap());
        assert!(used > 50, "{used}");
    }
}
