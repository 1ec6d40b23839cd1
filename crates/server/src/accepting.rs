//! The loop of a port of TCP: accepts connections, and waits for them to end when the daemon stops.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connection_limits::ShortageLog;
use crate::limits::{ACCEPT_PAUSE, STOP_TIMEOUT};
use crate::service::{Service, stopped};

/// What serves a connection until it ends. In a box of its own, so that the task is not as large as every step on the way to it.
pub(crate) type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What lets connections in, and serves them.
pub(crate) trait Accepting: Send + Sync + 'static {
    /// Counts what goes wrong.
    fn service(&self) -> &Service;

    /// Where the connections come in, for the log: `over HTTP`.
    fn place(&self) -> String;

    /// What serves a connection until it ends or `stop` becomes true; `None` when it is closed at once, of which `shortage` is told.
    fn admit(
        self: Arc<Self>,
        stream: TcpStream,
        shortage: &mut ShortageLog,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = Option<Serving>> + Send;
}

/// Serves until `stop` becomes true and every connection has ended or [`STOP_TIMEOUT`] is over.
///
/// # Errors
/// When the runtime cannot use the socket.
pub(crate) async fn accept<A: Accepting>(
    listener: std::net::TcpListener,
    server: Arc<A>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    let mut shortage = ShortageLog::default();
    let stop_of_connections = stop.clone();
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            ended = connections.join_next(), if !connections.is_empty() => {
                if let Some(Err(error)) = ended && error.is_panic() {
                    server.service().metrics.panics.inc();
                    tracing::error!(%error, "a bug ended a connection {}; the others go on", server.place());
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let admitted = Arc::clone(&server).admit(stream, &mut shortage, stop_of_connections.clone());
                    if let Some(serving) = admitted.await {
                        connections.spawn(serving);
                    }
                }
                Err(error) => {
                    shortage.begin(format_args!("cannot accept a connection {}: {error}", server.place()));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            () = shortage.over() => shortage.end(),
        }
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_TIMEOUT, all_ended).await.is_err() {
        connections.shutdown().await;
    }
    Ok(())
}
