//! Prometheus' remote read: the request, and answers as samples or as a stream of chunks. Messages are protocol buffers compressed by
//! snappy.

mod message;
mod snappy;
mod xor;

pub use message::{
    Condition, ConditionKind, DecodeError, ReadQuery, ReadRequest, Samples, chunk_frame, samples_answer,
};
pub use snappy::{compress, decompress};

/// Entry point of the fuzz target: any bytes are a request or an error.
pub fn fuzz_remote_read(data: &[u8]) {
    if let Ok(bytes) = decompress(data, 1 << 20) {
        let _ = ReadRequest::decode(&bytes);
        assert_eq!(decompress(&compress(&bytes), 1 << 20).as_ref(), Ok(&bytes));
    }
    let _ = ReadRequest::decode(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzzing_by_seeds() {
        let mut random = oracle::random::Random::new(1);
        let whole = [8, 1, 10, 18, 8, 100, 16, 200, 1, 26, 9, 8, 2, 18, 1, b'a', 26, 2, b'b', b'c'];
        for _ in 0..50_000 {
            let mut bytes = compress(&whole);
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.below(256) as u8;
            }
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            fuzz_remote_read(&bytes);
        }
    }
}
