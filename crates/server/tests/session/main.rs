//! Sessions without sockets or a store: the test is the driver and decides when to reply.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod no_engine;

use std::path::Path;
use std::sync::Arc;

use protocol::frames::answer::Answer;
use protocol::frames::code::ErrorCode;
use protocol::frames::request::{Update, push_command, push_fetch, push_updates};
use protocol::frames::{ANSWER_BYTES_MAX, scan};
use protocol::rrdcached::command::Permissions;
use protocol::rrdcached::request::Request;
use roundel_server::connection::command::{Ask, update};
use roundel_server::connection::refusal::Refusal;
use roundel_server::connection::session::{Effect, Input, Session, StoreReply, Ticket};
use roundel_server::limits::{ANSWER_BYTES_HELD, CHUNK_BYTES_MAX, CHUNK_UPDATES_MAX, CHUNKS_IN_FLIGHT_MAX};
use roundel_server::metrics::DropReason;
use roundel_server::names::Names;
use roundel_server::service::{CreatePolicy, Service};
use rrd::definition::Cf;
use rrd::fetch::FetchRequest;
use store::engine::{StoreError, UpdateBatch, UpdateFailure};
use store::name::RrdName;

/// A driver that does nothing on its own.
struct Driver {
    session: Session,
    /// Bytes sent by the client that the session has not used.
    bytes: Vec<u8>,
    /// Batches sent to the store and not answered.
    sent: Vec<(Ticket, Handed)>,
    /// The output, write by write.
    writes: Vec<String>,
    /// The output as bytes.
    frames: Vec<u8>,
    version: u32,
    /// Whether everything is answered at once.
    prompt: bool,
    ended: bool,
}

/// A request sent to the store.
#[derive(Debug)]
enum Handed {
    Updates(Vec<String>),
    Create(String),
}

impl Driver {
    fn new(permissions: Permissions) -> Self {
        let base = Path::new("/base");
        let engine = Arc::new(no_engine::NoEngine);
        let service = Service::new(engine, Names::new(base, base), CreatePolicy::default());
        let mut session = Session::new(service);
        session.allow(permissions);
        let (bytes, sent, writes, frames) = Default::default();
        Driver { session, bytes, sent, writes, frames, version: 1, prompt: false, ended: false }
    }

    /// A driver that replies at once: names that begin with `bad` do not exist, all others accept everything.
    fn prompt() -> Self {
        Driver { prompt: true, ..Driver::new(Permissions::ALL) }
    }

    /// The client sends bytes; the session processes them until it needs a reply or more bytes. Returns true
    /// when it waits.
    fn send(&mut self, bytes: &[u8], input: Input) -> bool {
        self.bytes.extend_from_slice(bytes);
        self.run(input)
    }

    fn run(&mut self, input: Input) -> bool {
        loop {
            let bytes = std::mem::take(&mut self.bytes);
            let (used, effect) = self.session.next(&bytes, input);
            let mut handed = None;
            match effect {
                Effect::Update(ticket, batch) => handed = Some((ticket, Handed::Updates(lines(&batch)))),
                Effect::Create(ticket, name, _) => {
                    handed = Some((ticket, Handed::Create(String::from_utf8_lossy(&name).into_owned())));
                }
                Effect::Turn(_) => self.session.take_turn(),
                Effect::Room => self.session.make_room(),
                Effect::More => unreachable!("no answer here is long"),
                Effect::Ask(ask) => {
                    let (_, out) = self.session.answer_space();
                    let result = answer(&ask, out);
                    self.session.answered(result);
                }
                Effect::Write => {
                    self.frames.extend_from_slice(self.session.output());
                    self.writes.push(String::from_utf8_lossy(self.session.output()).into_owned());
                    self.session.written();
                }
                Effect::Frames(_) => {}
                Effect::Auth(_) => unreachable!("no client here says who it is"),
                Effect::Wait | Effect::Read | Effect::End => {
                    self.ended = matches!(effect, Effect::End);
                    let waits = matches!(effect, Effect::Wait);
                    self.bytes = bytes[used..].to_vec();
                    return waits;
                }
            }
            self.bytes = bytes[used..].to_vec();
            self.sent.extend(handed);
            if self.prompt {
                while !self.sent.is_empty() {
                    self.reply(0);
                }
            }
        }
    }

    /// The store replies to the batch at `index`: names that begin with `bad` do not exist.
    fn reply(&mut self, index: usize) {
        let (ticket, handed) = self.sent.remove(index);
        let reply = match handed {
            Handed::Create(_) => StoreReply::Created(Ok(())),
            Handed::Updates(lines) => {
                let bad = (0..lines.len()).filter(|&line| lines[line].starts_with("bad"));
                let failure = |line| {
                    let error = StoreError::NoSuchRrd(RrdName::new(b"bad").unwrap());
                    UpdateFailure { line: line as u32, accepted: 0, error }
                };
                // The store may list them in any order.
                StoreReply::Updated(bad.rev().map(failure).collect())
            }
        };
        self.session.replied(ticket, reply);
    }

    fn written(&mut self) -> String {
        self.writes.drain(..).collect()
    }

    fn updates(&self) -> usize {
        let count = |handed: &Handed| match handed {
            Handed::Updates(lines) => lines.len(),
            Handed::Create(_) => 0,
        };
        self.sent.iter().map(|(_, handed)| count(handed)).sum()
    }
}

fn lines(batch: &UpdateBatch) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    batch.lines.iter().map(|line| text(batch.name(line)) + " " + &text(batch.values(line))).collect()
}

/// Several answers, to distinguish requests.
fn answer(ask: &Ask<'_>, out: &mut Vec<u8>) -> Result<(), Refusal> {
    match ask {
        Ask::Command(Request::Ping) => out.extend_from_slice(b"0 PONG\n"),
        Ask::Command(Request::Flush(name)) => {
            // The output of a refused command is discarded.
            out.extend_from_slice(b"half an answer");
            return Err(Refusal::new(DropReason::NoSuchRrd, [b"No such file: ", &**name].concat()));
        }
        Ask::RefusedUpdate(refused) => {
            let text = refused.bad.as_ref().map_or(b"No values updated.".to_vec(), |bad| bad.text(9.0));
            let code = refused.bad.as_ref().map_or(ErrorCode::Syntax, update::code);
            return Err(Refusal::new(DropReason::Refused, text).with_code(code));
        }
        Ask::Rows(number, _) => return Err(Refusal::new(DropReason::Usage, format!("frame {number}"))),
        other => panic!("{other:?}"),
    }
    Ok(())
}

const ONE: &str = "0 errors, enqueued 1 value(s).\n";
const NONE: &str = "-1 No such file: /base/bad\n";

#[test]
fn answers_leave_in_the_order_of_the_requests() {
    let mut driver = Driver::new(Permissions::ALL);
    // A CREATE ends a chunk without waiting for it; so does the end of a burst.
    let script = b"UPDATE a 1:1\nUPDATE bad 1:1\nCREATE c DS:x\nUPDATE b 1:1 2:2\nnonsense\nCREATE d DS:x\n";
    assert!(driver.send(script, Input::Dry));
    assert_eq!(driver.sent.len(), 4, "{:?}", driver.sent);
    assert!(matches!(&driver.sent[1].1, Handed::Create(name) if name == "c"));
    for index in [2, 2, 1] {
        driver.reply(index);
        assert!(driver.run(Input::Dry));
        assert_eq!(driver.written(), "", "the first may take its time");
    }
    // Only the first is missing; everything else waited for it.
    driver.reply(0);
    assert!(!driver.run(Input::Dry));
    let created = "0 RRD created OK\n";
    let want = format!(
        "{ONE}{NONE}{created}0 errors, enqueued 2 value(s).\n-1 Unknown command: nonsense\n{created}"
    );
    assert_eq!(driver.writes, [want], "in one write");
}

#[test]
fn a_command_waits_for_everything_before_it() {
    let mut driver = Driver::new(Permissions::ALL);
    assert!(driver.send(b"UPDATE a 1:1\nPING\nUPDATE b 1:1\n", Input::Dry));
    assert_eq!(driver.updates(), 1, "what comes after PING is not handed over before it");
    driver.reply(0);
    assert!(driver.run(Input::Dry));
    assert_eq!(driver.updates(), 1);
    driver.reply(0);
    assert!(!driver.run(Input::Dry));
    assert_eq!(driver.writes, [format!("{ONE}0 PONG\n{ONE}")]);
}

#[test]
fn requests_dropped_by_the_store_are_answered() {
    let mut driver = Driver::new(Permissions::ALL);
    assert!(driver.send(b"UPDATE a 1:1\nfoo\nUPDATE b 2:2 x\nCREATE c DS:x\n", Input::Dry));
    while let Some((ticket, _)) = driver.sent.pop() {
        driver.session.replied(ticket, StoreReply::Dropped);
    }
    assert!(!driver.run(Input::Dry));
    let stopping = "-1 the daemon is stopping\n";
    let want = format!("{stopping}-1 Unknown command: foo\n{stopping}-1 RRD Error: the daemon is stopping\n");
    assert_eq!(driver.written(), want);
}

#[test]
fn a_batch_is_answered_at_its_end_by_number() {
    let mut driver = Driver::prompt();
    assert!(!driver.send(b"BATCH\n", Input::Dry));
    assert_eq!(driver.written(), "0 Go ahead.  End with dot '.' on its own line.\n");
    let script =
        b"UPDATE a 1:1\nUPDATE bad 1:1\nfoo\nUPDATE a x\nFLUSH none\nCREATE c DS:x\nPING\nUPDATE a 1:1 y\n";
    assert!(!driver.send(script, Input::Dry));
    assert!(!driver.send(b"UPDATE bad 1:1\nbatch\n", Input::Dry));
    assert_eq!(driver.written(), "");
    assert!(!driver.send(b".\nPING\n", Input::Dry));
    let want = [
        "8 errors",
        "2 No such file: /base/bad",
        "3 Unknown command: foo",
        "4 Cannot find timestamp in 'x'!",
        "5 No such file: none",
        "7 Can't use 'PING' here.",
        "8 Cannot find timestamp in 'y'!",
        "9 No such file: /base/bad",
        "10 Can't use 'batch' here.",
        "0 PONG\n",
    ];
    assert_eq!(driver.written(), want.join("\n"));
    assert!(!driver.send(b".\n", Input::Dry));
    assert_eq!(driver.written(), "-1 Can't use '.' here.\n");
}

#[test]
fn a_batch_sends_its_updates_when_the_client_pauses() {
    let mut driver = Driver::new(Permissions::ALL);
    driver.send(b"BATCH\nUPDATE a 1:1\n", Input::More);
    assert_eq!(driver.updates(), 0, "more lines would fill the chunk");
    assert!(!driver.run(Input::Dry), "and nothing waits for it");
    assert_eq!(driver.updates(), 1);
    // A client that disconnects within its batch: complete commands are executed, an incomplete one is not.
    assert!(driver.send(b"UPDATE b 1:1\nUPDATE c 1:", Input::End));
    assert_eq!(driver.updates(), 2);
    driver.reply(0);
    driver.reply(0);
    assert!(!driver.run(Input::End));
    assert!(driver.ended);
    assert_eq!(driver.written(), "0 Go ahead.  End with dot '.' on its own line.\n");
}

#[test]
fn chunks_are_limited_in_size_and_number() {
    let mut driver = Driver::new(Permissions::ALL);
    let script = "UPDATE a 1:1\n".repeat(100 * CHUNK_UPDATES_MAX);
    assert!(driver.send(script.as_bytes(), Input::More));
    assert_eq!(driver.sent.len(), CHUNKS_IN_FLIGHT_MAX + 1);
    assert_eq!(driver.updates(), (CHUNKS_IN_FLIGHT_MAX + 1) * CHUNK_UPDATES_MAX);
    let left = driver.bytes.len();
    assert!(driver.run(Input::More));
    assert_eq!(driver.bytes.len(), left, "nothing is taken while it waits");
    // A reply out of order makes no room, that of the first chunk does.
    driver.reply(CHUNKS_IN_FLIGHT_MAX);
    assert!(driver.run(Input::More));
    assert_eq!(driver.bytes.len(), left);
    driver.reply(0);
    assert!(driver.run(Input::More));
    assert_eq!(driver.bytes.len(), left - CHUNK_UPDATES_MAX * b"UPDATE a 1:1\n".len());
    assert_eq!(driver.written(), "", "answers wait for a burst to end");
}

#[test]
fn long_updates_and_long_errors_make_short_chunks() {
    let words = " 1:1".repeat(CHUNK_BYTES_MAX / 8);
    let mut driver = Driver::new(Permissions::ALL);
    driver.send(format!("UPDATE a{words}\n").repeat(6).as_bytes(), Input::More);
    assert_eq!(driver.sent.len(), 3);
    // The text of an error is as long as the argument.
    let mut driver = Driver::prompt();
    let bad = "x".repeat(CHUNK_BYTES_MAX);
    driver.send(format!("{bad}\n").repeat(20).as_bytes(), Input::More);
    assert!(!driver.writes.is_empty(), "they are written while more come");
}

#[test]
fn many_answers_are_written_while_more_requests_come() {
    let mut driver = Driver::prompt();
    driver.send("PING\n".repeat(ANSWER_BYTES_HELD / 4).as_bytes(), Input::More);
    assert!(!driver.writes.is_empty());
    assert!(driver.writes.iter().all(|write| write.len() <= ANSWER_BYTES_HELD + 7));
}

#[test]
fn lines_have_a_limit() {
    let max = protocol::rrdcached::limits::LINE_BYTES_MAX;
    let want = format!("-1 Line too long ({max} bytes at most)\n");
    for length in [max + 1, 3 * max] {
        let mut driver = Driver::prompt();
        let line = [&vec![b'x'; length][..], b"\nPING\n"].concat();
        // In parts, so that the end of the line is missing at first.
        for part in line.chunks(100_000) {
            driver.send(part, Input::More);
            assert!(driver.bytes.len() <= max, "{} bytes are held", driver.bytes.len());
        }
        driver.run(Input::Dry);
        assert_eq!(driver.written(), format!("{want}0 PONG\n"));
    }
    let mut driver = Driver::prompt();
    driver.send(&[&vec![b'x'; max][..], b"\n"].concat(), Input::Dry);
    assert!(driver.written().starts_with("-1 Unknown command: xxx"));
}

#[test]
fn quit_ends_the_session_after_due_answers() {
    let mut driver = Driver::new(Permissions::ALL);
    assert!(driver.send(b"UPDATE a 1:1\nQUIT\nUPDATE b 1:1\n", Input::More));
    assert_eq!(driver.updates(), 1);
    driver.reply(0);
    assert!(!driver.run(Input::More));
    assert!(driver.ended);
    assert_eq!(driver.written(), ONE);
    let mut driver = Driver::prompt();
    driver.send(b"BATCH\nUPDATE bad 1:1\nQUIT\n", Input::Dry);
    assert!(driver.ended);
}

#[test]
fn an_incomplete_last_line_is_ignored() {
    let mut driver = Driver::prompt();
    assert!(!driver.send(b"PING\nUPDATE a 1:1\nUPDATE b 1:1", Input::End));
    assert!(driver.ended);
    assert_eq!((driver.written(), &*driver.bytes), (format!("0 PONG\n{ONE}"), &b"UPDATE b 1:1"[..]));
}

#[test]
fn lines_may_be_split_anywhere() {
    let script = b"UPDATE a 1:1\r\nUPDATE bad 1:1\nupdate /base/d/a 1:1\\\n 2:2\nCREATE c DS:x\nFLUSH a\nBATCH\nUPDATE a 1:1\nUPDATE bad 5:5\n.\nfoo\n\nPING\nUPDATE a  1:1\n";
    let mut driver = Driver::prompt();
    driver.send(script, Input::Dry);
    let want = driver.written();
    assert!(want.contains("1 errors\n2 No such file"), "{want}");
    for input in [Input::More, Input::Dry] {
        for at in 0..script.len() {
            let mut driver = Driver::prompt();
            driver.send(&script[..at], input);
            driver.send(&script[at..], Input::Dry);
            assert_eq!(driver.written(), want, "cut at {at}");
        }
        let mut driver = Driver::prompt();
        for byte in script {
            driver.send(&[*byte], input);
        }
        driver.run(Input::Dry);
        assert_eq!(driver.written(), want);
    }
}

#[test]
fn commands_without_permission_are_refused() {
    let mut driver = Driver::new(Permissions::parse("PING,BATCH").unwrap());
    driver.send(b"UPDATE a 1:1\nPING\nCREATE a DS:x\nBATCH\nUPDATE a 1:1\n.\n", Input::Dry);
    assert!(driver.sent.is_empty());
    let denied = "-1 Permission denied.\n";
    let batch = "0 Go ahead.  End with dot '.' on its own line.\n1 errors\n1 Permission denied.\n";
    assert_eq!(driver.written(), format!("{denied}0 PONG\n{denied}{batch}"));
    // A reload affects what comes after it.
    driver.session.allow(Permissions::ALL);
    assert!(driver.send(b"UPDATE a 1:1\n", Input::Dry));
}

/// A session in frames.
fn framed(permissions: Permissions) -> Driver {
    framed_of(1, permissions)
}

fn framed_of(version: u32, permissions: Permissions) -> Driver {
    let mut driver = Driver::new(permissions);
    driver.send(format!("FRAMES {version}\n").as_bytes(), Input::Dry);
    assert_eq!(driver.written(), format!("0 Frames of version {version} from here on\n"));
    driver.frames.clear();
    driver.version = version;
    driver
}

fn updates(number: u32, updates: &[(&str, &str)]) -> Vec<u8> {
    let updates: Vec<_> = updates
        .iter()
        .map(|(name, values)| Update { name: name.as_bytes(), values: values.as_bytes() })
        .collect();
    let mut out = Vec::new();
    push_updates(&mut out, number, updates.into_iter());
    out
}

fn command(number: u32, line: &str) -> Vec<u8> {
    let mut out = Vec::new();
    push_command(&mut out, number, line.as_bytes());
    out
}

/// The answers of all writes, as `number: text`.
fn answers(driver: &mut Driver) -> Vec<String> {
    let bytes = std::mem::take(&mut driver.frames);
    let mut rest = &bytes[..];
    let mut answers = Vec::new();
    let lossy = String::from_utf8_lossy;
    let code = |code| if driver.version == 1 { String::new() } else { format!("{code:?}: ") };
    while let Some((frame, used)) = scan(rest, ANSWER_BYTES_MAX).unwrap() {
        let text = match Answer::decode(frame, driver.version).unwrap() {
            Answer::Updated(refused) => {
                let refused =
                    refused.iter().map(|one| format!("{} {}{}", one.index, code(one.code), lossy(one.text)));
                format!("updated [{}]", refused.collect::<Vec<_>>().join(", "))
            }
            Answer::Text(text) => lossy(text).trim_end().to_string(),
            Answer::Refused(number, text) => format!("refused {}{}", code(number), lossy(text)),
            Answer::Ended(text) => format!("ended {}", lossy(text)),
            Answer::Rows(_) => "rows".to_string(),
        };
        answers.push(format!("{}: {text}", frame.number));
        rest = &rest[used..];
    }
    assert!(rest.is_empty());
    answers
}

#[test]
fn frames_are_answered_in_order() {
    let mut driver = framed(Permissions::ALL);
    let script = [
        updates(1, &[("a", "1:1"), ("bad", "1:1"), ("../x", "1:1"), ("c", "1:1 y"), ("bad2", "1:1")]),
        updates(2, &[("b", "1:1")]),
        command(3, "CREATE c DS:x"),
    ];
    assert!(driver.send(&script.concat(), Input::More));
    assert_eq!(driver.sent.len(), 2, "a command waits for the updates before it");
    driver.reply(1);
    assert!(driver.run(Input::More));
    assert!(answers(&mut driver).is_empty());
    driver.reply(0);
    assert!(driver.run(Input::More));
    driver.reply(0);
    assert!(!driver.run(Input::More));
    let none = "No such file: /base/bad";
    let first = format!(
        "1: updated [1 {none}, 2 /base/../x: Permission denied, 3 Cannot find timestamp in 'y'!, 4 {none}]"
    );
    assert_eq!(answers(&mut driver), [&*first, "2: updated []", "3: 0 RRD created OK"]);
}

#[test]
fn an_update_without_a_valid_argument_sends_earlier_updates_first() {
    let mut driver = framed(Permissions::ALL);
    let frame = updates(7, &[("a", "1:1"), ("a", "-5:1"), ("b", ""), ("a", "2:1")]);
    assert!(driver.send(&frame, Input::More));
    assert_eq!(driver.updates(), 1, "the rest of the frame waits");
    driver.reply(0);
    assert!(driver.run(Input::More));
    assert_eq!(driver.updates(), 1);
    assert!(answers(&mut driver).is_empty(), "a frame has one answer");
    driver.reply(0);
    assert!(!driver.run(Input::More));
    let late = "illegal attempt to update using time -5.000000 when last update time is 9.000000 (minimum one second step)";
    assert_eq!(answers(&mut driver), [format!("7: updated [1 {late}, 2 No values updated.]")]);
}

#[test]
fn frames_wait_while_too_many_are_unanswered() {
    let mut driver = framed(Permissions::ALL);
    let script: Vec<u8> = (0..100).flat_map(|number| updates(number, &[("a", "1:1")])).collect();
    assert!(driver.send(&script, Input::More));
    assert_eq!(driver.sent.len(), CHUNKS_IN_FLIGHT_MAX + 1);
    let left = driver.bytes.len();
    driver.reply(0);
    assert!(driver.run(Input::More));
    assert_eq!(left - driver.bytes.len(), script.len() / 100);
}

#[test]
fn commands_in_frames_are_answered_as_text_or_refused() {
    let mut driver = framed(Permissions::parse("PING,FLUSH,QUIT").unwrap());
    let mut fetch = Vec::new();
    push_fetch(&mut fetch, 5, b"a", &FetchRequest::new(Cf::Max, 1, 2, 1));
    let script = [
        command(1, "PING"),
        command(2, "FLUSH a"),
        command(3, "foo"),
        command(4, "QUIT"),
        fetch.clone(),
        updates(6, &[("a", "1:1")]),
        command(7, "FLUSH"),
    ];
    assert!(!driver.send(&script.concat(), Input::More));
    let want = [
        "1: 0 PONG",
        "2: -1 No such file: a",
        "3: -1 Unknown command: foo",
        "4: -1 Can't use 'QUIT' here.",
        "5: refused Permission denied.",
        "6: refused Permission denied.",
        "7: -1 Usage: FLUSH <filename>",
    ];
    assert_eq!(answers(&mut driver), want);
    driver.session.allow(Permissions::ALL);
    driver.send(&fetch, Input::More);
    assert_eq!(answers(&mut driver), ["5: refused frame 5"]);
}

#[test]
fn refusals_have_codes_from_version_2_on() {
    let mut driver = framed_of(2, Permissions::parse("UPDATE,FLUSH,CREATE,PING").unwrap());
    driver.prompt = true;
    let script = [
        updates(1, &[("a", "1:1"), ("bad", "1:1"), ("../x", "1:1"), ("a", "x"), ("a", "2:2 -5:1")]),
        command(2, "FLUSH a"),
        command(3, "foo"),
        command(4, "INFO a"),
        command(5, "FLUSH"),
        command(6, "PING"),
        command(7, "CREATE c DS:x"),
    ];
    driver.send(&script.concat(), Input::Dry);
    let answers = answers(&mut driver);
    let codes: Vec<_> = answers[0]
        .split(", ")
        .map(|one| one.split(':').nth(usize::from(one.starts_with('1'))).unwrap())
        .collect();
    let want = [" updated [1 NoSuchRrd", "2 Permission", "3 Syntax", "4 IllegalTime"];
    assert_eq!(codes, want, "{}", answers[0]);
    let want = [
        "2: refused NoSuchRrd: No such file: a",
        "3: refused UnknownCommand: Unknown command: foo",
        "4: refused Permission: Permission denied.",
        "5: refused Syntax: Usage: FLUSH <filename>",
        "6: 0 PONG",
        "7: 0 RRD created OK",
    ];
    assert_eq!(answers[1..], want);
}

#[test]
fn an_invalid_frame_ends_the_session_after_due_answers() {
    let mut driver = framed(Permissions::ALL);
    let script = [updates(1, &[("a", "1:1")]), b"\0\0\0\0\x09\0\0\0\x02\0\0\0".to_vec(), command(3, "PING")];
    assert!(driver.send(&script.concat(), Input::More));
    driver.reply(0);
    assert!(!driver.run(Input::More));
    assert!(driver.ended);
    let want = ["1: updated []", "0: ended bad frame: kind 9 is not known in version 2"];
    assert_eq!(answers(&mut driver), want);
}

#[test]
fn frames_may_be_split_anywhere() {
    let script = [
        b"PING\nFRAMES 3\nFRAMES 1\n".to_vec(),
        updates(1, &[("a", "1:1"), ("bad", "2:2 3:3"), ("c", "-5:1"), ("d", "x")]),
        command(2, "CREATE c DS:x"),
        command(3, "PING"),
        updates(4, &[("", ""), ("a\\", "1:1")]),
    ]
    .concat();
    let text =
        "0 PONG\n-1 Only frames of versions 1 to 2 are spoken here.\n0 Frames of version 1 from here on\n";
    let check = |parts: &[&[u8]], input| {
        let mut driver = Driver::prompt();
        for part in parts {
            driver.send(part, input);
        }
        driver.run(Input::Dry);
        assert!(driver.frames.starts_with(text.as_bytes()));
        driver.frames.drain(..text.len());
        answers(&mut driver)
    };
    let want = check(&[&script], Input::More);
    assert_eq!(want.len(), 4, "{want:?}");
    for input in [Input::More, Input::Dry] {
        for at in 0..script.len() {
            assert_eq!(check(&[&script[..at], &script[at..]], input), want, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = script.chunks(1).collect();
        assert_eq!(check(&bytes, input), want);
    }
}
