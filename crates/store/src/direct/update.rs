//! Updates in place.
//!
//! Reads the header once, steps through all arguments in memory, then writes: completed rows, seasons, and
//! in one piece the live part that makes them count. A kill between leaves the state before the update;
//! rows already written lie where the oldest ones of full archives were. Cost of one value that completes
//! `n` rows of different archives: `open` and `n` + 1 times pwrite.

use std::path::Path;
use std::sync::Arc;

use rrd::definition::Definition;
use rrd::live::CdpPrep;
use rrd::reading::{AtTime, Reading, Template, parse_word};
use rrd::time::Timestamp;
use rrd::update::{RowSink, UpdateError, step};

use crate::direct::open::Opened;
use crate::direct::report::{UpdateReport, WrittenRow};
use crate::direct::{DirectError, Locking};
use crate::files::apply::{Loaded, Workspace};
use crate::files::medium::Access;

/// How an update is to be done.
#[derive(Clone, Copy)]
pub struct UpdateOptions<'a> {
    /// What to do about a locked file.
    pub locking: Locking,
    /// The time that `N` and negative times count from, in seconds.
    pub now: Timestamp,
    /// What understands the times of `AT-time@value` arguments.
    pub at_time: &'a AtTime<'a>,
    /// Names of the sources that values are for (`--template`).
    pub template: Option<&'a [u8]>,
    /// Pass over arguments at or before the last update (`--skip-past-updates`).
    pub skip_past: bool,
    /// Whether the report lists the rows written (`updatev`).
    pub collect_rows: bool,
}

/// Updates a file by `arguments`, each `time:value:value...`.
///
/// # Errors
/// What [`super::ReadFile::open`] says; [`DirectError::Template`] (nothing has changed);
/// [`DirectError::Update`] (the arguments before the refused one are in the file); [`DirectError::Io`].
pub fn update<A: AsRef<[u8]>>(
    path: &Path,
    arguments: &[A],
    options: &UpdateOptions<'_>,
) -> Result<UpdateReport, DirectError> {
    let mut work = Workspace::default();
    let mut opened = Opened::open(path, Access::Write, options.locking)?;
    let header = opened.header(None, &mut work.bytes)?;
    let definition = Arc::clone(&header.geometry.definition);
    let template = options.template.map(|text| Template::parse(text, &definition)).transpose();
    let template = template.map_err(DirectError::Template)?;
    let mut loaded = opened.load(header)?;
    let mut report = UpdateReport::default();
    let refused = apply(&mut loaded, &mut work, arguments, template.as_ref(), options, &mut report);
    if report.applied > 0 {
        loaded.write(&mut work, opened.file()).map_err(|error| DirectError::io(path, error))?;
    }
    if options.collect_rows {
        report.definition = Some(definition);
    }
    match refused {
        Ok(()) => Ok(report),
        Err(error) => Err(DirectError::Update { path: path.to_path_buf(), error }),
    }
}

/// Steps through the arguments up to the first that is refused.
fn apply<A: AsRef<[u8]>>(
    loaded: &mut Loaded,
    work: &mut Workspace,
    arguments: &[A],
    template: Option<&Template>,
    options: &UpdateOptions<'_>,
    report: &mut UpdateReport,
) -> Result<(), UpdateError> {
    work.rows.clear();
    let geometry = Arc::clone(&loaded.header.geometry);
    let definition = &*geometry.definition;
    let mut values = Vec::new();
    let mut result = Ok(());
    for argument in arguments {
        let head = geometry.shape.split_mut(&mut loaded.header.words);
        let sink = work.rows.sink(&geometry.layout, &mut loaded.header.current_rows);
        let listed = options.collect_rows.then_some(&mut report.rows);
        let mut sink = Listing { sink, definition, listed };
        let outcome =
            parse_word(argument.as_ref(), options.now, definition, template, options.at_time, &mut values)
                .and_then(|reading| {
                    let reading = Reading { time: reading.time, values: reading.values };
                    let seasons = &mut loaded.seasons;
                    step(definition, &geometry.shape, head, seasons, &reading, &mut work.scratch, &mut sink)
                });
        match outcome {
            Ok(()) => report.applied += 1,
            Err(error) if options.skip_past && error.is_past() => report.skipped += 1,
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    loaded.place_seasons();
    result
}

/// Passes rows on and lists them.
struct Listing<'a, S> {
    sink: S,
    definition: &'a Definition,
    listed: Option<&'a mut Vec<WrittenRow>>,
}

impl<S: RowSink> RowSink for Listing<'_, S> {
    fn rows(&mut self, rra: usize, first_row: i64, count: u64, cells: &[CdpPrep]) {
        self.sink.rows(rra, first_row, count, cells);
        let Some(listed) = &mut self.listed else { return };
        let span = self.definition.rra[rra].span(self.definition.step);
        for index in 0..count as i64 {
            // Compat: RRDtool stamps all rows of one archive but the first a row too late.
            let row = first_row + index + i64::from(index > 0);
            let value = |cell: &CdpPrep| if index == 0 { cell.primary } else { cell.secondary };
            let values = cells.iter().map(value).collect();
            listed.push(WrittenRow { time: rrd::grid::row_time(row, span), rra, values });
        }
    }
}
