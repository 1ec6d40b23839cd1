//! Replicas of a cluster's partitions: their places, and what becomes a replica again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use roundel_backup::location::Access;
use roundel_backup::objects::Limits;
use roundel_backup::replicas::{Partition, Replicas, has_backup, restore};
use roundel_backup::run::{Backed, BackupSettings, BackupStatus, Running};
use store::capture::Capture;
use store::disk::RealDisk;
use store::engine::Engine;
use store::position::Position;
use store::replication::Mark;

use super::support::{Nothing, Subject, all_in};

/// A node that has one store as several partitions, at this message of each.
struct OneStore {
    subject: Subject,
    led: Mutex<BTreeMap<u32, u32>>,
    next: Mutex<u64>,
    sealed_for: Mutex<Option<String>>,
}

/// Partitions of the cluster.
const COUNT: u32 = 12;

fn partition(number: u32) -> Partition<'static> {
    Partition { number, count: COUNT, log: "a log" }
}

impl Replicas for OneStore {
    fn partitions(&self) -> u32 {
        COUNT
    }

    fn led(&self) -> BTreeMap<u32, u32> {
        self.led.lock().unwrap().clone()
    }

    fn capture(&self, partition: u32) -> Result<(Capture, String), String> {
        if partition == 9 {
            return Err("this one fails".to_owned());
        }
        let capture = self.subject.store.capture().map_err(|error| error.to_string())?;
        let (next, end) = (*self.next.lock().unwrap(), Position::default());
        let sealed_for = self.sealed_for.lock().unwrap().clone();
        let mark = Mark { log: "a log".to_owned(), next, epoch: 3, leader: 7, end, sealed_for };
        Ok((capture, mark.encode()))
    }
}

fn settings(to: &Path) -> BackupSettings {
    BackupSettings {
        to: to.to_str().unwrap().to_owned(),
        access: Access::default(),
        key: None,
        interval: Duration::from_millis(20),
        limits: Limits::default(),
        keep: None,
        own: None,
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < until, "no {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn wait_for_rounds(status: &BackupStatus, more: u64) {
    use std::sync::atomic::Ordering::Relaxed;
    let count = || status.rounds.load(Relaxed);
    let wanted = count() + more;
    wait_until("rounds", || {
        assert_eq!(status.failure(), None);
        count() >= wanted
    });
}

#[test]
fn each_led_partition_comes_back_as_the_replica_that_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (place, to) = (dir.path().join("place"), |name: &str| dir.path().join(name));
    let subject = Subject::open(&dir.path().join("store"));
    subject.create_all();
    let led = BTreeMap::from([(0, 1), (3, 1)]);
    let node = Arc::new(OneStore {
        subject,
        led: Mutex::new(led),
        next: Mutex::new(100),
        sealed_for: Mutex::default(),
    });
    let (status, settings) = (Arc::new(BackupStatus::default()), settings(&place));
    let begin = || {
        let backed = Backed::Replicas(Arc::clone(&node) as Arc<dyn Replicas>);
        Running::start(settings.clone(), backed, Arc::clone(&status), || {}).unwrap()
    };
    let running = begin();
    wait_for_rounds(&status, 2);
    (0..20).for_each(|step| node.subject.step(step));
    *node.next.lock().unwrap() = 200;
    wait_for_rounds(&status, 2);
    let before = node.subject.all();
    // Another epoch: the log is looked at again.
    *node.led.lock().unwrap() = BTreeMap::from([(3, 2), (5, 2)]);
    wait_for_rounds(&status, 2);
    node.subject.step(20);
    *node.next.lock().unwrap() = 201;
    wait_for_rounds(&status, 2);
    drop(running);
    assert!([0, 3, 5].map(|number| has_backup(&settings, partition(number)).unwrap()).iter().all(|has| *has));
    assert!(!has_backup(&settings, partition(1)).is_ok_and(|has| has));
    for (number, next) in [(0, 200), (3, 201), (5, 201)] {
        let into = to(&format!("partition-{number}"));
        let late = restore(&settings, (partition(number), next + 1), &to("late"), &Nothing).unwrap_err();
        assert_eq!(
            late,
            format!("it goes on at message {next}, and the log has none before {} any more", next + 1)
        );
        restore(&settings, (partition(number), next), &into, &Nothing).unwrap();
        let mark = Mark::load(&RealDisk::open(&into).unwrap()).unwrap().unwrap();
        assert_eq!((mark.next, mark.epoch, mark.leader), (next, 3, 7));
        let history = std::fs::read_to_string(into.join("HISTORY")).unwrap();
        assert!(!history.contains("restored"), "it is no store of its own");
        let after = if next == 200 { before.clone() } else { node.subject.all() };
        assert_eq!(all_in(&into), after, "{number}");
    }
}

#[test]
fn a_backup_of_another_log_is_none_unless_that_is_sealed_for_this_one() {
    let dir = tempfile::tempdir().unwrap();
    let subject = Subject::open(&dir.path().join("store"));
    subject.create_all();
    let (led, next) = (Mutex::new(BTreeMap::from([(2, 1)])), Mutex::new(100));
    let node = Arc::new(OneStore { subject, led, next, sealed_for: Mutex::default() });
    let (status, settings) = (Arc::new(BackupStatus::default()), settings(&dir.path().join("place")));
    let backed = Backed::Replicas(Arc::clone(&node) as Arc<dyn Replicas>);
    let running = Running::start(settings.clone(), backed, Arc::clone(&status), || {}).unwrap();
    wait_for_rounds(&status, 2);
    let after = Partition { log: "another log", ..partition(2) };
    assert!(has_backup(&settings, partition(2)).unwrap() && !has_backup(&settings, after).unwrap());
    assert!(!has_backup(&settings, Partition { count: 2 * COUNT, ..partition(2) }).is_ok_and(|has| has));
    let into = |name: &str| dir.path().join(name);
    let refused = restore(&settings, (after, 0), &into("refused"), &Nothing).unwrap_err();
    assert_eq!(refused, "it goes on in another log, \"a log\"");
    *node.sealed_for.lock().unwrap() = Some("another log".to_owned());
    wait_for_rounds(&status, 2);
    drop(running);
    assert!(has_backup(&settings, after).unwrap());
    restore(&settings, (after, 0), &into("sealed"), &Nothing).unwrap();
    // Once the next log has forgotten its beginning, what was written there is missing.
    assert!(restore(&settings, (after, 1), &into("late"), &Nothing).is_err());
}

#[test]
fn a_partition_that_fails_does_not_keep_others_back_and_a_hole_makes_no_replica() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("place");
    let subject = Subject::open(&dir.path().join("store"));
    subject.create_all();
    (0..12).for_each(|step| subject.step(step));
    // The place of one cannot be used.
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join(format!("partition-0007-of-{COUNT}")), "a file").unwrap();
    let led = BTreeMap::from([(2, 1), (7, 1), (9, 1), (11, 1)]);
    let node = Arc::new(OneStore {
        subject,
        led: Mutex::new(led),
        next: Mutex::new(1),
        sealed_for: Mutex::default(),
    });
    let (status, settings) = (Arc::new(BackupStatus::default()), settings(&place));
    let backed = Backed::Replicas(Arc::clone(&node) as Arc<dyn Replicas>);
    let running = Running::start(settings.clone(), backed, Arc::clone(&status), || {}).unwrap();
    let has = |number| has_backup(&settings, partition(number)).is_ok_and(|has| has);
    wait_until("backups of the others", || has(2) && has(11));
    wait_until("failure", || status.failure().is_some());
    assert_eq!(status.failure().unwrap(), "partition 9: this one fails");
    drop(running);
    // The largest object is one with rows.
    let mut objects = Vec::new();
    for folder in place.join(format!("partition-0002-of-{COUNT}/objects")).read_dir().unwrap() {
        objects.extend(folder.unwrap().path().read_dir().unwrap().map(|entry| entry.unwrap().path()));
    }
    objects.sort_by_key(|path| path.metadata().unwrap().len());
    std::fs::remove_file(objects.last().unwrap()).unwrap();
    let error = restore(&settings, (partition(2), 0), &dir.path().join("to"), &Nothing).unwrap_err();
    assert!(error.contains("is missing"), "{error}");
    restore(&settings, (partition(11), 0), &dir.path().join("whole"), &Nothing).unwrap();
}
