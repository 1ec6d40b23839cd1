//! The tree of paths, found by patterns in the list of all names: directories and RRDs are branches, data sources leaves.

use std::sync::Arc;

use graphite::glob::{self, Glob};
use store::engine::RrdStatus;
use store::name::RrdName;

use crate::graphite_path::node;
use crate::http::failure::Failure;
use crate::http::rows::Budget;
use crate::name_index::{Child, NameList};
use crate::service::Service;

/// The most nodes that a pattern may find.
pub const FOUND_MAX: usize = 200_000;
/// Nodes that are looked at between two looks at the clock.
const EXAMINED_BETWEEN: usize = 1024;

/// A data source.
#[derive(Clone)]
pub struct Leaf {
    /// The RRD's name.
    pub name: RrdName,
    /// What is known of the RRD.
    pub status: Arc<RrdStatus>,
    /// The place of the data source.
    pub ds: usize,
}

/// A node that was found.
#[derive(Clone)]
pub struct FoundNode {
    /// Its path.
    pub path: String,
    /// The data source, if it is one.
    pub leaf: Option<Leaf>,
}

impl FoundNode {
    /// The last node of its path.
    pub fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or("")
    }
}

/// The nodes that fit `pattern`, in order of their paths, each once.
///
/// # Errors
/// 400 for a pattern that is none, 413 when there are too many, 503 when the time is over.
pub fn find(
    service: &Service,
    list: &NameList,
    budget: &Budget,
    pattern: &str,
    leaves_only: bool,
) -> Result<Vec<FoundNode>, Failure> {
    let globs = glob::of_path(pattern).map_err(Failure::bad)?;
    if globs.iter().filter(|glob| matches!(glob, Glob::Levels)).count() > 1 {
        return Err(Failure::bad(format!("{pattern}: ** may be there once")));
    }
    let mut walk = Walk { service, list, budget, leaves_only, examined: 0, found: Vec::new() };
    walk.level(b"", "", &globs)?;
    let mut found = walk.found;
    // Stable, so that of two with the same path the first name remains.
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found.dedup_by(|one, other| one.path == other.path);
    Ok(found)
}

struct Walk<'a> {
    service: &'a Service,
    list: &'a NameList,
    budget: &'a Budget,
    leaves_only: bool,
    examined: usize,
    found: Vec<FoundNode>,
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
            let name = child.name();
            let own = &name[directory.len()..];
            match child {
                Child::Directory(..) => {
                    let node = node(&own[..own.len() - 1]);
                    if glob.matches(&node) {
                        self.directory(name, path, &node, rest)?;
                    }
                }
                Child::Rrd(_) => {
                    let node = node(own.strip_suffix(b".rrd").unwrap_or(own));
                    if glob.matches(&node) {
                        self.rrd(name, path, &node, rest)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A directory and all below it.
    fn levels(&mut self, directory: &[u8], path: &str, rest: &[Glob]) -> Result<(), Failure> {
        let all = [Glob::Any];
        self.level(directory, path, if rest.is_empty() { &all } else { rest })?;
        let list = self.list;
        for child in list.page(directory, b"", usize::MAX).children {
            if let Child::Directory(name, _) = child {
                self.examine()?;
                let node = node(&name[directory.len()..name.len() - 1]);
                self.levels(name, &format!("{path}{node}."), rest)?;
            }
        }
        Ok(())
    }

    fn examine(&mut self) -> Result<(), Failure> {
        self.examined += 1;
        if self.examined.is_multiple_of(EXAMINED_BETWEEN) { self.budget.count(0) } else { Ok(()) }
    }

    fn add(&mut self, path: String, leaf: Option<Leaf>) -> Result<(), Failure> {
        if leaf.is_none() && self.leaves_only {
            return Ok(());
        }
        if self.found.len() >= FOUND_MAX {
            return Err(Failure::too_much(format!("more than {FOUND_MAX} nodes: ask for fewer at once")));
        }
        self.budget.hold(path.len() as u64 + size_of::<FoundNode>() as u64)?;
        self.found.push(FoundNode { path, leaf });
        Ok(())
    }

    fn directory(&mut self, name: &[u8], path: &str, node: &str, rest: &[Glob]) -> Result<(), Failure> {
        match rest {
            [] => self.add(format!("{path}{node}"), None),
            rest => self.level(name, &format!("{path}{node}."), rest),
        }
    }

    fn rrd(&mut self, name: &[u8], path: &str, own: &str, rest: &[Glob]) -> Result<(), Failure> {
        let glob = match rest {
            [] => return self.add(format!("{path}{own}"), None),
            [glob] => glob,
            _ => return Ok(()),
        };
        // It may be gone since the list was made, or unreadable.
        let Ok(name) = RrdName::new(name) else { return Ok(()) };
        let Ok(status) = self.service.engine.status(&name) else { return Ok(()) };
        let status = Arc::new(status);
        for (ds, source) in status.definition.ds.iter().enumerate() {
            let leaf = node(source.name.as_bytes());
            if glob.matches(&leaf) {
                let (name, status) = (name.clone(), Arc::clone(&status));
                self.add(format!("{path}{own}.{leaf}"), Some(Leaf { name, status, ds }))?;
            }
        }
        Ok(())
    }
}

/// The paths of all data sources, in order.
///
/// # Errors
/// As [`find`].
pub fn all(service: &Service, list: &NameList, budget: &Budget) -> Result<Vec<String>, Failure> {
    let mut paths = Vec::new();
    for index in 0..list.len() {
        if index.is_multiple_of(EXAMINED_BETWEEN) {
            budget.count(0)?;
        }
        let Ok(name) = RrdName::new(list.name(index)) else { continue };
        let Ok(status) = service.engine.status(&name) else { continue };
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
