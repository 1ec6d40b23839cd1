use super::*;

fn set(patterns: &[&str]) -> PathSet {
    let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    PathSet::new(&patterns, "ann").unwrap()
}

#[test]
fn patterns_match_as_paths() {
    let check = |pattern: &str, has: &[&str], has_not: &[&str]| {
        let set = set(&[pattern]);
        for name in has {
            assert!(set.contains(name.as_bytes()), "{pattern} has {name}");
        }
        for name in has_not {
            assert!(!set.contains(name.as_bytes()), "{pattern} has not {name}");
        }
    };
    check("**", &["a", "a/b", "a/b/c.rrd"], &[]);
    check("a.rrd", &["a.rrd"], &["a", "b/a.rrd", "a.rrd/b", "a.rrdx", ""]);
    check("net/**", &["net/a", "net/a/b"], &["net", "nets/a", "x/net/a"]);
    check("a.rrd/**", &["a.rrd/b"], &["a.rrd"]);
    check("net/*", &["net/a", "net/b.rrd"], &["net", "net/a/b", "a"]);
    check("net/*/if-*.rrd", &["net/r1/if-1.rrd", "net//if-.rrd"], &["net/if-1.rrd", "net/a/b/if-1.rrd"]);
    check("**/cpu.rrd", &["cpu.rrd", "a/cpu.rrd", "a/b/c/cpu.rrd"], &["cpu", "a/cpu.rrd/x", "xcpu.rrd"]);
    check("a/**/b/**/c", &["a/b/c", "a/x/b/c", "a/b/x/y/c", "a/b/b/c/c"], &["a/c", "b/c", "a/b", "a/c/b"]);
    check("a/**/**/b", &["a/b", "a/x/y/b"], &["b", "a"]);
    check("a/**/b/**", &["a/b/c", "a/x/b/c/d"], &["a/b", "a/c"]);
    check("hosts/{name}/**", &["hosts/ann/a"], &["hosts/{name}/a", "hosts/bob/a", "hosts/anna/a"]);
    check("h?st/[ab]", &["host/a", "hest/b"], &["host/c", "hst/a", "h/st/a"]);
    check("\\*/a", &["*/a"], &["x/a"]);
    check("\u{e4}*", &["\u{e4}b"], &["ab"]);
}

#[test]
fn many_patterns_are_one_set() {
    let set = set(&["a/b", "a/*", "a/x/**", "**/z", "a/b/c"]);
    for (name, has) in [
        ("a/b", true),
        ("a/b/c", true),
        ("a/q", true),
        ("a/q/r", false),
        ("a/x/1/2", true),
        ("q/z", true),
        ("a/q/z", true),
        ("b/x/1", false),
        ("", false),
    ] {
        assert_eq!(set.contains(name.as_bytes()), has, "{name}");
    }
    assert!(!PathSet::default().contains(b"a") && PathSet::default().is_empty());
    assert!(PathSet::all().contains(b"a/b") && PathSet::all().is_all());
}

#[test]
fn what_is_below_a_directory() {
    let check = |patterns: &[&str], directory: &str, below: Below| {
        assert_eq!(set(patterns).below(directory.as_bytes()), below, "{patterns:?} below {directory:?}");
    };
    check(&["**"], "", Below::All);
    check(&["**"], "a/b", Below::All);
    check(&["a/**"], "", Below::Some);
    check(&["a/**"], "a", Below::All);
    check(&["a/**"], "a/b", Below::All);
    check(&["a/**"], "b", Below::Nothing);
    check(&["a/*/c.rrd"], "a", Below::Some);
    check(&["a/*/c.rrd"], "a/b", Below::Some);
    check(&["a/*/c.rrd"], "a/b/c.rrd", Below::Nothing);
    check(&["**/c.rrd"], "q/w", Below::Some);
    check(&["a.rrd"], "a", Below::Nothing);
    check(&[], "", Below::Nothing);
}

#[test]
fn patterns_that_cannot_be_used_are_refused() {
    for (pattern, cause) in [
        ("/net/**", "single slashes"),
        ("net//a", "single slashes"),
        ("net/", "single slashes"),
        ("", "single slashes"),
        ("net/../a", "\"..\""),
        ("./a", "\".\""),
        ("net**", "whole components"),
        (&"x".repeat(5000), "4096 bytes"),
    ] {
        let error = PathSet::new(&[pattern.to_string()], "ann").unwrap_err();
        assert!(error.contains(cause), "{pattern}: {error}");
    }
}

/// What a set says is what its patterns say one by one, for random patterns and names of few letters.
#[test]
fn a_set_has_what_one_of_its_patterns_has() {
    fn naive(pattern: &[&[u8]], name: &[&[u8]]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((&b"**", [])), _) => !name.is_empty(),
            (Some((&b"**", rest)), None) => naive(rest, name),
            (Some((&b"**", rest)), Some((_, after))) => naive(rest, name) || naive(pattern, after),
            (Some((first, rest)), Some((component, after))) => {
                pattern::matches(first, component) && naive(rest, after)
            }
            _ => false,
        }
    }
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let mut seen = [0; 2];
    for _ in 0..20_000 {
        let patterns: Vec<String> = (0..=random(4))
            .map(|_| {
                let count = random(4);
                let parts =
                    (0..=count).map(|_| ["a", "b", "*", "a*", "**", "?b", "b.rrd"][random(7) as usize]);
                parts.collect::<Vec<_>>().join("/")
            })
            .collect();
        let set = PathSet::new(&patterns, "ann").unwrap();
        let name = (0..=random(4)).map(|_| ["a", "b", "ab", "b.rrd"][random(4) as usize]).collect::<Vec<_>>();
        let parts: Vec<&[u8]> = name.iter().map(|part| part.as_bytes()).collect();
        let name = name.join("/");
        let of_pattern = |pattern: &String| {
            let pattern: Vec<&[u8]> = pattern.split('/').map(str::as_bytes).collect();
            naive(&pattern, &parts)
        };
        let want = patterns.iter().any(of_pattern);
        assert_eq!(set.contains(name.as_bytes()), want, "{patterns:?} {name}");
        seen[usize::from(want)] += 1;
        // What is in the set is below each of its directories.
        for (slash, _) in name.match_indices('/').filter(|_| want) {
            assert_ne!(set.below(&name.as_bytes()[..slash]), Below::Nothing, "{patterns:?} {name}");
        }
    }
    assert!(seen[0] > 1000 && seen[1] > 1000, "{seen:?}");
}

#[test]
fn long_names_cost_little() {
    let patterns: Vec<String> = (0..40).map(|index| format!("**/a/**/a/**/a/**/b{index}")).collect();
    let set = PathSet::new(&patterns, "ann").unwrap();
    let name = "a/".repeat(2000) + "c";
    assert!(!set.contains(name.as_bytes()));
}
