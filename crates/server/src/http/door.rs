//! Accepts and serves HTTP connections: with a time limit for everything a client may leave half done, and a limit in
//! sum for what half a request and an unread answer take.
//!
//! A client that asks for `/healthz` or `/metrics` gets an answer however many others there are: a client that sends nothing
//! makes room for a new one, and some places are for these two only.

mod guest;

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
use crate::doors::{Door, Place};
use crate::limits::{
    ACCEPT_PAUSE, HTTP_BODIES_MAX, HTTP_BODY_BYTES_MAX, HTTP_HEAD_BYTES_MAX, HTTP_RESERVE, HTTP_WAIT_MAX,
    STOP_TIMEOUT,
};
use crate::service::{Service, stopped};
use guest::{Guest, Guests, Patient};

/// How long a client without a place may wait for one of those who send nothing.
const ROOM_TIMEOUT: Duration = Duration::from_secs(1);

/// What all connections share.
struct House {
    service: Arc<Service>,
    router: TowerToHyperService<Router>,
    guests: Arc<Guests>,
    /// Places for `/healthz` and `/metrics`.
    reserve: Arc<Semaphore>,
    /// Requests whose body is being received.
    bodies: Semaphore,
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
    let house = Arc::new(House {
        router: TowerToHyperService::new(router),
        guests: Arc::default(),
        reserve: Arc::new(Semaphore::new(HTTP_RESERVE)),
        bodies: Semaphore::new(HTTP_BODIES_MAX),
        wait: service.idle.min(HTTP_WAIT_MAX),
        service,
    });
    let mut connections = JoinSet::new();
    let stop_of_connections = stop.clone();
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            _ = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // Answers are complete when they are written, so waiting for more gains nothing.
                    stream.set_nodelay(true).ok();
                    if let Some(room) = house.room().await {
                        let house = Arc::clone(&house);
                        connections.spawn(house.entertain(stream, room, stop_of_connections.clone()));
                    }
                }
                Err(error) => {
                    house.service.metrics.connections_refused.inc();
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(STOP_TIMEOUT, all_ended).await.is_err() {
        connections.shutdown().await;
    }
    Ok(())
}

/// A connection's place.
enum Room {
    Place(#[expect(dead_code, reason = "held")] Place),
    /// Only for `/healthz` and `/metrics`.
    Reserve(#[expect(dead_code, reason = "held")] tokio::sync::OwnedSemaphorePermit),
}

impl House {
    /// A place for a new connection; `None` when even those in reserve are busy.
    async fn room(&self) -> Option<Room> {
        if let Some(place) = self.service.doors.try_place(Door::Http) {
            return Some(Room::Place(place));
        }
        self.guests.dismiss_silent();
        let reserve = Arc::clone(&self.reserve).acquire_owned();
        match timeout(ROOM_TIMEOUT, reserve).await {
            Ok(Ok(permit)) => Some(Room::Reserve(permit)),
            _ => {
                self.service.metrics.connections_refused.inc();
                None
            }
        }
    }

    async fn entertain(self: Arc<Self>, stream: TcpStream, room: Room, mut stop: watch::Receiver<bool>) {
        let guest = self.guests.welcome(self.service.memory.share());
        let reserve = matches!(room, Room::Reserve(_));
        let io = TokioIo::new(Patient::new(stream, Arc::clone(&guest), self.wait));
        let serve = service_fn(|request: hyper::Request<Incoming>| {
            let (house, guest) = (Arc::clone(&self), Arc::clone(&guest));
            async move { Ok::<_, std::convert::Infallible>(house.answer(request, &guest, reserve).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.wait)
            .max_buf_size(HTTP_HEAD_BYTES_MAX)
            .serve_connection(io, serve);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            biased;
            // Errors are the client's: it is gone, or sends no HTTP.
            _ = &mut connection => {}
            () = guest.dismissed() => {}
            () = stopped(&mut stop) => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
        drop(room);
    }

    async fn answer(&self, request: hyper::Request<Incoming>, guest: &Guest, reserve: bool) -> Response {
        let path = request.uri().path();
        if reserve && path != "/healthz" && path != "/metrics" {
            guest.is_busy();
            let mut response = busy("too many connections; ask again");
            response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
            return response;
        }
        let request = match self.receive(request).await {
            Ok(request) => request,
            Err(failure) => return failure.into_response(),
        };
        guest.is_busy();
        let Ok(response) = self.router.call(request).await;
        let bytes = response.body().size_hint().lower();
        match guest.hold(bytes) {
            true => response,
            false => busy("too many answers wait to be read; ask again"),
        }
    }

    /// The request with its whole body.
    async fn receive(&self, request: hyper::Request<Incoming>) -> Result<Request, Failure> {
        let (parts, body) = request.into_parts();
        if body.is_end_stream() {
            return Ok(Request::from_parts(parts, Body::empty()));
        }
        let refuse = |status, text: &str| Err(Failure::new(status, text));
        let Ok(_turn) = self.bodies.try_acquire() else {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many requests at once; ask again");
        };
        match timeout(self.wait, axum::body::to_bytes(Body::new(body), HTTP_BODY_BYTES_MAX)).await {
            Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
            Ok(Err(_)) => refuse(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long, or ended early"),
            Err(_) => refuse(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time"),
        }
    }
}

fn busy(text: &str) -> Response {
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}
