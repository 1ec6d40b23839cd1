//! One list: the page that was not touched for the longest time goes first.

use super::Cache;
use super::list::Lists;

/// Such a cache.
pub(super) struct LruCache {
    lists: Lists,
    cached: Vec<bool>,
    room: u32,
}

impl LruCache {
    /// An empty cache for files of `pages` pages in all, with room for `room` of them.
    pub(super) fn new(pages: u32, room: u32) -> LruCache {
        LruCache { lists: Lists::new(pages, 1), cached: vec![false; pages as usize], room }
    }
}

impl Cache for LruCache {
    #[inline]
    fn touch(&mut self, page: u32, _: bool) -> bool {
        let hit = self.cached[page as usize];
        if hit {
            self.lists.remove(page);
            self.lists.push(0, page);
        } else {
            self.bring(page);
        }
        hit
    }

    fn bring(&mut self, page: u32) -> bool {
        if self.cached[page as usize] {
            return false;
        }
        if self.room > 0 {
            self.room -= 1;
        } else if let Some(last) = self.lists.last(0) {
            self.lists.remove(last);
            self.cached[last as usize] = false;
        }
        self.cached[page as usize] = true;
        self.lists.push(0, page);
        true
    }
}
