//! `roundel backup` and `roundel restore --from`: what is in a backup, whether it is whole, and stores made of it.

mod restore;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backup::keep::Keep;
use backup::location::Access;
use backup::manifest::{BackupManifest, newest};
use backup::moments::{Moment, numbers};
use backup::objects::{Limits, Objects};
use backup::own::OwnList;
use backup::prune::{GRACE, Pruning, clock_differs, prune};
use backup::restore::Progress;
use backup::run::BackupSettings;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use localtime::Local;
use rrd::when::at::resolve;

use super::verify::utc;
use super::{Result, print};

/// Options of `backup`.
#[derive(Debug, Args)]
#[command(
    about = "List, verify and prune the backup of a store",
    long_about = "The daemon makes a backup by itself where its configuration has a section [backup]; these commands look after \
                  it. roundel restore --from URL makes a store of it."
)]
pub struct Arguments {
    #[command(subcommand)]
    command: BackupCommand,
}

#[derive(Debug, Subcommand)]
enum BackupCommand {
    /// List the moments that are kept whole: all between them, too, can be restored
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Fetch everything that makes up the newest moment, and check it
    Verify {
        #[command(flatten)]
        place: Place,
    },
    /// Remove what is not kept. The daemon does this once a day where [backup] has keep
    Prune {
        #[command(flatten)]
        place: Place,
        /// What is kept: "7d all, 90d daily" [default: keep of the configuration]
        #[arg(long, value_name = "RULES")]
        keep: Option<String>,
        /// Remove even when something that is kept cannot be read, or the server's clock differs: what only that names, goes
        #[arg(long)]
        force: bool,
    },
    /// Make a store of a moment: the same as roundel restore --from
    Restore {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        moment: When,
        /// The directory to make
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        #[command(flatten)]
        pace: Pace,
        /// RRDs and directories, which become .rrd files [default: the whole store]
        names: Vec<String>,
    },
}

/// Where the backup is.
#[derive(Debug, Args)]
struct Place {
    /// The backup: s3://BUCKET/PREFIX, file:///DIR or a directory [default: to of the configuration]
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    #[command(flatten)]
    access: PlaceAccess,
}

/// What a place needs.
#[derive(Debug, Args)]
struct PlaceAccess {
    /// The daemon's configuration, whose section [backup] says what is not given here
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The S3 server's URL [default: AWS_ENDPOINT_URL, else Amazon's]
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Its region [default: AWS_REGION]
    #[arg(long)]
    region: Option<String>,
    /// The file with the key of an encrypted backup
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

/// The moment.
#[derive(Debug, Args)]
struct When {
    /// The moment: as rrdtool's --start, such as "noon yesterday", or seconds since 1970 [default: the newest]
    #[arg(long, value_name = "TIME", conflicts_with = "position")]
    at: Option<String>,
    /// The position in the log: GENERATION:OFFSET for each shard, separated by commas, as roundel backup list shows them
    #[arg(long, value_name = "P")]
    position: Option<String>,
}

/// How soon.
#[derive(Debug, Args)]
struct Pace {
    /// End as soon as the store can be served: what is needed first comes now, and roundel serve fetches the rest while it serves
    #[arg(long)]
    early: bool,
}

/// Options by which `restore` takes a store of a backup.
#[derive(Debug, Args)]
pub struct FromBackup {
    /// Make a store of the backup there: s3://BUCKET/PREFIX, file:///DIR or a directory
    #[arg(long, value_name = "URL", requires = "to", conflicts_with = "missing")]
    from: Option<String>,
    #[command(flatten)]
    moment: When,
    #[command(flatten)]
    pace: Pace,
    #[command(flatten)]
    access: PlaceAccess,
}

impl FromBackup {
    /// Whether a backup is meant, and not the trash.
    pub fn is_given(&self) -> bool {
        self.from.is_some()
    }
}

/// Runs `backup`.
pub fn run(arguments: &Arguments) -> Result {
    match &arguments.command {
        BackupCommand::List { place } => in_runtime(list(&settings(place.from.as_deref(), &place.access)?)),
        BackupCommand::Verify { place } => {
            in_runtime(verify(&settings(place.from.as_deref(), &place.access)?))
        }
        BackupCommand::Prune { place, keep, force } => {
            let settings = settings(place.from.as_deref(), &place.access)?;
            let given = keep.as_deref().map(Keep::parse).transpose()?.or(settings.keep.clone());
            in_runtime(prune_now(&settings, &given.ok_or("give --keep \"7d all, 90d daily\"")?, *force))
        }
        BackupCommand::Restore { place, moment, to, pace, names } => {
            let settings = settings(place.from.as_deref(), &place.access)?;
            restore::run(&settings, &self::moment(moment)?, pace.early, names, to)
        }
    }
}

/// Runs `restore --from`.
pub fn restore(arguments: &FromBackup, names: &[String], to: Option<&str>) -> Result {
    let settings = settings(arguments.from.as_deref(), &arguments.access)?;
    let (moment, early) = (moment(&arguments.moment)?, arguments.pace.early);
    restore::run(&settings, &moment, early, names, Path::new(to.unwrap_or_default()))
}

fn settings(from: Option<&str>, given: &PlaceAccess) -> Result<BackupSettings> {
    let configured = match &given.config {
        Some(path) => server::config::load(path).map_err(|error| error.to_string())?.backup,
        None => None,
    };
    let mut settings = configured.unwrap_or_else(|| BackupSettings {
        to: String::new(),
        access: Access::default(),
        key: None,
        interval: Duration::ZERO,
        limits: Limits::default(),
        keep: None,
        own: None,
    });
    if let Some(from) = from {
        settings.to = from.to_string();
    }
    if settings.to.is_empty() {
        return Err("give --from URL, or --config FILE with a section [backup]".to_string());
    }
    settings.access.endpoint = given.endpoint.clone().or(settings.access.endpoint);
    settings.access.region = given.region.clone().or(settings.access.region);
    settings.key = given.key.clone().or(settings.key);
    Ok(settings)
}

/// The client of the object store is asynchronous.
fn in_runtime<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start: {error}"))?.block_on(work)
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

async fn list(settings: &BackupSettings) -> Result {
    let objects = settings.objects(false)?;
    let (numbers, newest) = numbers(&objects).await.map_err(|error| error.to_string())?;
    let mut last: Option<BackupManifest> = None;
    let mut text = String::new();
    for number in numbers {
        let manifest = match number == newest.number {
            true => newest.clone(),
            false => match BackupManifest::fetch(&objects, number).await {
                Ok(manifest) => manifest,
                Err(error) if error.is_loss() => continue,
                Err(error) => return Err(error.to_string()),
            },
        };
        // Of those with one base, the last has what the others have.
        if let Some(last) = last.filter(|last| last.base != manifest.base) {
            text += &line(&last);
        }
        last = Some(manifest);
    }
    text += &last.as_ref().map_or_else(String::new, line);
    print(text)?;
    own_files(&objects, &newest).await
}

/// Says which files of the daemon's own are in the newest moment, and which are not.
async fn own_files(objects: &Objects, newest: &BackupManifest) -> Result {
    if newest.own.is_none() {
        return print(
            "the daemon's own files (tokens, assignments, graphs, views) are not in the backup: it is of a cluster's partition, or an older version wrote it\n",
        );
    }
    let list = match OwnList::fetch(objects, newest.own.as_deref()).await {
        Ok(list) => list,
        Err(error) if error.is_loss() => {
            return print(format!("which of the daemon's own files are in the backup is lost: {error}\n"));
        }
        Err(error) => return Err(error.to_string()),
    };
    let bytes: u64 = list.files.iter().map(|file| file.bytes).sum();
    let files = list.files.len();
    print(format!(
        "with {files} files of the daemon's own (tokens, assignments, graphs, views) of {bytes} bytes\n"
    ))?;
    list.left_out.iter().try_for_each(|left| print(format!("NOT IN THE BACKUP {left}\n")))
}

/// A moment: its time, its bytes, its positions.
fn line(manifest: &BackupManifest) -> String {
    let bytes: u64 = manifest.files().map(|file| file.bytes).sum();
    let ends: Vec<String> =
        manifest.shards.iter().map(|shard| format!("{}:{}", shard.log_end.0, shard.log_end.1)).collect();
    let time = |ms: i64| utc(ms.div_euclid(1000));
    let from =
        manifest.base_ms.map_or(String::new(), |ms| format!("  and every moment from {} on", time(ms)));
    format!("{}  {bytes} bytes  {}{from}\n", time(manifest.time_ms), ends.join(","))
}

async fn verify(settings: &BackupSettings) -> Result {
    let objects = settings.objects(false)?;
    let manifest = newest(&objects).await.map_err(|error| error.to_string())?;
    let manifest = manifest.ok_or("there is no backup, or no manifest of it can be read")?;
    let bar = Bar::new();
    let lost = backup::restore::verify(&objects, &manifest, &bar).await.map_err(|error| error.to_string())?;
    bar.0.finish_and_clear();
    for lost in &lost {
        print(format!("LOST {lost}\n"))?;
    }
    own_files(&objects, &manifest).await?;
    match lost.len() {
        0 => print(format!("the backup of {} is whole\n", utc(manifest.time_ms.div_euclid(1000)))),
        count => Err(format!(
            "{count} objects of the newest moment are lost; the daemon does not send them again by itself: give [backup] another place (to), \
             where it begins with everything"
        )),
    }
}

async fn prune_now(settings: &BackupSettings, keep: &Keep, is_forced: bool) -> Result {
    let objects = settings.objects(false)?;
    let failed = |error: &dyn std::fmt::Display| {
        format!(
            "{error}; nothing more is removed (--force removes all the same, and with it what only this names)"
        )
    };
    let differs = clock_differs(&objects, SystemTime::now()).await.map_err(|error| failed(&error))?;
    if let Some(differs) = differs.filter(|_| !is_forced) {
        return Err(failed(&format!(
            "this machine's clock and the server's differ by {} seconds",
            differs.as_secs()
        )));
    }
    let pruning = Pruning { grace: GRACE, now_ms: now_ms(), is_forced };
    let done = prune(&objects, keep, pruning).await.map_err(|error| failed(&error))?;
    print(format!(
        "{} manifests kept, {} removed; {} objects of {} bytes removed\n",
        done.kept, done.manifests, done.objects, done.bytes
    ))
}

fn moment(when: &When) -> Result<Moment> {
    if let Some(text) = &when.position {
        let one = |text: &str| {
            let (generation, offset) = text.split_once(':')?;
            Some((generation.parse().ok()?, offset.parse().ok()?))
        };
        let positions: Option<Vec<_>> = text.split(',').map(one).collect();
        return positions
            .map(Moment::Positions)
            .ok_or_else(|| format!("\"{text}\" is not like 0:1234,0:5678"));
    }
    let Some(text) = &when.at else { return Ok(Moment::Newest) };
    let seconds =
        resolve(text, now_ms().div_euclid(1000), &Local).map_err(|error| format!("--at: {error}"))?;
    // All of that second.
    Ok(Moment::Time(seconds * 1000 + 999))
}

/// A progress bar, if there is a terminal.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Bar {
        let bar = ProgressBar::new(0);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left")
        {
            bar.set_style(style);
        }
        Bar(bar)
    }
}

impl Progress for Bar {
    fn total(&self, bytes: u64) {
        self.0.set_length(bytes);
    }

    fn done(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}
