//! History into RRDs of a store.

use exchange::history::merge::merge;
use protocol::frames::code::ErrorCode;
use protocol::rrdcached::files::Entry;
use rrd::codec::file;
use rrd::content::Rrd;
use store::engine::StoreError;
use store::name::RrdName;

use super::{Peer, told};

/// Attempts to fill an RRD that is updated meanwhile.
const FILL_ATTEMPTS: usize = 20;

impl Peer {
    /// Imports an RRD that this process has made.
    pub fn import_made(&self, name: &RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), String> {
        match self {
            Peer::Daemon(_) => {
                let current_rows = vec![0; rrd.definition.rra.len()];
                let bytes = file::encode(&rrd, &current_rows).map_err(|error| error.to_string())?;
                self.import(name, &bytes, no_overwrite)
            }
            Peer::Store(engine) => {
                engine.import(name.clone(), rrd, no_overwrite).map_err(|error| error.to_string())
            }
        }
    }

    /// Brings history into an RRD, which is made if it is not there: what the RRD does not know comes from the history.
    pub fn fill(&self, name: &RrdName, history: Rrd) -> Result<(), String> {
        match self {
            Peer::Store(engine) => match engine.read(name) {
                Err(StoreError::NoSuchRrd(_)) => self.import_made(name, history, true),
                Err(error) => Err(error.to_string()),
                Ok(mut rrd) => {
                    merge(&mut rrd, &history)?;
                    engine.import(name.clone(), rrd, false).map_err(|error| error.to_string())
                }
            },
            Peer::Daemon(daemon) => {
                for _ in 0..FILL_ATTEMPTS {
                    let image = match daemon.image(name.as_bytes(), None) {
                        Ok(image) => image,
                        // Over text, that there is none has no code of its own.
                        Err(error) => {
                            let made = self.import_made(name, history, true);
                            return made.map_err(|why| format!("{why}; {}", told(error)));
                        }
                    };
                    let parts = file::decode(&image.bytes);
                    let mut parts = parts.map_err(|error| error.named(&name.to_string()).to_string())?;
                    merge(&mut parts.rrd, &history)?;
                    let bytes =
                        file::encode(&parts.rrd, &parts.current_rows).map_err(|error| error.to_string())?;
                    let Entry::Rrd(_, Some(version)) = image.entry else {
                        return Err("the daemon does not say its version".to_string());
                    };
                    match daemon.replace(name.as_bytes(), version, &bytes) {
                        // An update came in between.
                        Err(error) if error.is(ErrorCode::Changed) => {}
                        replaced => return replaced.map(drop).map_err(told),
                    }
                }
                Err("it was updated whenever it was to be filled; try again".to_string())
            }
        }
    }
}
