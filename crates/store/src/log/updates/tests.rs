use super::*;

type Update = (u32, Timestamp, Vec<u8>);

fn encode(updates: &[Update]) -> Vec<u8> {
    let mut builder = UpdatesBody::default();
    for (id, time, values) in updates {
        builder.push(*id, *time, values);
    }
    assert_eq!(builder.count(), updates.len() as u64);
    let mut body = Vec::new();
    builder.finish(&mut body);
    assert!(builder.is_empty());
    body
}

fn decode_all(body: &[u8]) -> Result<Vec<Update>, DecodeError> {
    let mut updates = Vec::new();
    decode(body, &mut |id, time, values: &[u8]| updates.push((id, time, values.to_vec())))?;
    Ok(updates)
}

fn update(id: u32, whole: i64, micros: u32, values: &str) -> Update {
    (id, Timestamp::new(whole, micros), values.as_bytes().to_vec())
}

#[test]
fn a_body_is_these_bytes() {
    let check = |updates: &[Update], want: &[u8]| {
        assert_eq!(encode(updates), want);
        assert_eq!(decode_all(want).unwrap(), updates);
    };
    check(&[], &[0, 0, 0, 0]);
    // One run of ids, one difference of time, one run of no microseconds; 6 nibbles, end, padding.
    check(&[update(0, 5, 0, "123.45")], &[1, 1, 0x00, 1, 10 << 1 | 1, 1, 0x00, 0x21, 0xe3, 0x54, 0x0f]);
    check(
        &[update(7, 0, 3, "-1:U"), update(8, 0, 3, "2e+3")],
        &[
            2, // Updates.
            2,
            14 << 1 | 1,
            0x00, // Id 7, then one in order.
            1,
            0x02, // Both of time 0.
            2,
            6 << 1 | 1,
            0x00, // 3 microseconds, twice.
            0x1d,
            0xca,
            0xf0,
            0xb2,
            0x1c,
            0xf3, // - 1, : escape, U end, 2 e, escape +, 3 end.
        ],
    );
    // '/' stands between '.' and '0' in ASCII but has no nibble of its own: escape, byte, 2f; end.
    check(&[update(0, 0, 0, "/")], &[1, 1, 0, 1, 0, 1, 0, 0xfc, 0x2f, 0x0f]);
}

#[test]
fn every_byte_string_round_trips() {
    let check = |values: &[u8]| {
        let updates = [update(1, 2, 0, "1"), (2, Timestamp::whole(2), values.to_vec()), update(3, 2, 0, "2")];
        assert_eq!(decode_all(&encode(&updates)).unwrap(), updates, "{values:?}");
    };
    for byte in 0..=255u8 {
        check(&[byte]);
        check(&[b'1', byte, b'2', b'3', byte]);
        check(&[byte; 9]);
    }
    for length in 0..40 {
        check(&b"0123456789:-.e0123456789:-.e0123456789:-.e"[..length]);
        check(&b"U:1.5e+05:nan:-inf:U:3E-4:+7:U:U:NaN:12345"[..length]);
    }
    check(&vec![b'7'; 65536]);
    check(&vec![0xff; 65536]);
}

#[test]
fn ids_and_times_may_jump_anywhere() {
    let mut updates = Vec::new();
    for (id, whole, micros) in [
        (u32::MAX, i64::MAX, 999_999),
        (0, i64::MIN, 0),
        (1, -1, 1),
        (u32::MAX, 1 << 40, 0),
        (u32::MAX - 1, 1 << 40, 0),
        (0, 0, 0),
        (1 << 31, 0, 500_000),
        (0, i64::MIN, 0),
    ] {
        updates.push(update(id, whole, micros, "0"));
    }
    assert_eq!(decode_all(&encode(&updates)).unwrap(), updates);
}

#[test]
fn a_round_in_order_costs_little_more_than_its_text() {
    let updates: Vec<Update> = (0..20_500).map(|id| update(id, 1_000_000_000, 0, "123.45")).collect();
    let bytes = encode(&updates).len();
    assert!(bytes <= 20_500 * 7 / 2 + 20, "{bytes}");
    assert_eq!(decode_all(&encode(&updates)).unwrap(), updates);
}

#[test]
fn random_updates_round_trip() {
    for seed in 1..200u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % limit
        };
        let (mut id, mut time) = (0u32, 1_700_000_000i64);
        let updates: Vec<Update> = (0..below(300))
            .map(|_| {
                id = if below(4) == 0 { below(1 << 32) as u32 } else { id.wrapping_add(1) };
                time += if below(4) == 0 { below(600) as i64 - 300 } else { 0 };
                let micros = if seed % 2 == 0 { below(1_000_000) as u32 } else { 0 };
                let text = (0..below(30)).map(|_| b"0123456789.:-eU+ \xff"[below(18) as usize]).collect();
                (id, Timestamp::new(time, micros), text)
            })
            .collect();
        assert_eq!(decode_all(&encode(&updates)).unwrap(), updates, "seed {seed}");
    }
}

#[test]
fn bad_bodies_are_refused_with_an_address() {
    let check = |body: &[u8], offset, expected| {
        assert_eq!(decode_all(body).unwrap_err(), DecodeError { offset, expected }, "{body:?}");
    };
    check(&[], 0, "the number of updates");
    check(&[1, 5, 0], 1, "the ids");
    check(&[200, 1, 0, 0, 0, 0xff], 0, "no more updates than there are values");
    check(&[1, 0, 0, 0, 0x0f], 2, "a run or a difference");
    check(&[1, 1, 1, 1, 0, 1, 0, 0x0f], 3, "a difference that is not zero");
    check(&[1, 2, 0x80, 0, 1, 0, 1, 0, 0x0f], 3, "a number of 64 bits, in its shortest form");
    check(&[1, 1, 2, 1, 0, 1, 0, 0x0f], 3, "the end of the column");
    check(&[1, 1, 0, 1, 0, 1, 3, 0x0f], 7, "microseconds below a million");
    check(&[1, 1, 0, 1, 0, 1, 0, 0x21], 8, "the end of an update");
    check(&[1, 1, 0, 1, 0, 1, 0, 0x9c, 0xff], 7, "an escaped character");
    check(&[1, 1, 0, 1, 0, 1, 0, 0x1f], 8, "the end");
    check(&[1, 1, 0, 1, 0, 1, 0, 0x0f, 0], 7, "the end");
}
