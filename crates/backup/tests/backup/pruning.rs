//! What pruning removes, and what it must not: with crashes of it, places that lie, and another one at the same time.

use roundel_backup::objects::Objects;

use super::*;

/// What the moments of these times are, RRD by RRD, and the ones that are said to be earlier.
async fn moments(objects: &Objects, dir: &std::path::Path, steps: i64) -> Vec<(Vec<String>, bool)> {
    let mut moments = Vec::new();
    for step in 0..steps {
        let to = dir.join(format!("{}-{step}", std::fs::read_dir(dir).unwrap().count()));
        let time = Moment::Time((START + 10 * step + 5) * 1000);
        let (restored, found) = restored(objects, time, &to).await.unwrap();
        assert!(restored.lost.is_empty(), "step {step}: {:?}", restored.lost);
        moments.push((all_in(&to), found.is_earlier));
    }
    moments
}

#[test]
fn a_manifest_that_is_missing_for_a_moment_is_not_gone() {
    const GRACE: Duration = Duration::from_hours(24);
    // In the middle, and the newest.
    for hidden in [4, 8] {
        let (dir, subject, place) = fresh();
        block_on(async {
            send_moments(&place, &subject, 8).await;
            let from = objects(&place, None);
            let before = moments(&from, dir.path(), 8).await;
            let keep = Keep::parse("10y all").unwrap();
            let pruning = pruning(GRACE, (START + 400) * 1000);
            place.pass(2 * GRACE);
            place.hide(&BackupManifest::name(hidden));
            let refused = prune(&from, &keep, pruning).await.unwrap_err().to_string();
            assert!(refused.contains(&BackupManifest::name(hidden)), "{refused}");
            place.show_all();
            assert_eq!(moments(&from, dir.path(), 8).await, before);
            // It was there meanwhile.
            let kept = prune(&from, &keep, pruning).await.unwrap();
            assert_eq!((kept.kept, kept.manifests, kept.objects), (8, 0, 0));
            place.pass(2 * GRACE);
            place.hide(&BackupManifest::name(hidden));
            prune(&from, &keep, pruning).await.unwrap_err();
            // A backup that goes on meanwhile does not take its number.
            let mut other = Uploader::new(objects(&place, None));
            subject.step(8);
            round(&mut other, &subject).await.unwrap();
            place.show_all();
            assert_eq!(newest(&from).await.unwrap().unwrap().number, 9);
            assert_eq!(moments(&from, dir.path(), 8).await, before);
            let kept = prune(&from, &keep, pruning).await.unwrap().kept;
            // One that stays away is gone.
            place.hide(&BackupManifest::name(hidden));
            prune(&from, &keep, pruning).await.unwrap_err();
            place.pass(2 * GRACE);
            let done = prune(&from, &keep, pruning).await.unwrap();
            assert!(done.kept == kept - 1 && done.objects > 0, "{done:?}");
        });
    }
}

/// A quiet store has one checkpoint, or none, for days.
#[test]
fn moments_without_a_checkpoint_between_them_outlive_pruning() {
    for has_checkpoint in [false, true] {
        let (dir, subject, place) = fresh();
        block_on(async {
            let from = objects(&place, None);
            let mut uploader = Uploader::new(objects(&place, None));
            let (mut at, mut hold) = (Vec::new(), None);
            for step in 0..12 {
                subject.update(step);
                if has_checkpoint && step == 2 {
                    subject.store.checkpoint().unwrap();
                }
                at.push(subject.all());
                // Some moments lie between two rounds.
                if step % 3 != 1 {
                    let capture = subject.store.capture().unwrap();
                    uploader.round(&capture, None).await.unwrap();
                    drop(hold.replace(capture.into_log_hold()));
                }
                // Which may come at any time.
                if step % 4 == 3 {
                    prune(
                        &from,
                        &Keep::parse("10y all").unwrap(),
                        pruning(Duration::ZERO, (START + 400) * 1000),
                    )
                    .await
                    .unwrap();
                    uploader.forget();
                }
            }
            let manifests = names(&place).await.into_iter().filter(|name| name.contains("/manifests/"));
            assert_eq!(manifests.count(), 1 + usize::from(has_checkpoint));
            let moments = moments(&from, dir.path(), 12).await;
            assert_eq!(moments, at.into_iter().map(|all| (all, false)).collect::<Vec<_>>());
            let early = find(&from, &Moment::Time((START - 1) * 1000)).await.unwrap_err();
            assert_eq!(early, MomentError::TooEarly(START * 1000));
        });
    }
}

#[test]
fn a_crash_of_pruning_leaves_the_moments_that_are_kept() {
    let (dir, subject, place) = fresh();
    block_on(async {
        send_moments(&place, &subject, 8).await;
        let from = objects(&place, None);
        let before = (names(&place).await, moments(&from, dir.path(), 8).await);
        // Of each 40 seconds, one.
        let keep = Keep::parse("10y daily").unwrap();
        let pruning = pruning(Duration::ZERO, (START + 400) * 1000);
        // What it writes fails: nothing has gone.
        place.set(Faults { full: 100, ..Faults::default() });
        prune(&from, &keep, pruning).await.unwrap_err();
        place.set(Faults::default());
        assert_eq!((names(&place).await, moments(&from, dir.path(), 8).await), before);
        // It dies at its first deletion, and at its third.
        for deletions in [0, 2] {
            place.deletions.store(deletions, Ordering::Relaxed);
            prune(&from, &keep, pruning).await.unwrap_err();
            place.deletions.store(u64::MAX, Ordering::Relaxed);
            let kept = find(&from, &Moment::Newest).await.unwrap();
            assert_eq!(kept.base.number, 8);
            // As after one that was completed: there is nothing before the one that is kept.
            let early = find(&from, &Moment::Time((START + 5) * 1000)).await.unwrap_err();
            assert!(matches!(early, MomentError::TooEarly(_)), "{early}");
        }
        let done = prune(&from, &keep, pruning).await.unwrap();
        assert!(done.kept == 1 && done.manifests > 0 && done.objects > 0, "{done:?}");
        let manifests = names(&place).await.into_iter().filter(|name| name.contains("/manifests/"));
        assert_eq!(manifests.count(), 1);
        let to = dir.path().join("last");
        restored(&from, Moment::Newest, &to).await.unwrap();
        assert_eq!(all_in(&to), subject.all());
    });
}

#[test]
fn what_was_sent_long_ago_is_looked_for() {
    let (dir, subject, place) = fresh();
    block_on(async {
        let from = objects(&place, None);
        let mut uploader = Uploader::new(objects(&place, None));
        subject.step(0);
        round(&mut uploader, &subject).await.unwrap();
        subject.step(1);
        subject.store.checkpoint().unwrap();
        // Objects go, the manifest does not: for days.
        place.full_for("/manifests/");
        round(&mut uploader, &subject).await.unwrap_err();
        tokio::time::advance(Duration::from_hours(80)).await;
        let swept =
            prune(&from, &Keep::default(), pruning(Duration::ZERO, (START + 400) * 1000)).await.unwrap();
        assert!(swept.objects > 0, "{swept:?}");
        place.full_for("-");
        round(&mut uploader, &subject).await.unwrap();
        let manifest = newest(&from).await.unwrap().unwrap();
        assert_eq!(verify(&from, &manifest, &Nothing).await.unwrap(), []);
        let to = dir.path().join("copy");
        restored(&from, Moment::Newest, &to).await.unwrap();
        assert_eq!(all_in(&to), subject.all());
    });
}

#[test]
fn pruning_keeps_what_is_kept() {
    let (dir, subject, place) = fresh();
    block_on(async {
        let mut uploader = Uploader::new(objects(&place, None));
        let mut at = Vec::new();
        for step in 0..40 {
            subject.step(step);
            at.push(subject.all());
            round(&mut uploader, &subject).await.unwrap();
        }
        let from = objects(&place, None);
        let before = names(&place).await.len();
        let now = (START + 400) * 1000;
        let keep = Keep::parse("1h all").unwrap();
        let kept = prune(&from, &keep, pruning(Duration::from_hours(1), now)).await.unwrap();
        // All are younger than an hour: only those go that have less than the last of their base; no object is old enough.
        assert!(kept.manifests > 20 && kept.kept >= 6 && kept.objects == 0, "{kept:?}");
        for step in [6, 13, 21, 30, 39] {
            let to = dir.path().join(format!("time-{step}"));
            let time = Moment::Time((START + 10 * step as i64 + 5) * 1000);
            let (restored, found) = restored(&from, time, &to).await.unwrap();
            assert!(restored.lost.is_empty() && !found.is_earlier);
            assert_eq!(all_in(&to), at[step], "step {step}");
        }
        let swept = prune(&from, &Keep::default(), pruning(Duration::ZERO, now)).await.unwrap();
        assert!(swept.kept == 1 && swept.objects > 10, "{swept:?}");
        assert!(names(&place).await.len() < before / 3);
        let manifest = newest(&from).await.unwrap().unwrap();
        assert_eq!(verify(&from, &manifest, &Nothing).await.unwrap(), []);
        // The backup goes on, with what was removed sent again where it is needed.
        uploader.forget();
        subject.step(40);
        round(&mut uploader, &subject).await.unwrap();
        let to = dir.path().join("newest");
        restored(&from, Moment::Newest, &to).await.unwrap();
        assert_eq!(all_in(&to), subject.all());
        // A manifest that cannot be read might name anything.
        let path = ObjectPath::from("a/prefix/manifests/0000000000000040");
        place.inner.put(&path, b"torn".to_vec().into()).await.unwrap();
        let count = names(&place).await.len();
        assert!(prune(&from, &Keep::default(), pruning(Duration::ZERO, now)).await.is_err());
        assert_eq!(names(&place).await.len(), count);
    });
}

/// Its parts are known by nothing else, and would go with what is not kept.
#[test]
fn pruning_removes_nothing_while_a_list_of_parts_is_lost() {
    let (_dir, subject, place) = fresh();
    block_on(async {
        let mut uploader = Uploader::new(objects(&place, None));
        subject.step(0);
        round(&mut uploader, &subject).await.unwrap();
        subject.step(1);
        round(&mut uploader, &subject).await.unwrap();
        let from = objects(&place, None);
        let mut parts = Vec::new();
        for plain in [vec![1; PART_BYTES as usize], vec![2; 5]] {
            parts.push(put_content(&from, plain).await);
        }
        let list = put_content(&from, roundel_backup::parts::encode(&parts)).await;
        let mut manifest = newest(&from).await.unwrap().unwrap();
        let file =
            BackedFile { number: 99, bytes: PART_BYTES + 5, content: None, object: list.clone(), end: None };
        manifest.shards[0].segments.push(file);
        from.put(&BackupManifest::name(manifest.number), manifest.encode().unwrap()).await.unwrap();
        place.inner.delete(&ObjectPath::from(format!("a/prefix/{list}"))).await.unwrap();
        let before = names(&place).await;
        let now = (START + 400) * 1000;
        let mut pruning = pruning(Duration::ZERO, now);
        let refused = prune(&from, &Keep::default(), pruning).await.unwrap_err().to_string();
        assert!(refused.contains(&list), "{refused}");
        assert_eq!(names(&place).await, before);
        pruning.is_forced = true;
        let done = prune(&from, &Keep::default(), pruning).await.unwrap();
        assert!(done.objects >= 2 && done.kept == 1, "{done:?}");
        assert!(from.get(&parts[0]).await.unwrap_err().is_loss());
    });
}
