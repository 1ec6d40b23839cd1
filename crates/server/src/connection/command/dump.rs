//! DUMP: what `rrddump(1)` prints, as lines.

use localtime::DumpTimes;
use protocol::rrdcached::reply;
use rrd::codec::xml::{Dumper, Header};
use store::engine::{Engine, StoreError};

use super::rest::{Rest, WholeRrd};
use super::{Kept, text};
use crate::connection::refusal::Refusal;
use crate::service::Service;

/// Answers DUMP. `header` is the argument of `-h`.
///
/// # Errors
/// When there is no such RRD, or it cannot be read.
pub fn dump(service: &Service, word: &[u8], header: Option<&[u8]>, kept: &mut Kept) -> Result<(), Refusal> {
    let header = match header {
        Some(word) => Header::from_arg(text(word)?),
        None => Header::default(),
    };
    let (named, rrd) = WholeRrd::read(service, word)?;
    let status = [b"Dump of ", &*named.path, b" follows"].concat();
    kept.rest = Some(Box::new(Dump { rrd, header, status, times: DumpTimes::default(), at: At::Top }));
    Ok(())
}

/// A dump in the making.
#[derive(Debug)]
struct Dump {
    rrd: WholeRrd,
    header: Header,
    /// The text of the status line.
    status: Vec<u8>,
    times: DumpTimes,
    at: At,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum At {
    Top,
    /// The beginning of an archive, or the end.
    Archive(usize),
    /// Rows of an archive, from one so many after the oldest on.
    Rows(usize, u64),
}

impl Dump {
    /// Calls `write` with what writes to `out`.
    fn write(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Dumper<'_>)) {
        let Dump { rrd, times, .. } = self;
        let mut time_text = |seconds: i64, out: &mut Vec<u8>| times.push(seconds, out);
        write(&mut Dumper::new(&rrd.definition, &rrd.live, &mut time_text, out));
    }

    /// How many lines there will be: one for each row, and those between them.
    fn line_count(&mut self) -> u64 {
        let (header, archives) = (self.header, self.rrd.definition.rra.len());
        let (mut part, mut lines) = (Vec::new(), 0);
        self.write(&mut part, |dumper| dumper.begin(header));
        for index in 0..archives {
            lines += newlines(&mut part) + self.rrd.definition.rra[index].row_count;
            self.write(&mut part, |dumper| {
                dumper.begin_archive(index);
                dumper.end_archive();
            });
        }
        self.write(&mut part, |dumper| dumper.end());
        lines + newlines(&mut part)
    }
}

/// Empties `text` and returns how many lines it had.
fn newlines(text: &mut Vec<u8>) -> u64 {
    let count = memchr::memchr_iter(b'\n', text).count() as u64;
    text.clear();
    count
}

impl Rest for Dump {
    fn push_piece(&mut self, engine: &dyn Engine, out: &mut Vec<u8>) -> Result<bool, StoreError> {
        match self.at {
            At::Top => {
                let (lines, header) = (self.line_count(), self.header);
                reply::push_status(out, lines as i64, &self.status);
                self.write(out, |dumper| dumper.begin(header));
                self.at = At::Archive(0);
            }
            At::Archive(index) if index == self.rrd.definition.rra.len() => {
                self.write(out, |dumper| dumper.end());
                return Ok(false);
            }
            At::Archive(index) => {
                self.write(out, |dumper| dumper.begin_archive(index));
                self.at = At::Rows(index, 0);
            }
            At::Rows(index, row) if row >= self.rrd.definition.rra[index].row_count => {
                self.write(out, |dumper| dumper.end_archive());
                self.at = At::Archive(index + 1);
            }
            At::Rows(index, row) => {
                let oldest = self.rrd.oldest_row(index);
                let WholeRrd { definition, live, rows, .. } = &mut self.rrd;
                let all = row..definition.rra[index].row_count;
                let values = rows.piece(engine, (definition, live), index, oldest, all)?;
                let times = &mut self.times;
                let mut time_text = |seconds: i64, out: &mut Vec<u8>| times.push(seconds, out);
                Dumper::new(definition, live, &mut time_text, out).rows(index, oldest + row as i64, values);
                self.at = At::Rows(index, row + (values.len() / definition.ds.len().max(1)) as u64);
            }
        }
        Ok(true)
    }

    fn restart(&mut self) {
        self.at = At::Top;
    }
}
