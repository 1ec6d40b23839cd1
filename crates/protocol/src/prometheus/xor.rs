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
        let mut left = count;
        while left > 0 {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            let taken = left.min(self.free);
            left -= taken;
            self.free -= taken;
            let bits = (value >> left) as u8 & (0xff >> (8 - taken));
            if let Some(last) = self.bytes.last_mut() {
                *last |= bits << self.free;
            }
        }
    }

    fn push_varint(&mut self, value: u64) {
        let mut bytes = Vec::new();
        super::wire::put_varint(&mut bytes, value);
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

    /// Reads bits, the highest first.
    struct Reader<'a>(&'a [u8], usize);

    impl Reader<'_> {
        fn take(&mut self, count: u32) -> u64 {
            (0..count).fold(0, |value, _| {
                let bit = self.0[self.1 / 8] >> (7 - self.1 % 8) & 1;
                self.1 += 1;
                value << 1 | u64::from(bit)
            })
        }

        fn varint(&mut self) -> u64 {
            let (mut value, mut shift) = (0, 0);
            loop {
                let byte = self.take(8);
                value |= (byte & 127) << shift;
                shift += 7;
                if byte < 128 {
                    return value;
                }
            }
        }

        /// A number with its sign, as `push_difference` writes it.
        fn difference(&mut self) -> i64 {
            let width = match (0..4).take_while(|_| self.take(1) == 1).count() {
                0 => return 0,
                1 => 14,
                2 => 17,
                3 => 20,
                _ => return self.take(64) as i64,
            };
            let value = self.take(width) as i64;
            if value > 1 << (width - 1) { value - (1 << width) } else { value }
        }
    }

    /// The samples of a chunk, as the description of Prometheus' format has it.
    fn read(chunk: &[u8]) -> Vec<(i64, u64)> {
        let mut bits = Reader(chunk, 0);
        let count = bits.take(16);
        let zigzag = bits.varint();
        let (mut time, mut delta) = ((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64), 0);
        let mut value = bits.take(64);
        let (mut before, mut width) = (0, 0);
        let mut all = vec![(time, value)];
        for index in 1..count {
            delta = if index == 1 { bits.varint() as i64 } else { delta + bits.difference() };
            time += delta;
            if bits.take(1) == 1 {
                if bits.take(1) == 1 {
                    before = bits.take(5) as u32;
                    width = match bits.take(6) as u32 {
                        0 => 64,
                        width => width,
                    };
                }
                value ^= bits.take(width) << (64 - before - width);
            }
            all.push((time, value));
        }
        all
    }

    #[test]
    fn what_is_written_is_read() {
        testkit::random::each_seed(300, |seed| {
            let mut random = testkit::random::Random::new(seed);
            let mut time = random.below(1 << 41) as i64 - (1 << 40);
            let samples: Vec<(i64, f64)> = (0..random.between(1, SAMPLES_MAX as u64))
                .map(|_| {
                    let size = [1, 1, 10_000, 60_000, 500_000, 1 << 40][random.below(6) as usize];
                    time += 1 + random.below(size) as i64;
                    let value = match random.below(4) {
                        0 => f64::from_bits(random.next()),
                        1 => random.below(10) as f64,
                        2 => -0.1 * random.below(1000) as f64,
                        _ => 5.0,
                    };
                    (time, value)
                })
                .collect();
            let want: Vec<_> = samples.iter().map(|(time, value)| (*time, value.to_bits())).collect();
            assert_eq!(read(&chunk(&samples)), want);
        });
    }
}
