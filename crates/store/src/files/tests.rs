//! The files layout beside Debian's rrdtool, and through kills, locks and damage.

mod journal;
mod tune;

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Instant;

use disk::SimDisk;
use rrd::definition::Cf;
use rrd::fetch::FetchRequest;
use testkit::RrdTool;

use super::*;

/// How long a test waits for what happens in a moment.
const DEADLINE: Duration = Duration::from_secs(60);
/// Start of the RRDs made here.
const START: i64 = 1_700_000_000;

fn name(text: &str) -> RrdName {
    RrdName::new(text.as_bytes()).unwrap()
}

/// An engine whose files are written only when asked.
fn open(base: &Path) -> FilesEngine {
    FilesEngine::open(Options::new(base.join("tree"), base.join("journal"))).unwrap()
}

fn base() -> tempfile::TempDir {
    let base = tempfile::tempdir().unwrap();
    std::fs::create_dir(base.path().join("tree")).unwrap();
    base
}

fn batch(lines: &[(&str, &str)]) -> UpdateBatch {
    let mut batch = UpdateBatch::default();
    for (name, values) in lines {
        batch.push(name.as_bytes(), values.as_bytes());
    }
    batch
}

/// Sends updates and waits for the answer: the failures as (line, words accepted, text).
fn send(engine: &FilesEngine, lines: &[(&str, &str)]) -> Vec<(u32, u32, String)> {
    let (sender, receiver) = channel();
    engine.update(batch(lines), Box::new(move |failures| sender.send(failures).unwrap()));
    let text = |failure: UpdateFailure| (failure.line, failure.accepted, failure.error.to_string());
    receiver.recv().unwrap().into_iter().map(text).collect()
}

/// Makes an RRD with rrdtool and puts a copy into the tree.
fn make(tool: &mut RrdTool, base: &Path, name: &str, words: &str) {
    tool.run(&format!("create {name} -b {START} {words}")).unwrap();
    std::fs::copy(tool.path(name), base.join("tree").join(name)).unwrap();
}

fn assert_same(tool: &RrdTool, base: &Path, name: &str, what: &str) {
    let (ours, theirs) = (std::fs::read(base.join("tree").join(name)), std::fs::read(tool.path(name)));
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    if let Some(at) = ours.iter().zip(&theirs).position(|(a, b)| a != b) {
        panic!("{what}: {name} differs at byte {at} of {}", theirs.len());
    }
    assert_eq!(ours.len(), theirs.len(), "{what}");
}

/// A small generator: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

const W1: &str = "-s 10 DS:v:GAUGE:20:U:U RRA:AVERAGE:0.1:1:120 RRA:MIN:0.1:1:120 RRA:MAX:0.1:1:120 \
    RRA:AVERAGE:0.1:7:50 RRA:MAX:0.1:7:50 RRA:LAST:0.5:50:5";
const W2: &str = "-s 30 DS:a:GAUGE:60:0:1000 DS:b:COUNTER:60:U:U DS:c:DERIVE:90:0:U DS:d:ABSOLUTE:60:U:U \
    RRA:AVERAGE:0.5:1:60 RRA:MIN:0.5:3:40 RRA:MAX:0.9:12:20";

const HW: &str = "-s 10 DS:v:GAUGE:20:U:U DS:c:COMPUTE:v,2,*,UN,0,v,IF RRA:AVERAGE:0.5:1:50 \
    RRA:HWPREDICT:60:0.1:0.0035:12 RRA:MHWPREDICT:40:0.1:0.0035:6";

/// A random update word for a definition of so many sources.
fn random_word(random: &mut Random, time: &mut f64, sources: usize) -> String {
    *time += match random.below(20) {
        0 => 3000.0,
        1 => 0.25,
        2 => 31.5,
        _ => (1 + random.below(25)) as f64,
    };
    let mut word = format!("{time:.2}");
    for _ in 0..sources {
        match random.below(12) {
            0 => word.push_str(":U"),
            n => word.push_str(&format!(":{}", random.below(1 << (3 * n).min(30)))),
        }
    }
    word
}

#[test]
fn files_equal_those_that_rrdtool_writes() {
    let mut tool = RrdTool::start().unwrap();
    for seed in 1..=6 {
        let base = base();
        let mut random = Random(seed);
        let rrds = [("w1.rrd", W1, 1), ("w2.rrd", W2, 4), ("hw.rrd", HW, 1)];
        for (name, words, _) in rrds {
            std::fs::remove_file(tool.path(name)).ok();
            make(&mut tool, base.path(), name, words);
        }
        let engine = open(base.path());
        let mut times = [START as f64; 3];
        for round in 0..150 {
            for ((rrd, _, sources), time) in rrds.iter().zip(&mut times) {
                let word = random_word(&mut random, time, *sources);
                tool.run(&format!("update {rrd} {word}")).unwrap();
                assert_eq!(send(&engine, &[(rrd, &word)]), [], "seed {seed}: {word}");
            }
            if random.below(15) == 0 || round == 149 {
                let only = name(rrds[random.below(3) as usize].0);
                engine.flush((round < 149).then_some(&only)).unwrap();
                for (rrd, ..) in rrds.iter().filter(|(rrd, ..)| round == 149 || only == name(rrd)) {
                    assert_same(&tool, base.path(), rrd, &format!("seed {seed}, round {round}"));
                }
            }
        }
        engine.stop().unwrap();
    }
}

#[test]
fn refusals_are_rrdtools_and_do_not_affect_other_updates() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "w2.rrd", W2);
    let engine = open(base.path());
    let first = format!("{}:1:2:3:4", START + 10);
    assert_eq!(send(&engine, &[("w2.rrd", &first)]), []);
    tool.run(&format!("update w2.rrd {first}")).unwrap();
    let t = |seconds: i64| START + seconds;
    for word in [
        format!("{}:1:2:3:4", t(10)),
        format!("{}:1:2:3:4", t(5)),
        format!("{}:x:2:3:4", t(20)),
        format!("{}:1x:2:3:4", t(20)),
        format!("{}:1:-2:3:4", t(20)),
        format!("{}:1:2:3.5:4", t(20)),
        format!("{}:1:2:3", t(20)),
        format!("{}:1:2:3:4:5", t(20)),
        "abc:1:2:3:4".to_string(),
        "12".to_string(),
    ] {
        let want = tool.run(&format!("update w2.rrd {word}")).unwrap_err();
        let want = want.strip_prefix("w2.rrd: ").unwrap_or(&want).to_string();
        assert_eq!(send(&engine, &[("w2.rrd", &word)]), [(0, 0, want)], "{word}");
    }
    let good_bad_good = format!("{}:1:2:3:4 {}:1:x:3:4 {}:1:2:3:4", t(20), t(30), t(40));
    let failures = send(&engine, &[("none.rrd", "5:1"), ("w2.rrd", &good_bad_good), ("w2.rrd", "1:1:1:1:1")]);
    let seen: Vec<_> = failures.iter().map(|(line, accepted, _)| (*line, *accepted)).collect();
    assert_eq!(seen, [(0, 0), (1, 1), (2, 0)]);
    assert_eq!(engine.stats().rrd_count, 1, "a name that is no RRD is not kept");
}

#[test]
fn answered_updates_survive_a_kill_and_replay_opens_no_file() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "w1.rrd", W1);
    let mut words = (1..=300).map(|i| format!("{}:{i}", START + 7 * i));
    for life in 0..3 {
        let engine = open(base.path());
        assert_eq!(engine.stats().queue_length, 0);
        for (index, word) in words.by_ref().take(100).enumerate() {
            assert_eq!(send(&engine, &[("w1.rrd", &word)]), []);
            tool.run(&format!("update w1.rrd {word}")).unwrap();
            if life == 1 && index == 50 {
                engine.flush(Some(&name("w1.rrd"))).unwrap();
                assert_same(&tool, base.path(), "w1.rrd", "flushed");
            }
        }
        drop(engine);
    }
    // A replay must not need the file: here it cannot even be read.
    let path = base.path().join("tree/w1.rrd");
    std::fs::rename(&path, base.path().join("away")).unwrap();
    let engine = open(base.path());
    assert_eq!(engine.stats().rrd_count, 1);
    std::fs::rename(base.path().join("away"), &path).unwrap();
    engine.flush(None).unwrap();
    assert_same(&tool, base.path(), "w1.rrd", "replayed");
    let stats = engine.stats();
    assert_eq!((stats.queue_length, stats.updates_written), (0, 1));
}

#[test]
fn a_torn_journal_loses_only_unanswered_updates() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "w1.rrd", W1);
    let engine = open(base.path());
    for i in 1..=3 {
        send(&engine, &[("w1.rrd", &format!("{}:1", START + i))]);
    }
    drop(engine);
    let files = Directory::open(&base.path().join("journal")).unwrap().files().unwrap();
    let paths = files.into_iter().map(|(_, name)| base.path().join("journal").join(name));
    let path = paths.max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
    let engine = open(base.path());
    let snapshot = engine.snapshot(&name("w1.rrd")).unwrap();
    let shape = rrd::live::HeadShape::of(&snapshot.definition);
    assert_eq!(shape.split(&snapshot.live.words).last_update.whole, START + 2);
}

#[test]
fn queries_include_buffered_updates_and_write_nothing() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "w1.rrd", W1);
    let before = std::fs::read(base.path().join("tree/w1.rrd")).unwrap();
    let engine = open(base.path());
    let mut random = Random(9);
    let mut time = START as f64;
    for _ in 0..200 {
        let word = random_word(&mut random, &mut time, 1);
        send(&engine, &[("w1.rrd", &word)]);
        tool.run(&format!("update w1.rrd {word}")).unwrap();
    }
    let theirs = rrd::codec::file::decode(&std::fs::read(tool.path("w1.rrd")).unwrap()).unwrap();
    let read = engine.read(&name("w1.rrd")).unwrap();
    let bits = |rows: &[f64]| rows.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    for (ours, theirs) in read.archives.iter().zip(&theirs.rrd.archives) {
        assert_eq!(bits(ours), bits(theirs));
    }
    assert_eq!(read.live.words, theirs.rrd.live.words);
    let snapshot = engine.snapshot(&name("w1.rrd")).unwrap();
    assert_eq!(snapshot.current_rows, theirs.current_rows);
    let end = time as i64;
    for (start, end, step) in [(end - 600, end, 1), (end - 3600, end + 50, 70), (START, end, 1)] {
        let request = FetchRequest::new(Cf::Average, start, end, step);
        let ours = engine.fetch(&name("w1.rrd"), request).unwrap();
        let text = tool.run(&format!("fetch w1.rrd AVERAGE -s {start} -e {end} -r {step}")).unwrap();
        let theirs: Vec<&str> =
            text.lines().filter_map(|line| line.split_once(": ").map(|(_, v)| v)).collect();
        let ours: Vec<String> = ours.values.iter().map(|value| format!("{value:.10e}")).collect();
        assert_eq!(ours.len(), theirs.len(), "{text}");
        for (ours, theirs) in ours.iter().zip(theirs) {
            let (ours, theirs): (f64, f64) =
                (ours.parse().unwrap(), theirs.trim().replace("-nan", "nan").parse().unwrap());
            assert!(
                ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan()),
                "{ours} {theirs}"
            );
        }
    }
    assert_eq!(std::fs::read(base.path().join("tree/w1.rrd")).unwrap(), before, "a question wrote");
}

#[test]
fn a_damaged_file_is_refused_by_name_and_affects_no_other() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "good.rrd", W1);
    make(&mut tool, base.path(), "late.rrd", W1);
    let tree = base.path().join("tree");
    std::fs::write(tree.join("noise.rrd"), [7; 5000]).unwrap();
    let whole = std::fs::read(tool.path("good.rrd")).unwrap();
    std::fs::write(tree.join("short.rrd"), &whole[..whole.len() - 8]).unwrap();
    std::fs::create_dir(tree.join("directory.rrd")).unwrap();
    let engine = open(base.path());
    let word = format!("{}:5", START + 10);
    let names = ["noise.rrd", "good.rrd", "short.rrd", "directory.rrd", "late.rrd"];
    let failures = send(&engine, &names.map(|name| (name, word.as_str())));
    let lines: Vec<u32> = failures.iter().map(|failure| failure.0).collect();
    assert_eq!(lines, [0, 2, 3]);
    assert!(failures[0].2.contains("is not an RRD file"), "{}", failures[0].2);
    assert!(failures[1].2.contains("is too small (should be"), "{}", failures[1].2);
    // Damaged after its updates were taken: they wait, the others are written.
    std::fs::write(tree.join("late.rrd"), [7; 5000]).unwrap();
    engine.flush(None).unwrap();
    tool.run(&format!("update good.rrd {word}")).unwrap();
    assert_same(&tool, base.path(), "good.rrd", "among damaged ones");
    let failures = send(&engine, &[("late.rrd", &format!("{}:6", START + 20))]);
    assert!(failures[0].2.contains("is not an RRD file"), "{}", failures[0].2);
    std::fs::copy(tool.path("late.rrd"), tree.join("late.rrd")).unwrap();
    engine.flush(Some(&name("late.rrd"))).unwrap();
    tool.run(&format!("update late.rrd {word}")).unwrap();
    assert_same(&tool, base.path(), "late.rrd", "repaired");
}

#[test]
fn other_programs_may_write_the_file_between_visits() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "w1.rrd", W1);
    let engine = open(base.path());
    let path = base.path().join("tree/w1.rrd").display().to_string();
    for i in (0..60).step_by(2) {
        let (ours, theirs) = (format!("{}:{i}", START + 5 * i + 5), format!("{}:{i}", START + 5 * i + 10));
        assert_eq!(send(&engine, &[("w1.rrd", &ours)]), []);
        engine.flush(Some(&name("w1.rrd"))).unwrap();
        tool.run(&format!("update {path} {theirs}")).unwrap();
        tool.run(&format!("update w1.rrd {ours} {theirs}")).unwrap();
    }
    assert_same(&tool, base.path(), "w1.rrd", "taken in turns");
}

#[test]
fn a_file_locked_by_another_process_is_written_later() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "w1.rrd", W1);
    let engine = open(base.path());
    let word = format!("{}:5", START + 10);
    assert_eq!(send(&engine, &[("w1.rrd", &word)]), []);
    // Perl's fcntl: a process of its own that holds RRDtool's lock until its input closes.
    let script = "use Fcntl; open(my $f, '+<', $ARGV[0]) or die; \
        my $lock = pack('s s x4 q q l x4', F_WRLCK, 0, 0, 0, 0); fcntl($f, F_SETLK, $lock) or die; \
        syswrite(STDOUT, \"locked\\n\"); sysread(STDIN, my $b, 1);";
    let mut holder = std::process::Command::new("perl")
        .args(["-e", script])
        .arg(base.path().join("tree/w1.rrd"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 7];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut line).unwrap();
    engine.flush(None).unwrap();
    assert_eq!(engine.stats().queue_length, 1, "it waits for the lock");
    drop(holder.stdin.take());
    holder.wait().unwrap();
    engine.flush(Some(&name("w1.rrd"))).unwrap();
    tool.run(&format!("update w1.rrd {word}")).unwrap();
    assert_same(&tool, base.path(), "w1.rrd", "after the lock");
}

#[test]
fn created_files_equal_rrdtools_and_replacing_one_drops_its_buffer() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "w1.rrd", W1);
    let parts = rrd::codec::file::decode(&std::fs::read(tool.path("w1.rrd")).unwrap()).unwrap();
    let engine = open(base.path());
    let create = |text: &str, no_overwrite: bool| {
        let (sender, receiver) = channel();
        let definition = parts.rrd.definition.clone();
        let request = CreateRequest { definition, start: START, no_overwrite };
        engine.create(name(text), request, Box::new(move |result| sender.send(result).unwrap()));
        receiver.recv().unwrap()
    };
    create("new/deep.rrd", true).unwrap();
    assert_eq!(create("new/deep.rrd", true), Err(StoreError::Exists(name("new/deep.rrd"))));
    let path = base.path().join("tree/new/deep.rrd");
    let made = rrd::codec::file::decode(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(made.rrd.live.words, parts.rrd.live.words);
    let ours = tool.run(&format!("dump {}", path.display())).unwrap();
    assert_eq!(ours, tool.run("dump w1.rrd").unwrap());
    send(&engine, &[("new/deep.rrd", &format!("{}:1", START + 5))]);
    create("new/deep.rrd", false).unwrap();
    drop(engine);
    let engine = open(base.path());
    assert_eq!(engine.stats().rrd_count, 0, "nothing waits for the new file");
    engine.import(name("imported.rrd"), parts.rrd.clone(), true).unwrap();
    assert!(matches!(
        engine.import(name("imported.rrd"), parts.rrd.clone(), true),
        Err(StoreError::Exists(_))
    ));
    let imported = engine.read(&name("imported.rrd")).unwrap();
    assert_eq!(imported.live, parts.rrd.live);
    assert_eq!(engine.list(b"", false).unwrap(), [&b"imported.rrd"[..], b"new/", b"w1.rrd"]);
    assert_eq!(engine.list(b"new", true).unwrap(), [b"new/deep.rrd"]);
    engine.delete(&name("new/deep.rrd")).unwrap();
    assert!(!path.exists() && matches!(engine.delete(&name("new/deep.rrd")), Err(StoreError::NoSuchRrd(_))));
    let left = std::fs::read_dir(base.path().join("tree/new")).unwrap().count();
    assert_eq!(left, 0, "no temporary file is left");
}

#[test]
fn tune_writes_the_buffer_first_and_changes_the_header_as_rrdtool_does() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "w2.rrd", W2);
    let engine = open(base.path());
    let mut time = START as f64;
    let mut random = Random(3);
    for words in ["-h a:100", "-i b:5 -a b:U", "-r c:renamed", "-d d:GAUGE", "-h nothing:5", "-h"] {
        for _ in 0..10 {
            let word = random_word(&mut random, &mut time, 4);
            assert_eq!(send(&engine, &[("w2.rrd", &word)]), []);
            tool.run(&format!("update w2.rrd {word}")).unwrap();
        }
        let list: Vec<String> = words.split(' ').map(str::to_string).collect();
        let (ours, theirs) = (engine.tune(&name("w2.rrd"), &list), tool.run(&format!("tune w2.rrd {words}")));
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{words}: {ours:?} {theirs:?}");
        // Not byte for byte: RRDtool leaves the rest of a longer text after the NUL of "UNKN".
        let content = |path: &Path| {
            let parts = rrd::codec::file::decode(&std::fs::read(path).unwrap()).unwrap();
            rrd::codec::file::encode(&parts.rrd, &parts.current_rows).unwrap()
        };
        assert!(content(&base.path().join("tree/w2.rrd")) == content(&tool.path("w2.rrd")), "{words}");
    }
    assert!(matches!(engine.tune(&name("none.rrd"), &["-h".to_string()]), Err(StoreError::NoSuchRrd(_))));
}

#[test]
fn rotation_removes_only_journals_without_buffered_updates() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "a.rrd", W1);
    let engine = open(base.path());
    let files = || Directory::open(&base.path().join("journal")).unwrap().files().unwrap().len();
    let shards = engine.shared.shards.len();
    send(&engine, &[("a.rrd", &format!("{}:1", START + 5))]);
    engine.shared.rotate(2).unwrap();
    upkeep::remove_old(&engine.shared);
    assert_eq!(files(), 2 * shards, "an update of the first generation waits");
    engine.flush(None).unwrap();
    upkeep::remove_old(&engine.shared);
    assert_eq!(files(), shards);
    send(&engine, &[("a.rrd", &format!("{}:1", START + 9))]);
    drop(engine);
    let engine = open(base.path());
    engine.flush(None).unwrap();
    tool.run(&format!("update a.rrd {}:1 {}:1", START + 5, START + 9)).unwrap();
    assert_same(&tool, base.path(), "a.rrd", "over two generations");
}

#[test]
fn a_second_daemon_on_the_journal_is_refused() {
    let base = base();
    let _engine = open(base.path());
    let again = FilesEngine::open(Options::new(base.path().join("tree"), base.path().join("journal")));
    assert!(again.err().unwrap().to_string().contains("another daemon uses it"));
}

#[test]
fn a_link_out_of_the_tree_is_refused() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "w1.rrd", W1);
    std::os::unix::fs::symlink(tool.path("w1.rrd"), base.path().join("tree/out.rrd")).unwrap();
    let engine = open(base.path());
    let failures = send(&engine, &[("out.rrd", &format!("{}:1", START + 5))]);
    assert!(failures[0].2.contains("leads out of the base directory"), "{}", failures[0].2);
}

#[test]
fn a_stop_answers_everything_and_accepts_nothing_more() {
    let mut tool = RrdTool::start().unwrap();
    for flush_at_stop in [false, true] {
        let base = base();
        std::fs::remove_file(tool.path("w1.rrd")).ok();
        make(&mut tool, base.path(), "w1.rrd", W1);
        let mut options = Options::new(base.path().join("tree"), base.path().join("journal"));
        options.flush_at_stop = flush_at_stop;
        let engine = FilesEngine::open(options).unwrap();
        let (sender, receiver) = channel();
        for i in 1..=500 {
            let sender = sender.clone();
            let word = format!("{}:1", START + i);
            engine.update(
                batch(&[("w1.rrd", &word)]),
                Box::new(move |failures| sender.send(failures.len()).unwrap()),
            );
            tool.run(&format!("update w1.rrd {word}")).unwrap();
        }
        engine.stop().unwrap();
        engine.stop().unwrap();
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [0; 500]);
        assert_eq!(send(&engine, &[("w1.rrd", "5:1")])[0].2, StoreError::Stopping.to_string());
        assert_eq!(engine.flush(None), Err(StoreError::Stopping));
        // The journal is free for the next daemon although this engine still lives.
        open(base.path()).flush(None).unwrap();
        assert_same(&tool, base.path(), "w1.rrd", "after a stop");
    }
}

#[test]
fn a_full_disk_refuses_updates_loses_none_and_recovers_by_itself() {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "w1.rrd", W1);
    let journal = SimDisk::new(1);
    // Room for two journals and a few updates.
    journal.set_capacity(1000);
    let open = |disk: &SimDisk| {
        let options = Options::new(base.path().join("tree"), base.path().join("journal"));
        let tree = Tree::open(&options.base).unwrap();
        let directory = Directory::on_disk(disk.handle(), Path::new("journal"));
        FilesEngine::open_on(options, tree, Some(directory)).unwrap()
    };
    let engine = open(&journal);
    let (mut time, mut refused) = (START, 0);
    // Until it has been full and then took updates again.
    let deadline = Instant::now() + DEADLINE;
    loop {
        assert!(Instant::now() < deadline, "refused {refused}: {:?}", engine.stats());
        time += 1;
        let word = format!("{time}:{}", time % 77);
        match send(&engine, &[("w1.rrd", &word)]).pop() {
            None => {
                tool.run(&format!("update w1.rrd {word}")).unwrap();
                if refused > 0 {
                    break;
                }
            }
            Some((0, 0, text)) => {
                assert_eq!(text, "No space left on device");
                refused += 1;
                std::thread::sleep(Duration::from_millis(50));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(engine.stats().read_only, 0);
    drop(engine);
    open(&journal.kill()).flush(None).unwrap();
    assert_same(&tool, base.path(), "w1.rrd", "after a full disk");
}

#[test]
fn rotations_are_counted() {
    let base = base();
    let mut options = Options::new(base.path().join("tree"), base.path().join("journal"));
    options.flush_interval = Duration::from_millis(1);
    let engine = FilesEngine::open(options).unwrap();
    let deadline = Instant::now() + DEADLINE;
    while engine.stats().journal_rotations < 2 {
        assert!(Instant::now() < deadline, "no rotation");
        std::thread::sleep(Duration::from_millis(5));
    }
    let files = Directory::open(&base.path().join("journal")).unwrap().files().unwrap();
    assert!(files.iter().any(|(generation, _)| *generation > 2), "{files:?}");
}
