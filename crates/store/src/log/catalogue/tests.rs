use rrd::definition::{ComputeNode, ComputeProgram, Consolidation, Ds, DsKind, DsType, PlainCf, Rra};
use rrd::live::HeadShape;

use super::*;

fn fed(name: &str, ds_type: DsType, heartbeat: u64, min: f64, max: f64) -> Ds {
    Ds { name: name.to_owned(), kind: DsKind::Fed { ds_type, heartbeat, min, max } }
}

fn plain(cf: PlainCf, xff: f64, pdp_per_row: u64, row_count: u64) -> Rra {
    Rra { cf: Consolidation::Plain { cf, xff }, pdp_per_row, row_count }
}

/// Every kind of source and of archive, a long name, a step below a second.
pub(in crate::log) fn everything() -> Definition {
    let all_types =
        [DsType::Gauge, DsType::Counter, DsType::Derive, DsType::Absolute, DsType::Dcounter, DsType::Dderive];
    let mut ds: Vec<Ds> = all_types
        .into_iter()
        .map(|ds_type| fed(&ds_type.name().repeat(20), ds_type, u64::MAX, f64::NEG_INFINITY, 1e300))
        .collect();
    let nodes = vec![ComputeNode { op: 255, operand: i16::MIN }, ComputeNode { op: 0, operand: 7 }];
    ds.push(Ds { name: String::new(), kind: DsKind::Compute(ComputeProgram { nodes }) });
    let mut rra = vec![
        plain(PlainCf::Average, 0.5, 1, 1),
        plain(PlainCf::Min, 0.0, u64::MAX, u64::MAX),
        plain(PlainCf::Max, 0.1, 7, 1200),
        plain(PlainCf::Last, 0.99, 300, 1 << 33),
    ];
    for flag in [false, true] {
        let predict = Consolidation::Predict {
            multiplicative: flag,
            alpha: 0.1,
            beta: 0.0035,
            seasonal: 5,
            period: 288.0,
        };
        let seasonal = Consolidation::Seasonal {
            deviation: flag,
            gamma: 0.1,
            smoothing_window: 0.05,
            predict: 4,
            smooth_index: 143,
        };
        rra.extend([predict, seasonal].map(|cf| Rra { cf, pdp_per_row: 1, row_count: 288 }));
    }
    rra.push(Rra { cf: Consolidation::DevPredict { devseasonal: 7 }, pdp_per_row: 1, row_count: 3 });
    let failures = Consolidation::Failures {
        delta_pos: 2.0,
        delta_neg: 3.0,
        devseasonal: 7,
        window_length: 9,
        threshold: 7,
    };
    rra.push(Rra { cf: failures, pdp_per_row: 1, row_count: 3 });
    Definition { version: 5, units_per_second: 1000, step: 100, ds, rra }
}

fn small() -> Definition {
    Definition {
        version: 3,
        units_per_second: 1,
        step: 300,
        ds: vec![fed("in", DsType::Counter, 600, 0.0, 1.0)],
        rra: vec![plain(PlainCf::Max, 0.5, 6, 700)],
    }
}

pub(in crate::log) fn small_rrd() -> Rrd {
    let definition = small();
    let words = (1..=HeadShape::of(&definition).word_count() as u64).collect();
    let seasons = vec![Season { rra: 0, current_row: 2, values: vec![f64::INFINITY, -1.0] }];
    Rrd { definition, live: Live { words, seasons }, archives: vec![vec![0.1; 700]] }
}

#[test]
fn the_encoding_of_a_definition_is_fixed() {
    let want: &[u8] = b"\x01\x03\x01\xac\x02\
        \x01\x02in\x02\xd8\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xf0\x3f\
        \x01\x03\0\0\0\0\0\0\xe0\x3f\x06\xbc\x05";
    assert_eq!(encode_definition(&small()), want);
    assert_eq!(decode_definition(want).unwrap(), small());
}

#[test]
fn every_kind_of_source_and_archive_round_trips() {
    let bytes = encode_definition(&everything());
    assert_eq!(decode_definition(&bytes).unwrap(), everything());
    // NaN is not equal to itself, so bytes are compared: the payload must survive too.
    let mut unlimited = small();
    let nan = f64::from_bits(0x7ff8_dead_beef_0001);
    unlimited.ds[0] = fed("x", DsType::Gauge, 1, nan, -nan);
    let bytes = encode_definition(&unlimited);
    assert_eq!(encode_definition(&decode_definition(&bytes).unwrap()), bytes);
}

#[test]
fn truncated_or_changed_definitions_are_refused_or_decoded_without_panic() {
    let bytes = encode_definition(&everything());
    for length in 0..bytes.len() {
        assert!(decode_definition(&bytes[..length]).is_err(), "cut at {length}");
    }
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = value;
            if let Ok(definition) = decode_definition(&changed) {
                assert_eq!(encode_definition(&definition), changed, "byte {at} = {value}");
            }
        }
    }
    let check = |at: usize, value: u8, offset: usize, expected: &str| {
        let mut changed = encode_definition(&small());
        changed[at] = value;
        let error = decode_definition(&changed).unwrap_err();
        assert_eq!((error.offset, error.expected), (offset, expected));
    };
    check(0, 2, 0, "definition format 1");
    check(2, 0, 2, "units per second, not 0");
    check(5, 0, 5, "the number of sources, not 0");
    check(5, 100, 5, "the number of sources, not 0");
    check(7, 0xff, 6, "the name of a source");
    check(9, 8, 9, "the type of a source");
    check(29, 11, 29, "a consolidation function");
    check(38, 0, 38, "PDPs per row, not 0");
}

#[test]
fn the_encoding_of_checks_is_fixed() {
    let mut out = Vec::new();
    let heads = CopyCheck { first: 300, count: 1, hash: 0x0102_0304_0506_0708 };
    heads.encode(&mut out);
    assert_eq!(out, b"\xac\x02\x01\x08\x07\x06\x05\x04\x03\x02\x01");
    assert_eq!(CopyCheck::decode(&out).unwrap(), heads);
    out.clear();
    let rows = RowCheck { number: 0x0102_0304_0506_0708, first: 0, count: 256 };
    rows.encode(&mut out);
    assert_eq!(out, b"\x08\x07\x06\x05\x04\x03\x02\x01\0\x80\x02");
    assert_eq!(RowCheck::decode(&out).unwrap(), rows);
    assert!((0..out.len()).all(|length| RowCheck::decode(&out[..length]).is_err()));
    out.push(0);
    assert_eq!(RowCheck::decode(&out).unwrap_err().expected, "the end");
}

#[test]
fn the_encoding_of_bodies_is_fixed() {
    let body = |encode: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        encode(&mut out);
        out
    };
    let create = body(&|out| Create::encode(out, 300, b"a.rrd", &small(), -1));
    assert_eq!(create[..9], *b"\xac\x02\x05a.rrd\x01");
    assert_eq!(create[9..], encode_definition(&small()));
    let made = Create { id: 300, name: b"a.rrd", definition: small(), start: -1 };
    assert_eq!(Create::decode(&create).unwrap(), made);

    let args = ["--heartbeat".to_owned(), "in:9".to_owned()];
    let tune = body(&|out| Tune::encode(out, 1, &args));
    assert_eq!(tune, b"\x01\x02\x0b--heartbeat\x04in:9");
    assert_eq!(Tune::decode(&tune).unwrap(), Tune { id: 1, args: args.to_vec() });

    let delete = body(&|out| Delete::encode(out, u32::MAX, Some(b"a")));
    assert_eq!(delete, b"\xff\xff\xff\xff\x0f\x01a");
    assert_eq!(Delete::decode(&delete).unwrap(), Delete { id: u32::MAX, name: Some(b"a") });
    assert_eq!(Delete::decode(b"\x07").unwrap(), Delete { id: 7, name: None }, "of an early build");

    let rename = body(&|out| Rename::encode(out, 2, b"b", Some(b"a")));
    assert_eq!(rename, b"\x02\x01b\x01a");
    assert_eq!(Rename::decode(&rename).unwrap(), Rename { id: 2, name: b"b", from: Some(b"a") });
    assert_eq!(Rename::decode(b"\x02\x01b").unwrap(), Rename { id: 2, name: b"b", from: None });

    assert_eq!(Delete::decode(b"\xff\xff\xff\xff\x1f").unwrap_err().expected, "the id");
    assert_eq!(Delete::decode(b"\x01\x02").unwrap_err().to_string(), "expected the name it had at byte 1");
    assert_eq!(Delete::decode(b"\x01\x01ab").unwrap_err().to_string(), "expected the end at byte 3");
    assert!(Tune::decode(b"\x01\x7f").is_err());
}

#[test]
fn a_whole_rrd_round_trips_and_bad_ones_are_refused() {
    let mut body = Vec::new();
    Import::encode(&mut body, 5, b"c/d.rrd", &small_rrd()).unwrap();
    assert!(body.len() < 300, "{} bytes: 700 equal rows must pack well", body.len());
    let import = Import::decode(&body).unwrap();
    assert_eq!(import, Import { id: 5, name: b"c/d.rrd", rrd: small_rrd() });

    for length in 0..body.len() {
        assert!(Import::decode(&body[..length]).is_err(), "cut at {length}");
    }
    let check = |change: &dyn Fn(&mut Rrd), expected: &str| {
        let mut rrd = small_rrd();
        change(&mut rrd);
        assert_eq!(decode_rrd(&encode_rrd(&rrd)).unwrap_err().expected, expected);
    };
    check(&|rrd| rrd.live.words.truncate(3), "as many words as the head of the definition has");
    check(&|rrd| rrd.live.seasons[0].rra = 1, "an archive of the definition");
    check(&|rrd| rrd.archives.clear(), "one set of rows for each archive");
    // A length that promises more than is packed, and one beyond all bounds.
    let mut long = vec![5, 0];
    varint::put(&mut long, RRD_BYTES_MAX as u64);
    long.extend_from_slice(&zstd::bulk::compress(&[0; 9], 1).unwrap());
    assert_eq!(Import::decode(&long).unwrap_err().expected, "a packed RRD of the length given");
    let mut beyond = vec![5, 0];
    varint::put(&mut beyond, RRD_BYTES_MAX as u64 + 1);
    assert_eq!(Import::decode(&beyond).unwrap_err().expected, "the length of an RRD, at most 1 GiB");
}
