#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicU64, Ordering};

use store::engine::{
    CreateRequest, Hold, Reply, Snapshot, Stats, StoreError, UpdateBatch, UpdateFailure, UpdatevOutcome,
};
use store::name::RrdName;

use super::*;
use crate::names::Names;
use crate::service::CreatePolicy;
use crate::settings::{FilesSettings, StripesSettings};

/// A store of ten parts of 100 kB, of which one is damaged.
#[derive(Default)]
struct Parts {
    passes: AtomicU64,
}

fn finding() -> Finding {
    Finding { file: "shard-000/segment-4".into(), byte: 9, what: "rot".into(), lost: None }
}

impl Engine for Parts {
    fn verify(&self, watch: &mut dyn Watch) -> Result<(), StoreError> {
        for segment in 0..10 {
            if watch.begin(Place { shard: 0, segment }) {
                if segment == 4 {
                    watch.found(finding());
                }
                if !watch.checked(100_000) {
                    return Ok(());
                }
            }
        }
        self.passes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn stats(&self) -> Stats {
        Stats { segment_bytes: 1_000_000, ..Stats::default() }
    }

    fn update(&self, _: UpdateBatch, _: Reply<Vec<UpdateFailure>>) {}
    fn create(&self, _: RrdName, _: CreateRequest, _: Reply<Result<(), StoreError>>) {}
    fn updatev(&self, _: &RrdName, _: &[u8]) -> Result<UpdatevOutcome, StoreError> {
        Err(StoreError::Stopping)
    }
    fn import(&self, _: RrdName, _: rrd::content::Rrd, _: bool) -> Result<(), StoreError> {
        Err(StoreError::Stopping)
    }
    fn tune(&self, _: &RrdName, _: &[String]) -> Result<(), StoreError> {
        Err(StoreError::Stopping)
    }
    fn rename(&self, _: &RrdName, _: &RrdName) -> Result<(), StoreError> {
        Err(StoreError::Stopping)
    }
    fn copy(&self, _: &RrdName, _: &RrdName) -> Result<(), StoreError> {
        Err(StoreError::Stopping)
    }
    fn delete(&self, _: &RrdName) -> Result<(), StoreError> {
        Err(StoreError::Stopping)
    }
    fn snapshot(&self, _: &RrdName) -> Result<Snapshot, StoreError> {
        Err(StoreError::Stopping)
    }
    fn fetch(&self, _: &RrdName, _: rrd::fetch::FetchRequest) -> Result<rrd::fetch::FetchRows, StoreError> {
        Err(StoreError::Stopping)
    }
    fn read(&self, _: &RrdName) -> Result<rrd::content::Rrd, StoreError> {
        Err(StoreError::Stopping)
    }
    fn list_within(&self, _: &[u8], _: bool, _: Hold<'_>) -> Result<Vec<Vec<u8>>, StoreError> {
        Err(StoreError::Stopping)
    }
    fn flush(&self, _: Option<&RrdName>) -> Result<(), StoreError> {
        Ok(())
    }
    fn stop(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

fn service(engine: &Arc<Parts>) -> Arc<Service> {
    let root = std::path::Path::new("/");
    Service::new(Arc::<Parts>::clone(engine), Names::new(root, root), CreatePolicy::default())
}

fn settings(directory: &std::path::Path, interval: Option<Duration>) -> Settings {
    let mut settings = Settings::new(directory.to_owned(), directory.to_owned());
    if let Layout::Stripes(stripes) = &mut settings.layout {
        *stripes = StripesSettings { scrub: interval, ..stripes.clone() };
    }
    settings
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_pass_is_made_when_it_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(Parts::default());
    let service = service(&engine);
    assert!(!service.scrub.request(), "no thread");
    let scrubber = start(&service, &settings(directory.path(), None)).unwrap();
    assert!(service.scrub.request());
    wait_until("the pass ends", || !service.scrub.report(0).is_running);
    let report = service.scrub.report(0);
    assert_eq!((report.checked, report.total, report.failure), (1_000_000, 1_000_000, None));
    assert_eq!(report.findings, [finding().to_line()]);
    assert_eq!(service.scrub.report(1).findings, [""; 0]);
    assert_eq!(service.metrics.scrub_findings.get(), 1);
    drop(scrubber);
    assert_eq!(engine.passes.load(Ordering::Relaxed), 1);
    assert_ne!(Progress::load(&directory.path().join("scrub")).ended, 0);
}

#[test]
fn the_background_pass_goes_on_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scrub");
    let engine = Arc::new(Parts::default());
    // 262,144 bytes a second at least: four seconds for all, less than one from part 8 on.
    let place = Place { shard: 0, segment: 8 };
    Progress { began: seconds(), ended: 0, place }.save(&file);
    let service = service(&engine);
    let scrubber = start(&service, &settings(directory.path(), Some(Duration::from_secs(3600)))).unwrap();
    wait_until("the pass ends", || engine.passes.load(Ordering::Relaxed) == 1);
    wait_until("it is noted", || Progress::load(&file).ended > 0);
    assert_eq!(service.metrics.scrub_bytes.get(), 200_000);
    assert_eq!(Progress::load(&file).place, Place::default());
    drop(scrubber);
    // The next one is due in an hour.
    let scrubber = start(&service, &settings(directory.path(), Some(Duration::from_secs(3600)))).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    drop(scrubber);
    assert_eq!(engine.passes.load(Ordering::Relaxed), 1);
}

#[test]
fn a_background_pass_ends_at_once_when_the_daemon_stops() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(Parts::default());
    let service = service(&engine);
    let scrubber = start(&service, &settings(directory.path(), Some(Duration::from_secs(1 << 40)))).unwrap();
    wait_until("it begins", || service.metrics.scrub_bytes.get() > 0);
    let began = Instant::now();
    drop(scrubber);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(engine.passes.load(Ordering::Relaxed), 0);
}

/// The files layout.
#[test]
fn files_are_read_in_the_background_too() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("bad.rrd"), b"RRD\x000003 and nothing else").unwrap();
    let engine = Arc::new(Parts::default());
    for (interval, findings) in [(None, 0), (Some(Duration::from_secs(3600)), 1)] {
        let service = service(&engine);
        let mut settings = settings(directory.path(), None);
        settings.layout = Layout::Files(FilesSettings { scrub: interval, ..FilesSettings::default() });
        let scrubber = start(&service, &settings).unwrap();
        let ended = || service.metrics.scrub_last_pass.get() > 0;
        match interval {
            None => std::thread::sleep(Duration::from_millis(50)),
            Some(_) => wait_until("the pass ends", ended),
        }
        assert_eq!((service.metrics.scrub_findings.get(), ended()), (findings, interval.is_some()));
        drop(scrubber);
    }
    assert_eq!(engine.passes.load(Ordering::Relaxed), 0);
    assert!(!directory.path().join("scrub").exists());
}
