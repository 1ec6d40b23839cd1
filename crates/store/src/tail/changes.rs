//! The records of a log as changes of RRDs, with their names.

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::time::Timestamp;

use super::pieces::RawRecords;
use super::{ShardTail, TailError};
use crate::codec::DecodeError;
use crate::log::catalogue::{Create, Delete, Import, Rename, Tune};
use crate::log::parts::ImportPart;
use crate::log::{self, Kind, Position, Record};

/// A change of one RRD.
#[derive(Debug)]
pub struct LoggedChange<'a> {
    /// Where its record starts.
    pub position: Position,
    /// When it was logged, in milliseconds since the epoch.
    pub logged_ms: i64,
    /// The RRD's name at that time; `None` when nothing tells it, as of one that an early build removed. A hidden name
    /// ([`crate::name::RrdName::is_hidden`]) is that of an RRD in the trash, or on its way to another name.
    pub name: Option<&'a [u8]>,
    /// What has changed.
    pub what: ChangeKind<'a>,
}

/// What a change does.
#[derive(Debug)]
pub enum ChangeKind<'a> {
    /// A reading.
    Update {
        /// Its time, in seconds since the epoch.
        time: Timestamp,
        /// The values as they came, separated by colons.
        values: &'a [u8],
    },
    /// It was created, without rows.
    Create {
        /// Its definition.
        definition: Definition,
        /// Its start, in seconds since the epoch.
        start: i64,
    },
    /// It came as a whole.
    Import(Box<Rrd>),
    /// It was changed by these arguments of `tune`.
    Tune(Vec<String>),
    /// It was removed for good.
    Delete,
    /// It got this name.
    Rename(&'a [u8]),
}

impl ShardTail {
    /// Visits the changes in records that were just read, in order.
    ///
    /// # Errors
    /// When a record cannot be decoded, or the store does not tell the names because it stops. The changes visited before stand.
    pub fn decode(
        &mut self,
        raw: &RawRecords,
        visit: &mut dyn FnMut(LoggedChange<'_>),
    ) -> Result<(), TailError> {
        for record in raw.records() {
            let position = record.position;
            let unknown = |error: DecodeError| TailError::Unknown { position, what: error.to_string() };
            match record.kind {
                Kind::Updates => self.updates(&record, visit)?,
                Kind::Tune => self.tune(&record, visit)?,
                Kind::Part => self.part(&record, visit).map_err(unknown)?,
                Kind::Stream | Kind::Check | Kind::RowCheck => {}
                Kind::Create => self.create(&record, visit).map_err(unknown)?,
                Kind::Import => self.import(&record, record.body, visit).map_err(unknown)?,
                Kind::Delete => self.delete(&record, visit)?,
                Kind::Rename => self.rename(&record, visit)?,
                Kind::Named => {
                    let what = "it is a record of a spool".to_owned();
                    return Err(TailError::Unknown { position, what });
                }
                Kind::Behaviour => {
                    let what = "a newer program's behaviour begins there".to_owned();
                    return Err(TailError::Unknown { position, what });
                }
            }
            if record.kind != Kind::Part {
                self.parts.abandon();
                self.parts_from = None;
            }
        }
        Ok(())
    }

    fn updates(
        &mut self,
        record: &Record<'_>,
        visit: &mut dyn FnMut(LoggedChange<'_>),
    ) -> Result<(), TailError> {
        let unknown =
            |error: DecodeError| TailError::Unknown { position: record.position, what: error.to_string() };
        let mut new = Vec::new();
        log::updates::decode(record.body, &mut |id, _, _: &[u8]| {
            if !self.names.is_known(id) {
                new.push(id);
            }
        })
        .map_err(unknown)?;
        self.learn(&mut new, record.position)?;
        log::updates::decode(record.body, &mut |id, time, values: &[u8]| {
            visit(change(record, self.names.get(id), ChangeKind::Update { time, values }));
        })
        .map_err(unknown)
    }

    fn tune(
        &mut self,
        record: &Record<'_>,
        visit: &mut dyn FnMut(LoggedChange<'_>),
    ) -> Result<(), TailError> {
        let Tune { id, args } = Tune::decode(record.body).map_err(|error| unknown(record, &error))?;
        self.learn_one(id, record.position)?;
        visit(change(record, self.names.get(id), ChangeKind::Tune(args)));
        Ok(())
    }

    fn learn_one(&mut self, id: u32, position: Position) -> Result<(), TailError> {
        if self.names.is_known(id) { Ok(()) } else { self.learn(&mut vec![id], position) }
    }

    fn create(
        &mut self,
        record: &Record<'_>,
        visit: &mut dyn FnMut(LoggedChange<'_>),
    ) -> Result<(), DecodeError> {
        let Create { id, name, definition, start } = Create::decode(record.body)?;
        self.names.set(id, name, record.position);
        visit(change(record, Some(name), ChangeKind::Create { definition, start }));
        Ok(())
    }

    fn import(
        &mut self,
        record: &Record<'_>,
        body: &[u8],
        visit: &mut dyn FnMut(LoggedChange<'_>),
    ) -> Result<(), DecodeError> {
        let Import { id, name, rrd } = Import::decode(body)?;
        self.names.set(id, name, record.position);
        visit(change(record, Some(name), ChangeKind::Import(Box::new(rrd))));
        Ok(())
    }

    fn part(
        &mut self,
        record: &Record<'_>,
        visit: &mut dyn FnMut(LoggedChange<'_>),
    ) -> Result<(), DecodeError> {
        let part = ImportPart::decode(record.body)?;
        if part.offset == 0 {
            self.parts_from = Some(record.position);
        }
        match self.parts.take(&part) {
            Ok(None) => Ok(()),
            Ok(Some(body)) => {
                self.parts_from = None;
                self.import(record, &body, visit)
            }
            // A part before this one is lost, and the import with it.
            Err(log::parts::Lost) => {
                self.parts_from = None;
                Ok(())
            }
        }
    }

    fn delete(
        &mut self,
        record: &Record<'_>,
        visit: &mut dyn FnMut(LoggedChange<'_>),
    ) -> Result<(), TailError> {
        let Delete { id, name } = Delete::decode(record.body).map_err(|error| unknown(record, &error))?;
        visit(change(record, name.or_else(|| self.names.get(id)), ChangeKind::Delete));
        self.names.remove(id);
        Ok(())
    }

    fn rename(
        &mut self,
        record: &Record<'_>,
        visit: &mut dyn FnMut(LoggedChange<'_>),
    ) -> Result<(), TailError> {
        let Rename { id, name, from } =
            Rename::decode(record.body).map_err(|error| unknown(record, &error))?;
        visit(change(record, from.or_else(|| self.names.get(id)), ChangeKind::Rename(name)));
        self.names.set(id, name, record.position);
        Ok(())
    }
}

fn unknown(record: &Record<'_>, error: &DecodeError) -> TailError {
    TailError::Unknown { position: record.position, what: error.to_string() }
}

fn change<'a>(record: &Record<'_>, name: Option<&'a [u8]>, what: ChangeKind<'a>) -> LoggedChange<'a> {
    LoggedChange { position: record.position, logged_ms: record.stamp.time_ms, name, what }
}
