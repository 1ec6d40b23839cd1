//! A Graphite as a target: carbon's plaintext lines, `PATH VALUE TIME`.
//!
//! Carbon answers nothing, so what was sent counts as arrived when the connection has lived on for some seconds; after a
//! lost one, what is younger is sent again. The same value for the same time changes nothing there.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use store::engine::Engine;

use super::batch::ForwardBatch;
use super::sources::SourceNames;
use super::target::{Away, ForwardRefusal, ForwardTarget};
use crate::graphite_path::push_path;

/// How long the connection may take, and carbon to read.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection must live on for what was sent to count as arrived.
const SETTLES_AFTER: Duration = Duration::from_secs(5);

/// A carbon daemon.
pub struct CarbonTarget {
    host: String,
    port: u16,
    names: SourceNames,
    connection: Option<TcpStream>,
    lines: Vec<u8>,
}

impl CarbonTarget {
    /// The daemon at a host and port, which is not connected to yet.
    pub fn new(host: String, port: u16, engine: Arc<dyn Engine>) -> Self {
        CarbonTarget { host, port, names: SourceNames::new(engine), connection: None, lines: Vec::new() }
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let (stream, _) = client::connect_to(&self.host, self.port, Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }
}

/// Carbon never sends anything: what can be read is the end.
fn check_open(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let read = stream.read(&mut [0; 64]);
    stream.set_nonblocking(false)?;
    match read {
        Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "carbon closed the connection")),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}

impl ForwardTarget for CarbonTarget {
    fn reach(&mut self) -> Result<(), Away> {
        let reached = match &mut self.connection {
            Some(stream) => check_open(stream),
            None => self.connect().map(|stream| self.connection = Some(stream)),
        };
        reached.map_err(|error| {
            self.connection = None;
            Away(format!("{}:{}: {error}", self.host, self.port))
        })
    }

    fn send(
        &mut self,
        batch: &ForwardBatch,
        refused: &mut dyn FnMut(ForwardRefusal<'_>),
    ) -> Result<u64, Away> {
        let lines = &mut self.lines;
        lines.clear();
        self.names.visit(batch, refused, &mut |reading, source, (text, _)| {
            push_path(lines, reading.name, source);
            let rest = format!(" {text} {}\n", reading.time.whole);
            lines.extend_from_slice(rest.as_bytes());
        });
        let Some(stream) = &mut self.connection else { return Err(Away("not connected".to_owned())) };
        if let Err(error) = stream.write_all(&self.lines) {
            self.connection = None;
            return Err(Away(format!("{}:{}: {error}", self.host, self.port)));
        }
        Ok(0)
    }

    fn forget(&mut self) {
        self.names.forget();
    }

    fn settles_after(&self) -> Duration {
        SETTLES_AFTER
    }
}
