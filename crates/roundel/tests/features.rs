//! Parts that a build leaves out say so: which feature is missing, and which build has it. In a build with all features, this file
//! only tests that the commands are listed without a mark, and that HTTP answers. `make variants` runs it for the default build.

use std::process::{Command, Output};

use testkit::{Client, Kind, Running, http_bytes};

fn roundel(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
    command.args(words).env_remove("RRDCACHED_ADDRESS").output().expect("roundel runs")
}

/// The text of a refusal.
fn refusal(subject: &str, feature: &str) -> String {
    format!(
        "{subject}: this build lacks the feature \"{feature}\"; the Debian packages have it, and so has the build by make run FEATURES=full"
    )
}

/// What a refusal says: one line, status 1.
#[cfg(not(feature = "full"))]
fn refused(words: &[&str], subject: &str, feature: &str) {
    let output = roundel(words);
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{words:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains(&refusal(subject, feature)), "{words:?}: {text}");
}

#[test]
fn commands_are_listed_and_marked_if_they_are_missing() {
    let help = String::from_utf8(roundel(&["--help"]).stdout).unwrap();
    for (command, is_built) in [
        ("backup", cfg!(feature = "backup")),
        ("capacity", cfg!(feature = "pagecache")),
        ("cluster", cfg!(feature = "cluster")),
        ("fadvise", cfg!(feature = "pagecache")),
        ("fincore", cfg!(feature = "pagecache")),
        ("mount", cfg!(feature = "mount")),
        ("pagecache", cfg!(feature = "pagecache")),
        ("serve", true),
    ] {
        let line = help.lines().find(|line| line.trim_start().starts_with(&format!("{command} ")));
        let line = line.unwrap_or_else(|| panic!("no {command}: {help}"));
        assert_eq!(line.contains("[not in this build: feature"), !is_built, "{line}");
    }
}

#[cfg(not(feature = "full"))]
#[test]
fn a_missing_command_names_its_feature() {
    for (command, feature, is_built) in [
        ("backup", "backup", cfg!(feature = "backup")),
        ("capacity", "pagecache", cfg!(feature = "pagecache")),
        ("cluster", "cluster", cfg!(feature = "cluster")),
        ("fadvise", "pagecache", cfg!(feature = "pagecache")),
        ("fincore", "pagecache", cfg!(feature = "pagecache")),
        ("mount", "mount", cfg!(feature = "mount")),
        ("pagecache", "pagecache", cfg!(feature = "pagecache")),
    ] {
        for words in [&[command][..], &[command, "--to", "x", "--help"]] {
            if !is_built {
                refused(words, command, feature);
            }
        }
    }
}

/// The option is listed with a mark, because the help text of `restore` speaks of it.
#[cfg(not(feature = "backup"))]
#[test]
fn a_restore_from_a_backup_names_its_feature() {
    for command in [&["restore"][..], &["trash", "restore"]] {
        let run = |words: &[&str]| refused(&[command, words].concat(), "restore --from", "backup");
        run(&["--from", "s3://bucket/store"]);
        run(&["--from", "/b", "--to", "x", "--at", "-1d", "--early", "--config", "none.toml", "a.rrd"]);
        run(&["a.rrd", "--key", "k"]);
        let help = String::from_utf8(roundel(&[command, &["--help"]].concat()).stdout).unwrap();
        assert!(help.contains("--from <URL>") && help.contains("[not in this build: feature \"backup\"]"));
    }
}

#[cfg(not(feature = "mount"))]
#[test]
fn the_helper_of_mount_names_its_feature() {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
    let output = command.arg0("mount.roundel").args(["/s", "/m"]).output().expect("roundel runs");
    assert_eq!(output.status.code(), Some(32));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text, refusal("mount.roundel", "mount") + "\n");
}

/// A configuration that needs a feature, with the subject and the feature that the refusal names.
struct NeedyConfig {
    text: &'static str,
    subject: &'static str,
    feature: &'static str,
    is_built: bool,
}

const NEEDY_CONFIGS: [NeedyConfig; 8] = [
    NeedyConfig {
        text: "[cluster]\nname = 'c'\n",
        subject: "[cluster]",
        feature: "cluster",
        is_built: cfg!(feature = "cluster"),
    },
    NeedyConfig {
        text: "[cluster]\nname = 'c'\nlisten = '127.0.0.1:1'\nsecret_file = 'no'\n\
               [cluster.kafka]\nbrokers = ['127.0.0.1:1']\ntopic = 't'\n",
        subject: if cfg!(feature = "cluster") { "[cluster.kafka]" } else { "[cluster]" },
        feature: if cfg!(feature = "cluster") { "kafka" } else { "cluster" },
        is_built: cfg!(feature = "kafka"),
    },
    NeedyConfig {
        text: "[cluster]\nname = 'c'\nlisten = '127.0.0.1:1'\nsecret_file = 'no'\n\
               [cluster.kafka]\nbrokers = ['127.0.0.1:1']\ntopic = 't'\ntls = true\n",
        subject: "TLS and logins of [cluster.kafka]",
        feature: "kafka-tls",
        // Without `kafka`, the refusal names that.
        is_built: cfg!(feature = "kafka-tls") || cfg!(not(feature = "kafka")),
    },
    NeedyConfig {
        text: "[backup]\nto = '/b'\n",
        subject: "[backup]",
        feature: "backup",
        is_built: cfg!(feature = "backup"),
    },
    NeedyConfig {
        text: "[[sink]]\nto = 'parquet:/x'\n",
        subject: if cfg!(feature = "exchange") { "the target parquet" } else { "[[sink]]" },
        feature: if cfg!(feature = "exchange") { "arrow" } else { "exchange" },
        is_built: cfg!(all(feature = "arrow", feature = "exchange")),
    },
    NeedyConfig {
        text: "[[sink]]\nto = 'postgres://me@127.0.0.1/history'\n",
        subject: if cfg!(feature = "exchange") { "the target postgres" } else { "[[sink]]" },
        feature: if cfg!(feature = "exchange") { "postgres" } else { "exchange" },
        is_built: cfg!(feature = "postgres"),
    },
    NeedyConfig {
        text: "[[forward]]\nname = 'p'\nto = 'http://127.0.0.1:1/'\n",
        subject: "[[forward]] to an http:// or https:// URL",
        feature: "http-client",
        is_built: cfg!(feature = "http-client"),
    },
    NeedyConfig {
        text: "[http]\nlisten = []\nweb_config = 'web-config.yml'\n",
        subject: "a web_config file (YAML)",
        feature: "web-config",
        is_built: cfg!(feature = "web-config"),
    },
];

/// `validate` and `serve` refuse the same configurations.
#[test]
fn a_configuration_that_needs_a_missing_feature_is_refused_by_name() {
    for NeedyConfig { text, subject, feature, is_built } in NEEDY_CONFIGS {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("web-config.yml"), "basic_auth_users: {}\n").unwrap();
        std::fs::write(directory.path().join("roundel.toml"), text).unwrap();
        for command in [&["validate", "roundel.toml"][..], &["serve", "--config", "roundel.toml"]] {
            if is_built {
                continue;
            }
            let log = directory.path().join(command[0]);
            let mut process = Command::new(env!("CARGO_BIN_EXE_roundel"));
            let mut process = Running::start(process.args(command).current_dir(&directory), &log);
            let status = process.wait();
            let said = process.log();
            assert_eq!((status.code(), said.lines().count()), (Some(1), 1), "{command:?} {text}: {said}");
            assert!(said.contains(&refusal(subject, feature)), "{command:?} {text}: {said}");
        }
    }
}

/// A missing feature answers 501 with its name over HTTP, and a line in rrdcached's protocol.
#[test]
fn a_daemon_names_the_missing_feature() {
    let directory = tempfile::tempdir().unwrap();
    let port = testkit::free_port();
    let mut daemon = testkit::daemon!(Kind::Stripes, directory.path());
    daemon.configure(&format!("[http]\nlisten = [\"127.0.0.1:{port}\"]\n"));
    let mut client = daemon.start();
    let made = client.ask("CREATE a.rrd -s 10 -b 1000000000 DS:x:GAUGE:600:U:U RRA:LAST:0.5:1:100");
    assert_eq!(made.unwrap().status, 0);
    answers_of_http(port);
    answer_to_cluster(&mut client);
    assert!(daemon.take().terminate().success());
    #[cfg(not(feature = "graphite"))]
    {
        let store = directory.path().join("store");
        let words = ["query", "--graphite", "a.x", "--url", store.to_str().unwrap()];
        refused(&words, "Graphite's API", "graphite");
    }
}

fn answers_of_http(port: u16) {
    const RANGE: &str = "arg=-s1000000000&arg=-e1000000100&arg=DEF:a=a.rrd:x:LAST";
    let graphite = ("Graphite's API", "graphite", cfg!(feature = "graphite"));
    let arrow = ("format=arrow", "arrow", cfg!(feature = "arrow"));
    let pdf = ("PDF", "pdf", cfg!(feature = "pdf"));
    let cluster = ("a cluster", "cluster", cfg!(feature = "cluster"));
    for (target, (subject, feature, is_built)) in [
        ("/render?target=a.x&format=json", graphite),
        ("/render/?target=a.x", graphite),
        ("/graphite/render?target=a.x&format=json", graphite),
        ("/metrics/find?query=*", graphite),
        ("/functions", graphite),
        ("/tags/findSeries?expr=name=a", graphite),
        ("/events/get_data", graphite),
        (&format!("/graph?arg=-aPDF&{RANGE}&arg=LINE:a%23f00"), pdf),
        ("/rrd/a.pdf", pdf),
        (&format!("/api/v1/xport?format=arrow&{RANGE}&arg=XPORT:a"), arrow),
        ("/api/v1/fetch/a.rrd?cf=LAST&format=arrow", arrow),
        ("/rrd/a.arrow", arrow),
        ("/cluster", cluster),
        ("/api/v1/cluster", cluster),
    ] {
        let answer = http_bytes(port, "GET", target, "", b"").expect("an answer");
        let text = String::from_utf8_lossy(&answer);
        assert_eq!(text.starts_with("HTTP/1.1 501 "), !is_built, "{target}: {text}");
        if !is_built {
            // A page has the quotes as entities, and JSON has a backslash before each.
            let text = text.replace("&#34;", "\"").replace("&#39;", "'").replace("\\\"", "\"");
            assert!(text.contains(&refusal(subject, feature)), "{target}: {text}");
        }
    }
}

fn answer_to_cluster(client: &mut Client) {
    let answer = client.ask("CLUSTER STATUS").expect("an answer");
    let lacks = answer.message.contains(&refusal("CLUSTER", "cluster"));
    assert_eq!((answer.status < 0, lacks), (true, cfg!(not(feature = "cluster"))), "{answer:?}");
}

#[cfg(not(feature = "full"))]
#[test]
fn a_missing_format_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let rrd = directory.path().join("a.rrd");
    let rrd = rrd.to_str().unwrap();
    let run = |words: &[&str]| roundel(&[&["rrdtool"], words].concat());
    assert!(run(&["create", rrd, "DS:x:GAUGE:600:U:U", "RRA:LAST:0.5:1:10"]).status.success());
    if cfg!(not(feature = "pdf")) {
        let picture = directory.path().join("a.pdf");
        let picture = picture.to_str().unwrap();
        let output = run(&["graph", picture, "-a", "PDF", &format!("DEF:x={rrd}:x:LAST"), "LINE:x#000000"]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && text.contains("PDF: this build lacks the feature \"pdf\""),
            "{text}"
        );
    }
    if cfg!(not(feature = "arrow")) {
        let def = format!("DEF:x={rrd}:x:LAST");
        refused(&["query", &def, "--format", "arrow"], "Arrow", "arrow");
        // What the output file holds stays.
        let kept = directory.path().join("kept");
        std::fs::write(&kept, "kept").unwrap();
        let output = ["--format", "parquet", "-o", kept.to_str().unwrap()];
        refused(&[&["query", &def][..], &output].concat(), "Parquet", "arrow");
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "kept");
    }
    if cfg!(not(feature = "exchange")) {
        refused(&["export", "--all", "--to", "parquet:x"], "export --to parquet", "exchange");
        refused(&["export", "--all", "--to", "postgres://me:pw@h/d"], "export --to postgres", "postgres");
        refused(&["import", "--format", "whisper", "x"], "import --format whisper", "exchange");
        refused(&["import", "--format", "xml", "x"], "import --format xml", "exchange");
    }
    if cfg!(not(feature = "http-client")) {
        let url = "http://127.0.0.1:1";
        let words = ["query", "--promql", "up", "--url", url];
        refused(&words, &format!("a request to {url}"), "http-client");
        refused(&words[..3], "a query of a daemon", "http-client");
    }
}
