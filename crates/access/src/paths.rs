//! Sets of RRD names, given by patterns, in a form that decides quickly however many patterns there are.
//!
//! A pattern is a path whose components may have a shell's wildcards (`args::pattern`), which never cross a slash, and whose component
//! `**` stands for any number of components: `net/**` is everything below `net`, `**/cpu.rrd` every `cpu.rrd`.
//!
//! The patterns make a tree of components. A name is looked up in it component by component, so that the time depends on the depth of the
//! name and not on the number of patterns: 10,000 patterns take 30 ns a name (`examples/access_speed.rs`).

use std::collections::HashMap;

use args::pattern;

/// The longest pattern: no name is longer.
const PATTERN_BYTES_MAX: usize = 4096;

/// Names that match one of some patterns.
#[derive(Clone, Debug)]
pub struct PathSet {
    /// The first is where every name begins.
    nodes: Vec<Node>,
}

/// A place in the tree of patterns.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Where a component leads that is given as it is.
    plain: HashMap<Box<[u8]>, u32, foldhash::fast::FixedState>,
    /// Where components lead that match a pattern.
    wild: Vec<(Box<[u8]>, u32)>,
    /// Where a `**` leads, which may stand for nothing.
    deep: Option<u32>,
    /// It is the place after a `**`: every component leads back to it, too.
    repeats: bool,
    /// A name that ends here is in the set.
    ends: bool,
    /// Every name that goes on from here is in the set.
    has_all: bool,
}

/// What a set has below a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// No name.
    Nothing,
    /// Some names, perhaps.
    Some,
    /// Every name.
    All,
}

/// Where a path has led.
enum Reached {
    /// Where everything is in the set.
    All,
    /// To one place.
    Place(u32),
    /// To these places, or to none.
    Places(Vec<u32>),
}

impl Default for PathSet {
    /// Without a name.
    fn default() -> Self {
        PathSet { nodes: vec![Node::default()] }
    }
}

impl PathSet {
    /// The set of names that match one of `patterns`, in which `{name}` stands for `name`.
    ///
    /// # Errors
    /// The first pattern that cannot be used, and why.
    pub fn new(patterns: &[String], name: &str) -> Result<Self, String> {
        let mut set = PathSet::default();
        for pattern in patterns {
            set.add(pattern, name).map_err(|cause| format!("\"{pattern}\": {cause}"))?;
        }
        Ok(set)
    }

    /// The set of all names.
    pub fn all() -> Self {
        PathSet { nodes: vec![Node { has_all: true, ..Node::default() }] }
    }

    /// Whether it has every name.
    pub fn is_all(&self) -> bool {
        self.nodes[0].has_all
    }

    /// Whether it has no name.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1 && !self.is_all()
    }

    /// Whether it has this name, which is in normal form (`a/b.rrd`).
    #[inline]
    pub fn contains(&self, name: &[u8]) -> bool {
        self.is_all()
            || match self.walk(name) {
                Reached::All => true,
                Reached::Place(place) => self.nodes[place as usize].ends,
                Reached::Places(places) => places.iter().any(|&place| self.nodes[place as usize].ends),
            }
    }

    /// What it has below a directory, given without a slash at its end; `""` is the root.
    pub fn below(&self, directory: &[u8]) -> Below {
        let places = match self.walk(directory) {
            Reached::All => return Below::All,
            Reached::Place(place) => vec![place],
            Reached::Places(places) => places,
        };
        let nodes = || places.iter().map(|&place| &self.nodes[place as usize]);
        if nodes().any(|node| node.has_all) {
            return Below::All;
        }
        let goes_on = |node: &Node| !node.plain.is_empty() || !node.wild.is_empty() || node.repeats;
        if nodes().any(goes_on) { Below::Some } else { Below::Nothing }
    }

    fn add(&mut self, pattern: &str, name: &str) -> Result<(), String> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(format!("it has more than {PATTERN_BYTES_MAX} bytes"));
        }
        let mut place = 0;
        let mut components = pattern.split('/').peekable();
        while let Some(component) = components.next() {
            match component {
                "" => return Err("give components with single slashes between them: net/**".to_string()),
                "." | ".." => return Err(format!("no name has a component \"{component}\"")),
                "**" if components.peek().is_none() => {
                    self.nodes[place as usize].has_all = true;
                    return Ok(());
                }
                // Several are as one.
                "**" if self.nodes[place as usize].repeats => {}
                "**" => place = self.place_after_deep(place),
                _ => place = self.place_after(place, &component.replace("{name}", name))?,
            }
        }
        self.nodes[place as usize].ends = true;
        Ok(())
    }

    /// The place after a component that is no `**`, made if there is none.
    fn place_after(&mut self, place: u32, component: &str) -> Result<u32, String> {
        if component.contains("**") {
            return Err("** stands for whole components: write net/**, not net**".to_string());
        }
        let new = self.nodes.len() as u32;
        let node = &mut self.nodes[place as usize];
        let bytes = component.as_bytes();
        let found = if pattern::has_wildcards(bytes) {
            match node.wild.iter().find(|(known, _)| **known == *bytes) {
                Some((_, found)) => *found,
                None => {
                    node.wild.push((bytes.into(), new));
                    new
                }
            }
        } else {
            *node.plain.entry(pattern::without_escapes(bytes).into()).or_insert(new)
        };
        if found == new {
            self.nodes.push(Node::default());
        }
        Ok(found)
    }

    fn place_after_deep(&mut self, place: u32) -> u32 {
        if let Some(found) = self.nodes[place as usize].deep {
            return found;
        }
        let new = self.nodes.len() as u32;
        self.nodes[place as usize].deep = Some(new);
        self.nodes.push(Node { repeats: true, ..Node::default() });
        new
    }

    /// Follows a path from the root.
    fn walk(&self, path: &[u8]) -> Reached {
        let mut place = 0;
        let mut rest = path;
        // Most patterns have no wildcards but at their end: there is one place at a time, and nothing is allocated.
        loop {
            let node = &self.nodes[place as usize];
            if !node.wild.is_empty() || node.deep.is_some() || node.repeats {
                return self.walk_many(place, rest);
            }
            if node.has_all && !rest.is_empty() {
                return Reached::All;
            }
            if rest.is_empty() {
                return Reached::Place(place);
            }
            let (component, after) = first_component(rest);
            match node.plain.get(component) {
                Some(&next) => (place, rest) = (next, after),
                None => return Reached::Places(Vec::new()),
            }
        }
    }

    /// Follows a path where it may lead to several places at once.
    fn walk_many(&self, from: u32, mut rest: &[u8]) -> Reached {
        let mut places = Vec::new();
        self.reach(&mut places, from);
        while !rest.is_empty() && !places.is_empty() {
            let (component, after) = first_component(rest);
            rest = after;
            let mut next = Vec::with_capacity(places.len() + 1);
            for &place in &places {
                let node = &self.nodes[place as usize];
                if node.has_all {
                    return Reached::All;
                }
                if node.repeats {
                    self.reach(&mut next, place);
                }
                if let Some(&found) = node.plain.get(component) {
                    self.reach(&mut next, found);
                }
                for (pattern, found) in &node.wild {
                    if pattern::matches(pattern, component) {
                        self.reach(&mut next, *found);
                    }
                }
            }
            places = next;
        }
        Reached::Places(places)
    }

    /// Adds a place, and those that a `**` leads to from there.
    fn reach(&self, places: &mut Vec<u32>, place: u32) {
        let mut next = Some(place);
        while let Some(place) = next {
            if places.contains(&place) {
                return;
            }
            places.push(place);
            next = self.nodes[place as usize].deep;
        }
    }
}

/// The first component of a path, and what comes after its slash.
#[inline]
fn first_component(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().position(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (path, b""),
    }
}

#[cfg(test)]
mod tests;
