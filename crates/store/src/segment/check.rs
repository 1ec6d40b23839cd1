//! Checks a whole segment: every byte of it, once, front to back.

use super::held::ReadScratch;
use super::reader::Segment;
use super::{SegmentError, footer};
use crate::content::{Content, ContentHasher};

/// Bytes of the footer that are read at once.
const FOOTER_BYTES: u64 = 1 << 20;

/// Reads a segment front to back: [`Check::head`], each [`Check::block`] in order, [`Check::end`].
pub struct Check<'a> {
    segment: &'a Segment,
    scratch: ReadScratch,
    hasher: ContentHasher,
    /// Nothing is damaged so far.
    is_whole: bool,
}

impl<'a> Check<'a> {
    /// Begins with nothing read.
    pub fn new(segment: &'a Segment) -> Self {
        let is_whole = segment.gaps().is_empty();
        Check { segment, scratch: ReadScratch::default(), hasher: ContentHasher::default(), is_whole }
    }

    /// Reads the bytes before the first block, which nothing else reads.
    ///
    /// # Errors
    /// When they are damaged or cannot be read.
    pub fn head(&mut self) -> Result<(), SegmentError> {
        let mut head = [0; footer::FILE_HEAD_BYTES];
        let read = self.segment.read_bytes(0, &mut head);
        let checked = read.and_then(|()| {
            footer::check_file_head(&head, self.segment.segment_id(), self.segment.owner())
                .map_err(|fault| fault.in_file(self.segment.name(), 0))
        });
        self.hasher.add(&head);
        self.noted(checked)
    }

    /// Reads and decodes a block.
    ///
    /// # Errors
    /// When it is damaged or cannot be read.
    pub fn block(&mut self, index: usize) -> Result<(), SegmentError> {
        let checked = self.segment.check_block(index, &mut self.scratch);
        self.hasher.add(self.scratch.block());
        self.noted(checked)
    }

    /// Compares the hash of the file with `content`, which the manifest names. What is damaged has another one anyway.
    ///
    /// # Errors
    /// When it differs, or the footer cannot be read.
    pub fn end(mut self, content: Option<Content>) -> Result<(), SegmentError> {
        let Some(want) = content.filter(|_| self.is_whole) else { return Ok(()) };
        let mut at = self.segment.footer_offset();
        let mut bytes = Vec::new();
        while at < self.segment.file_bytes() {
            bytes.resize((self.segment.file_bytes() - at).min(FOOTER_BYTES) as usize, 0);
            self.segment.read_bytes(at, &mut bytes)?;
            self.hasher.add(&bytes);
            at += bytes.len() as u64;
        }
        match self.hasher.content() == want {
            true => Ok(()),
            false => {
                let (file, number) = (self.segment.name().into(), self.segment.segment_id());
                Err(SegmentError::OfCopy { file, number })
            }
        }
    }

    fn noted(&mut self, checked: Result<(), SegmentError>) -> Result<(), SegmentError> {
        self.is_whole &= checked.is_ok();
        checked
    }
}

impl Segment {
    /// Reads the whole file and decodes every run; reports each damage it finds, and a content other than `content`.
    pub fn verify(&self, content: Option<Content>, damage: &mut dyn FnMut(SegmentError)) {
        let mut check = Check::new(self);
        let mut noted = |checked: Result<(), SegmentError>| checked.unwrap_or_else(&mut *damage);
        noted(check.head());
        self.gaps().iter().for_each(|gap| noted(Err(gap.error(self.name()))));
        (0..self.block_count()).for_each(|index| noted(check.block(index)));
        noted(check.end(content));
    }
}
