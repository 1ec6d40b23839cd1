//! Accepts and serves HTTP connections: with a time limit for everything a client may leave half done, and a share of the
//! memory for clients for requests and answers.
//!
//! A client that asks for `/healthz` or `/metrics` gets an answer however many others there are: the oldest connection that
//! sends nothing is closed for a new one, and some connections beyond the limit are for these two only.

mod connections;
mod timed_stream;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Routers;
use super::access::Door;
use super::age::aged;
use super::failure::Failure;
use super::login::{LOGIN, LOGOUT};
use super::origin::{CameEncrypted, is_foreign};
use super::percent;
use crate::accepting::{self, Accepting, Serving};
use crate::access::Principal;
use crate::connection_limits::{ListenerKind, ShortageLog, Slot};
use crate::ingest::routes::{PUSH_BYTES_MAX, is_push};
use crate::limits::{
    ANSWER_BYTES_HELD, HTTP_BODY_BYTES_MAX, HTTP_HEAD_BYTES_MAX, HTTP_RESERVE, HTTP_STREAMS_MAX,
    HTTP_WAIT_MAX, TLS_CONNECTION_BYTES,
};
use crate::peer::Peer;
use crate::service::{Service, stopped};
use crate::tls::client_names;
use crate::tls::port::TLS_HANDSHAKE;
use connections::{AnswerBody, AnswerShares, HttpConnection, HttpConnections, RequestShare};
use timed_stream::TimedStream;

/// How long a client may wait for the slot of one that was closed for it.
const SLOT_TIMEOUT: Duration = Duration::from_millis(100);
/// How long it may wait for one in reserve.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(1);

/// The versions of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Version {
    #[default]
    /// 1.0 or 1.1.
    Http1,
    /// 2, over TLS only.
    Http2,
}

/// How a client speaks, and where it is.
#[derive(Debug)]
struct Spoken {
    version: Version,
    peer: Peer,
}

/// What all connections share.
struct Server {
    service: Arc<Service>,
    door: Arc<Door>,
    routers: Arc<Routers>,
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
    listener: std::net::TcpListener,
    routers: Arc<Routers>,
    service: Arc<Service>,
    door: Arc<Door>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let server = Arc::new(Server {
        door,
        routers,
        connections: HttpConnections::new(&service.memory),
        reserve: Arc::new(Semaphore::new(HTTP_RESERVE)),
        wait: service.idle.min(HTTP_WAIT_MAX),
        service,
    });
    accepting::accept(listener, server, stop).await
}

impl Accepting for Server {
    fn service(&self) -> &Service {
        &self.service
    }

    fn place(&self) -> String {
        "over HTTP".to_string()
    }

    async fn admit(
        self: Arc<Self>,
        stream: TcpStream,
        shortage: &mut ShortageLog,
        stop: watch::Receiver<bool>,
    ) -> Option<Serving> {
        // Answers are complete when they are written, so waiting for more gains nothing.
        stream.set_nodelay(true).ok();
        let admission = self.let_in(shortage).await?;
        Some(Box::pin(self.serve_connection(stream, admission, stop)))
    }
}

/// What lets a connection in, held until it ends.
enum Admission {
    Slot(#[expect(dead_code, reason = "held")] Slot),
    /// Only for `/healthz` and `/metrics`.
    Reserve(#[expect(dead_code, reason = "held")] tokio::sync::OwnedSemaphorePermit),
}

impl Server {
    /// Lets a new connection in; `None` when even those in reserve are busy.
    async fn let_in(&self, shortage: &mut ShortageLog) -> Option<Admission> {
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
        // One that is gone by now asks nothing.
        let address = stream.peer_addr().unwrap_or_else(|_| ([0; 4], 0).into());
        let spoken = |version, certificate| Spoken { version, peer: Peer::Tcp { address, certificate } };
        match self.door.tls() {
            None => {
                let spoken = spoken(Version::Http1, None);
                self.serve_requests(stream, spoken, connection, &mut stop).await;
            }
            Some(config) => {
                let _fixed = self.service.memory.fix(TLS_CONNECTION_BYTES);
                let encrypted = tokio::select! {
                    biased;
                    encrypted = timeout(self.wait, encrypt(stream, config)) => encrypted.ok().flatten(),
                    () = connection.closed() => None,
                    () = stopped(&mut stop) => None,
                };
                match encrypted {
                    Some(stream) => {
                        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                        let version = if is_http2 { Version::Http2 } else { Version::Http1 };
                        let certificate = client_names(stream.get_ref().1, self.door.verifies_clients());
                        let spoken = spoken(version, certificate);
                        self.serve_requests(stream, spoken, connection, &mut stop).await;
                    }
                    None => connection.remove(),
                }
            }
        }
        drop(admission);
    }

    /// Serves what a client asks, until it or the daemon ends the connection.
    async fn serve_requests(
        self: &Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        spoken: Spoken,
        connection: Arc<HttpConnection>,
        stop: &mut watch::Receiver<bool>,
    ) {
        let io = TokioIo::new(TimedStream::new(stream, Arc::clone(&connection), self.wait));
        let (server, its_connection) = (Arc::clone(self), Arc::clone(&connection));
        let Spoken { version, peer } = spoken;
        let serve = service_fn(move |request: hyper::Request<Incoming>| {
            let (server, connection) = (Arc::clone(&server), Arc::clone(&its_connection));
            let peer = peer.clone();
            async move {
                let answer = server.answer(request, &connection, &peer).await;
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        match version {
            Version::Http1 => {
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new())
                    .header_read_timeout(self.wait)
                    .max_buf_size(HTTP_HEAD_BYTES_MAX);
                drive(http.serve_connection(io, serve), &connection, std::future::pending(), stop).await;
            }
            Version::Http2 => {
                connection.set_multiplexed();
                let mut http = http2::Builder::new(RequestTasks(Arc::clone(&self.service)));
                http.timer(TokioTimer::new())
                    .max_concurrent_streams(HTTP_STREAMS_MAX)
                    .max_header_list_size(HTTP_HEAD_BYTES_MAX as u32)
                    .keep_alive_interval(self.wait)
                    .keep_alive_timeout(self.wait);
                let stalled = stalled(&connection, self.wait);
                drive(http.serve_connection(io, serve), &connection, stalled, stop).await;
            }
        }
    }

    async fn answer(
        &self,
        request: hyper::Request<Incoming>,
        connection: &Arc<HttpConnection>,
        peer: &Peer,
    ) -> hyper::Response<AnswerBody> {
        let mut shares = (None, None);
        let mut response = self.respond(request, connection, peer, &mut shares).await;
        if connection.is_reserve {
            // No client keeps it.
            response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
        }
        self.door.add_headers(response.headers_mut());
        response.map(|body| AnswerBody::new(body, Arc::clone(connection), shares))
    }

    async fn respond(
        &self,
        mut request: hyper::Request<Incoming>,
        connection: &Arc<HttpConnection>,
        peer: &Peer,
        shares: &mut AnswerShares,
    ) -> Response {
        name_host(&mut request);
        let is_probe = matches!(request.uri().path(), "/healthz" | "/metrics");
        if connection.is_reserve && !is_probe {
            self.service.metrics.connections_refused.inc();
            let text = "too many connections; ask again";
            return Failure::new(StatusCode::SERVICE_UNAVAILABLE, text).into_response();
        }
        if let Err(failure) = self.door.limit() {
            return failure.into_response();
        }
        request.extensions_mut().insert(CameEncrypted(self.door.is_encrypted()));
        crate::push::http::take_password(&mut request);
        // Who wants to log in has not said yet who it is, and the page's own files are the same for all.
        let is_open =
            matches!(request.uri().path(), LOGIN | LOGOUT) || request.uri().path().starts_with("/assets/");
        let who = match self.door.admit(&self.service, request.headers(), peer).await {
            Ok(who) => who,
            Err(_) if is_open => Principal::without_rights(),
            Err(response) => return login_instead(&request).unwrap_or(*response),
        };
        if is_push(request.uri().path()) && is_foreign(request.headers()) {
            // A browser asks no one before it sends such a request for a page.
            let text = "this was sent by a page of another site";
            return Failure::new(StatusCode::FORBIDDEN, text).into_response();
        }
        shares.0 = connection.request_share();
        let request = match self.receive(request, shares.0.as_mut()).await {
            Ok(request) => request,
            Err(failure) => return failure.into_response(),
        };
        let _computing = connection.begin_computing();
        let response = match request.uri().path() {
            LOGIN => self.log_in(request, peer).await,
            LOGOUT => self.door.log_out(request.headers()),
            _ => {
                let router = TowerToHyperService::new(self.routers.of(&who));
                aged(router.call(request)).await
            }
        };
        // What is made as the client reads waits for it in pieces.
        let bytes = response.body().size_hint().exact().unwrap_or(ANSWER_BYTES_HELD as u64);
        match connection.hold(bytes, is_probe) {
            Ok(share) => {
                shares.1 = share;
                response
            }
            Err(failure) => failure.into_response(),
        }
    }

    async fn log_in(&self, request: Request, peer: &Peer) -> Response {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, HTTP_BODY_BYTES_MAX).await.unwrap_or_default();
        let query = parts.uri.query().unwrap_or_default();
        self.door.log_in((&self.service, peer), &parts.headers, &parts.method, query, &body).await
    }

    /// The request with its whole body.
    async fn receive(
        &self,
        request: hyper::Request<Incoming>,
        share: Option<&mut RequestShare>,
    ) -> Result<Request, Failure> {
        let (parts, body) = request.into_parts();
        if body.is_end_stream() {
            return Ok(Request::from_parts(parts, Body::empty()));
        }
        let refuse = |status, text: &str| Err(Failure::new(status, text));
        let bytes_max = if is_push(parts.uri.path()) { PUSH_BYTES_MAX } else { HTTP_BODY_BYTES_MAX };
        match timeout(self.wait, whole(body, bytes_max, share)).await {
            Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
            Ok(Err(failure)) => Err(failure),
            Err(_) => refuse(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time"),
        }
    }
}

/// Where a browser that must say who it is finds a form for it.
fn login_instead(request: &hyper::Request<Incoming>) -> Option<Response> {
    let accept = request.headers().get(header::ACCEPT)?.to_str().ok()?;
    if request.method() != Method::GET || !accept.contains("text/html") {
        return None;
    }
    // One that has a password box of its own sends what was given there.
    if request.headers().contains_key(header::AUTHORIZATION) {
        return None;
    }
    let next = percent::encode(request.uri().path_and_query()?.as_str().as_bytes());
    Some(Redirect::to(&format!("{LOGIN}?next={next}")).into_response())
}

/// Runs the requests of a connection that has several at once. A panic ends its request only, and is reported as that of a connection.
#[derive(Clone)]
struct RequestTasks(Arc<Service>);

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for RequestTasks {
    fn execute(&self, request: F) {
        let (service, task) = (Arc::clone(&self.0), tokio::spawn(request));
        tokio::spawn(async move {
            if let Err(error) = task.await
                && error.is_panic()
            {
                service.metrics.panics.inc();
                tracing::error!(%error, "a bug ended a request over HTTP; the others go on");
            }
        });
    }
}

/// All of a body, of which `share` holds what has arrived, if its connection does not.
async fn whole(
    mut body: Incoming,
    bytes_max: usize,
    mut share: Option<&mut RequestShare>,
) -> Result<Vec<u8>, Failure> {
    let too_long = || Failure::too_much("the request is too long, or ended early");
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(piece) = frame.map_err(|_| too_long())?.into_data() else { continue };
        if bytes.len() + piece.len() > bytes_max {
            return Err(too_long());
        }
        if share.as_mut().is_some_and(|share| !share.try_hold((bytes.len() + piece.len()) as u64)) {
            let text = "too many incomplete requests; ask again";
            return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, text));
        }
        bytes.extend_from_slice(&piece);
    }
    if let Some(share) = share {
        share.complete();
    }
    Ok(bytes)
}

/// Serves a connection to its end: the client's, the one in favour of another connection, or the daemon's.
async fn drive(
    serving: impl GracefulConnection,
    connection: &HttpConnection,
    stalled: impl Future<Output = ()>,
    stop: &mut watch::Receiver<bool>,
) {
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        biased;
        // Errors are the client's: it is gone, or sends no HTTP.
        _ = &mut serving => {}
        () = connection.closed() => {}
        () = stalled => {}
        () = stopped(stop) => {
            serving.as_mut().graceful_shutdown();
            let _ = serving.await;
        }
    }
}

/// Returns when a client that may ask several things at once has asked nothing, or has read nothing of its answers, for so long.
async fn stalled(connection: &HttpConnection, wait: Duration) {
    let mut before = connection.progress();
    loop {
        tokio::time::sleep(wait).await;
        let now = connection.progress();
        if now == before && (now.is_idle || now.is_answering) {
            return;
        }
        before = now;
    }
}

/// The same connection with TLS; `None` when the client cannot.
async fn encrypt(mut stream: TcpStream, config: Arc<ServerConfig>) -> Option<TlsStream<TcpStream>> {
    let mut first = [0];
    if stream.peek(&mut first).await.ok()? == 1 && first[0] != TLS_HANDSHAKE {
        // Who has typed http:// learns why.
        let text =
            "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\nthis port speaks HTTPS only\n";
        stream.write_all(text.as_bytes()).await.ok();
        return None;
    }
    match TlsAcceptor::from(config).accept(stream).await {
        Ok(stream) => Some(stream),
        Err(error) => {
            tracing::debug!(%error, "a client could not begin TLS");
            None
        }
    }
}

/// HTTP/2 says in its `:authority` which host is asked; what looks at the header finds it there, too.
fn name_host(request: &mut hyper::Request<Incoming>) {
    if request.headers().contains_key(header::HOST) {
        return;
    }
    let host = request.uri().authority().and_then(|authority| authority.as_str().parse().ok());
    if let Some(host) = host {
        request.headers_mut().insert(header::HOST, host);
    }
}
