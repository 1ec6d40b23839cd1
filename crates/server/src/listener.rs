//! Sockets: bound before privileges are dropped, served afterwards.
//!
//! A socket file left by a daemon that is gone is replaced; if another daemon still answers on it, binding
//! fails.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, RwLock};

use protocol::rrdcached::address::Address;
use protocol::rrdcached::command::Permissions;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::access::{Anonymous, Principal};
use crate::connection::encrypted::EncryptedStream;
use crate::connection::task::{self, Stream};
use crate::connection::{ListenerRights, SharedPermissions};
use crate::connection_limits::{ListenerKind, ShortageLog, Slot};
use crate::limits::{ACCEPT_PAUSE, STOP_TIMEOUT, TLS_STREAM_BYTES};
use crate::peer::Peer;
use crate::service::{Service, stopped};
use crate::tls::TlsOptions;
use crate::tls::port::TlsPort;

/// Connections that the kernel queues until they are accepted. Linux limits this to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// A socket to listen on, with the permissions of its clients.
#[derive(Clone, Debug)]
pub struct Listen {
    /// The address.
    pub address: Address,
    /// What its clients may do.
    pub permissions: Permissions,
    /// Mode of a UNIX socket (`-m`).
    pub mode: Option<u32>,
    /// Group of a UNIX socket (`-s`).
    pub group: Option<u32>,
    /// What clients may do that do not say who they are.
    pub anonymous: Anonymous,
    /// TLS of a TCP socket.
    pub tls: Option<TlsOptions>,
}

/// A bound socket.
#[derive(Debug)]
pub enum Bound {
    /// A UNIX socket with its file, which is removed when this is dropped.
    Unix(UnixListener, SocketFile),
    /// A TCP socket on one address of the requested host, with its TLS.
    Tcp(TcpListener, Option<Arc<TlsPort>>),
}

/// The file of a UNIX socket; removed when dropped, so that a failed start leaves none.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl SocketFile {
    /// The file of a socket that was bound there.
    pub fn new(path: &Path) -> Self {
        SocketFile(path.to_path_buf())
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another process may have removed it already.
        std::fs::remove_file(&self.0).ok();
    }
}

/// Why a socket could not be bound.
#[derive(Debug)]
pub struct BindError {
    address: Address,
    cause: String,
}

impl std::fmt::Display for BindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot listen on \"{}\": {}", self.address, self.cause)
    }
}

impl std::error::Error for BindError {}

impl Listen {
    /// Binds it: a UNIX socket, or one for every address of the host name.
    ///
    /// # Errors
    /// When an address cannot be bound, or the file cannot be replaced or given its mode.
    pub fn bind(&self) -> Result<Vec<Bound>, BindError> {
        let fail = |cause: String| BindError { address: self.address.clone(), cause };
        match &self.address {
            Address::Unix(path) => {
                let listener = bind_unix(path).map_err(fail)?;
                let bound = Bound::Unix(listener, SocketFile::new(path));
                self.set_group_and_mode(path).map_err(|error| fail(error.to_string()))?;
                Ok(vec![bound])
            }
            Address::Tls { .. } => {
                Err(fail("give HOST:PORT, and certificate and key in tls of its [[listen]]".to_string()))
            }
            Address::Tcp { host, port } => {
                // Before privileges are dropped: keys are often root's.
                let tls = self.tls.as_ref().map(TlsPort::open).transpose();
                let tls = tls.map_err(|error| fail(format!("tls: {error}")))?;
                let listeners = bind_tcp(host, *port).map_err(fail)?;
                Ok(listeners.into_iter().map(|listener| Bound::Tcp(listener, tls.clone())).collect())
            }
        }
    }

    /// Sets the group and mode of the socket file.
    fn set_group_and_mode(&self, path: &Path) -> io::Result<()> {
        if self.group.is_some() {
            std::os::unix::fs::chown(path, None, self.group)?;
        }
        // According to the manual, a group alone means mode 0760.
        let mode = self.mode.or(self.group.map(|_| 0o760));
        match mode {
            Some(mode) => std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)),
            None => Ok(()),
        }
    }
}

/// Binds a UNIX socket, replacing a stale one.
///
/// # Errors
/// When another daemon answers there, or the system refuses; a text for the operator.
pub fn bind_unix(path: &Path) -> Result<UnixListener, String> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {
            if UnixStream::connect(path).is_ok() {
                return Err("another daemon answers there; stop it first or listen elsewhere".to_string());
            }
            std::fs::remove_file(path).map_err(|error| format!("cannot replace the old socket: {error}"))?;
        }
        Ok(_) => return Err("something that is no socket is there; move it away".to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(directory) = path.parent() {
                // If this fails, so does the bind.
                std::fs::create_dir_all(directory).ok();
            }
        }
        Err(error) => return Err(error.to_string()),
    }
    UnixListener::bind(path).map_err(|error| error.to_string())
}

fn bind_tcp(host: &str, port: u16) -> Result<Vec<TcpListener>, String> {
    let addresses: Vec<SocketAddr> = if host.is_empty() {
        vec![([0u8; 4], port).into(), ([0u16; 8], port).into()]
    } else {
        (host, port).to_socket_addrs().map_err(|error| error.to_string())?.collect()
    };
    let mut bound = Vec::new();
    let mut failure = "the name has no address".to_string();
    for address in addresses {
        match bind_one(address) {
            Ok(listener) => bound.push(listener),
            // A machine without IPv6 still listens on IPv4.
            Err(error) => failure = error.to_string(),
        }
    }
    if bound.is_empty() { Err(failure) } else { Ok(bound) }
}

fn bind_one(address: SocketAddr) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC;
    let socket: OwnedFd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        rustix::net::sockopt::set_ipv6_v6only(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

/// A listening socket in use.
enum Acceptor {
    Unix(tokio::net::UnixListener),
    Tcp(tokio::net::TcpListener, Option<Arc<TlsPort>>),
}

impl Acceptor {
    fn new(bound: Bound) -> io::Result<(Self, Option<SocketFile>)> {
        Ok(match bound {
            Bound::Unix(listener, file) => {
                listener.set_nonblocking(true)?;
                (Acceptor::Unix(tokio::net::UnixListener::from_std(listener)?), Some(file))
            }
            Bound::Tcp(listener, tls) => {
                listener.set_nonblocking(true)?;
                (Acceptor::Tcp(tokio::net::TcpListener::from_std(listener)?, tls), None)
            }
        })
    }

    async fn accept(&self) -> io::Result<Client> {
        match self {
            Acceptor::Unix(listener) => {
                let stream = listener.accept().await?.0;
                let credentials = stream.peer_cred()?;
                let peer = Peer::Unix { uid: credentials.uid(), gid: credentials.gid() };
                Ok(Client::Plain(Stream::Unix(stream), peer))
            }
            Acceptor::Tcp(listener, tls) => {
                let (stream, address) = listener.accept().await?;
                // Answers are complete when they are written, so waiting for more gains nothing.
                stream.set_nodelay(true)?;
                Ok(match tls {
                    Some(tls) => Client::Tls(stream, address, Arc::clone(tls)),
                    None => Client::Plain(Stream::Tcp(stream), Peer::Tcp { address, certificate: None }),
                })
            }
        }
    }
}

/// A client that has been accepted.
enum Client {
    Plain(Stream, Peer),
    /// Its handshake comes first.
    Tls(tokio::net::TcpStream, SocketAddr, Arc<TlsPort>),
}

/// What serves a client until its connection ends. In a box of its own: in the task, each step on the way to it would be as large again.
type Serving = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

impl Client {
    fn serve(
        self,
        service: Arc<Service>,
        permissions: SharedPermissions,
        stop: watch::Receiver<bool>,
    ) -> Serving {
        match self {
            Client::Plain(stream, peer) => Box::pin(task::serve(stream, service, permissions, peer, stop)),
            Client::Tls(socket, address, tls) => {
                Box::pin(serve_encrypted(socket, address, tls, service, permissions, stop))
            }
        }
    }
}

async fn serve_encrypted(
    mut socket: tokio::net::TcpStream,
    address: SocketAddr,
    tls: Arc<TlsPort>,
    service: Arc<Service>,
    permissions: SharedPermissions,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let _fixed = service.memory.fix(TLS_STREAM_BYTES);
    let done = tokio::select! {
        biased;
        () = stopped(&mut stop) => return Ok(()),
        done = tls.handshake(&mut socket) => done,
    };
    let (tls, certificate) = done.inspect_err(|error| {
        service.metrics.connections_refused.inc();
        tracing::debug!(%address, %error, "a client could not begin TLS");
    })?;
    let stream = Stream::Tls(Box::new(EncryptedStream::new(socket, tls)));
    task::serve(stream, service, permissions, Peer::Tcp { address, certificate }, stop).await
}

/// Accepts and serves connections until `stop` becomes true and every connection has ended or
/// [`STOP_TIMEOUT`] is over. Finally removes a UNIX socket's file.
///
/// # Errors
/// When the runtime cannot use the socket.
pub async fn serve(
    bound: Bound,
    service: Arc<Service>,
    permissions: SharedPermissions,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let (acceptor, file) = Acceptor::new(bound)?;
    let mut connections = JoinSet::new();
    let stop_of_connections = stop.clone();
    // A client that has been accepted, and waits for a slot.
    let mut waiting = None;
    let mut shortage = ShortageLog::default();
    let start = |client: Client, slot: Slot, connections: &mut JoinSet<io::Result<()>>| {
        service.metrics.connections.inc();
        service.metrics.connections_open.inc();
        let (service, permissions) = (Arc::clone(&service), Arc::clone(&permissions));
        let serving = client.serve(service, permissions, stop_of_connections.clone());
        connections.spawn(async move {
            let _slot = slot;
            serving.await
        });
    };
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            ended = connections.join_next(), if !connections.is_empty() => log_end(&service, ended),
            slot = service.connection_limits.acquire(ListenerKind::Rrdcached), if waiting.is_some() => {
                if let Some(client) = waiting.take() {
                    start(client, slot, &mut connections);
                }
            }
            accepted = acceptor.accept(), if waiting.is_none() => match accepted {
                Ok(client) => match service.connection_limits.try_acquire(ListenerKind::Rrdcached) {
                    Some(slot) => start(client, slot, &mut connections),
                    None => {
                        // A client that does nothing but begin TLS keeps no place from others.
                        if let Client::Tls(_, _, tls) = &client {
                            tls.make_room();
                        }
                        shortage.begin("all places for connections are taken; further clients wait");
                        waiting = Some(client);
                    }
                },
                Err(error) => {
                    shortage.begin(format_args!("cannot accept a connection: {error}"));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            () = shortage.over(), if waiting.is_none() => shortage.end(),
        }
    }
    drop((acceptor, file, waiting));
    let all_ended = async {
        while let Some(ended) = connections.join_next().await {
            log_end(&service, Some(ended));
        }
    };
    if tokio::time::timeout(STOP_TIMEOUT, all_ended).await.is_err() {
        tracing::warn!(count = connections.len(), "connections did not end in time");
        connections.shutdown().await;
    }
    Ok(())
}

fn log_end(service: &Service, ended: Option<Result<io::Result<()>, tokio::task::JoinError>>) {
    service.metrics.connections_open.dec();
    match ended {
        Some(Ok(Err(error))) => tracing::debug!(%error, "connection ended"),
        Some(Err(error)) if error.is_panic() => {
            service.metrics.panics.inc();
            tracing::error!(%error, "a bug ended a connection; the others go on");
        }
        _ => {}
    }
}

/// What clients of a socket may do; a reload can change the commands.
pub fn shared(permissions: Permissions, anonymous: Arc<Principal>) -> SharedPermissions {
    Arc::new(ListenerRights { permissions: RwLock::new(permissions), anonymous })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::listen_plain;

    fn listen(path: &Path) -> Listen {
        let address = Address::Unix(path.to_path_buf());
        Listen { permissions: Permissions::ALL, mode: Some(0o600), ..listen_plain(address) }
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/sock");
        let first = bind_unix(&path).unwrap();
        listen(&path).set_group_and_mode(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let error = listen(&path).bind().unwrap_err().to_string();
        assert!(error.contains("another daemon answers there"), "{error}");
        drop(first);
        assert!(path.exists());
        drop(listen(&path).bind().unwrap());
        assert!(!path.exists());
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(listen(&file).bind().unwrap_err().to_string().contains("no socket"));
        assert!(file.exists());
    }

    #[test]
    fn a_port_without_a_host_listens_on_both_families() {
        let bound = bind_tcp("127.0.0.1", 0).unwrap();
        assert_eq!(bound.len(), 1);
        let any = bind_tcp("", 0).unwrap();
        assert!(!any.is_empty());
        assert!(bind_tcp("no-such-host.invalid", 1).is_err());
    }
}
