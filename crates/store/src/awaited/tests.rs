use std::collections::BTreeSet;
use std::sync::mpsc;

use super::*;
use crate::disk::SimDisk;
use crate::disk::sim::Operation;

const PART: u64 = 100;
const BYTES: u64 = 350;
const END: u64 = 30;

/// What a file holds.
fn content(number: u8) -> Vec<u8> {
    (0..BYTES).map(|at| (at as u8).wrapping_mul(7).wrapping_add(number)).collect()
}

fn path(number: u8) -> PathBuf {
    PathBuf::from(format!("dir/file-{number}"))
}

/// A source that says what was asked, and fails as long as it is told to.
#[derive(Default)]
struct Given {
    asked: Mutex<Vec<(PathBuf, u64)>>,
    fails: AtomicBool,
    lost: Mutex<BTreeSet<(PathBuf, u64)>>,
    /// Each fetch waits for a word here, if there is one.
    gate: Mutex<Option<mpsc::Receiver<()>>>,
}

struct Shared(Arc<Given>);

impl PartSource for Shared {
    fn part_bytes(&self) -> u64 {
        PART
    }

    fn fetch(&self, path: &Path, part: u64) -> io::Result<FetchedPart> {
        let given = &self.0;
        lock(&given.asked).push((path.to_owned(), part));
        if let Some(gate) = &*lock(&given.gate) {
            let _ = gate.recv();
        }
        if given.fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("no network"));
        }
        if lock(&given.lost).contains(&(path.to_owned(), part)) {
            return Ok(FetchedPart::Lost(format!("part {part} of {} is missing", path.display())));
        }
        let number = path.to_str().unwrap().bytes().last().unwrap() - b'0';
        let from = (part * PART) as usize;
        Ok(FetchedPart::Bytes(content(number)[from..(from + PART as usize).min(BYTES as usize)].to_vec()))
    }
}

/// A disk on which `count` files are awaited.
fn prepare(count: u8) -> SimDisk {
    let sim = SimDisk::new(1);
    let disk = sim.handle();
    disk.create_dir_all(Path::new("dir")).unwrap();
    for number in 0..count {
        let file = disk.create(&filenames::awaited(&path(number))).unwrap();
        file.truncate(BYTES).unwrap();
        file.write_at(&content(number)[(BYTES - END) as usize..], BYTES - END).unwrap();
        file.sync().unwrap();
    }
    disk.sync_dir(Path::new("dir")).unwrap();
    let restoring = disk.create(&filenames::restoring(Path::new(""))).unwrap();
    restoring.sync().unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    sim
}

fn open(disk: &SimDisk, count: u8, given: &Arc<Given>) -> AwaitedDisk {
    let named = (0..count).map(|number| AwaitedFile { path: path(number), bytes: BYTES, end: END }).collect();
    AwaitedDisk(Awaited::new(disk.handle(), named, Box::new(Shared(Arc::clone(given)))).unwrap())
}

fn read(disk: &dyn Disk, path: &Path, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut read = vec![0; bytes];
    let count = disk.open(path, Mode::Read)?.read_at(&mut read, offset)?;
    read.truncate(count);
    Ok(read)
}

#[test]
fn a_read_fetches_what_it_needs_once() {
    let sim = prepare(2);
    let given = Arc::new(Given::default());
    let disk = open(&sim, 2, &given);
    assert_eq!(disk.list(Path::new("dir")).unwrap(), ["file-0", "file-1"]);
    assert_eq!(disk.length(&path(0)).unwrap(), BYTES);
    assert!(!disk.exists(&filenames::restoring(Path::new(""))).unwrap());
    assert!(refuse(&disk).is_ok() && refuse(&*sim.handle()).is_err());
    // Its end is there from the beginning.
    let from = BYTES - END;
    assert_eq!(read(&disk, &path(0), from, END as usize).unwrap(), content(0)[from as usize..]);
    assert!(lock(&given.asked).is_empty());
    for _ in 0..2 {
        assert_eq!(read(&disk, &path(0), 90, 20).unwrap(), content(0)[90..110]);
        assert_eq!(*lock(&given.asked), [(path(0), 0), (path(0), 1)]);
    }
    assert_eq!(disk.0.coming().left, 2 * BYTES - 2 * PART);
    // A read goes on while the file is removed.
    let reader = disk.open(&path(1), Mode::Read).unwrap();
    disk.remove(&path(1)).unwrap();
    let mut bytes = vec![0; BYTES as usize];
    reader.read_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, content(1));
    assert!(!disk.exists(&path(1)).unwrap());
    disk.0.fill(2);
    assert_eq!(disk.0.coming(), Coming { total: 2 * BYTES, ..Coming::default() });
    // It is a store like any other.
    let plain = sim.handle();
    assert!(refuse(&*plain).is_ok());
    assert_eq!(plain.list(Path::new("dir")).unwrap(), ["file-0"]);
    assert_eq!(read(&*plain, &path(0), 0, 400).unwrap(), content(0));
}

#[test]
fn a_fetch_stops_only_those_who_need_it() {
    let sim = prepare(2);
    let given = Arc::new(Given::default());
    let (open_gate, gate) = mpsc::channel();
    *lock(&given.gate) = Some(gate);
    let disk = open(&sim, 2, &given);
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| read(&disk, &path(0), 0, 10).unwrap())).collect();
        while lock(&given.asked).is_empty() {
            std::thread::yield_now();
        }
        // What is there is read meanwhile.
        assert_eq!(read(&disk, &path(0), 340, 10).unwrap(), content(0)[340..]);
        open_gate.send(()).unwrap();
        for waiting in waiting {
            assert_eq!(waiting.join().unwrap(), content(0)[..10]);
        }
    });
    assert_eq!(lock(&given.asked).len(), 1);
}

#[test]
fn a_failure_passes_and_a_loss_stays() {
    let sim = prepare(1);
    let given = Arc::new(Given::default());
    given.fails.store(true, Ordering::SeqCst);
    lock(&given.lost).insert((path(0), 2));
    let disk = open(&sim, 1, &given);
    assert_eq!(read(&disk, &path(0), 0, 10).unwrap_err().to_string(), "no network");
    assert_eq!(disk.0.coming().failure.as_deref(), Some("no network"));
    std::thread::scope(|scope| {
        scope.spawn(|| disk.0.fill(1));
        given.fails.store(false, Ordering::SeqCst);
    });
    let coming = disk.0.coming();
    assert_eq!((coming.left, coming.failure), (0, None));
    assert_eq!(coming.lost, ["part 2 of dir/file-0 is missing"]);
    let all = read(&*sim.handle(), &path(0), 0, 400).unwrap();
    let (whole, hole) = (content(0), [0; PART as usize]);
    assert_eq!(all, [&whole[..200], &hole, &whole[300..]].concat());
    // After a stop, what has not come fails, and soon.
    let sim = prepare(1);
    let disk = open(&sim, 1, &given);
    disk.0.stop();
    disk.0.fill(1);
    assert!(read(&disk, &path(0), 0, 10).unwrap_err().to_string().contains("stops"));
}

#[test]
fn a_crash_at_any_moment_is_gone_on_from() {
    for changes in 0..60 {
        let sim = prepare(3);
        let disk = open(&sim, 3, &Arc::new(Given::default()));
        sim.power_off_after(changes);
        let files = lock(&disk.0.files).clone();
        for file in files.into_values() {
            (0..4).for_each(|part| drop(disk.0.bring(&file, part)));
        }
        let after = sim.crash();
        let again = open(&after, 3, &Arc::new(Given::default()));
        again.0.fill(1);
        let plain = after.handle();
        assert!(refuse(&*plain).is_ok(), "after {changes} changes");
        for number in 0..3 {
            assert_eq!(read(&*plain, &path(number), 0, 400).unwrap(), content(number), "after {changes}");
        }
    }
}

/// It is known to be whole only when its name is durable: until then its bytes are fetched again.
#[test]
fn a_file_that_cannot_be_completed_comes_again() {
    for operation in [Operation::Sync, Operation::Rename, Operation::SyncDir] {
        let sim = prepare(2);
        let given = Arc::new(Given::default());
        let disk = open(&sim, 2, &given);
        sim.fail(operation, 0, io::ErrorKind::Other);
        let file = disk.0.find(&path(0)).unwrap();
        (0..3).for_each(|part| disk.0.bring(&file, part).unwrap());
        disk.0.bring(&file, 3).unwrap_err();
        assert_eq!(disk.list(Path::new("dir")).unwrap(), ["file-0", "file-1"]);
        assert!(disk.0.coming().failure.is_some());
        assert_eq!(disk.0.coming().left, 2 * BYTES);
        assert_eq!(read(&disk, &path(0), 0, 400).unwrap(), content(0), "{operation:?}");
        disk.0.fill(2);
        assert_eq!(lock(&given.asked).len(), 12, "{operation:?}");
        let plain = sim.crash().handle();
        assert!(refuse(&*plain).is_ok());
        assert_eq!(read(&*plain, &path(0), 0, 400).unwrap(), content(0), "{operation:?}");
    }
}

#[test]
fn a_failure_is_that_of_all_who_wait_for_it() {
    let sim = prepare(1);
    let given = Arc::new(Given::default());
    let (open_gate, gate) = mpsc::channel();
    *lock(&given.gate) = Some(gate);
    given.fails.store(true, Ordering::SeqCst);
    let disk = open(&sim, 1, &given);
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| read(&disk, &path(0), 0, 10))).collect();
        let file = disk.0.find(&path(0)).unwrap();
        // One thread fetches, and two wait. The fetch ends only at the gate.
        testkit::wait_until("two threads to wait", || file.waits.load(Ordering::SeqCst) == 2);
        drop(open_gate);
        for waiting in waiting {
            assert_eq!(waiting.join().unwrap().unwrap_err().to_string(), "no network");
        }
    });
    assert_eq!(lock(&given.asked).len(), 1);
}

#[test]
fn a_full_disk_delays_it() {
    let sim = prepare(1);
    let given = Arc::new(Given::default());
    let disk = open(&sim, 1, &given);
    sim.fail(Operation::Write, 0, io::ErrorKind::StorageFull);
    assert_eq!(read(&disk, &path(0), 0, 10).unwrap_err().kind(), io::ErrorKind::StorageFull);
    disk.0.fill(1);
    assert_eq!(read(&*sim.handle(), &path(0), 0, 400).unwrap(), content(0));
}
