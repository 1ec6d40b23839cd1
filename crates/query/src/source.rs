//! Rows for one thread: out of files in place, or asked of a daemon ahead of need.

use std::collections::HashMap;
use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use client::{ClientError, Daemon, Daemons, RemoteRrd};
use graph::plan::{Request, Rows};
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::plan::plan;
use rrd_file::{Locking, ReadFile};

use crate::error::QueryError;

type Failed = Box<dyn Error + Send + Sync>;

/// Where a thread gets its rows.
pub(crate) struct Source<'d> {
    /// The daemon to ask; `None` = files are read.
    daemon: Option<&'d Daemon>,
    /// Those that a DEF names, and those of stores whose placeholders are among the files.
    others: &'d Daemons,
    /// Answers of the daemon that have not been taken yet.
    ahead: HashMap<Request, Result<FetchRows, ClientError>>,
}

impl<'d> Source<'d> {
    /// Rows of the daemon, or of files when there is none.
    pub(crate) fn new(daemon: Option<&'d Daemon>, others: &'d Daemons) -> Self {
        Source { daemon, others, ahead: HashMap::new() }
    }

    /// Asks the daemon at once for all of these that no DEF wants from another; [`Rows::fetch`] gives them
    /// afterwards.
    pub(crate) fn ask_ahead(&mut self, requests: &[Request]) -> Result<(), Failed> {
        let Some(daemon) = self.daemon else { return Ok(()) };
        let own: Vec<Request> = requests.iter().filter(|request| request.daemon.is_none()).cloned().collect();
        let wanted: Vec<_> = own.iter().map(|request| (&*request.file, request.fetch)).collect();
        let answers = daemon.fetch_all(&wanted)?;
        self.ahead.extend(own.into_iter().zip(answers));
        Ok(())
    }
}

impl Rows for Source<'_> {
    fn fetch(&mut self, request: &Request) -> Result<FetchRows, Failed> {
        if let Some(answer) = self.ahead.remove(request) {
            return Ok(answer?);
        }
        if let Some(address) = &request.daemon {
            return fetch(&self.others.at(address), &request.file, &request.fetch);
        }
        if let Some(daemon) = self.daemon {
            return fetch(daemon, &request.file, &request.fetch);
        }
        let path = Path::new(OsStr::from_bytes(&request.file));
        match ReadFile::open(path, Locking::Block) {
            Ok(file) => of_file(&file, request),
            Err(rrd_file::Error::Placeholder { placeholder, .. }) => {
                let rrd = RemoteRrd::of(path, &placeholder)?;
                fetch(&self.others.at(&rrd.address), &rrd.name, &request.fetch)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn fetch(daemon: &Daemon, name: &[u8], request: &FetchRequest) -> Result<FetchRows, Failed> {
    match daemon.fetch(name, request) {
        Ok(rows) => Ok(rows),
        Err(error @ ClientError::Connect(_)) => Err(QueryError::of_daemon(daemon.address(), &error).into()),
        Err(error) => Err(error.into()),
    }
}

fn of_file(file: &ReadFile, request: &Request) -> Result<FetchRows, Failed> {
    let definition = file.definition();
    let plan = plan(definition, file.last_update().whole, &request.fetch)?;
    let values = file.fetch(&plan)?;
    Ok(FetchRows::new(definition, &plan, values))
}
