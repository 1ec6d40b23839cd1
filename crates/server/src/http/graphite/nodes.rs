//! The tree of paths, found by patterns in the list of all names: directories and RRDs are branches, data sources leaves.

use std::sync::Arc;

use graphite::glob::{self, Glob};
use ingest::table::CreateTable;
use rrd::definition::Definition;
use store::engine::RrdStatus;
use store::name::RrdName;

use super::pushed;
use crate::graphite_path::node_byte;
use crate::http::failure::Failure;
use crate::http::prometheus::pushed::only_source;
use crate::http::rows::Budget;
use crate::name_index::{Child, NameList};
use crate::parallel::map_parts;
use crate::service::Service;

/// The most nodes that a pattern may find.
pub const FOUND_MAX: usize = 200_000;
/// Nodes that are looked at between two looks at the clock.
const EXAMINED_BETWEEN: usize = 1024;

/// RRDs that a thread is worth: it costs as much as opening a few of them.
const RRDS_OF_THREAD: usize = 32;

/// What fits a pattern as far as names say: a directory, an RRD, an RRD whose sources may fit, or a series that was pushed.
pub struct Candidate {
    /// Its path, without the source.
    path: String,
    /// The RRD whose sources may fit.
    pub rrd: Option<RrdName>,
    /// The RRD itself is a leaf, because it was pushed as a series of this path.
    is_leaf: bool,
}

/// All that fits a pattern as far as names say.
pub struct Candidates {
    /// They, in the order of the names.
    pub all: Vec<Candidate>,
    /// What fits their sources.
    leaf: Glob,
}

impl Candidates {
    /// The sources of a candidate that fit: their places, and their paths.
    pub fn leaves<'a>(
        &'a self,
        candidate: &'a Candidate,
        definition: &'a Definition,
    ) -> impl Iterator<Item = (usize, String)> + 'a {
        let only = only_source(definition).filter(|_| candidate.is_leaf);
        let itself = only.map(|(ds, _)| (ds, candidate.path.clone()));
        let sources = if candidate.is_leaf { &[][..] } else { &definition.ds };
        let sources = sources.iter().enumerate().filter_map(|(ds, source)| {
            let leaf = node(source.name.as_bytes());
            self.leaf.matches(&leaf).then(|| (ds, format!("{}.{leaf}", candidate.path)))
        });
        itself.into_iter().chain(sources)
    }
}

/// A node that was found.
pub struct FoundNode {
    /// Its path.
    pub path: String,
    /// The RRD, if it is a data source.
    pub leaf: Option<Arc<RrdStatus>>,
}

impl FoundNode {
    /// The last node of its path.
    pub fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or("")
    }
}

/// What may fit `pattern`; with `leaves_only`, only RRDs whose sources may.
///
/// # Errors
/// 400 for a pattern that is none, 503 when the time is over, either when there is no memory.
pub fn candidates(
    service: &Service,
    list: &NameList,
    budget: &Budget,
    pattern: &str,
    leaves_only: bool,
) -> Result<Candidates, Failure> {
    budget.count(0)?;
    let globs = glob::of_path(pattern).map_err(Failure::bad)?;
    if globs.iter().filter(|glob| matches!(glob, Glob::Levels)).count() > 1 {
        return Err(Failure::bad(format!("{pattern}: ** may be there once")));
    }
    let mut walk = Walk { list, budget, leaves_only, pushed: None, examined: 0, found: Vec::new() };
    walk.level(b"", "", &globs)?;
    let table = service.ingest.table();
    walk.pushed = Some(table);
    for directory in table.dotted_directories() {
        walk.level(directory.as_bytes(), "", &globs)?;
    }
    let all = walk.found;
    Ok(Candidates { all, leaf: globs.into_iter().next_back().unwrap_or(Glob::Any) })
}

/// 413: a pattern fits too many nodes.
pub fn too_many() -> Failure {
    Failure::too_much(format!("more than {FOUND_MAX} nodes: ask for fewer at once"))
}

/// Puts what was found in order, each path once: of two with the same path, the first name remains.
pub fn in_order<T>(mut found: Vec<T>, path: impl Fn(&T) -> &str) -> Vec<T> {
    found.sort_by(|one, other| path(one).cmp(path(other)));
    found.dedup_by(|one, other| path(one) == path(other));
    found
}

/// The nodes that fit `pattern`, in order of their paths, each once.
///
/// # Errors
/// As [`candidates`]; 413 when there are too many.
pub fn find(
    service: &Service,
    list: &NameList,
    budget: &Budget,
    pattern: &str,
    leaves_only: bool,
) -> Result<Vec<FoundNode>, Failure> {
    let candidates = candidates(service, list, budget, pattern, leaves_only)?;
    let resolve = |part: &[Candidate]| -> Result<Vec<FoundNode>, Failure> {
        let mut found = Vec::new();
        for candidate in part {
            let Some(name) = &candidate.rrd else {
                found.push(FoundNode { path: candidate.path.clone(), leaf: None });
                continue;
            };
            budget.count(0)?;
            // It may be gone since the list was made, or unreadable.
            let Ok(status) = service.engine.status(name) else { continue };
            let status = Arc::new(status);
            for (_, path) in candidates.leaves(candidate, &status.definition) {
                budget.hold((path.len() + size_of::<FoundNode>()) as u64)?;
                found.push(FoundNode { path, leaf: Some(Arc::clone(&status)) });
            }
            if found.len() > FOUND_MAX {
                return Err(too_many());
            }
        }
        Ok(found)
    };
    let mut found = Vec::new();
    for part in map_parts(&candidates.all, RRDS_OF_THREAD, resolve) {
        found.extend(part?);
    }
    match found.len() > FOUND_MAX {
        true => Err(too_many()),
        false => Ok(in_order(found, |found| &found.path)),
    }
}

/// The node that a directory or an RRD in a directory is.
fn child_node(directory: &[u8], child: &Child<'_>) -> String {
    let own = &child.name()[directory.len()..];
    let ending: &[u8] = if matches!(child, Child::Directory(..)) { b"/" } else { b".rrd" };
    node(own.strip_suffix(ending).unwrap_or(own))
}

struct Walk<'a> {
    list: &'a NameList,
    budget: &'a Budget,
    leaves_only: bool,
    /// RRDs are looked for as the series that they are by this table, in place of their sources.
    pushed: Option<&'a CreateTable>,
    examined: usize,
    found: Vec<Candidate>,
}

impl Walk<'_> {
    /// Looks through a directory, which is empty or ends with a slash; `path` is its own, which is empty or ends with a dot.
    fn level(&mut self, directory: &[u8], path: &str, globs: &[Glob]) -> Result<(), Failure> {
        let Some((glob, rest)) = globs.split_first() else { return Ok(()) };
        match glob {
            Glob::Levels => self.levels(directory, path, rest),
            // Names that are as they are written: no other name becomes this node.
            Glob::Exact(text) if !text.contains('_') => {
                let below = [directory, text.as_bytes(), b"/"].concat();
                if !self.list.below(&below).is_empty() {
                    self.directory(&below, path, text, rest)?;
                }
                for name in
                    [[directory, text.as_bytes(), b".rrd"].concat(), [directory, text.as_bytes()].concat()]
                {
                    if self.list.position(&name).is_some() {
                        self.rrd(&name, path, text, rest)?;
                    }
                }
                Ok(())
            }
            glob => self.children(directory, path, glob, rest),
        }
    }

    fn children(&mut self, directory: &[u8], path: &str, glob: &Glob, rest: &[Glob]) -> Result<(), Failure> {
        let list = self.list;
        for child in list.page(directory, b"", usize::MAX).children {
            self.examine()?;
            let node = child_node(directory, &child);
            match child {
                _ if !glob.matches(&node) => {}
                Child::Directory(name, _) => self.directory(name, path, &node, rest)?,
                Child::Rrd(name) => self.rrd(name, path, &node, rest)?,
            }
        }
        Ok(())
    }

    /// A directory and all below it; RRDs are such levels, too, as their sources are nodes.
    fn levels(&mut self, directory: &[u8], path: &str, rest: &[Glob]) -> Result<(), Failure> {
        let all = [Glob::Any];
        self.level(directory, path, if rest.is_empty() { &all } else { rest })?;
        let list = self.list;
        for child in list.page(directory, b"", usize::MAX).children {
            self.examine()?;
            let node = child_node(directory, &child);
            match child {
                Child::Directory(name, _) => self.levels(name, &format!("{path}{node}."), rest)?,
                Child::Rrd(name) if rest.len() < 2 && self.pushed.is_none() => {
                    self.rrd(name, path, &node, &all)?;
                }
                Child::Rrd(_) => {}
            }
        }
        Ok(())
    }

    fn examine(&mut self) -> Result<(), Failure> {
        self.examined += 1;
        if self.examined.is_multiple_of(EXAMINED_BETWEEN) { self.budget.count(0) } else { Ok(()) }
    }

    fn add(&mut self, path: String, rrd: Option<RrdName>) -> Result<(), Failure> {
        if rrd.is_some() || !self.leaves_only {
            self.budget.hold((path.len() + size_of::<Candidate>()) as u64)?;
            let is_leaf = self.pushed.is_some() && rrd.is_some();
            self.found.push(Candidate { path, rrd, is_leaf });
        }
        Ok(())
    }

    fn directory(&mut self, name: &[u8], path: &str, node: &str, rest: &[Glob]) -> Result<(), Failure> {
        match rest {
            [] => self.add(format!("{path}{node}"), None),
            rest => self.level(name, &format!("{path}{node}."), rest),
        }
    }

    fn rrd(&mut self, name: &[u8], path: &str, own: &str, rest: &[Glob]) -> Result<(), Failure> {
        let path = format!("{path}{own}");
        if let Some(table) = self.pushed {
            return match (rest, RrdName::new(name)) {
                ([] | [Glob::Levels], Ok(rrd))
                    if pushed::path(table, name).is_some_and(|own| own == path) =>
                {
                    self.add(path, Some(rrd))
                }
                _ => Ok(()),
            };
        }
        match (rest, RrdName::new(name)) {
            ([], _) => self.add(path, None),
            // The last one may be `**` or follow one: all levels, or none.
            ([_] | [Glob::Levels, _], Ok(name)) => self.add(path, Some(name)),
            _ => Ok(()),
        }
    }
}

/// The paths of all data sources, in order.
///
/// # Errors
/// As [`find`].
pub fn all(service: &Service, list: &NameList, budget: &Budget) -> Result<Vec<String>, Failure> {
    let (mut paths, table) = (Vec::new(), service.ingest.table());
    for index in 0..list.len() {
        if index.is_multiple_of(EXAMINED_BETWEEN) {
            budget.count(0)?;
        }
        let Ok(name) = RrdName::new(list.name(index)) else { continue };
        let Ok(status) = service.engine.status(&name) else { continue };
        let own = only_source(&status.definition).and_then(|_| pushed::path(table, list.name(index)));
        if let Some(path) = own {
            budget.hold(path.len() as u64 * 2 + 24)?;
            paths.push(path);
        }
        for source in &status.definition.ds {
            let mut path = Vec::new();
            crate::graphite_path::push_path(&mut path, list.name(index), &source.name);
            budget.hold(path.len() as u64 * 2 + 24)?;
            paths.push(String::from_utf8_lossy(&path).into_owned());
        }
    }
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}
/// A directory, the name of an RRD or a source as a node.
fn node(name: &[u8]) -> String {
    let bytes: Vec<u8> = name.iter().copied().map(node_byte).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
