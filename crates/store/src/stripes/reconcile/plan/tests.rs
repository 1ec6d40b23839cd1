use std::collections::HashMap;

use super::*;

fn name(text: &str) -> RrdName {
    RrdName::new(text.as_bytes()).unwrap()
}

/// The plan, in a few words, for files by name: for which RRD each was written, and a number for the file. Those that the store does not have are in
/// the trash, or unknown if they begin with a question mark.
fn plan(rrds: &[&str], files: &[(&'static str, &'static str, u64)], names: &[&'static str]) -> String {
    let files: HashMap<_, _> = files.iter().map(|&(name, origin, file)| (name, (origin, file))).collect();
    let see = |text: &str| {
        let stands = match files.get(text) {
            Some((".rrd", _)) => Stands::Other,
            Some(&(origin, file)) => Stands::Placeholder {
                origin: match origin {
                    unknown if unknown.starts_with('?') => Origin::Unknown,
                    rrd if rrds.contains(&rrd) => Origin::Rrd(name(rrd)),
                    trashed => Origin::Trash(Trashed { name: name(trashed), removed_ms: 5 }),
                },
                file: FileId::of(0, file),
                is_current: true,
            },
            None => Stands::Nothing,
        };
        Seen { stands, is_rrd: rrds.contains(&text) }
    };
    let mut seen: BTreeMap<RrdName, Seen> = names.iter().map(|text| (name(text), see(text))).collect();
    for (origin, _) in names.iter().filter_map(|name| files.get(name)) {
        if rrds.contains(origin) {
            seen.entry(name(origin)).or_insert_with(|| see(origin));
        }
    }
    let plan = super::plan(&seen);
    let mut words: Vec<String> = plan.removed.iter().map(|name| format!("-{name}")).collect();
    words.extend(plan.replaced.iter().map(|name| format!("x{name}")));
    words.extend(plan.arrivals.iter().map(|(source, to)| match source {
        Source::Moved(from) => format!("{from}>{to}"),
        Source::Copied(from) => format!("{from}={to}"),
        Source::Trash(from) => format!("trash:{}>{to}", from.name),
    }));
    words.extend(plan.late.iter().map(|(from, to)| format!("late:{from}={to}")));
    words.extend(plan.outdated.iter().map(|name| format!("write:{name}")));
    words.extend(plan.dangling.iter().map(|name| format!("?{name}")));
    words.join(" ")
}

#[test]
fn what_was_done_follows_from_what_stands_there() {
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
    assert_eq!(plan(&["b"], &[("a", "?", 1), ("b", "?", 2)], &["a", "b"]), "xb ?a ?b");
}

#[test]
fn what_got_into_the_trash_meanwhile_comes_back() {
    assert_eq!(plan(&["b"], &[("c", "a", 1)], &["c"]), "trash:a>c");
    assert_eq!(plan(&["b"], &[("c", "a", 1), ("d", "a", 2)], &["c", "d"]), "trash:a>c late:c=d");
    assert_eq!(plan(&["b"], &[("b", "a", 1)], &["b"]), "xb trash:a>b");
    assert_eq!(plan(&["b"], &[("a", "a", 1)], &["a"]), "trash:a>a");
}
