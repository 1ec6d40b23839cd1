//! The cost of writing a number: `cargo bench -p roundel-rrd --bench format`.
//!
//! Numbers as rows hold them: fractions of rates (W1), averages of many, integers, and very small and very large
//! ones, which the standard library formats.

use std::hint::black_box;
use std::time::Instant;

/// Numbers per kind.
const COUNT: usize = 10_000;
/// Rounds per kind; the fastest counts.
const ROUNDS: usize = 50;

fn main() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 12
    };
    let mut kind = |title: &str, mut make: Box<dyn FnMut(u64) -> f64>| {
        let values: Vec<f64> = (0..COUNT).map(|_| make(next())).collect();
        for digits in [roundel_rrd::format::DIGITS_TOOL, roundel_rrd::format::DIGITS_FETCH] {
            let mut out = Vec::with_capacity(COUNT * 32);
            let round = |_| {
                out.clear();
                let start = Instant::now();
                values
                    .iter()
                    .for_each(|&value| roundel_rrd::format::push_e(&mut out, black_box(value), digits));
                black_box(&out);
                start.elapsed().as_nanos() as f64 / COUNT as f64
            };
            let fastest = (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min);
            println!("{title:24} {digits:2} digits: {fastest:6.1} ns a number");
        }
    };
    kind("hundredths", Box::new(|word| (word % 5_000_000) as f64 / 100.0));
    kind("averages of 7", Box::new(|word| (word % 5_000_000) as f64 / 700.0));
    kind("averages of 223, small", Box::new(|word| (word % 5_000_000) as f64 / 2.23e9));
    kind("integers", Box::new(|word| (word % 5_000_000) as f64));
    kind("large integers", Box::new(|word| (word << 8) as f64));
    kind("any bits", Box::new(|word| f64::from_bits(word << 11 | word >> 20).abs().min(f64::MAX)));
}
