//! The segments of a shard: an immutable set that readers share and that is replaced as a whole.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Advice, Disk, DiskFile, Mode};
use crate::manifest::SegmentName;
use crate::segment::{Expected, ReadAt, Segment, SegmentError};

/// Class of freshly flushed segments: rows of every retention together.
pub const CLASS_MIXED: u8 = u8::MAX;

/// A segment of a shard.
pub struct SegmentFile {
    /// As the manifest names it. A shard never assigns a number twice.
    pub name: SegmentName,
    /// Its file, relative to the disk's root.
    pub path: PathBuf,
    /// The open file.
    pub segment: Segment,
}

impl std::fmt::Debug for SegmentFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SegmentName { number, level, class, .. } = self.name;
        write!(f, "segment {number} level {level} class {class}")
    }
}

/// Bytes that a segment's sink buffers before it writes.
const SINK_BYTES: usize = 1 << 20;

/// The file of a segment that is being written, front to back.
pub struct DiskSink {
    file: Arc<dyn DiskFile>,
    buffer: Vec<u8>,
    written: u64,
}

impl DiskSink {
    /// A sink for an empty file.
    pub fn new(file: Arc<dyn DiskFile>) -> Self {
        DiskSink { file, buffer: Vec::with_capacity(SINK_BYTES), written: 0 }
    }
}

impl Write for DiskSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= SINK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// A segment's file, for reading.
struct DiskReader(Arc<dyn DiskFile>);

impl ReadAt for DiskReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self.0.read_at(buffer, offset)? {
            count if count == buffer.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn bytes(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn release(&self, range: std::ops::Range<u64>) {
        self.0.advise(range.start, range.end - range.start, Advice::DontNeed);
    }
}

/// A segment's file, for readers that do not need its footer.
///
/// # Errors
/// When it cannot be opened.
pub fn disk_reader(disk: &dyn Disk, path: &Path) -> Result<Box<dyn ReadAt>, SegmentError> {
    let failed = |error| SegmentError::Io { file: path.display().to_string(), offset: 0, error };
    Ok(Box::new(DiskReader(disk.open(path, Mode::Read).map_err(failed)?)))
}

/// Opens a segment for reading, without read-ahead, because blocks are read at random.
///
/// # Errors
/// When it cannot be opened or read, or its footer is damaged.
pub fn open_segment(disk: &dyn Disk, path: &Path) -> Result<Segment, SegmentError> {
    Segment::open(at_random(disk, path)?, &path.display().to_string())
}

/// Opens a segment that a manifest names, as far as it can be read; returns its damage too.
///
/// # Errors
/// As of [`Segment::open_expected`].
pub fn open_named(
    disk: &dyn Disk,
    path: &Path,
    expected: &Expected,
) -> Result<(Segment, Vec<SegmentError>), SegmentError> {
    Segment::open_expected(at_random(disk, path)?, &path.display().to_string(), expected)
}

fn at_random(disk: &dyn Disk, path: &Path) -> Result<Box<dyn ReadAt>, SegmentError> {
    let failed = |error| SegmentError::Io { file: path.display().to_string(), offset: 0, error };
    let file = disk.open(path, Mode::Read).map_err(failed)?;
    file.advise(0, 0, Advice::Random);
    Ok(Box::new(DiskReader(file)))
}

/// Converts a segment's error for the store's threads, keeping the kind of its cause.
pub fn into_io(error: SegmentError) -> io::Error {
    let kind = match &error {
        SegmentError::Io { error, .. } => error.kind(),
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error.to_string())
}

/// All segments of a shard, ordered by number.
#[derive(Debug, Default)]
pub struct SegmentSet {
    /// The files.
    pub files: Vec<Arc<SegmentFile>>,
}

impl SegmentSet {
    /// This set without `gone` and with `new`.
    pub fn replace(&self, gone: &[u64], new: Vec<Arc<SegmentFile>>) -> SegmentSet {
        let mut files: Vec<_> =
            self.files.iter().filter(|file| !gone.contains(&file.name.number)).cloned().chain(new).collect();
        files.sort_by_key(|file| file.name.number);
        SegmentSet { files }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.name.bytes).sum()
    }
}

/// The class of a retention: quarters of a power of two, 19 % apart. Sources whose rows are kept for about
/// the same time share a class, so that their segments expire as a whole.
pub fn retention_class(retention_seconds: u64) -> u8 {
    let seconds = retention_seconds.max(1);
    let power = seconds.ilog2();
    // The two bits after the leading one split [2^p, 2^(p+1)) into four.
    let quarter = if power >= 2 { (seconds >> (power - 2)) & 3 } else { 0 };
    (power * 4 + quarter as u32).min(u32::from(CLASS_MIXED) - 1) as u8
}

/// The shortest retention of a class in seconds.
pub fn class_seconds(class: u8) -> u64 {
    let (power, quarter) = (u32::from(class) / 4, u64::from(class) % 4);
    if power >= 2 { (4 + quarter) << (power - 2) } else { 1 << power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_classes_are_ordered_and_narrow() {
        let mut last = 0;
        for seconds in (0..4_000_000u64).step_by(997).chain([u64::MAX / 2]) {
            let class = retention_class(seconds);
            assert!(class >= last && class < CLASS_MIXED);
            last = class;
            let from = class_seconds(class);
            assert!(
                from <= seconds.max(1) && seconds as f64 <= from as f64 * 1.251,
                "{seconds} {class} {from}"
            );
        }
        // The last quarter shares a class with the previous one.
        assert!(retention_class(u64::MAX) < CLASS_MIXED);
    }
}
