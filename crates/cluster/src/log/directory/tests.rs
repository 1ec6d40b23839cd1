use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;

use testkit::Running;

use super::*;

/// What a process of its own appends to, and its name; see [`a_process_of_its_own`].
const CHILD: &str = "ROUNDEL_DIRECTORY_LOG_CHILD";
/// Long enough for any machine; an append ends the wait.
const PATIENCE: Duration = Duration::from_secs(60);

fn message(writer: &str, number: u32) -> Vec<u8> {
    // Lengths from a few bytes to more than a page.
    let mut bytes = format!("{writer} {number} ").into_bytes();
    bytes.resize(bytes.len() + (number as usize * 37) % 5000, b'.');
    bytes
}

fn next(reader: &mut dyn LogReader) -> Stored {
    reader.next(PATIENCE).unwrap().expect("a message")
}

/// Not a test by itself: what other tests start as another process appends here, until it has all or is killed.
#[test]
fn a_process_of_its_own() {
    let Ok(about) = std::env::var(CHILD) else { return };
    let [directory, name, count] = about.split('\n').collect::<Vec<_>>().try_into().unwrap();
    let log = DirectoryLog::open(Path::new(directory)).unwrap();
    for number in 0..count.parse().unwrap() {
        log.append(0, &message(name, number)).unwrap();
    }
}

/// Starts [`a_process_of_its_own`].
fn start_process(directory: &Path, name: &str, count: u32) -> Running {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "log::directory::tests::a_process_of_its_own"]);
    Running::quiet(command.env(CHILD, format!("{}\n{name}\n{count}", directory.display())))
}

/// Reads messages of several writers, and checks that each one's are there in order, without gaps.
fn check_order(reader: &mut dyn LogReader, count: u64) -> HashMap<String, u32> {
    let mut numbers: HashMap<String, u32> = HashMap::new();
    for offset in 0..count {
        let stored = next(reader);
        assert_eq!(stored.offset, offset);
        let text = String::from_utf8(stored.bytes.clone()).unwrap();
        let writer = text.split(' ').next().unwrap();
        let number = numbers.entry(writer.to_owned()).or_default();
        assert_eq!(stored.bytes, message(writer, *number), "offset {offset}");
        *number += 1;
    }
    assert_eq!(reader.next(Duration::ZERO).unwrap(), None);
    numbers
}

#[test]
fn threads_and_processes_append_and_readers_get_all_once_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let log = DirectoryLog::create(directory.path(), 2).unwrap();
    let second = DirectoryLog::create(directory.path(), 2).unwrap();
    let mut early = second.reader(0, 0).unwrap();
    const EACH: u32 = 60;
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| check_order(early.as_mut(), u64::from(EACH) * 6));
        let mut processes = ["p1", "p2"].map(|name| start_process(directory.path(), name, EACH));
        for (name, log) in [("t1", &log), ("t2", &log), ("t3", &second), ("t4", &second)] {
            scope.spawn(move || (0..EACH).for_each(|number| log.append(0, &message(name, number)).unwrap()));
        }
        let numbers = reading.join().unwrap();
        assert_eq!(numbers.len(), 6);
        assert!(numbers.values().all(|number| *number == EACH), "{numbers:?}");
        assert!(processes.iter_mut().all(|process| process.wait().success()));
    });
    assert_eq!(log.bounds(0), Ok(0..u64::from(EACH) * 6));
    assert_eq!(log.bounds(1), Ok(0..0));
    assert_eq!(log.identity(), second.identity());
}

#[test]
fn a_reader_begins_anywhere_and_waits_for_what_comes() {
    let directory = tempfile::tempdir().unwrap();
    let log = DirectoryLog::create(directory.path(), 1).unwrap();
    // Before there is a file, and more than one place of the index.
    let mut waiting = log.reader(0, 0).unwrap();
    assert_eq!(waiting.next(Duration::from_millis(1)), Ok(None));
    let count = partition_messages(&log);
    for from in [0, 1, count / 2, count - 1, 0, count - 2] {
        let mut reader = DirectoryLog::open(directory.path()).unwrap().reader(0, from).unwrap();
        let again = log.reader(0, from).unwrap().next(PATIENCE).unwrap().unwrap();
        let stored = next(reader.as_mut());
        assert_eq!((stored.offset, &stored.bytes), (from, &from.to_le_bytes().to_vec()));
        assert_eq!(stored, again);
    }
    let mut last = log.reader(0, count).unwrap();
    assert_eq!(last.next(Duration::ZERO), Ok(None));
    let other = DirectoryLog::open(directory.path()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| other.append(0, b"later").unwrap());
        assert_eq!(next(last.as_mut()), Stored { offset: count, bytes: b"later".to_vec() });
    });
    (0..=count).for_each(|offset| assert_eq!(next(waiting.as_mut()).offset, offset));
    let beyond = log.reader(0, count + 2).unwrap().next(Duration::ZERO);
    assert!(matches!(&beyond, Err(LogError::Refused(why)) if why.contains("before message")), "{beyond:?}");
}

/// Appends the numbers of messages, more than the index steps over; the file is written whole, because an fsync each would take long.
fn partition_messages(log: &DirectoryLog) -> u64 {
    log.append(0, &0u64.to_le_bytes()).unwrap();
    log.partitions[0].append_unmarked((1..2500u64).map(|number| number.to_le_bytes().to_vec()));
    log.append(0, &2500u64.to_le_bytes()).unwrap();
    2501
}

#[test]
fn a_killed_writer_leaves_a_log_that_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let log = DirectoryLog::create(directory.path(), 1).unwrap();
    for kill in 0..4u32 {
        let before = log.bounds(0).unwrap().end;
        let process = start_process(directory.path(), &format!("p{kill}"), 1_000_000);
        let mut reader = log.reader(0, before).unwrap();
        (0..20 + kill * 7).for_each(|_| drop(next(reader.as_mut())));
        drop(process);
        log.append(0, &message(&format!("q{kill}"), 0)).unwrap();
    }
    let count = log.bounds(0).unwrap().end;
    let numbers = check_order(log.reader(0, 0).unwrap().as_mut(), count);
    assert_eq!(numbers.len(), 8, "{numbers:?}");
}

#[test]
fn what_a_killed_writer_left_is_kept_if_whole_and_cut_if_not() {
    let directory = tempfile::tempdir().unwrap();
    let log = DirectoryLog::create(directory.path(), 1).unwrap();
    log.append(0, b"first").unwrap();
    let path = partition_path(directory.path(), 0);
    let before = fs::read(&path).unwrap();
    log.partitions[0].append_unmarked([b"second".to_vec(), b"third".to_vec()].into_iter());
    let whole = fs::read(&path).unwrap();
    for cut in before.len()..=whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        // Nothing after the mark is shown before a writer has looked.
        let log = DirectoryLog::open(directory.path()).unwrap();
        assert_eq!(log.bounds(0), Ok(0..1));
        log.append(0, b"fourth").unwrap();
        let mut reader = log.reader(0, 0).unwrap();
        let count = log.bounds(0).unwrap().end;
        let read: Vec<Vec<u8>> = (0..count).map(|_| next(reader.as_mut()).bytes).collect();
        let left = match cut {
            cut if cut == whole.len() => vec![&b"second"[..], b"third"],
            cut if cut >= before.len() + 16 + 6 => vec![&b"second"[..]],
            _ => vec![],
        };
        let want: Vec<&[u8]> = [&b"first"[..]].into_iter().chain(left).chain([&b"fourth"[..]]).collect();
        assert_eq!(read, want, "cut at {cut} of {}", whole.len());
    }
}

/// A machine that crashes may have written the later of two frames only.
#[test]
fn a_whole_frame_after_one_that_is_not_is_cut_too() {
    let directory = tempfile::tempdir().unwrap();
    let log = DirectoryLog::create(directory.path(), 1).unwrap();
    log.append(0, b"first").unwrap();
    let path = partition_path(directory.path(), 0);
    let torn = fs::metadata(&path).unwrap().len() + 16;
    log.partitions[0].append_unmarked([b"second".to_vec(), b"third".to_vec()].into_iter());
    fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(b"S", torn).unwrap();
    // As long as the torn one, so that the frame after it would follow this one.
    log.append(0, b"fourth").unwrap();
    log.append(0, b"fifth").unwrap();
    assert_eq!(log.bounds(0), Ok(0..3));
    let mut reader = log.reader(0, 0).unwrap();
    let read = [(); 3].map(|()| next(reader.as_mut()).bytes);
    assert_eq!(read, [&b"first"[..], b"fourth", b"fifth"]);
}

#[test]
fn damage_is_found_and_has_an_address() {
    let directory = tempfile::tempdir().unwrap();
    let log = DirectoryLog::create(directory.path(), 2).unwrap();
    log.append(0, b"first").unwrap();
    log.append(0, b"second").unwrap();
    let path = partition_path(directory.path(), 0);
    let whole = fs::read(&path).unwrap();
    let read = || {
        let log = DirectoryLog::open(directory.path()).unwrap();
        let mut reader = log.reader(0, 0).unwrap();
        let first = reader.next(Duration::ZERO)?;
        Ok((first, reader.next(Duration::ZERO)?))
    };
    assert!(read().is_ok());
    // Each byte, but for those of the mark that nothing uses.
    for at in (0..60).chain(64..whole.len()) {
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[whole[at] ^ 4], at as u64).unwrap();
        let found: Result<_, LogError> = read();
        let refused = matches!(&found, Err(LogError::Refused(why)) if why.contains("is damaged at byte"));
        assert!(refused, "byte {at}: {found:?}");
        file.write_all_at(&whole[at..=at], at as u64).unwrap();
    }
    // Another partition's file, and one that lost its end.
    fs::copy(&path, partition_path(directory.path(), 1)).unwrap();
    let other = log.append(1, b"x").unwrap_err().to_string();
    assert!(other.contains("not the head of this partition"), "{other}");
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let short = log.append(0, b"x").unwrap_err().to_string();
    assert!(short.contains("had been synced up to"), "{short}");
}

#[test]
fn what_cannot_be_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let missing = DirectoryLog::open(directory.path()).unwrap_err().to_string();
    assert!(missing.contains("about"), "{missing}");
    let log = DirectoryLog::create(directory.path(), 3).unwrap();
    let other = DirectoryLog::create(directory.path(), 4).unwrap_err().to_string();
    assert!(other.contains("has 3 partitions, not 4"), "{other}");
    assert!(log.append(3, b"x").unwrap_err().to_string().contains("no partition 3 of 3"));
    let long = log.append(0, &vec![0; MESSAGE_BYTES_MAX + 1]).unwrap_err().to_string();
    assert!(long.contains("are the most"), "{long}");
    log.append(0, &vec![7; MESSAGE_BYTES_MAX]).unwrap();
    log.append(0, b"").unwrap();
    let mut reader = log.reader(0, 0).unwrap();
    assert_eq!(next(reader.as_mut()).bytes.len(), MESSAGE_BYTES_MAX);
    assert_eq!(next(reader.as_mut()).bytes, b"");
}
