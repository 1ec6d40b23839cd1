//! RRDs one after the other in the order of their names, read by several threads ahead of need.

use std::sync::mpsc::sync_channel;

use rrd::codec::file;
use rrd::content::Rrd;
use store::name::RrdName;

use super::{Peer, Result};

/// Threads that read. Each holds two RRDs at most; decoding one takes a few times as long as what is done with it.
const THREADS: usize = 4;

/// Reads these RRDs and gives each to `take`, in order, with why it could not be read. Ends early when `take` fails.
///
/// # Errors
/// What `take` failed with.
pub(super) fn in_order(
    peer: &Peer,
    names: &[Vec<u8>],
    mut take: impl FnMut(&[u8], Result<Rrd>) -> Result,
) -> Result {
    std::thread::scope(|scope| {
        let mut lanes = Vec::new();
        for lane in 0..THREADS.min(names.len()) {
            let (send, receive) = sync_channel(1);
            lanes.push(receive);
            scope.spawn(move || {
                for name in names.iter().skip(lane).step_by(THREADS) {
                    // The receiver is gone when another RRD has ended the export.
                    if send.send(read(peer, name)).is_err() {
                        return;
                    }
                }
            });
        }
        for (index, name) in names.iter().enumerate() {
            let lost = || "the thread that reads it has ended".to_string();
            take(name, lanes[index % THREADS].recv().unwrap_or_else(|_| Err(lost())))?;
        }
        Ok(())
    })
}

fn read(peer: &Peer, name: &[u8]) -> Result<Rrd> {
    let name = RrdName::new(name).map_err(|error| error.to_string())?;
    if let Peer::Store(engine) = peer {
        return engine.read(&name).map_err(|error| error.to_string());
    }
    let bytes = peer.export(&name)?;
    file::decode(&bytes).map(|parts| parts.rrd).map_err(|error| error.named(&name.to_string()).to_string())
}
