//! A daemon's connections and batches against a daemon that the tests play.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use protocol::frames::answer::{Refusal, push_refused, push_rows, push_text, push_updated};
use protocol::frames::request::Request;
use protocol::frames::{Frame, HEADER_BYTES, agreement};
use rrd::definition::Cf;

use super::*;

/// What the played daemon was asked, request by request: the names of an update's RRDs, or a line.
type Asked = Arc<Mutex<Vec<Vec<String>>>>;

/// What the played daemon says of the RRD called `late`.
const LATE: &str = "illegal attempt to update using time 1.000000 when last update time is 2.000000";

/// A played daemon, which refuses what is called `bad...` or `late`.
struct Played {
    daemon: Arc<Daemon>,
    asked: Asked,
    /// One for each request that it may answer; dropped = it answers at once.
    permits: Option<Sender<()>>,
    /// How many connections it has closed.
    closed: Arc<AtomicUsize>,
    _directory: tempfile::TempDir,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Frames,
    /// Frames of version 1 only.
    OldFrames,
    /// rrdcached: text only.
    Text,
    /// Frames, and each connection ends after its first answer.
    OneAnswer,
    /// Frames, and the first connection ends before its first answer.
    DiesOnce,
}

fn play(kind: Kind) -> Played {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sock");
    let listener = UnixListener::bind(&path).unwrap();
    let asked = Asked::default();
    let (permits, gate) = channel();
    let (log, gate) = (Arc::clone(&asked), Arc::new(Mutex::new(gate)));
    let closed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&closed);
    thread::spawn(move || {
        for (index, stream) in listener.incoming().enumerate() {
            let (log, gate, count) = (Arc::clone(&log), Arc::clone(&gate), Arc::clone(&count));
            let kind = if kind == Kind::DiesOnce && index > 0 { Kind::Frames } else { kind };
            thread::spawn(move || {
                serve(kind, stream.unwrap(), &log, &gate);
                count.fetch_add(1, Ordering::Release);
            });
        }
    });
    let daemon = Arc::new(Daemon::new(path.to_str().unwrap().as_bytes(), Wire::Frames));
    Played { daemon, asked, permits: Some(permits), closed, _directory: directory }
}

fn serve(kind: Kind, stream: UnixStream, log: &Asked, gate: &Mutex<Receiver<()>>) {
    let mut out = stream.try_clone().unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert_eq!(line, "FRAMES 2\n");
    let version = if kind == Kind::OldFrames { 1 } else { 2 };
    if kind == Kind::OldFrames {
        out.write_all(b"-1 Only frames of version 1 are spoken here.\n").unwrap();
        line.clear();
        stream.read_line(&mut line).unwrap();
        assert_eq!(line, "FRAMES 1\n");
    }
    if kind == Kind::Text {
        out.write_all(b"-1 Unknown command: FRAMES\n").unwrap();
        loop {
            line.clear();
            if stream.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            log.lock().unwrap().push(vec![line.trim_end().to_string()]);
            gate.lock().unwrap().recv().ok();
            let answer = match line.split(' ').collect::<Vec<_>>()[..] {
                [_, name, ..] if name.starts_with("bad") => format!("-1 no {name}\n"),
                [_, "late", ..] => format!("-1 {LATE}\n"),
                ["FETCHRES", ..] => "-1 Unknown command: FETCHRES\n".to_string(),
                ["FETCH", ..] => "7 Success\nFlushVersion: 1\nStart: 10\nEnd: 20\nStep: 10\nDSCount: 1\n\
                                  DSName: a\n        20: 7.0\n"
                    .to_string(),
                _ if line == "nonsense\n" => "-1 Unknown command: nonsense\n".to_string(),
                _ => "0 done\n".to_string(),
            };
            out.write_all(answer.as_bytes()).unwrap();
        }
    }
    out.write_all(format!("{}\n", agreement(version)).as_bytes()).unwrap();
    while let Some(answer) = answer_frame(version, &mut stream, log, gate) {
        if kind == Kind::DiesOnce {
            return;
        }
        out.write_all(&answer).ok();
        if kind == Kind::OneAnswer {
            return;
        }
    }
}

fn answer_frame(
    version: u32,
    stream: &mut impl Read,
    log: &Asked,
    gate: &Mutex<Receiver<()>>,
) -> Option<Vec<u8>> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).ok()?;
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
    let (mut body, number) = (vec![0; word(0) as usize], word(8));
    stream.read_exact(&mut body).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (mut names, mut out) = (Vec::new(), Vec::new());
    match Request::decode(Frame { kind: header[4], number, body: &body }).unwrap() {
        Request::Update(updates) => {
            names.extend(updates.map(|update| text(update.name)));
            let refusals: Vec<(u32, ErrorCode, Vec<u8>)> = (0..)
                .zip(&names)
                .filter_map(|(index, name)| match &**name {
                    "late" => Some((index, ErrorCode::IllegalTime, LATE.into())),
                    bad if bad.starts_with("bad") => {
                        Some((index, ErrorCode::Poisoned, format!("no {bad}").into()))
                    }
                    _ => None,
                })
                .collect();
            let refusals =
                refusals.iter().map(|(index, code, text)| Refusal { index: *index, code: *code, text });
            push_updated(&mut out, number, version, refusals);
        }
        Request::Fetch(fetch) if fetch.name.starts_with(b"bad") => {
            names.push(text(fetch.name));
            push_refused(&mut out, number, version, ErrorCode::Damaged, &[b"no ", fetch.name].concat());
        }
        Request::Fetch(fetch) => {
            names.push(text(fetch.name));
            let ds_names = vec![text(fetch.name)];
            let step = fetch.request.unwrap().step;
            let rows =
                FetchRows { start: 10, end: 20, step, units_per_second: 1, ds_names, values: vec![7.0] };
            push_rows(&mut out, number, &rows);
        }
        Request::Command(line) => {
            names.push(text(line));
            let text = |out: &mut _, text| push_text(out, protocol::frames::answer::TEXT, number, text);
            match (line, version) {
                (b"nonsense", 1) => text(&mut out, b"-1 Unknown command: nonsense\n"),
                (b"nonsense", _) => {
                    push_refused(&mut out, number, version, ErrorCode::UnknownCommand, b"what is that?");
                }
                _ => text(&mut out, b"0 done\n"),
            }
        }
    }
    log.lock().unwrap().push(names);
    gate.lock().unwrap().recv().ok();
    Some(out)
}

impl Played {
    /// It answers whatever it is asked from now on.
    fn answers(&mut self) {
        self.permits = None;
    }

    /// Updates one RRD on a thread of its own.
    fn update(&self, name: &'static str) -> thread::JoinHandle<Result> {
        let daemon = Arc::clone(&self.daemon);
        thread::spawn(move || daemon.update(name.as_bytes(), &[b"1:2", b"3:4"]))
    }

    /// Waits until a condition holds.
    fn wait(&self, what: &str, condition: impl Fn(&Played) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !condition(self) {
            assert!(Instant::now() < end, "no {what}");
            thread::yield_now();
        }
    }

    fn asked(&self) -> Vec<Vec<String>> {
        self.asked.lock().unwrap().clone()
    }
}

/// The error of a result, as a text for comparisons.
fn text<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn updates_of_several_threads_go_together_and_each_gets_its_own_answer() {
    let mut played = play(Kind::Frames);
    let first = played.update("first");
    played.wait("request", |played| played.asked().len() == 1);
    let mut others = Vec::new();
    for (index, name) in ["a", "bad1", "b", "bad2"].into_iter().enumerate() {
        others.push(played.update(name));
        played.wait("update in the batch", |played| played.daemon.batches.gathered() == index + 1);
    }
    played.answers();
    assert_eq!(text(first.join().unwrap()), "()");
    let got: Vec<String> = others.into_iter().map(|thread| text(thread.join().unwrap())).collect();
    assert_eq!(got, ["()", "no bad1", "()", "no bad2"]);
    assert_eq!(played.asked(), [vec!["first"], vec!["a", "bad1", "b", "bad2"]]);
}

#[test]
fn a_connection_that_dies_fails_its_batch_and_the_next_one_is_new() {
    let mut played = play(Kind::DiesOnce);
    let first = played.update("first");
    played.wait("request", |played| played.asked().len() == 1);
    let second = played.update("second");
    played.wait("update in the batch", |played| played.daemon.batches.gathered() == 1);
    played.answers();
    assert!(matches!(first.join().unwrap(), Err(ClientError::Lost)));
    assert_eq!(text(second.join().unwrap()), "()");
    assert_eq!(text(played.update("third").join().unwrap()), "()");
}

#[test]
fn a_connection_that_ended_while_idle_is_replaced() {
    let mut played = play(Kind::OneAnswer);
    played.answers();
    for (name, closed) in [("a", 1), ("b", 2), ("c", 3)] {
        assert_eq!(text(played.update(name).join().unwrap()), "()");
        played.wait("close after the answer", |played| played.closed.load(Ordering::Acquire) == closed);
    }
    assert_eq!(played.asked(), [vec!["a"], vec!["b"], vec!["c"]]);
}

#[test]
fn a_daemon_that_knows_only_text_is_asked_in_text() {
    let mut played = play(Kind::Text);
    played.answers();
    assert_eq!(text(played.update("a").join().unwrap()), "()");
    assert_eq!(text(played.update("bad").join().unwrap()), "no bad");
    let request = FetchRequest::new(Cf::Average, 10, 20, 5);
    let rows = played.daemon.fetch_all(&[(b"a", request), (b"bad", request)]).unwrap();
    assert_eq!(rows[0].as_ref().unwrap().values, [7.0]);
    assert!(rows[1].as_ref().is_err_and(|error| error.is(ErrorCode::Other) && error.to_string() == "no bad"));
    assert_eq!(text(played.daemon.export(b"a").map(|bytes| bytes.is_some())), "false");
    let asked = played.asked().concat();
    let want = ["update a 1:2 3:4", "update bad 1:2 3:4", "FETCHRES a AVERAGE 5 10 20"];
    assert_eq!(asked[..3], want);
    // It does not know FETCHRES, so it is asked for its own resolution, and never again for what only ours knows.
    assert_eq!(asked[4..], ["FETCH a AVERAGE 10 20", "FETCH bad AVERAGE 10 20"]);
}

/// A name with a line feed would be two commands: a file called `x\nimport y` must not replace `y`.
#[test]
fn words_with_line_feeds_are_not_sent() {
    for kind in [Kind::Text, Kind::Frames] {
        let mut played = play(kind);
        played.answers();
        let request = FetchRequest::new(Cf::Average, 10, 20, 5);
        for name in [&b"x\nflushall"[..], b"x\0"] {
            let daemon = &played.daemon;
            let errors = [
                daemon.ask("info", &[name]).map(|_| ()),
                daemon.export(name).map(|_| ()),
                daemon.import(name, b"bytes", false),
                daemon.update(name, &[b"1:2"]),
                daemon.update(b"x", &[b"1:2", name]),
                daemon.fetch(name, &request).map(|_| ()),
            ];
            for (number, error) in errors.into_iter().enumerate() {
                assert!(matches!(error, Err(ClientError::LineBreak)), "{number}: {error:?}");
            }
        }
        assert!(played.asked().is_empty());
    }
}

#[test]
fn a_refusal_has_its_code_whatever_is_spoken() {
    let codes = |kind: Kind| {
        let mut played = play(kind);
        played.answers();
        let code = |result: Result| match result {
            Err(ClientError::Refused { code, .. }) => Some(code),
            _ => None,
        };
        let fetched = played.daemon.fetch(b"bad", &FetchRequest::new(Cf::Max, 10, 20, 1));
        let codes = [
            code(played.update("good").join().unwrap()),
            code(played.update("bad").join().unwrap()),
            code(played.update("late").join().unwrap()),
            code(fetched.map(|_| ())),
        ];
        // It is told that a command is unknown by the code, where there is one.
        assert!(played.daemon.ask_ours("nonsense", &[]).is_ok_and(|answer| answer.is_none()), "{codes:?}");
        codes
    };
    use ErrorCode::{Damaged, IllegalTime, Other, Poisoned};
    assert_eq!(codes(Kind::Frames), [None, Some(Poisoned), Some(IllegalTime), Some(Damaged)]);
    let by_text = [None, Some(Other), Some(IllegalTime), Some(Other)];
    assert_eq!(codes(Kind::OldFrames), by_text);
    assert_eq!(codes(Kind::Text), by_text);
}

#[test]
fn fetches_are_sent_before_the_first_answer_and_answered_in_order() {
    let mut played = play(Kind::Frames);
    played.answers();
    let request = |step| FetchRequest::new(Cf::Max, 10, 20, step);
    let answers = played.daemon.fetch_all(&[(b"a", request(1)), (b"bad", request(2)), (b"c", request(3))]);
    let answers: Vec<String> =
        answers.unwrap().into_iter().map(|rows| text(rows.map(|rows| (rows.ds_names, rows.step)))).collect();
    assert_eq!(answers, [r#"(["a"], 1)"#, "no bad", r#"(["c"], 3)"#]);
    assert_eq!(text(played.daemon.ask("last", &[b"x y"]).map(|answer| answer.text)), r#""done""#);
    assert_eq!(played.asked().concat().last().unwrap(), r"last x\ y");
}
