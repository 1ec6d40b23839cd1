//! Drives a connection on its own thread, which blocks where a task would wait.
//!
//! A client that speaks frames most likely waits for each answer. Tokio wakes two threads to serve one
//! request, while a thread that spins for the next one need not be woken at all.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use client::adaptive_spin::AdaptiveSpin;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::session::Input;
use super::task::Stream;
use super::{Connection, NextIo};
use crate::idle_memory;
use crate::limits::{FRAMES_THREAD_BYTES, FRAMES_THREADS_ROOM, GIVE_BACK_INTERVAL};
use crate::service::{Service, stopped};

/// The work of a thread.
type Job = Box<dyn FnOnce() + Send>;

/// A thread that waits for its connection.
pub struct ConnectionThread {
    thread: JoinHandle<()>,
    give: mpsc::Sender<Job>,
}

/// Starts a thread for one connection; `None` when there are enough, clients hold too much memory for another, or the
/// system provides no more.
pub fn spawn(service: &Service) -> Option<ConnectionThread> {
    let place = Arc::clone(&service.threads).try_acquire_owned().ok()?;
    let mut share = service.memory.share();
    if !share.has_room(FRAMES_THREADS_ROOM) || !share.try_resize(FRAMES_THREAD_BYTES) {
        return None;
    }
    let (runtime, (give, taken)) = (Handle::current(), mpsc::channel::<Job>());
    let body = move || {
        let (_place, _share) = (place, share);
        // FLUSHALL continues without its connection, as a task of the runtime.
        let _context = runtime.enter();
        if let Ok(job) = taken.recv() {
            job();
        }
    };
    std::thread::Builder::new()
        .name("frames".to_string())
        .spawn(body)
        .inspect_err(|error| tracing::warn!(%error, "no thread for a connection; it shares those of others"))
        .ok()
        .map(|thread| ConnectionThread { thread, give })
}

impl ConnectionThread {
    /// Serves a client until it disconnects or `stop` becomes true.
    ///
    /// # Errors
    /// Errors of the socket.
    pub async fn serve(
        self,
        mut connection: Connection,
        stream: Stream,
        mut stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        connection.has_thread = true;
        let socket: Arc<OwnedFd> = Arc::new(match stream {
            Stream::Unix(stream) => stream.into_std()?.into(),
            Stream::Tcp(stream) => stream.into_std()?.into(),
            Stream::Tls(_) => return Err(io::Error::other("TLS on a thread")),
        });
        // However this ends, the thread finds its socket closed.
        let hang_up = HangUp(Arc::clone(&socket));
        let (sender, mut ended) = oneshot::channel();
        let stop_of_thread = stop.clone();
        let job = Box::new(move || {
            let result = drive(connection, &socket, &stop_of_thread);
            // The daemon may have stopped waiting for it.
            sender.send(result).ok();
        });
        // The thread waits only for this.
        self.give.send(job).ok();
        let result = tokio::select! {
            biased;
            result = &mut ended => result,
            () = stopped(&mut stop) => {
                hang_up.read_no_more();
                ended.await
            }
        };
        match result {
            Ok(result) => result,
            Err(_) => match self.thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => Ok(()),
            },
        }
    }
}

/// Ends a connection on which a thread may be blocked.
struct HangUp(Arc<OwnedFd>);

impl HangUp {
    /// Stops reading; requests already received are answered.
    fn read_no_more(&self) {
        // The connection may have ended already.
        shutdown(&self.0, Shutdown::Read).ok();
    }
}

impl Drop for HangUp {
    fn drop(&mut self) {
        shutdown(&self.0, Shutdown::Both).ok();
    }
}

fn drive(mut connection: Connection, socket: &OwnedFd, stop: &watch::Receiver<bool>) -> io::Result<()> {
    let mut spin = AdaptiveSpin::default();
    // Answers do not wait for more requests, because a read may block.
    let mut input = Input::Dry;
    loop {
        match connection.next(input) {
            NextIo::Wait => {
                let replies = connection.inbox.wait_blocking();
                connection.replied(replies);
            }
            NextIo::Write => {
                let result = write_output(socket, &mut connection);
                connection.wrote(result);
            }
            NextIo::Read => {
                if *stop.borrow() || read(&mut connection, socket, &mut spin) == Input::End {
                    input = Input::End;
                }
            }
            // It needs no turn.
            NextIo::Frames | NextIo::Turn => {}
            NextIo::End => return connection.result(),
        }
    }
}

/// Reads what is available; blocks until something is.
fn read(connection: &mut Connection, socket: &OwnedFd, spin: &mut AdaptiveSpin) -> Input {
    loop {
        let buffer = connection.room();
        let found = spin.spin(|| match recv(socket, spare_capacity(buffer), RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => None,
            done => Some(done.map(|(count, _)| count)),
        });
        if let Some(result) = found {
            return connection.read(result.map_err(io::Error::from));
        }
        let slept = connection.rest().and_then(|()| sleep(socket, PollFlags::IN, connection.patience()));
        if let Err(error) = slept {
            return connection.read(Err(error));
        }
    }
}

fn write_output(socket: &OwnedFd, connection: &mut Connection) -> io::Result<()> {
    let mut done = 0;
    loop {
        let bytes = &connection.session.output()[done..];
        if bytes.is_empty() {
            return Ok(());
        }
        match send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(Errno::AGAIN) => {
                connection.rest_in_answer()?;
                sleep(socket, PollFlags::OUT, Some(connection.service.idle))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Blocks until a socket is ready or closed, at most for `patience`.
fn sleep(socket: &OwnedFd, ready: PollFlags, patience: Option<Duration>) -> io::Result<()> {
    let wait = |patience: Option<Duration>| {
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        match poll(&mut [PollFd::new(socket, ready)], patience.as_ref()) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(io::Error::from(error)),
        }
    };
    let first = patience.map_or(GIVE_BACK_INTERVAL, |patience| patience.min(GIVE_BACK_INTERVAL));
    if wait(Some(first))? {
        return Ok(());
    }
    // No other thread wakes this one for it.
    idle_memory::give_back();
    let rest = patience.map(|patience| patience - first);
    if rest.is_none_or(|rest| !rest.is_zero()) && wait(rest)? {
        return Ok(());
    }
    Err(io::ErrorKind::TimedOut.into())
}
