//! What a client may do: each request is asked of a store of which the client may see a part, and of one that has nothing but that part.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use access::{Account, TokenHash, Tokens};
use roundel_server::access::{Access, AccessSettings, Anonymous, Principal};
use roundel_server::http::access::Door;
use roundel_server::ingest::IngestSettings;

use crate::common::http::{Answer, request_with};
use crate::common::{Clients, Roundel};

/// RRDs that the client may read, those among them that it may write, and those that it may only write.
const READABLE: [&str; 5] = ["net/a/if.rrd", "net/b/if.rrd", "net/b/x y.rrd", "deep/1/2/cpu.rrd", "top.rrd"];
const HIDDEN: [&str; 6] = [
    "secret/a.rrd",
    "secret/deep/b.rrd",
    "deep/1/2/secret.rrd",
    "other.rrd",
    "net2/a/if.rrd",
    "deep/9/x.rrd",
];

pub(super) fn account(name: &str) -> Account {
    let texts = |patterns: &[&str]| patterns.iter().map(ToString::to_string).collect();
    Account {
        name: name.to_string(),
        sha256: TokenHash::of(name.as_bytes()).map(|hash| hash.text()),
        read: texts(&["net/**", "**/cpu.rrd", "top.rrd", "new/**"]),
        write: texts(&["net/a/*", "new/**"]),
        ..Account::default()
    }
}

/// A daemon with these tokens, each of which is its own name.
pub(super) fn daemon(tokens: &[Account], is_striped: bool, anonymous: Anonymous) -> Roundel {
    limited(tokens, is_striped, anonymous, IngestSettings::default())
}

/// The same with limits on what is pushed.
pub(super) fn limited(
    tokens: &[Account],
    is_striped: bool,
    anonymous: Anonymous,
    ingest: IngestSettings,
) -> Roundel {
    let directory = tempfile::tempdir().unwrap();
    let mut all = Tokens::default();
    for account in tokens {
        all.add(account.clone()).unwrap();
    }
    let path = directory.path().join("tokens");
    std::fs::write(&path, all.text().unwrap()).unwrap();
    let audit = Some(directory.path().join("audit"));
    let access = Access::new(&AccessSettings { tokens: Some(path), audit, users: Vec::new() }).unwrap();
    let anonymous = anonymous.principal().unwrap();
    let door = Arc::new(Door::default().with_anonymous(Some(Arc::clone(&anonymous))));
    Roundel::for_clients(directory, is_striped, Clients { access, anonymous, door, ingest })
}

/// A client of the text protocol.
struct Text(BufReader<UnixStream>);

impl Text {
    fn open(roundel: &Roundel) -> Self {
        let stream = UnixStream::connect(roundel.socket()).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        Text(BufReader::new(stream))
    }

    fn of(roundel: &Roundel, token: &str) -> Self {
        let mut text = Text::open(roundel);
        assert_eq!(text.say(&format!("AUTH {token}")), format!("0 authenticated as {token}\n"));
        text
    }

    /// The whole answer.
    fn say(&mut self, line: &str) -> String {
        writeln!(self.0.get_mut(), "{line}").unwrap();
        let mut answer = String::new();
        self.0.read_line(&mut answer).unwrap();
        let status: i64 = answer.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
        for _ in 0..status.max(0) {
            self.0.read_line(&mut answer).unwrap();
        }
        answer
    }
}

/// All that is answered to one line of a new client.
fn answer(roundel: &Roundel, token: Option<&str>, line: &str) -> String {
    let mut stream = UnixStream::connect(roundel.socket()).unwrap();
    let auth = token.map_or(String::new(), |token| format!("AUTH {token}\n"));
    write!(stream, "{auth}{line}\nQUIT\n").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match token {
        Some(token) => text.strip_prefix(&format!("0 authenticated as {token}\n")).unwrap().to_string(),
        None => text,
    }
}

fn fill(roundel: &Roundel, names: &[&str], admin: Option<&str>) {
    let mut client = admin.map_or_else(|| Text::open(roundel), |token| Text::of(roundel, token));
    for (index, name) in names.iter().enumerate() {
        let name = name.replace(' ', "\\ ");
        let create = format!(
            "CREATE {name} -s 10 -b 1000000000 DS:v:GAUGE:20:U:U RRA:AVERAGE:0.5:1:20 RRA:MAX:0.5:3:20"
        );
        assert!(client.say(&create).starts_with("0 "), "{create}");
        for step in 1..6 {
            let said = client.say(&format!("UPDATE {name} {}:{}", 1_000_000_000 + 10 * step, index * step));
            assert!(said.starts_with("0 "), "{said}");
        }
    }
}

/// Both daemons: all RRDs and a client with rights; what the client may see alone, for a client without rights.
pub(super) fn both(is_striped: bool) -> (Roundel, Roundel) {
    let everything =
        Account { operate: true, read: vec!["**".into()], write: vec!["**".into()], ..account("root") };
    let writer =
        Account { read: Vec::new(), write: vec!["other.rrd".into(), "moved/**".into()], ..account("writer") };
    let whole = daemon(&[account("ann"), everything, writer], is_striped, Anonymous::Nothing);
    fill(&whole, &READABLE, Some("root"));
    fill(&whole, &HIDDEN, Some("root"));
    let part = daemon(&[], is_striped, Anonymous::All);
    fill(&part, &READABLE, None);
    (whole, part)
}

/// An answer without what differs between any two daemons: where they keep things, and how many seconds ago an RRD was updated.
fn plain(roundel: &Roundel, text: &str) -> String {
    let text = text.replace(&roundel.base().display().to_string(), "BASE");
    let mut parts = text.split("data-age=\"");
    let first = parts.next().unwrap_or_default();
    let later = parts.map(|part| part.trim_start_matches(|sign: char| sign.is_ascii_digit()));
    [first].into_iter().chain(later).collect::<Vec<_>>().join("data-age=\"")
}

#[test]
fn what_may_not_be_read_is_not_there_over_the_text_protocol() {
    for is_striped in [true, false] {
        let (whole, part) = both(is_striped);
        let same = |line: &str| {
            let got = plain(&whole, &answer(&whole, Some("ann"), line));
            let want = plain(&part, &answer(&part, None, line));
            assert_eq!(got, want, "{line} (striped: {is_striped})");
            got
        };
        let names = READABLE.iter().chain(&HIDDEN).chain(&["none.rrd", "net/none.rrd", "secret", "net"]);
        for name in names {
            let name = name.replace(' ', "\\ ");
            for line in [
                "INFO NAME",
                "LAST NAME",
                "FIRST NAME 0",
                "FIRST NAME 9",
                "FETCH NAME AVERAGE 1000000000 1000000060",
                "FETCH NAME LAST 1000000000 1000000060",
                "FETCHRES NAME MAX 30 1000000000 1000000060",
                "FETCHBIN NAME AVERAGE 1000000000 1000000060",
                "DUMP NAME",
                "PENDING NAME",
                "FLUSH NAME",
                "EXPORT NAME",
                "LIST /NAME",
                "LIST RECURSIVE /NAME",
                "ENTRIES NAME 100",
                "UPDATE NAME",
                "CREATE new/of.rrd -t NAME",
            ] {
                same(&line.replace("NAME", &name));
            }
        }
        for directory in ["", "deep", "deep/1", "deep/1/2", "deep/9", "net", "net/b", "net2", "secret/deep"] {
            same(&format!("LIST /{directory}"));
            same(&format!("LIST RECURSIVE /{directory}"));
            same(&format!("ENTRIES -f /{directory} 100"));
        }
        assert!(same("LIST RECURSIVE /").contains("top.rrd"));
        // What may be written is the same, too.
        for line in [
            "UPDATE net/a/if.rrd 1000000060:7",
            "UPDATE net/a/if.rrd 1000000060:8",
            "UPDATE net/a/none.rrd 1000000060:8",
            "UPDATE secret/a.rrd 1000000060:8",
            "UPDATEV secret/a.rrd 1000000060:8",
            "UPDATEV net/a/if.rrd 1000000070:8",
            "CREATE new/a.rrd -s 10 -b 1000000000 DS:v:GAUGE:20:U:U RRA:AVERAGE:0.5:1:20",
            "CREATE new/a.rrd -O -s 10 -b 1000000000 DS:v:GAUGE:20:U:U RRA:AVERAGE:0.5:1:20",
            "TUNE new/a.rrd -h v:40",
            "TUNE secret/a.rrd -h v:40",
            "RENAME new/a.rrd new/b.rrd",
            "RENAME secret/a.rrd new/c.rrd",
            "COPY new/b.rrd new/d.rrd",
            "COPY secret/a.rrd new/e.rrd",
            "REMOVE new/d.rrd",
            "REMOVE secret/a.rrd",
            "FORGETFUL",
            "FLUSHALL",
            "PING",
            "HELP",
            "LIST RECURSIVE /",
            "FETCH net/a/if.rrd AVERAGE 1000000000 1000000080",
        ] {
            same(line);
        }
    }
}

#[test]
fn lines_of_a_batch_are_refused_one_by_one() {
    for is_striped in [true, false] {
        let (whole, part) = both(is_striped);
        let (mut one, mut other) = (Text::of(&whole, "ann"), Text::open(&part));
        for client in [&mut one, &mut other] {
            client.say("BATCH");
            let lines = "UPDATE net/a/if.rrd 1000000080:1\nUPDATE secret/a.rrd 1000000080:1\nUPDATE net/a/if.rrd 1000000090:1\n\
                         UPDATE none.rrd 1000000080:1\nUPDATE net/a/if.rrd 1000000090:2\n";
            write!(client.0.get_mut(), "{lines}").unwrap();
        }
        let (got, want) = (one.say("."), other.say("."));
        assert_eq!(plain(&whole, &got), plain(&part, &want));
        assert!(got.starts_with("3 errors"), "{got}");
        // Nothing came through to what is hidden.
        let mut root = Text::of(&whole, "root");
        assert!(root.say("LAST secret/a.rrd").starts_with("0 1000000050"));
    }
}

#[test]
fn what_may_be_read_and_not_written_is_refused() {
    let (whole, _) = both(true);
    let mut ann = Text::of(&whole, "ann");
    for line in [
        "UPDATE top.rrd 1000000060:1",
        "UPDATEV top.rrd 1000000060:1",
        "TUNE top.rrd -h v:40",
        "REMOVE top.rrd",
        "RENAME top.rrd new/top.rrd",
        "COPY top.rrd net/b/top.rrd",
        "CREATE top.rrd -s 10 DS:v:GAUGE:20:U:U RRA:AVERAGE:0.5:1:20",
        "CREATE secret/new.rrd -s 10 DS:v:GAUGE:20:U:U RRA:AVERAGE:0.5:1:20",
    ] {
        let said = ann.say(line);
        assert!(said.starts_with("-1 ") && said.contains("ermission denied"), "{line}: {said}");
    }
    for line in ["STATS", "QUEUE", "SUSPENDALL", "FORGET top.rrd", "TRASH LIST", "ADOPTION", "VERIFY"] {
        assert_eq!(ann.say(line), "-1 Permission denied.\n", "{line}");
    }
    assert!(ann.say("LAST top.rrd").starts_with("0 1000000050"));
    // Who may only write is told why an update was refused.
    let mut writer = Text::of(&whole, "writer");
    for (line, said) in [
        ("UPDATE other.rrd 1000000050:1", "illegal attempt to update using time"),
        ("UPDATE other.rrd 1000000060@1", "-1"),
        ("UPDATE other.rrd 1000000060:1", "0 errors"),
        ("INFO other.rrd", "No such file"),
        ("FETCH other.rrd AVERAGE", "No such file"),
        ("UPDATE secret/a.rrd 1000000060:1", "No such file"),
        ("RENAME other.rrd moved/other.rrd", "0 "),
    ] {
        let answer = writer.say(line);
        assert!(answer.contains(said), "{line}: {answer}");
    }
    assert!(!writer.say("UPDATE moved/other.rrd 1000000060@1").contains("No such file"));
    what_may_only_be_written_stays_unknown(&whole, &mut writer);
    assert_eq!(get_as(&whole, Some("ann"), "/metrics").status, 403);
    assert_eq!(get_as(&whole, Some("unknown"), "/metrics").status, 401);
    let audit = std::fs::read_to_string(whole.path("audit")).unwrap();
    let has = |parts: &[&str]| audit.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(has(&["\"who\":\"root\"", "\"what\":\"create\"", "secret/a.rrd"]), "{audit}");
    assert!(has(&["\"who\":\"ann\"", "\"what\":\"refused\"", "top.rrd", "\"detail\":\"remove\""]), "{audit}");
    assert!(has(&["\"who\":\"ann\"", "\"what\":\"refused\"", "\"detail\":\"/metrics\""]), "{audit}");
    assert!(has(&["\"who\":\"127.0.0.1:", "a password or token that is not known"]), "{audit}");
}

/// Neither times nor definition nor values of an RRD that may only be written are told, over any door.
fn what_may_only_be_written_stays_unknown(whole: &Roundel, writer: &mut Text) {
    for line in [
        "LAST NAME",
        "FIRST NAME 0",
        "STAT NAME",
        "FLUSH NAME",
        "CREATE moved/copy.rrd -t NAME",
        "EXPORT NAME",
        "COPY NAME moved/copy.rrd",
    ] {
        let said =
            |writer: &mut Text, name: &str| writer.say(&line.replace("NAME", name)).replace(name, "NAME");
        let (there, missing) = (said(writer, "moved/other.rrd"), said(writer, "moved/none.rrd"));
        assert_eq!(there, missing, "{line}");
        assert!(there.starts_with('-') && there.contains("NAME"), "{line}: {there}");
    }
    let rows = writer.say("UPDATEV moved/other.rrd 1000000070:2");
    assert!(rows.starts_with("0 Rows of "), "{rows}");
    assert!(
        writer.say("UPDATEV moved/other.rrd 1000000070:2").contains("illegal attempt to update"),
        "it was applied"
    );
    assert_eq!(writer.say("TUNE moved/other.rrd -h v:50"), "0 RRD tuned OK\n");
    for target in [
        "/rrd/NAME",
        "/api/v1/info/NAME.rrd",
        "/api/v1/graphs?name=NAME.rrd",
        "/api/v1/fetch/NAME.rrd?cf=AVERAGE",
    ] {
        let get = |name: &str| {
            let answer = get_as(whole, Some("writer"), &target.replace("NAME", name));
            (answer.status, answer.text().replace(name, "NAME"))
        };
        assert_eq!(get("moved/other"), get("moved/none"), "{target}");
    }
}

/// In the files layout it can be seen: what waits to be written is written, or still waits.
#[test]
fn all_is_flushed_that_the_client_may_write() {
    let (whole, _) = both(false);
    let mut root = Text::of(&whole, "root");
    let names = ["net/a/if.rrd", "top.rrd", "secret/a.rrd"];
    let mut waiting = move || names.map(|name| !root.say(&format!("PENDING {name}")).starts_with("0 "));
    assert_eq!(waiting(), [true; 3]);
    // Who may write nothing that is there flushes nothing.
    assert!(Text::of(&whole, "writer").say("FLUSHALL").starts_with("0 "));
    assert!(Text::of(&whole, "ann").say("FLUSHALL").starts_with("0 "));
    testkit::wait_for("the flush", || (!waiting()[0]).then_some(()));
    assert_eq!(waiting(), [false, true, true]);
    assert!(Text::of(&whole, "root").say("FLUSHALL").starts_with("0 "));
    testkit::wait_for("the flush of all", || (waiting() == [false; 3]).then_some(()));
}

#[test]
fn what_is_done_to_the_daemon_and_its_views_is_recorded() {
    let (whole, _) = both(true);
    let mut root = Text::of(&whole, "root");
    for line in ["SUSPEND top.rrd", "RESUME top.rrd", "SUSPENDALL", "RESUMEALL", "FORGET top.rrd"] {
        assert!(root.say(line).starts_with("0 "), "{line}");
    }
    let auth = "Authorization: Bearer root\r\n";
    let view = |method: &str, body: &str| request_with(&whole, method, "/api/v1/views/v", auth, body).status;
    assert_eq!(view("PUT", "title = 'x'\n"), 200);
    assert_eq!(view("POST", "arg=LINE:1"), 200);
    assert_eq!(view("PUT", ""), 200);
    // What was refused is no change.
    assert_eq!(view("PUT", "titel = 'x'\n"), 422);
    assert_eq!(
        request_with(&whole, "PUT", "/api/v1/views/w", "Authorization: Bearer ann\r\n", "").status,
        403
    );
    let audit = std::fs::read_to_string(whole.path("audit")).unwrap();
    let lines: Vec<serde_json::Value> =
        audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let done: Vec<(&str, &str)> = lines
        .iter()
        .filter(|line| line["who"] == "root" && line["what"] != "create")
        .map(|line| (line["what"].as_str().unwrap(), line["name"].as_str().unwrap_or_default()))
        .collect();
    let want = [
        ("suspend", "top.rrd"),
        ("resume", "top.rrd"),
        ("suspend all", ""),
        ("resume all", ""),
        ("forget", "top.rrd"),
        ("add view", "v"),
        ("change view", "v"),
        ("remove view", "v"),
    ];
    assert_eq!(done, want, "{audit}");
}

#[test]
fn without_a_token_nothing_is_said_and_a_revoked_one_ends_its_connections() {
    let (whole, _) = both(true);
    let mut stranger = Text::open(&whole);
    for line in ["LIST RECURSIVE /", "PING", "UPDATE net/a/if.rrd 1000000090:1", "INFO top.rrd"] {
        assert_eq!(stranger.say(line), "-1 Permission denied.\n", "{line}");
    }
    for token in ["bob", "", &"x".repeat(4000), "ann\\ ", "\\ ann"] {
        let said = stranger.say(&format!("AUTH {token}"));
        assert!(said.starts_with("-1 "), "{token}: {said}");
    }
    assert!(stranger.say("AUTH ann").starts_with("0 "));
    assert!(stranger.say("PING").starts_with("0 "));
    // Frames are asked for after that, by the same client.
    assert!(stranger.say("FRAMES 1").contains('1'));
    let mut ann = Text::of(&whole, "ann");
    assert!(ann.say("PING").starts_with("0 "));
    std::fs::write(whole.path("tokens"), "").unwrap();
    testkit::wait_until("the end of the connection", || {
        let is_sent = writeln!(ann.0.get_mut(), "LAST top.rrd").is_ok();
        let mut answer = String::new();
        let is_answered = ann.0.read_line(&mut answer).is_ok_and(|bytes| bytes > 0);
        assert!(!is_answered || answer == "0 1000000050\n", "{answer}");
        !is_sent || !is_answered
    });
    assert!(Text::open(&whole).say("AUTH ann").starts_with("-1 "));
}

#[test]
fn rates_hold() {
    let fast = Account { values_per_second: Some(5), new_rrds_per_hour: Some(2), ..account("ann") };
    let slow = Account { rows_per_second: Some(1), ..account("bob") };
    let everything =
        Account { operate: true, write: vec!["**".into()], read: vec!["**".into()], ..account("root") };
    let slow_operator = Account {
        name: "eve".into(),
        sha256: account("eve").sha256,
        rows_per_second: Some(1),
        ..everything.clone()
    };
    let whole = daemon(&[fast, slow, everything, slow_operator], true, Anonymous::Nothing);
    fill(&whole, &READABLE, Some("root"));
    let mut ann = Text::of(&whole, "ann");
    let refused =
        |answers: &[String]| answers.iter().filter(|said| said.contains("may have no more than")).count();
    let updates: Vec<String> =
        (0..200).map(|step| ann.say(&format!("UPDATE net/a/if.rrd {}:1", 1_000_000_100 + step))).collect();
    // Some at once, and few more while this runs.
    assert!((50..180).contains(&refused(&updates)), "{}", refused(&updates));
    let create = "-s 10 -b 1000000000 DS:v:GAUGE:20:U:U RRA:AVERAGE:0.5:1:20";
    let made: Vec<String> =
        (0..4).map(|index| ann.say(&format!("CREATE new/{index}.rrd {create}"))).collect();
    assert_eq!(refused(&made), 2, "{made:?}");
    let fetch = "FETCH top.rrd AVERAGE 1000000000 1000000200";
    for who in ["bob", "eve"] {
        let mut slow = Text::of(&whole, who);
        let fetched: Vec<String> = (0..20).map(|_| slow.say(fetch)).collect();
        assert!(refused(&fetched) >= 17, "{who}: {fetched:?}");
    }
    assert!(Text::of(&whole, "root").say(fetch).contains("Success"));
}

pub(super) fn get_as(roundel: &Roundel, token: Option<&str>, target: &str) -> Answer {
    let header = token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
    request_with(roundel, "GET", target, &header, "")
}

/// What lists names, with those that are hidden and those that are not.
const LISTS: &[&str] = &[
    "/api/v1/list",
    "/api/v1/list?recursive=1",
    "/api/v1/list/net",
    "/api/v1/list/secret",
    "/api/v1/list/deep?recursive=1",
    "/api/v1/tree",
    "/api/v1/tree/net",
    "/api/v1/tree/secret",
    "/api/v1/tree/deep/1/2",
    "/api/v1/tree/deep/9",
    "/api/v1/search?q=rrd",
    "/api/v1/search?q=secret",
    "/api/v1/search?q=*/*/*",
    "/api/v1/search?q=cpu",
    "/metrics/find?query=*",
    "/grafana/dashboards",
    "/metrics/find?query=net.*&format=json",
    "/metrics/find?query=secret.*",
    "/metrics/find?query=deep.9&format=completer",
    "/metrics/expand?query=*.*.*&query=**",
    "/metrics/index.json",
    "/tags/autoComplete/tags",
    "/tags/autoComplete/values?tag=rrd",
    "/tags/findSeries?expr=rrd=~.",
    "/tree/",
    "/tree/net/",
    "/tree/secret/",
    "/tree/deep/",
    "/search?q=a",
    "/search?q=secret",
];

#[test]
fn what_may_not_be_read_is_not_there_over_http() {
    for is_striped in [true, false] {
        let (whole, part) = both(is_striped);
        let range = "start=1000000000&end=1000000060";
        let mut targets: Vec<String> = LISTS.iter().map(ToString::to_string).collect();
        for name in READABLE.iter().chain(&HIDDEN).chain(&["none.rrd"]) {
            let name = name.replace(' ', "%20");
            let stem = name.trim_end_matches(".rrd").to_string();
            targets.extend([
                format!("/api/v1/info/{name}"),
                format!("/api/v1/fetch/{name}?cf=AVERAGE&{range}"),
                format!("/api/v1/graphs?rrd={name}"),
                format!("/rrd/{stem}?{range}"),
                format!("/graph?{range}&arg=DEF:a={name}:v:AVERAGE&arg=LINE:a&type=svg"),
                format!("/api/v1/xport?{range}&arg=DEF:a={name}:v:AVERAGE&arg=XPORT:a"),
            ]);
        }
        targets.extend([
            format!("/api/v1/top?glob=**&{range}"),
            "/render?format=json&from=1000000000&until=1000000060&target=**".to_owned(),
            "/render?format=json&from=1000000000&until=1000000060&target=sumSeries(*.*.*,secret.*.*)"
                .to_owned(),
            "/graphite/render?format=raw&from=1000000000&until=1000000060&target=seriesByTag('ds=~.')"
                .to_owned(),
            format!("/api/v1/top?glob=*/*/*&{range}"),
            format!("/api/v1/xport?{range}&arg=DEF:a=secret/a.rrd:v:AVERAGE&arg=CDEF:b=a,2,*&arg=XPORT:b"),
        ]);
        // The answer to one is compared only when it is one: where both refuse a parameter, nothing is shown of either.
        let mut good = 0;
        for target in &targets {
            let (got, want) = (get_as(&whole, Some("ann"), target), get_as(&part, None, target));
            assert_eq!(got.status, want.status, "{target}: {} {}", got.text(), want.text());
            assert_eq!(
                plain(&whole, &got.text()),
                plain(&part, &want.text()),
                "{target} (striped: {is_striped})"
            );
            good += usize::from(got.status == 200);
        }
        assert!(good > 20, "{good} of {}", targets.len());
        for target in ["/metrics", "/status", "/api/v1/status"] {
            assert_eq!(get_as(&whole, Some("ann"), target).status, 403, "{target}");
            assert_eq!(get_as(&whole, Some("root"), target).status, 200, "{target}");
        }
        let home = get_as(&whole, Some("ann"), "/");
        assert!(home.status == 303 && home.head.contains("location: /tree/"), "{}", home.head);
    }
}

#[test]
fn a_browser_logs_in() {
    let (whole, _) = both(true);
    let html = "Accept: text/html\r\n";
    let sent = |answer: &Answer| {
        answer.head.lines().find_map(|line| line.strip_prefix("location: ").map(String::from))
    };
    let first = request_with(&whole, "GET", "/tree/net/?x=1", html, "");
    assert_eq!((first.status, sent(&first).as_deref()), (303, Some("/login?next=/tree/net/%3fx%3d1")));
    assert_eq!(get_as(&whole, None, "/tree/net/").status, 401);
    assert_eq!(get_as(&whole, Some("bob"), "/tree/net/").status, 401);
    let form = request_with(&whole, "GET", "/login?next=/tree/net/%3fx%3d1", html, "");
    assert!(form.status == 200 && form.text().contains("value=\"/tree/net/?x=1\""), "{}", form.text());
    let wrong = request_with(&whole, "POST", "/login", html, "name=&secret=bob&next=/tree/");
    assert!(wrong.status == 401 && wrong.text().contains("is not known"), "{}", wrong.status);
    let foreign = format!("{html}Origin: http://evil.example\r\n");
    assert_eq!(request_with(&whole, "POST", "/login", &foreign, "name=&secret=ann&next=/").status, 403);
    let right = request_with(&whole, "POST", "/login", html, "name=&secret=ann&next=/tree/net/");
    assert_eq!((right.status, sent(&right).as_deref()), (303, Some("/tree/net/")));
    let address = std::fs::read_to_string(whole.path("http")).unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let body = "name=&secret=ann&next=//evil.example/";
    let length = body.len();
    write!(stream, "POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.to_ascii_lowercase().contains("location: /\r\n"), "{text}");
    let cookie = text.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    let page = request_with(&whole, "GET", "/tree/net/", &cookie, "");
    assert!(page.status == 200 && page.text().contains("if"), "{}", page.status);
    assert!(!request_with(&whole, "GET", "/tree/", &cookie, "").text().contains("secret"));
    assert_eq!(request_with(&whole, "POST", "/logout", &cookie, "").status, 303);
    assert_eq!(request_with(&whole, "GET", "/tree/net/", &cookie, "").status, 401);
}

#[test]
fn those_who_may_only_read_change_nothing() {
    let roundel = daemon(&[], true, Anonymous::All);
    fill(&roundel, &READABLE, None);
    let reader = Anonymous::Read.principal().unwrap();
    let service = roundel.service().seen_by(&reader);
    assert!(service.engine.list(b"", true).unwrap().len() == READABLE.len());
    let name = store::name::RrdName::new(b"top.rrd").unwrap();
    let error = service.engine.delete(&name).unwrap_err();
    assert_eq!(error.to_string(), "'top.rrd': Permission denied");
    assert!(Arc::ptr_eq(&service, &roundel.service().seen_by(&reader)));
    assert!(
        roundel.service().seen_by(&Principal::without_rights()).engine.list(b"", true).unwrap().is_empty()
    );
}
