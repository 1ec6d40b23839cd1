use std::collections::HashMap;

use super::*;

fn name(text: &str) -> RrdName {
    RrdName::new(text.as_bytes()).unwrap()
}

/// Placeholders by the name of the file: what is written in them, and a number for the file.
struct Tree {
    files: HashMap<&'static str, (&'static str, u64)>,
    rrds: Vec<&'static str>,
    trash: Vec<(&'static str, i64)>,
}

impl Tree {
    fn new(rrds: &[&'static str]) -> Tree {
        Tree { files: HashMap::new(), rrds: rrds.to_vec(), trash: Vec::new() }
    }

    /// The plan for the names, in a few words.
    fn plan(&self, names: &[&'static str]) -> String {
        let see = |text: &str| {
            let found = match self.files.get(text) {
                Some((".rrd", _)) => Found::RrdFile,
                Some((origin, file)) => Found::Ours(name(origin), FileId::of(0, *file)),
                None => Found::Nothing,
            };
            let trashed = self.trash.iter().find(|(other, _)| *other == text);
            let trashed = trashed.map(|(_, removed_ms)| Trashed { name: name(text), removed_ms: *removed_ms });
            Seen { found, is_rrd: self.rrds.contains(&text), trashed }
        };
        let mut seen: BTreeMap<RrdName, Seen> = names.iter().map(|text| (name(text), see(text))).collect();
        for origin in names.iter().filter_map(|name| self.files.get(name)).map(|(origin, _)| *origin) {
            seen.entry(name(origin)).or_insert_with(|| see(origin));
        }
        let plan = plan(&seen, 100);
        let mut words: Vec<String> = plan.removed.iter().map(|name| format!("-{name}")).collect();
        words.extend(plan.replaced.iter().map(|name| format!("x{name}")));
        words.extend(plan.arrivals.iter().map(|(source, to)| match source {
            Source::Moved(from) => format!("{from}>{to}"),
            Source::Copied(from) => format!("{from}={to}"),
            Source::Trash(from) => format!("trash:{}>{to}", from.name),
        }));
        words.extend(plan.late.iter().map(|(from, to)| format!("late:{from}={to}")));
        words.extend(plan.outdated.iter().map(|name| format!("write:{name}")));
        words.extend(plan.dangling.iter().map(|(name, _)| format!("?{name}")));
        words.join(" ")
    }
}

#[test]
fn what_was_done_follows_from_what_stands_there() {
    let plan = |rrds: &[&'static str], files: &[(&'static str, &'static str, u64)], names: &[&'static str]| {
        let mut tree = Tree::new(rrds);
        tree.files = files.iter().map(|&(file, origin, inode)| (file, (origin, inode))).collect();
        tree.plan(names)
    };
    // rm a; mv a b; cp a b; ln a b; mv a b over an RRD; cp a b over an RRD.
    assert_eq!(plan(&["a"], &[], &["a"]), "-a");
    assert_eq!(plan(&["a"], &[("b", "a", 1)], &["a", "b"]), "a>b");
    assert_eq!(plan(&["a"], &[("b", "a", 1)], &["b"]), "a>b");
    assert_eq!(plan(&["a"], &[("a", "a", 1), ("b", "a", 2)], &["b"]), "a=b");
    assert_eq!(plan(&["a"], &[("a", "a", 1), ("b", "a", 1)], &["b"]), "");
    assert_eq!(plan(&["a", "b"], &[("b", "a", 1)], &["a", "b"]), "xb a>b");
    assert_eq!(plan(&["a", "b"], &[("a", "a", 1), ("b", "a", 2)], &["b"]), "xb a=b");
    // ln a b; rm a.
    assert_eq!(plan(&["a"], &[("b", "a", 1)], &["a", "b"]), "a>b");
    // ln -f a b, over an RRD.
    assert_eq!(plan(&["a", "b"], &[("a", "a", 1), ("b", "a", 1)], &["b"]), "xb");
    // cp a b; mv a c. ln a b; mv a c.
    assert_eq!(plan(&["a"], &[("b", "a", 2), ("c", "a", 1)], &["a", "b", "c"]), "a>b a=c");
    assert_eq!(plan(&["a"], &[("b", "a", 1), ("c", "a", 1)], &["a", "b", "c"]), "a>b");
    // A chain, a swap, a circle with a copy.
    assert_eq!(plan(&["a", "b"], &[("b", "a", 1), ("c", "b", 2)], &["a", "b", "c"]), "a>b b>c");
    assert_eq!(plan(&["a", "b"], &[("b", "a", 1), ("a", "b", 2)], &["a", "b"]), "a>b b>a");
    let circle = [("b", "a", 1), ("c", "b", 2), ("a", "c", 3), ("d", "a", 4)];
    assert_eq!(plan(&["a", "b", "c"], &circle, &["a", "b", "c", "d"]), "a>b a=d b>c c>a");
    // A file over a placeholder, and nothing at all.
    assert_eq!(plan(&["a"], &[("a", ".rrd", 1)], &["a"]), "xa");
    assert_eq!(plan(&["a"], &[("a", "a", 1)], &["a"]), "");
    assert_eq!(plan(&[], &[("a", "a", 1), ("b", "c", 2)], &["a", "b"]), "?a ?b");
}

#[test]
fn what_got_into_the_trash_meanwhile_comes_back() {
    let mut tree = Tree::new(&["b"]);
    tree.trash = vec![("a", 120)];
    tree.files = [("c", ("a", 1))].into();
    assert_eq!(tree.plan(&["c"]), "trash:a>c");
    tree.files = [("c", ("a", 1)), ("d", ("a", 2))].into();
    assert_eq!(tree.plan(&["c", "d"]), "trash:a>c late:c=d");
    tree.files = [("b", ("a", 1))].into();
    assert_eq!(tree.plan(&["b"]), "xb trash:a>b");
    tree.files = [("a", ("a", 1))].into();
    assert_eq!(tree.plan(&["a"]), "trash:a>a");
    // Long ago: then the placeholder was not written again when the RRD arrived.
    tree.trash = vec![("a", 20)];
    tree.files = [("b", ("a", 1))].into();
    assert_eq!(tree.plan(&["b"]), "write:b");
}
