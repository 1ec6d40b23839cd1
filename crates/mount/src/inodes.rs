//! The numbers that the kernel has for names.
//!
//! A number is the hash of the directory's number and the name, so that a listing can give numbers without keeping them, and
//! a name has the same number after the next mount. Only names that the kernel has looked up are kept. One that is renamed
//! keeps its number.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The number of the root.
pub const ROOT: u64 = 1;

/// The names that the kernel knows.
#[derive(Debug)]
pub struct Inodes {
    nodes: HashMap<u64, Node>,
    /// The numbers of names that are not their hash.
    elsewhere: HashMap<(u64, Box<[u8]>), u64>,
}

#[derive(Debug)]
struct Node {
    /// The directory's number; 0 = the name is gone.
    parent: u64,
    name: Box<[u8]>,
    /// How often the kernel was told the number.
    lookups: u32,
    /// Nodes whose parent this is.
    children: u32,
    /// The version whose bytes the kernel may have in its page cache, or [`NO_PAGES`], or [`OTHER_PAGES`].
    pages: u64,
    /// How many of these bytes it has asked for; [`WHOLE`] = all.
    asked: u32,
    /// What it knows of size and time; 0 = unknown.
    told: u32,
}

/// The names, which threads share.
pub fn lock(inodes: &Mutex<Inodes>) -> MutexGuard<'_, Inodes> {
    inodes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kernel has not yet opened the file, so that it has no pages of it.
const NO_PAGES: u64 = 0;
/// It may have bytes that no version has: a program has written them.
const OTHER_PAGES: u64 = 1;

/// What the kernel has in its page cache of a file that is about to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Nothing: the file is opened for the first time.
    Empty,
    /// Bytes of the file.
    Same,
    /// Bytes that may be others.
    Other,
}

/// As many bytes as the file has.
const WHOLE: u32 = u32::MAX;

/// A short form of something, for comparison: never 0.
fn digest(of: u64) -> u32 {
    ((of ^ (of >> 32)) as u32).max(1)
}

fn hash(parent: u64, name: &[u8]) -> u64 {
    // Small numbers have other meanings; and some programs take those above 63 bits for negative.
    (xxh3_64_with_seed(name, parent) >> 1).max(ROOT + 1)
}

impl Node {
    fn new(parent: u64, name: &[u8]) -> Self {
        Node { parent, name: name.into(), lookups: 1, children: 0, pages: NO_PAGES, asked: 0, told: 0 }
    }
}

impl Default for Inodes {
    fn default() -> Self {
        Inodes { nodes: HashMap::from([(ROOT, Node::new(0, b""))]), elsewhere: HashMap::new() }
    }
}

impl Inodes {
    /// The path of a number, from the root, without a slash at its ends; `None` when the name is gone.
    pub fn path(&self, number: u64) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        let mut at = number;
        while at != ROOT {
            let node = self.nodes.get(&at)?;
            names.push(&*node.name);
            at = node.parent;
        }
        names.reverse();
        Some(names.join(&b'/'))
    }

    /// The path of a name in a directory.
    pub fn path_in(&self, parent: u64, name: &[u8]) -> Option<Vec<u8>> {
        let directory = self.path(parent)?;
        Some(if directory.is_empty() { name.to_vec() } else { [&directory, &b"/"[..], name].concat() })
    }

    /// The number that a name has, or would have.
    pub fn number(&self, parent: u64, name: &[u8]) -> u64 {
        self.find(parent, name).unwrap_or_else(|| self.free(parent, name))
    }

    fn find(&self, parent: u64, name: &[u8]) -> Option<u64> {
        let usual = hash(parent, name);
        if self.nodes.get(&usual).is_some_and(|node| node.parent == parent && *node.name == *name) {
            return Some(usual);
        }
        if self.elsewhere.is_empty() {
            return None;
        }
        self.elsewhere.get(&(parent, name.into())).copied()
    }

    fn free(&self, parent: u64, name: &[u8]) -> u64 {
        let mut number = hash(parent, name);
        while self.nodes.contains_key(&number) {
            number = if number == u64::MAX >> 1 { ROOT + 1 } else { number + 1 };
        }
        number
    }

    /// The number of a name that the kernel is about to be told.
    pub fn learn(&mut self, parent: u64, name: &[u8]) -> u64 {
        if let Some(number) = self.find(parent, name)
            && let Some(node) = self.nodes.get_mut(&number)
        {
            node.lookups += 1;
            return number;
        }
        let number = self.free(parent, name);
        self.nodes.insert(number, Node::new(parent, name));
        self.place(number, parent, name);
        number
    }

    /// Notes that a node has a parent and where its number is found.
    fn place(&mut self, number: u64, parent: u64, name: &[u8]) {
        if let Some(directory) = self.nodes.get_mut(&parent) {
            directory.children += 1;
        }
        if hash(parent, name) != number {
            self.elsewhere.insert((parent, name.into()), number);
        }
    }

    /// The opposite of `place`; the parent may be forgotten then.
    fn displace(&mut self, parent: u64, name: &[u8]) {
        self.elsewhere.remove(&(parent, name.into()));
        if let Some(directory) = self.nodes.get_mut(&parent) {
            directory.children -= 1;
            self.drop_unused(parent);
        }
    }

    /// The kernel has forgotten a number so many times. True when it does not know it any more.
    pub fn forget(&mut self, number: u64, count: u64) -> bool {
        if let Some(node) = self.nodes.get_mut(&number).filter(|_| number != ROOT) {
            node.lookups = node.lookups.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
            self.drop_unused(number);
        }
        !self.nodes.contains_key(&number)
    }

    fn drop_unused(&mut self, number: u64) {
        let unused = |node: &Node| node.lookups == 0 && node.children == 0;
        if number != ROOT
            && self.nodes.get(&number).is_some_and(unused)
            && let Some(node) = self.nodes.remove(&number)
            && node.parent != 0
        {
            self.displace(node.parent, &node.name);
        }
    }

    /// A name is gone; its number stays as long as the kernel knows it. Returns the number.
    pub fn remove(&mut self, parent: u64, name: &[u8]) -> Option<u64> {
        let number = self.find(parent, name)?;
        self.nodes.get_mut(&number)?.parent = 0;
        self.displace(parent, name);
        self.drop_unused(number);
        Some(number)
    }

    /// The name of a number is to have another number when the kernel asks for it the next time: what the kernel has under
    /// this one is no more what the store has.
    pub fn renumber(&mut self, number: u64) {
        if let Some(node) = self.nodes.get(&number).filter(|node| node.parent != 0) {
            let (parent, name) = (node.parent, node.name.clone());
            self.remove(parent, &name);
        }
    }

    /// A name has become another one, which is gone if there was one.
    pub fn rename(&mut self, (from_parent, from): (u64, &[u8]), (to_parent, to): (u64, &[u8])) {
        if (from_parent, from) == (to_parent, to) {
            return;
        }
        self.remove(to_parent, to);
        let Some(number) = self.find(from_parent, from) else { return };
        let Some(node) = self.nodes.get_mut(&number) else { return };
        (node.parent, node.name) = (to_parent, to.into());
        self.place(number, to_parent, to);
        self.displace(from_parent, from);
    }

    /// What the kernel has of a file that is opened: from now on it gets the bytes of this version; `None` = of no version.
    pub fn gets_pages_of(&mut self, number: u64, version: Option<u64>) -> Pages {
        let Some(node) = self.nodes.get_mut(&number) else { return Pages::Other };
        let now = version.unwrap_or(OTHER_PAGES);
        let before = std::mem::replace(&mut node.pages, now);
        if before == now && now > OTHER_PAGES {
            return Pages::Same;
        }
        node.asked = 0;
        if before == NO_PAGES { Pages::Empty } else { Pages::Other }
    }

    /// The kernel has asked for so many of the `all` bytes of a version.
    pub fn asked(&mut self, number: u64, version: u64, bytes: u64, all: u64) {
        let Some(node) = self.nodes.get_mut(&number).filter(|node| node.pages == version) else { return };
        let asked = u64::from(node.asked).saturating_add(bytes);
        node.asked = if asked >= all { WHOLE } else { u32::try_from(asked).unwrap_or(WHOLE) };
    }

    /// The version all of whose bytes the kernel has asked for. It may have dropped some since.
    pub fn whole_pages(&self, number: u64) -> Option<u64> {
        let node = self.nodes.get(&number)?;
        Some(node.pages).filter(|_| node.asked == WHOLE)
    }

    /// The same for a path.
    pub fn whole_pages_at(&self, path: &[u8]) -> Option<u64> {
        let number = path.split(|&byte| byte == b'/').try_fold(ROOT, |parent, name| self.find(parent, name));
        self.whole_pages(number?)
    }

    /// Whether the kernel was last told the same of size and time, given as a digest; it is told now.
    pub fn was_told(&mut self, number: u64, about: u64) -> bool {
        let Some(node) = self.nodes.get_mut(&number) else { return false };
        std::mem::replace(&mut node.told, digest(about)) == digest(about)
    }

    /// How many names are kept.
    #[cfg(test)]
    fn count(&self) -> usize {
        self.nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_renames_of_directories() {
        let mut inodes = Inodes::default();
        let a = inodes.learn(ROOT, b"a");
        let file = inodes.learn(a, b"x.rrd");
        assert_eq!(inodes.path(file).as_deref(), Some(&b"a/x.rrd"[..]));
        assert_eq!(inodes.path(ROOT).as_deref(), Some(&b""[..]));
        inodes.rename((ROOT, b"a"), (ROOT, b"b"));
        assert_eq!(inodes.path(file).as_deref(), Some(&b"b/x.rrd"[..]));
        // Both keep their numbers, and another `a` gets another one.
        assert_eq!((inodes.number(ROOT, b"b"), inodes.number(a, b"x.rrd")), (a, file));
        let again = inodes.learn(ROOT, b"a");
        assert_ne!(again, a);
        assert_eq!(inodes.number(ROOT, b"a"), again);
        assert_eq!(inodes.path_in(again, b"y").as_deref(), Some(&b"a/y"[..]));
    }

    #[test]
    fn a_removed_name_keeps_its_number_until_the_kernel_forgets_it() {
        let mut inodes = Inodes::default();
        let first = inodes.learn(ROOT, b"x");
        assert_eq!(inodes.learn(ROOT, b"x"), first);
        assert_eq!(inodes.remove(ROOT, b"x"), Some(first));
        assert_eq!(inodes.path(first), None);
        let second = inodes.learn(ROOT, b"x");
        assert_ne!(first, second);
        assert!(!inodes.forget(first, 1));
        assert!(inodes.forget(first, 1));
        assert_eq!(inodes.number(ROOT, b"x"), second);
        assert!(inodes.forget(second, 1));
        assert_eq!((inodes.count(), inodes.elsewhere.len()), (1, 0));
    }

    #[test]
    fn a_directory_is_kept_for_the_names_in_it() {
        let mut inodes = Inodes::default();
        let a = inodes.learn(ROOT, b"a");
        let file = inodes.learn(a, b"x");
        inodes.forget(a, 1);
        assert_eq!(inodes.path(file).as_deref(), Some(&b"a/x"[..]));
        inodes.forget(file, 1);
        assert_eq!(inodes.count(), 1);
    }

    #[test]
    fn a_rename_replaces() {
        let mut inodes = Inodes::default();
        let (x, y) = (inodes.learn(ROOT, b"x"), inodes.learn(ROOT, b"y"));
        inodes.rename((ROOT, b"x"), (ROOT, b"y"));
        assert_eq!((inodes.path(x).as_deref(), inodes.path(y)), (Some(&b"y"[..]), None));
        inodes.rename((ROOT, b"y"), (ROOT, b"y"));
        assert_eq!(inodes.number(ROOT, b"y"), x);
        inodes.forget(x, 1);
        inodes.forget(y, 1);
        assert_eq!((inodes.count(), inodes.elsewhere.len()), (1, 0));
    }

    #[test]
    fn a_name_can_get_another_number() {
        let mut inodes = Inodes::default();
        let x = inodes.learn(ROOT, b"x");
        inodes.gets_pages_of(x, Some(7));
        inodes.renumber(x);
        inodes.renumber(x);
        assert_eq!(inodes.path(x), None);
        let again = inodes.learn(ROOT, b"x");
        assert_ne!(again, x);
        assert_eq!(inodes.gets_pages_of(again, Some(7)), Pages::Empty);
        assert!(inodes.forget(x, 1) && inodes.forget(again, 1));
        assert_eq!((inodes.count(), inodes.elsewhere.len()), (1, 0));
    }

    #[test]
    fn pages_are_of_one_version() {
        let mut inodes = Inodes::default();
        let x = inodes.learn(ROOT, b"x");
        for (version, pages) in [
            (Some(7), Pages::Empty),
            (Some(7), Pages::Same),
            (Some(8), Pages::Other),
            (None, Pages::Other),
            (None, Pages::Other),
            (Some(9), Pages::Other),
        ] {
            assert_eq!(inodes.gets_pages_of(x, version), pages);
        }
        inodes.asked(x, 9, 60, 100);
        inodes.asked(x, 8, 40, 100);
        assert_eq!(inodes.whole_pages(x), None);
        inodes.asked(x, 9, 40, 100);
        assert_eq!(inodes.gets_pages_of(x, Some(9)), Pages::Same);
        assert_eq!((inodes.whole_pages(x), inodes.whole_pages_at(b"x")), (Some(9), Some(9)));
        assert_eq!(inodes.whole_pages_at(b"x/y"), None);
        assert_eq!(inodes.gets_pages_of(x, Some(10)), Pages::Other);
        assert_eq!(inodes.whole_pages(x), None);
        assert!(!inodes.was_told(x, 3));
        assert!(inodes.was_told(x, 3));
    }
}
