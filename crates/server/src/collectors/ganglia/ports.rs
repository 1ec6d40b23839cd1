//! gmetad's ports: one answers everything, one what a line asks for; then the connection ends.

use std::sync::Arc;
use std::time::Duration;

use collect::ganglia::answer::{GangliaQuery, QUERY_BYTES_MAX};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Semaphore};

use super::super::context::CollectorContext;
use super::State;
use crate::limits::{ACCEPT_PAUSE, TLS_HANDSHAKES_MAX};
use crate::tls::port::TlsPort;

/// Connections of one port at once; further ones wait.
const CONNECTIONS_MAX: usize = 32;
/// The longest wait for a request, and for its answer to be read.
const WAIT: Duration = Duration::from_secs(10);

/// Serves a port until it is dropped.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<Arc<TlsPort>>,
    state: Arc<Mutex<State>>,
    context: Arc<CollectorContext>,
    is_interactive: bool,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // There are so few places that handshakes take none: with TLS, so many clients more have been accepted.
    let beginning = Arc::new(Semaphore::new(2 * TLS_HANDSHAKES_MAX));
    loop {
        let gate = if tls.is_some() { &beginning } else { &places };
        let Ok(admitted) = Arc::clone(gate).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (state, context) = (Arc::clone(&state), Arc::clone(&context));
        let (tls, places) = (tls.clone(), Arc::clone(&places));
        tokio::spawn(async move {
            let _admitted = admitted;
            let Some(tls) = tls else {
                return answer_in_time(stream, &state, &context, is_interactive).await;
            };
            let Ok((stream, _)) = tls.encrypt(stream).await else { return };
            if let Ok(_place) = places.acquire_owned().await {
                answer_in_time(stream, &state, &context, is_interactive).await;
            }
        });
    }
}

/// Answers a client; one that does not read, or asks nothing, is left.
async fn answer_in_time(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    state: &Mutex<State>,
    context: &CollectorContext,
    is_interactive: bool,
) {
    let _ = tokio::time::timeout(2 * WAIT, answer(stream, state, context, is_interactive)).await;
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    state: &Mutex<State>,
    context: &CollectorContext,
    is_interactive: bool,
) -> Option<()> {
    let query = match is_interactive {
        true => GangliaQuery::parse(&tokio::time::timeout(WAIT, line(&mut stream)).await.ok()??)?,
        false => GangliaQuery::default(),
    };
    let bytes = {
        let state = state.lock().await;
        tokio::task::block_in_place(|| state.collector.answer(context.now(), &query))
    };
    stream.write_all(&bytes).await.ok()?;
    stream.shutdown().await.ok()
}

/// The first line that a client sends; none if it is too long.
async fn line(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut bytes = [0; 512];
    while line.len() <= QUERY_BYTES_MAX {
        let count = stream.read(&mut bytes).await.ok()?;
        line.extend_from_slice(&bytes[..count]);
        if let Some(end) = line.iter().position(|&byte| byte == b'\n') {
            line.truncate(end);
            return Some(line);
        }
        if count == 0 {
            return Some(line);
        }
    }
    None
}
