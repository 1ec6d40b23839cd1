//! Accepts and serves HTTP connections: with a time limit for everything a client may leave half done, and a share of the
//! memory for clients for requests and answers.
//!
//! A client that asks for `/healthz` or `/metrics` gets an answer however many others there are: the oldest connection that
//! sends nothing is closed for a new one, and some connections beyond the limit are for these two only.

mod connections;
mod timed_stream;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::failure::Failure;
use crate::connection_limits::{ListenerKind, ShortageLog, Slot};
use crate::limits::{
    ACCEPT_PAUSE, ANSWER_BYTES_HELD, HTTP_BODY_BYTES_MAX, HTTP_HEAD_BYTES_MAX, HTTP_RESERVE, HTTP_WAIT_MAX,
    STOP_TIMEOUT,
};
use crate::service::{Service, stopped};
use connections::{AnswerBody, HttpConnection, HttpConnections};
use timed_stream::TimedStream;

/// How long a client may wait for the slot of one that was closed for it.
const SLOT_TIMEOUT: Duration = Duration::from_millis(100);
/// How long it may wait for one in reserve.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(1);

/// What all connections share.
struct Server {
    service: Arc<Service>,
    router: TowerToHyperService<Router>,
    connections: Arc<HttpConnections>,
    /// Connections for `/healthz` and `/metrics` only.
    reserve: Arc<Semaphore>,
    /// How long a client may be silent in the middle of something.
    wait: Duration,
}

/// Serves until `stop` becomes true and every connection has ended.
///
/// # Errors
/// When the runtime cannot use the socket.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    service: Arc<Service>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let server = Arc::new(Server {
        router: TowerToHyperService::new(router),
        connections: HttpConnections::new(&service.memory),
        reserve: Arc::new(Semaphore::new(HTTP_RESERVE)),
        wait: service.idle.min(HTTP_WAIT_MAX),
        service,
    });
    let mut connections = JoinSet::new();
    let mut shortage = ShortageLog::default();
    let stop_of_connections = stop.clone();
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            ended = connections.join_next(), if !connections.is_empty() => {
                if let Some(Err(error)) = ended && error.is_panic() {
                    server.service.metrics.panics.inc();
                    tracing::error!(%error, "a bug ended a connection over HTTP; the others go on");
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // Answers are complete when they are written, so waiting for more gains nothing.
                    stream.set_nodelay(true).ok();
                    if let Some(admission) = server.admit(&mut shortage).await {
                        let server = Arc::clone(&server);
                        connections.spawn(server.serve_connection(stream, admission, stop_of_connections.clone()));
                    }
                }
                Err(error) => {
                    shortage.begin(format_args!("cannot accept a connection over HTTP: {error}"));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            () = shortage.over() => shortage.end(),
        }
    }
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(STOP_TIMEOUT, all_ended).await.is_err() {
        connections.shutdown().await;
    }
    Ok(())
}

/// What lets a connection in, held until it ends.
enum Admission {
    Slot(#[expect(dead_code, reason = "held")] Slot),
    /// Only for `/healthz` and `/metrics`.
    Reserve(#[expect(dead_code, reason = "held")] tokio::sync::OwnedSemaphorePermit),
}

impl Server {
    /// Lets a new connection in; `None` when even those in reserve are busy.
    async fn admit(&self, shortage: &mut ShortageLog) -> Option<Admission> {
        if let Some(slot) = self.service.connection_limits.try_acquire(ListenerKind::Http) {
            return Some(Admission::Slot(slot));
        }
        shortage.begin("all places for HTTP connections are taken; idle ones are closed for new ones");
        let closed = self.connections.close_oldest_idle();
        if closed.is_some_and(|connection| !connection.is_reserve) {
            let slot = self.service.connection_limits.acquire(ListenerKind::Http);
            if let Ok(slot) = timeout(SLOT_TIMEOUT, slot).await {
                return Some(Admission::Slot(slot));
            }
        }
        let reserve = Arc::clone(&self.reserve).acquire_owned();
        match timeout(RESERVE_TIMEOUT, reserve).await {
            Ok(Ok(permit)) => Some(Admission::Reserve(permit)),
            _ => {
                self.service.metrics.connections_refused.inc();
                None
            }
        }
    }

    async fn serve_connection(
        self: Arc<Self>,
        stream: TcpStream,
        admission: Admission,
        mut stop: watch::Receiver<bool>,
    ) {
        let is_reserve = matches!(admission, Admission::Reserve(_));
        let connection = self.connections.add(&self.service.memory, is_reserve);
        let io = TokioIo::new(TimedStream::new(stream, Arc::clone(&connection), self.wait));
        let serve = service_fn(|request: hyper::Request<Incoming>| {
            let (server, connection) = (Arc::clone(&self), Arc::clone(&connection));
            async move { Ok::<_, std::convert::Infallible>(server.answer(request, &connection).await) }
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.wait)
            .max_buf_size(HTTP_HEAD_BYTES_MAX)
            .serve_connection(io, serve);
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            biased;
            // Errors are the client's: it is gone, or sends no HTTP.
            _ = &mut serving => {}
            () = connection.closed() => {}
            () = stopped(&mut stop) => {
                serving.as_mut().graceful_shutdown();
                let _ = serving.await;
            }
        }
        drop(admission);
    }

    async fn answer(
        &self,
        request: hyper::Request<Incoming>,
        connection: &Arc<HttpConnection>,
    ) -> hyper::Response<AnswerBody> {
        let mut response = self.respond(request, connection).await;
        if connection.is_reserve {
            // No client keeps it.
            response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
        }
        response.map(|body| AnswerBody::new(body, Arc::clone(connection)))
    }

    async fn respond(&self, request: hyper::Request<Incoming>, connection: &HttpConnection) -> Response {
        let is_probe = matches!(request.uri().path(), "/healthz" | "/metrics");
        if connection.is_reserve && !is_probe {
            self.service.metrics.connections_refused.inc();
            let text = "too many connections; ask again";
            return Failure::new(StatusCode::SERVICE_UNAVAILABLE, text).into_response();
        }
        let request = match self.receive(request).await {
            Ok(request) => request,
            Err(failure) => return failure.into_response(),
        };
        connection.set_busy();
        let Ok(response) = self.router.call(request).await;
        // What is made as the client reads waits for it in pieces.
        let bytes = response.body().size_hint().exact().unwrap_or(ANSWER_BYTES_HELD as u64);
        match connection.hold(bytes, is_probe) {
            Ok(()) => response,
            Err(failure) => failure.into_response(),
        }
    }

    /// The request with its whole body.
    async fn receive(&self, request: hyper::Request<Incoming>) -> Result<Request, Failure> {
        let (parts, body) = request.into_parts();
        if body.is_end_stream() {
            return Ok(Request::from_parts(parts, Body::empty()));
        }
        let refuse = |status, text: &str| Err(Failure::new(status, text));
        match timeout(self.wait, axum::body::to_bytes(Body::new(body), HTTP_BODY_BYTES_MAX)).await {
            Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
            Ok(Err(_)) => refuse(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long, or ended early"),
            Err(_) => refuse(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time"),
        }
    }
}
