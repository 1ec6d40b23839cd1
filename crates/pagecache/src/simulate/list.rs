//! Lists of pages through two numbers per page: eight bytes, also for pages that are in no list.

/// A page, or the head of a list, which has a number after those of all pages.
type Index = u32;

/// The neighbours of all pages in their lists.
pub(super) struct Lists {
    links: Vec<(Index, Index)>,
    heads: Index,
}

impl Lists {
    /// `count` empty lists for `pages` pages.
    pub(super) fn new(pages: u32, count: u32) -> Lists {
        let mut links = vec![(0, 0); pages as usize];
        links.extend((pages..pages + count).map(|head| (head, head)));
        Lists { links, heads: pages }
    }

    /// Puts a page that is in no list at the front of a list.
    #[inline]
    pub(super) fn push(&mut self, list: u32, page: Index) {
        let head = self.heads + list;
        let first = self.links[head as usize].1;
        self.links[page as usize] = (head, first);
        self.links[first as usize].0 = page;
        self.links[head as usize].1 = page;
    }

    /// Takes a page out of its list.
    #[inline]
    pub(super) fn remove(&mut self, page: Index) {
        let (before, after) = self.links[page as usize];
        self.links[before as usize].1 = after;
        self.links[after as usize].0 = before;
    }

    /// The page at the end of a list, if there is one.
    #[inline]
    pub(super) fn last(&self, list: u32) -> Option<Index> {
        let last = self.links[(self.heads + list) as usize].0;
        (last < self.heads).then_some(last)
    }

    /// Keeps a number for a page that is in no list.
    #[inline]
    pub(super) fn note(&mut self, page: Index, number: u32) {
        self.links[page as usize].0 = number;
    }

    /// The number that was kept for a page.
    #[inline]
    pub(super) fn noted(&self, page: Index) -> u32 {
        self.links[page as usize].0
    }
}
