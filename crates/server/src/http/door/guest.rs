//! The connections of the HTTP door, and the socket of one, which does not wait for ever.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep};

use crate::budget::Share;
use crate::limits::HTTP_HEADS_BYTES_MAX;

/// All connections, oldest first.
#[derive(Debug, Default)]
pub struct Guests {
    present: Mutex<BTreeMap<u64, Arc<Guest>>>,
    count: AtomicU64,
    /// Bytes received of requests that are not complete.
    heads: AtomicU64,
}

/// One connection.
#[derive(Debug)]
pub struct Guest {
    /// A request is complete, and its answer not yet written.
    busy: AtomicBool,
    leave: Notify,
    /// Bytes of the request so far.
    head: AtomicU64,
    /// What its answer takes until it is written.
    answer: Mutex<Share>,
    guests: Arc<Guests>,
    number: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guests {
    /// A new connection, which holds nothing yet.
    pub fn welcome(self: &Arc<Self>, answer: Share) -> Arc<Guest> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let guest = Arc::new(Guest {
            busy: AtomicBool::new(false),
            leave: Notify::new(),
            head: AtomicU64::new(0),
            answer: Mutex::new(answer),
            guests: Arc::clone(self),
            number,
        });
        lock(&self.present).insert(number, Arc::clone(&guest));
        guest
    }

    /// Closes the oldest connection that has no complete request.
    pub fn dismiss_silent(&self) {
        let mut present = lock(&self.present);
        let silent = present.values().find(|guest| !guest.busy.load(Ordering::Relaxed)).cloned();
        if let Some(guest) = silent {
            present.remove(&guest.number);
            guest.leave.notify_one();
        }
    }
}

impl Guest {
    /// Returns when it must leave.
    pub async fn dismissed(&self) {
        self.leave.notified().await;
    }

    /// Its request is complete.
    pub fn is_busy(&self) {
        self.busy.store(true, Ordering::Relaxed);
        self.forget_head();
    }

    /// Holds an answer of so many bytes until it is written, if the budget allows that.
    pub fn hold(&self, bytes: u64) -> bool {
        lock(&self.answer).try_resize(bytes)
    }

    /// Everything is written.
    fn done(&self) {
        if self.busy.swap(false, Ordering::Relaxed) {
            lock(&self.answer).resize(0);
        }
    }

    /// Counts bytes of a request; false when all incomplete ones take too much.
    fn received(&self, bytes: u64) -> bool {
        if self.busy.load(Ordering::Relaxed) {
            return true;
        }
        self.head.fetch_add(bytes, Ordering::Relaxed);
        self.guests.heads.fetch_add(bytes, Ordering::Relaxed) + bytes <= HTTP_HEADS_BYTES_MAX
    }

    fn forget_head(&self) {
        self.guests.heads.fetch_sub(self.head.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    fn leaves(&self) {
        self.forget_head();
        lock(&self.answer).resize(0);
        lock(&self.guests.present).remove(&self.number);
    }
}

/// A socket whose client must read within some time.
pub struct Patient {
    stream: TcpStream,
    guest: Arc<Guest>,
    wait: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    /// The socket of `guest`, which may leave an answer unread for `wait`.
    pub fn new(stream: TcpStream, guest: Arc<Guest>, wait: Duration) -> Self {
        Patient { stream, guest, wait, stalled: None }
    }

    /// Ends the wait for a client that has read nothing for too long.
    fn watch(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let wait = self.wait;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(wait)));
        debug_assert!(stalled.deadline() <= Instant::now() + wait);
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Drop for Patient {
    fn drop(&mut self) {
        self.guest.leaves();
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        match self.guest.received((buffer.filled().len() - before) as u64) {
            true => Poll::Ready(Ok(())),
            false => Poll::Ready(Err(io::Error::other("too many incomplete requests"))),
        }
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called when all that was to be written is.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            self.guest.done();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
