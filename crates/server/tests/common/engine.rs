//! A fast in-memory store that only records its requests, for tests of the protocol layer.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rrd::content::Rrd;
use rrd::create::new_live;
use rrd::definition::Definition;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::when::Step;
use store::engine::{
    CreateRequest, Engine, Hold, Reply, Snapshot, Stats, StoreError, UpdateBatch, UpdateFailure,
};
use store::name::RrdName;

/// Work for the answering thread.
type Job = Box<dyn FnOnce() + Send>;

/// Records updates by name; answers each batch from another thread.
pub struct Recorder {
    known: Mutex<HashMap<Vec<u8>, Vec<String>>>,
    definition: Arc<Definition>,
    /// Number of accepted arguments.
    pub words: AtomicU64,
    queue: Mutex<Option<std::sync::mpsc::Sender<Job>>>,
}

impl Recorder {
    /// An engine that knows these names.
    pub fn new(names: &[&str]) -> Arc<Self> {
        let options = CreateOptions {
            step: Step { units: 10, units_per_second: 1 },
            limits: Limits::FILE,
            file_name: b"x",
        };
        let words = ["DS:a:GAUGE:20:U:U", "RRA:AVERAGE:0.5:1:10"];
        let (sender, jobs) = std::sync::mpsc::channel::<Job>();
        std::thread::spawn(move || jobs.into_iter().for_each(|job| job()));
        Arc::new(Recorder {
            known: Mutex::new(names.iter().map(|name| (name.as_bytes().to_vec(), Vec::new())).collect()),
            definition: Arc::new(parse_create(&options, &words).unwrap()),
            words: AtomicU64::new(0),
            queue: Mutex::new(Some(sender)),
        })
    }

    /// The updates received for a name, in order.
    pub fn updates(&self, name: &str) -> Vec<String> {
        self.known.lock().unwrap()[name.as_bytes()].clone()
    }

    fn answer(&self, job: impl FnOnce() + Send + 'static) {
        if let Some(queue) = &*self.queue.lock().unwrap() {
            queue.send(Box::new(job)).unwrap();
        }
    }
}

impl Engine for Recorder {
    fn update(&self, batch: UpdateBatch, reply: Reply<Vec<UpdateFailure>>) {
        let mut failures = Vec::new();
        let mut known = self.known.lock().unwrap();
        for (index, line) in batch.lines.iter().enumerate() {
            let name = &batch.text[line.name.start as usize..line.name.end as usize];
            let values = &batch.text[line.values.start as usize..line.values.end as usize];
            assert!(RrdName::is_normal(name), "{:?}", String::from_utf8_lossy(name));
            match known.get_mut(name) {
                Some(updates) => {
                    let words = values.split(|&byte| byte == b' ').count();
                    self.words.fetch_add(words as u64, Ordering::Relaxed);
                    if updates.len() < 100_000 {
                        updates.push(String::from_utf8_lossy(values).into_owned());
                    }
                    assert!(!values.ends_with(b":panic"), "asked to");
                }
                None => failures.push(UpdateFailure {
                    line: index as u32,
                    accepted: 0,
                    error: StoreError::NoSuchRrd(RrdName::new(name).unwrap()),
                }),
            }
        }
        drop(known);
        self.answer(move || reply(failures));
    }

    fn updatev(&self, _: &RrdName, _: &[u8]) -> Result<store::engine::UpdatevOutcome, StoreError> {
        Err(StoreError::Unsupported("nothing is recorded here"))
    }

    fn create(&self, name: RrdName, _: CreateRequest, reply: Reply<Result<(), StoreError>>) {
        self.known.lock().unwrap().insert(name.as_bytes().to_vec(), Vec::new());
        self.answer(move || reply(Ok(())));
    }

    fn import(&self, name: RrdName, _: Rrd, _: bool) -> Result<(), StoreError> {
        self.known.lock().unwrap().insert(name.as_bytes().to_vec(), Vec::new());
        Ok(())
    }

    fn tune(&self, _: &RrdName, _: &[String]) -> Result<(), StoreError> {
        Err(StoreError::Unsupported("it only remembers"))
    }

    fn rename(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        let mut known = self.known.lock().unwrap();
        known.remove(from.as_bytes());
        known.insert(to.as_bytes().to_vec(), Vec::new());
        Ok(())
    }

    fn copy(&self, _: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        self.known.lock().unwrap().insert(to.as_bytes().to_vec(), Vec::new());
        Ok(())
    }

    fn delete(&self, name: &RrdName) -> Result<(), StoreError> {
        self.known.lock().unwrap().remove(name.as_bytes());
        Ok(())
    }

    fn snapshot(&self, name: &RrdName) -> Result<Snapshot, StoreError> {
        assert!(!name.as_bytes().ends_with(b"panic"), "asked to");
        if !self.known.lock().unwrap().contains_key(name.as_bytes()) {
            return Err(StoreError::NoSuchRrd(name.clone()));
        }
        let live = new_live(&self.definition, 1_000_000_000);
        Ok(Snapshot { definition: Arc::clone(&self.definition), live, current_rows: vec![0], identity: 0 })
    }

    fn fetch(&self, name: &RrdName, _: FetchRequest) -> Result<FetchRows, StoreError> {
        Err(StoreError::NoSuchRrd(name.clone()))
    }

    fn read(&self, name: &RrdName) -> Result<Rrd, StoreError> {
        Err(StoreError::NoSuchRrd(name.clone()))
    }

    fn rows(
        &self,
        name: &RrdName,
        _: &Arc<Definition>,
        _: usize,
        _: Range<i64>,
    ) -> Result<Vec<f64>, StoreError> {
        Err(StoreError::NoSuchRrd(name.clone()))
    }

    fn list_within(&self, _: &[u8], _: bool, _: Hold<'_>) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut names: Vec<_> = self.known.lock().unwrap().keys().cloned().collect();
        names.sort();
        Ok(names)
    }

    fn flush(&self, _: Option<&RrdName>) -> Result<(), StoreError> {
        Ok(())
    }

    fn stats(&self) -> Stats {
        Stats { rrd_count: self.known.lock().unwrap().len() as u64, ..Default::default() }
    }

    fn stop(&self) -> Result<(), StoreError> {
        self.queue.lock().unwrap().take();
        Ok(())
    }
}
