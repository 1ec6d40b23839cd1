//! The list of crates in the executable, which `/licenses` serves, is that of `Cargo.lock`. `make licences` writes it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The list, relative to this crate.
const LIST: &str = "../server/assets/crates.LICENSE";

/// What stands above the list.
const HEAD: &str = "\
The executable `roundel` contains these crates, each under the licence beside it. Where there is a choice, it is taken as MIT or
Apache-2.0, whose texts stand at the end. Sources: https://crates.io/crates/NAME.
";

/// Files of licences below a crate's directory, of what it compiles that has other licences than the crate: (the crate's name, the file).
const BUNDLED: &[(&str, &str)] = &[("rdkafka-sys ", "librdkafka/LICENSES.txt")];

/// A crate: its name and version, its licence.
type Crate = (String, String);

/// The crates that others wrote, as `cargo tree` tells them for this machine.
fn crates() -> BTreeSet<Crate> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "-p",
            "roundel",
            "-e",
            "normal",
            "--prefix",
            "none",
            "--offline",
            "--locked",
            "--features",
            "full",
        ])
        .args(["--no-dedupe", "--format", "{p}|{l}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo tree runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("cargo tree prints text");
    let found = text.lines().filter_map(|line| {
        let (package, licence) = line.split_once('|')?;
        let package = package.trim_end_matches(" (proc-macro)");
        // Those with a path are of this workspace.
        let (name, version) = package.split_once(" v").filter(|_| !package.contains('('))?;
        Some((format!("{name} {version}"), licence.to_string()))
    });
    found.collect()
}

/// The directory of a crate's sources in Cargo's registry.
fn sources(name_and_version: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/src")).ok()?;
    let name = name_and_version.replace(' ', "-");
    registries.flatten().map(|registry| registry.path().join(&name)).find(|path| path.is_dir())
}

/// The files of a crate that hold licences, in order.
fn licence_files(sources: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(sources).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_licence = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        path.is_file()
            && ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"]
                .iter()
                .any(|word| name.starts_with(word))
    };
    let mut found: Vec<_> = names.filter(is_licence).collect();
    found.sort();
    found
}

/// Who holds the copyright of a crate, as its files say.
fn holders(sources: &Path) -> BTreeSet<String> {
    let texts = licence_files(sources).into_iter().filter_map(|path| fs::read_to_string(path).ok());
    let lines: Vec<String> =
        texts.flat_map(|text| text.lines().map(|line| line.trim().to_string()).collect::<Vec<_>>()).collect();
    // The forms to be filled in of the Apache licence and its clauses begin with that word, too.
    let is_notice = |line: &&String| {
        let rest = line.strip_prefix("Copyright ").or_else(|| line.strip_prefix("Copyright: "));
        rest.is_some_and(|rest| {
            rest.starts_with("(c)")
                || rest.starts_with("(C)")
                || rest.starts_with('©')
                || rest.starts_with(|first: char| first.is_ascii_digit())
        })
    };
    lines.iter().filter(is_notice).cloned().collect()
}

/// Texts that are neither MIT nor Apache-2.0, once each, with the first crate that has them.
fn other_texts(crates: &BTreeSet<Crate>) -> String {
    let mut texts = String::new();
    for (name, licence) in crates {
        for (_, file) in BUNDLED.iter().filter(|(bundling, _)| name.starts_with(bundling)) {
            let path = sources(name).expect("the crate was fetched").join(file);
            let text =
                fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            texts += &format!("\n---- {name}: {file}\n\n{}\n", text.trim());
        }
        let is_common = licence.contains("MIT") || licence.contains("Apache-2.0");
        if is_common && !licence.contains(" AND ") {
            continue;
        }
        for path in sources(name).iter().flat_map(|sources| licence_files(sources)) {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            if !text.contains("Apache License") {
                texts += &format!("\n---- {name}\n\n{}\n", text.trim());
            }
        }
    }
    texts
}

/// The texts that come with Roundel.
fn texts_of_roundel() -> String {
    let text = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        let text = fs::read_to_string(path).expect("a licence of Roundel");
        format!("\n---- {name}\n\n{}\n", text.trim())
    };
    ["LICENSE-MIT", "LICENSE-APACHE"].map(text).concat()
}

fn written(crates: &BTreeSet<Crate>) -> String {
    let mut list = HEAD.to_string() + "\n";
    for (name, licence) in crates {
        list += &format!("{name}: {licence}\n");
        for holder in sources(name).map(|sources| holders(&sources)).unwrap_or_default() {
            list += &format!("    {holder}\n");
        }
    }
    list + &other_texts(crates) + &texts_of_roundel()
}

#[test]
fn the_list_of_crates_is_that_of_the_executable() {
    let crates = crates();
    assert!(crates.len() > 100, "{} crates", crates.len());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(LIST);
    if std::env::var_os("ROUNDEL_WRITE_LICENCES").is_some() {
        fs::write(&path, written(&crates)).expect("the list is written");
    }
    let list = fs::read_to_string(&path).expect("the list is there");
    let (list, _) = list.split_once("\n---- ").unwrap_or((&list, ""));
    let body = list.split_once("\n\n").map_or("", |(_, body)| body);
    let listed: BTreeSet<Crate> = body
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| {
            line.split_once(": ").map(|(name, licence)| (name.to_string(), licence.to_string()))
        })
        .collect();
    let differing: Vec<_> = crates.symmetric_difference(&listed).collect();
    assert!(differing.is_empty(), "`make licences` writes the list again: {differing:?}");
}
