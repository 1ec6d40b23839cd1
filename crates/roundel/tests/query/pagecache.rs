//! `roundel fincore`, `fadvise`, `pagecache watch` and `capacity`, beside util-linux' fincore and vmtouch on the same files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use testkit::{RrdTool, Running, Signal};

const CREATE: &str = "-b 1000000000 -s 300 DS:a:COUNTER:600:0:U DS:b:COUNTER:600:0:U RRA:AVERAGE:0.5:1:800 RRA:AVERAGE:0.5:6:800 RRA:AVERAGE:0.5:24:800 \
                      RRA:AVERAGE:0.5:288:800 RRA:MAX:0.5:1:800 RRA:MAX:0.5:6:800 RRA:MAX:0.5:24:800 RRA:MAX:0.5:288:800";

fn roundel(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_roundel")).args(words).env_remove("RRDCACHED_ADDRESS").output().unwrap()
}

fn good(words: &[&str]) -> String {
    let output = roundel(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn objects(words: &[&str]) -> Vec<Value> {
    good(words).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What a program prints, or `None` with a note that it is not installed.
fn peer(program: &str, words: &[&str]) -> Option<String> {
    match Command::new(program).args(words).output() {
        Ok(output) => Some(String::from_utf8(output.stdout).unwrap()),
        Err(_) => {
            testkit::skip(&format!("{program} is not installed"));
            None
        }
    }
}

/// A tree on a disk (of the sources: TMPDIR may be memory), with RRDs and others, all of it written.
fn tree() -> (tempfile::TempDir, Vec<PathBuf>) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut tool = RrdTool::start().unwrap();
    tool.run(&format!("create x.rrd {CREATE}")).unwrap();
    let rrd = std::fs::read(tool.path("x.rrd")).unwrap();
    let mut paths = Vec::new();
    for (name, bytes) in [
        ("a.rrd", &rrd[..]),
        ("sub/b.rrd", &rrd),
        ("sub/c.rrd", &rrd),
        ("odd", &rrd[..9_000]),
        ("empty", b""),
    ] {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        paths.push(path);
    }
    (directory, paths)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Pages in memory, by each of the three.
fn check_same(paths: &[PathBuf]) -> Vec<u64> {
    let mut counts = Vec::new();
    for path in paths {
        let ours = objects(&["fincore", "--json", text(path)])[0]["cached"].as_u64().unwrap();
        if let Some(answer) = peer("fincore", &["-n", "-b", "-o", "PAGES", text(path)]) {
            assert_eq!(answer.trim().parse(), Ok(ours), "fincore: {}", path.display());
        }
        if let Some(answer) = peer("vmtouch", &[text(path)]) {
            let line = answer.lines().find(|line| line.contains("Resident Pages:"));
            // It counts no pages of an empty file.
            let pages = line.and_then(|line| line.split(':').nth(1)?.trim().split('/').next()?.parse().ok());
            assert_eq!(pages.unwrap_or(0), ours, "vmtouch: {}", path.display());
        }
        counts.push(ours);
    }
    counts
}

#[test]
fn pages_are_those_of_fincore_and_vmtouch() {
    let (directory, paths) = tree();
    assert_eq!(check_same(&paths), [26, 26, 26, 3, 0]);
    good(&["fadvise", "--advice", "dontneed", text(&paths[0]), text(&paths[3])]);
    assert_eq!(check_same(&paths[1..3]), [26, 26]);
    if check_same(&paths[..1]) != [0] {
        return testkit::skip("the file system of the target directory keeps all pages in memory");
    }
    // A few pages in the middle come back; the last byte is one of them.
    let file = std::fs::File::open(&paths[0]).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
    let mut byte = [0];
    for offset in [5 * 4096, 105_311] {
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut byte, offset).unwrap();
    }
    assert_eq!(check_same(&paths[..1]), [2]);
    let lines = objects(&["fincore", "--json", "--map", "--rrd", text(directory.path())]);
    let sum = lines.last().unwrap();
    assert_eq!((&sum["files"], &sum["cached"], &sum["pages"]), (&3.into(), &54.into(), &78.into()));
    let parts = &sum["parts"];
    assert_eq!((&parts["header"]["cached"], &parts["header"]["pages"]), (&2.into(), &3.into()));
    let one = lines.iter().find(|line| line["file"] == text(&paths[0])).unwrap();
    assert_eq!(one["ranges"], serde_json::json!([[5, 6], [25, 26]]));
    // To look at it has not brought anything.
    assert_eq!(check_same(&paths[..1]), [2]);
    let map = good(&["fincore", "--map", "--parts", text(&paths[0])]);
    let letters = map.lines().nth(10).unwrap_or_else(|| panic!("{map}")).trim();
    assert!(
        letters.len() == 26 && letters.starts_with('h') && letters[5..6].chars().all(char::is_uppercase),
        "{map}"
    );
}

#[test]
fn a_map_is_drawn_and_what_fails_is_named() {
    let (directory, paths) = tree();
    let picture = directory.path().join("map.png");
    let missing = directory.path().join("missing.rrd");
    let output =
        roundel(&["fincore", "--summary", "--png", text(&picture), text(directory.path()), text(&missing)]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("missing.rrd") && errors.contains("1 failed"),
        "{errors}"
    );
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("5 files: "), "{output:?}");
    assert!(std::fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_roundel"))
        .args(["fincore", "--stdin", "--summary"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let names = paths.iter().map(|path| format!("{}\n", path.display())).collect::<String>();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), names.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("5 files: "), "{output:?}");
}

#[test]
fn a_watched_system_is_recorded() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let to = text(directory.path());
    let answer = good(&["pagecache", "watch", to, "--interval", "1", "--to", to, "--count", "2"]);
    assert!(answer.contains("hit  faults") && answer.ends_with("pagecache.rrd\n"), "{answer}");
    assert!(answer.contains("recorded 2 readings"), "{answer}");
    let mut tool = RrdTool::start().unwrap();
    std::fs::copy(directory.path().join("pagecache.rrd"), tool.path("p.rrd")).unwrap();
    let info = tool.run("info p.rrd").unwrap();
    assert!(info.contains("ds[major_faults].type = \"DERIVE\"") && info.contains("step = 1"), "{info}");
    // Ctrl-C ends it in order.
    let words = ["pagecache", "watch", to, "--interval", "1h", "--to", to, "--name", "other.rrd"];
    let log = directory.path().join("log");
    let mut watch = Running::program(&log, env!("CARGO_BIN_EXE_roundel"), &words);
    watch.wait_for("the RRD", || directory.path().join("other.rrd").exists().then_some(()));
    watch.signal(Signal::INT);
    assert!(watch.wait().success(), "{}", watch.log());
    assert_eq!(watch.log().lines().count(), 1);
    let refused = roundel(&["pagecache", "watch", "/none"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot watch \"/none\""));
}

#[test]
fn capacity_says_what_a_cluster_needs() {
    let words = ["capacity", "--preset", "collectd", "--rrds", "2M", "--nodes", "4"];
    let shown = good(&words);
    for part in [
        "4 nodes in 2 zones, 2 replicas of each RRD, 64 partitions",
        "3 brokers, which keep messages for 48 h",
        "and a zone is lost",
        "RRDs                                 1000000                 1130000                 1130000",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let answer = &objects(&[&words[..], &["--json"]].concat())[0];
    assert_eq!(
        (answer["values_per_second"].as_f64(), answer["node"]["rrds_led"].as_f64()),
        (Some(2e5), Some(5e5))
    );
    let disk = |hours: &str| {
        let answer = &objects(&[&words[..], &["--retention", hours, "--json"]].concat())[0];
        answer["log"]["disk"][0].as_f64().unwrap()
    };
    assert!((disk("24h") / disk("6h") - 4.0).abs() < 1e-9);
    for (more, part) in [
        (&["--replication", "5"][..], "--replication 5 needs as many nodes"),
        (&["--zones", "5"], "--zones 5 needs as many nodes"),
        (&["--memory", "4G"], "cannot be used with"),
        (&["--partitions", "0"], "0 is not in 1..=4096"),
    ] {
        let output = roundel(&[&words[..], more].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(part), "{more:?}: {errors}");
    }
    let output = roundel(&["capacity", "--zones", "3"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--nodes"), "{output:?}");
}

#[test]
fn capacity_answers_by_model_and_simulation() {
    let words = [
        "capacity",
        "--preset",
        "mrtg",
        "--rrds",
        "2k",
        "--memory",
        "48M",
        "--iops",
        "1000",
        "--layout",
        "plain",
        "--json",
        "--simulate",
    ];
    let answer = &objects(&words)[0];
    let stairs = answer["staircase"].as_array().unwrap();
    let pages: Vec<u64> = stairs.iter().map(|stair| stair["pages_per_rrd"].as_u64().unwrap()).collect();
    assert_eq!(pages, [0, 3, 5, 7, 9]);
    let (model, simulation) = (&answer["load"]["faults"], &answer["simulation"]["faults"]);
    let (model, simulation) = (model.as_f64().unwrap(), simulation.as_f64().unwrap());
    assert!((model / simulation - 1.0).abs() < 0.15, "{model} and {simulation}");
    assert_eq!(objects(&words), objects(&words), "a seed says all");
    // A real tree says the same as the preset.
    let (directory, paths) = tree();
    let like = &objects(&["capacity", "--like", text(directory.path()), "--json"])[0];
    assert_eq!(like["geometry"]["file_bytes"], 105_312);
    for name in ["faults.svg", "faults.png"] {
        let picture = directory.path().join(name);
        let shown = good(&["capacity", "--rrds", "320k", "--graph", text(&picture), "--dark"]);
        assert!(shown.contains("What to buy next") && picture.exists(), "{shown}");
    }
    for (words, part) in [
        (vec!["capacity", "--like", text(&paths[3])], "none is a .rrd file"),
        (vec!["capacity", "--rrds", "0"], "320k"),
        (vec!["capacity", "DS:a:GAUGE:600:U:U"], "no RRD can be made"),
        (vec!["capacity", "--iops", "0"], "greater than 0"),
        (vec!["capacity", "--graph", "x.gif"], ".svg or .png"),
        (vec!["capacity", "--rrds", "900M", "--simulate"], "cannot simulate"),
    ] {
        let output = roundel(&words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(part), "{words:?}: {errors}");
    }
}
