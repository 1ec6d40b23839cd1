//! The store as a client's rights show it.

use std::cell::Cell;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use ::access::{Below, Verb};
use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::fetch::{FetchRequest, FetchRows};
use store::capture::Capture;
use store::engine::{
    Adoption, Choose, CreateRequest, Engine, Hold, Reply, RrdStatus, Snapshot, Stats, StoreError,
    StreamPosition, Trashed, UpdateBatch, UpdateFailure, UpdatevOutcome, VersionChange,
};
use store::name::RrdName;
use store::tail::{LogTail, Reach};
use store::verify::Watch;

use super::audit::Event;
use super::{Access, Principal};

/// A name that no RRD or directory has.
const NOWHERE: &[u8] = b".nowhere";
/// Why what is of the whole store is refused.
const OPERATORS_ONLY: &str = "this takes an account with operate = true";

/// Held while some of the RRDs are flushed for a client.
static FLUSHING: Mutex<()> = Mutex::new(());

/// The part of a store that a client may see, and change.
///
/// A store that had nothing but this part would give the same answers; what may be seen and not changed is refused by
/// [`StoreError::Denied`].
pub struct Guard {
    engine: Arc<dyn Engine>,
    access: Arc<Access>,
    who: Arc<Principal>,
}

impl Guard {
    /// `engine` as `who` may see it.
    pub fn new(engine: Arc<dyn Engine>, access: Arc<Access>, who: Arc<Principal>) -> Self {
        Guard { engine, access, who }
    }

    fn may(&self, verb: Verb, name: &[u8]) -> bool {
        self.who.rights.may(verb, name)
    }

    /// Whether the RRD may be read: as if there were none, if not.
    fn read(&self, name: &RrdName) -> Result<(), StoreError> {
        if self.may(Verb::Read, name.as_bytes()) {
            return Ok(());
        }
        Err(self.missing(name))
    }

    /// What this layout says of a name that no RRD has, but perhaps a directory that the client sees.
    fn missing(&self, name: &RrdName) -> StoreError {
        let is_directory = self.has_directory(name.as_bytes()).unwrap_or(false);
        let said = is_directory.then(|| self.engine.status(name).err()).flatten();
        said.unwrap_or_else(|| StoreError::NoSuchRrd(name.clone()))
    }

    /// Whether the RRD may be changed by `what`.
    fn write(&self, name: &RrdName, what: &'static str) -> Result<(), StoreError> {
        if self.may(Verb::Write, name.as_bytes()) {
            return Ok(());
        }
        self.refuse(name, what);
        match self.may(Verb::Read, name.as_bytes()) {
            true => Err(StoreError::Denied(name.clone())),
            false => Err(self.missing(name)),
        }
    }

    /// Whether an RRD of this name may be made by `what`: that there is none is no reason.
    fn make(&self, name: &RrdName, what: &'static str) -> Result<(), StoreError> {
        if !self.may(Verb::Write, name.as_bytes()) {
            self.refuse(name, what);
            return Err(StoreError::Denied(name.clone()));
        }
        if self.who.new_rrds.as_ref().is_some_and(|rate| !rate.allow()) {
            return Err(self.too_fast("RRDs an hour", self.who.rights.rates.new_rrds_per_hour));
        }
        Ok(())
    }

    fn refuse(&self, name: &RrdName, what: &'static str) {
        self.record("refused", Some(name), Some(what));
    }

    fn record(&self, what: &'static str, name: Option<&RrdName>, detail: Option<&str>) {
        if self.access.audit.is_on() {
            let name = name.map(ToString::to_string);
            self.access.audit.record(&Event { who: &self.who.name, what, name, detail });
        }
    }

    fn too_fast(&self, what: &str, limit: Option<u32>) -> StoreError {
        self.record("refused", None, Some(what));
        let (name, limit) = (&self.who.name, limit.unwrap_or_default());
        StoreError::TooFast(format!("{name} may have no more than {limit} {what}; try again later"))
    }

    /// Makes a change and records it.
    fn changed<T>(
        &self,
        what: &'static str,
        name: &RrdName,
        detail: Option<&RrdName>,
        change: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let done = change()?;
        self.record(what, Some(name), detail.map(ToString::to_string).as_deref());
        Ok(done)
    }

    fn operate<T>(&self, act: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        if self.who.rights.operate { act() } else { Err(StoreError::Unsupported(OPERATORS_ONLY)) }
    }

    /// Takes `count` values of what may be sent in a time.
    fn spend_values(&self, values: &[u8]) -> Result<(), StoreError> {
        let Some(rate) = &self.who.values else { return Ok(()) };
        // Each value of an argument stands after a colon.
        let count = values.iter().filter(|&&byte| byte == b':').count() as u64;
        match rate.spend(count) {
            true => Ok(()),
            false => Err(self.too_fast("values a second", self.who.rights.rates.values_per_second)),
        }
    }

    /// Reads rows, of which only so many may be read in a time.
    fn rows_of<T>(
        &self,
        read: impl FnOnce() -> Result<T, StoreError>,
        count: impl FnOnce(&T) -> u64,
    ) -> Result<T, StoreError> {
        let Some(rate) = &self.who.rows else { return read() };
        if !rate.spend(1) {
            return Err(self.too_fast("rows a second", self.who.rights.rates.rows_per_second));
        }
        let rows = read()?;
        rate.spend(count(&rows));
        Ok(rows)
    }

    /// Whether a directory, given without a slash at its end, has something in it that may be read.
    fn shows(&self, directory: &[u8], hold: Hold<'_>) -> Result<bool, StoreError> {
        match self.who.rights.readable_below(directory) {
            Below::All => Ok(true),
            Below::Nothing => Ok(false),
            Below::Some => {
                let names = self.engine.list_within(directory, true, hold)?;
                Ok(names.iter().any(|name| self.may(Verb::Read, name)))
            }
        }
    }
}

impl Engine for Guard {
    fn update(&self, batch: UpdateBatch, reply: Reply<Vec<UpdateFailure>>) {
        let is_free = self.who.values.is_none();
        if is_free && batch.lines.iter().all(|line| self.may(Verb::Write, batch.name(line))) {
            return self.engine.update(batch, reply);
        }
        let mut allowed = UpdateBatch::default();
        // The places in `batch` of the lines that are allowed, and what is wrong with the others.
        let (mut places, mut refused) = (Vec::new(), Vec::new());
        for (place, line) in batch.lines.iter().enumerate() {
            let checked = match RrdName::new(batch.name(line)) {
                Ok(name) => self.write(&name, "update").and_then(|()| self.spend_values(batch.values(line))),
                Err(error) => Err(StoreError::Name(error)),
            };
            match checked {
                Ok(()) => {
                    allowed.push_copy(&batch, line);
                    places.push(place as u32);
                }
                Err(error) => refused.push(UpdateFailure { line: place as u32, accepted: 0, error }),
            }
        }
        if places.is_empty() {
            return reply(refused);
        }
        let merged = move |failures: Vec<UpdateFailure>| {
            refused.extend(
                failures
                    .into_iter()
                    .map(|failure| UpdateFailure { line: places[failure.line as usize], ..failure }),
            );
            refused.sort_by_key(|failure| failure.line);
            reply(refused);
        };
        self.engine.update(allowed, Box::new(merged));
    }

    fn updatev(&self, name: &RrdName, values: &[u8]) -> Result<UpdatevOutcome, StoreError> {
        self.write(name, "update")?;
        self.spend_values(values)?;
        let mut outcome = self.engine.updatev(name, values)?;
        if !self.may(Verb::Read, name.as_bytes()) {
            // Rows tell of what others have sent.
            outcome.report.rows.clear();
        }
        Ok(outcome)
    }

    fn create(&self, name: RrdName, request: CreateRequest, reply: Reply<Result<(), StoreError>>) {
        if let Err(error) = self.make(&name, "create") {
            return reply(Err(error));
        }
        let (access, who, known) = (Arc::clone(&self.access), Arc::clone(&self.who), name.clone());
        let recorded = move |result: Result<(), StoreError>| {
            if result.is_ok() && access.audit.is_on() {
                let name = Some(known.to_string());
                access.audit.record(&Event { who: &who.name, what: "create", name, detail: None });
            }
            reply(result);
        };
        self.engine.create(name, request, Box::new(recorded));
    }

    fn check_filled(&self, definition: &Definition) -> Result<(), StoreError> {
        self.engine.check_filled(definition)
    }

    fn import(&self, name: RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), StoreError> {
        self.make(&name, "import")?;
        self.changed("import", &name, None, || self.engine.import(name.clone(), rrd, no_overwrite))
    }

    fn tune(&self, name: &RrdName, args: &[String]) -> Result<(), StoreError> {
        self.write(name, "tune")?;
        self.changed("tune", name, None, || self.engine.tune(name, args))
    }

    fn change(&self, name: &RrdName, version: u64, change: VersionChange) -> Result<u64, StoreError> {
        self.write(name, "change")?;
        match &change {
            VersionChange::Update(values) => {
                self.spend_values(values)?;
                self.engine.change(name, version, change)
            }
            VersionChange::Replace(_) => {
                self.changed("import", name, None, || self.engine.change(name, version, change))
            }
        }
    }

    fn delete(&self, name: &RrdName) -> Result<(), StoreError> {
        self.write(name, "remove")?;
        self.changed("remove", name, None, || self.engine.delete(name))
    }

    fn rename(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        self.write(from, "rename")?;
        self.make(to, "rename")?;
        self.changed("rename", from, Some(to), || self.engine.rename(from, to))
    }

    fn copy(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        self.read(from)?;
        self.make(to, "copy")?;
        self.changed("copy", from, Some(to), || self.engine.copy(from, to))
    }

    fn trash(&self) -> Result<Vec<Trashed>, StoreError> {
        self.operate(|| self.engine.trash())
    }

    fn restore(&self, trashed: &Trashed, to: &RrdName) -> Result<(), StoreError> {
        self.operate(|| {
            self.make(to, "restore")?;
            self.changed("restore", to, Some(&trashed.name), || self.engine.restore(trashed, to))
        })
    }

    fn erase(&self, trashed: &Trashed) -> Result<(), StoreError> {
        self.operate(|| self.changed("erase", &trashed.name, None, || self.engine.erase(trashed)))
    }

    fn snapshot(&self, name: &RrdName) -> Result<Snapshot, StoreError> {
        self.read(name)?;
        self.engine.snapshot(name)
    }

    fn status(&self, name: &RrdName) -> Result<RrdStatus, StoreError> {
        self.read(name)?;
        self.engine.status(name)
    }

    fn status_for_change(&self, name: &RrdName) -> Result<RrdStatus, StoreError> {
        if !self.may(Verb::Write, name.as_bytes()) {
            self.read(name)?;
        }
        self.engine.status(name)
    }

    fn fetch(&self, name: &RrdName, request: FetchRequest) -> Result<FetchRows, StoreError> {
        self.read(name)?;
        let count = |rows: &FetchRows| (rows.values.len() / rows.ds_names.len().max(1)) as u64;
        self.rows_of(|| self.engine.fetch(name, request), count)
    }

    fn read(&self, name: &RrdName) -> Result<Rrd, StoreError> {
        Guard::read(self, name)?;
        let count = |rrd: &Rrd| rrd.definition.rra.iter().map(|rra| rra.row_count).sum();
        self.rows_of(|| self.engine.read(name), count)
    }

    fn rows(
        &self,
        name: &RrdName,
        of: &Arc<Definition>,
        rra: usize,
        rows: Range<i64>,
    ) -> Result<Vec<f64>, StoreError> {
        Guard::read(self, name)?;
        let count = rows.end.saturating_sub(rows.start).max(0) as u64;
        self.rows_of(|| self.engine.rows(name, of, rra, rows), |_| count)
    }

    fn chosen_rows(&self, name: &RrdName, choose: Choose<'_>) -> Result<Option<Vec<f64>>, StoreError> {
        Guard::read(self, name)?;
        let count = Cell::new(0);
        let mut counted = |status: &RrdStatus| {
            let chosen = choose(status);
            let rows = chosen.as_ref().map_or(0, |(_, rows)| rows.end.saturating_sub(rows.start).max(0));
            count.set(rows as u64);
            chosen
        };
        self.rows_of(|| self.engine.chosen_rows(name, &mut counted), |_| count.get())
    }

    fn list_within(
        &self,
        directory: &[u8],
        recursive: bool,
        hold: Hold<'_>,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        if self.who.rights.readable_below(directory) == Below::All {
            return self.engine.list_within(directory, recursive, hold);
        }
        if !directory.is_empty() && !self.shows(directory, hold)? {
            // What this layout says of one that is not there.
            return self.engine.list_within(NOWHERE, false, hold).map(|_| Vec::new());
        }
        let mut shown = Vec::new();
        for name in self.engine.list_within(directory, recursive, hold)? {
            let shows = match name.strip_suffix(b"/") {
                Some(directory) => self.shows(directory, hold)?,
                None => self.may(Verb::Read, &name),
            };
            if shows {
                shown.push(name);
            }
        }
        Ok(shown)
    }

    fn has_directory(&self, directory: &[u8]) -> Result<bool, StoreError> {
        Ok(self.engine.has_directory(directory)? && self.shows(directory, &mut |_| true)?)
    }

    /// Of one that may be read: who reads its file wants that. Of all: what may be written.
    fn flush(&self, name: Option<&RrdName>) -> Result<(), StoreError> {
        if let Some(name) = name {
            Guard::read(self, name)?;
            return self.engine.flush(Some(name));
        }
        let rights = &self.who.rights;
        if rights.writes_all() {
            return self.engine.flush(None);
        }
        if rights.writes_nothing() {
            return Ok(());
        }
        // One list of names at a time.
        let _turn = FLUSHING.lock().unwrap_or_else(PoisonError::into_inner);
        let names = self.engine.list(b"", true)?;
        let own = names.iter().filter(|name| self.may(Verb::Write, name));
        let own: Vec<RrdName> = own.filter_map(|name| RrdName::new(name).ok()).collect();
        self.engine.flush_those(&own)
    }

    fn flush_those(&self, names: &[RrdName]) -> Result<(), StoreError> {
        names.iter().try_for_each(|name| Guard::read(self, name))?;
        self.engine.flush_those(names)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.engine.sync()
    }

    fn pending(&self, name: &RrdName, hold: Hold<'_>) -> Result<Vec<Vec<u8>>, StoreError> {
        if self.may(Verb::Read, name.as_bytes()) {
            return self.engine.pending(name, hold);
        }
        // What this layout says of one that is not there.
        let nowhere = RrdName::new(NOWHERE).map_err(StoreError::Name)?;
        self.engine.pending(&nowhere, hold)
    }

    fn queue(&self, hold: Hold<'_>) -> Result<Vec<(u64, RrdName)>, StoreError> {
        let mut queue = self.engine.queue(hold)?;
        queue.retain(|(_, name)| self.may(Verb::Read, name.as_bytes()));
        Ok(queue)
    }

    fn stream_position(&self, name: &[u8]) -> Result<Option<StreamPosition>, StoreError> {
        self.engine.stream_position(name)
    }

    fn set_stream_position(&self, name: &[u8], position: StreamPosition) -> Result<(), StoreError> {
        self.engine.set_stream_position(name, position)
    }

    fn adopt(&self, name: &RrdName, archive: bool) -> Result<bool, StoreError> {
        self.operate(|| self.engine.adopt(name, archive))
    }

    fn adoption(&self) -> Option<Adoption> {
        self.who.rights.operate.then(|| self.engine.adoption()).flatten()
    }

    fn missing(&self) -> Vec<RrdName> {
        if self.who.rights.operate { self.engine.missing() } else { Vec::new() }
    }

    fn settle_missing(&self, remove: bool) -> Result<u64, StoreError> {
        self.operate(|| self.engine.settle_missing(remove))
    }

    fn stats(&self) -> Stats {
        let stats = self.engine.stats();
        if self.who.rights.operate {
            return stats;
        }
        // When names were last changed, and whether updates are taken at all.
        Stats { name_changes: stats.name_changes, read_only: stats.read_only, ..Stats::default() }
    }

    fn verify(&self, watch: &mut dyn Watch) -> Result<(), StoreError> {
        self.operate(|| self.engine.verify(watch))
    }

    fn capture(&self) -> Result<Capture, StoreError> {
        self.operate(|| self.engine.capture())
    }

    fn tail(&self, reach: Reach, bytes_max: u64) -> Result<LogTail, StoreError> {
        self.operate(|| self.engine.tail(reach, bytes_max))
    }

    fn stop(&self) -> Result<(), StoreError> {
        Err(StoreError::Unsupported("a client cannot stop the store"))
    }
}
