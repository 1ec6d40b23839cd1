//! A second server: a primary sends its log, a follower takes it and can take the primary's place (`docs/replication.md`,
//! `docs/protocol/replication.md`).

mod chunks;
mod copying;
mod fence;
pub mod follower;
mod kept;
pub mod preparing;
pub mod primary;
mod sending;
mod session;
pub mod state;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use protocol::frames::replication::{LogPosition, NAME_BYTES_MAX, ShardEnd};
use store::replication::{LastRecord, LogEnd, Position};
use tokio::sync::watch;

use self::state::ReplicationState;
use crate::agent::wire::AgentIdentity;
use crate::agents::AgentsSettings;
use crate::tls::TlsOptions;

/// The checked section `[replication]`: how others follow this server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicationSettings {
    /// Addresses for followers, each HOST:PORT.
    pub listen: Vec<String>,
    /// Followers need not say who they are.
    pub open: bool,
    /// TLS of all of them.
    pub tls: Option<TlsOptions>,
    /// Changes are answered only when a follower has them; one that none has for so long is refused. `None`: when this server has them.
    pub replica_patience: Option<Duration>,
    /// Bytes of log of each shard that are kept for followers that are away.
    pub log_bytes: u64,
}

/// The checked section `[follow]`: whom this server follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowSettings {
    /// Where the primary listens for followers, as HOST:PORT or tls:HOST:PORT.
    pub primary: String,
    /// How this server shows who it is.
    pub identity: AgentIdentity,
    /// What the primary calls it in its log.
    pub name: String,
}

/// The port at which primaries listen for followers unless another is given.
const PORT_DEFAULT: u16 = 42221;

impl FollowSettings {
    /// Those of a follower that is called as its machine and shows no token; `None` when the address is none: HOST, HOST:PORT, or one of
    /// these after `tls:`, `frames://` or `frames+tls://`.
    pub fn of(address: &str) -> Option<Self> {
        let primary = primary_address(address)?;
        Some(FollowSettings { primary, identity: AgentIdentity::default(), name: host_name() })
    }
}

/// A primary's address as HOST:PORT or tls:HOST:PORT.
fn primary_address(given: &str) -> Option<String> {
    let schemes =
        [("frames+tls://", "tls:"), ("frames://", ""), ("tls://", "tls:"), ("tls:", "tls:"), ("", "")];
    let found = schemes.iter().find_map(|(prefix, tls)| Some((given.strip_prefix(prefix)?, tls)));
    let (rest, tls) = found?;
    let rest = rest.trim_end_matches('/');
    let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { format!("{tls}{rest}") } else { format!("{tls}{rest}:{PORT_DEFAULT}") };
    let is_name = !rest.is_empty() && !rest.contains('/');
    (is_name && AgentsSettings::is_local(&address).is_some()).then_some(address)
}

/// What this machine is called.
pub(crate) fn host_name() -> String {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_string_lossy().into_owned();
    let is_usable =
        (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    if is_usable { name } else { "follower".to_string() }
}

/// How long a primary answers changes that no follower has, unless the configuration says otherwise.
pub const REPLICA_PATIENCE_DEFAULT: Duration = Duration::from_secs(10);
/// Bytes of log kept for a follower that is away, unless the configuration says otherwise: more than a day of 20,000 RRDs every ten
/// seconds.
pub const LOG_BYTES_DEFAULT: u64 = 1 << 30;

/// Tells the primary that this server followed that it has taken its place, until that one knows or `stop` becomes true.
///
/// # Errors
/// None.
pub async fn tell_former_primary(
    settings: FollowSettings,
    state: Arc<ReplicationState>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    if let Some(replica) = state.replica() {
        fence::tell(&settings, replica, stop).await;
    }
    Ok(())
}

fn wire_position(position: Position) -> LogPosition {
    LogPosition { generation: position.generation, offset: position.offset }
}

fn store_position(position: LogPosition) -> Position {
    Position { generation: position.generation, offset: position.offset }
}

fn wire_end(end: &LogEnd) -> ShardEnd {
    let last = end.last.map(|last| (wire_position(last.start), last.check));
    ShardEnd { position: wire_position(end.position), last }
}

fn store_end(end: &ShardEnd) -> LogEnd {
    // In which epoch it was written, the checksum says, too.
    let last = end.last.map(|(start, check)| LastRecord { start: store_position(start), check, epoch: 0 });
    LogEnd { position: store_position(end.position), last }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_primary_is_named_in_several_ways() {
        for (given, want) in [
            ("primary:1", Some("primary:1")),
            ("primary", Some("primary:42221")),
            ("tls:primary", Some("tls:primary:42221")),
            ("tls:primary:7", Some("tls:primary:7")),
            ("frames+tls://primary", Some("tls:primary:42221")),
            ("frames+tls://primary:9/", Some("tls:primary:9")),
            ("frames://10.0.0.1", Some("10.0.0.1:42221")),
            ("tls:[::1]:7", Some("tls:[::1]:7")),
            ("", None),
            ("tls:", None),
            ("http://primary/x", None),
            ("unix:/x", None),
        ] {
            assert_eq!(primary_address(given).as_deref(), want, "{given}");
        }
    }
}
