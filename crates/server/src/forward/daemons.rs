//! A Roundel or an rrdcached as a target: frames where it speaks them, else rrdcached's text.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use client::daemon::ClientIdentity;
use client::{ClientError, Daemon, Wire};
use protocol::frames::UPDATES_MAX;
use protocol::frames::code::ErrorCode;
use protocol::frames::request::{Update, update_bytes};
use rrd::definition::Definition;
use store::engine::Engine;
use store::name::RrdName;

use super::batch::{BatchReading, CreatedRrd, ForwardBatch};
use super::destination::Destination;
use super::target::{Away, ForwardRefusal, ForwardTarget, RefusalReason, check_stop};

/// How long an answer may take, and so a stop of this daemon. A daemon that is short of disk refuses instead of waiting.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of readings in one frame: half of what a frame may have.
const FRAME_BYTES: usize = 512 << 10;
/// Lines of text sent before their answers are read: more would fill the buffers of both ends.
const LINES_MAX: usize = 400;
/// Bytes of these lines, for the same reason.
const LINES_BYTES: usize = 32 << 10;

/// A daemon.
pub struct DaemonTarget {
    daemon: Daemon,
    engine: Arc<dyn Engine>,
    /// Known once there was a connection.
    speaks_frames: bool,
    stop: Arc<AtomicBool>,
}

impl DaemonTarget {
    /// The daemon at `to`, which is not connected to yet.
    pub fn new(
        to: &Destination,
        identity: ClientIdentity,
        engine: Arc<dyn Engine>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let (address, wire) = match to {
            Destination::Rrdcached(address) => (address.clone(), Wire::Text),
            other => (other.to_string(), Wire::Frames),
        };
        let daemon = Daemon::new(address.as_bytes(), wire).with_patience(PATIENCE).with_identity(identity);
        DaemonTarget { daemon, engine, speaks_frames: false, stop }
    }

    /// Creates an RRD; one that is there stays. Whether it was not there; or why it cannot be.
    fn create(&self, name: &[u8], definition: &Definition, start: i64) -> Result<Result<bool, String>, Away> {
        check_stop(&self.stop)?;
        let (start, step) = (start.to_string(), definition.step_argument());
        let arguments = definition.arguments();
        let mut words = vec![name, b"-O", b"-b", start.as_bytes(), b"-s", step.as_bytes()];
        words.extend(arguments.iter().map(|argument| argument.as_bytes()));
        match self.daemon.ask("CREATE", &words) {
            Ok(_) => Ok(Ok(true)),
            Err(error @ ClientError::Refused { .. }) => match temporary(&error) {
                Some(away) => Err(away),
                None if is_there(&error) => Ok(Ok(false)),
                None => Ok(Err(error.to_string())),
            },
            // A name that no line can hold.
            Err(error @ (ClientError::LineBreak | ClientError::AbsoluteName)) => Ok(Err(error.to_string())),
            Err(error) => Err(Away(error.to_string())),
        }
    }

    /// Creates an RRD that the target does not know, as it is here, from before its first reading on.
    fn create_for(&self, reading: &BatchReading<'_>) -> Result<Result<bool, String>, Away> {
        let gone = || Ok(Err("the RRD is no longer here either".to_owned()));
        let Ok(name) = RrdName::new(reading.name) else { return gone() };
        let Ok(status) = self.engine.status(&name) else { return gone() };
        self.create(reading.name, &status.definition, reading.time.whole - 1)
    }

    /// Sends some readings; those that are refused, by index.
    fn update(&self, readings: &[BatchReading<'_>]) -> Result<Vec<(usize, ClientError)>, Away> {
        if readings.is_empty() {
            return Ok(Vec::new());
        }
        check_stop(&self.stop)?;
        let updates: Vec<Update<'_>> =
            readings.iter().map(|one| Update { name: one.name, values: one.reading }).collect();
        let refusals = self.daemon.update_all(&updates).map_err(|error| Away(error.to_string()))?;
        if let Some(away) = refusals.iter().find_map(|(_, error)| temporary(error)) {
            return Err(away);
        }
        Ok(refusals.into_iter().map(|(index, error)| (index as usize, error)).collect())
    }

    /// Sends some readings; RRDs that the target lacks are created. Returns how many were.
    fn send_part(
        &self,
        readings: &[BatchReading<'_>],
        refused: &mut dyn FnMut(ForwardRefusal<'_>),
    ) -> Result<u64, Away> {
        let mut report = |reading: &BatchReading<'_>, reason, text: &str| {
            refused(ForwardRefusal { reason, name: reading.name, count: 1, text });
        };
        let mut created = 0;
        let mut outcomes: HashMap<&[u8], Result<bool, String>> = HashMap::new();
        let mut again = Vec::new();
        for (index, error) in self.update(readings)? {
            let Some(reading) = readings.get(index) else { continue };
            if reason_of(&error) != RefusalReason::NoSuchRrd {
                report(reading, reason_of(&error), &error.to_string());
                continue;
            }
            if !outcomes.contains_key(reading.name) {
                let outcome = self.create_for(reading)?;
                created += u64::from(outcome == Ok(true));
                outcomes.insert(reading.name, outcome);
            }
            match &outcomes[reading.name] {
                Ok(_) => again.push(*reading),
                Err(text) => report(reading, RefusalReason::NoSuchRrd, text),
            }
        }
        for (index, error) in self.update(&again)? {
            if let Some(reading) = again.get(index) {
                report(reading, reason_of(&error), &error.to_string());
            }
        }
        Ok(created)
    }
}

impl ForwardTarget for DaemonTarget {
    fn reach(&mut self) -> Result<(), Away> {
        self.speaks_frames = self.daemon.speaks_frames().map_err(|error| Away(error.to_string()))?;
        Ok(())
    }

    fn send(
        &mut self,
        batch: &ForwardBatch,
        refused: &mut dyn FnMut(ForwardRefusal<'_>),
    ) -> Result<u64, Away> {
        let mut created = 0;
        for CreatedRrd { name, definition, start } in &batch.created {
            match self.create(name.as_bytes(), definition, *start)? {
                Ok(is_new) => created += u64::from(is_new),
                // Its readings will be refused, which is counted.
                Err(text) => refused(ForwardRefusal {
                    reason: RefusalReason::NoSuchRrd,
                    name: name.as_bytes(),
                    count: 0,
                    text: &text,
                }),
            }
        }
        let (count_max, bytes_max) =
            if self.speaks_frames { (UPDATES_MAX, FRAME_BYTES) } else { (LINES_MAX, LINES_BYTES) };
        let mut part: Vec<BatchReading<'_>> = Vec::new();
        let mut bytes = 0;
        for reading in batch.readings() {
            if part.len() == count_max || bytes > bytes_max {
                created += self.send_part(&part, refused)?;
                part.clear();
                bytes = 0;
            }
            bytes += update_bytes(reading.name, reading.reading);
            part.push(reading);
        }
        if !part.is_empty() {
            created += self.send_part(&part, refused)?;
        }
        Ok(created)
    }
}

/// Why a refusal will pass, if so: then everything is sent again.
fn temporary(error: &ClientError) -> Option<Away> {
    let passes = [ErrorCode::DiskFull, ErrorCode::Stopping, ErrorCode::Poisoned, ErrorCode::Unavailable];
    passes.into_iter().any(|code| error.is(code)).then(|| Away(error.to_string()))
}

/// Whether a CREATE was refused because there is one.
fn is_there(error: &ClientError) -> bool {
    let text = error.to_string();
    // Compat: rrdcached says it in RRDtool's words.
    error.is(ErrorCode::Exists) || text.contains("exist") && !text.contains("does not exist")
}

fn reason_of(error: &ClientError) -> RefusalReason {
    let ClientError::Refused { code, text } = error else { return RefusalReason::Other };
    match code {
        ErrorCode::NoSuchRrd => RefusalReason::NoSuchRrd,
        ErrorCode::IllegalTime => RefusalReason::NotNewer,
        ErrorCode::Permission => RefusalReason::Permission,
        _ if text.starts_with(b"No such file") => RefusalReason::NoSuchRrd,
        _ => RefusalReason::Other,
    }
}
