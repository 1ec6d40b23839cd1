//! Forwarding to real peers, which are away, killed, slow or of another opinion; and from a daemon that is killed at random.

#[path = "forward/encrypted.rs"]
mod encrypted;
#[path = "forward/graphite.rs"]
mod graphite;
#[path = "forward/prometheus.rs"]
mod prometheus;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use testkit::random::Random;
use testkit::{Client, Daemon, Kind, http_get, wait_for, wait_until};

const START: u64 = 1_700_000_000;

/// A daemon with HTTP that forwards to `to`, with more keys of `[[forward]]`.
fn forwarder(directory: &Path, to: &str, keys: &str) -> (Daemon, u16) {
    let mut daemon = testkit::daemon!(Kind::Stripes, &directory.join("first"));
    let http = testkit::free_port();
    daemon.configure(&settings(http, to, keys));
    (daemon, http)
}

fn settings(http: u16, to: &str, keys: &str) -> String {
    format!(
        "[http]\nlisten = [\"127.0.0.1:{http}\"]\n\n[stripes]\nshards = 2\n\n\
         [[forward]]\nto = \"{to}\"\nname = \"target\"\n{keys}\n"
    )
}

fn directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("forward-").tempdir().unwrap()
}

/// A metric of the target.
fn metric(http: u16, name: &str, reason: Option<&str>) -> u64 {
    let labels = reason.map_or_else(String::new, |reason| format!(",reason=\"{reason}\""));
    let start = format!("roundel_forward_{name}{{to=\"target\"{labels}}} ");
    let text = http_get(http, "/metrics").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no {start} in {text}")).parse().unwrap()
}

fn create(client: &mut Client, name: &str) {
    let line = format!("CREATE {name} -s 1 -b {START} DS:v:GAUGE:100:U:U RRA:LAST:0.5:1:2000");
    assert_eq!(client.ask(&line).unwrap().status, 0, "{name}");
}

fn update(client: &mut Client, name: &str, second: u64) {
    let answer = client.ask(&format!("UPDATE {name} {}:{second}.5", START + second)).unwrap();
    assert_eq!(answer.status, 0, "{answer:?}");
}

fn rows(client: &mut Client, name: &str, seconds: u64) -> Vec<String> {
    // rrdcached writes before it answers; for us it is nothing to do.
    client.ask(&format!("FLUSH {name}")).unwrap();
    let answer = client.ask(&format!("FETCH {name} LAST {START} {}", START + seconds)).unwrap();
    answer.lines.iter().filter(|line| line.starts_with("17")).cloned().collect()
}

/// Waits until the target's rows are those of the first daemon.
fn wait_for_rows(one: &mut Client, other: &mut Client, name: &str, seconds: u64) {
    let want = rows(one, name, seconds);
    assert!(want.len() as u64 >= seconds, "{want:?}");
    wait_until(&format!("the rows of {name} to arrive"), || rows(other, name, seconds) == want);
}

#[test]
fn a_roundel_gets_rrds_made_before_and_after_and_nothing_else_than_wanted() {
    let directory = directory();
    let mut second = testkit::daemon!(Kind::Stripes, &directory.path().join("second"));
    let to = format!("127.0.0.1:{}", second.tcp_port());
    let (mut first, http) = forwarder(directory.path(), &to, "names = [\"net/**\"]");
    let settings = settings(http, &to, "names = [\"net/**\"]");
    first.configure("");
    create(&mut first.start(), "net/before.rrd");
    first.kill();
    first.configure(&settings);
    let mut client = first.start();
    create(&mut client, "net/after.rrd");
    create(&mut client, "host/other.rrd");
    for second in 1..=20 {
        for name in ["net/before.rrd", "net/after.rrd", "host/other.rrd"] {
            update(&mut client, name, second);
        }
    }
    let mut there = second.start();
    for name in ["net/before.rrd", "net/after.rrd"] {
        wait_for_rows(&mut client, &mut there, name, 20);
    }
    assert!(there.ask("LAST host/other.rrd").unwrap().status < 0);
    wait_until("the counts to be taken", || metric(http, "sent_total", None) == 40);
    assert_eq!((metric(http, "created_total", None), metric(http, "reached", None)), (2, 1));
    // A later name is used from then on; what the second has under the old one stays.
    assert_eq!(client.ask("UPDATE net/after.rrd 1700000021:1").unwrap().status, 0);
    std::fs::rename(first.base().join("net/after.rrd"), first.base().join("net/renamed.rrd")).unwrap();
    update(&mut client, "net/renamed.rrd", 22);
    wait_until("the renamed RRD", || {
        there.ask("LAST net/renamed.rrd").unwrap().message.contains("1700000022")
            && there.ask("LAST net/after.rrd").unwrap().message.contains("1700000021")
    });
}

#[test]
fn readings_that_a_target_refuses_do_not_hold_up_others() {
    let directory = directory();
    let mut second = testkit::daemon!(Kind::Stripes, &directory.path().join("second"));
    let mut there = second.start();
    // Another number of sources, and a later time.
    let two = format!("CREATE wrong.rrd -s 1 -b {START} DS:a:GAUGE:9:U:U DS:b:GAUGE:9:U:U RRA:LAST:0.5:1:9");
    assert_eq!(there.ask(&two).unwrap().status, 0);
    create(&mut there, "late.rrd");
    update(&mut there, "late.rrd", 1000);
    let to = format!("unix:{}", second.socket().display());
    let (mut first, http) = forwarder(directory.path(), &to, "");
    let mut client = first.start();
    for name in ["wrong.rrd", "late.rrd", "good.rrd"] {
        create(&mut client, name);
        for second in 1..=5 {
            update(&mut client, name, second);
        }
    }
    wait_for_rows(&mut client, &mut there, "good.rrd", 5);
    let refused = |reason| metric(http, "refused_total", Some(reason));
    wait_until("the refusals to be counted", || (refused("other"), refused("not_newer")) == (5, 5));
    wait_until("the readings that were taken to be counted", || metric(http, "sent_total", None) == 5);
    assert!(first.log().contains("readings were not taken"), "{}", first.log());
}

#[test]
fn more_than_may_wait_costs_the_oldest_readings_and_is_counted() {
    const PER_LINE: u64 = 5_000;
    let directory = directory();
    let mut second = testkit::daemon!(Kind::Stripes, &directory.path().join("second"));
    let to = format!("unix:{}", second.socket().display());
    let (mut first, http) = forwarder(directory.path(), &to, "spool_bytes = \"1 MB\"");
    let mut client = first.start();
    create(&mut client, "a.rrd");
    let mut sent = 0;
    for _ in 0..60 {
        let readings: String = (sent + 1..=sent + PER_LINE)
            .map(|second| format!(" {}:{second}.123456789", START + second))
            .collect();
        assert_eq!(client.ask(&format!("UPDATE a.rrd{readings}")).unwrap().status, 0);
        sent += PER_LINE;
    }
    wait_until("some to be dropped", || metric(http, "dropped_total", None) > 0);
    update(&mut client, "a.rrd", sent + 1);
    let mut there = second.start();
    let last = (START + sent + 1).to_string();
    wait_until("the newest reading", || there.ask("LAST a.rrd").unwrap().message.contains(&last));
    wait_until("all to be counted", || {
        let (dropped, arrived) = (metric(http, "dropped_total", None), metric(http, "sent_total", None));
        assert!(dropped + arrived <= sent + 1, "{dropped} dropped, {arrived} sent of {sent}");
        dropped + arrived == sent + 1
    });
    wait_until("nothing to wait", || metric(http, "waiting_bytes", None) == 0);
    assert_eq!(metric(http, "lost_bytes_total", None), 0);
    assert!(first.log().contains("the oldest readings were dropped"));
}

/// Counts the readings of forwarded RRDs in the files of a journal, whose lines are `update PATH TIME:VALUE ...`.
fn readings_in(journal: &Path) -> usize {
    let files =
        std::fs::read_dir(journal).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    let text: String = files.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect();
    let lines = text.lines().filter(|line| !line.contains("filler"));
    lines.flat_map(str::split_whitespace).filter(|word| word.contains(':')).count()
}

#[test]
fn an_rrdcached_that_is_killed_and_away_for_a_while_gets_everything() {
    let directory = directory();
    let mut old = testkit::daemon!(Kind::Rrdcached, &directory.path().join("old"));
    let journal = directory.path().join("journal");
    std::fs::create_dir(&journal).unwrap();
    let start_old = |old: &mut Daemon| {
        let options = ["-B", "-R", "-t", "1", "-j", journal.to_str().unwrap()];
        let pid = directory.path().join("pid");
        std::fs::remove_file(&pid).ok();
        old.spawn_as(testkit::rrdcached(&old.base(), &old.socket(), &pid, &options));
        old.wait_for_answer()
    };
    let to = format!("rrdcached:unix:{}", old.socket().display());
    let (mut first, _http) = forwarder(directory.path(), &to, "");
    let mut client = first.start();
    let names: Vec<String> = (0..30).map(|number| format!("d{}/{number}.rrd", number % 3)).collect();
    names.iter().for_each(|name| create(&mut client, name));
    let all = |client: &mut Client, seconds: std::ops::RangeInclusive<u64>| {
        for second in seconds {
            let lines: Vec<String> =
                names.iter().map(|name| format!("UPDATE {name} {}:{second}.5", START + second)).collect();
            assert_eq!(client.batch(&lines).unwrap().status, 0);
        }
    };
    all(&mut client, 1..=50);
    let mut there = start_old(&mut old);
    all(&mut client, 51..=100);
    // rrdcached acknowledges a line before its journal has it: it writes 4 KiB at a time, and loses the rest when it is killed.
    create(&mut there, "filler.rrd");
    let mut second = 0;
    wait_until("the journal to have all that was forwarded", || {
        second += 1;
        update(&mut there, "filler.rrd", second);
        readings_in(&journal) >= 100 * names.len()
    });
    old.kill();
    all(&mut client, 101..=150);
    let mut there = start_old(&mut old);
    all(&mut client, 151..=200);
    for name in &names {
        wait_for_rows(&mut client, &mut there, name, 200);
    }
}

/// The first daemon is killed at random under load, and so is the target: nothing that was acknowledged is missing there.
#[test]
fn nothing_acknowledged_is_missing_after_both_were_killed_at_random() {
    const KILLS: u64 = 12;
    const RRDS: u64 = 20;
    let directory = directory();
    let mut random = Random::new(testkit::random::seeds(1).start);
    let mut second = testkit::daemon!(Kind::Stripes, &directory.path().join("second"));
    let to = format!("unix:{}", second.socket().display());
    let mut first = testkit::daemon!(Kind::Stripes, &directory.path().join("first"));
    let keys = format!(
        "[stripes]\nshards = 2\nopen_bytes = 4096\nlog_bytes = 60000\n\n[[forward]]\nto = \"{to}\"\nname = \"target\"\n"
    );
    first.configure(&keys);
    second.start();
    let mut client = first.start();
    let name = |number: u64| format!("h{}/{number}.rrd", number % 4);
    (0..RRDS).for_each(|number| create(&mut client, &name(number)));
    let mut acknowledged = 0;
    for kill in 0..KILLS {
        let delay = Duration::from_micros(random.below(250_000));
        let child = first.take();
        let killer = thread::spawn(move || {
            thread::sleep(delay);
            child.kill();
        });
        // What was not answered before may be there already.
        let mut second_now = acknowledged;
        loop {
            second_now += 1;
            let lines: Vec<String> = (0..RRDS)
                .map(|number| format!("UPDATE {} {}:{second_now}.5", name(number), START + second_now))
                .collect();
            match client.batch(&lines) {
                Ok(_) => acknowledged = second_now,
                Err(_) => break,
            }
        }
        killer.join().unwrap();
        match kill % 3 {
            0 => second.kill(),
            1 => drop(second.start()),
            _ => {}
        }
        client = first.start();
    }
    second.kill();
    let mut there = second.start();
    assert!(acknowledged > KILLS, "hardly anything was acknowledged: {acknowledged}");
    let rows_kept = acknowledged.min(1_900);
    for number in 0..RRDS {
        let (name, from) = (name(number), acknowledged - rows_kept);
        let fetch = format!("FETCH {name} LAST {} {}", START + from, START + acknowledged);
        let want = client.ask(&fetch).unwrap().lines;
        let known = want.iter().filter(|line| line.starts_with("17") && !line.contains("nan")).count() as u64;
        assert!(known >= rows_kept - 1, "{known} of {rows_kept} rows of {name}");
        wait_for(&format!("what was acknowledged of {name}"), || {
            let there = there.ask(&fetch).unwrap().lines;
            // The second one creates it without the row at its start. Until it has created it, it answers with no line.
            (there.get(1..) == want.get(1..)).then_some(())
        });
    }
}

#[test]
fn a_target_that_does_not_answer_delays_no_update() {
    let directory = directory();
    let mut second = testkit::daemon!(Kind::Stripes, &directory.path().join("second"));
    // It takes connections and never reads.
    let silent = std::os::unix::net::UnixListener::bind(second.socket()).unwrap();
    let to = format!("unix:{}", second.socket().display());
    let (mut first, http) = forwarder(directory.path(), &to, "");
    let mut client = first.start();
    create(&mut client, "a.rrd");
    let (held, _) = silent.accept().unwrap();
    // An update that waited for the target would take the 10 seconds after which the forwarder gives up a connection.
    let slowest = (1..=500).map(|second| {
        let begun = std::time::Instant::now();
        update(&mut client, "a.rrd", second);
        begun.elapsed()
    });
    let slowest = slowest.max().unwrap();
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    assert_eq!(metric(http, "sent_total", None), 0);
    drop((silent, held));
    let mut there = second.start();
    wait_for_rows(&mut client, &mut there, "a.rrd", 500);
}

/// A file with a token that may write at `daemon`.
fn add_token(daemon: &Daemon, directory: &Path) -> PathBuf {
    let made = std::process::Command::new(env!("CARGO_BIN_EXE_roundel"))
        .args(["token", "add", "first", "--write", "**", "--config"])
        .arg(daemon.directory().join("roundel.toml"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let text = String::from_utf8(made.stdout).unwrap();
    let word = text.split_whitespace().max_by_key(|word| word.len()).unwrap();
    let token = directory.join("token");
    std::fs::write(&token, word).unwrap();
    token
}

/// It answers so slowly that a batch takes minutes; a stop waits for one answer only.
#[test]
fn a_stop_does_not_wait_for_the_rest_of_a_batch() {
    let directory = directory();
    let socket = directory.path().join("slow");
    let slow = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let answers = Arc::new(AtomicU64::new(0));
    let answered = Arc::clone(&answers);
    thread::spawn(move || {
        for stream in slow.incoming() {
            let mut stream = stream.unwrap();
            for _ in BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok) {
                // The target's slowness is what is tested.
                thread::sleep(Duration::from_secs(1));
                stream.write_all(b"0 done\n").ok();
                answered.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let (mut first, http) = forwarder(directory.path(), &format!("rrdcached:unix:{}", socket.display()), "");
    let mut client = first.start();
    (0..200).for_each(|number| create(&mut client, &format!("{number}.rrd")));
    update(&mut client, "0.rrd", 1);
    wait_until("a batch that is on its way", || metric(http, "waiting_seconds", None) > 1);
    let before = answers.load(Ordering::Relaxed);
    first.take().terminate();
    // The target answers one a second.
    let waited = answers.load(Ordering::Relaxed) - before;
    assert!(waited < 20, "the stop has waited for {waited} answers of a batch");
    // What was not answered is sent by the next.
    let mut second = testkit::daemon!(Kind::Stripes, &directory.path().join("second"));
    let mut there = second.start();
    first.configure(&settings(http, &format!("unix:{}", second.socket().display()), ""));
    let mut client = first.start();
    wait_for_rows(&mut client, &mut there, "0.rrd", 1);
    wait_until("the last RRD", || there.ask("LAST 199.rrd").unwrap().status >= 0);
}

/// As the former primary of a pair.
#[test]
fn a_target_that_takes_no_changes_for_now_loses_nothing() {
    let directory = directory();
    let mut second = testkit::daemon!(Kind::Stripes, &directory.path().join("second"));
    second.start();
    second.kill();
    let history = second.directory().join("store/HISTORY");
    std::fs::write(&history, "roundel-history 1\nrole fenced\ncrc32c e63ab9e5\n").unwrap();
    let mut there = second.start();
    let (mut first, http) = forwarder(directory.path(), &format!("unix:{}", second.socket().display()), "");
    let mut client = first.start();
    create(&mut client, "a.rrd");
    update(&mut client, "a.rrd", 1);
    wait_until("the refusal", || first.log().contains("takes no changes any more"));
    assert_eq!((metric(http, "sent_total", None), metric(http, "refused_total", Some("other"))), (0, 0));
    drop(there);
    second.kill();
    std::fs::remove_file(&history).unwrap();
    there = second.start();
    wait_for_rows(&mut client, &mut there, "a.rrd", 1);
}

#[test]
fn a_token_of_the_target_is_shown_and_needed() {
    let directory = directory();
    let mut second = testkit::daemon!(Kind::Stripes, &directory.path().join("second"));
    let closed =
        format!("[[listen]]\naddress = \"127.0.0.1:{}\"\nanonymous = \"none\"\n", testkit::free_port());
    let port: u16 = closed.split(':').nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    second.configure(&closed);
    let mut there = second.start();
    let (mut first, http) = forwarder(directory.path(), &format!("127.0.0.1:{port}"), "");
    let mut client = first.start();
    create(&mut client, "a.rrd");
    update(&mut client, "a.rrd", 1);
    wait_until("the refusal", || first.log().contains("cannot forward"));
    assert_eq!((metric(http, "reached", None), metric(http, "sent_total", None)), (0, 0));
    assert!(there.ask("LAST a.rrd").unwrap().status < 0);
    let token = add_token(&second, directory.path());
    first.kill();
    first.configure(&settings(
        http,
        &format!("127.0.0.1:{port}"),
        &format!("token_file = \"{}\"", token.display()),
    ));
    let mut client = first.start();
    update(&mut client, "a.rrd", 2);
    // What was not taken before waited.
    wait_for_rows(&mut client, &mut there, "a.rrd", 2);
}
