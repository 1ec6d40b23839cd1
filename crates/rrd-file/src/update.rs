//! Updates in place.
//!
//! Reads the header once, applies all arguments in memory, then writes: completed rows, seasons, and in one
//! piece the live part that makes them valid. A kill in between leaves the state before the update; rows
//! already written have replaced the oldest ones of full archives. Cost of one value that completes `n` rows
//! of different archives: `open` plus `n` + 1 pwrite calls.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use rrd::reading::{AtTime, Template, parse_argument};
use rrd::time::Timestamp;
use rrd::update::{UpdateError, Updater};

use crate::apply::{Loaded, Workspace};
use crate::file::Access;
use crate::geometry::Geometry;
use crate::open::Opened;
use crate::{Error, Locking, Volume};
use rrd::updatev::RowRecorder;
use rrd::updatev::UpdateReport;

thread_local! {
    /// Memory that the thread's next update reuses, and the geometry of the last file, which the next one
    /// most often shares.
    static WORK: RefCell<(Workspace, Option<Arc<Geometry>>)> = RefCell::default();
}

/// Options of an update.
#[derive(Clone, Copy)]
pub struct UpdateOptions<'a> {
    /// What to do about a locked file.
    pub locking: Locking,
    /// The time that `N` stands for and that negative times are relative to, in seconds.
    pub now: Timestamp,
    /// Parses the times of `AT-time@value` arguments.
    pub at_time: &'a AtTime<'a>,
    /// Names of the data sources that the values belong to (`--template`).
    pub template: Option<&'a [u8]>,
    /// Skip arguments at or before the last update (`--skip-past-updates`).
    pub skip_past: bool,
    /// Whether the report lists the rows written (`updatev`).
    pub collect_rows: bool,
}

/// A plain update: absolute times only, no template, and a locked file is refused.
impl Default for UpdateOptions<'_> {
    fn default() -> Self {
        UpdateOptions {
            locking: Locking::Try,
            now: Timestamp::whole(0),
            at_time: &|_| Err("only absolute times are taken here".to_string()),
            template: None,
            skip_past: false,
            collect_rows: false,
        }
    }
}

/// Updates a file by `arguments`, each `time:value:value...`.
///
/// # Errors
/// Those of [`super::ReadFile::open`]; [`Error::Template`] (nothing has changed); [`Error::Update`] (the
/// arguments before the refused one are in the file); [`Error::Io`].
pub fn update<A: AsRef<[u8]>>(
    path: &Path,
    arguments: &[A],
    options: &UpdateOptions<'_>,
) -> Result<UpdateReport, Error> {
    update_on(&Volume::System, path, arguments, options)
}

/// As [`update`], on any volume.
///
/// # Errors
/// As [`update`].
pub fn update_on<A: AsRef<[u8]>>(
    volume: &Volume,
    path: &Path,
    arguments: &[A],
    options: &UpdateOptions<'_>,
) -> Result<UpdateReport, Error> {
    let mut work = WORK.take();
    let (memory, hint) = &mut work;
    let result = update_with(memory, hint, (volume, path), arguments, options);
    WORK.set(work);
    result
}

fn update_with<A: AsRef<[u8]>>(
    work: &mut Workspace,
    hint: &mut Option<Arc<Geometry>>,
    (volume, path): (&Volume, &Path),
    arguments: &[A],
    options: &UpdateOptions<'_>,
) -> Result<UpdateReport, Error> {
    let mut opened = Opened::open(volume, path, Access::Write, options.locking)?;
    let header = opened.header(hint.as_ref(), &mut work.bytes)?;
    if !hint.as_ref().is_some_and(|hint| Arc::ptr_eq(hint, &header.geometry)) {
        *hint = Some(Arc::clone(&header.geometry));
    }
    let definition = Arc::clone(&header.geometry.definition);
    let template = options.template.map(|text| Template::parse(text, &definition)).transpose();
    let template = template.map_err(Error::Template)?;
    let mut loaded = opened.load(header)?;
    let mut report = UpdateReport::default();
    let (changed, refused) = apply(&mut loaded, work, arguments, template.as_ref(), options, &mut report);
    if changed {
        loaded.write(work, opened.file()).map_err(|error| Error::io(path, error))?;
    }
    if options.collect_rows {
        report.definition = Some(definition);
    }
    match refused {
        Ok(()) => Ok(report),
        Err(error) => Err(Error::Update { path: path.to_path_buf(), error, report: Box::new(report) }),
    }
}

/// Applies the arguments up to the first that is refused; also returns whether anything has changed.
///
/// # Errors
/// Why an argument was refused.
pub fn apply<A: AsRef<[u8]>>(
    loaded: &mut Loaded,
    work: &mut Workspace,
    arguments: &[A],
    template: Option<&Template>,
    options: &UpdateOptions<'_>,
    report: &mut UpdateReport,
) -> (bool, Result<(), UpdateError>) {
    work.rows.clear();
    let geometry = Arc::clone(&loaded.header.geometry);
    let (definition, shape) = (&*geometry.definition, &geometry.shape);
    let head = shape.split_mut(&mut loaded.header.words);
    let sink = work.rows.sink(&geometry.layout, &mut loaded.header.current_rows);
    let sink = RowRecorder::new(sink, definition, options.collect_rows.then_some(&mut report.rows));
    let (seasons, scratch) = (&mut loaded.seasons, &mut work.scratch);
    let mut updater = Updater { definition, shape, head, seasons, scratch, sink };
    let mut values = Vec::new();
    let (mut changed, mut result) = (false, Ok(()));
    for argument in arguments {
        let word = argument.as_ref();
        let refused =
            match parse_argument(word, options.now, definition, template, options.at_time, &mut values) {
                Ok(reading) => updater
                    .apply_unsmoothed(&reading)
                    .inspect_err(|error| changed |= updater.keep_refused(&reading, error)),
                Err(error) => Err(error),
            };
        match refused {
            Ok(()) => {
                report.applied += 1;
                changed = true;
            }
            Err(error) if options.skip_past && error.is_past() => report.skipped += 1,
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    updater.sink.end_span();
    // Compat: after a refused argument nothing is smoothed, now or later.
    match result {
        Ok(()) => updater.smooth(),
        Err(_) => updater.forget_smoothing(),
    }
    loaded.place_seasons();
    (changed, result)
}
