//! Search in names: words in any order, any case.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use args::pattern;
use memchr::memmem::Finder;

use super::list::{END, NameList};

/// A name or directory that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit<'a> {
    /// The whole name; a directory's ends with a slash.
    pub name: &'a [u8],
    /// RRDs in it: 1, or all below a directory.
    pub count: usize,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// The best hits, best first.
    pub hits: Vec<Hit<'a>>,
    /// All hits.
    pub total: usize,
}

/// Bytes of a pattern that do not stand for themselves.
const SPECIAL: &[u8] = b"*?[]\\";

/// The longest part of a pattern that every name it takes contains. What stands in brackets is no such part.
fn longest_literal(pattern: &[u8]) -> &[u8] {
    if pattern.contains(&b'[') || pattern.contains(&b'\\') {
        let end = pattern.iter().position(|byte| SPECIAL.contains(byte)).unwrap_or(pattern.len());
        return &pattern[..end];
    }
    let parts = pattern.split(|byte| SPECIAL.contains(byte));
    parts.max_by_key(|part| part.len()).unwrap_or_default()
}

/// The names that a pattern takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matching<'a> {
    /// The first ones, in order.
    pub hits: Vec<&'a [u8]>,
    /// How many there are.
    pub total: usize,
}

/// How good a hit is; less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Words that are neither a whole part of the path nor its beginning.
    inside: u8,
    /// Words that are not a whole part of the path.
    partial: u8,
    depth: u8,
    length: u16,
    index: u32,
}

struct Ranked<'a> {
    rank: Rank,
    hit: Hit<'a>,
}

impl PartialEq for Ranked<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}
impl Eq for Ranked<'_> {}
impl PartialOrd for Ranked<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ranked<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl NameList {
    /// The best `limit` names and directories in which all words of `text` occur. Where they occur in the path of a directory, that
    /// directory is the hit and not everything in it.
    pub fn search(&self, text: &[u8], limit: usize) -> Found<'_> {
        let text = text.to_ascii_lowercase();
        let mut words: Vec<&[u8]> = text
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty() && !word.contains(&END))
            .collect();
        // The longest is probably the rarest.
        words.sort_by_key(|word| Reverse(word.len()));
        let Some((first, others)) = words.split_first() else { return Found { hits: Vec::new(), total: 0 } };
        let (finder, others): (_, Vec<_>) = (Finder::new(first), others.iter().map(Finder::new).collect());
        let mut best: BinaryHeap<Ranked<'_>> = BinaryHeap::new();
        let (mut place, mut index, mut total) = (0, 0, 0);
        while let Some(found) = finder.find(&self.lower[place..]) {
            index = self.index_at(place + found, index);
            let next = match self.hit(index, first, place + found - self.start(index), &others) {
                Some((ranked, next)) => {
                    total += 1;
                    if best.len() < limit {
                        best.push(ranked);
                    } else if let Some(mut worst) = best.peek_mut()
                        && ranked < *worst
                    {
                        *worst = ranked;
                    }
                    next
                }
                None => index + 1,
            };
            if next >= self.len() {
                break;
            }
            (place, index) = (self.start(next), next);
        }
        Found { hits: best.into_sorted_vec().into_iter().map(|ranked| ranked.hit).collect(), total }
    }

    /// The first `limit` names that a pattern (`args::pattern`) takes. A star takes slashes too; `.rrd` at the end need not be given.
    pub fn matching(&self, text: &[u8], limit: usize) -> Matching<'_> {
        let rarest = Finder::new(longest_literal(text));
        let start = text.iter().take_while(|byte| !SPECIAL.contains(byte)).count();
        let mut found = Matching { hits: Vec::new(), total: 0 };
        let mut index = self.lower_bound(&text[..start], 0);
        // Few names have the literal; only they are compared with the pattern.
        while index < self.len()
            && let Some(place) = rarest.find(&self.text[self.start(index)..])
        {
            index = self.index_at(self.start(index) + place, index);
            let name = self.name(index);
            if !name.starts_with(&text[..start]) && name > &text[..start] {
                break;
            }
            let stem = name.strip_suffix(b".rrd").unwrap_or(name);
            if pattern::matches(text, name) || pattern::matches(text, stem) {
                found.total += 1;
                if found.hits.len() < limit {
                    found.hits.push(name);
                }
            }
            index += 1;
        }
        found
    }

    /// The hit in name number `index`, in which `first` occurs at `place`, and the number of the next name; `None` when
    /// another word does not occur.
    fn hit(
        &self,
        index: usize,
        first: &[u8],
        place: usize,
        others: &[Finder<'_>],
    ) -> Option<(Ranked<'_>, usize)> {
        let name = self.name(index);
        let lower = &self.lower[self.start(index)..][..name.len()];
        let mut rank = Rank { inside: 0, partial: 0, depth: 0, length: 0, index: index as u32 };
        let mut end = rank.count(lower, place, first.len());
        for word in others {
            end = end.max(rank.count(lower, word.find(lower)?, word.needle().len()));
        }
        let (name, next) = match memchr::memchr(b'/', &name[end..]) {
            Some(slash) => {
                let directory = &name[..end + slash + 1];
                (directory, self.end_of_directory(directory, index))
            }
            None => (name, index + 1),
        };
        rank.depth = memchr::memchr_iter(b'/', &name[..name.len() - 1]).count().min(255) as u8;
        rank.length = name.len().min(usize::from(u16::MAX)) as u16;
        Some((Ranked { rank, hit: Hit { name, count: next - index } }, next))
    }
}

impl Rank {
    /// Counts a word of `length` bytes at `place` in `name`; returns where it ends.
    fn count(&mut self, name: &[u8], place: usize, length: usize) -> usize {
        let end = place + length;
        let begins = place == 0 || name[place - 1] == b'/';
        let ends = matches!(name.get(end), None | Some(b'/')) || &name[end..] == b".rrd";
        self.inside = self.inside.saturating_add(u8::from(!begins));
        self.partial = self.partial.saturating_add(u8::from(!(begins && ends)));
        end
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::{Child, Page};
    use super::*;
    use crate::budget::MemoryBudget;

    fn list(names: &[&str]) -> NameList {
        let mut names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        names.sort();
        NameList::new(&names, MemoryBudget::new(1 << 20).share())
    }

    const NAMES: [&str; 8] = [
        "localhost/cpu.rrd",
        "localhost/cpu-0.rrd",
        "localhost/load.rrd",
        "net/Router1/Gi0%2F1.rrd",
        "net/Router1/Gi0%2F2.rrd",
        "net/Router1-b/Gi0%2F1.rrd",
        "net/router10/eth0.rrd",
        "load.rrd",
    ];

    #[track_caller]
    fn check(text: &str, limit: usize, want: &[&str], total: usize) {
        let list = list(&NAMES);
        let found = list.search(text.as_bytes(), limit);
        let names: Vec<_> = found.hits.iter().map(|hit| String::from_utf8_lossy(hit.name)).collect();
        assert_eq!(names, want, "{text}");
        assert_eq!(found.total, total, "{text}");
    }

    #[test]
    fn whole_parts_come_before_beginnings_and_beginnings_before_the_rest() {
        check("load", 9, &["load.rrd", "localhost/load.rrd"], 2);
        check("cpu", 9, &["localhost/cpu.rrd", "localhost/cpu-0.rrd"], 2);
        check("0", 2, &["net/router10/", "localhost/cpu-0.rrd"], 5);
        check("router1", 9, &["net/Router1/", "net/router10/", "net/Router1-b/"], 3);
    }

    #[test]
    fn all_words_must_occur_in_any_order_and_case() {
        check("GI0%2f1 router1", 9, &["net/Router1/Gi0%2F1.rrd", "net/Router1-b/Gi0%2F1.rrd"], 2);
        check("router1 net", 1, &["net/Router1/"], 3);
        check("router1 cpu", 9, &[], 0);
        check("  ", 9, &[], 0);
        check("\0", 9, &[], 0);
    }

    #[test]
    fn every_name_is_found_by_itself_among_random_ones() {
        let names: Vec<String> = (0..3_000u32)
            .map(|n| format!("d{}/e{}/f{n}.rrd", n % 7, n.wrapping_mul(2_654_435_761) % 97))
            .collect();
        let list = list(&names.iter().map(String::as_str).collect::<Vec<_>>());
        for name in &names {
            let found = list.search(name.to_uppercase().as_bytes(), 3);
            assert_eq!(found.hits[0], Hit { name: name.as_bytes(), count: 1 }, "{name}");
        }
        let counts: usize = list.search(b"e1", 10_000).hits.iter().map(|hit| hit.count).sum();
        assert_eq!(counts, names.iter().filter(|name| name.contains("e1")).count());
    }

    #[test]
    fn patterns_take_whole_names_with_or_without_rrd() {
        let list = list(&NAMES);
        let names = |text: &str| {
            let hits = list.matching(text.as_bytes(), 2).hits;
            hits.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("localhost/cpu*"), ["localhost/cpu-0.rrd", "localhost/cpu.rrd"]);
        assert_eq!(names("*load"), ["load.rrd", "localhost/load.rrd"]);
        assert_eq!(names("net/*/eth?.rrd"), ["net/router10/eth0.rrd"]);
        assert_eq!(list.matching(b"*", 2).total, 8);
        assert_eq!(names("x*"), Vec::<String>::new());
        assert_eq!(names("local*/[k-m]*ad"), ["localhost/load.rrd"]);
        assert_eq!(names("*/*outer1?/*"), ["net/router10/eth0.rrd"]);
    }

    #[test]
    fn pages_of_a_directory_join_without_gaps() {
        let list = list(&NAMES);
        let page = |directory: &str, after: &[u8], limit| list.page(directory.as_bytes(), after, limit);
        let want = Page {
            children: vec![Child::Rrd(b"load.rrd"), Child::Directory(b"localhost/", 3)],
            more: true,
            count: 8,
        };
        assert_eq!(page("", b"", 2), want);
        assert_eq!(page("", b"localhost/", 2).children, [Child::Directory(b"net/", 4)]);
        assert!(!page("", b"localhost/", 2).more);
        let mut after = Vec::new();
        let mut names = Vec::new();
        loop {
            let page = list.page(b"net/", &after, 1);
            let Some(child) = page.children.first() else { break };
            after = child.name().to_vec();
            names.push(String::from_utf8(after.clone()).unwrap());
        }
        assert_eq!(names, ["net/Router1-b/", "net/Router1/", "net/router10/"]);
        assert_eq!(page("none/", b"", 9), Page { children: vec![], more: false, count: 0 });
        assert_eq!(page("net/Router1/", b"net/Router1/A", 9).children.len(), 2, "a name that is not there");
    }
}
