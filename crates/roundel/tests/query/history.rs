//! `roundel import` of what other tools kept: the rows are theirs, or those of rrdtool with the same updates.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use testkit::{RrdTool, Running, http_get, peer, wait_for, wait_until};

use super::store::{roundel, try_roundel};

/// Imports into a new store and exports all of it; the output of the import.
fn import(directory: &Path, words: &[&str]) -> String {
    std::fs::create_dir_all(directory.join("store")).unwrap();
    let said = roundel(directory, &[&["import", "--to", "store"], words].concat(), &[]);
    roundel(directory, &["export", "--all", "--from", "store", "--to", "."], &[]);
    said
}

/// Known rows by rrdtool, by time.
fn fetch(tool: &mut RrdTool, name: &str, cf: &str, step: i64, from: i64, to: i64) -> BTreeMap<i64, f64> {
    let text = tool.run(&format!("fetch {name} {cf} -r {step} -s {from} -e {to}")).unwrap();
    let rows = text.lines().filter_map(|line| line.split_once(": "));
    let rows = rows.map(|(time, value)| (time.parse().unwrap(), value.trim().parse::<f64>().unwrap()));
    rows.filter(|(_, value)| !value.is_nan()).collect()
}

#[test]
fn whisper_files_become_rrds_with_the_same_points() {
    if peer::debian("python3-whisper", "/usr/bin/whisper-create").is_none() {
        return;
    }
    let mut tool = RrdTool::start().unwrap();
    let directory = tool.directory().to_path_buf();
    std::fs::create_dir_all(directory.join("w/servers/web")).unwrap();
    let whisper = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).current_dir(&directory).output().unwrap();
        assert!(output.status.success(), "{program} {words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let file = "w/servers/web/cpu.wsp";
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let first = now / 300 * 300 - 6000;
    let points: Vec<String> = (0..90)
        .filter(|minute| !(50..57).contains(minute))
        .map(|minute| format!("{}:{}", first + 60 * minute, minute * minute % 41))
        .collect();
    whisper(
        "whisper-create",
        &[file, "60s:30m", "300s:1d", "--aggregationMethod=average", "--xFilesFactor=0.5"],
    );
    // In parts, as carbon does: each goes to its archive and on to the coarser one.
    for part in points.chunks(10) {
        let words: Vec<&str> = [file].into_iter().chain(part.iter().map(String::as_str)).collect();
        whisper("whisper-update", &words);
    }
    let said = import(&directory, &["--format", "whisper", "w"]);
    assert!(said.starts_with("imported 1 RRDs, passed over 0 placeholders, 0 failed"), "{said}");
    let rrd = "series/servers/web/cpu.rrd";
    let mut check = |step: i64, from: i64, to: i64| {
        let shown = whisper("whisper-fetch", &[file, &format!("--from={from}"), &format!("--until={to}")]);
        let theirs: BTreeMap<i64, f64> = shown
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .filter_map(|(time, value)| {
                Some((time.trim().parse::<i64>().unwrap() + step, value.trim().parse().ok()?))
            })
            .collect();
        let ours = fetch(&mut tool, rrd, "AVERAGE", step, from, to);
        let near = |one: Option<&f64>, other: f64| {
            one.is_some_and(|one| (one - other).abs() < 1e-9 * other.abs().max(1.0))
        };
        // Of the coarse point in which the finest archive begins, carbon has the last value, and we the part before.
        let border = now - 1800;
        let is_border = |time: i64| step == 300 && (time - 2 * step..=time + step).contains(&border);
        let is_inside = |time: i64| time > from + step && time <= to - step && !is_border(time);
        for (time, value) in theirs.iter().filter(|(time, _)| is_inside(**time)) {
            assert!(near(ours.get(time), *value), "{step} s, {time}: {value}, not {:?}", ours.get(time));
        }
        assert_eq!(
            ours.keys().filter(|time| is_inside(**time)).count(),
            theirs.keys().filter(|time| is_inside(**time)).count()
        );
        theirs.len()
    };
    assert!(check(60, now - 1700, first + 5400) > 10);
    assert!(check(300, first, first + 5400) > 12);
}

/// A counter and a gauge, with a gap, as OpenMetrics.
fn open_metrics(start: i64) -> String {
    let mut text = String::from("# HELP reads Reads.\n# TYPE reads counter\n");
    let minutes = || (0..600i64).filter(|minute| !(200..230).contains(minute));
    for minute in minutes() {
        let time = start + 60 * minute;
        text += &format!("reads_total{{instance=\"db:1\",disk=\"a/b\"}} {} {time}\n", minute * (minute + 7));
    }
    text += "# TYPE temp gauge\n";
    for minute in minutes() {
        let time = start + 60 * minute;
        text += &format!("temp {}.25 {time}\n", minute % 29);
    }
    text + "# EOF\n"
}

#[test]
fn openmetrics_is_as_if_rrdtool_had_been_updated() {
    let mut tool = RrdTool::start().unwrap();
    let directory = tool.directory().to_path_buf();
    let start = 1_700_000_040;
    std::fs::write(directory.join("dump.txt"), open_metrics(start) + "bad line\nreads 1\n").unwrap();
    std::fs::create_dir(directory.join("store")).unwrap();
    let words = ["import", "--format", "openmetrics", "--to", "store", "dump.txt"];
    let words =
        [&words[..], &["--archives", "RRA:AVERAGE:0.5:1:2000", "--archives", "RRA:MAX:0.3:7:90"]].concat();
    let output = try_roundel(&directory, &words, &[]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        errors.contains("dump.txt: line 1145: ") && errors.contains("line 1146: it has no time"),
        "{errors}"
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "imported 2 RRDs, 2 failed, 0 samples too near to the one before\n"
    );
    roundel(&directory, &["export", "--all", "--from", "store", "--to", "."], &[]);
    let mut check = |name: &str, ds: &str, value: &dyn Fn(i64) -> String| {
        let archives = "RRA:AVERAGE:0.5:1:2000 RRA:MAX:0.3:7:90";
        tool.run(&format!("create want.rrd --start {} --step 60 DS:value:{ds} {archives}", start - 60))
            .unwrap();
        for minute in (0..600).filter(|minute| !(200..230).contains(minute)) {
            tool.run(&format!("update want.rrd {}:{}", start + 60 * minute, value(minute))).unwrap();
        }
        let mut dump = |name: &str| {
            let text = tool.run(&format!("dump {name}")).unwrap();
            text.lines().filter(|line| !line.contains("<last_ds>")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(dump(name), dump("want.rrd"), "{name}");
    };
    check("series/temp.rrd", "GAUGE:300:U:U", &|minute| format!("{}.25", minute % 29));
    let reads = testkit::rrd_files(&directory.join("instances"));
    assert_eq!(reads.len(), 1, "{reads:?}");
    let reads = directory.join("instances").join(reads.first().unwrap());
    std::fs::copy(reads, directory.join("reads.rrd")).unwrap();
    check("reads.rrd", "DDERIVE:300:0:U", &|minute| format!("{}", minute * (minute + 7)));

    // What is there gets what it does not know, stays, or is replaced.
    let with = |option: &[&str]| {
        // The same archives, so that rows which xff made unknown are not made up of finer ones.
        let output = try_roundel(&directory, &[&words[..], option].concat(), &[]);
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(with(&["--no-overwrite"]).starts_with("imported 0 RRDs, 4 failed"));
    assert!(with(&[]).starts_with("imported 2 RRDs, 2 failed"));
    roundel(&directory, &["export", "series", "--from", "store", "--to", "merged"], &[]);
    let file = |name: &str| std::fs::read(directory.join(name)).unwrap();
    assert!(file("merged/series/temp.rrd") == file("series/temp.rrd"));
    assert!(with(&["--overwrite"]).starts_with("imported 2 RRDs"));
}

#[test]
fn dumps_are_restored_and_fill_every_source() {
    let mut tool = RrdTool::start().unwrap();
    let directory = tool.directory().to_path_buf();
    let (start, archives) = (1_700_000_040, "RRA:AVERAGE:0.5:1:500 RRA:MAX:0.5:7:90");
    let minute = |minute: i64| start + 60 * minute;
    let mut make = |name: &str, sources: [&str; 2], minutes: std::ops::Range<i64>, values: [i64; 2]| {
        let create = format!("create {name} --start {} --step 60", minute(minutes.start));
        let sources = sources.map(|source| format!("DS:{source}:GAUGE:120:U:U")).join(" ");
        tool.run(&format!("{create} {sources} {archives}")).unwrap();
        for at in minutes.skip(1) {
            let [one, other] = values.map(|value| value + at);
            tool.run(&format!("update {name} {}:{one}:{other}", minute(at))).unwrap();
        }
        tool.run(&format!("dump {name}")).unwrap()
    };
    let whole = make("whole.rrd", ["in", "out"], 0..300, [1000, 2000]);
    make("later.rrd", ["out", "in"], 200..310, [8000, 7000]);
    std::fs::create_dir_all(directory.join("x/a host")).unwrap();
    std::fs::write(directory.join("x/a host/load.xml"), &whole).unwrap();
    let said = import(&directory, &["--format", "xml", "x"]);
    assert!(said.starts_with("imported 1 RRDs, passed over 0 placeholders, 0 failed"), "{said}");
    assert_eq!(tool.run("dump \"a host/load.rrd\"").unwrap(), whole);

    // One that is there has the sources in another order, and stays what it is.
    let second = directory.join("second");
    std::fs::create_dir_all(second.join("old/a host")).unwrap();
    std::fs::rename(directory.join("later.rrd"), second.join("old/a host/load.rrd")).unwrap();
    import(&second, &["old"]);
    import(&second, &["--format", "xml", "../x"]);
    let fetch = format!("fetch \"second/a host/load.rrd\" AVERAGE -r 60 -s {} -e {}", minute(0), minute(310));
    let rows = tool.run(&fetch).unwrap();
    let rows: BTreeMap<i64, &str> = rows
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(time, values)| ((time.parse::<i64>().unwrap() - start) / 60, values))
        .collect();
    for at in 1..310i64 {
        let (out, other) = if at > 200 { (8000, 7000) } else { (2000, 1000) };
        let want = format!("{} {}", exponent(out + at), exponent(other + at));
        assert_eq!(rows.get(&at).copied(), Some(&*want), "minute {at}");
    }
}

/// As rrdtool shows a number.
fn exponent(number: i64) -> String {
    let text = format!("{:.10e}", number as f64);
    let (digits, power) = text.split_once('e').unwrap();
    format!("{digits}e+{power:0>2}")
}

#[test]
fn lines_of_influxdb_are_the_same_history() {
    let tool = RrdTool::start().unwrap();
    let directory = tool.directory().to_path_buf();
    let start = 1_700_000_040;
    let minutes = || (0..600i64).filter(|minute| !(200..230).contains(minute));
    let line =
        |minute: i64| format!("temp value={}.25,on=true {}000000000\n", minute % 29, start + 60 * minute);
    let lines: String = minutes().map(line).collect();
    // What is left of a line that is longer than can be read is no line.
    let future = "temp value=1 4000000000000000000\n";
    let dump = ["# DML\n", &lines, &"y".repeat(5 << 20), " temp value=7 1\n", future].concat();
    std::fs::write(directory.join("dump.txt"), dump).unwrap();
    std::fs::write(directory.join("open.txt"), open_metrics(start)).unwrap();
    std::fs::create_dir(directory.join("store")).unwrap();
    let output = try_roundel(&directory, &["import", "--format", "influx", "--to", "store", "dump.txt"], &[]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("imported 1 RRDs, 572 failed"), "{output:?}");
    roundel(&directory, &["export", "--all", "--from", "store", "--to", "."], &[]);
    std::fs::create_dir(directory.join("other")).unwrap();
    std::fs::rename(directory.join("open.txt"), directory.join("other/open.txt")).unwrap();
    import(&directory.join("other"), &["--format", "openmetrics", "open.txt"]);
    let file = |name: &str| std::fs::read(directory.join(name)).unwrap();
    assert!(file("series/temp.rrd") == file("other/series/temp.rrd"));
}

#[test]
fn a_running_daemon_gets_the_past_of_what_it_has() {
    let mut tool = RrdTool::start().unwrap();
    let directory = tool.directory().to_path_buf();
    let here = directory.display();
    let config = format!(
        "store = \"{here}/store\"\nplaceholders = false\nbase = \"{here}/base\"\n[[listen]]\naddress = \"unix:{here}/sock\"\n"
    );
    std::fs::create_dir(directory.join("base")).unwrap();
    let file = directory.join("roundel.toml");
    std::fs::write(&file, config).unwrap();
    let words = ["serve", "--config", file.to_str().unwrap()];
    let daemon = Running::program(&directory.join("log"), env!("CARGO_BIN_EXE_roundel"), &words);
    // The socket is in the tree a moment before the daemon listens.
    let connect = || UnixStream::connect(directory.join("sock")).ok();
    let mut stream = wait_for("the daemon to listen", connect);
    let start = 1_700_000_040;
    std::fs::write(directory.join("dump.txt"), open_metrics(start)).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let mut say = |line: String| {
        writeln!(stream, "{line}").unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert!(answer.starts_with("0 "), "{line}: {answer}");
    };
    let minute = |minute: i64| start + 60 * minute;
    // What is pushed since: other values for the last minutes of the history, and some more.
    let create = "DS:value:GAUGE:120:U:U RRA:AVERAGE:0.5:1:2000";
    say(format!("CREATE series/temp.rrd -s 60 -b {} {create}", minute(589)));
    (590..610).for_each(|at| say(format!("UPDATE series/temp.rrd {}:1000", minute(at))));
    let said =
        roundel(&directory, &["import", "--format", "openmetrics", "--to", "unix:sock", "dump.txt"], &[]);
    assert!(said.starts_with("imported 2 RRDs, 0 failed"), "{said}");
    say(format!("UPDATE series/temp.rrd {}:2000", minute(610)));
    roundel(&directory, &["export", "series", "--from", "unix:sock", "--to", "."], &[]);
    let rows = fetch(&mut tool, "series/temp.rrd", "AVERAGE", 60, minute(0), minute(611));
    let want = |at: i64| match at {
        1..200 | 231..590 => Some((at % 29) as f64 + 0.25),
        590..610 => Some(1000.0),
        610 => Some(2000.0),
        _ => None,
    };
    for at in (1..611).filter(|at| !(200..=231).contains(at)) {
        assert_eq!(rows.get(&minute(at)).copied(), want(at), "minute {at}");
    }
    daemon.terminate();
}

/// A Prometheus over the blocks in `tsdb`, and its port.
fn start_prometheus(program: &Path, directory: &Path) -> (Running, u16) {
    std::fs::write(directory.join("prometheus.yml"), "global: {}\n").unwrap();
    let port = testkit::free_port();
    let words = [
        format!("--config.file={}", directory.join("prometheus.yml").display()),
        format!("--storage.tsdb.path={}", directory.join("tsdb").display()),
        format!("--web.listen-address=127.0.0.1:{port}"),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let server = Running::program(&directory.join("prometheus.log"), program, &words);
    wait_until("prometheus to be ready", || {
        http_get(port, "/-/ready").is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
    });
    (server, port)
}

/// The contents of all `.rrd` files of the trees that series have.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for tree in ["series", "instances"].map(|tree| directory.join(tree)) {
        for name in testkit::rrd_files(&tree) {
            all.insert(name.clone(), std::fs::read(tree.join(name)).unwrap());
        }
    }
    all
}

#[test]
fn a_prometheus_gives_what_its_blocks_have() {
    let Some(program) = peer::debian("prometheus", "/usr/bin/prometheus") else { return };
    let tool = RrdTool::start().unwrap();
    let directory = tool.directory().to_path_buf();
    // Prometheus keeps fifteen days.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let start = now / 60 * 60 - 4 * 86_400;
    std::fs::write(directory.join("dump.txt"), open_metrics(start)).unwrap();
    let output = Command::new("/usr/bin/promtool")
        .args(["tsdb", "create-blocks-from", "openmetrics", "dump.txt", "tsdb"])
        .current_dir(&directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let (_server, port) = start_prometheus(&program, &directory);
    import(&directory, &["--format", "openmetrics", "dump.txt"]);
    let want = files(&directory);
    assert_eq!(want.len(), 2);
    std::fs::create_dir(directory.join("second")).unwrap();
    let url = format!("http://127.0.0.1:{port}");
    let selector = "{__name__=~\"reads_total|temp\"}";
    let range = [(start - 3600).to_string(), now.to_string()];
    import(
        &directory.join("second"),
        &[&["--format", "prometheus", "--match", selector, "-s", &range[0], "-e", &range[1], &url][..]]
            .concat(),
    );
    assert!(files(&directory.join("second")) == want);
    let bad = ["import", "--format", "prometheus", "--to", "store", "--match", "sum(", &url];
    let failed = try_roundel(&directory, &bad, &[]);
    assert!(String::from_utf8_lossy(&failed.stderr).contains("answered 400"), "{failed:?}");
}

#[test]
fn a_graphite_gives_each_time_from_its_finest_archive() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Minutes for the last day, five minutes before: as graphite-web, which answers by the beginning of the range.
    let end = 1_700_000_100;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // All of the head: closing with some of it unread would take the answer back.
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let Some(line) = lines.next() else { continue };
            lines.find(String::is_empty);
            let number = |key: &str| -> i64 {
                let rest = line.split(key).nth(1).unwrap();
                rest.split(['&', ' ']).next().unwrap().parse().unwrap()
            };
            let (from, until) = (number("from="), number("until="));
            let step = if from >= end - 86_400 { 60 } else { 300 };
            let times = (from / step * step + step..=until).step_by(step as usize);
            let points: Vec<String> = times.map(|time| format!("[{}.0,{time}]", time / 300)).collect();
            let body =
                format!("[{{\"target\":\"a.b;dc=x\",\"tags\":{{}},\"datapoints\":[{}]}}]", points.join(","));
            let head =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            (&stream).write_all((head + &body).as_bytes()).unwrap();
        }
    });
    let mut tool = RrdTool::start().unwrap();
    let directory = tool.directory().to_path_buf();
    let url = format!("http://127.0.0.1:{port}");
    let (start, until) = ((end - 3 * 86_400).to_string(), end.to_string());
    let said =
        import(&directory, &["--format", "graphite", "--match", "a.*", "-s", &start, "-e", &until, &url]);
    assert!(said.starts_with("imported 1 RRDs, 0 failed"), "{said}");
    let files = testkit::rrd_files(&directory.join("series"));
    let path = directory.join("series").join(files.first().unwrap());
    std::fs::copy(path, directory.join("a.rrd")).unwrap();
    for (step, from) in [(60, end - 80_000), (300, end - 2 * 86_400)] {
        let rows = fetch(&mut tool, "a.rrd", "AVERAGE", step, from, end - 600);
        assert!(rows.len() as i64 >= (end - 600 - from) / step - 2, "{step}: {}", rows.len());
        // A point stands for the time after it, a row for the time before.
        let wrong: Vec<_> =
            rows.iter().filter(|(time, value)| **value != ((*time - step) / 300) as f64).take(3).collect();
        assert!(wrong.is_empty(), "{step}: {wrong:?}");
    }
}
