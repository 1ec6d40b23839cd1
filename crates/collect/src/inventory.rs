//! The RRDs that a collector feeds: their names and how they are made, each with a small number as its handle.

use std::collections::HashMap;
use std::sync::Arc;

/// How an RRD is made if it does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RrdSpec {
    /// Its step in seconds.
    pub step: u64,
    /// How many seconds before its first reading it starts (`--start`).
    pub starts_before: u64,
    /// The `DS:` and `RRA:` arguments of `rrdcreate(1)`, and words of [`ExistingRule`].
    pub args: Vec<String>,
}

/// What holds for an RRD that is there already. Rules are words among [`RrdSpec::args`], so that they travel from agents with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingRule {
    /// Its data sources get the types and maxima of the arguments, as in MRTG's first round.
    Tune,
    /// It takes no reading that is later than its last one by more than so many seconds, as with MRTG's `MaxAge`.
    MaxAge(u64),
}

/// What the word of an [`ExistingRule`] begins with.
const EXISTING: &str = "EXISTING:";

impl ExistingRule {
    /// The rule as a word: `EXISTING:tune` or `EXISTING:max-age:SECONDS`.
    pub fn word(self) -> String {
        match self {
            ExistingRule::Tune => format!("{EXISTING}tune"),
            ExistingRule::MaxAge(seconds) => format!("{EXISTING}max-age:{seconds}"),
        }
    }

    /// The rule that a word is.
    fn parse(word: &str) -> Option<Self> {
        match word.strip_prefix(EXISTING)? {
            "tune" => Some(ExistingRule::Tune),
            rule => Some(ExistingRule::MaxAge(rule.strip_prefix("max-age:")?.parse().ok()?)),
        }
    }
}

impl RrdSpec {
    /// The arguments of `rrdcreate(1)`. A word that begins like a rule and is none that is known is among them, so that it is refused.
    pub fn create_args(&self) -> Vec<String> {
        self.args.iter().filter(|arg| ExistingRule::parse(arg).is_none()).cloned().collect()
    }

    /// Whether data sources that are there get the types and maxima of the arguments.
    pub fn tunes(&self) -> bool {
        self.args.iter().any(|arg| ExistingRule::parse(arg) == Some(ExistingRule::Tune))
    }

    /// How many seconds a reading may be later than the last one.
    pub fn max_age(&self) -> Option<u64> {
        self.args.iter().find_map(|arg| match ExistingRule::parse(arg)? {
            ExistingRule::MaxAge(seconds) => Some(seconds),
            ExistingRule::Tune => None,
        })
    }
}

/// An RRD of an [`Inventory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RrdId(u32);

impl RrdId {
    /// Its position in the inventory, from 0, without gaps.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
struct Known {
    name: Box<[u8]>,
    spec: Arc<RrdSpec>,
    assignment: u64,
}

/// The inventory is full: its limit protects the store from a sender that makes up names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InventoryFull {
    /// How many RRDs it may hold.
    pub limit: usize,
}

impl std::fmt::Display for InventoryFull {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "this collector already feeds {} RRDs, its limit", self.limit)
    }
}

impl std::error::Error for InventoryFull {}

/// The RRDs of one collector. An entry is never removed, so an [`RrdId`] stays valid.
#[derive(Clone, Debug)]
pub struct Inventory {
    by_name: HashMap<Box<[u8]>, RrdId>,
    known: Vec<Known>,
    limit: usize,
}

impl Inventory {
    /// An empty inventory for at most `limit` RRDs.
    pub fn new(limit: usize) -> Self {
        Inventory { by_name: HashMap::new(), known: Vec::new(), limit: limit.min(u32::MAX as usize) }
    }

    /// The RRD `name` (relative, in normal form, with its `.rrd`), made by `spec` when it is new.
    ///
    /// # Errors
    /// When it is new and the inventory is full.
    pub fn find_or_add(
        &mut self,
        name: &[u8],
        spec: impl FnOnce() -> Arc<RrdSpec>,
    ) -> Result<RrdId, InventoryFull> {
        match self.by_name.get(name) {
            Some(&id) => Ok(id),
            None => self.add(name, spec()),
        }
    }

    /// The RRD `name`, made by `spec`; where the name is known with another one, that entry is left alone and this is a new one, so
    /// that it is looked at once more whether the RRD is there and takes the readings.
    ///
    /// # Errors
    /// When it is new and the inventory is full.
    pub fn find_or_define(&mut self, name: &[u8], spec: Arc<RrdSpec>) -> Result<RrdId, InventoryFull> {
        match self.by_name.get(name) {
            Some(&id) if *self.spec(id) == spec => Ok(id),
            _ => self.add(name, spec),
        }
    }

    fn add(&mut self, name: &[u8], spec: Arc<RrdSpec>) -> Result<RrdId, InventoryFull> {
        if self.known.len() >= self.limit {
            return Err(InventoryFull { limit: self.limit });
        }
        let id = RrdId(self.known.len() as u32);
        self.known.push(Known { name: name.into(), spec, assignment: 0 });
        self.by_name.insert(name.into(), id);
        Ok(id)
    }

    /// True when it holds the RRD `name`.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.by_name.contains_key(name)
    }

    /// The name of an RRD.
    pub fn name(&self, id: RrdId) -> &[u8] {
        &self.known[id.index()].name
    }

    /// How an RRD is made.
    pub fn spec(&self, id: RrdId) -> &Arc<RrdSpec> {
        &self.known[id.index()].spec
    }

    /// The assignment of work that an RRD is polled for (`docs/protocol/agents.md`); 0 without one.
    pub fn assignment(&self, id: RrdId) -> u64 {
        self.known[id.index()].assignment
    }

    /// From now on, an RRD is polled for this assignment.
    pub fn assign(&mut self, id: RrdId, assignment: u64) {
        self.known[id.index()].assignment = assignment;
    }

    /// How many RRDs there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_words_that_rrdtool_does_not_get() {
        let args = ["DS:a:GAUGE:1:0:U", "EXISTING:tune", "EXISTING:max-age:60", "EXISTING:other"];
        let spec = RrdSpec { step: 1, starts_before: 1, args: args.map(String::from).to_vec() };
        assert_eq!(spec.create_args(), ["DS:a:GAUGE:1:0:U", "EXISTING:other"]);
        assert_eq!((spec.tunes(), spec.max_age()), (true, Some(60)));
        for rule in [ExistingRule::Tune, ExistingRule::MaxAge(7)] {
            assert_eq!(ExistingRule::parse(&rule.word()), Some(rule));
        }
        let plain = RrdSpec {
            step: 1,
            starts_before: 1,
            args: args[..1].iter().map(|arg| arg.to_string()).collect(),
        };
        assert_eq!((plain.tunes(), plain.max_age()), (false, None));
    }

    #[test]
    fn a_name_is_one_rrd_and_the_limit_holds() {
        let mut inventory = Inventory::new(2);
        let spec = |step| move || Arc::new(RrdSpec { step, starts_before: 1, args: Vec::new() });
        let first = inventory.find_or_add(b"a", spec(1)).unwrap();
        let second = inventory.find_or_add(b"b", spec(2)).unwrap();
        assert_eq!(inventory.find_or_add(b"a", spec(3)), Ok(first));
        assert_eq!(inventory.find_or_add(b"c", spec(3)), Err(InventoryFull { limit: 2 }));
        assert_eq!((inventory.name(second), inventory.spec(second).step), (&b"b"[..], 2));
        assert_eq!(inventory.len(), 2);
        assert_eq!(inventory.find_or_define(b"b", spec(2)()), Ok(second));
        assert_eq!(inventory.find_or_define(b"b", spec(3)()), Err(InventoryFull { limit: 2 }));
        inventory.limit = 3;
        let third = inventory.find_or_define(b"b", spec(3)()).unwrap();
        assert_eq!((inventory.find_or_add(b"b", spec(4)), inventory.spec(third).step), (Ok(third), 3));
    }
}
