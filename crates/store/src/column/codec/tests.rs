//! Columns both ways, to the byte and for any bits.

use super::*;

fn hint(step: u64, pdp_per_row: u64) -> ColumnHint {
    ColumnHint { units_per_second: 1, step, pdp_per_row }
}

fn round_trip(values: &[f64], hint: &ColumnHint, scratch: &mut Scratch) -> Vec<u8> {
    let mut bytes = vec![0xaa];
    encode(values, hint, scratch, &mut bytes);
    let mut back = vec![7.0];
    assert_eq!(decode(&bytes[1..], values.len(), &mut back), Ok(bytes.len() - 1));
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
    assert_eq!(bits(&back[1..]), bits(values));
    bytes.split_off(1)
}

#[test]
fn the_encoding_of_columns_is_fixed() {
    let check = |values: &[f64], hint: ColumnHint, want: &[u8]| {
        assert_eq!(round_trip(values, &hint, &mut Scratch::default()), want, "{values:?}");
        let mut back = Vec::new();
        assert_eq!(decode(want, values.len(), &mut back), Ok(want.len()));
    };
    let plain = hint(300, 1);
    check(&[UNKNOWN; 5], plain, &[1]);
    check(&[0.0; 100], plain, &[16, 0, 0, 0]);
    check(&[12.5; 7], plain, &[16, 33, 125, 0, 2]);
    check(&[std::f64::consts::PI; 3], plain, &[2, 24, 45, 68, 84, 251, 33, 9, 64]);
    check(&[-0.0], plain, &[17, 0, 0, 0, 0, 1]);
    check(&[0.01, 0.02, 0.04], plain, &[16, 2, 2, 2, 52]);
    // A rate of 7, 8 and 10 in 300 s, made as RRDtool makes it.
    let rate = |count: f64| count / 300.0 * 300.0 / 300.0;
    check(&[rate(7.0), rate(8.0), rate(10.0)], plain, &[16, 16, 172, 2, 2, 14, 52]);
    let seven = |sum: f64| (sum / 7.0).next_up();
    check(
        &[seven(100.0), seven(101.0), seven(103.0), seven(90.0)],
        hint(10, 7),
        &[17, 16, 7, 4, 180, 1, 186, 13, 0, 2],
    );
    check(&[1000.0, 2000.0, 4000.0, 7000.0], plain, &[16, 32, 232, 7, 3, 2, 200, 12]);
    check(
        &[1.0, 2.0, 3.0, 4.0, f64::NEG_INFINITY, 6.0, 7.0, 8.0, 9.0],
        plain,
        &[18, 0, 130, 0, 21, 86, 2, 1, 0, 8, 0, 0, 0, 0, 0, 0, 240, 255],
    );
    check(&[f64::from(0.1f32), f64::from(0.3f32), f64::from(0.7f32)], plain, &[28, 1, 3, 2, 144, 1]);
    check(&[1.0, 2.0, UNKNOWN, UNKNOWN, UNKNOWN, 3.0], plain, &[8, 35, 16, 0, 2, 2, 36]);
    check(
        &[1.0, UNKNOWN, 2.0, UNKNOWN, 3.0, UNKNOWN, 4.0, UNKNOWN, 5.0],
        plain,
        &[8, 85, 1, 16, 0, 128, 2, 2],
    );
    check(&[1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0], plain, &[6, 2, 2, 6, 2, 16, 0, 4, 2, 128]);
    check(
        &[2f64.sqrt(), 3f64.sqrt()],
        plain,
        &[3, 205, 59, 127, 102, 158, 160, 246, 63, 170, 76, 88, 232, 122, 182, 251, 63],
    );
    check(
        &[1e300, 2e-300, -5e7],
        plain,
        &[
            3, 156, 117, 0, 136, 60, 228, 55, 126, 89, 243, 248, 194, 31, 110, 181, 1, 0, 0, 0, 0, 132, 215,
            135, 193,
        ],
    );
    let late = |cents: f64, micros: f64| (cents * 10_000_000.0 + micros) / 1e9;
    check(
        &[late(5000.0, 3.0), late(5001.0, -7.0), late(5003.0, 5.0), late(5000.0, 0.0)],
        hint(10, 1),
        &[16, 87, 100, 128, 173, 226, 4, 2, 144, 78, 52, 4, 13, 10, 124],
    );
}

#[test]
fn all_bit_patterns_round_trip() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let specials =
        [0.0, -0.0, f64::NAN, -f64::NAN, UNKNOWN, f64::INFINITY, f64::MIN_POSITIVE, 5e-324, f64::MAX];
    let payload = f64::from_bits(0x7ff0_0000_0000_0001);
    for effort in [Effort::Quick, Effort::Dense, Effort::Thorough] {
        let mut scratch = Scratch::new(effort);
        for round in 0..3000 {
            let count = 1 + (random() % [3, 20, 300, 2000][round % 4]) as usize;
            let kind = random() % 8;
            let sparse = random() % 40;
            let values: Vec<f64> = (0..count)
                .map(|index| {
                    let number = random();
                    if sparse < 8 && number % (sparse + 2) == 0 {
                        return if number % 3 == 0 { payload } else { specials[(number >> 32) as usize % 9] };
                    }
                    match kind {
                        0 => f64::from_bits(number),
                        1 => (number % 100_000) as f64 / 100.0,
                        2 => (number % 1_000_000) as f64 / 300.0 / 24.0,
                        3 => UNKNOWN,
                        4 => (index / 17) as f64,
                        5 => f64::from((number % 1000) as f32 / 8.1),
                        6 => (number as i64) as f64,
                        _ => (number % 1000) as f64 * 1e7 + (number >> 50) as f64 / 1e9,
                    }
                })
                .collect();
            let hint = hint(
                [1, 10, 300, 86_400][(random() % 4) as usize],
                [1, 6, 24, 2635][(random() % 4) as usize],
            );
            let bytes = round_trip(&values, &hint, &mut scratch);
            assert!(bytes.len() <= 1 + 8 * count, "{} bytes for {count} values", bytes.len());
        }
    }
}
