//! `roundel verify` and `roundel snapshot` of a store that runs, and of one that is stopped.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

#[cfg(feature = "backup")]
#[path = "verify/backup.rs"]
mod backup;
#[path = "verify/snapshot.rs"]
mod snapshot;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testkit::{Running, wait_for};

const ROUNDEL: &str = env!("CARGO_BIN_EXE_roundel");

fn roundel(directory: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(ROUNDEL);
    command.args(words).current_dir(directory).env_remove("RRDCACHED_ADDRESS").output().unwrap()
}

fn serve(directory: &Path) -> Running {
    let config = "store = \"store\"\nbase = \"base\"\nsnapshots = \"snapshots\"\n[[listen]]\naddress = \"unix:sock\"\n[stripes]\nshards = 1\n\
                  open_bytes = 10000\nscrub = \"off\"\n[log]\nfile = \"log\"\n";
    std::fs::write(directory.join("c.toml"), config).unwrap();
    let mut command = Command::new(ROUNDEL);
    command.args(["serve", "--config", "c.toml"]).current_dir(directory).env_remove("RUST_LOG");
    Running::quiet(&mut command)
}

fn say(directory: &Path, lines: &[String]) {
    let mut stream = wait_for("the daemon to listen", || UnixStream::connect(directory.join("sock")).ok());
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    for line in lines {
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert!(answer.starts_with("0 ") || answer.starts_with("1 "), "{line}: {answer}");
    }
}

fn segments(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory.join("store/shard-000")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_string_lossy().contains("segment-")).collect()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn a_store_is_verified_while_it_runs_and_when_it_is_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let daemon = serve(directory);
    let name = |number: i64| format!("host-{number}.rrd");
    let made: Vec<String> = (0..20)
        .map(|number| {
            let name = name(number);
            format!("CREATE {name} -b 1700000000 -s 10 DS:a:GAUGE:60:U:U RRA:AVERAGE:0.5:1:1000")
        })
        .collect();
    say(directory, &made);
    let updates: Vec<String> = (1..100)
        .flat_map(|step| {
            let name = &name;
            (0..20).map(move |number| {
                format!("UPDATE {} {}:{}", name(number), 1_700_000_000 + 10 * step, step * number)
            })
        })
        .collect();
    say(directory, &updates);
    let path = wait_for("a segment", || segments(directory).into_iter().next());
    let good = roundel(directory, &["verify", "--daemon", "sock"]);
    assert!(good.status.success() && text(&good).contains("nothing is damaged"), "{}", text(&good));
    let in_use = roundel(directory, &["verify", "--store", "store"]);
    assert!(!in_use.status.success() && text(&in_use).contains("--daemon"), "{}", text(&in_use));

    // Merges may replace it: damage all there are.
    let mut damaged = Vec::new();
    for path in segments(directory) {
        if let Ok(mut bytes) = std::fs::read(&path) {
            bytes[100] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            damaged.push(path);
        }
    }
    assert!(!damaged.is_empty(), "{}", path.display());
    let bad = roundel(directory, &["verify", "--daemon", "unix:sock", "--json"]);
    assert_eq!(bad.status.code(), Some(1), "{}", text(&bad));
    let json = String::from_utf8(bad.stdout.clone()).unwrap();
    let line = json.lines().next().unwrap();
    assert!(line.contains("\"file\":\"shard-000/segment-") && line.contains("\"byte\":32,"), "{line}");
    assert!(line.contains("\"rrds\":[\"host-"), "{line}");
    let log = std::fs::read_to_string(directory.join("log")).unwrap();
    assert!(log.contains("the store is damaged") && log.contains("host-"), "{log}");
    assert!(daemon.terminate().success());

    let stopped = roundel(directory, &["verify", "--store", "store"]);
    assert_eq!(stopped.status.code(), Some(1), "{}", text(&stopped));
    assert!(text(&stopped).contains("DAMAGE shard-000/segment-"), "{}", text(&stopped));
    assert!(text(&stopped).contains("may lack rows from 2023-11-14T22:13:"), "{}", text(&stopped));
    let none = roundel(directory, &["verify", "--daemon", "unix:sock"]);
    assert!(!none.status.success() && text(&none).contains("--store DIR"), "{}", text(&none));
}
