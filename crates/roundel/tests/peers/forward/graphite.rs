//! Debian's carbon-cache as a target.

use std::path::Path;
use std::process::Command;

use testkit::{Running, peer, wait_until};

use super::{directory, forwarder};

fn start(program: &Path, directory: &Path, port: u16) -> Running {
    let path = directory.display();
    let config = format!(
        "[cache]\nSTORAGE_DIR = {path}/\nLOCAL_DATA_DIR = {path}/whisper/\nCONF_DIR = {path}/\nLOG_DIR = {path}/\nPID_DIR = {path}/\n\
         MAX_CREATES_PER_MINUTE = inf\nMAX_UPDATES_PER_SECOND = 1000\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = {port}\n\
         PICKLE_RECEIVER_PORT = 0\nCACHE_QUERY_INTERFACE = 127.0.0.1\nCACHE_QUERY_PORT = {}\nENABLE_LOGROTATION = False\nUSER =\n",
        testkit::free_port()
    );
    std::fs::write(directory.join("carbon.conf"), config).unwrap();
    std::fs::write(directory.join("storage-schemas.conf"), "[all]\npattern = .*\nretentions = 10s:1d\n")
        .unwrap();
    std::fs::write(directory.join("storage-aggregation.conf"), "[all]\npattern = .*\nxFilesFactor = 0\n")
        .unwrap();
    let (config, pid) = (format!("{path}/carbon.conf"), format!("{path}/carbon.pid"));
    std::fs::remove_file(&pid).ok();
    let words = ["--nodaemon", "--config", &config, "--pidfile", &pid, "start"];
    Running::program(&directory.join("carbon.log"), program, &words)
}

/// The values of a series in the last five minutes before `until`, of those that are known.
fn values(directory: &Path, series: &str, until: u64) -> Vec<String> {
    let file = directory.join("whisper").join(series);
    let (from, until) = ((until - 300).to_string(), until.to_string());
    let output = Command::new("whisper-fetch")
        .args(["--from", &from, "--until", &until, "--drop=nulls"])
        .arg(&file)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned)).collect()
}

#[test]
fn a_graphite_gets_each_source_by_its_path() {
    let Some(program) = peer::debian("graphite-carbon", "/usr/bin/carbon-cache") else { return };
    let directory = directory();
    let port = testkit::free_port();
    let (mut first, _http) = forwarder(directory.path(), &format!("graphite:127.0.0.1:{port}"), "");
    let mut client = first.start();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let now = now - now % 10;
    let line = format!(
        "CREATE host.example/cpu.rrd -s 10 -b {} DS:user:GAUGE:60:U:U DS:idle:GAUGE:60:U:U RRA:LAST:0.5:1:100",
        now - 300
    );
    assert_eq!(client.ask(&line).unwrap().status, 0);
    let mut send = |ago: u64, values: &str| {
        assert_eq!(
            client.ask(&format!("UPDATE host.example/cpu.rrd {}:{values}", now - ago)).unwrap().status,
            0
        );
    };
    send(200, "1.5:98");
    let carbon = start(&program, directory.path(), port);
    send(190, "2.5:U");
    let user = "host_example/cpu/user.wsp";
    wait_until("the first values", || values(directory.path(), user, now) == ["1.500000", "2.500000"]);
    // What was sent shortly before it went away, and what came meanwhile.
    send(180, "3.5:96");
    carbon.terminate();
    send(170, "4.5:95");
    let _carbon = start(&program, directory.path(), port);
    let want = ["1.500000", "2.500000", "3.500000", "4.500000"];
    wait_until("the values of the time without it", || values(directory.path(), user, now) == want);
    let idle = values(directory.path(), "host_example/cpu/idle.wsp", now);
    assert_eq!(idle, ["98.000000", "96.000000", "95.000000"]);
}
