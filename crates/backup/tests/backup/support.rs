//! A store to back up, and places for it.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, mpsc};

use object_store::ObjectStore;
use roundel_backup::location::Location;
use roundel_backup::moments::{Found, Moment, find};
use roundel_backup::objects::{Limits, Objects};
use roundel_backup::restore::{Progress, RestoreError, Restored, Wanted, restore};
use roundel_backup::seal::Keys;
use rrd::content::Rrd;
use rrd::definition::text::{CreateOptions, Limits as DefinitionLimits, parse_create};
use rrd::time::Timestamp;
use rrd::when::Step;
use store::disk::{Disk, RealDisk};
use store::engine::{CreateRequest, Engine, UpdateBatch};
use store::name::RrdName;
use store::stripes::{Options, ShardOptions, Stripes};

pub const START: i64 = 1_700_000_000;
pub const RRDS: u32 = 30;

pub struct Nothing;

impl Progress for Nothing {
    fn total(&self, _: u64) {}
    fn done(&self, _: u64) {}
}

pub fn name(number: u32) -> RrdName {
    RrdName::new(format!("host-{number}.rrd").as_bytes()).unwrap()
}

/// A store whose clock shows what `now` has.
pub struct Subject {
    pub store: Stripes,
    pub now: Arc<AtomicI64>,
    pub rrds: u32,
}

impl Subject {
    pub fn open(dir: &Path) -> Subject {
        Subject::over(Arc::new(RealDisk::create(dir).unwrap()), RRDS)
    }

    pub fn over(disk: Arc<dyn Disk>, rrds: u32) -> Subject {
        Subject::merging(disk, rrds, 2)
    }

    /// The same, merging so many segments; 0 = none.
    pub fn merging(disk: Arc<dyn Disk>, rrds: u32, merge_count: usize) -> Subject {
        let now = Arc::new(AtomicI64::new(START));
        let clock = Arc::clone(&now);
        let options = Options {
            shard_count: 2,
            shard: ShardOptions { merge_count, ..ShardOptions::default() },
            clock: Arc::new(move || Timestamp::new(clock.load(Ordering::Relaxed), 0)),
            ..Options::default()
        };
        let store = Stripes::open(disk, &options).unwrap();
        Subject { store, now, rrds }
    }

    pub fn create_all(&self) {
        let step = Step { units: 10, units_per_second: 1 };
        let options = CreateOptions { step, limits: DefinitionLimits::FILE, file_name: b"x" };
        let words = ["DS:v:GAUGE:1000:U:U", "RRA:LAST:0.5:1:400", "RRA:AVERAGE:0.5:5:100"];
        let definition = parse_create(&options, &words).unwrap();
        for number in 0..self.rrds {
            let request =
                CreateRequest { definition: definition.clone(), start: START - 10, no_overwrite: true };
            let (sender, receiver) = mpsc::channel();
            self.store.create(name(number), request, Box::new(move |result| sender.send(result).unwrap()));
            receiver.recv().unwrap().unwrap();
        }
    }

    /// One update of every RRD, at `START + 10 * step`, which is the time then; now and then with a checkpoint.
    pub fn step(&self, step: i64) {
        self.update(step);
        if step % 6 == 5 {
            self.store.checkpoint().unwrap();
        }
    }

    /// One update of every RRD.
    pub fn update(&self, step: i64) {
        self.now.store(START + 10 * step, Ordering::Relaxed);
        let mut batch = UpdateBatch::default();
        for number in 0..self.rrds {
            let value = (i64::from(number) * 7919 + step * step * 31) % 100_003;
            batch.push(name(number).as_bytes(), format!("{}:{value}", START + 10 * step).as_bytes());
        }
        let (sender, receiver) = mpsc::channel();
        self.store.update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
        let failures = receiver.recv().unwrap();
        assert!(failures.is_empty(), "{failures:?}");
    }

    pub fn all(&self) -> Vec<String> {
        let read = |number| -> Rrd { self.store.read(&name(number)).unwrap() };
        (0..self.rrds).map(|number| format!("{:?}", read(number))).collect()
    }
}

pub fn objects(store: &Arc<impl ObjectStore>, key: Option<u8>) -> Objects {
    let keys = key.map_or_else(Keys::none, |byte| Keys::from_bytes(&[byte; 32]));
    let store: Arc<dyn ObjectStore> = store.clone();
    Objects::new(Location { store, prefix: "a/prefix".to_string() }, keys, Limits::default())
}

pub async fn restored(
    objects: &Objects,
    moment: Moment,
    to: &Path,
) -> Result<(Restored, Found), RestoreError> {
    let found = find(objects, &moment).await.unwrap();
    let wanted = Wanted { moment: &moment, shards: None, later: None, own: true, is_replica: false };
    restore(objects, &found, &wanted, to, &Nothing).await.map(|restored| (restored, found))
}

/// All RRDs of the store in a directory, after its checksums were checked.
pub fn all_in(dir: &Path) -> Vec<String> {
    struct Strict;
    impl store::verify::Watch for Strict {
        fn checked(&mut self, _: u64) -> bool {
            true
        }
        fn found(&mut self, finding: store::verify::Finding) {
            panic!("{finding}");
        }
    }
    store::verify::path(dir, &mut Strict).unwrap();
    Subject::open(dir).all()
}

/// Sends a content under its name, which is returned.
pub async fn put_content(objects: &Objects, plain: Vec<u8>) -> String {
    let name = objects.content_name(&plain);
    objects.put(&name, plain).await.unwrap();
    name
}
