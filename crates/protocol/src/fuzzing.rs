//! A function for each decoder of this crate, for fuzzers: any bytes may be given, and a panic is a finding.

use rrd::time::Timestamp;

use crate::frames::agent::AGENT_BODY_BYTES_MAX;
use crate::frames::agent::block::{BlockReader, BlockSink, BlockValue, RrdDefinition};
use crate::frames::{self, ANSWER_BYTES_MAX, REQUEST_BYTES_MAX};
use crate::rrdcached::address::Address;
use crate::rrdcached::client;
use crate::rrdcached::files::Entry;
use crate::rrdcached::line::{Scan, scan};
use crate::rrdcached::request::{Request, integer, split};
use crate::rrdcached::update::plain_update;
use crate::rrdcached::words::{Words, push_escaped};

/// Requests in text: every line is parsed by the fast and the slow path, which must agree.
pub fn fuzz_requests(bytes: &[u8]) {
    let mut rest = bytes;
    while let Scan::Line { line, used } = scan(rest) {
        assert!(used >= 1 && used <= rest.len());
        fuzz_line(line, &rest[..used]);
        rest = &rest[used..];
    }
}

/// `whole` is the line with its end.
fn fuzz_line(line: &[u8], whole: &[u8]) {
    let words: Vec<_> = Words::new(line).collect();
    let mut escaped = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            escaped.push(b' ');
        }
        push_escaped(&mut escaped, word);
        let _ = integer(word);
    }
    // A word can contain a NUL only if it is escaped, which `push_escaped` leaves to its caller.
    if !words.iter().any(|word| word.contains(&0)) && !escaped.is_empty() {
        assert!(Words::new(&escaped).eq(words.iter().cloned()), "{words:?}");
    }
    let (_, command, arguments) = split(line);
    let request = command.map(|command| Request::parse(command, arguments));
    const BASE: &[u8] = b"/base/";
    if let Some((plain, used)) = plain_update(whole, BASE) {
        assert_eq!(used, whole.len());
        let Some(Ok(Request::Update(name, words))) = request else {
            panic!("only one way takes it: {line:?}")
        };
        assert_eq!(name.strip_prefix(BASE).unwrap_or(&name), plain.name());
        let joined = words.map(|word| word.into_owned()).collect::<Vec<_>>();
        assert_eq!((joined.len() as u32, joined.join(&b' ')), (plain.words, plain.values().to_vec()));
    }
}

/// Answers in text.
pub fn fuzz_answer(bytes: &[u8]) {
    let mut stream = bytes;
    while client::read_answer(&mut stream).is_ok() {}
    for line in bytes.split(|&byte| byte == b'\n') {
        if let Some(entry) = Entry::parse(line) {
            assert_eq!(Entry::parse(entry.to_string().as_bytes()), Some(entry));
        }
        for stat in [false, true] {
            if let Some((entry, name)) = Entry::parse_line(line, stat) {
                let mut again = Vec::new();
                entry.push_line(&mut again, name);
                again.pop();
                assert_eq!(Entry::parse_line(&again, stat), Some((entry, name)));
            }
        }
    }
}

/// Requests in frames: encoding what was decoded gives the same bytes.
pub fn fuzz_frame_requests(bytes: &[u8]) {
    use frames::request::{Fetch, Request, push_command, push_fetch, push_updates};
    let mut rest = bytes;
    while let Ok(Some((frame, used))) = frames::scan(rest, REQUEST_BYTES_MAX) {
        let mut again = Vec::new();
        match Request::decode(frame) {
            Ok(Request::Update(updates)) => {
                assert_eq!(updates.count(), updates.len());
                push_updates(&mut again, frame.number, updates);
            }
            Ok(Request::Fetch(Fetch { name, request: Ok(request) })) => {
                push_fetch(&mut again, frame.number, name, &request);
            }
            Ok(Request::Fetch(_)) => again.extend_from_slice(&rest[..used]),
            Ok(Request::Command(line)) => push_command(&mut again, frame.number, line),
            Err(error) => return drop(error.to_string()),
        }
        assert_eq!(again, rest[..used]);
        rest = &rest[used..];
    }
}

/// Answers in frames: encoding what was decoded gives the same bytes.
pub fn fuzz_frame_answers(bytes: &[u8]) {
    fuzz_answers_of(bytes, 1);
    fuzz_answers_of(bytes, 2);
}

fn fuzz_answers_of(bytes: &[u8], version: u32) {
    use frames::answer::{Answer, push_refused, push_rows, push_text, push_updated};
    let mut rest = bytes;
    while let Ok(Some((frame, used))) = frames::scan(rest, ANSWER_BYTES_MAX) {
        let mut again = Vec::new();
        match Answer::decode(frame, version) {
            Ok(Answer::Updated(refusals)) => {
                // An unknown code is decoded as another one.
                push_updated(&mut again, frame.number, version, refusals.into_iter());
                if again.len() == used && version > 1 {
                    again.copy_from_slice(&rest[..used]);
                }
            }
            Ok(Answer::Refused(code, text)) => {
                push_refused(&mut again, frame.number, version, code, text);
                if again.len() == used && version > 1 {
                    again.copy_from_slice(&rest[..used]);
                }
            }
            Ok(Answer::Rows(rows)) => {
                // Rows without sources have no values, so their number cannot be recovered. A replacement
                // character may come from bytes that are not UTF-8.
                let is_text = !rows.ds_names.iter().any(|name| name.contains(char::REPLACEMENT_CHARACTER));
                if is_text && !rows.ds_names.is_empty() {
                    push_rows(&mut again, frame.number, &rows);
                } else {
                    again.extend_from_slice(&rest[..used]);
                }
            }
            Ok(Answer::Text(text) | Answer::Ended(text)) => {
                push_text(&mut again, frame.kind, frame.number, text);
            }
            Err(error) => return drop(error.to_string()),
        }
        assert_eq!(again, rest[..used]);
        rest = &rest[used..];
    }
}

/// Frames of agents and their answers.
pub fn fuzz_agent_frames(bytes: &[u8]) {
    use frames::agent::session::{FromAgent, FromStore};
    let mut reader = BlockReader::default();
    let mut rest = bytes;
    while let Ok(Some((frame, used))) = frames::scan(rest, AGENT_BODY_BYTES_MAX) {
        rest = &rest[used..];
        if let Err(error) = FromStore::decode(frame) {
            drop(error.to_string());
        }
        match FromAgent::decode(frame) {
            Ok(FromAgent::Block(body)) => match reader.read(body, &mut CountingSink::default()) {
                Ok(()) => {}
                Err(error) => return drop(error.to_string()),
            },
            Ok(FromAgent::Hello(_) | FromAgent::Alive | FromAgent::WorkWanted(_) | FromAgent::Labels(_)) => {}
            Err(error) => drop(error.to_string()),
        }
    }
}

/// Frames of a follower and of its primary: what is decoded is encoded again as it was.
pub fn fuzz_replication_frames(bytes: &[u8]) {
    use frames::replication::{
        FromFollower, FromPrimary, PRIMARY_BODY_BYTES_MAX, push_acknowledged, push_from_primary, push_hello,
    };
    let mut rest = bytes;
    while let Ok(Some((frame, used))) = frames::scan(rest, PRIMARY_BODY_BYTES_MAX) {
        rest = &rest[used..];
        let mut again = Vec::new();
        match FromFollower::decode(frame) {
            Ok(FromFollower::Hello(hello)) => push_hello(&mut again, &hello),
            Ok(FromFollower::Acknowledged(positions)) => push_acknowledged(&mut again, &positions),
            Err(error) => drop(error.to_string()),
        }
        match FromPrimary::decode(frame) {
            // An unknown reason is the same as none.
            Ok(FromPrimary::Ended(..)) => {}
            Ok(decoded) => push_from_primary(&mut again, &decoded),
            Err(error) => drop(error.to_string()),
        }
        if !again.is_empty() {
            assert_eq!(again[frames::HEADER_BYTES..], *frame.body);
        }
    }
}

/// The content of an agent's block, which a fuzzer would hardly reach past its checksum.
pub fn fuzz_agent_block(bytes: &[u8]) {
    let (mut reader, mut sink) = (BlockReader::default(), CountingSink::default());
    for _ in 0..2 {
        let _ = reader.read_content(bytes, &mut sink);
    }
}

/// Checks that what is numbered was there before.
#[derive(Debug, Default)]
struct CountingSink {
    definitions: u32,
    values: Vec<usize>,
}

impl BlockSink for CountingSink {
    fn begin_context(&mut self) {
        *self = CountingSink::default();
    }

    fn definition(&mut self, _definition: RrdDefinition<'_>) {
        self.definitions += 1;
    }

    fn rrd(&mut self, definition: u32, _assignment: u64, _name: &[u8], values: usize) {
        assert!(definition < self.definitions);
        self.values.push(values);
    }

    fn reading(&mut self, rrd: u32, _time: Timestamp, values: &[BlockValue<'_>]) {
        assert_eq!(self.values[rrd as usize], values.len());
    }
}

/// An address as given to `-l`.
pub fn fuzz_address(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Address::parse(text);
    }
}

#[cfg(test)]
mod tests {
    use rrd::definition::Cf;
    use rrd::fetch::{FetchRequest, FetchRows};
    use testkit::shake;

    use super::*;
    use crate::frames::answer::Refusal;
    use crate::frames::code::ErrorCode;

    #[test]
    fn requests_answers_and_addresses() {
        let good = b"UPDATE a/b.rrd 1:2:3 4:5:6\nupdate /base/c.rrd 7:U\r\nFETCH a\\ b.rrd AVERAGE 1 2 x\n\
            CREATE x.rrd -s 10 DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:5\nLIST RECURSIVE /\nFIRST a 0\nDUMP a -h none\n";
        shake(good, 50_000, fuzz_requests);
        shake(b"UPDATE a/b.rrd 1700000000:2.5:U -3:4 5.25:6\n", 50_000, fuzz_requests);
        shake(b"2 lines\na: 1\nb: 2\n0 PONG\n-1 no\n", 20_000, fuzz_answer);
        shake(
            b"f 148648 1700000000.000000 17 640 33 4 a b.rrd\nd c\nf 9 -1.5 - - - -\n",
            20_000,
            fuzz_answer,
        );
        let mut requests = Vec::new();
        let updates = [("a/b.rrd", "1:2:3 4:5:6"), ("c.rrd", "7:U")];
        let updates = updates.map(|(name, values)| frames::request::Update {
            name: name.as_bytes(),
            values: values.as_bytes(),
        });
        frames::request::push_updates(&mut requests, 1, updates.into_iter());
        frames::request::push_command(&mut requests, 2, b"LAST a.rrd");
        frames::request::push_fetch(&mut requests, 3, b"a.rrd", &FetchRequest::new(Cf::Max, 1, 9, 1));
        fuzz_frame_requests(&requests);
        shake(&requests, 50_000, fuzz_frame_requests);
        let mut answers = Vec::new();
        let refusal = Refusal { index: 1, code: ErrorCode::NoSuchRrd, text: b"No such file: c.rrd" };
        frames::answer::push_updated(&mut answers, 1, 2, [refusal].into_iter());
        frames::answer::push_refused(&mut answers, 4, 2, ErrorCode::Syntax, b"no");
        frames::answer::push_text(&mut answers, frames::answer::TEXT, 2, b"0 7\n");
        let ds_names = vec!["a".to_string(), "b".to_string()];
        let values = vec![0.5; 8];
        let rows = FetchRows { start: 1, end: 9, step: 2, units_per_second: 1, ds_names, values };
        frames::answer::push_rows(&mut answers, 3, &rows);
        fuzz_frame_answers(&answers);
        shake(&answers, 50_000, fuzz_frame_answers);
        for good in ["unix:/tmp/x.sock", "[::1]:42217", "localhost:1", "10.0.0.1"] {
            shake(good.as_bytes(), 5_000, fuzz_address);
        }
    }

    #[test]
    fn frames_and_blocks_of_agents() {
        use crate::frames::agent::block::BlockWriter;
        use crate::frames::agent::labels::{GivenLabel, push_labels};
        use crate::frames::agent::session::{self, Applied, Hello, RefusedReading, Welcome};
        use crate::frames::agent::work;
        let mut writer = BlockWriter::default();
        let definition = writer.add_definition(10, 1, &["DS:a:GAUGE:20:U:U".to_string()]).unwrap();
        let rrd = writer.add_rrd(definition, 0, b"a/b.rrd", 6).unwrap();
        for second in [1_700_000_000, 1_700_000_010, -1] {
            let values = [
                BlockValue::Unknown,
                BlockValue::Dropped(3),
                BlockValue::Unsigned(5 << 40),
                BlockValue::Signed(-7),
                BlockValue::Float(0.25),
                BlockValue::Text(b"1e9"),
            ];
            writer.push(rrd, Timestamp::new(second, 250_000), values);
        }
        let content = writer.content().to_vec();
        fuzz_agent_block(&content);
        shake(&content, 100_000, fuzz_agent_block);
        let mut frames = Vec::new();
        session::push_hello(&mut frames, &Hello { epoch: 1, sent: 2, name: b"hall" });
        session::push_alive(&mut frames);
        work::push_work_wanted(&mut frames, &["hall".to_string(), "x".to_string()]);
        let device = |assignment, settings| work::AssignedDevice { assignment, settings };
        work::push_work(&mut frames, [device(3, &b"{}"[..]), device(4, b"{\"device\":\"r\"}")]);
        work::push_profile(&mut frames, &work::GivenProfile { name: "a.toml", text: "table = []" });
        let label = GivenLabel { name: b"a.rrd", label: b"{\"title\":\"A\"}" };
        push_labels(&mut frames, true, &[label, label]);
        writer.finish(1, &mut frames).unwrap();
        session::push_welcome(&mut frames, &Welcome { sequence: 1, credit: 2, time: 3 });
        session::push_applied(&mut frames, &Applied { sequence: 1, credit: 2 });
        let refused = RefusedReading { index: 1, code: ErrorCode::IllegalTime, text: b"a: no" };
        session::push_refused(&mut frames, 1, 2, &[refused, refused]);
        session::push_ended(&mut frames, ErrorCode::Fenced, b"no");
        fuzz_agent_frames(&frames);
        shake(&frames, 50_000, fuzz_agent_frames);
    }

    #[test]
    fn frames_of_followers() {
        use crate::frames::replication::{
            FileKind, FollowerHello, FromPrimary, LogPosition, SessionKind, ShardEnd, push_acknowledged,
            push_from_primary, push_hello,
        };
        let at = |offset| LogPosition { generation: 1, offset };
        let ends = vec![ShardEnd { position: at(9), last: Some((at(5), 7)) }, ShardEnd::default()];
        let mut frames = Vec::new();
        push_hello(
            &mut frames,
            &FollowerHello { kind: SessionKind::Copy, epoch: 2, store: [3; 16], name: b"b".to_vec(), ends },
        );
        push_acknowledged(&mut frames, &[at(1), at(2)]);
        for frame in [
            FromPrimary::Copy(b"store"),
            FromPrimary::Welcome(b"history"),
            FromPrimary::Shard { shard: 0, from: at(1), end: at(2), manifest: b"manifest" },
            FromPrimary::File { kind: FileKind::Log, number: 1, bytes: 2 },
            FromPrimary::Data(b"data"),
            FromPrimary::Copied,
            FromPrimary::Records { shard: 1, from: at(3), bytes: b"records" },
            FromPrimary::Moment(5),
        ] {
            push_from_primary(&mut frames, &frame);
        }
        fuzz_replication_frames(&frames);
        shake(&frames, 50_000, fuzz_replication_frames);
    }
}
