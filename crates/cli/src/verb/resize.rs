//! `rrdtool resize`: a copy, `resize.rrd`, in which one archive is longer or shorter.

use rrd::codec::file::FileParts;
use rrd::content::Rrd;
use rrd::definition::{Definition, VERSION_DCOUNTER};
use rrd::live::{Season, UNKNOWN};
use rrd_file::{Existing, WriteFile, write_file_with};

use std::path::Path;

use crate::environment::Environment;
use crate::failure::{Failure, Result};
use crate::target::{Location, Policy, file_failure};
use crate::{Args, Tool};
use args::integer::long;

/// Summary and syntax.
pub const SYNTAX: &str = "resize - a copy in which one archive is longer or shorter\n\n\
    \trrdtool resize filename rranum GROW|SHRINK rows\n";

/// The name of the copy, in the current directory.
const OUTPUT: &[u8] = b"resize.rrd";
/// The most values of one archive: 2 GiB, all in memory while the copy is written. No known use has more.
const VALUES_MAX: u64 = 1 << 28;

/// Writes the copy.
///
/// # Errors
/// In RRDtool's words.
pub fn run(tool: &mut Tool, args: Args<'_>) -> Result {
    if args.first().is_some_and(|name| *name == OUTPUT) {
        return Err(Failure::new("resize.rrd is a reserved name"));
    }
    let &[name, archive, direction, rows] = args else {
        return Err(Failure::new("wrong number of parameters"));
    };
    let grow = match direction {
        b"GROW" => true,
        b"SHRINK" => false,
        _ => return Err(Failure::new("I can only GROW or SHRINK")),
    };
    let rows = long(rows);
    if rows < 1 {
        return Err(Failure::new("Please grow or shrink with at least 1 row"));
    }
    let source = Source::open(tool, name)?;
    let definition = source.definition();
    let index = usize::try_from(long(archive)).ok().filter(|&index| index < definition.rra.len());
    let index = index.ok_or_else(|| Failure::new("no such RRA in this RRD"))?;
    let count = definition.rra[index].row_count;
    let new_count = if grow { count.checked_add(rows as u64) } else { count.checked_sub(rows as u64) };
    let new_count =
        new_count.filter(|&count| count > 0).ok_or_else(|| Failure::new("This RRA is not that big"))?;
    // RRDtool writes a broken copy of version 2 and 5 files, then refuses.
    let version = definition.version;
    if version == VERSION_DCOUNTER || version == 2 {
        return Err(Failure::new(format!("Do not know how to handle RRD version {version:04}")));
    }
    if new_count.saturating_mul(definition.ds.len() as u64) > VALUES_MAX {
        return Err(Failure::new(format!("cannot resize to {new_count} rows: too many to hold")));
    }
    let FileParts { mut rrd, current_rows } = source.content()?;
    resize(&mut rrd, index, new_count as usize);
    // The copy is a file even if the RRD is in a store, unless that name belongs to the store.
    match tool.write_target(Policy::COPY_TO, OUTPUT, None)? {
        Location::Remote(remote) => remote.import(&rrd, Existing::Replace),
        Location::Local(path) => {
            // Compat: each archive keeps the ring position of its newest row, if that position still exists.
            let kept: Vec<u64> = std::iter::zip(&current_rows, &rrd.definition.rra)
                .map(|(&row, archive)| row.min(archive.row_count - 1))
                .collect();
            write_file_with(&path, &rrd, &kept, Existing::Replace).map_err(|error| file_failure(&error))
        }
    }
}

/// The source of a copy.
enum Source {
    /// An open file.
    File(WriteFile),
    /// An RRD of a store.
    Store(Box<Rrd>),
}

impl Source {
    fn open(tool: &mut Tool, name: &[u8]) -> Result<Source> {
        tool.environment.path(name)?;
        tool.environment.path(OUTPUT)?;
        let open = |path: &Path, environment: &Environment| WriteFile::open(path, environment.locking);
        Ok(match tool.locate(Policy::COPY, name, None, open)? {
            Location::Local(file) => Source::File(file),
            Location::Remote(remote) => Source::Store(Box::new(remote.content()?)),
        })
    }

    fn definition(&self) -> &Definition {
        match self {
            Source::File(file) => file.content().definition(),
            Source::Store(rrd) => &rrd.definition,
        }
    }

    /// The whole content. A store's archives have no ring positions: their newest rows are at the end.
    fn content(self) -> Result<FileParts> {
        match self {
            Source::File(file) => file.content().content().map_err(|error| file_failure(&error)),
            Source::Store(rrd) => {
                let current_rows = rrd.definition.rra.iter().map(|archive| archive.row_count - 1).collect();
                Ok(FileParts { rrd: *rrd, current_rows })
            }
        }
    }
}

/// Changes the row count of one archive.
fn resize(rrd: &mut Rrd, index: usize, count: usize) {
    let width = rrd.definition.ds.len();
    rrd.definition.rra[index].row_count = count as u64;
    if let Some(season) = rrd.live.seasons.iter_mut().find(|season| season.rra == index) {
        resize_season(season, width, count);
        return;
    }
    fit(&mut rrd.archives[index], count * width);
}

/// A season is a ring: its oldest row follows its newest. The newest keeps its position, if that still
/// exists.
fn resize_season(season: &mut Season, width: usize, count: usize) {
    let old = season.values.len() / width;
    let oldest = (season.current_row as usize + 1) % old;
    season.values.rotate_left(oldest * width);
    fit(&mut season.values, count * width);
    season.current_row = season.current_row.min(count as u64 - 1);
    season.values.rotate_right((season.current_row as usize + 1) % count * width);
}

/// Drops the oldest values, or adds unknown ones before them.
fn fit(values: &mut Vec<f64>, count: usize) {
    match values.len().checked_sub(count) {
        Some(surplus) => drop(values.drain(..surplus)),
        None => drop(values.splice(..0, std::iter::repeat_n(UNKNOWN, count - values.len()))),
    }
}
