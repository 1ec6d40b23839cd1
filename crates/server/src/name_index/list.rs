//! An ordered list of names, with the directories that follow from them.

use crate::budget::Share;

/// Ends each name in the texts: no name contains it.
pub(super) const END: u8 = 0;

/// Names in order of their bytes.
#[derive(Debug)]
pub struct NameList {
    /// All names, each followed by [`END`].
    pub(super) text: Vec<u8>,
    /// The same in lower case (ASCII letters); the same bytes stand at the same places.
    pub(super) lower: Vec<u8>,
    /// Where each name starts, and the end of the text.
    starts: Vec<u32>,
    _share: Share,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Child<'a> {
    /// An RRD: its whole name.
    Rrd(&'a [u8]),
    /// A directory: its whole name with a slash at the end, and how many RRDs are below it.
    Directory(&'a [u8], usize),
}

impl<'a> Child<'a> {
    /// The whole name; a directory's ends with a slash.
    pub fn name(&self) -> &'a [u8] {
        match self {
            Child::Rrd(name) | Child::Directory(name, _) => name,
        }
    }
}

/// Some entries of a directory, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// The entries.
    pub children: Vec<Child<'a>>,
    /// Whether others follow.
    pub more: bool,
    /// RRDs anywhere below the directory.
    pub count: usize,
}

impl NameList {
    /// A list of `names`, which are in order and different; `share` becomes its memory. What does not fit into 4 GB is left out.
    pub fn new(names: &[Vec<u8>], mut share: Share) -> Self {
        let bytes: usize = names.iter().map(|name| name.len() + 1).sum();
        let mut text = Vec::with_capacity(bytes.min(u32::MAX as usize));
        let mut starts = Vec::with_capacity(names.len() + 1);
        starts.push(0);
        for name in names {
            if text.len() + name.len() >= u32::MAX as usize {
                break;
            }
            text.extend_from_slice(name);
            text.push(END);
            starts.push(text.len() as u32);
        }
        let lower = text.to_ascii_lowercase();
        share.resize((2 * text.len() + 4 * starts.len()) as u64);
        NameList { text, lower, starts, _share: share }
    }

    /// Whether it has these names, which are in order, and no others.
    pub fn has_these(&self, names: &[Vec<u8>]) -> bool {
        self.len() == names.len() && names.iter().enumerate().all(|(index, name)| self.name(index) == name)
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A name, by its number.
    pub fn name(&self, index: usize) -> &[u8] {
        &self.text[self.starts[index] as usize..self.starts[index + 1] as usize - 1]
    }

    /// The number of a name, if it is there.
    pub fn position(&self, name: &[u8]) -> Option<usize> {
        let index = self.lower_bound(name, 0);
        (index < self.len() && self.name(index) == name).then_some(index)
    }

    /// Where a name starts in the text.
    pub(super) fn start(&self, index: usize) -> usize {
        self.starts[index] as usize
    }

    /// The number of the name that contains the byte at `place`, which is not before name number `from`.
    pub(super) fn index_at(&self, place: usize, from: usize) -> usize {
        let is_before = |index: usize| self.starts.get(index + 1).is_some_and(|&end| end as usize <= place);
        // Mostly the next few.
        let mut step = 1;
        while is_before(from + step) {
            step *= 2;
        }
        let (low, high) = (from + step / 2, (from + step).min(self.len() - 1));
        low + self.starts[low + 1..=high].partition_point(|&end| end as usize <= place)
    }

    /// The number of the first name that is not less than `name`, among those from number `from` on.
    pub(super) fn lower_bound(&self, name: &[u8], from: usize) -> usize {
        let (mut low, mut high) = (from, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.name(middle) < name { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The number after the last name that begins with `prefix`, which ends with a slash; the search begins at `from`.
    pub(super) fn end_of_directory(&self, prefix: &[u8], from: usize) -> usize {
        let mut after = prefix.to_vec();
        if let Some(last) = after.last_mut() {
            *last += 1;
        }
        self.lower_bound(&after, from)
    }

    /// The numbers of the names below `directory`, which is empty or ends with a slash.
    pub fn below(&self, directory: &[u8]) -> std::ops::Range<usize> {
        if directory.is_empty() {
            return 0..self.len();
        }
        let first = self.lower_bound(directory, 0);
        first..self.end_of_directory(directory, first)
    }

    /// At most `limit` entries of `directory`, which is empty or ends with a slash, after the entry called `after` (empty:
    /// from the first on).
    pub fn page(&self, directory: &[u8], after: &[u8], limit: usize) -> Page<'_> {
        let below = self.below(directory);
        let mut next = match after {
            b"" => below.start,
            directory if directory.ends_with(b"/") => self.end_of_directory(directory, below.start),
            name => {
                let found = self.lower_bound(name, below.start);
                found + usize::from(found < below.end && self.name(found) == name)
            }
        };
        let mut children = Vec::new();
        while next < below.end && children.len() < limit {
            let name = self.name(next);
            let slash = memchr::memchr(b'/', &name[directory.len()..]);
            let Some(slash) = slash else {
                children.push(Child::Rrd(name));
                next += 1;
                continue;
            };
            let child = &name[..directory.len() + slash + 1];
            let end = self.end_of_directory(child, next);
            children.push(Child::Directory(child, end - next));
            next = end;
        }
        Page { children, more: next < below.end, count: below.len() }
    }
}
