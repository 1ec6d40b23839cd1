//! A socket whose client must read what is written within some time.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::connections::HttpConnection;

/// Bytes that a client must take while it may wait: 2 kB/s over half a minute.
const SLOWEST_BYTES: usize = 64 * 1024;

/// A socket whose client must read within some time.
pub struct TimedStream<S> {
    stream: S,
    connection: Arc<HttpConnection>,
    wait: Duration,
    /// Runs while the client does not take [`SLOWEST_BYTES`].
    stalled: Option<Pin<Box<Sleep>>>,
    /// Bytes written meanwhile.
    written: usize,
}

impl<S> TimedStream<S> {
    /// The socket of `connection`, which may leave an answer unread for `wait`.
    pub fn new(stream: S, connection: Arc<HttpConnection>, wait: Duration) -> Self {
        TimedStream { stream, connection, wait, stalled: None, written: 0 }
    }

    /// Ends the wait for a client that has read too little for too long.
    fn watch(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(result) = written {
            self.written += result.as_ref().map_or(0, |&count| count);
            if self.written >= SLOWEST_BYTES {
                self.stalled = None;
            }
            return Poll::Ready(result);
        }
        if self.stalled.is_none() {
            self.stalled = Some(Box::pin(sleep(self.wait)));
            self.written = 0;
        }
        if let Some(stalled) = &mut self.stalled {
            ready!(stalled.as_mut().poll(cx));
        }
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S> Drop for TimedStream<S> {
    fn drop(&mut self) {
        self.connection.remove();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        match self.connection.received((buffer.filled().len() - before) as u64) {
            true => Poll::Ready(Ok(())),
            false => Poll::Ready(Err(io::Error::other("too many incomplete requests"))),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
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
            self.stalled = None;
            self.connection.set_written();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
