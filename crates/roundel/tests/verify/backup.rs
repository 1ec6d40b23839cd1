//! A backup to a directory, and to an S3 server (moto), by a daemon that is killed; and what is restored of it.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use testkit::{Running, free_port, http_get, http_request, peer, wait_for};

use super::{ROUNDEL, roundel, say, text};

/// A daemon in `directory` with this section `[backup]`, and its port of HTTP.
fn serve(directory: &Path, backup: &str) -> (Running, u16) {
    serve_with(directory, 10_000, &format!("interval = \"1s\"\n{backup}"))
}

/// The same, with so many bytes of open rows.
fn serve_with(directory: &Path, open_bytes: usize, backup: &str) -> (Running, u16) {
    let port = free_port();
    let config = format!(
        "store = \"store\"\nbase = \"base\"\n[[listen]]\naddress = \"unix:sock\"\n[http]\nlisten = [\"127.0.0.1:{port}\"]\n\
         [stripes]\nshards = 2\nopen_bytes = {open_bytes}\nscrub = \"off\"\n[log]\nfile = \"log\"\n[backup]\n{backup}"
    );
    std::fs::write(directory.join("c.toml"), config).unwrap();
    let mut command = Command::new(ROUNDEL);
    command.args(["serve", "--config", "c.toml"]).current_dir(directory).env_remove("RUST_LOG");
    (Running::quiet(&mut command), port)
}

fn metric(port: u16, name: &str) -> Option<f64> {
    let answer = http_get(port, "/metrics")?;
    let line = answer.lines().find(|line| line.starts_with(name) && line[name.len()..].starts_with(' '))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Waits for so many further rounds.
fn wait_for_rounds(port: u16, more: f64) {
    let rounds = || metric(port, "roundel_backup_rounds_total");
    let before = wait_for("the metrics", rounds);
    wait_for("rounds of the backup", || rounds().filter(|now| *now >= before + more));
}

fn name(number: i64) -> String {
    format!("{}/host-{number}.rrd", ["hall", "roof"][number as usize % 2])
}

fn create(directory: &Path, rows: u32) {
    let line = |number| {
        format!("CREATE {} -b 1700000000 -s 10 DS:a:GAUGE:60:U:U RRA:AVERAGE:0.5:1:{rows}", name(number))
    };
    say(directory, &(0..20).map(line).collect::<Vec<_>>());
}

fn update(directory: &Path, steps: std::ops::Range<i64>) {
    let one = |step: i64| {
        (0..20).map(move |number| {
            format!("UPDATE {} {}:{}", name(number), 1_700_000_000 + 10 * step, step * number)
        })
    };
    say(directory, &steps.flat_map(one).collect::<Vec<_>>());
}

/// All RRDs of the daemon as text.
fn dumps(directory: &Path) -> Vec<String> {
    let dump = |number| {
        let dumped =
            roundel(&directory.join("base"), &["rrdtool", "dump", &name(number), "--daemon", "unix:../sock"]);
        assert!(dumped.status.success(), "{}", text(&dumped));
        text(&dumped)
    };
    (0..20).map(dump).collect()
}

/// All RRDs that were restored as files.
fn dumps_of_files(directory: &Path) -> Vec<String> {
    (0..20).map(|number| text(&roundel(directory, &["rrdtool", "dump", &name(number)]))).collect()
}

/// A backup by a daemon that is killed twice, once while it sends slowly, and all that is restored of it.
fn comes_back(directory: &Path, to: &str, config: &str, options: &[&str]) {
    let (daemon, port) = serve(directory, &format!("{config}bandwidth = \"10 kB\"\n"));
    create(directory, 1000);
    update(directory, 1..100);
    wait_for("the first bytes", || metric(port, "roundel_backup_complete_seconds"));
    daemon.kill();
    let (daemon, port) = serve(directory, config);
    update(directory, 100..150);
    wait_for_rounds(port, 2.0);
    let want = dumps(directory);
    assert!(metric(port, "roundel_backup_complete_seconds").unwrap() > 1_700_000_000.0);
    daemon.kill();
    // The machine has burnt.
    let call = |words: &[&str]| roundel(directory, &[words, &["--from", to], options].concat());
    let verified = call(&["backup", "verify"]);
    assert!(verified.status.success() && text(&verified).contains("is whole"), "{}", text(&verified));
    let listed = call(&["backup", "list"]);
    assert!(text(&listed).lines().any(|line| line.contains("bytes  0:")), "{}", text(&listed));
    let files = call(&["restore", "hall", "roof", "--to", "files"]);
    assert!(files.status.success() && text(&files).contains("20 RRDs restored"), "{}", text(&files));
    assert_eq!(dumps_of_files(&directory.join("files")), want);
    let one = call(&["backup", "restore", "hall/host-4.rrd", "--to", "one"]);
    assert!(one.status.success() && directory.join("one/hall/host-4.rrd").exists(), "{}", text(&one));
    // What stands where the whole store goes meanwhile is not its own to remove.
    let kept = directory.join("two.restoring");
    std::fs::create_dir(&kept).unwrap();
    std::fs::write(kept.join("note"), "mine").unwrap();
    let refused = call(&["restore", "hall", "--to", "two"]);
    assert!(!refused.status.success() && text(&refused).contains("two.restoring"), "{}", text(&refused));
    assert_eq!(std::fs::read_to_string(kept.join("note")).unwrap(), "mine");
    let unknown = call(&["restore", "cellar", "--to", "none"]);
    assert!(!unknown.status.success() && !directory.join("none.restoring").exists(), "{}", text(&unknown));
    std::fs::remove_dir_all(directory.join("store")).unwrap();
    let whole = call(&["restore", "--to", "store"]);
    assert!(whole.status.success(), "{}", text(&whole));
    let again = call(&["restore", "--to", "store"]);
    assert!(!again.status.success() && text(&again).contains("is not empty"), "{}", text(&again));
    let good = roundel(directory, &["verify", "--store", "store"]);
    assert!(good.status.success(), "{}", text(&good));
    let pruned = call(&["backup", "prune", "--keep", "7d all, 90d daily"]);
    assert!(pruned.status.success() && text(&pruned).contains("kept"), "{}", text(&pruned));
    // It goes on where it ended, with its backup.
    let (daemon, port) = serve(directory, config);
    update(directory, 150..160);
    wait_for_rounds(port, 2.0);
    assert!(daemon.terminate().success());
    let early = call(&["restore", "--to", "early", "--at", "noon yesterday"]);
    assert!(!early.status.success() && text(&early).contains("the first moment"), "{}", text(&early));
    assert!(!directory.join("early").exists());
}

#[test]
fn a_store_comes_back_from_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    std::fs::write(directory.join("key"), "5a".repeat(32)).unwrap();
    let to = directory.join("backup").display().to_string();
    comes_back(directory, &to, &format!("to = \"{to}\"\nkey = \"key\"\n"), &["--key", "key"]);
    let without = roundel(directory, &["backup", "verify", "--from", &to]);
    assert!(!without.status.success() && text(&without).contains("it is encrypted"), "{}", text(&without));
}

/// RRDs with so many rows that do not compress well that their segments are not small files.
fn feed_with_noise(directory: &Path, steps: std::ops::Range<i64>) {
    let reading = |step: i64, number: i64| {
        let noise = ((step * 20 + number) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as f64 / 1e15;
        format!(" {}:{noise:.12}", 1_700_000_000 + 10 * step)
    };
    let steps: Vec<i64> = steps.collect();
    let line = |steps: &[i64], number: i64| {
        let readings: String = steps.iter().map(|step| reading(*step, number)).collect();
        format!("UPDATE {}{readings}", name(number))
    };
    let lines = steps.chunks(50).flat_map(|steps| (0..20).map(move |number| line(steps, number)));
    say(directory, &lines.collect::<Vec<_>>());
}

#[test]
fn a_restored_store_is_served_before_it_has_come() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let to = directory.join("backup").display().to_string();
    let config = format!("to = \"{to}\"\ninterval = \"1h\"\n");
    let (daemon, port) = serve_with(directory, 300_000, &config);
    create(directory, 8000);
    wait_for("the first round", || metric(port, "roundel_backup_rounds_total").filter(|count| *count > 0.0));
    feed_with_noise(directory, 1..8000);
    let want = dumps(directory);
    // The next round would come in an hour: a clean stop has a last one.
    assert!(daemon.terminate().success());
    std::fs::remove_dir_all(directory.join("store")).unwrap();
    let one = roundel(directory, &["restore", "hall/host-4.rrd", "--from", &to, "--to", "one"]);
    assert!(one.status.success() && text(&one).contains("for which"), "{}", text(&one));
    let of_one = text(&roundel(&directory.join("one"), &["rrdtool", "dump", "hall/host-4.rrd"]));
    assert_eq!(of_one, want[4]);
    let restore = |to_dir: &str| roundel(directory, &["restore", "--from", &to, "--to", to_dir, "--early"]);
    let early = restore("store");
    assert!(early.status.success() && text(&early).contains("can be served now"), "{}", text(&early));
    for tool in [&["verify", "--store", "store"][..], &["repair", "store"]] {
        let refused = text(&roundel(directory, tool));
        assert!(refused.contains("restore is not complete"), "{tool:?}: {refused}");
    }
    // Without its backup, what is there is served, and what is wrong is said.
    std::fs::rename(directory.join("backup/objects"), directory.join("away")).unwrap();
    let elsewhere = format!("to = \"{}\"\n", directory.join("elsewhere").display());
    let (daemon, port) = serve_with(directory, 300_000, &elsewhere);
    feed_with_noise(directory, 8000..8001);
    let left = wait_for("the metrics", || metric(port, "roundel_restore_left_bytes"));
    assert!(left > 100_000.0 || metric(port, "roundel_restore_lost_parts").unwrap() > 0.0, "{left}");
    let status = http_get(port, "/api/v1/status").unwrap();
    assert!(status.contains("are lost"), "{status}");
    assert!(daemon.terminate().success());
    std::fs::rename(directory.join("away"), directory.join("backup/objects")).unwrap();
    std::fs::remove_dir_all(directory.join("store")).unwrap();
    assert!(restore("store").status.success());
    let (daemon, port) = serve_with(directory, 300_000, &config);
    wait_for("the daemon to listen", || metric(port, "roundel_restore_left_bytes"));
    assert_eq!(dumps(directory), want);
    wait_for("the rest", || metric(port, "roundel_restore_left_bytes").filter(|left| *left == 0.0));
    assert!(daemon.terminate().success());
    assert!(!directory.join("store/RESTORING").exists());
    let good = roundel(directory, &["verify", "--store", "store"]);
    assert!(good.status.success(), "{}", text(&good));
}

#[test]
fn a_store_comes_back_from_an_s3_server() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let port = free_port();
    let Some(moto) = peer::moto() else { return };
    let mut command = Command::new(moto);
    let _server = Running::quiet(command.args(["-H", "127.0.0.1", "-p", &port.to_string()]));
    wait_for("moto to make a bucket", || {
        http_request(port, "PUT", "/bucket", "", b"").filter(|answer| answer.starts_with("HTTP/1.1 200"))
    });
    let endpoint = format!("http://127.0.0.1:{port}");
    let config = format!(
        "to = \"s3://bucket/a/prefix\"\nendpoint = \"{endpoint}\"\nregion = \"us-east-1\"\naccess_key_id = \"id\"\n\
         secret_access_key = \"secret\"\n"
    );
    std::fs::write(directory.join("b.toml"), format!("[backup]\n{config}")).unwrap();
    comes_back(directory, "s3://bucket/a/prefix", &config, &["--config", "b.toml"]);
}

/// Starts versitygw.
fn versitygw(directory: &Path, port: u16) -> Option<Running> {
    let program = peer::versitygw()?;
    let (root, side) = (directory.join("root"), directory.join("side"));
    std::fs::create_dir_all(root.join("bucket")).unwrap();
    std::fs::create_dir_all(&side).unwrap();
    let mut command = Command::new(program);
    command.args([
        "--access",
        "an-id",
        "--secret",
        "a-secret",
        "--port",
        &format!("127.0.0.1:{port}"),
        "posix",
    ]);
    Some(Running::quiet(command.arg("--sidecar").arg(side).arg(root)))
}

#[test]
fn a_store_comes_back_from_versitygw() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let port = free_port();
    let Some(_server) = versitygw(directory, port) else { return };
    wait_for("versitygw to listen", || TcpStream::connect(("127.0.0.1", port)).ok());
    let config = format!(
        "to = \"s3://bucket/a/prefix\"\nendpoint = \"http://127.0.0.1:{port}\"\nregion = \"us-east-1\"\naccess_key_id = \"an-id\"\n\
         secret_access_key = \"a-secret\"\n"
    );
    std::fs::write(directory.join("b.toml"), format!("[backup]\n{config}")).unwrap();
    comes_back(directory, "s3://bucket/a/prefix", &config, &["--config", "b.toml"]);
}

/// Starts s3s-fs.
fn s3s(directory: &Path, port: u16) -> Option<Running> {
    let program = peer::s3s_fs()?;
    let root = directory.join("root");
    std::fs::create_dir_all(root.join("bucket")).unwrap();
    let mut command = Command::new(program);
    command.args(["--access-key", "an-id", "--secret-key", "a-secret", "--host", "127.0.0.1", "--port"]);
    Some(Running::quiet(command.arg(port.to_string()).arg(root)))
}

#[test]
fn a_store_comes_back_from_s3s_fs() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let port = free_port();
    let Some(_server) = s3s(directory, port) else { return };
    wait_for("s3s-fs to listen", || TcpStream::connect(("127.0.0.1", port)).ok());
    let config = format!(
        "to = \"s3://bucket/a/prefix\"\nendpoint = \"http://127.0.0.1:{port}\"\nregion = \"us-east-1\"\naccess_key_id = \"an-id\"\n\
         secret_access_key = \"a-secret\"\n"
    );
    std::fs::write(directory.join("b.toml"), format!("[backup]\n{config}")).unwrap();
    comes_back(directory, "s3://bucket/a/prefix", &config, &["--config", "b.toml"]);
}

#[test]
fn a_server_that_is_not_there_stops_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let endpoint = format!("http://127.0.0.1:{}", free_port());
    let config = format!(
        "to = \"s3://bucket/x\"\nendpoint = \"{endpoint}\"\nregion = \"r\"\naccess_key_id = \"id\"\nsecret_access_key = \"s\"\n"
    );
    let (daemon, port) = serve(directory, &config);
    create(directory, 1000);
    update(directory, 1..100);
    wait_for("a failure", || metric(port, "roundel_backup_failures_total").filter(|count| *count > 0.0));
    update(directory, 100..110);
    let begun = std::time::Instant::now();
    assert!(daemon.terminate().success());
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    assert!(
        std::fs::read_to_string(directory.join("log"))
            .unwrap()
            .contains("the backup failed and is tried again")
    );
}

/// What a token, a saved graph, a saved view and an assignment are worth after the machine is gone.
#[test]
fn a_restored_daemon_knows_its_tokens_graphs_views_and_assignments() {
    let place = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| place.path().join(name));
    let to = place.path().join("backup").display().to_string();
    let start = |directory: &Path| {
        std::fs::create_dir_all(directory).unwrap();
        let port = free_port();
        let config = format!(
            "store = \"store\"\nbase = \"base\"\n[[listen]]\naddress = \"unix:sock\"\nanonymous = \"all\"\n[stripes]\nshards = 2\nscrub = \"off\"\n\
             [http]\nlisten = [\"127.0.0.1:{port}\"]\ntemplates = \"graphs\"\n[log]\nfile = \"log\"\n[backup]\nto = \"{to}\"\ninterval = \"1s\"\n"
        );
        std::fs::write(directory.join("roundel.toml"), config).unwrap();
        let mut command = Command::new(ROUNDEL);
        (Running::quiet(command.arg("serve").current_dir(directory)), port)
    };
    let (daemon, port) = start(&old);
    create(&old, 1000);
    update(&old, 1..10);
    let added = roundel(&old, &["token", "add", "ann", "--read", "hall/**"]);
    assert!(added.status.success(), "{}", text(&added));
    let token = text(&added).split_whitespace().max_by_key(|word| word.len()).unwrap().to_string();
    let ask = |port: u16, method: &str, target: &str, body: &str, headers: &str| {
        wait_for("an answer", || http_request(port, method, target, headers, body.as_bytes()))
    };
    let view = "title = 'of the hall'\n[[graph]]\ndirectory = 'hall'\n";
    let saved = ask(port, "PUT", "/api/v1/views/hall", view, "");
    assert!(saved.starts_with("HTTP/1.1 200"), "{saved}");
    std::fs::write(
        old.join("graphs/one.graph"),
        "--imgformat=SVG\nDEF:a=hall/host-0.rrd:a:AVERAGE\nLINE:a\n",
    )
    .unwrap();
    let assignments = "roundel-assignments 1\n";
    std::fs::write(old.join("store/assignments"), assignments).unwrap();
    wait_for_rounds(port, 2.0);
    assert!(daemon.terminate().success());

    std::fs::create_dir_all(&new).unwrap();
    let one = roundel(&new, &["restore", "hall/host-4.rrd", "--from", &to, "--to", "one"]);
    assert!(one.status.success(), "{}", text(&one));
    let names = |directory: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names(&new.join("one")), ["hall"]);
    assert_eq!(names(&new.join("one/hall")), ["host-4.rrd"]);
    let whole = roundel(&new, &["restore", "--from", &to, "--to", "store"]);
    assert!(whole.status.success() && text(&whole).contains("own files"), "{}", text(&whole));
    assert_eq!(std::fs::read_to_string(new.join("store/assignments")).unwrap(), assignments);
    std::fs::rename(new.join("store/graphs"), new.join("graphs")).unwrap();
    let (_daemon, port) = start(&new);
    let shown = ask(port, "GET", "/api/v1/views/hall", "", "");
    assert!(shown.contains("of the hall"), "{shown}");
    let graph = ask(port, "GET", "/graph?template=one", "", "");
    assert!(graph.contains("<svg"), "{graph}");
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let seen = ask(port, "GET", "/api/v1/list?recursive=1", "", &bearer);
    assert!(seen.contains("hall/host-4") && !seen.contains("roof"), "{seen}");
    let unknown = ask(port, "GET", "/api/v1/list?recursive=1", "", "Authorization: Bearer other\r\n");
    assert!(unknown.starts_with("HTTP/1.1 401"), "{unknown}");
}
