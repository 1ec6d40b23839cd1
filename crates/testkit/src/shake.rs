//! Random but reproducible changes to bytes: fuzzing with a stable compiler.

/// Calls `target` with `good`, then `rounds` times with mutations of it: bits and bytes flipped, inserted, cut off
/// and repeated. When the target panics, prints the seed of the round.
pub fn shake(good: &[u8], rounds: u64, target: impl Fn(&[u8])) {
    target(good);
    for seed in 1..=rounds {
        let bytes = shaken(good, seed);
        let report = Report(seed);
        target(&bytes);
        std::mem::forget(report);
    }
}

/// Prints its round when that unwinds.
struct Report(u64);

impl Drop for Report {
    fn drop(&mut self) {
        eprintln!("shake: the seed was {}", self.0);
    }
}

/// `good` mutated by a seed, as in a round of [`shake`].
pub fn shaken(good: &[u8], seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit.max(1) as u64) as usize
    };
    let mut bytes = good.to_vec();
    for _ in 0..1 + below(4) {
        let at = below(bytes.len());
        match below(7) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, below(256) as u8),
            2 => {
                let part: Vec<u8> = bytes[at..].iter().take(1 + below(24)).copied().collect();
                let to = below(bytes.len());
                bytes.splice(to..to, part);
            }
            3 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(5)],
            4 if at < bytes.len() => bytes[at] = b"0123456789:,-+.eENU% \n<>/"[below(25)],
            _ if at < bytes.len() => bytes[at] ^= 1 << below(8),
            _ => bytes.push(below(256) as u8),
        }
    }
    bytes
}
