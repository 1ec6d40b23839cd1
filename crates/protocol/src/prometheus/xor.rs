//! Prometheus' chunks of samples: differences of differences of times, and exclusive ors of values, bit by bit.

/// The most samples of a chunk.
pub const SAMPLES_MAX: usize = 120;

/// Bits, the highest first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    /// Bits of the last byte that are free.
    free: u32,
}

impl Bits {
    fn push(&mut self, value: u64, count: u32) {
        for index in (0..count).rev() {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            self.free -= 1;
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> index & 1) as u8) << self.free;
            }
        }
    }

    fn push_varint(&mut self, value: u64) {
        let mut bytes = Vec::new();
        super::message::put_varint(&mut bytes, value);
        bytes.into_iter().for_each(|byte| self.push(u64::from(byte), 8));
    }
}

/// A chunk of at most [`SAMPLES_MAX`] samples: times in milliseconds, ascending, and values.
pub fn chunk(samples: &[(i64, f64)]) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.push(samples.len() as u64, 16);
    let (mut time, mut delta, mut value) = (0i64, 0i64, 0u64);
    let mut window: Option<(u32, u32)> = None;
    for (index, (next, number)) in samples.iter().enumerate() {
        match index {
            0 => {
                bits.push_varint((*next << 1 ^ *next >> 63) as u64);
                bits.push(number.to_bits(), 64);
            }
            _ => {
                let new_delta = next - time;
                match index {
                    1 => bits.push_varint(new_delta as u64),
                    _ => push_difference(&mut bits, new_delta - delta),
                }
                delta = new_delta;
                push_value(&mut bits, value ^ number.to_bits(), &mut window);
            }
        }
        (time, value) = (*next, number.to_bits());
    }
    bits.bytes
}

/// The difference between two distances of times.
fn push_difference(bits: &mut Bits, difference: i64) {
    let fits = |width: u32| (-(1i64 << (width - 1)) + 1..=1i64 << (width - 1)).contains(&difference);
    match difference {
        0 => bits.push(0, 1),
        _ if fits(14) => {
            bits.push(0b10, 2);
            bits.push(difference as u64, 14);
        }
        _ if fits(17) => {
            bits.push(0b110, 3);
            bits.push(difference as u64, 17);
        }
        _ if fits(20) => {
            bits.push(0b1110, 4);
            bits.push(difference as u64, 20);
        }
        _ => {
            bits.push(0b1111, 4);
            bits.push(difference as u64, 64);
        }
    }
}

/// The bits in which a value differs from the one before; `window` is where the last ones were: zeros before and after.
fn push_value(bits: &mut Bits, different: u64, window: &mut Option<(u32, u32)>) {
    if different == 0 {
        return bits.push(0, 1);
    }
    bits.push(1, 1);
    let (before, after) = (different.leading_zeros().min(31), different.trailing_zeros());
    if let Some((known_before, known_after)) = *window
        && before >= known_before
        && after >= known_after
    {
        bits.push(0, 1);
        bits.push(different >> known_after, 64 - known_before - known_after);
        return;
    }
    *window = Some((before, after));
    let count = 64 - before - after;
    bits.push(1, 1);
    bits.push(u64::from(before), 5);
    // 64 does not fit and is written as 0.
    bits.push(u64::from(count & 63), 6);
    bits.push(different >> after, count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_at_equal_distances_take_two_bits() {
        let samples: Vec<(i64, f64)> = (0..4).map(|n| (n * 1000, 1.0)).collect();
        let chunk = chunk(&samples);
        // 16 bits of count, 8 of time, 64 of value, 16 of the first distance, 1 of value, then 2 each.
        assert_eq!(chunk.len(), (16 + 8 + 64 + 16 + 1 + 4_usize).div_ceil(8));
        assert_eq!(chunk[..3], [0, 4, 0]);
    }
}
