//! A sorted set of names in one text: their bytes and one more for each.

use std::cmp::Ordering;

use store::name::RrdName;

/// Stands after each name; no name has one.
const END: u8 = 0;

/// Names of RRDs, sorted by their bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NameSet(Vec<u8>);

impl NameSet {
    /// Names that are sorted already.
    pub(super) fn of(names: &[Vec<u8>]) -> NameSet {
        let mut text = Vec::with_capacity(names.iter().map(|name| name.len() + 1).sum());
        for name in names {
            text.extend_from_slice(name);
            text.push(END);
        }
        NameSet(text)
    }

    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split_inclusive(|&byte| byte == END).map(|name| &name[..name.len() - 1])
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.iter().filter(|&&byte| byte == END).count()
    }

    /// The names in order; without what no RRD can be called.
    pub(super) fn iter(&self) -> impl Iterator<Item = RrdName> {
        self.texts().filter_map(|name| RrdName::new(name).ok())
    }

    /// Calls `see` with each name that only one of the two has, in order.
    pub(super) fn differences(&self, other: &NameSet, see: &mut dyn FnMut(&RrdName)) {
        let mut see = |name: &[u8]| RrdName::new(name).iter().for_each(&mut *see);
        let (mut ours, mut theirs) = (self.texts().peekable(), other.texts().peekable());
        loop {
            let order = match (ours.peek(), theirs.peek()) {
                (Some(one), Some(another)) => one.cmp(another),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return,
            };
            match order {
                Ordering::Less => ours.next().into_iter().for_each(&mut see),
                Ordering::Greater => theirs.next().into_iter().for_each(&mut see),
                Ordering::Equal => drop((ours.next(), theirs.next())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_what_one_has() {
        let set = |names: &[&str]| {
            NameSet::of(&names.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>())
        };
        let seen = |one: &[&str], other: &[&str]| {
            let mut seen = Vec::new();
            set(one).differences(&set(other), &mut |name| seen.push(name.to_string()));
            seen
        };
        assert_eq!(seen(&[], &[]), [""; 0]);
        assert_eq!(seen(&["a", "b/c", "d"], &["a", "b/c", "d"]), [""; 0]);
        assert_eq!(seen(&["a", "b", "d"], &["b", "c", "e", "f"]), ["a", "c", "d", "e", "f"]);
        assert_eq!(seen(&[], &["x"]), ["x"]);
        assert_eq!(set(&["a b", "c"]).iter().map(|name| name.to_string()).collect::<Vec<_>>(), ["a b", "c"]);
    }
}
