//! Answers that are longer than what clients may make the daemon hold: they are made piece by piece, and equal those
//! that are made at once.

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::Roundel;
use localtime::DumpTimes;
use protocol::frames::answer::Answer;
use protocol::frames::request::{push_command, push_fetch};
use protocol::frames::{ANSWER_BYTES_MAX, HEADER_BYTES, scan};
use protocol::rrdcached::whole;
use roundel_server::settings::LimitSettings;
use rrd::codec::file::decode;
use rrd::codec::xml::{Header, dump};
use rrd::definition::Cf;
use rrd::fetch::FetchRequest;
use testkit::Client;

const START: i64 = 1_000_000_000;
const ROWS: i64 = 40_000;
/// Less than the rows take, so that they are read in small parts.
const SMALL: u64 = 1 << 20;

/// A daemon of each layout whose clients may hold so much, with an RRD of 160,000 values and a season: more than are
/// read at once.
fn daemons(memory: u64) -> [(Roundel, Client); 2] {
    let limits = || LimitSettings { memory, ..LimitSettings::default() };
    [Roundel::stripes_with(limits()), Roundel::files_with(limits())].map(|roundel| {
        let mut client = Client::open(&roundel.socket());
        let create = format!(
            "CREATE a.rrd -b {START} -s 1 DS:x:GAUGE:20:U:U DS:y:GAUGE:20:U:U RRA:AVERAGE:0.5:1:{ROWS} \
             RRA:MAX:0.5:5:{ROWS} RRA:HWPREDICT:500:0.1:0.1:200"
        );
        assert_eq!(client.say(create), "0 RRD created OK\n");
        // More than the first archive holds, so that its ring has turned.
        for line in 0..45 {
            let first = START + 1 + line * 1000;
            let words = (first..first + 1000)
                .map(|time| format!(" {time}:{}:{}", time % 977, -0.5 * (time % 31) as f64));
            assert!(client.say(format!("UPDATE a.rrd{}", words.collect::<String>())).starts_with("0 "));
        }
        (roundel, client)
    })
}

/// The lines after the status line.
fn body(answer: &str) -> &str {
    answer.split_once('\n').unwrap().1
}

#[test]
fn a_dump_and_an_export_in_pieces_are_the_whole_rrd() {
    let (mut dumps, mut exports) = (Vec::new(), Vec::new());
    // Without memory for clients, rows are read in the smallest parts.
    for memory in [1 << 30, SMALL] {
        for (_roundel, mut client) in daemons(memory) {
            let mut file = Vec::new();
            let export = client.say("EXPORT a.rrd");
            assert!(!export.starts_with('-'), "{export}");
            for line in body(&export).lines() {
                whole::push_bytes(line.as_bytes(), &mut file).unwrap();
            }
            let rrd = decode(&file).unwrap().rrd;
            let (mut want, mut times) = (Vec::new(), DumpTimes::default());
            dump(&rrd, Header::Xsd, &mut |time, out| times.push(time, out), &mut want).unwrap();
            let got = client.say("DUMP a.rrd -h xsd");
            assert!(body(&got).as_bytes() == want, "the dump is not that of the exported file");
            dumps.push(got);
            exports.push(rrd.archives);
        }
    }
    let known = exports[0][0].iter().filter(|value| value.is_finite()).count();
    assert_eq!(known as i64, 2 * ROWS, "rows are missing");
    for index in 1..dumps.len() {
        // The path determines where a season is smoothed, so predictions differ.
        let [one, other] = [0, index].map(|index| body(&dumps[index]).split_once("HWPREDICT").unwrap().0);
        let differs = one.lines().zip(other.lines()).find(|(one, other)| one != other);
        assert_eq!((differs, one.len()), (None, other.len()), "dump {index}");
    }
}

/// A client that speaks frames.
struct Framed(BufReader<UnixStream>);

impl Framed {
    fn connect(roundel: &Roundel) -> Self {
        let mut stream = UnixStream::connect(roundel.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(b"FRAMES 2\n").unwrap();
        let mut stream = BufReader::new(stream);
        stream.read_exact(&mut [0; "0 Frames of version 2 from here on\n".len()]).unwrap();
        Framed(stream)
    }

    fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        self.0.get_mut().write_all(request).unwrap();
        let mut bytes = vec![0; HEADER_BYTES];
        self.0.read_exact(&mut bytes).unwrap();
        let length = u32::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        bytes.resize(HEADER_BYTES + length, 0);
        self.0.read_exact(&mut bytes[HEADER_BYTES..]).unwrap();
        bytes
    }

    fn command(&mut self, line: &str) -> String {
        let mut request = Vec::new();
        push_command(&mut request, 5, line.as_bytes());
        let bytes = self.ask(&request);
        match Answer::decode(scan(&bytes, ANSWER_BYTES_MAX).unwrap().unwrap().0, 2).unwrap() {
            Answer::Text(text) => String::from_utf8_lossy(text).into_owned(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn rows_in_pieces_are_the_same_in_text_in_columns_and_in_frames() {
    // From before the oldest row until after the newest.
    let (from, to) = (START + 2_000, START + 48_000);
    for memory in [1 << 30, SMALL] {
        for (roundel, mut client) in daemons(memory) {
            let text = client.say(format!("FETCH a.rrd AVERAGE {from} {to}"));
            let lines: Vec<Vec<u8>> = body(&text).lines().map(|line| line.as_bytes().to_vec()).collect();
            let rows = protocol::rrdcached::rows::read_text(&lines).unwrap();
            // As in RRDtool, one more than between the two times.
            assert_eq!((rows.start, rows.row_count()), (from, 46_001));
            let known = rows.column(0).iter().filter(|value| value.is_finite()).count();
            assert_eq!(known as i64, ROWS, "memory {memory}");
            let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();

            let mut framed = Framed::connect(&roundel);
            for line in ["DUMP a.rrd", "EXPORT a.rrd", &format!("FETCH a.rrd AVERAGE {from} {to}"), "PING"] {
                assert!(framed.command(line) == client.say(line), "{line}");
            }
            let mut request = Vec::new();
            push_fetch(&mut request, 6, b"a.rrd", &FetchRequest::new(Cf::Average, from, to, 1));
            let bytes = framed.ask(&request);
            let (frame, _) = scan(&bytes, ANSWER_BYTES_MAX).unwrap().unwrap();
            let Answer::Rows(in_frame) = Answer::decode(frame, 2).unwrap() else { panic!("no rows") };
            assert_eq!((in_frame.start, in_frame.end, &in_frame.ds_names), (from, to + 1, &rows.ds_names));
            assert!(bits(&in_frame.values) == bits(&rows.values), "memory {memory}");

            let mut stream = UnixStream::connect(roundel.socket()).unwrap();
            stream.write_all(format!("FETCHBIN a.rrd AVERAGE {from} {to}\nQUIT\n").as_bytes()).unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            for (ds, name) in [(0, "x"), (1, "y")] {
                let head = format!("DSName-{name}: BinaryData 46001 8 LITTLE\n");
                let at =
                    bytes.windows(head.len()).position(|part| part == head.as_bytes()).unwrap() + head.len();
                let column =
                    bytes[at..at + 46_001 * 8].as_chunks().0.iter().map(|bytes| f64::from_ne_bytes(*bytes));
                assert!(
                    bits(&column.collect::<Vec<_>>()) == bits(&rows.column(ds)),
                    "{name}, memory {memory}"
                );
            }
        }
    }
}

#[test]
fn an_answer_whose_rrd_is_replaced_ends_early() {
    for (roundel, mut client) in daemons(SMALL) {
        let mut stream = UnixStream::connect(roundel.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(b"DUMP a.rrd\n").unwrap();
        stream.read_exact(&mut [0; 1000]).unwrap();
        assert_eq!(client.say("CREATE a.rrd -s 1 DS:z:GAUGE:20:U:U RRA:LAST:0:1:10"), "0 RRD created OK\n");
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(!text.contains("</rrd>"), "{} bytes", text.len());
        assert_eq!(client.say("PING"), "0 PONG\n");
    }
}

#[test]
fn long_lists_come_in_pieces_and_take_no_more_memory_than_there_is() {
    for (memory, fits) in [(1 << 30, true), (128 << 10, false)] {
        let limits = || LimitSettings { memory, ..LimitSettings::default() };
        for (roundel, buffers) in
            [(Roundel::stripes_with(limits()), false), (Roundel::files_with(limits()), true)]
        {
            let mut client = Client::open(&roundel.socket());
            let mut want: Vec<String> = Vec::new();
            for number in 0..1200 {
                let name = format!("r{number:04}.rrd");
                let create = format!("CREATE {name} -b {START} -s 1 DS:x:GAUGE:20:U:U RRA:LAST:0:1:5");
                assert_eq!(client.say(create), "0 RRD created OK\n");
                want.push(name);
            }
            let mut updates: Vec<String> = Vec::new();
            for line in 0..3 {
                let first = START + 1 + line * 1000;
                updates.extend((first..first + 1000).map(|time| format!("{time}:{}", time % 977)));
                let words = updates[line as usize * 1000..].join(" ");
                assert!(client.say(format!("UPDATE r0000.rrd {words}")).starts_with("0 "));
            }
            let mut lists = vec![("LIST /", want.clone()), ("LIST RECURSIVE /", want)];
            if buffers {
                lists.push(("PENDING r0000.rrd", updates));
            }
            for (line, want) in lists {
                let got = client.say(line);
                if fits {
                    assert!(body(&got).lines().eq(&want), "{line}");
                    assert!(Framed::connect(&roundel).command(line) == got, "{line}");
                } else {
                    assert!(got.starts_with("-1 ") && got.contains("[limits] memory"), "{line}: {got}");
                }
            }
            let listed = roundel.get("/api/v1/list?limit=5000");
            assert_eq!(listed.contains("r1199.rrd"), fits, "{listed}");
            assert_eq!(listed.contains("[limits] memory"), !fits, "{listed}");
            assert_eq!(client.say("PING"), "0 PONG\n");
            drop(client);
            testkit::wait_until("nothing to be held", || roundel.service().memory.used() == 0);
        }
    }
}

/// RRDs whose files are locked.
const LOCKED: usize = 800;

/// Locks these files until it is dropped, from a process of its own: locks of the same process would not count.
fn lock_all(files: &[PathBuf]) -> Child {
    let script = "use Fcntl; my @open; for (@ARGV) { open(my $f, '+<', $_) or die; push @open, $f; \
        my $lock = pack('s s x4 q q l x4', F_WRLCK, 0, 0, 0, 0); fcntl($f, F_SETLK, $lock) or die; } \
        syswrite(STDOUT, \"locked\\n\"); sysread(STDIN, my $b, 1);";
    let mut perl = Command::new("perl")
        .args(["-e", script])
        .args(files)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    perl.stdout.as_mut().unwrap().read_exact(&mut [0; 7]).unwrap();
    perl
}

#[test]
fn a_long_queue_comes_in_pieces_and_takes_no_more_memory_than_there_is() {
    // All of it fits; the names do, but not the lines; not even the names do.
    for (memory, fits) in [(1 << 30, true), (256 << 10, false), (160 << 10, false)] {
        let roundel = Roundel::files_with(LimitSettings { memory, ..LimitSettings::default() });
        let mut client = Client::open(&roundel.socket());
        let names: Vec<String> = (0..LOCKED).map(|number| format!("r{number:04}.rrd")).collect();
        for name in &names {
            let create = format!("CREATE {name} -b {START} -s 1 DS:x:GAUGE:20:U:U RRA:LAST:0:1:5");
            assert_eq!(client.say(create), "0 RRD created OK\n");
            assert!(client.say(format!("UPDATE {name} {}:1", START + 1)).starts_with("0 "));
        }
        let files: Vec<PathBuf> = names.iter().map(|name| roundel.base().join(name)).collect();
        let mut locks = lock_all(&files);
        roundel.service().engine.flush(None).unwrap();
        let want: Vec<String> = files.iter().map(|file| format!("1 {}", file.display())).collect();
        testkit::wait_until("the answer to QUEUE", || {
            let got = client.say("QUEUE");
            // Those that are being tried at the moment are in no list.
            let (mut lines, is_all) =
                (body(&got).lines().collect::<Vec<_>>(), got.starts_with("800 in queue.\n"));
            lines.sort_unstable();
            match fits {
                true => is_all && lines == want,
                false => got.starts_with("-1 ") && got.contains("[limits] memory"),
            }
        });
        assert_eq!(client.say("PING"), "0 PONG\n");
        drop(client);
        testkit::wait_until("nothing to be held", || roundel.service().memory.used() == 0);
        drop(locks.stdin.take());
        locks.wait().unwrap();
    }
}
