//! Our headers beside Debian's: the same prototypes, sizes and offsets, and programs compile with them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of Debian's headers.
const THEIRS: &str = "/usr/include";
/// The prefix of every function both declare.
const PREFIX: &str = "rrd";

fn ours() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

fn cc(include: &Path, args: &[&str]) {
    let made = Command::new("cc").arg("-I").arg(include).args(args).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// The functions that the headers of a directory declare, as the compiler prints them.
fn prototypes(include: &Path) -> BTreeMap<String, String> {
    let directory = tempfile::tempdir().unwrap();
    let (source, out) = (directory.path().join("all.c"), directory.path().join("all.txt"));
    let names =
        ["rrd.h", "rrd_client.h"].map(|name| format!("#include \"{}\"\n", include.join(name).display()));
    std::fs::write(&source, format!("#define RRD_EXPORT_DEPRECATED\n{}", names.concat())).unwrap();
    cc(include, &["-fsyntax-only", "-aux-info", out.to_str().unwrap(), source.to_str().unwrap()]);
    let text = std::fs::read_to_string(&out).unwrap();
    let one = |line: &str| {
        // `/* file:line:NC */ extern int rrd_update_r (const char *, ...);`
        let declaration = line
            .split_once("*/")?
            .1
            .trim()
            .replace("struct rrd_t *", "rrd_t *")
            .replace("const int )", "int)");
        let name = declaration.split_once(" (")?.0.rsplit([' ', '*']).next()?.to_string();
        name.starts_with(PREFIX).then_some((name, declaration))
    };
    text.lines().filter_map(one).collect()
}

#[test]
fn every_function_is_declared_as_debian_does() {
    let (ours, theirs) = (prototypes(&ours()), prototypes(Path::new(THEIRS)));
    for (name, declaration) in &ours {
        assert_eq!(theirs.get(name), Some(declaration), "{name}");
    }
    // Whatever Debian's library exports and its headers declare, ours declare too.
    let exported = exports(&testkit::libraries().join("librrd.so.8"));
    let missing: Vec<_> =
        theirs.keys().filter(|name| exported.contains(name) && !ours.contains_key(*name)).collect();
    assert!(missing.is_empty(), "not declared: {missing:?}");
    assert!(ours.len() > 75, "only {} functions were found", ours.len());
    let exported = exports(&testkit::our_librrd().unwrap());
    for name in ours.keys() {
        assert!(exported.contains(name), "{name} is declared and not exported");
    }
}

/// The symbols of a library.
fn exports(library: &Path) -> Vec<String> {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.rsplit(' ').next()).map(str::to_string).collect()
}

/// Structures and their members.
const LAYOUTS: &[(&str, &[&str])] = &[
    ("rrd_file_t", &["header_len", "file_len", "pos", "pvt", "rrd"]),
    ("rrd_blob_t", &["size", "ptr"]),
    ("rrd_infoval_t", &["u_cnt", "u_val", "u_str", "u_int", "u_blo"]),
    ("rrd_info_t", &["key", "type", "value", "next"]),
    ("rrd_time_value_t", &["type", "offset", "tm"]),
    ("rrd_context_t", &["lib_errstr", "rrd_error"]),
    ("rrdc_stats_t", &["name", "type", "flags", "value", "value.counter", "value.gauge", "next"]),
    ("stat_head_t", &["cookie", "version", "float_cookie", "ds_cnt", "rra_cnt", "pdp_step", "par"]),
    ("ds_def_t", &["ds_nam", "dst", "par"]),
    ("rra_def_t", &["cf_nam", "row_cnt", "pdp_cnt", "par"]),
    ("live_head_t", &["last_up", "last_up_usec"]),
    ("pdp_prep_t", &["last_ds", "scratch"]),
    ("cdp_prep_t", &["scratch"]),
    ("rra_ptr_t", &["cur_row"]),
    (
        "rrd_t",
        &[
            "stat_head",
            "ds_def",
            "rra_def",
            "live_head",
            "legacy_last_up",
            "pdp_prep",
            "cdp_prep",
            "rra_ptr",
            "rrd_value",
        ],
    ),
];
/// Constants.
const NUMBERS: &[&str] = &[
    "RD_I_VAL",
    "RD_I_CNT",
    "RD_I_STR",
    "RD_I_INT",
    "RD_I_BLO",
    "ABSOLUTE_TIME",
    "RELATIVE_TO_START_TIME",
    "RELATIVE_TO_END_TIME",
    "RELATIVE_TO_EPOCH",
    "RRD_SKIP_PAST_UPDATES",
    "RRDC_STATS_TYPE_GAUGE",
    "RRDC_STATS_TYPE_COUNTER",
    "CF_AVERAGE",
    "CF_FAILURES",
    "CF_MHWPREDICT",
    "DS_NAM_SIZE",
    "LAST_DS_LEN",
];

#[test]
fn structures_are_laid_out_as_debians() {
    let mut body = String::new();
    for (name, members) in LAYOUTS {
        body.push_str(&format!("printf(\"{name} %zu\\n\", sizeof({name}));\n"));
        for member in *members {
            body.push_str(&format!(
                "printf(\"{name}.{member} %zu %zu\\n\", offsetof({name}, {member}), sizeof((({name} *)0)->{member}));\n"
            ));
        }
    }
    for number in NUMBERS {
        body.push_str(&format!("printf(\"{number} %d\\n\", (int){number});\n"));
    }
    let texts = ["ENV_RRDCACHED_ADDRESS", "RRDCACHED_DEFAULT_ADDRESS", "RRDCACHED_DEFAULT_PORT"];
    texts.iter().for_each(|text| body.push_str(&format!("printf(\"%s\\n\", {text});\n")));
    let source = format!(
        "#define RRD_EXPORT_DEPRECATED\n#include <rrd.h>\n#include <rrd_client.h>\n#include <stddef.h>\n\
         #include <stdio.h>\nint main(void) {{\n{body}return 0;\n}}\n"
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("layout.c");
    std::fs::write(&file, source).unwrap();
    let print = |include: &Path| {
        let program = directory.path().join("layout");
        cc(include, &["-o", program.to_str().unwrap(), file.to_str().unwrap()]);
        String::from_utf8(Command::new(program).output().unwrap().stdout).unwrap()
    };
    assert_eq!(print(&ours()), print(Path::new(THEIRS)));
}

#[test]
fn the_test_program_builds_without_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let object = directory.path().join("calls.o");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/calls.c");
    // Its arguments are string literals, which RRDtool's prototypes take although they are not const.
    let flags = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-sign-compare", "-c", "-o"];
    cc(&ours(), &[&flags[..], &[object.to_str().unwrap(), source]].concat());
}

#[test]
fn pkg_config_is_told_where_they_are() {
    let template = std::fs::read_to_string(ours().with_file_name("librrd.pc.in")).unwrap();
    let fields = ["@PREFIX@", "@LIBDIR@", "@INCLUDEDIR@", "@VERSION@"];
    for field in fields {
        assert_eq!(template.matches(field).count(), 1, "{field}");
    }
    for line in ["Name: librrd", "Libs: -L${libdir} -lrrd", "Cflags: -I${includedir}"] {
        assert!(template.lines().any(|found| found == line), "{line}");
    }
}
