//! Rows for one thread: out of files in place, or asked of a daemon ahead of need.

use std::collections::HashMap;
use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use graph::plan::{Fetched, Request, Rows};
use rrd::plan::plan;
use store::direct::{DirectError, Locking, ReadFile};

use crate::daemon::Connection;

type Failed = Box<dyn Error + Send + Sync>;

/// Where a thread gets its rows.
pub(crate) struct Source {
    daemon: Option<Connection>,
    /// Connections to other daemons, by address: those that a DEF names, and those of stores whose placeholders
    /// stand among the files.
    others: HashMap<String, Connection>,
    /// Answers of the daemon that have not been taken yet.
    ahead: HashMap<Request, Result<Fetched, String>>,
}

impl Source {
    /// Rows of the daemon, or of files when there is none.
    pub(crate) fn new(daemon: Option<Connection>) -> Source {
        Source { daemon, others: HashMap::new(), ahead: HashMap::new() }
    }

    /// Asks the daemon at once for all of these that no DEF wants from another; [`Rows::fetch`] gives them
    /// afterwards.
    pub(crate) fn ask_ahead(&mut self, requests: &[Request]) -> Result<(), Failed> {
        let Some(daemon) = &mut self.daemon else { return Ok(()) };
        let own: Vec<Request> = requests.iter().filter(|request| request.daemon.is_none()).cloned().collect();
        let answers = daemon.fetch(&own)?;
        self.ahead.extend(own.into_iter().zip(answers));
        Ok(())
    }

    /// Rows of the store whose placeholder is the file of `request`.
    fn behind(&mut self, address: String, request: &Request) -> Result<Fetched, Failed> {
        let path = std::fs::canonicalize(OsStr::from_bytes(&request.file))?;
        let there = Request { file: path.as_os_str().as_bytes().to_vec(), ..request.clone() };
        self.of_other(address, there)
    }

    fn of_other(&mut self, address: String, request: Request) -> Result<Fetched, Failed> {
        let connection = match self.others.remove(&address) {
            Some(connection) => connection,
            None => Connection::open(&address)?,
        };
        let connection = self.others.entry(address).or_insert(connection);
        let answer = connection.fetch(&[request])?.pop().ok_or("the daemon does not answer")?;
        Ok(answer?)
    }
}

impl Rows for Source {
    fn fetch(&mut self, request: &Request) -> Result<Fetched, Failed> {
        if let Some(answer) = self.ahead.remove(request) {
            return Ok(answer?);
        }
        if let Some(address) = &request.daemon {
            return self.of_other(String::from_utf8_lossy(address).into_owned(), request.clone());
        }
        if let Some(daemon) = &mut self.daemon {
            let answer = daemon.fetch(std::slice::from_ref(request))?.pop();
            return Ok(answer.ok_or("the daemon does not answer")??);
        }
        let path = Path::new(OsStr::from_bytes(&request.file));
        match ReadFile::open(path, Locking::Block) {
            Ok(file) => of_file(&file, request),
            Err(DirectError::Placeholder { placeholder, .. }) => {
                let address = store::beacon::find(path, &placeholder)?;
                self.behind(address, request)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn of_file(file: &ReadFile, request: &Request) -> Result<Fetched, Failed> {
    let definition = file.definition();
    let (last, step) = (file.last_update().whole, request.step.max(1));
    let plan = plan(definition, last, request.cf, request.start, request.end, step)?;
    let values = file.fetch(&plan)?;
    let names = definition.ds.iter().map(|ds| ds.name.clone());
    Fetched::in_seconds((plan.start, plan.step), definition.units_per_second, names, values)
        .ok_or_else(|| "its rows are shorter than a second; ask for a --step of whole seconds".into())
}
