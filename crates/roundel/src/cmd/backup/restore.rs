//! `roundel restore --from`: a store, a store that can be served before all of it has come, or `.rrd` files of some RRDs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use backup::later::{Origin, Restoring};
use backup::moments::{Found, Moment, find};
use backup::objects::Objects;
use backup::restore::{RestoreError, Restored, Wanted};
use backup::run::BackupSettings;
use rrd::codec::file::encode;
use store::awaited::{Awaited, AwaitedDisk};
use store::disk::{Disk, RealDisk};
use store::engine::Engine;
use store::name::RrdName;
use store::stripes::{Options, Stripes, home_by_hash};

use super::super::verify::utc;
use super::super::{Result, print};
use super::{Bar, in_runtime};

/// Restores a store to `to`, or files of `names`.
pub(super) fn run(
    settings: &BackupSettings,
    moment: &Moment,
    early: bool,
    names: &[String],
    to: &Path,
) -> Result {
    let origin = Origin::of(settings);
    if names.is_empty() {
        let later = early.then_some(&origin);
        let (restored, found) =
            fetch(settings, &Wanted { moment, shards: None, later, own: true, is_replica: false }, to)?;
        report(&restored, &found, to)?;
        return complain(&restored.lost);
    }
    if early {
        return Err(
            "--early is for a whole store: of single RRDs, only what they need is fetched".to_string()
        );
    }
    if to.exists() {
        return Err(format!("\"{}\" is there already", to.display()));
    }
    // What of the store is needed to read them; it goes afterwards.
    let part = to.with_extension("restoring");
    // Of another run, or of the user: it is not ours to remove.
    if part.exists() {
        return Err(format!("\"{}\" is there already; move it away", part.display()));
    }
    let done = restore_files(settings, moment, &origin, names, (&part, to));
    let _ = std::fs::remove_dir_all(&part);
    done
}

/// Fetches what is wanted at once.
fn fetch(settings: &BackupSettings, wanted: &Wanted<'_>, to: &Path) -> Result<(Restored, Found)> {
    let bar = Bar::new();
    let fetched = in_runtime(async {
        let objects = settings.objects(false)?;
        let found = find(&objects, wanted.moment).await.map_err(|error| error.to_string())?;
        let restored = backup::restore::restore(&objects, &found, wanted, to, &bar).await;
        Ok((restored.map_err(|error: RestoreError| error.to_string())?, found))
    });
    bar.0.finish_and_clear();
    fetched
}

fn report(restored: &Restored, found: &Found, to: &Path) -> Result {
    let base = utc(found.base.time_ms.div_euclid(1000));
    if found.is_earlier {
        print(format!("the log after {base} is not in the backup: this is the store of that moment\n"))?;
    }
    let ends: Vec<String> =
        restored.ends.iter().map(|(generation, offset)| format!("{generation}:{offset}")).collect();
    print(format!(
        "{}: a store, of a backup of {base}, with its log up to {}\n",
        to.display(),
        ends.join(",")
    ))?;
    let own = &restored.own;
    if !own.written.is_empty() {
        print(format!("The daemon's own files are there, too: {}\n", own_names(&own.written)))?;
    }
    for left in &own.left_out {
        print(format!("NOT RESTORED {left}\n"))?;
    }
    match restored.later_bytes {
        0 => Ok(()),
        bytes => print(format!(
            "It can be served now: roundel serve fetches the other {bytes} bytes meanwhile, those first that are read\n"
        )),
    }
}

/// Names of files; those of graphs and views, which may be thousands, only by their number.
fn own_names(written: &[String]) -> String {
    let (graphs, others): (Vec<&String>, Vec<&String>) =
        written.iter().partition(|name| name.starts_with("graphs/"));
    let mut names: Vec<String> = others.into_iter().cloned().collect();
    if !graphs.is_empty() {
        names.push(format!("{} in graphs/, for the directory of [http] templates", graphs.len()));
    }
    names.join(", ")
}

fn complain<T: std::fmt::Display>(lost: &[T]) -> Result {
    for lost in lost {
        print(format!("LOST {lost}\n"))?;
    }
    match lost.len() {
        0 => Ok(()),
        count => Err(format!(
            "{count} objects are lost; all else is restored, and `roundel verify --store` shows what that costs"
        )),
    }
}

/// Restores RRDs as files below `to`, by a part of the store in `part`.
fn restore_files(
    settings: &BackupSettings,
    moment: &Moment,
    origin: &Origin,
    names: &[String],
    (part, to): (&Path, &Path),
) -> Result {
    let found = in_runtime(async {
        let objects = settings.objects(false)?;
        find(&objects, moment).await.map_err(|error| error.to_string())
    })?;
    let some = shards_of(&found, names)?;
    let mut wanted =
        Wanted { moment, shards: some.as_ref(), later: Some(origin), own: false, is_replica: false };
    loop {
        let (restored, found) = fetch(settings, &wanted, part)?;
        let source = Part::open(settings, part)?;
        let chosen = choose(&source.store, names);
        // One that was renamed has another shard than its name says.
        if chosen.is_err() && wanted.shards.take().is_some() {
            drop(source);
            std::fs::remove_dir_all(part).map_err(|error| error.to_string())?;
            continue;
        }
        let chosen = chosen?;
        for name in &chosen {
            extract(&source.store, name, to)?;
        }
        let lost: Vec<String> = restored.lost.iter().map(ToString::to_string).chain(source.lost()).collect();
        let left = source.left().saturating_add(bytes_not_wanted(&found, wanted.shards));
        let fetched = bytes_of_store(&found).saturating_sub(left);
        print(format!(
            "{} RRDs restored below {}, for which {fetched} of {} bytes were fetched\n",
            chosen.len(),
            to.display(),
            bytes_of_store(&found),
        ))?;
        return complain(&lost);
    }
}

/// The shards whose RRDs these names can be; `None`: of any, because some may be directories.
fn shards_of(found: &Found, names: &[String]) -> Result<Option<BTreeSet<u32>>> {
    let identity = store::identity::decode(&found.base.store).map_err(|error| error.to_string())?;
    let is_rrd = |name: &String| name.ends_with(".rrd");
    Ok(names
        .iter()
        .all(is_rrd)
        .then(|| names.iter().map(|name| home_by_hash(&identity, name.as_bytes())).collect()))
}

fn bytes_of_store(found: &Found) -> u64 {
    bytes_not_wanted(found, Some(&BTreeSet::new()))
}

/// Bytes of the shards that are not among these.
fn bytes_not_wanted(found: &Found, wanted: Option<&BTreeSet<u32>>) -> u64 {
    let is_not_wanted = |index: &u32| wanted.is_some_and(|wanted| !wanted.contains(index));
    let shards = found.base.shards.iter().zip(0..).filter(|(_, index)| is_not_wanted(index));
    let bytes = |shard: &backup::manifest::BackedShard| {
        let files = shard.checkpoint.iter().chain(&shard.segments).map(|file| file.bytes);
        files.chain(shard.log.iter().map(|chunk| chunk.bytes)).sum::<u64>()
    };
    shards.map(|(shard, _)| bytes(shard)).sum()
}

/// A store of which only what is read is fetched.
struct Part {
    store: Stripes,
    awaited: Option<Arc<Awaited>>,
}

impl Part {
    fn open(settings: &BackupSettings, directory: &Path) -> Result<Part> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot open what was fetched: {error}");
        let disk = Arc::new(RealDisk::open(directory).map_err(|error| failed(&error))?);
        let awaited = match Restoring::read(directory)? {
            Some(restoring) => {
                let objects: Objects = settings.objects(false)?;
                let of_disk = Arc::clone(&disk) as Arc<dyn Disk>;
                Some(restoring.awaited(of_disk, objects).map_err(|error| failed(&error))?)
            }
            None => None,
        };
        let mut options = Options::default();
        // Nothing is merged: that would fetch everything.
        options.shard.merge_count = 0;
        let through =
            awaited.as_ref().map(|awaited| Arc::new(AwaitedDisk(Arc::clone(awaited))) as Arc<dyn Disk>);
        let store = Stripes::open(through.unwrap_or(disk), &options).map_err(|error| failed(&error))?;
        Ok(Part { store, awaited })
    }

    fn left(&self) -> u64 {
        self.awaited.as_ref().map_or(0, |awaited| awaited.coming().left)
    }

    fn lost(&self) -> Vec<String> {
        self.awaited.as_ref().map_or_else(Vec::new, |awaited| awaited.coming().lost)
    }
}

/// The RRDs of these names, and below directories of these names.
fn choose(store: &Stripes, names: &[String]) -> Result<Vec<Vec<u8>>> {
    let all = store.list(b"", true).map_err(|error| error.to_string())?;
    let mut chosen = Vec::new();
    for word in names {
        let word = word.trim_end_matches('/').as_bytes();
        let below = [word, b"/"].concat();
        let before = chosen.len();
        chosen.extend(all.iter().filter(|name| *name == word || name.starts_with(&below)).cloned());
        if chosen.len() == before {
            return Err(format!(
                "{}: the backup has no RRD of that name then",
                String::from_utf8_lossy(word)
            ));
        }
    }
    Ok(chosen)
}

fn extract(store: &Stripes, name: &[u8], to: &Path) -> Result {
    let text = String::from_utf8_lossy(name).into_owned();
    let failed = |error: &dyn std::fmt::Display| format!("{text}: {error}");
    let rrd_name = RrdName::new(name).map_err(|error| failed(&error))?;
    let rrd = store.read(&rrd_name).map_err(|error| failed(&error))?;
    let rows = store.snapshot(&rrd_name).map_err(|error| failed(&error))?.current_rows;
    let bytes = encode(&rrd, &rows).map_err(|error| failed(&error))?;
    let path = to.join(&text);
    let parent = path.parent().unwrap_or(to);
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::write(&path, bytes))
        .map_err(|error| failed(&error))
}
