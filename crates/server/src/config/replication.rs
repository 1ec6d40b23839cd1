//! The sections `[replication]` and `[follow]`.

use std::path::PathBuf;

use protocol::frames::replication::NAME_BYTES_MAX;
use serde::Deserialize;
use toml::Spanned;

use super::{ConfigError, Reader, values};
use crate::replication::{FollowSettings, LOG_BYTES_DEFAULT, REPLICA_PATIENCE_DEFAULT, ReplicationSettings};
use crate::tls::TlsOptions;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [replication]")]
pub(super) struct FileReplication {
    listen: Vec<Spanned<String>>,
    open: bool,
    tls: Option<TlsOptions>,
    ack: Option<Spanned<String>>,
    ack_timeout: Option<Spanned<String>>,
    log: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section [follow]")]
pub(super) struct FileFollow {
    primary: Spanned<String>,
    name: Option<Spanned<String>>,
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    token_file: Option<PathBuf>,
}

impl Reader<'_> {
    /// How others follow this server.
    pub(super) fn replication(&self, given: &FileReplication) -> Result<ReplicationSettings, ConfigError> {
        let FileReplication { listen, open, tls, .. } = given;
        let (listen, open, tls) = self.frames_port(listen, *open, tls.as_ref(), "127.0.0.1:42221")?;
        let patience = given.ack_timeout.as_ref();
        let patience =
            self.duration("ack_timeout", patience, REPLICA_PATIENCE_DEFAULT, values::ACK_TIMEOUT)?;
        let replica_patience = match given.ack.as_ref().map(|ack| (ack, ack.get_ref().as_str())) {
            None | Some((_, "local")) => None,
            Some((_, "replica")) => Some(patience),
            Some((ack, _)) => {
                return Err(self.error(
                    "ack",
                    ack,
                    "give \"local\" (answered when this server has it) or \"replica\" (when a follower has it, too)",
                ));
            }
        };
        if let (Some(ack), true) = (&given.ack, replica_patience.is_some() && listen.is_empty()) {
            return Err(self.error(
                "ack",
                ack,
                "no follower can connect: give [replication] listen = [\"HOST:PORT\"]",
            ));
        }
        Ok(ReplicationSettings {
            listen,
            open,
            tls,
            replica_patience,
            log_bytes: self.bytes("log", given.log.as_ref(), LOG_BYTES_DEFAULT, values::KEPT_LOG)?,
        })
    }

    /// Whom this server follows.
    pub(super) fn follow(&self, given: &FileFollow) -> Result<FollowSettings, ConfigError> {
        let FileFollow { primary, name, ca_file, cert_file, key_file, token_file } = given;
        let advice = "give HOST:PORT of the primary's [replication] listen, or tls:HOST:PORT";
        let follow =
            FollowSettings::of(primary.get_ref()).ok_or_else(|| self.error("primary", primary, advice))?;
        let is_name = |name: &str| {
            (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if let Some(name) = name.as_ref().filter(|name| !is_name(name.get_ref())) {
            return Err(self.error("name", name, "give printable ASCII without spaces, such as \"second\""));
        }
        let name = name.as_ref().map_or(follow.name, |name| name.get_ref().clone());
        let identity = self.identity(("primary", primary), [ca_file, cert_file, key_file, token_file])?;
        Ok(FollowSettings { identity, name, ..follow })
    }
}
