//! What the graph language is given here: rows of files, of daemons, and of the stores behind placeholders;
//! and dates by the C library.

use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use graph::plan::{Fetched, Request};
use graph::print::TimeFormat;

use crate::Tool;
use crate::failure::{Done, Failure};
use crate::target::Target;
use crate::verb::fetch::{Rows, Wish, of_daemon, of_file};

/// Dates by the C library.
pub(crate) struct Dates {
    /// Universal time instead of local time.
    pub(crate) utc: bool,
}

impl TimeFormat for Dates {
    fn strftime(&self, format: &[u8], time: i64) -> Vec<u8> {
        let format = OsStr::from_bytes(format);
        let text =
            if self.utc { localtime::strftime_utc(format, time) } else { localtime::strftime(format, time) };
        text.unwrap_or_default()
    }

    fn decimal_point(&self) -> String {
        localtime::locale::decimal_point()
    }
}

/// RRDtool's text where a DEF wants rows that a program gives, and none has said how.
const NO_CALLBACK: &str =
    "use rrd_fetch_cb_register to register your callback prior to calling rrd_fetch_fn_cb";

/// Rows of files, of daemons, and of the stores behind placeholders.
pub(crate) struct Source<'t> {
    pub(crate) tool: &'t mut Tool,
    /// The daemon of every DEF that names none.
    pub(crate) daemon: Option<Vec<u8>>,
}

impl graph::plan::Rows for Source<'_> {
    fn fetch(&mut self, request: &Request) -> Result<Fetched, Box<dyn Error + Send + Sync>> {
        if request.file.starts_with(b"cb//") {
            let callback = self.tool.callback.ok_or_else(|| Failure::new(NO_CALLBACK))?;
            return Ok(callback(request)?);
        }
        let wish = Wish { cf: request.cf, start: request.start, end: request.end, step: request.step.max(1) };
        let daemon = request.daemon.as_deref().or(self.daemon.as_deref());
        let rows = match self.tool.flushed_target(&request.file, daemon)? {
            Target::File(file) => of_file(&file, wish)?,
            Target::Remote(mut remote) => of_daemon(&mut remote, wish)?,
        };
        Ok(in_seconds(rows)?)
    }
}

fn in_seconds(rows: Rows) -> Done<Fetched> {
    Fetched::in_seconds((rows.start, rows.step), rows.units_per_second, rows.names, rows.values).ok_or_else(
        || Failure::new("cannot use rows of less than a second; ask for a --step of whole seconds"),
    )
}
