//! Rows for graphs: from files, from daemons, and from the stores that placeholders point to.

use std::error::Error;

use graph::plan::Request;
use rrd::fetch::FetchRows;

use crate::Tool;
use crate::failure::Failure;
use crate::target::Policy;
use crate::verb::fetch::rows;

/// RRDtool's text for a DEF that needs a callback when none is registered.
const NO_CALLBACK: &str =
    "use rrd_fetch_cb_register to register your callback prior to calling rrd_fetch_fn_cb";

/// A source of rows from files, daemons, and the stores that placeholders point to.
pub(crate) struct Source<'t> {
    pub(crate) tool: &'t mut Tool,
    /// The daemon for DEFs that name none.
    pub(crate) daemon: Option<Vec<u8>>,
}

impl graph::plan::Rows for Source<'_> {
    fn fetch(&mut self, request: &Request) -> Result<FetchRows, Box<dyn Error + Send + Sync>> {
        if request.file.starts_with(b"cb//") {
            let callback = self.tool.callback.ok_or_else(|| Failure::new(NO_CALLBACK))?;
            return Ok(callback(request)?);
        }
        let daemon = request.daemon.as_deref().or(self.daemon.as_deref());
        Ok(rows(self.tool, Policy::READ, &request.file, daemon, &request.fetch)?)
    }
}
