//! Files used in place: errors of invalid ones, locking, and what a full disk or a kill leaves.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs::FileTimes;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use roundel_rrd_file::{
    Error, Existing, Locking, ReadFile, UpdateOptions, WriteFile, create, create_filled, update, write_bytes,
    write_file,
};
use rrd::codec::file::decode;
use rrd::definition::Cf;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::fetch::FetchRequest;
use rrd::when::Step;
use testkit::RrdTool;

const CREATE: &str = "--start 1000000000 --step 10 DS:a:GAUGE:20:U:U DS:b:COUNTER:20:U:U RRA:AVERAGE:0.5:1:10 \
                      RRA:MAX:0.5:3:7 RRA:LAST:0.5:1:600";
/// The task of a child process of these tests, and its file.
const TASK: &str = "ROUNDEL_DIRECT_TASK";
const FILE: &str = "ROUNDEL_DIRECT_FILE";

fn options(locking: Locking) -> UpdateOptions<'static> {
    UpdateOptions { locking, ..UpdateOptions::default() }
}

fn tool_with_file() -> (RrdTool, PathBuf) {
    let mut tool = RrdTool::start().unwrap();
    tool.run(&format!("create a.rrd {CREATE}")).unwrap();
    let path = tool.path("a.rrd");
    (tool, path)
}

fn word(number: i64) -> String {
    format!("{}:{}.{:02}:{}", 1_000_000_000 + 7 * number, number % 1000, number % 100, number * 31)
}

/// Not a test: the process that holds a lock, updates until it is killed, or meets a full disk.
#[test]
fn child() {
    let (Some(task), Some(path)) = (std::env::var_os(TASK), std::env::var_os(FILE)) else { return };
    let path = PathBuf::from(path);
    let say = |text: &str| {
        let mut output = std::io::stdout();
        output.write_all(format!("said {text}\n").as_bytes()).and_then(|()| output.flush()).unwrap();
    };
    match task.to_str().unwrap() {
        "read" => {
            let _held = ReadFile::open(&path, Locking::Try).unwrap();
            say("ready");
            std::io::stdin().read_line(&mut String::new()).unwrap();
        }
        "write" => {
            let _held = WriteFile::open(&path, Locking::Try).unwrap();
            say("ready");
            std::io::stdin().read_line(&mut String::new()).unwrap();
        }
        "update" => loop {
            let last = ReadFile::open(&path, Locking::Try).unwrap().last_update().whole;
            let number = (last - 1_000_000_000) / 7 + 1;
            update(&path, &[word(number), word(number + 1)], &options(Locking::Try)).unwrap();
            say(&(number + 1).to_string());
        },
        "replace" => {
            let mut rrd = ReadFile::open(&path, Locking::Try).unwrap().content().unwrap().rrd;
            rrd.definition.rra[2].row_count = 90_000;
            rrd.archives[2].resize(180_000, 1.0);
            for write in [create_filled, write_file] {
                say(&write(&path, &rrd, Existing::Replace).unwrap_err().to_string());
            }
            let new = path.with_file_name("new.rrd");
            say(&create(&new, &rrd.definition, 1_000_000_000, Existing::Refuse).unwrap_err().to_string());
        }
        other => panic!("no task {other}"),
    }
}

/// Starts this program again as [`child`], optionally through `shell`.
fn start(task: &str, path: &Path, shell: &str) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child = Command::new("sh")
        .args(["-c", &format!("{shell}exec \"$0\" --exact child --nocapture")])
        .arg(std::env::current_exe().unwrap())
        .env(TASK, task)
        .env(FILE, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    // The harness may have started the line.
    (child, lines.filter_map(|line| line.split_once("said ").map(|(_, text)| text.to_string())))
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn bad_files_are_refused_in_the_words_of_rrdtool() {
    let (mut tool, good) = tool_with_file();
    let bytes = std::fs::read(good).unwrap();
    let changed = |at: usize, to: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    };
    let mut bad: Vec<Vec<u8>> = [0, 1, 100, 127, 128, 300, 500, 700, 900, 1000, bytes.len() - 1]
        .iter()
        .map(|&length| bytes[..length].to_vec())
        .collect();
    bad.push(b"x".repeat(2000));
    bad.push(changed(16, &[0]));
    bad.push(changed(4, b"0006"));
    bad.push(changed(4, b"9999"));
    bad.push(changed(24, &[255; 4]));
    bad.push(changed(32, &[255; 4]));
    for bytes in bad {
        std::fs::write(tool.path("bad.rrd"), bytes).unwrap();
        check_refusal(&mut tool, "bad.rrd");
    }
    std::fs::create_dir(tool.path("d.rrd")).unwrap();
    for name in ["d.rrd", "nothing.rrd", "a.rrd/b.rrd", "/dev/null", &"n".repeat(300)] {
        check_refusal(&mut tool, name);
    }
}

/// Reading and updating must give the same error.
fn check_refusal(tool: &mut RrdTool, name: &str) {
    let path = tool.path(name);
    let ours = |error: Error| error.to_string().replace(path.to_str().unwrap(), name);
    let theirs = tool.run(&format!("info {name}")).unwrap_err();
    assert_eq!(ours(ReadFile::open(&path, Locking::Try).unwrap_err()), theirs);
    let theirs = tool.run(&format!("update {name} 1000000001:1:1")).unwrap_err();
    assert_eq!(ours(update(&path, &["1000000001:1:1"], &options(Locking::Try)).unwrap_err()), theirs);
}

#[test]
fn templates_and_arguments_are_refused_in_the_words_of_rrdtool() {
    let (mut tool, path) = tool_with_file();
    let before = std::fs::read(&path).unwrap();
    let mut check = |template: &str, word: &str| {
        let theirs = tool.run(&format!("update a.rrd -t {template} {word}")).map(|_| ());
        let template = Some(template.as_bytes());
        let ours = update(&path, &[word], &UpdateOptions { template, ..UpdateOptions::default() });
        let ours =
            ours.map(|_| ()).map_err(|error| error.to_string().replace(path.to_str().unwrap(), "a.rrd"));
        (theirs, ours)
    };
    for (template, word) in
        [("a:x", "1000000001:1:1"), ("a:b:a", "1000000001:1:1:1"), ("b", "1000000001:1:1")]
    {
        let (theirs, ours) = check(template, word);
        assert!(theirs.is_err());
        assert_eq!(ours, theirs);
    }
    assert!(std::fs::read(&path).unwrap() == before, "what is refused changes nothing");
}

#[test]
fn locks_are_those_of_rrdtool() {
    let (mut tool, path) = tool_with_file();
    let locked = "could not lock RRD";
    let (child, mut said) = start("read", &path, "");
    assert_eq!(said.next().as_deref(), Some("ready"));
    assert_eq!(tool.run("update a.rrd 1000000001:1:1"), Err(locked.to_string()));
    tool.run("info a.rrd").unwrap();
    let ours = |locking| update(&path, &[word(1)], &options(locking)).map(|report| report.applied);
    assert_eq!(ours(Locking::Try).unwrap_err().to_string(), locked);
    end(child);
    let (child, mut said) = start("write", &path, "");
    assert_eq!(said.next().as_deref(), Some("ready"));
    assert_eq!(tool.run("info a.rrd"), Err(locked.to_string()));
    assert_eq!(ReadFile::open(&path, Locking::Try).unwrap_err().to_string(), locked);
    assert_eq!(ours(Locking::None).unwrap(), 1);
    let waiter = updating(&path, word(2));
    assert!(!waiter.is_finished());
    end(child);
    assert_eq!(waiter.join().unwrap().unwrap(), 1);
}

/// A thread that updates a file in use: it is blocked when this returns.
fn updating(path: &Path, argument: String) -> std::thread::JoinHandle<Result<u64, Error>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let path = path.to_path_buf();
    let waiter = std::thread::spawn(move || {
        sender.send(rustix::thread::gettid().as_raw_nonzero()).unwrap();
        update(&path, &[argument], &options(Locking::Block)).map(|report| report.applied)
    });
    let stat = format!("/proc/self/task/{}/stat", receiver.recv().unwrap());
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(&stat).unwrap().contains(") S ") {
        assert!(std::time::Instant::now() < deadline, "it does not wait");
        std::thread::yield_now();
    }
    waiter
}

#[test]
fn a_lock_lasts_until_the_last_use_in_this_process() {
    let (mut tool, path) = tool_with_file();
    let first = ReadFile::open(&path, Locking::Try).unwrap();
    drop(ReadFile::open(&path, Locking::Try).unwrap());
    assert!(tool.run("update a.rrd 1000000001:1:1").is_err(), "closing one descriptor ended the lock");
    drop(first);
    tool.run("update a.rrd 1000000001:1:1").unwrap();
}

#[test]
fn threads_of_one_process_wait_for_each_other() {
    let (mut tool, path) = tool_with_file();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for number in 0..200 {
                    let word = format!("{}:1:1", 1_000_000_001 + number);
                    let skip_past = UpdateOptions { skip_past: true, ..options(Locking::Try) };
                    update(path, &[word], &skip_past).unwrap_or_else(|error| panic!("{thread}: {error}"));
                    ReadFile::open(path, Locking::Try).unwrap().content().unwrap();
                }
            });
        }
    });
    assert_eq!(tool.run("last a.rrd").unwrap().trim(), "1000000200");
}

#[test]
fn an_update_that_waited_goes_to_the_file_that_took_the_place() {
    let (mut tool, path) = tool_with_file();
    let held = WriteFile::open(&path, Locking::Try).unwrap();
    let waiter = updating(&path, "1000000005:7".to_string());
    held.tune(&["DEL:b"]).unwrap();
    assert_eq!(waiter.join().unwrap().unwrap(), 1);
    assert_eq!(tool.run("lastupdate a.rrd").unwrap(), " a\n\n1000000005: 7\n");
}

#[test]
fn damaged_files_never_stop_us() {
    let mut tool = RrdTool::start().unwrap();
    tool.run("create f.rrd --start 1000000000 --step 10 DS:a:GAUGE:20:U:U DS:c:COMPUTE:a,2,* RRA:MAX:0.5:3:7 RRA:HWPREDICT:20:0.1:0.1:5")
        .unwrap();
    let good = std::fs::read(tool.path("f.rrd")).unwrap();
    let path = tool.path("shaken.rrd");
    testkit::shake(&good, 1500, |bytes| {
        // If the file were truncated and rewritten, the file system would write it out each time.
        std::fs::remove_file(&path).ok();
        std::fs::write(&path, bytes).unwrap();
        if let Ok(file) = ReadFile::open(&path, Locking::Try) {
            file.live().ok();
            file.content().ok();
            let last = file.last_update().whole;
            for cf in [Cf::Max, Cf::HwPredict, Cf::Seasonal] {
                if let Ok(plan) = rrd::plan::plan(
                    file.definition(),
                    last,
                    &FetchRequest::new(cf, 1_000_000_000, 1_000_000_090, 1),
                ) {
                    file.fetch(&plan).ok();
                }
            }
        }
        let collect = UpdateOptions { collect_rows: true, ..options(Locking::Try) };
        if let Ok(report) = update(&path, &["1000000013:7", "1000000055:8"], &collect) {
            report.items();
        }
    });
}

#[test]
fn a_full_disk_leaves_the_good_file_and_nothing_else() {
    let (mut tool, path) = tool_with_file();
    let before = std::fs::read(&path).unwrap();
    // A limit of 256 blocks of 512 bytes per file; with the signal ignored, a longer write fails.
    let (child, said) = start("replace", &path, "trap '' XFSZ; ulimit -f 256; ");
    let said: Vec<String> =
        said.map(|line| line.replace(path.parent().unwrap().to_str().unwrap(), "")).collect();
    end(child);
    let too_large = |name: &str| format!("a file error occurred while creating '/{name}': File too large");
    assert_eq!(said, [too_large("a.rrd"), too_large("a.rrd"), too_large("new.rrd")]);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let left: Vec<_> =
        std::fs::read_dir(tool.directory()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a.rrd"]);
    tool.run("update a.rrd 1000000001:1:1").unwrap();
}

#[test]
fn a_kill_in_the_middle_of_updates_leaves_a_file_that_goes_on() {
    let (mut tool, path) = tool_with_file();
    let reached = |path: &Path| {
        let last = ReadFile::open(path, Locking::Try).unwrap().last_update().whole;
        (last - 1_000_000_000) / 7
    };
    for round in 0..25 {
        let (mut child, mut said) = start("update", &path, "");
        said.next().unwrap();
        std::thread::sleep(Duration::from_micros(700 * (round % 7) + 13 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let answered: i64 = said.last().map_or(0, |number| number.parse().unwrap());
        assert!(reached(&path) >= answered, "round {round}: an update that was answered is lost");
        tool.run("info a.rrd").unwrap();
    }
    // Debian's file, fed with the same from the start.
    let count = reached(&path);
    let mut theirs = RrdTool::start().unwrap();
    theirs.run(&format!("create a.rrd {CREATE}")).unwrap();
    for number in 1..=count {
        theirs.run(&format!("update a.rrd {}", word(number))).unwrap();
    }
    let content = |path: &Path| decode(&std::fs::read(path).unwrap()).unwrap().rrd;
    let (ours, theirs) = (content(&path), content(&theirs.path("a.rrd")));
    assert_eq!(format!("{:?}", ours.live), format!("{:?}", theirs.live));
    // A row that the live part does not include yet may have replaced the oldest row.
    for (ours, theirs) in ours.archives.iter().zip(&theirs.archives) {
        let newer = |rows: &[f64]| rows[4..].iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(newer(ours), newer(theirs));
    }
}

#[test]
fn new_files_are_rrdtools_in_content_and_mode() {
    let (mut tool, path) = tool_with_file();
    let theirs = decode(&std::fs::read(&path).unwrap()).unwrap().rrd;
    let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
    let same = |path: &Path| {
        assert_eq!(
            format!("{:?}", decode(&std::fs::read(path).unwrap()).unwrap().rrd),
            format!("{theirs:?}")
        );
    };
    let ours = tool.path("ours.rrd");
    create(&ours, &theirs.definition, 1_000_000_000, Existing::Refuse).unwrap();
    same(&ours);
    assert_eq!(mode(&ours), 0o644);
    let refused = create(&ours, &theirs.definition, 1_000_000_000, Existing::Refuse).unwrap_err();
    let debian = tool.run(&format!("create ours.rrd --no-overwrite {CREATE}")).unwrap_err();
    assert_eq!(refused.to_string().replace(ours.to_str().unwrap(), "ours.rrd"), debian);

    std::fs::set_permissions(&ours, PermissionsExt::from_mode(0o600)).unwrap();
    let link = tool.path("link.rrd");
    std::os::unix::fs::symlink("ours.rrd", &link).unwrap();
    write_file(&link, &theirs, Existing::Replace).unwrap();
    assert!(link.is_symlink() && mode(&ours) == 0o600, "restore writes through a link");
    same(&ours);
    create_filled(&link, &theirs, Existing::Replace).unwrap();
    assert!(!link.is_symlink() && mode(&link) == 0o600, "create replaces a link");
    same(&link);
    let missing = tool.path("no/such.rrd");
    let said = create(&missing, &theirs.definition, 0, Existing::Replace).unwrap_err().to_string();
    assert_eq!(said, tool.run(&format!("create no/such.rrd {CREATE}")).unwrap_err());
}

#[test]
fn settings_are_tuned_in_place_and_layouts_by_a_new_file() {
    let (mut tool, path) = tool_with_file();
    let ours = tool.path("ours.rrd");
    std::fs::copy(&path, &ours).unwrap();
    let words = ["--heartbeat", "a:33", "--maximum", "b:7", "--data-source-rename", "a:z"];
    tool.run(&format!("tune a.rrd {}", words.join(" "))).unwrap();
    WriteFile::open(&ours, Locking::Try).unwrap().tune(&words).unwrap();
    assert_eq!(std::fs::read(&ours).unwrap(), std::fs::read(&path).unwrap());
    tool.run("tune a.rrd DEL:z").unwrap();
    WriteFile::open(&ours, Locking::Try).unwrap().tune(&["DEL:z"]).unwrap();
    let content = |path: &Path| format!("{:?}", decode(&std::fs::read(path).unwrap()).unwrap().rrd);
    assert_eq!(content(&ours), content(&path));
    let refused = WriteFile::open(&ours, Locking::Try).unwrap().tune(&["--heartbeat", "q:1"]).unwrap_err();
    assert_eq!(refused.to_string(), tool.run("tune a.rrd --heartbeat q:1").unwrap_err());
}

#[test]
fn a_placeholder_says_whom_to_ask() {
    use roundel_rrd_file::placeholder::{Placeholder, Placeholders, StoreIdentity};
    let directory = tempfile::tempdir().unwrap();
    let tree = roundel_rrd_file::tree::Tree::open(directory.path()).unwrap();
    let want = Placeholder {
        store: StoreIdentity(*b"0123456789abcdef"),
        name: roundel_rrd_file::name::RrdName::new(b"x.rrd").unwrap(),
        rrd: None,
    };
    Placeholders::new(tree.into(), want.store).write(&want.name, want.rrd, 148_648).unwrap();
    let path = directory.path().join("x.rrd");
    match update(&path, &["1:1"], &options(Locking::Try)) {
        Err(Error::Placeholder { placeholder, .. }) => assert_eq!(placeholder, want),
        other => panic!("{other:?}"),
    }
    let said = ReadFile::open(&path, Locking::Try).unwrap_err().to_string();
    assert!(said.ends_with("x.rrd' is not an RRD file"), "{said}");
}

#[test]
fn a_picture_takes_the_place_of_the_one_before_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(directory.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let (picture, link) = (place("g.png"), place("link.png"));
    write_bytes(&picture, b"first", Existing::Swap).unwrap();
    std::fs::set_permissions(&picture, PermissionsExt::from_mode(0o604)).unwrap();
    write_bytes(&picture, b"second", Existing::Swap).unwrap();
    std::os::unix::fs::symlink("g.png", &link).unwrap();
    write_bytes(&link, b"third", Existing::Swap).unwrap();
    assert_eq!(std::fs::read(&picture).unwrap(), b"third");
    assert_eq!(std::fs::metadata(&picture).unwrap().permissions().mode() & 0o7777, 0o604);
    std::fs::create_dir(place("sub")).unwrap();
    assert!(write_bytes(&place("sub"), b"fourth", Existing::Swap).is_err());
    assert!(write_bytes(&place("none/g.png"), b"fifth", Existing::Swap).is_err());
    assert_eq!(names(), ["g.png", "link.png", "sub"]);
}

#[test]
fn an_update_notes_no_time_of_reading() {
    let (_tool, path) = tool_with_file();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let times = || {
        let found = std::fs::metadata(&path).unwrap();
        (found.accessed().unwrap(), found.modified().unwrap())
    };
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_times(FileTimes::new().set_accessed(long_ago).set_modified(long_ago)).unwrap();
    drop(file);
    let options = UpdateOptions::default();
    update(&path, &["2000000000:1:1".to_string()], &options).unwrap();
    assert_eq!(times().0, long_ago);
    assert!(times().1 > long_ago);
}

/// On any disk, however much room it has.
#[test]
fn a_file_larger_than_the_limit_is_refused_at_once() {
    let (tool, path) = tool_with_file();
    let mut definition = decode(&std::fs::read(&path).unwrap()).unwrap().rrd.definition;
    definition.rra[0].row_count = 1 << 37;
    let huge = tool.path("huge.rrd");
    let refused = create(&huge, &definition, 1_000_000_000, Existing::Replace).unwrap_err();
    assert!(matches!(refused, Error::Huge { bytes, .. } if bytes > 1 << 40), "{refused}");
    assert!(refused.to_string().ends_with("bytes, 68719476736 are the limit"), "{refused}");
    assert!(!huge.exists());
}

/// Each update would hold it in memory: `RRA:HWPREDICT:1000000000:...:900000000` took 14 GB.
#[test]
fn a_season_larger_than_the_limit_is_refused_at_once() {
    let (tool, path) = tool_with_file();
    let step = Step { units: 10, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::FILE, file_name: b"x" };
    let define = |season: u64| {
        let hw = format!("RRA:HWPREDICT:{}:0.1:0.1:{season}", season + 100);
        parse_create(&options, &["DS:a:GAUGE:60:U:U", &hw]).unwrap()
    };
    let before = std::fs::read(&path).unwrap();
    for season in [8_388_609, 900_000_000] {
        let refused = create(&path, &define(season), 1_000_000_000, Existing::Replace).unwrap_err();
        assert!(matches!(refused, Error::HugeSeason { bytes, .. } if bytes == 8 * season), "{refused}");
        assert!(refused.to_string().contains("67108864 are the limit"), "{refused}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let fits = tool.path("fits.rrd");
    create(&fits, &define(1_000_000), 1_000_000_000, Existing::Replace).unwrap();
    update(&fits, &["1000000010:1".to_string()], &UpdateOptions::default()).unwrap();
}
