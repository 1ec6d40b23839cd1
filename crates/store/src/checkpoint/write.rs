//! Writes a checkpoint: its frames, compressed, front to back.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{FRAME_BYTES_MAX, FRAME_HEAD_BYTES, KIND_END, Label, MAGIC, RawFrame};
use crate::content::{Content, ContentHasher};
use crate::disk::{Disk, DiskFile};

/// zstd level: 1 compresses heads to about a quarter at 400 MB/s, which takes less time than writing the rest
/// to disk.
const ZSTD_LEVEL: i32 = 1;
/// Bytes buffered before a write.
const WRITE_BYTES: usize = 1 << 20;

/// The size of a frame's body. A checkpoint that no start can read must not replace one that it can.
fn frame_bytes(bytes: usize) -> io::Result<u32> {
    u32::try_from(bytes).ok().filter(|&bytes| bytes <= FRAME_BYTES_MAX).ok_or_else(|| {
        let text = format!(
            "a page of RRDs takes {bytes} bytes, and a checkpoint holds {FRAME_BYTES_MAX}: delete RRDs with long seasons"
        );
        io::Error::new(io::ErrorKind::FileTooLarge, text)
    })
}

/// Writes frames to a new file.
pub struct CheckpointWriter {
    file: Arc<dyn DiskFile>,
    label: Label,
    buffer: Vec<u8>,
    written: u64,
    content: ContentHasher,
}

impl CheckpointWriter {
    /// Creates the file of the checkpoint `label`.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn create(disk: &dyn Disk, path: &Path, label: Label) -> io::Result<Self> {
        let (file, buffer) = (disk.create(path)?, MAGIC.to_vec());
        Ok(CheckpointWriter { file, label, buffer, written: 0, content: ContentHasher::default() })
    }

    /// Adds a frame to the buffer; nothing is written yet.
    ///
    /// # Errors
    /// When the frame cannot be compressed, or is larger than a reader accepts.
    pub fn push(&mut self, frame: &RawFrame) -> io::Result<()> {
        let bytes = frame_bytes(frame.body.len())?;
        let stored = zstd::bulk::compress(&frame.body, ZSTD_LEVEL)?;
        let mut head = Vec::with_capacity(FRAME_HEAD_BYTES);
        let first_id = if frame.kind == KIND_END { self.label.number as u32 } else { frame.first_id };
        for value in
            [frame.kind, stored.len() as u32, bytes, first_id, frame.next_id, frame.position.generation]
        {
            head.extend_from_slice(&value.to_le_bytes());
        }
        head.extend_from_slice(&frame.position.offset.to_le_bytes());
        head.extend_from_slice(&self.label.owner.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head), &stored);
        head.extend_from_slice(&crc.to_le_bytes());
        self.buffer.extend_from_slice(&head);
        self.buffer.extend_from_slice(&stored);
        Ok(())
    }

    /// Writes the buffer once it is large enough. May be retried after a failure.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn write_if_large(&mut self) -> io::Result<()> {
        if self.buffer.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_at(&self.buffer, self.written)?;
        self.content.add(&self.buffer);
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the rest and makes the file durable. Returns its length and hash. May be retried after a failed write.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn finish(&mut self) -> io::Result<(u64, Content)> {
        self.write()?;
        self.file.sync()?;
        Ok((self.written, self.content.content()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_no_reader_accepts_is_not_written() {
        assert_eq!(frame_bytes(FRAME_BYTES_MAX as usize).ok(), Some(FRAME_BYTES_MAX));
        for bytes in [FRAME_BYTES_MAX as usize + 1, u32::MAX as usize, u32::MAX as usize + 2] {
            let error = frame_bytes(bytes).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{bytes}");
            assert!(error.to_string().contains(&bytes.to_string()), "{error}");
        }
    }
}
