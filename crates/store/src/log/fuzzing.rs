//! One function for each decoder of the log, for fuzzers: any bytes in, a panic is a finding.
//!
//! Each checks more than that nothing panics: what was decoded, encoded and decoded again is the same.

use std::convert::Infallible;
use std::path::Path;

use rrd::time::Timestamp;

use super::Position;
use super::catalogue::{
    CopyCheck, Create, Delete, Import, Rename, RowCheck, Tune, decode_definition, decode_rrd,
    encode_definition, encode_rrd,
};
use super::envelope::{self, ENVELOPE_BYTES};
use super::replay::Known;
use super::updates::{self, UpdatesBody};
use super::{Options, replay};
use crate::disk::{Disk, SimDisk};
use crate::filenames;

/// An envelope with its body, as if it were of the first position.
pub fn fuzz_record(bytes: &[u8]) {
    let place = Position { generation: 1, offset: 0 };
    if bytes.len() < ENVELOPE_BYTES {
        return;
    }
    let Ok(length) = envelope::peek(bytes, place) else { return };
    let Some(record) = bytes.get(..length) else { return };
    if let Ok(decoded) = envelope::decode(record, place) {
        let mut again = Vec::new();
        envelope::open(&mut again, decoded.owner, decoded.kind, decoded.stamp, place, decoded.durable);
        again[envelope::VERSION_AT] = record[envelope::VERSION_AT];
        again.extend_from_slice(decoded.body);
        envelope::close(&mut again);
        assert_eq!(again, record);
    }
}

/// A whole log file: replayed, gone on with, and replayed again.
pub fn fuzz_replay(bytes: &[u8]) {
    let (dir, from) = (Path::new("s"), Position { generation: 1, offset: 0 });
    let disk = SimDisk::new(1);
    let read = |disk: &SimDisk| {
        let mut count = 0u64;
        replay(disk, dir, from, Known::default(), &mut |_| {
            count += 1;
            Ok::<(), Infallible>(())
        })
        .map(|end| (count, end.end))
    };
    let written = disk.create_dir_all(dir).and_then(|()| {
        let file = disk.create(&filenames::log(dir, from))?;
        file.write_at(bytes, 0)
    });
    assert!(written.is_ok(), "a simulated disk without limits");
    // A good record of a newer program is the one thing that stops it.
    let Ok((count, end)) = read(&disk) else { return };
    assert!(end.offset <= bytes.len() as u64);
    let options = Options { file_bytes_max: 4096, ..Options::default() };
    let log = super::LogWriter::open(disk.handle(), dir, end, options);
    let appended = log.and_then(|mut log| {
        log.append(super::Kind::Behaviour, super::Stamp::default(), b"")?;
        log.commit()
    });
    assert!(appended.is_ok(), "{:?}", appended.err());
    assert_eq!(read(&disk).ok(), Some((count + 1, end.plus(ENVELOPE_BYTES as u64))));
}

/// The body of an update record.
pub fn fuzz_updates(bytes: &[u8]) {
    let read = |body: &[u8]| {
        let mut visited: Vec<(u32, Timestamp, Vec<u8>)> = Vec::new();
        updates::decode(body, &mut |id, time, text: &[u8]| visited.push((id, time, text.to_vec())))
            .map(|()| visited)
    };
    let Ok(visited) = read(bytes) else { return };
    let mut builder = UpdatesBody::default();
    for (id, time, text) in &visited {
        builder.push(*id, *time, text);
    }
    let mut again = Vec::new();
    builder.finish(&mut again);
    assert_eq!(read(&again).as_ref(), Ok(&visited));
}

/// A definition.
pub fn fuzz_definition(bytes: &[u8]) {
    if let Ok(definition) = decode_definition(bytes) {
        assert_eq!(encode_definition(&definition), bytes);
    }
}

/// A whole RRD, unpacked.
pub fn fuzz_rrd(bytes: &[u8]) {
    if let Ok(rrd) = decode_rrd(bytes) {
        assert_eq!(encode_rrd(&rrd), bytes);
    }
}

/// The bodies of create, tune, delete, rename, import and the two checks.
pub fn fuzz_catalogue(bytes: &[u8]) {
    let mut again = Vec::new();
    let mut same = |encode: &dyn Fn(&mut Vec<u8>)| {
        again.clear();
        encode(&mut again);
        assert_eq!(again, bytes);
    };
    if let Ok(Create { id, name, definition, start }) = Create::decode(bytes) {
        same(&|out| Create::encode(out, id, name, &definition, start));
    }
    if let Ok(Tune { id, args }) = Tune::decode(bytes) {
        same(&|out| Tune::encode(out, id, &args));
    }
    if let Ok(Delete { id, name }) = Delete::decode(bytes) {
        same(&|out| Delete::encode(out, id, name));
    }
    if let Ok(Rename { id, name, from }) = Rename::decode(bytes) {
        same(&|out| Rename::encode(out, id, name, from));
    }
    if let Ok(check) = CopyCheck::decode(bytes) {
        same(&|out| check.encode(out));
    }
    if let Ok(check) = RowCheck::decode(bytes) {
        same(&|out| check.encode(out));
    }
    if let Ok(Import { rrd, .. }) = Import::decode(bytes) {
        assert_eq!(decode_rrd(&encode_rrd(&rrd)).map(|again| encode_rrd(&again)), Ok(encode_rrd(&rrd)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::tests::{everything, small_rrd};
    use super::super::{Kind, Stamp};
    use super::*;

    /// Runs `target` on `good` changed at random: bits, bytes, cuts, repeats.
    fn shake(good: &[u8], rounds: u64, target: fn(&[u8])) {
        target(good);
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut below = |limit: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % limit.max(1) as u64) as usize
        };
        for _ in 0..rounds {
            let mut bytes = good.to_vec();
            for _ in 0..1 + below(3) {
                let at = below(bytes.len());
                match below(5) {
                    0 => bytes.truncate(at),
                    1 => bytes
                        .splice(at..at, good[at.min(good.len())..].iter().take(20).copied())
                        .for_each(drop),
                    2 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(5)],
                    _ if at < bytes.len() => bytes[at] ^= 1 << below(8),
                    _ => bytes.push(below(256) as u8),
                }
            }
            target(&bytes);
        }
    }

    #[test]
    fn decoders_survive_changed_bytes() {
        let mut builder = UpdatesBody::default();
        for id in 0..30u32 {
            let text = [&b"12.5:U"[..], b"-1e+7:\xff", b"", b"99999999999"][id as usize % 4];
            builder.push(id * (1 + id % 3), Timestamp::new(1000 + i64::from(id % 5), id * 33_000), text);
        }
        let mut body = Vec::new();
        builder.finish(&mut body);
        shake(&body, 20_000, fuzz_updates);

        shake(&encode_definition(&everything()), 20_000, fuzz_definition);
        shake(&encode_rrd(&small_rrd()), 2_000, fuzz_rrd);
        let mut create = Vec::new();
        Create::encode(&mut create, 1, b"a/b.rrd", &everything(), 920_804_400);
        shake(&create, 10_000, fuzz_catalogue);
        for is_of_rows in [false, true] {
            let mut check = Vec::new();
            match is_of_rows {
                true => RowCheck { number: 1 << 63, first: 300, count: 256 }.encode(&mut check),
                false => CopyCheck { first: 70_000, count: 1, hash: 5 }.encode(&mut check),
            }
            shake(&check, 2_000, fuzz_catalogue);
        }
        let mut import = Vec::new();
        Import::encode(&mut import, 1, b"a/b.rrd", &small_rrd()).unwrap();
        shake(&import, 5_000, fuzz_catalogue);

        let mut file = Vec::new();
        for sequence in 0..4 {
            let (start, place) = (file.len(), Position { generation: 1, offset: file.len() as u64 });
            let stamp = Stamp { sequence, ..Stamp::default() };
            envelope::open(&mut file, 0, Kind::Updates, stamp, place, start as u64 / 2);
            file.extend_from_slice(&body);
            envelope::close(&mut file[start..]);
        }
        shake(&file, 5_000, fuzz_record);
        shake(&file, 2_000, fuzz_replay);
    }
}
