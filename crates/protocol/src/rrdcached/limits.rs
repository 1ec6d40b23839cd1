//! Limits of the text protocol: each number, its reason, and what happens when it is reached.

/// Longest request line in bytes, without the line feed. rrdcached stops at 4,096; a CREATE with a thousand
/// sources or an UPDATE with a day of readings needs more. A longer line is answered with an error and
/// skipped up to its line feed.
pub const LINE_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a `.rrd` file in one base64 word, which is a third longer: half of the longest line, and a
/// multiple of three, so that only the last one is padded.
pub const PIECE_BYTES: usize = 96 * 1024;

/// Bytes of error texts that a BATCH keeps; later failures are only counted, in a final line. 16 MiB hold
/// about 200,000 messages, more than a client can be expected to read.
pub const BATCH_ERROR_BYTES_MAX: usize = 16 << 20;

/// Longest line of an answer that a client accepts, in bytes: several times a row of the most data sources an
/// RRD may have, 4,096 of 25 bytes. A longer one is an error.
pub const ANSWER_LINE_BYTES_MAX: usize = 1 << 20;

/// Largest answer that a client accepts, in lines: a fetch of a year of seconds fits.
pub const ANSWER_LINES_MAX: usize = 64 << 20;

/// The longest text that is taken for a token, in bytes; ours have 47.
pub const TOKEN_BYTES_MAX: usize = 256;
