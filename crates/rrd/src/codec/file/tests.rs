use super::*;
use crate::definition::Definition;
use crate::live::HeadShape;

/// One DS, one AVERAGE archive of three rows, written out byte by byte.
fn small_file() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(b"RRD\x000003\0\0\0\0\0\0\0\0");
    bytes.extend_from_slice(&[0x2f, 0x25, 0xc0, 0xc7, 0x43, 0x2b, 0x1f, 0x5b]);
    for word in [1u64, 1, 300] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.resize(128, 0);
    bytes.extend_from_slice(b"load\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0GAUGE\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    bytes.extend_from_slice(&600u64.to_le_bytes());
    bytes.extend_from_slice(&0.0f64.to_le_bytes());
    bytes.extend_from_slice(&crate::live::UNKNOWN.to_le_bytes());
    bytes.resize(248, 0);
    bytes.extend_from_slice(b"AVERAGE\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    bytes.extend_from_slice(&3u64.to_le_bytes());
    bytes.extend_from_slice(&2u64.to_le_bytes());
    bytes.extend_from_slice(&0.5f64.to_le_bytes());
    bytes.resize(368, 0);
    bytes.extend_from_slice(&1_000_000_001u64.to_le_bytes());
    bytes.extend_from_slice(&250_000u64.to_le_bytes());
    bytes.extend_from_slice(b"1.5");
    bytes.resize(384 + 32, 0);
    bytes.extend_from_slice(&7u64.to_le_bytes());
    bytes.extend_from_slice(&42.0f64.to_le_bytes());
    bytes.resize(496, 0);
    for word in [3.0f64.to_bits(), 1, 0, 0, 0, 0, 0, 0, 4.0f64.to_bits(), 5.0f64.to_bits()] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(&1u64.to_le_bytes());
    for value in [10.0f64, 20.0, 30.0] {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes
}

fn changed(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = small_file();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn every_field_stands_where_the_format_says() {
    let bytes = small_file();
    let FileParts { rrd, current_rows } = decode(&bytes).unwrap();
    assert_eq!(current_rows, [1]);
    assert_eq!(rrd.archives, [vec![30.0, 10.0, 20.0]]);
    assert_eq!((rrd.definition.step, rrd.definition.rra[0].pdp_per_row), (300, 2));
    assert_eq!(rrd.definition.ds[0].name, "load");
    let shape = rrd.shape();
    let head = shape.split(&rrd.live.words);
    assert_eq!((head.last_update.whole, head.last_update.micros), (1_000_000_001, 250_000));
    assert_eq!(head.pdp[0].last_ds.as_bytes(), b"1.5");
    assert_eq!((head.pdp[0].unknown_units, head.pdp[0].value), (7, 42.0));
    let cell = head.cdp[0];
    assert_eq!((cell.value, cell.unknown_pdps, cell.primary, cell.secondary), (3.0, 1, 4.0, 5.0));
    assert_eq!(encode(&rrd, &current_rows).unwrap(), bytes);
}

#[test]
fn the_live_part_and_the_layout_agree_with_the_whole() {
    let bytes = small_file();
    let head = decode_head(&bytes, bytes.len() as u64).unwrap();
    assert_eq!(head_bytes(&bytes[..128], bytes.len() as u64), Ok(head.layout.header_bytes));
    assert_eq!(head.layout, FileLayout::of(&head.definition));
    assert_eq!(head.layout.live_bytes(), 16 + 112 + 80 + 8);
    assert_eq!(head.layout.archives[0].row_offset(1), bytes.len() as u64 - 16);
    let shape = HeadShape::of(&head.definition);
    let mut live = Vec::new();
    encode_live(&head.definition, &shape, shape.split(&head.words), &head.current_rows, &mut live);
    assert_eq!(live, bytes[head.layout.live_head..head.layout.header_bytes]);
}

#[test]
fn what_is_no_rrd_file_is_refused_in_rrdtools_words() {
    fn check(bytes: &[u8], want: &str) {
        let error = decode(bytes).unwrap_err();
        assert_eq!(error.named("x.rrd").to_string(), want);
    }
    let file = small_file();
    check(&file[..100], "reached EOF while loading header rrd->stat_head");
    check(&file[..200], "reached EOF while loading header rrd->ds_def");
    check(&file[..300], "reached EOF while loading header rrd->rra_def");
    check(&file[..580], "reached EOF while loading header rrd->rra_ptr");
    check(&file[..600], "'x.rrd' is too small (should be 608 bytes)");
    check(&changed(0, b"RRX"), "'x.rrd' is not an RRD file");
    check(&changed(4, b"0006"), "can't handle RRD file version 0006");
    check(&changed(16, &[0]), "This RRD was created on another architecture");
    check(&changed(24, &[0xff; 8]), "reached EOF while loading header rrd->ds_def");
    check(&changed(148, b"GAUGF"), "unknown data acquisition function 'GAUGF'");
    check(&changed(248, b"AVERAGF"), "unknown consolidation function 'AVERAGF'");
}

#[test]
fn damage_has_an_address() {
    fn check(at: usize, bytes: &[u8], want: u64) {
        let error = decode(&changed(at, bytes)).unwrap_err();
        assert!(matches!(error, FileError::Damaged { offset, .. } if offset == want), "{at}: {error:?}");
    }
    check(40, &[0; 8], 40);
    check(40, &[0xff; 8], 40);
    check(128, &[0xff], 128);
    check(272, &[0; 8], 272);
    check(272, &[0xff; 8], 272);
    check(280, &[0; 8], 280);
    check(368, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], 368);
    check(376, &1_000_000u64.to_le_bytes(), 376);
    check(576, &3u64.to_le_bytes(), 576);
}

#[test]
fn no_single_byte_makes_it_panic() {
    let file = small_file();
    for at in 0..file.len() {
        for byte in [0, 1, 0x20, 0x7f, 0x80, 0xff] {
            if let Ok(parts) = decode(&changed(at, &[byte])) {
                encode(&parts.rrd, &parts.current_rows).unwrap();
            }
        }
        let _ = decode(&file[..at]);
    }
}

#[test]
fn what_a_file_cannot_hold_is_said() {
    fn check(change: impl Fn(&mut Definition), want: &str) {
        let mut parts = decode(&small_file()).unwrap();
        change(&mut parts.rrd.definition);
        let error = encode(&parts.rrd, &parts.current_rows).unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
    }
    check(|definition| definition.ds[0].name = "a".repeat(20), "19 characters");
    check(|definition| definition.units_per_second = 1000, "its step is 0.300 s");
    check(|definition| definition.rra[0].row_count = 4, "rows of an archive");
}

#[test]
fn files_that_debian_made_come_back_byte_for_byte() {
    let mut tool = testkit::RrdTool::start().unwrap();
    let ds = "DS:a:GAUGE:20:U:100 DS:b:COUNTER:30:0:U DS:c:COMPUTE:a,b,+,3,*";
    let start = 1_000_000_000;
    for (index, rra) in [
        "RRA:AVERAGE:0.5:1:5 RRA:MAX:0.25:3:7 RRA:LAST:0:2:4",
        "RRA:HWPREDICT:20:0.1:0.0035:5 RRA:MIN:0.9:7:3",
        "RRA:MHWPREDICT:20:0.1:0.0035:5:2 RRA:SEASONAL:5:0.2:1:smoothing-window=0.3",
    ]
    .into_iter()
    .enumerate()
    {
        let ds_more = if index == 1 { "DS:d:DCOUNTER:20:U:U" } else { "" };
        let file = format!("{index}.rrd");
        tool.run(&format!("create {file} --start {start} --step 10 {ds} {ds_more} {rra}")).unwrap();
        let more = if index == 1 { ":7.5" } else { "" };
        for step in 0..60 {
            let bytes = std::fs::read(tool.path(&file)).unwrap();
            let parts = decode(&bytes).unwrap();
            assert!(encode(&parts.rrd, &parts.current_rows).unwrap() == bytes, "{file} after {step}");
            let time = start + step * 9 + 3;
            tool.run(&format!("update {file} {time}.25:{}:{}{more}", step * 7 % 13, step * 1000)).unwrap();
        }
    }
}
