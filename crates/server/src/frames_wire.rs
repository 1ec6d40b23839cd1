//! A client on a port for frames only, such as an agent's or a follower's: it says who it is, then which frames it speaks.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use protocol::frames::{self, Frame, HEADER_BYTES};
use protocol::rrdcached::limits::TOKEN_BYTES_MAX;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::access::Principal;
use crate::limits::READ_BYTES;
use crate::peer::Peer;
use crate::service::Service;

/// The longest line before the frames: a token.
const LINE_BYTES_MAX: usize = TOKEN_BYTES_MAX + 8;

/// The socket, with what has arrived and what is to be sent.
pub struct FramesWire<S> {
    /// The socket.
    pub stream: S,
    peer: Peer,
    /// How long the client may take to read.
    patience: Duration,
    /// What has arrived and was not used yet.
    pub input: Vec<u8>,
    /// What is to be sent.
    pub output: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> FramesWire<S> {
    /// A client that has connected, and may take so long to read what it is sent.
    pub fn new(stream: S, peer: Peer, patience: Duration) -> Self {
        FramesWire { stream, peer, patience, input: Vec::new(), output: Vec::new() }
    }

    /// Finds out who the client is, `anonymous` if it does not say so, and agrees on one of the `known` versions of frames. `None` when it
    /// is not let in, or speaks none of them; `advice` is for one that should say who it is.
    ///
    /// # Errors
    /// Errors of the socket.
    pub async fn agree(
        &mut self,
        service: &Service,
        anonymous: &Arc<Principal>,
        known: &[u32],
        advice: &str,
    ) -> io::Result<Option<(u32, Arc<Principal>)>> {
        if !self.read_line().await? {
            return Ok(None);
        }
        let access = &service.access;
        let mut who = access.of_peer(&self.peer).unwrap_or_else(|| Arc::clone(anonymous));
        if let Some(token) = self.input.strip_prefix(b"AUTH ") {
            let end = token.iter().position(|&byte| byte == b'\n').unwrap_or_default();
            let (found, line) = (access.of_token(token[..end].trim_ascii()), "AUTH ".len() + end + 1);
            self.input.drain(..line);
            match found {
                Some(found) => who = found,
                None => return self.refuse(service, "this token is not known, or has ended").await,
            }
            self.output.extend_from_slice(format!("0 authenticated as {}\n", who.name).as_bytes());
            self.flush().await?;
            if !self.read_line().await? {
                return Ok(None);
            }
        }
        if who.rights.is_nothing() {
            return self.refuse(service, advice).await;
        }
        let asked = |version: &u32| format!("{}\n", frames::negotiation(*version));
        let Some(version) = known.iter().find(|version| self.input.starts_with(asked(version).as_bytes()))
        else {
            let versions: Vec<String> = known.iter().rev().map(u32::to_string).collect();
            let text = format!("-1 {} {} are spoken here.\n", frames::OTHER_VERSIONS, versions.join(" and "));
            self.output.extend_from_slice(text.as_bytes());
            self.flush().await?;
            return Ok(None);
        };
        self.input.drain(..asked(version).len());
        self.output.extend_from_slice(format!("{}\n", frames::agreement(*version)).as_bytes());
        self.flush().await?;
        Ok(Some((*version, who)))
    }

    /// Reads the first frame, whose body has at most so many bytes, and has it taken; `None` when the client sends none.
    ///
    /// # Errors
    /// Errors of the socket.
    pub async fn first_frame<T>(
        &mut self,
        body_bytes_max: usize,
        take: impl FnOnce(Frame<'_>) -> T,
    ) -> io::Result<Option<T>> {
        loop {
            match frames::scan(&self.input, body_bytes_max) {
                Ok(Some((frame, used))) => {
                    let taken = take(frame);
                    self.input.drain(..used);
                    return Ok(Some(taken));
                }
                Ok(None) if self.input.len() <= HEADER_BYTES + body_bytes_max => {}
                Ok(None) | Err(_) => return Ok(None),
            }
            if self.read().await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Reads until a line has arrived; false when there is none.
    async fn read_line(&mut self) -> io::Result<bool> {
        while !self.input.contains(&b'\n') {
            if self.input.len() > LINE_BYTES_MAX || self.read().await? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Says why the client is not let in.
    async fn refuse<T>(&mut self, service: &Service, why: &str) -> io::Result<Option<T>> {
        service.metrics.authentications_refused.inc();
        service.access.refused(&self.peer.to_string(), why);
        self.output.extend_from_slice(format!("-1 {why}\n").as_bytes());
        self.flush().await?;
        Ok(None)
    }

    /// Reads what has arrived; 0 at the end.
    ///
    /// # Errors
    /// Errors of the socket.
    pub async fn read(&mut self) -> io::Result<usize> {
        self.input.reserve(READ_BYTES);
        self.stream.read_buf(&mut self.input).await
    }

    /// Sends what is to be sent.
    ///
    /// # Errors
    /// Errors of the socket, and of a client that does not read.
    pub async fn flush(&mut self) -> io::Result<()> {
        if !self.output.is_empty() {
            let sent = async {
                self.stream.write_all(&self.output).await?;
                self.stream.flush().await
            };
            tokio::time::timeout(self.patience, sent).await??;
            self.output.clear();
        }
        Ok(())
    }
}
