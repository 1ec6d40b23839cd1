//! Prometheus' remote read (the request, and answers as samples or as a stream of chunks) and remote write (requests of both versions).
//! Messages are protocol buffers compressed by snappy.

mod message;
mod snappy;
mod wire;
mod write;
mod xor;

pub use message::{
    Condition, ConditionKind, DecodeError, ReadQuery, ReadRequest, Samples, chunk_frame, samples_answer,
    write_request,
};
pub use snappy::{compress, decompress, length};
pub use write::{MetricType, SeriesFault, WritePart, WriteSeries, WriteVersion, visit_write};

/// Entry point of the fuzz target: any bytes are a request or an error.
pub fn fuzz_remote_read(data: &[u8]) {
    if let Ok(bytes) = decompress(data, 1 << 20) {
        let _ = ReadRequest::decode(&bytes);
        assert_eq!(decompress(&compress(&bytes), 1 << 20).as_ref(), Ok(&bytes));
    }
    let _ = ReadRequest::decode(data);
}

/// Entry point of the fuzz target: any bytes are a request of both versions or an error.
pub fn fuzz_remote_write(data: &[u8]) {
    for version in [WriteVersion::One, WriteVersion::Two] {
        let _ = visit_write(version, data, |part| {
            if let WritePart::Series(series) = part {
                assert!(series.labels.len() <= data.len());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzzing_by_seeds() {
        let mut random = testkit::random::Random::new(1);
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

    #[test]
    fn writes_by_seeds() {
        let mut random = testkit::random::Random::new(2);
        let one = b"\x0a\x1e\x0a\x0d\x0a\x08__name__\x12\x01x\x12\x0c\x09\0\0\0\0\0\0\0\x40\x10\xe8\x07\x1a\x05\x08\x01\x12\x01x";
        let two = b"\x22\0\x22\x08__name__\x22\x01x\x2a\x16\x0a\x02\x01\x02\x12\x0c\x09\0\0\0\0\0\0\0\x40\x10\xe8\x07\x2a\x02\x08\x01";
        for round in 0..50_000 {
            let mut bytes = if round % 2 == 0 { one.to_vec() } else { two.to_vec() };
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.below(256) as u8;
            }
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            fuzz_remote_write(&bytes);
        }
    }
}
