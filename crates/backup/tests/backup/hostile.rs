//! Places that others can write to, and names of places that servers write in another way.

use roundel_backup::location::{Access, Location};
use roundel_backup::manifest::look;
use roundel_backup::moments::MomentError;
use roundel_backup::objects::{Limits, ObjectError, Objects};
use roundel_backup::seal::Keys;

use super::*;

/// What makes a manifest one that no store has.
type Spoil = fn(&mut BackupManifest);

const SPOILT: [(&str, Spoil); 10] = [
    ("a file of more bytes than numbers have", |manifest| manifest.shards[0].segments[0].bytes = u64::MAX),
    ("an end that is longer than its file", |manifest| {
        let file = &mut manifest.shards[0].segments[0];
        file.end =
            Some(roundel_backup::manifest::BackedEnd { bytes: file.bytes + 1, object: file.object.clone() });
    }),
    ("a sum of bytes that no disk has", |manifest| {
        let file = BackedFile { bytes: u64::MAX / 2, ..manifest.shards[0].segments[0].clone() };
        manifest.shards[0].segments.extend([file.clone(), file.clone(), file]);
    }),
    ("a log from the last position on", |manifest| manifest.shards[0].log_from = (0, u64::MAX)),
    ("a log up to the last position", |manifest| manifest.shards[1].log_end = (0, u64::MAX)),
    ("logs that no disk has", |manifest| {
        let shard =
            roundel_backup::manifest::BackedShard { log_end: (0, 1 << 52), ..manifest.shards[0].clone() };
        manifest.shards.extend(std::iter::repeat_n(shard, 4096));
    }),
    ("a chunk beyond the last position", |manifest| manifest.shards[1].log[0].from = (0, u64::MAX)),
    ("a chunk of too many bytes", |manifest| manifest.shards[1].log[0].bytes = u64::MAX),
    ("earlier ones without end", |manifest| manifest.earlier = vec![(0, u64::MAX)]),
    ("a version to come", |manifest| manifest.version += 1),
];

#[test]
fn a_manifest_that_no_store_has_is_passed_over() {
    let (dir, subject, place) = fresh();
    block_on(async {
        send_moments(&place, &subject, 3).await;
        let (from, before) = (objects(&place, None), subject.all());
        let good = newest(&from).await.unwrap().unwrap();
        assert!(!good.shards[0].segments.is_empty() && !good.shards[1].log.is_empty());
        for ((what, spoil), step) in SPOILT.into_iter().zip(3..) {
            let mut bad = BackupManifest { number: good.number + 1, ..good.clone() };
            spoil(&mut bad);
            let name = BackupManifest::name(bad.number);
            from.put(&name, bad.encode().unwrap()).await.unwrap();
            let error = BackupManifest::fetch(&from, bad.number).await.unwrap_err();
            assert!(matches!(error, ObjectError::Bad(..)), "{what}: {error}");
            assert_eq!(newest(&from).await.unwrap().unwrap().number, good.number, "{what}");
            assert!(verify(&from, &good, &Nothing).await.unwrap().is_empty(), "{what}");
            let to = dir.path().join(what.replace(' ', "-"));
            restored(&from, Moment::Newest, &to).await.unwrap();
            assert_eq!(all_in(&to), before, "{what}");
            // The daemon goes on beyond it.
            subject.step(step);
            round(&mut Uploader::new(objects(&place, None)), &subject).await.unwrap();
            let next = newest(&from).await.unwrap().unwrap();
            assert!(next.number > bad.number, "{what}");
            from.delete(&BackupManifest::name(next.number)).await.unwrap();
            from.delete(&name).await.unwrap();
            from.put("newest", format!("{}\n", good.number).into_bytes()).await.unwrap();
        }
    });
}

/// What servers and their clients write in another way: empty parts, and bytes that they encode.
#[test]
fn a_place_may_have_any_name() {
    for prefix in ["", "x", "a//b", "a~b/50%", "with space/ü", "#[*]"] {
        let (_dir, subject, place) = fresh();
        let store: Arc<dyn ObjectStore> = place.clone();
        let at = || {
            Objects::new(
                Location { store: store.clone(), prefix: prefix.to_string() },
                Keys::none(),
                Limits::default(),
            )
        };
        block_on(async {
            subject.step(0);
            round(&mut Uploader::new(at()), &subject).await.unwrap();
            let listed = look(&at()).await.unwrap().listed;
            assert_eq!(listed.into_iter().collect::<Vec<_>>(), [1], "{prefix}");
            let objects = at().list("objects").await.unwrap();
            assert!(
                objects.iter().all(|seen| seen.name.starts_with("objects/")),
                "{prefix}: {:?}",
                objects.first()
            );
        });
    }
}

/// One of a gigabyte, which takes no room on the disk, stands where a manifest should be.
#[test]
fn an_object_that_is_too_long_is_not_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let location = Location::open(dir.path().to_str().unwrap(), &Access::default(), true).unwrap();
    let objects = Objects::new(location, Keys::none(), Limits::default());
    let path = dir.path().join(BackupManifest::name(1));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::File::create(path).unwrap().set_len(1 << 30).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(find(&objects, &Moment::Newest)).unwrap_err();
    assert!(matches!(error, MomentError::Object(ObjectError::Bad(..))), "{error}");
}

/// Manifests of which a number is another one: whatever it says, what is made of it is a store or an error.
#[test]
fn no_number_of_a_manifest_causes_a_panic() {
    let (dir, subject, place) = fresh();
    block_on(async {
        send_moments(&place, &subject, 3).await;
        let from = objects(&place, None);
        let good = newest(&from).await.unwrap().unwrap();
        let number = good.number + 1;
        let text = serde_json::to_string(&BackupManifest { number, ..good }).unwrap();
        let is_digit = |at: usize| text.as_bytes()[at].is_ascii_digit();
        // Not those within names of objects.
        let begins = |at: &usize| is_digit(*at) && b":[,".contains(&text.as_bytes()[*at - 1]);
        let mut used = 0;
        for (turn, from_byte) in (1..text.len()).filter(begins).enumerate() {
            let end = (from_byte..text.len()).find(|at| !is_digit(*at)).unwrap();
            let new = [
                "0",
                "1",
                "255",
                "4294967296",
                "4503599627370495",
                "9223372036854775807",
                "18446744073709551615",
            ];
            let changed = format!("{}{}{}", &text[..from_byte], new[turn % new.len()], &text[end..]);
            from.put(&BackupManifest::name(number), zstd::bulk::compress(changed.as_bytes(), 1).unwrap())
                .await
                .unwrap();
            let Ok(manifest) = BackupManifest::fetch(&from, number).await else { continue };
            used += 1;
            let _ = verify(&from, &manifest, &Nothing).await;
            for moment in [Moment::Newest, Moment::Time((START + 15) * 1000)] {
                if find(&from, &moment).await.is_ok() {
                    let to = dir.path().join(format!("turn-{turn}"));
                    let _ = restored(&from, moment, &to).await;
                    std::fs::remove_dir_all(&to).ok();
                }
            }
        }
        assert!(used > 20, "{used}");
    });
}
