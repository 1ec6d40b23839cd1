//! snappy's block format, in which messages travel, with a limit on what comes out of it.

use super::DecodeError;

/// What `data` stands for, at most `bytes_max`.
///
/// # Errors
/// When it is broken, or longer.
pub fn decompress(data: &[u8], bytes_max: usize) -> Result<Vec<u8>, DecodeError> {
    // What it says of its length is checked before anything is allocated.
    match snap::raw::decompress_len(data) {
        Ok(length) if length > bytes_max => Err(DecodeError::TooLong),
        Ok(_) => snap::raw::Decoder::new().decompress_vec(data).map_err(|_| DecodeError::Broken),
        Err(_) => Err(DecodeError::Broken),
    }
}

/// How many bytes `data` says that it stands for.
///
/// # Errors
/// When it is broken.
pub fn length(data: &[u8]) -> Result<usize, DecodeError> {
    snap::raw::decompress_len(data).map_err(|_| DecodeError::Broken)
}

/// `data` in that format.
pub fn compress(data: &[u8]) -> Vec<u8> {
    // It fails for four gigabytes only, and answers are limited to far less.
    snap::raw::Encoder::new().compress_vec(data).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_comes_back_and_a_bomb_does_not() {
        for data in [&b""[..], b"a", &[7; 100_000], &(0..=255).cycle().take(70_000).collect::<Vec<u8>>()] {
            let packed = compress(data);
            assert_eq!(decompress(&packed, data.len()), Ok(data.to_vec()));
            assert_eq!(decompress(&packed, data.len().saturating_sub(1)).is_ok(), data.is_empty());
            for cut in 0..packed.len().min(50) {
                assert!(decompress(&packed[..cut], data.len()).is_err());
            }
        }
        // It claims four gigabytes.
        assert_eq!(decompress(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0], 1 << 20), Err(DecodeError::TooLong));
    }
}
