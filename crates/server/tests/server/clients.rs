//! Debian's own clients, unmodified, against a striped store; and HTTP.

use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use crate::common::Roundel;
use client::{ClientError, Daemon, Wire};
use protocol::frames::code::ErrorCode;
use protocol::rrdcached::command::Permissions;
use roundel_server::service::CreatePolicy;
use rrd::definition::Cf;
use rrd::fetch::FetchRequest;
use testkit::Client;

fn start() -> Roundel {
    Roundel::stripes(CreatePolicy { make_directories: true, ..Default::default() }, Permissions::ALL)
}

fn rrdtool(roundel: &Roundel, words: &str) -> Result<String, String> {
    run(roundel, Command::new("/usr/bin/rrdtool").args(words.split(' ')))
}

fn run(roundel: &Roundel, command: &mut Command) -> Result<String, String> {
    let output = command
        .current_dir(roundel.base())
        .env("RRDCACHED_ADDRESS", format!("unix:{}", roundel.socket().display()))
        .env("TZ", "UTC")
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(text + &String::from_utf8_lossy(&output.stderr)) }
}

#[test]
fn rrdtool_works_through_the_daemon() {
    let roundel = start();
    let say = |words: &str| rrdtool(&roundel, words).unwrap_or_else(|error| panic!("{words}: {error}"));
    // The client resolves the directory itself.
    std::fs::create_dir(roundel.base().join("d")).unwrap();
    say("create d/x.rrd --start 1000000000 --step 10 DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10 RRA:MAX:0.5:2:5");
    say("update d/x.rrd 1000000010:1 1000000020:2 1000000030:4");
    let error = rrdtool(&roundel, "update d/x.rrd 1000000030:4").unwrap_err();
    assert!(error.contains("illegal attempt to update using time 1000000030.000000"), "{error}");
    let fetched = say("fetch d/x.rrd AVERAGE -s 1000000000 -e 1000000030");
    assert!(fetched.contains("1000000020: 2.0000000000e+00\n1000000030: 4.0000000000e+00\n"), "{fetched}");
    let info = say("info d/x.rrd");
    assert!(info.contains("last_update = 1000000030\n") && info.contains("ds[a].last_ds = \"4\""), "{info}");
    assert_eq!(say("first d/x.rrd"), "999999940\n");
    assert_eq!(say("last d/x.rrd"), "1000000030\n");
    assert_eq!(say("flushcached d/x.rrd"), "");
    assert_eq!(say("list -r /"), "d/x.rrd\n");
    let graph =
        say("graph g.png -s 1000000000 -e 1000000030 DEF:a=d/x.rrd:a:AVERAGE LINE:a#f00 PRINT:a:MAX:%lf");
    assert!(graph.ends_with("4.000000\n"), "{graph}");
    let xport = say("xport -s 1000000000 -e 1000000030 DEF:a=d/x.rrd:a:AVERAGE XPORT:a");
    assert!(xport.contains("<v>4.0000000000e+00</v>"), "{xport}");
    say("create d/y.rrd --step 10 -r d/x.rrd DS:b=a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:3 RRA:MIN:0.5:3:1");
    assert_eq!(say("last d/y.rrd"), "1000000030\n");
    let filled = say("fetch d/y.rrd AVERAGE -s 1000000000 -e 1000000020");
    assert!(filled.contains("1000000020: 2.0000000000e+00\n1000000030: 4.0000000000e+00\n"), "{filled}");
    let error =
        rrdtool(&roundel, "create d/z.rrd -r d/no.rrd DS:b:GAUGE:20:0:U RRA:MIN:0.5:3:1").unwrap_err();
    assert!(error.contains("No such file or directory"), "{error}");
    assert!(rrdtool(&roundel, "create --no-overwrite d/x.rrd DS:a:GAUGE:20:0:U RRA:MAX:0.5:1:9").is_err());
    assert!(rrdtool(&roundel, "info none.rrd").is_err());
}

#[test]
fn perl_works_through_the_daemon() {
    let roundel = start();
    let script = r#"
        use RRDs;
        sub check { my $error = RRDs::error; die "$_[0]: $error" if $error }
        RRDs::create('p.rrd', '--start', 1000000000, '--step', 10, 'DS:a:COUNTER:20:0:U', 'RRA:AVERAGE:0.5:1:10');
        check('create');
        RRDs::update('p.rrd', '1000000010:100', '1000000020:200', '1000000030:400'); check('update');
        my ($start, $step, $names, $rows) = RRDs::fetch('p.rrd', 'AVERAGE', '-s', 1000000000, '-e', 1000000029);
        check('fetch');
        print "$start $step @$names @{[map { defined $_->[0] ? $_->[0] : 'U' } @$rows]}\n";
        my $info = RRDs::info('p.rrd'); check('info');
        print "$info->{last_update} $info->{'ds[a].last_ds'}\n";
        print RRDs::last('p.rrd'), ' ', RRDs::first('p.rrd'), "\n"; check('last');
        RRDs::flushcached('p.rrd'); check('flushcached');
        RRDs::update('p.rrd', '5:1'); print RRDs::error, "\n";
    "#;
    let text = run(&roundel, Command::new("perl").args(["-e", script])).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("1000000010 10 a U 10 20"));
    assert_eq!(lines.next(), Some("1000000030 400"));
    assert_eq!(lines.next(), Some("1000000030 999999940"));
    assert!(lines.next().is_some_and(|line| line.contains("illegal attempt to update using time 5.000000")));
}

#[test]
fn whole_files_are_imported_and_exported() {
    let roundel = start();
    let file = roundel.path("x.rrd");
    let shown = file.display().to_string();
    let tool = |words: &[&str]| Command::new("/usr/bin/rrdtool").args(words).output().unwrap();
    tool(&["create", &shown, "-b", "1000000000", "-s", "10", "DS:a:GAUGE:20:0:U", "RRA:AVERAGE:0.5:1:10"]);
    tool(&["update", &shown, "1000000010:1", "1000000025:3.5"]);
    let before = tool(&["dump", &shown]).stdout;
    let bytes = std::fs::read(&file).unwrap();
    for wire in [Wire::Text, Wire::Frames] {
        let daemon = Daemon::new(roundel.socket().as_os_str().as_bytes(), wire);
        daemon.import(b"in/a b\xff.rrd", &bytes, false).unwrap();
        let refused = |name: &[u8], bytes: &[u8]| match daemon.import(name, bytes, true) {
            Err(ClientError::Refused { code, text }) => (code, String::from_utf8_lossy(&text).into_owned()),
            other => panic!("{other:?}"),
        };
        for (name, bytes, want, want_text) in [
            (&b"in/a b\xff.rrd"[..], &bytes[..], ErrorCode::Exists, "File exists"),
            (b"../x.rrd", &bytes, ErrorCode::Permission, "Permission denied"),
            (b"bad.rrd", b"RRD\0junk", ErrorCode::Other, "rrd->stat_head"),
        ] {
            let (code, text) = refused(name, bytes);
            assert!(text.contains(want_text), "{text}");
            assert_eq!(code, if wire == Wire::Text { ErrorCode::Other } else { want });
        }
        let none = daemon.export(b"none").unwrap_err();
        assert!(none.to_string().ends_with("/none': No such file or directory"), "{none}");
        assert_eq!(none.is(ErrorCode::NoSuchRrd), wire == Wire::Frames);
    }
    let daemon = Daemon::new(roundel.socket().as_os_str().as_bytes(), Wire::Frames);
    assert_eq!(Client::open(&roundel.socket()).say(b"LAST in/a\\ b\xff.rrd"), "0 1000000020\n");
    std::fs::write(&file, daemon.export(b"in/a b\xff.rrd").unwrap().unwrap()).unwrap();
    let after = tool(&["dump", &shown]).stdout;
    assert!(before == after, "the dump differs after the trip");
}

#[test]
fn dump_tune_and_metrics_answer() {
    let roundel = start();
    let mut client = Client::open(&roundel.socket());
    client.say("CREATE x.rrd -b 1000000000 -s 10 DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:3");
    let dump = client.say("DUMP x.rrd -h none");
    assert!(dump.contains("<step>10</step>") && dump.ends_with("</rrd>\n"), "{dump}");
    assert_eq!(client.say("TUNE x.rrd --heartbeat a:77"), "0 RRD tuned OK\n");
    assert!(client.say("INFO x.rrd").contains("ds[a].minimal_heartbeat 1 77\n"));
    assert!(client.say("TUNE x.rrd --heartbeat b:77").starts_with("-1 RRD Error: "));
    assert!(client.say("foo").starts_with("-1 "));
    assert!(roundel.get("/healthz").ends_with("ok\n"));
    let metrics = roundel.get("/metrics");
    for line in [
        "roundel_connections_open 1\n",
        "roundel_commands_total{command=\"TUNE\"} 2\n",
        "roundel_dropped_lines_total{reason=\"unknown_command\"} 1\n",
        "roundel_store_rrds 1\n",
        "roundel_store_read_only 0\n",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    assert!(roundel.get("/nonsense").starts_with("HTTP/1.1 404"));
}

#[test]
fn our_own_commands_are_answered() {
    let roundel = start();
    let mut client = Client::open(&roundel.socket());
    client.say("CREATE x.rrd -b 1000000000 -s 10 DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:6 RRA:AVERAGE:0.5:3:6");
    let rows = client.say("UPDATEV x.rrd 1000000010:0.1 1000000020:2 1000000020:3 1000000030:4");
    assert!(
        rows.starts_with("5 Rows of /") && rows.contains("\n[1000000010]RRA[AVERAGE][1]DS[a] 0 1.0"),
        "{rows}"
    );
    assert!(rows.ends_with("\ncode 1 4\nerror 2 illegal attempt to update using time 1000000020 when last update time is 1000000020 (minimum one second step)\n"), "{rows}");
    for (line, want) in [
        ("UPDATEV x.rrd", "-1 Usage: UPDATEV"),
        ("UPDATEV no.rrd 1:2", "-1 RRD Error: opening '"),
        ("UPDATEV x.rrd 1:2\\ 3:4", "-1 RRD Error: '1:2 3:4': a reading holds no space"),
        ("FETCHRES x.rrd AVERAGE x", "-1 Cannot parse resolution `x'"),
        ("EXPORT no.rrd", "-1 RRD Error: opening '"),
        ("BATCH", "0 Go ahead"),
        (".", "0 errors"),
    ] {
        let answer = client.say(line);
        assert!(answer.starts_with(want), "{line}: {answer}");
    }
    let step =
        |answer: &str| answer.lines().find_map(|line| line.strip_prefix("Step: ")).unwrap().to_string();
    assert_eq!(step(&client.say("FETCHRES x.rrd AVERAGE 30 1000000000 1000000030")), "30");
    assert_eq!(step(&client.say("FETCH x.rrd AVERAGE 1000000000 1000000030")), "10");

    // An RRD that is exported in one line is imported in two parts.
    let export = client.say("EXPORT x.rrd");
    let line = export.strip_prefix("1 Export of ").unwrap().lines().nth(1).unwrap().to_string();
    let mut bytes = Vec::new();
    protocol::rrdcached::whole::push_bytes(line.as_bytes(), &mut bytes).unwrap();
    let count = bytes.len();
    let (first, second) = line.split_at(400);
    for (command, want) in [
        (format!("IMPORT y.rrd {count} 0 {first}"), "0 300 bytes so far\n"),
        // Out of order, so nothing is kept.
        (
            format!("IMPORT y.rrd {count} 299 {second}"),
            "-1 RRD Error: the piece does not follow the one before\n",
        ),
        (
            format!("IMPORT y.rrd {count} 300 {second}"),
            "-1 RRD Error: the piece does not follow the one before\n",
        ),
        (format!("IMPORT y.rrd {count} 0 {first}"), "0 300 bytes so far\n"),
        (
            format!("IMPORT z.rrd {count} 300 {second}"),
            "-1 RRD Error: the piece does not follow the one before\n",
        ),
        (format!("IMPORT y.rrd 299 0 {first}"), "-1 RRD Error: the pieces are not as long as the file\n"),
        (format!("IMPORT y.rrd {count} 0 A"), "-1 RRD Error: the piece is no base64\n"),
        (format!("IMPORT y.rrd {count} 0 {first}"), "0 300 bytes so far\n"),
        (format!("IMPORT y.rrd {count} 300 {second}"), "0 RRD imported OK\n"),
        (format!("IMPORT y.rrd {count} 0 {line}"), "0 RRD imported OK\n"),
    ] {
        assert_eq!(client.say(&command), want, "{command}");
    }
    let refused = client.say(format!("IMPORT y.rrd -O {count} 0 {line}"));
    assert!(
        refused.starts_with("-1 RRD Error: creating '/") && refused.ends_with("y.rrd': File exists\n"),
        "{refused}"
    );
    assert!(client.say(format!("IMPORT ../y.rrd {count} 0 {line}")).ends_with(": Permission denied\n"));
    assert!(client.say("IMPORT y.rrd 3 0 AAAA").starts_with("-1 RRD Error: "));
    assert_eq!(client.say("EXPORT y.rrd").lines().nth(1), Some(&*line));
}

#[test]
fn steps_below_a_second_give_fractional_times() {
    let roundel = start();
    let mut client = Client::open(&roundel.socket());
    let create = "CREATE f.rrd -b 1000000000 -s 0.1 DS:a:GAUGE:1:0:U RRA:AVERAGE:0.5:1:10";
    assert_eq!(client.say(create), "0 RRD created OK\n");
    let refused = client.say("CREATE m.rrd -s 100ms DS:a:GAUGE:1:0:U RRA:AVERAGE:0.5:1:10");
    assert!(refused.starts_with("-1 RRD Error: step size: ") && refused.contains("decimals"), "{refused}");
    client.say("CREATE m.rrd -s 10 DS:a:GAUGE:300ms:0:U RRA:AVERAGE:0.5:100ms:10");
    let minutes = client.say("INFO m.rrd");
    assert!(minutes.contains("ds[a].minimal_heartbeat 1 18000\n"), "{minutes}");
    assert!(minutes.contains("rra[0].pdp_per_row 1 600\n"), "{minutes}");
    client.say("UPDATE f.rrd 1000000000.1:1 1000000000.2:2");
    let rows = client.say("FETCH f.rrd AVERAGE 1000000000 1000000001");
    assert!(rows.contains("Step: 0.100\n") && rows.contains("\n1000000000.200: 2"), "{rows}");
    // The past goes from one to the other, up to the last tenth, but not to or from an RRD of whole seconds.
    client.say("CREATE g.rrd -s 0.1 -r f.rrd DS:a:GAUGE:1:0:U RRA:AVERAGE:0.5:1:10");
    assert_eq!(client.say("FETCH g.rrd AVERAGE 1000000000 1000000001"), rows);
    for (source, step, why) in
        [("f.rrd", "10", "counts thousandths"), ("m.rrd", "0.1", "counts whole seconds")]
    {
        let refused =
            client.say(format!("CREATE h.rrd -s {step} -r {source} DS:a:GAUGE:60:0:U RRA:AVERAGE:0.5:1:10"));
        assert!(refused.contains(&format!("cannot fill it from {source}: it {why}")), "{refused}");
    }
}

#[test]
fn every_way_in_and_out_agrees_on_times_below_a_second() {
    let roundel = start();
    let mut client = Client::open(&roundel.socket());
    let wires = [Wire::Text, Wire::Frames];
    let name = |index: usize, step: u64| format!("w{index}-{step}.rrd");
    for step in [1, 3, 7, 33, 100, 125, 250, 333, 500, 999] {
        let millis = |nth: u64| (1_700_000_000_000 / step + nth) * step;
        let time = |nth: u64| format!("{}.{:03}", millis(nth) / 1000, millis(nth) % 1000);
        let mut fetched = Vec::new();
        for (index, wire) in wires.into_iter().enumerate() {
            let name = name(index, step);
            let seconds = format!("{}.{:03}", step / 1000, step % 1000);
            let create =
                format!("CREATE {name} -b 1699999900 -s {seconds} DS:a:GAUGE:200:U:U RRA:AVERAGE:0.5:1:20");
            assert_eq!(client.say(create), "0 RRD created OK\n");
            let daemon = Daemon::new(roundel.socket().as_os_str().as_bytes(), wire);
            let readings: Vec<String> = (1..=20).map(|nth| format!("{}:{nth}", time(nth))).collect();
            let readings: Vec<&[u8]> = readings.iter().map(String::as_bytes).collect();
            daemon.update(name.as_bytes(), &readings).unwrap();
            let (start, end) = (millis(1) / 1000 - 1, millis(20) / 1000 + 1);
            let rows =
                daemon.fetch(name.as_bytes(), &FetchRequest::new(Cf::Average, start as i64, end as i64, 1));
            let rows = rows.unwrap();
            assert_eq!((rows.step, rows.units_per_second), (step, 1000));
            let known: Vec<(i64, f64)> =
                rows.rows().map(|(time, row)| (time, row[0])).filter(|(_, value)| !value.is_nan()).collect();
            let want: Vec<(i64, f64)> = (2..=20).map(|nth| (millis(nth) as i64, nth as f64)).collect();
            assert!(known.ends_with(&want), "{step} {wire:?}: {known:?}");
            fetched.push(known);
        }
        assert_eq!(fetched[0], fetched[1], "{step}");
        let last = client.say(format!("LAST {}", name(0, step)));
        assert_eq!(last, format!("0 {}\n", time(20)));
        let info = client.say(format!("INFO {}", name(1, step)));
        assert!(info.contains(&format!("last_update 0 {}\n", time(20))), "{info}");
    }
    let mut bytes = client.say("FETCHRES w0-250.rrd AVERAGE 1 1700000000 1700000001");
    assert!(bytes.contains("1700000000.250: "), "{bytes}");
    client.write("FETCHBIN w0-250.rrd AVERAGE 1700000000 1700000001\n");
    bytes = (0..6).map(|_| client.line()).collect();
    assert!(bytes.contains("Start: 1700000000\n") && bytes.contains("Step: 0.250\n"), "{bytes}");
}

#[test]
fn files_take_no_durations_with_decimals() {
    let roundel = Roundel::files(CreatePolicy { file_limits: true, ..Default::default() });
    let mut client = Client::open(&roundel.socket());
    for words in ["-s 0.1 DS:a:GAUGE:1:0:U", "-s 1 DS:a:GAUGE:0.3:0:U", "-s 2.0 DS:a:GAUGE:5:0:U"] {
        let refused = client.say(format!("CREATE f.rrd {words} RRA:AVERAGE:0.5:1:10"));
        assert!(refused.contains("durations with decimals need a store"), "{words}: {refused}");
    }
}
