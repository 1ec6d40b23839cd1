//! Bounds of the text protocol: each number, its reason, and what happens there.

/// Longest request line in bytes, the line feed left out. rrdcached stops at 4,096; a CREATE of a thousand
/// sources or an UPDATE of a day of readings needs more. A longer line is answered with an error and
/// skipped up to its line feed.
pub const LINE_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a `.rrd` file in one word of base64, which is a third longer: half of the longest line, and a
/// multiple of three, so that only the last piece is filled up.
pub const PIECE_BYTES: usize = 96 * 1024;

/// Bytes of error texts a BATCH keeps; what fails after that is counted in one closing line. 16 MiB hold
/// about 200,000 messages, more than a client can be expected to read.
pub const BATCH_ERROR_BYTES_MAX: usize = 16 << 20;

/// Longest line of an answer a client takes in, in bytes: a row of the most data sources an RRD may have,
/// 4,096 of 25 bytes, several times over. A longer one is an error.
pub const ANSWER_LINE_BYTES_MAX: usize = 1 << 20;

/// Largest answer a client takes in, in lines: a fetch of a year of seconds fits.
pub const ANSWER_LINES_MAX: usize = 64 << 20;
