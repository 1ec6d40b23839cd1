//! Restores that are served before everything has come, and of a part of the store: measured in what they fetch.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use object_store::ObjectStoreExt;
use object_store::path::Path as ObjectPath;
use roundel_backup::later::{Origin, Restoring};
use roundel_backup::manifest::BackupManifest;
use roundel_backup::moments::{Moment, find};
use roundel_backup::objects::Objects;
use roundel_backup::restore::{Restored, Wanted, restore};
use roundel_backup::upload::Uploader;
use store::awaited::{Awaited, AwaitedDisk};
use store::disk::RealDisk;
use store::engine::Engine;
use store::stripes::{Options, Stripes, home_by_hash};

use super::faulty::{Faults, Faulty};
use super::support::{Nothing, Subject, name, objects};
use super::{block_on, round};

/// So many that a shard's segment is not a small file.
const MANY: u32 = 1500;
const STEPS: i64 = 100;

fn origin() -> Origin {
    Origin { from: "memory".to_string(), endpoint: None, region: None, key: None }
}

/// A store with its backup, and what the backup holds.
struct Backed {
    place: Arc<Faulty>,
    subject: Subject,
    want: Vec<String>,
    manifest: BackupManifest,
    dir: tempfile::TempDir,
}

fn backed() -> Backed {
    let dir = tempfile::tempdir().unwrap();
    let subject = Subject::over(Arc::new(RealDisk::create(&dir.path().join("store")).unwrap()), MANY);
    subject.create_all();
    (0..STEPS).for_each(|step| subject.update(step));
    subject.store.checkpoint().unwrap();
    subject.update(STEPS);
    let place = Faulty::new(1, Faults::default());
    let mut uploader = Uploader::new(objects(&place, Some(1)));
    block_on(round(&mut uploader, &subject)).unwrap();
    let manifest = uploader.last().unwrap().clone();
    let want = subject.all();
    Backed { dir, place, subject, want, manifest }
}

fn segment_bytes(manifest: &BackupManifest) -> u64 {
    manifest.shards.iter().flat_map(|shard| &shard.segments).map(|file| file.bytes).sum()
}

fn all_bytes(manifest: &BackupManifest) -> u64 {
    let log = manifest.shards.iter().flat_map(|shard| &shard.log).map(|chunk| chunk.bytes);
    manifest.files().map(|file| file.bytes).chain(log).sum()
}

/// Restores without what can come later; returns how many bytes came.
fn restore_early(place: &Arc<Faulty>, shards: Option<&BTreeSet<u32>>, to: &Path) -> (Restored, u64) {
    let from = objects(place, Some(1));
    let origin = origin();
    let restored = block_on(async {
        let found = find(&from, &Moment::Newest).await.unwrap();
        let before = from.traffic.bytes_fetched.load(Ordering::Relaxed);
        let wanted =
            Wanted { moment: &Moment::Newest, shards, later: Some(&origin), own: true, is_replica: false };
        let restored = restore(&from, &found, &wanted, to, &Nothing).await.unwrap();
        (restored, from.traffic.bytes_fetched.load(Ordering::Relaxed) - before)
    });
    assert!(restored.0.later_bytes > 0);
    restored
}

/// The files that such a store awaits, and where they come from.
fn awaited(place: &Arc<Faulty>, store: &Path) -> Arc<Awaited> {
    let from: Objects = objects(place, Some(1));
    let restoring = Restoring::read(store).unwrap().unwrap();
    assert_eq!(restoring.origin, origin());
    restoring.awaited(Arc::new(RealDisk::open(store).unwrap()), from).unwrap()
}

/// Opens such a store; without merges, only reads have something fetched.
fn open(awaited: &Arc<Awaited>, merge_count: usize) -> Subject {
    Subject::merging(Arc::new(AwaitedDisk(Arc::clone(awaited))), MANY, merge_count)
}

#[test]
fn a_store_is_served_before_it_has_come() {
    let Backed { dir, place, subject: original, want, manifest } = backed();
    let to = dir.path().join("early");
    let (restored, fetched) = restore_early(&place, None, &to);
    let (later, all) = (restored.later_bytes, all_bytes(&manifest));
    // All but their ends; a checkpoint that was not merged yet has made small ones, which come at once.
    let segments = || manifest.shards.iter().flat_map(|shard| &shard.segments);
    let long: u64 = segments().filter(|file| file.end.is_some()).map(|file| file.bytes).sum();
    let ends: u64 = segments().filter_map(|file| file.end.as_ref()).map(|end| end.bytes).sum();
    assert_eq!(later, long - ends);
    assert!(later * 100 > long * 95 && later * 4 > all * 3, "{later} of {long} and {all}: {manifest:?}");
    assert!(fetched < all - later + all / 50, "{fetched} of {all} bytes came first, {later} later");
    // Nothing takes it for a whole store, or for a damaged one.
    let plain = || Stripes::open(Arc::new(RealDisk::open(&to).unwrap()), &Options::default());
    assert!(plain().err().unwrap().to_string().contains("restore is not complete"));
    // An empty place has lost nothing.
    let files = awaited(&Faulty::new(1, Faults::default()), &to);
    let subject = open(&files, 0);
    let failed = subject.store.read(&name(7)).unwrap_err().to_string();
    assert!(failed.contains("there is no backup in this place now"), "{failed}");
    assert_eq!(files.coming().lost, [""; 0]);
    drop((subject, files));
    // While the server fails, updates are taken and reads of what is there are answered; others fail and pass.
    let files = awaited(&place, &to);
    let subject = open(&files, 0);
    place.set(Faults { erring: 100, ..Faults::default() });
    assert_eq!(subject.store.list(b"", true).unwrap().len(), MANY as usize);
    let failed = subject.store.read(&name(7)).unwrap_err().to_string();
    assert!(failed.contains("cannot fetch what the restore lacks"), "{failed}");
    assert!(files.coming().failure.is_some());
    place.set(Faults::default());
    let read = format!("{:?}", subject.store.read(&name(7)).unwrap());
    assert_eq!(read, want[7]);
    subject.update(STEPS + 1);
    // The daemon dies; the next one goes on, merges what has come with what has not, and fills the rest.
    drop(subject);
    drop(files);
    let files = awaited(&place, &to);
    let subject = open(&files, 2);
    std::thread::scope(|scope| {
        scope.spawn(|| files.fill(2));
        (STEPS + 2..STEPS + 40).for_each(|step| subject.step(step));
    });
    (STEPS + 1..STEPS + 40).for_each(|step| original.update(step));
    let coming = files.coming();
    assert_eq!((coming.left, coming.lost.len(), coming.failure), (0, 0, None));
    subject.store.stop().unwrap();
    drop((subject, files));
    assert!(Restoring::read(&to).unwrap().is_none());
    assert_eq!(Subject::over(Arc::new(RealDisk::open(&to).unwrap()), MANY).all(), original.all());
}

#[test]
fn a_lost_object_that_comes_later_is_named_and_costs_what_it_held() {
    let Backed { dir, place, want, manifest, .. } = backed();
    let segment = &manifest.shards[0].segments[0];
    let path = ObjectPath::from(format!("a/prefix/{}", segment.object));
    let to = dir.path().join("early");
    restore_early(&place, None, &to);
    block_on(place.inner.delete(&path)).unwrap();
    let files = awaited(&place, &to);
    let subject = open(&files, 0);
    files.fill(1);
    let coming = files.coming();
    assert!(coming.left == 0 && coming.lost.len() == 1, "{coming:?}");
    assert!(coming.lost[0].contains(&segment.object), "{coming:?}");
    assert!(coming.lost[0].contains("it held bytes 0 to") && coming.lost[0].contains("of shard 0"));
    let same = (0..MANY).filter(|number| {
        let read = subject.store.read(&name(*number));
        read.is_ok_and(|read| format!("{read:?}") == want[*number as usize])
    });
    let same = same.count();
    assert!(same > MANY as usize / 3 && same < MANY as usize, "{same}");
    // An end that is lost is taken from the last part.
    let end = manifest.shards[1].segments[0].end.as_ref().unwrap();
    block_on(place.inner.delete(&ObjectPath::from(format!("a/prefix/{}", end.object)))).unwrap();
    restore_early(&place, None, &dir.path().join("again"));
}

#[test]
fn of_one_rrd_only_what_it_needs_is_fetched() {
    let Backed { dir, place, want, manifest, .. } = backed();
    let identity = store::identity::decode(&manifest.store).unwrap();
    let home = home_by_hash(&identity, name(3).as_bytes());
    let to = dir.path().join("part");
    let (restored, fetched) = restore_early(&place, Some(&[home].into()), &to);
    assert_eq!(restored.ends.len(), 1);
    let all = all_bytes(&manifest);
    let files = awaited(&place, &to);
    let subject = open(&files, 0);
    let listed = subject.store.list(b"", true).unwrap().len();
    assert!(listed > MANY as usize / 3 && listed < MANY as usize, "{listed}");
    assert_eq!(format!("{:?}", subject.store.read(&name(3)).unwrap()), want[3]);
    assert!(fetched < (all - segment_bytes(&manifest)) * 2 / 3, "{fetched} of {all}");
    let coming = files.coming();
    assert!(coming.left < coming.total);
}
