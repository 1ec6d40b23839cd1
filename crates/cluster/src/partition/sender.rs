//! The leader's other thread: it writes the store's log to the partition, one message at a time.
//!
//! The next message goes out once the last one was read back. So messages of one leader stand in order, whatever the log's client does when it
//! tries again; and a message that was not accepted, for whatever reason, is simply written again.

use std::time::{Duration, Instant};

use store::replication::{Position, survey};
use store::tail::{LogTail, Piece};

use super::Shared;
use crate::log::MESSAGE_BYTES_MAX;
use crate::message::{Content, ENVELOPE_BYTES, Message};

/// Bytes read from the store's log at once: what gathers there while a message is on its way goes with the next one.
const PIECE_BYTES: usize = 1 << 20;
/// How long to wait for what was written to be read back, before it is written again.
const READ_BACK: Duration = Duration::from_secs(5);
/// The pause after the log has refused a message.
const REFUSED: Duration = Duration::from_millis(200);
/// How often it looks whether it has to end.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Writes what the store logs from `from` on, as the leader of `epoch`, until it does not lead any more.
pub(super) fn run(shared: &Shared, epoch: u32, mut tail: LogTail, from: Position) {
    let bell = tail.bell();
    let [log] = tail.shards_mut() else { return };
    if let Err(error) = log.seek(from) {
        return fail(shared, epoch, error.to_string());
    }
    while leads(shared, epoch) {
        match log.read(PIECE_BYTES) {
            Ok(Some(Piece::Records(records))) => {
                send_piece(shared, epoch, records.from, &records.bytes);
                log.keep_from(log.position());
            }
            Ok(Some(Piece::Lost { from, to })) => {
                return fail(
                    shared,
                    epoch,
                    format!("the store's log lacks what was between {from} and {to}"),
                );
            }
            Ok(None) => drop(bell.wait(LOOK_AGAIN)),
            Err(error) => return fail(shared, epoch, error.to_string()),
        }
    }
}

fn leads(shared: &Shared, epoch: u32) -> bool {
    let state = shared.state();
    state.leads && state.accepted.epoch == epoch
}

/// Ends the leadership: the store cannot say what it has decided.
fn fail(shared: &Shared, epoch: u32, why: String) {
    let mut state = shared.state();
    if state.leads && state.accepted.epoch == epoch {
        tracing::error!(partition = shared.options.partition, %why, "this replica cannot lead any more");
        state.fault = Some(why);
        state.leads = false;
        shared.changed.notify_all();
    }
}

/// Writes whole records, in as many messages as they need, until all of them are accepted.
fn send_piece(shared: &Shared, epoch: u32, from: Position, bytes: &[u8]) {
    let end = from.plus(bytes.len() as u64);
    let is_whole = survey(bytes, from).applicable == bytes.len();
    loop {
        let accepted = {
            let state = shared.state();
            if !state.leads || state.accepted.epoch != epoch {
                return;
            }
            state.accepted.end
        };
        if accepted >= end {
            return;
        }
        let done = accepted.offset.saturating_sub(from.offset) as usize;
        let chunk = &bytes[done..bytes.len().min(done + MESSAGE_BYTES_MAX - ENVELOPE_BYTES)];
        let is_last = done + chunk.len() == bytes.len();
        let content = Content::Records { from: accepted, bytes: chunk, is_whole: is_whole && is_last };
        let (partition, writer) = (shared.options.partition, shared.options.writer);
        let message = Message { partition, epoch, writer, content }.encode();
        let patience = match shared.append(&message) {
            Ok(()) => READ_BACK,
            Err(error) => {
                tracing::warn!(partition, %error, "the replicated log did not take what this partition decided; it is written again");
                REFUSED
            }
        };
        wait_for(shared, epoch, accepted.plus(chunk.len() as u64), patience);
    }
}

/// Waits until what is before `end` was read back.
fn wait_for(shared: &Shared, epoch: u32, end: Position, patience: Duration) {
    let until = Instant::now() + patience;
    let mut state = shared.state();
    while state.accepted.end < end && state.leads && state.accepted.epoch == epoch {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        state = shared.wait(state, left.min(LOOK_AGAIN));
    }
}
