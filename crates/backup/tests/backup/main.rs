//! Backups and what is restored of them: equal to the store, RRD by RRD and row by row, at the moment that is wanted.

#![allow(clippy::unwrap_used, reason = "a failure here is the test's")]

mod faulty;
mod hostile;
mod later;
mod pruning;
mod replicas;
mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt};
use roundel_backup::keep::Keep;
use roundel_backup::manifest::{BackedFile, BackupManifest, newest};
use roundel_backup::moments::{Moment, MomentError, find};
use roundel_backup::parts::PART_BYTES;
use roundel_backup::prune::{GRACE, Pruning, clock_differs, prune};
use roundel_backup::restore::{RestoreError, verify};
use roundel_backup::upload::{RoundError, Uploader};
use store::engine::Engine;
use store::replication::Role;

use faulty::{Faults, Faulty};
use support::{Nothing, START, Subject, all_in, objects, put_content, restored};

/// A runtime as the daemon's backup has it, but for time, which passes while nothing else happens.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(work)
}

async fn round(uploader: &mut Uploader, subject: &Subject) -> Result<(), RoundError> {
    uploader.round(&subject.store.capture().unwrap(), None).await
}

/// So many moments, each with a checkpoint.
async fn send_moments(place: &Arc<Faulty>, subject: &Subject, count: i64) {
    let mut uploader = Uploader::new(objects(place, None));
    for step in 0..count {
        subject.step(step);
        subject.store.checkpoint().unwrap();
        round(&mut uploader, subject).await.unwrap();
    }
}

fn pruning(grace: Duration, now_ms: i64) -> Pruning {
    Pruning { grace, now_ms, is_forced: false }
}

/// A store with RRDs, and a place for its backup.
fn fresh() -> (tempfile::TempDir, Subject, Arc<Faulty>) {
    let dir = tempfile::tempdir().unwrap();
    let subject = Subject::open(&dir.path().join("store"));
    subject.create_all();
    (dir, subject, Faulty::new(1, Faults::default()))
}

async fn names(store: &Faulty) -> Vec<String> {
    let mut names: Vec<String> =
        store.inner.list(None).map_ok(|meta| meta.location.to_string()).try_collect().await.unwrap();
    names.sort();
    names
}

#[test]
fn every_moment_comes_back_as_it_was() {
    for key in [None, Some(7)] {
        let (dir, subject, place) = fresh();
        block_on(async {
            let mut uploader = Uploader::new(objects(&place, key));
            let (mut at, mut hold) = (Vec::new(), None);
            for step in 0..40 {
                subject.step(step);
                let capture = subject.store.capture().unwrap();
                at.push((
                    subject.all(),
                    capture.shards.iter().map(|shard| shard.log_end()).collect::<Vec<_>>(),
                ));
                // Some moments lie between two rounds.
                if step % 3 == 0 {
                    uploader.round(&capture, None).await.unwrap();
                    drop(hold.replace(capture.into_log_hold()));
                }
            }
            let from = objects(&place, key);
            for step in [0, 1, 4, 6, 11, 12, 17, 23, 30, 38, 39] {
                let to = dir.path().join(format!("time-{step}"));
                let time = Moment::Time((START + 10 * step as i64 + 5) * 1000);
                let (restored, found) = restored(&from, time, &to).await.unwrap();
                assert!(restored.lost.is_empty() && !found.is_earlier, "{restored:?}");
                assert_eq!(all_in(&to), at[step].0, "step {step} with key {key:?}");
                let to = dir.path().join(format!("position-{step}"));
                let positions = at[step].1.iter().map(|end| (end.generation, end.offset)).collect();
                let restored = support::restored(&from, Moment::Positions(positions), &to).await.unwrap().0;
                assert_eq!(
                    restored.ends,
                    at[step].1.iter().map(|end| (end.generation, end.offset)).collect::<Vec<_>>()
                );
                assert_eq!(all_in(&to), at[step].0, "step {step}");
            }
            let to = dir.path().join("newest");
            restored(&from, Moment::Newest, &to).await.unwrap();
            assert_eq!(all_in(&to), at[39].0);
            let early = find(&from, &Moment::Time((START - 100) * 1000)).await;
            assert_eq!(early, Err(MomentError::TooEarly(START * 1000)));
            let wrong = objects(&place, Some(8));
            assert!(newest(&wrong).await.is_err() || newest(&wrong).await.unwrap().is_none());
        });
    }
}

#[test]
fn what_is_sent_is_not_sent_again_after_a_death_at_any_request() {
    for dead_after in 0..24 {
        let dir = tempfile::tempdir().unwrap();
        let subject = Subject::open(dir.path());
        subject.create_all();
        (0..20).for_each(|step| subject.step(step));
        let place = Faulty::new(1, Faults::default());
        block_on(async {
            place.dead_after.store(dead_after, Ordering::Relaxed);
            let mut uploader = Uploader::new(objects(&place, None));
            let _ = tokio::time::timeout(Duration::from_millis(300), round(&mut uploader, &subject)).await;
            let before = names(&place).await;
            place.dead_after.store(u64::MAX, Ordering::Relaxed);
            place.is_dead.store(false, Ordering::Relaxed);
            place.puts.store(0, Ordering::Relaxed);
            // Another process.
            let mut uploader = Uploader::new(objects(&place, None));
            round(&mut uploader, &subject).await.unwrap();
            let after = names(&place).await;
            assert!(before.iter().all(|name| after.contains(name)));
            let new = after.len() - before.len();
            // The manifest of a round that lacked only what says so is written once more, as that of the next.
            let puts = place.puts.load(Ordering::Relaxed) as usize;
            // And the hint, for its time.
            assert!(puts <= new + 2, "{puts} requests for {new} objects after {dead_after}");
            let to = dir.path().join("copy");
            restored(&objects(&place, None), Moment::Newest, &to).await.unwrap();
            assert_eq!(all_in(&to), subject.all());
        });
    }
}

#[test]
fn faults_delay_a_backup_and_do_not_damage_it() {
    let seeds = std::env::var("ROUNDEL_SEED").map_or(0..12, |seed| {
        let seed = seed.parse().unwrap();
        seed..seed + 1
    });
    for seed in seeds {
        let faults = Faults {
            slow: 10,
            erring: 10 + seed % 3 * 10,
            losing: 10,
            tearing: 10,
            full: if seed % 4 == 0 { 30 } else { 5 },
            hiding: 60,
            ahead: 0,
        };
        let dir = tempfile::tempdir().unwrap();
        let subject = Subject::open(&dir.path().join("store"));
        subject.create_all();
        let place = Faulty::new(seed, faults);
        block_on(async {
            let mut uploader = Uploader::new(objects(&place, Some(1)));
            let (mut rounds, mut failures) = (0, 0);
            for step in 0..60 {
                subject.step(step);
                // Merges run meanwhile, and replace what is being sent.
                match round(&mut uploader, &subject).await {
                    Ok(()) => rounds += 1,
                    Err(_) => failures += 1,
                }
                if step % 20 == 19 {
                    uploader = Uploader::new(objects(&place, Some(1)));
                }
            }
            place.set(Faults { hiding: 60, ..Faults::default() });
            // Whatever was completed under faults is whole.
            let from = objects(&place, Some(1));
            let completed = newest(&from).await.unwrap().unwrap();
            assert_eq!(verify(&from, &completed, &Nothing).await.unwrap(), [], "seed {seed}");
            round(&mut uploader, &subject).await.unwrap();
            let to = dir.path().join("copy");
            let restored = restored(&from, Moment::Newest, &to).await.unwrap().0;
            assert!(restored.lost.is_empty());
            assert_eq!(all_in(&to), subject.all(), "seed {seed}");
            assert!(rounds > 0 && failures > 0, "seed {seed}: {rounds} rounds, {failures} failures");
        });
    }
}

#[test]
fn a_lost_object_is_named_and_costs_what_it_held() {
    let dir = tempfile::tempdir().unwrap();
    let subject = Subject::open(&dir.path().join("store"));
    subject.create_all();
    (0..15).for_each(|step| subject.step(step));
    let place = Faulty::new(1, Faults::default());
    block_on(async {
        let from = objects(&place, None);
        let mut uploader = Uploader::new(objects(&place, None));
        round(&mut uploader, &subject).await.unwrap();
        let manifest = uploader.last().unwrap().clone();
        let path = |object: &str| ObjectPath::from(format!("a/prefix/{object}"));
        // A segment that is gone: its rows are unknown, the store opens.
        let segment = manifest.shards[0].segments[0].object.clone();
        let kept = place.inner.get(&path(&segment)).await.unwrap().bytes().await.unwrap();
        place.inner.delete(&path(&segment)).await.unwrap();
        let to = dir.path().join("without-segment");
        let done = restored(&from, Moment::Newest, &to).await.unwrap().0;
        assert_eq!(done.lost.len(), 1);
        let text = done.lost[0].to_string();
        assert!(text.contains(&segment) && text.contains("missing; it held bytes 0 to"), "{text}");
        assert_eq!(verify(&from, &manifest, &Nothing).await.unwrap().len(), 1);
        let (all, want) = (all_in(&to), subject.all());
        let same = all.iter().zip(&want).filter(|(one, other)| one == other).count();
        assert!(same > 0 && same < want.len(), "{same}");
        place.inner.put(&path(&segment), kept.into()).await.unwrap();
        // Damaged log: what it held is missing, and the store says so.
        let chunk = manifest.shards[1].log.last().unwrap().object.clone();
        place.inner.put(&path(&chunk), b"RNDLOBJ1 torn".to_vec().into()).await.unwrap();
        let to = dir.path().join("without-log");
        let done = restored(&from, Moment::Newest, &to).await.unwrap().0;
        assert!(done.lost[0].to_string().contains("of the log of shard 1"), "{}", done.lost[0]);
        Subject::open(&to).all();
        assert!(
            std::fs::read_dir(to.join("shard-001"))
                .unwrap()
                .any(|entry| { entry.unwrap().file_name().to_string_lossy().starts_with("damaged-") })
        );
        // Without a checkpoint there is no shard: nothing is left that looks like a store.
        let checkpoint = manifest.shards[0].checkpoint.clone().unwrap().object;
        place.inner.delete(&path(&checkpoint)).await.unwrap();
        let to = dir.path().join("without-checkpoint");
        let failed = restored(&from, Moment::Newest, &to).await.unwrap_err();
        assert!(
            matches!(&failed, RestoreError::Essential(lost) if lost.to_string().contains(&checkpoint)),
            "{failed}"
        );
        assert!(!to.exists());
    });
}

#[test]
fn a_stale_or_lost_hint_and_lost_manifests_do_not_hide_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let subject = Subject::open(dir.path());
    subject.create_all();
    let place = Faulty::new(1, Faults { hiding: 100, ..Faults::default() });
    block_on(async {
        let mut uploader = Uploader::new(objects(&place, None));
        let hint = ObjectPath::from("a/prefix/newest");
        let mut stale = None;
        for step in 0..12 {
            subject.step(step);
            round(&mut uploader, &subject).await.unwrap();
            if step == 2 {
                stale = Some(place.inner.get(&hint).await.unwrap().bytes().await.unwrap());
            }
        }
        let number = async || newest(&objects(&place, None)).await.unwrap().map(|manifest| manifest.number);
        assert_eq!(number().await, Some(12));
        place.inner.put(&hint, stale.unwrap().into()).await.unwrap();
        assert_eq!(number().await, Some(12));
        place.inner.delete(&hint).await.unwrap();
        assert_eq!(number().await, Some(12));
        place.inner.delete(&ObjectPath::from("a/prefix/manifests/0000000000000012")).await.unwrap();
        assert_eq!(number().await, Some(11));
    });
}

#[test]
fn clocks_may_differ() {
    const DAY: i64 = 86_400;
    for ahead in [-400 * DAY, -2 * DAY, 0, 5 * DAY / 2, 400 * DAY] {
        let dir = tempfile::tempdir().unwrap();
        let subject = Subject::open(dir.path());
        subject.create_all();
        let place = Faulty::new(1, Faults { ahead, ..Faults::default() });
        block_on(async {
            let from = objects(&place, None);
            let mut uploader = Uploader::new(objects(&place, None));
            (0..12).for_each(|step| subject.step(step));
            round(&mut uploader, &subject).await.unwrap();
            // A round that is cut off: what it has sent is not sent again by another process.
            subject.step(12);
            subject.store.checkpoint().unwrap();
            place.puts.store(0, Ordering::Relaxed);
            place.dead_after.store(2, Ordering::Relaxed);
            let _ = tokio::time::timeout(Duration::from_millis(300), round(&mut uploader, &subject)).await;
            place.dead_after.store(u64::MAX, Ordering::Relaxed);
            place.is_dead.store(false, Ordering::Relaxed);
            let before = names(&place).await.len();
            place.puts.store(0, Ordering::Relaxed);
            round(&mut Uploader::new(objects(&place, None)), &subject).await.unwrap();
            let new = names(&place).await.len() - before;
            let puts = place.puts.load(Ordering::Relaxed) as usize;
            assert!(puts <= new + 2, "{puts} requests for {new} objects, {ahead} s ahead");
            // What was sent right now is young by the server's clock, and stays.
            let orphan = put_content(&from, b"of a round that is not complete".to_vec()).await;
            let now_ms = (START + 400) * 1000;
            let done = prune(&from, &Keep::default(), pruning(GRACE, now_ms)).await.unwrap();
            assert_eq!(done.objects, 0, "{ahead} s ahead");
            from.get(&orphan).await.unwrap();
            let differs = clock_differs(&from, std::time::SystemTime::now()).await.unwrap();
            assert_eq!(differs.is_some(), ahead != 0, "{differs:?} with {ahead}");
            let to = dir.path().join("copy");
            restored(&from, Moment::Newest, &to).await.unwrap();
            assert_eq!(all_in(&to), subject.all());
        });
    }
}

#[test]
fn a_restore_that_does_not_fit_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let subject = Subject::open(&dir.path().join("store"));
    subject.create_all();
    (0..60).for_each(|step| subject.step(step));
    let place = Faulty::new(1, Faults::default());
    block_on(async {
        let mut uploader = Uploader::new(objects(&place, None));
        round(&mut uploader, &subject).await.unwrap();
        let manifest = uploader.last().unwrap();
        let files: u64 = manifest.files().map(|file| file.bytes).sum();
        let bytes =
            files + manifest.shards.iter().map(|shard| shard.log_end.1 - shard.log_from.1).sum::<u64>();
        // Far too small; and large enough for the bytes, but not for the ends of their blocks.
        for (size, is_refused) in [(4 << 10, true), (bytes + (4 << 10), false)] {
            let at = dir.path().join("small");
            let Some(_mounted) = testkit::SmallDisk::mount(&at, &size.to_string()) else { return };
            let failed = restored(&objects(&place, None), Moment::Newest, &at).await.unwrap_err();
            assert!(
                matches!(&failed, RestoreError::Disk(error) if error.kind() == std::io::ErrorKind::StorageFull),
                "{failed}"
            );
            assert_eq!(failed.to_string().contains("it takes"), is_refused, "{failed}");
            assert_eq!(std::fs::read_dir(&at).unwrap().count(), 0, "{failed}");
        }
    });
}

/// It would begin from nothing, and prune what it does not know.
#[test]
fn a_backup_under_another_key_is_refused_and_stays() {
    let (_dir, subject, place) = fresh();
    block_on(async {
        let mut uploader = Uploader::new(objects(&place, Some(1)));
        subject.step(0);
        round(&mut uploader, &subject).await.unwrap();
        let there = names(&place).await;
        let mut other = Uploader::new(objects(&place, Some(2)));
        let refused = round(&mut other, &subject).await.unwrap_err().to_string();
        assert!(refused.contains("another key"), "{refused}");
        let pruned =
            prune(&objects(&place, Some(2)), &Keep::default(), pruning(Duration::ZERO, i64::MAX / 2)).await;
        assert!(pruned.unwrap_err().to_string().contains("another key"));
        assert_eq!(names(&place).await, there);
        round(&mut Uploader::new(objects(&place, Some(1))), &subject).await.unwrap();
    });
}

#[test]
fn a_restored_store_that_goes_another_way_has_its_own_log() {
    let (dir, subject, place) = fresh();
    block_on(async {
        let mut uploader = Uploader::new(objects(&place, None));
        for step in 0..4 {
            subject.step(step);
            round(&mut uploader, &subject).await.unwrap();
        }
        let to = dir.path().join("restored");
        let from = objects(&place, None);
        let old = subject.all();
        restored(&from, Moment::Time((START + 15) * 1000), &to).await.unwrap();
        let other = Subject::open(&to);
        let replica = other.store.replica().unwrap();
        assert_eq!((replica.role(), replica.history().epoch()), (Role::Primary, 1));
        // As long as the other log, with other values.
        for step in 7..11 {
            other.step(step);
        }
        let mut uploader = Uploader::new(objects(&place, None));
        round(&mut uploader, &other).await.unwrap();
        let again = dir.path().join("again");
        let done = restored(&from, Moment::Newest, &again).await.unwrap().0;
        assert!(done.lost.is_empty());
        assert_eq!(all_in(&again), other.all());
        // Between the last moment of the old log and the first of the other one, it is the old one.
        let between = dir.path().join("between");
        let time = Moment::Time((START + 65) * 1000);
        let (_, found) = restored(&from, time, &between).await.unwrap();
        assert!(found.is_earlier && all_in(&between) == old);
        // What goes on from there is later than both; the old store may not go on with this backup.
        assert_eq!(Subject::open(&between).store.replica().unwrap().history().epoch(), 2);
        subject.step(12);
        let refused = round(&mut Uploader::new(objects(&place, None)), &subject).await;
        assert!(matches!(refused, Err(RoundError::Replaced(1))), "{refused:?}");
        // Another store may not write here.
        let stranger = Subject::open(&dir.path().join("stranger"));
        let refused = round(&mut Uploader::new(objects(&place, None)), &stranger).await;
        assert!(matches!(refused, Err(RoundError::OtherStore(_))), "{refused:?}");
    });
}

#[test]
fn an_idle_store_sends_nothing_and_a_quiet_one_has_few_chunks() {
    let (dir, subject, place) = fresh();
    block_on(async {
        let mut uploader = Uploader::new(objects(&place, None));
        round(&mut uploader, &subject).await.unwrap();
        let puts = place.puts.load(Ordering::Relaxed);
        round(&mut uploader, &subject).await.unwrap();
        assert_eq!(place.puts.load(Ordering::Relaxed), puts);
        for step in (0..1200).filter(|step| step % 6 != 5) {
            subject.step(step);
            round(&mut uploader, &subject).await.unwrap();
        }
        let most = uploader.last().unwrap().shards.iter().map(|shard| shard.log.len()).max().unwrap();
        assert!(most < 100, "{most} chunks after 1000 rounds");
        let to = dir.path().join("copy");
        restored(&objects(&place, None), Moment::Newest, &to).await.unwrap();
        assert_eq!(all_in(&to), subject.all());
    });
}

#[test]
fn long_files_go_in_parts() {
    let place = Faulty::new(1, Faults::default());
    block_on(async {
        let objects = objects(&place, Some(3));
        let part = |byte: u8| vec![byte; PART_BYTES as usize];
        let mut names = Vec::new();
        for plain in [part(1), part(2), vec![3; 5]] {
            names.push(put_content(&objects, plain).await);
        }
        let list = put_content(&objects, roundel_backup::parts::encode(&names)).await;
        let bytes = 2 * PART_BYTES + 5;
        assert_eq!(roundel_backup::parts::names(&objects, &list, bytes).await.unwrap(), names);
        assert_eq!(objects.get(&names[1]).await.unwrap(), part(2));
        // Under another name, a content is not one.
        let stored = place.inner.get(&ObjectPath::from(format!("a/prefix/{}", names[0]))).await.unwrap();
        let path = ObjectPath::from(format!("a/prefix/{}", names[1]));
        place.inner.put(&path, stored.bytes().await.unwrap().into()).await.unwrap();
        assert!(objects.get(&names[1]).await.unwrap_err().is_loss());
    });
}

#[test]
fn limits_are_kept() {
    let place = Faulty::new(1, Faults::default());
    block_on(async {
        let limits = roundel_backup::objects::Limits {
            bytes_per_second: Some(1 << 20),
            requests_per_second: Some(100),
        };
        let location = roundel_backup::location::Location {
            store: place.clone() as Arc<dyn ObjectStore>,
            prefix: String::new(),
        };
        let objects =
            roundel_backup::objects::Objects::new(location, roundel_backup::seal::Keys::none(), limits);
        let begun = tokio::time::Instant::now();
        for at in 0..4u8 {
            put_content(&objects, vec![at; 256 << 10]).await;
        }
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(750) && took < Duration::from_secs(5), "{took:?}");
    });
}

#[test]
fn the_daemons_own_files_come_back_and_lead_nowhere_else() {
    use roundel_backup::own::{OwnFile, OwnList, OwnPaths};
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let subject = Subject::open(&root);
    subject.create_all();
    std::fs::create_dir(root.join("graphs")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
    write("tokens", "one");
    write("graphs/a.view", "a");
    write("graphs/b.graph", "b");
    write("adopted-020000.tar.zst", "archive");
    let large = std::fs::File::create(root.join("assignments")).unwrap();
    large.set_len((16 << 20) + 1).unwrap();
    let place = Faulty::new(1, Faults::default());
    block_on(async {
        let from = objects(&place, Some(1));
        let mut uploader = Uploader::new(objects(&place, Some(1))).with_own(OwnPaths::in_store(&root));
        round(&mut uploader, &subject).await.unwrap();
        let puts = place.puts.load(Ordering::Relaxed);
        round(&mut uploader, &subject).await.unwrap();
        assert_eq!(place.puts.load(Ordering::Relaxed), puts);
        // A change, and a deletion.
        write("tokens", "two");
        std::fs::remove_file(root.join("graphs/a.view")).unwrap();
        round(&mut uploader, &subject).await.unwrap();
        prune(&from, &Keep::default(), pruning(Duration::ZERO, i64::MAX / 2)).await.unwrap();
        let manifest = newest(&from).await.unwrap().unwrap();
        assert_eq!(verify(&from, &manifest, &Nothing).await.unwrap(), []);
        let to = dir.path().join("restored");
        let own = restored(&from, Moment::Newest, &to).await.unwrap().0.own;
        assert_eq!(own.written, ["graphs/b.graph", "tokens"]);
        let left: Vec<&str> = own.left_out.iter().map(|left| left.name.as_str()).collect();
        assert_eq!(left, ["adopted-020000.tar.zst", "assignments"]);
        assert_eq!(std::fs::read(to.join("tokens")).unwrap(), b"two");
        assert!(!to.join("graphs/a.view").exists());
        assert_eq!(all_in(&to), subject.all());
        // A manifest of someone else's making.
        let object = put_content(&from, b"x".to_vec()).await;
        let names = ["../out", "STORE", "graphs/../../out.view", "/out.view", "tokens"];
        let file = |name: &&str| OwnFile { name: name.to_string(), bytes: 1, object: object.clone() };
        let list = OwnList { files: names.iter().map(file).collect(), left_out: Vec::new() };
        let own = Some(put_content(&from, serde_json::to_vec(&list).unwrap()).await);
        let number = manifest.number + 1;
        let hostile = BackupManifest { number, own, ..manifest };
        from.put(&BackupManifest::name(number), hostile.encode().unwrap()).await.unwrap();
        let to = dir.path().join("hostile");
        let own = restored(&from, Moment::Newest, &to).await.unwrap().0.own;
        assert_eq!((own.written.len(), own.left_out.len()), (1, 4));
        assert!(!dir.path().join("out").exists() && !dir.path().join("out.view").exists());
        assert_eq!(all_in(&to), subject.all());
    });
}

#[test]
fn a_restored_store_is_not_its_original_for_a_follower() {
    use store::replication::{Comparison, Role};
    let (dir, subject, place) = fresh();
    block_on(async {
        let mut uploader = Uploader::new(objects(&place, None));
        subject.step(0);
        round(&mut uploader, &subject).await.unwrap();
        let to = dir.path().join("restored");
        restored(&objects(&place, None), Moment::Newest, &to).await.unwrap();
        let copy = Subject::open(&to);
        let (original, copy) = (subject.store.replica().unwrap(), copy.store.replica().unwrap());
        assert_eq!((copy.role(), copy.history().epoch()), (Role::Primary, 1));
        // A follower with all that was backed up goes on; one that has more is refused.
        let same = copy.compare(0, &original.ends().unwrap()).unwrap();
        assert!(!matches!(same, Comparison::Diverged { .. }), "{same:?}");
        subject.step(1);
        let more = copy.compare(0, &original.ends().unwrap()).unwrap();
        assert!(matches!(more, Comparison::Diverged { .. }), "{more:?}");
    });
}
