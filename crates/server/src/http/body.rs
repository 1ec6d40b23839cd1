//! Answers that are made piece by piece, as their client reads them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;

use crate::budget::Share;
use crate::limits::ANSWER_BYTES_HELD;

/// Bytes per piece. hyper asks for the next one while it holds less than `HTTP_HEAD_BYTES_MAX`, so that a connection
/// holds less than [`ANSWER_BYTES_HELD`].
pub const PIECE_BYTES: usize = ANSWER_BYTES_HELD / 4;

/// What an answer is made of.
pub trait Pieces: Send + Unpin + 'static {
    /// Appends about [`PIECE_BYTES`]; false when nothing is left.
    fn push(&mut self, out: &mut Vec<u8>) -> bool;
}

/// The body made of `pieces`, which keep `share` of the memory for clients until the last is made. A short one is made
/// at once.
pub fn of(mut pieces: impl Pieces, share: Share) -> Body {
    let mut first = Vec::new();
    if pieces.push(&mut first) {
        return Body::new(PieceBody { first: Some(first), rest: Some((pieces, share)) });
    }
    // It may have to wait for its client.
    first.shrink_to_fit();
    Body::from(first)
}

struct PieceBody<P> {
    first: Option<Vec<u8>>,
    rest: Option<(P, Share)>,
}

impl<P: Pieces> HttpBody for PieceBody<P> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut piece = self.first.take().unwrap_or_default();
        if piece.is_empty()
            && let Some((pieces, _)) = &mut self.rest
        {
            piece.reserve(PIECE_BYTES + PIECE_BYTES / 8);
            if !pieces.push(&mut piece) {
                self.rest = None;
            }
        }
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::MemoryBudget;

    struct Count(usize);

    impl Pieces for Count {
        fn push(&mut self, out: &mut Vec<u8>) -> bool {
            out.resize(PIECE_BYTES, b'x');
            self.0 -= 1;
            self.0 > 0
        }
    }

    #[test]
    fn pieces_hold_their_share_until_the_last_is_made() {
        let memory = MemoryBudget::new(100);
        let mut share = memory.share();
        assert!(share.try_resize(60));
        let mut body = of(Count(3), share);
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut used = Vec::new();
        while let Poll::Ready(Some(frame)) = Pin::new(&mut body).poll_frame(&mut context) {
            assert_eq!(frame.unwrap().into_data().unwrap().len(), PIECE_BYTES);
            used.push(memory.used());
        }
        assert_eq!(used, [60, 60, 0]);
        assert!(body.is_end_stream());
    }

    #[test]
    fn a_short_answer_is_whole_and_keeps_nothing() {
        let memory = MemoryBudget::new(100);
        let mut share = memory.share();
        assert!(share.try_resize(60));
        let body = of(Count(1), share);
        assert_eq!((body.size_hint().exact(), memory.used()), (Some(PIECE_BYTES as u64), 0));
    }
}
