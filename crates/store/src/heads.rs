//! The live heads of a group: fixed-size runs of 64-bit words in large blocks.
//!
//! The slot of a deleted head is reused. Cost: exactly [`rrd::live::HeadShape::word_count`] words per RRD,
//! plus at most one block of slack per group.

/// Bytes of a block. Guessed: large enough that a million heads take only a few thousand allocations. The first one
/// starts with a single head and doubles, because a client may make any number of groups of one RRD.
const BLOCK_BYTES: usize = 64 * 1024;

/// Index of a head in its group.
pub type HeadIndex = u32;

/// The heads of one group.
#[derive(Debug)]
pub struct Heads {
    words_per_head: usize,
    heads_per_block: usize,
    blocks: Vec<Box<[u64]>>,
    used: u32,
    free: Vec<HeadIndex>,
}

impl Heads {
    /// An empty set of heads of `words_per_head` words each.
    pub fn new(words_per_head: usize) -> Self {
        let heads_per_block = (BLOCK_BYTES / 8 / words_per_head.max(1)).max(1);
        Heads { words_per_head, heads_per_block, blocks: Vec::new(), used: 0, free: Vec::new() }
    }

    /// Stores a head and returns its index; `bytes` must have the group's head size.
    pub fn insert(&mut self, bytes: &[u8]) -> HeadIndex {
        let index = self.free.pop().unwrap_or_else(|| {
            if self.used as usize == self.capacity() {
                self.grow();
            }
            self.used += 1;
            self.used - 1
        });
        bytemuck::cast_slice_mut(self.get_mut(index)).copy_from_slice(bytes);
        index
    }

    /// Heads that fit into the blocks.
    fn capacity(&self) -> usize {
        let first = self.blocks.first().map_or(0, |block| block.len() / self.words_per_head.max(1));
        first + self.blocks.len().saturating_sub(1) * self.heads_per_block
    }

    fn grow(&mut self) {
        match &mut self.blocks[..] {
            [] => self.blocks.push(vec![0; self.words_per_head].into()),
            [first] if first.len() < self.words_per_head * self.heads_per_block => {
                let mut words = std::mem::take(first).into_vec();
                words.resize((2 * words.len()).min(self.words_per_head * self.heads_per_block), 0);
                *first = words.into();
            }
            _ => self.blocks.push(vec![0; self.words_per_head * self.heads_per_block].into()),
        }
    }

    /// Frees a head's slot; the last one frees all blocks.
    pub fn remove(&mut self, index: HeadIndex) {
        self.free.push(index);
        if self.free.len() == self.used as usize {
            *self = Heads::new(self.words_per_head);
        }
    }

    /// A head.
    #[inline]
    pub fn get(&self, index: HeadIndex) -> &[u64] {
        let (block, from) = self.place(index);
        &self.blocks[block][from..from + self.words_per_head]
    }

    /// A head, mutable.
    #[inline]
    pub fn get_mut(&mut self, index: HeadIndex) -> &mut [u64] {
        let (block, from) = self.place(index);
        &mut self.blocks[block][from..from + self.words_per_head]
    }

    #[inline]
    fn place(&self, index: HeadIndex) -> (usize, usize) {
        let index = index as usize;
        (index / self.heads_per_block, index % self.heads_per_block * self.words_per_head)
    }

    /// Bytes of all blocks.
    pub fn bytes(&self) -> usize {
        self.capacity() * self.words_per_head * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_keep_their_words_and_slots_are_reused() {
        let mut heads = Heads::new(3);
        let places: Vec<_> =
            (0..50_000u64).map(|n| heads.insert(bytemuck::bytes_of(&[n, n + 1, n + 2]))).collect();
        assert!(places.iter().all(|&at| heads.get(at) == [at as u64, at as u64 + 1, at as u64 + 2]));
        heads.remove(places[17]);
        assert_eq!(heads.insert(bytemuck::bytes_of(&[9u64, 9, 9])), places[17]);
        assert!(heads.bytes() >= 50_000 * 24);
        (0..50_000).filter(|place| *place != 5).for_each(|place| heads.remove(place));
        assert_eq!(heads.get(5), [5, 6, 7]);
        heads.remove(5);
        assert_eq!(heads.bytes(), 0);
    }

    #[test]
    fn a_group_of_one_takes_one_head() {
        let mut heads = Heads::new(70);
        let first = heads.insert(bytemuck::cast_slice(&[1u64; 70]));
        assert_eq!(heads.bytes(), 70 * 8);
        assert_eq!(heads.get(first), [1; 70]);
    }
}
