use rrd::time::Timestamp;

use super::super::super::scan;
use super::super::AGENT_BODY_BYTES_MAX;
use super::*;

/// What a sink received, as lines.
#[derive(Default)]
struct Seen(Vec<String>);

impl BlockSink for Seen {
    fn begin_context(&mut self) {
        self.0.push("context".to_string());
    }

    fn definition(&mut self, definition: RrdDefinition<'_>) {
        self.0.push(format!("{} {} {:?}", definition.step, definition.starts_before, definition.args));
    }

    fn rrd(&mut self, definition: u32, assignment: u64, name: &[u8], values: usize) {
        self.0.push(format!("{definition} {assignment} {} {values}", String::from_utf8_lossy(name)));
    }

    fn reading(&mut self, rrd: u32, time: Timestamp, values: &[BlockValue<'_>]) {
        self.0.push(format!("{rrd} {}.{} {values:?}", time.whole, time.micros));
    }
}

fn body(frame: &[u8]) -> &[u8] {
    let (frame, used) = scan(frame, AGENT_BODY_BYTES_MAX).unwrap().unwrap();
    assert_eq!(used, frame.body.len() + 12);
    frame.body
}

/// Two blocks of one context.
fn two_blocks() -> [Vec<u8>; 2] {
    let mut writer = BlockWriter::default();
    let args = ["DS:a:COUNTER:20:0:U".to_string(), "RRA:LAST:0.5:1:5".to_string()];
    let definition = writer.add_definition(10, 1, &args).unwrap();
    let a = writer.add_rrd(definition, 0, b"a.rrd", 1).unwrap();
    let b = writer.add_rrd(definition, 7 << 40, b"b.rrd", 7).unwrap();
    writer.push(a, Timestamp::new(1_700_000_000, 5), [BlockValue::Unsigned(u64::MAX)]);
    let values = [
        BlockValue::Unknown,
        BlockValue::Signed(-3),
        BlockValue::Float(0.1),
        BlockValue::Float(-0.0),
        BlockValue::Float(7.0),
        BlockValue::Text(b"1e5"),
        BlockValue::Dropped(300),
    ];
    writer.push(b, Timestamp::whole(-5), values);
    let mut blocks = [Vec::new(), Vec::new()];
    writer.finish(41, &mut blocks[0]).unwrap();
    let c = writer.add_rrd(definition, 0, b"c.rrd", 1).unwrap();
    writer.push(c, Timestamp::whole(1_700_000_010), [BlockValue::Float(f64::NEG_INFINITY)]);
    writer.push(a, Timestamp::whole(1_700_000_010), [BlockValue::Unsigned(3)]);
    writer.push(b, Timestamp::whole(1_700_000_010), [BlockValue::Float(0.2)]);
    writer.finish(42, &mut blocks[1]).unwrap();
    blocks
}

#[test]
fn blocks_of_a_context_round_trip() {
    let [first, second] = two_blocks();
    let mut reader = BlockReader::default();
    let mut seen = Seen::default();
    reader.read(body(&first), &mut seen).unwrap();
    let want = [
        "context",
        r#"10 1 ["DS:a:COUNTER:20:0:U", "RRA:LAST:0.5:1:5"]"#,
        "0 0 a.rrd 1",
        "0 7696581394432 b.rrd 7",
        "0 1700000000.5 [Unsigned(18446744073709551615)]",
        "1 -5.0 [Unknown, Signed(-3), Float(0.1), Float(-0.0), Float(7.0), Text([49, 101, 53]), Dropped(300)]",
    ];
    assert_eq!(seen.0, want);
    let mut seen = Seen::default();
    reader.read(body(&second), &mut seen).unwrap();
    let want = [
        "0 0 c.rrd 1",
        "2 1700000010.0 [Float(-inf)]",
        "0 1700000010.0 [Unsigned(3)]",
        "1 1700000010.0 [Float(0.2), Unknown, Unknown, Unknown, Unknown, Unknown, Unknown]",
    ];
    assert_eq!(seen.0, want);
    let head = BlockHead::parse(body(&second)).unwrap();
    assert_eq!((head.sequence, head.begins_context), (42, false));
}

#[test]
fn a_block_without_its_context_is_refused() {
    let [_, second] = two_blocks();
    let read = BlockReader::default().read(body(&second), &mut Seen::default());
    assert_eq!(read, Err(BlockError::Content("a first block without a context")));
}

#[test]
fn every_changed_byte_is_noticed() {
    let [first, _] = two_blocks();
    let first = body(&first).to_vec();
    for at in 0..first.len() {
        let mut bad = first.clone();
        bad[at] ^= 0x40;
        let read = BlockReader::default().read(&bad, &mut Seen::default());
        assert!(read.is_err(), "byte {at}");
    }
}

#[test]
fn counters_take_the_bytes_of_their_differences() {
    let mut writer = BlockWriter::default();
    let definition = writer.add_definition(60, 60, &[]).unwrap();
    let rrds: Vec<u32> = (0..1000)
        .map(|n| writer.add_rrd(definition, 0, format!("net/router/{n}.rrd").as_bytes(), 2).unwrap())
        .collect();
    let mut bytes = Vec::new();
    for round in 0..3u64 {
        for &rrd in &rrds {
            // Some ten thousand more each time, of numbers that differ.
            let seed = u64::from(rrd).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let step = (seed >> 40) % 60_000 + (seed >> (20 + round)) % 500;
            let counter = (seed >> 20) + round * step;
            let values = [BlockValue::Unsigned(counter), BlockValue::Unsigned(counter / 3)];
            writer.push(rrd, Timestamp::whole(1_700_000_000 + 60 * round as i64), values);
        }
        let mut block = Vec::new();
        writer.finish(round + 1, &mut block).unwrap();
        bytes.push(block.len());
    }
    assert!(bytes[2] < 2000 * 3, "{bytes:?} bytes of blocks of 2,000 values");
}

#[test]
fn a_context_has_limits() {
    let mut writer = BlockWriter::default();
    let definition = writer.add_definition(1, 1, &[]).unwrap();
    assert_eq!(writer.add_rrd(definition, 0, b"a", 0), None);
    assert_eq!(writer.add_rrd(definition, 0, b"a", VALUES_MAX + 1), None);
    let mut last = LastValues::default();
    let added = (0..CONTEXT_VALUES_MAX).take_while(|_| last.add(VALUES_MAX).is_some()).count();
    assert_eq!(added, CONTEXT_VALUES_MAX / VALUES_MAX);
}

#[test]
fn a_text_is_one_word() {
    for text in [&b"1:2"[..], b"1 2", b"1\n", b"\xff"] {
        let mut writer = BlockWriter::default();
        let definition = writer.add_definition(1, 1, &[]).unwrap();
        let rrd = writer.add_rrd(definition, 0, b"a", 1).unwrap();
        writer.push(rrd, Timestamp::whole(1), [BlockValue::Text(text)]);
        let mut block = Vec::new();
        writer.finish(1, &mut block).unwrap();
        let read = BlockReader::default().read(body(&block), &mut Seen::default());
        assert_eq!(read, Err(BlockError::Content("a text")), "{text:?}");
    }
}
