//! Requests that the store has not answered yet, in the order of their answers.

use std::collections::VecDeque;

use store::engine::UpdateFailure;

use super::{Effect, Step};
use crate::connection::chunk::{SentChunk, UpdateChunk};
use crate::connection::refusal::Refusal;

/// Identifies a request sent to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u32);

/// The store's reply to a request.
#[derive(Debug)]
pub enum StoreReply {
    /// Updates were applied, except these.
    Updated(Vec<UpdateFailure>),
    /// An RRD was created, or refused.
    Created(Result<(), Refusal>),
    /// The store dropped the request, because it is stopping or has failed.
    Dropped,
}

/// A request that is answered when its turn comes.
#[derive(Debug)]
pub enum SentRequest {
    /// A chunk of updates, with the number of the frame that ends with it, if any.
    Updates(SentChunk, Option<u32>),
    /// A CREATE, with a number that means something to its session.
    Create(u32),
}

/// The chunk being filled, and what was sent.
#[derive(Debug, Default)]
pub struct Queue {
    pub chunk: UpdateChunk,
    sent: VecDeque<(SentRequest, Option<StoreReply>)>,
    /// The ticket of the request at the front.
    first: u32,
}

impl Queue {
    /// How many requests were sent and not answered yet.
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Sends the chunk, with the number of the frame that ends with it, if any.
    pub fn send<'b>(&mut self, frame: Option<u32>) -> Step<'b> {
        let (batch, chunk) = std::mem::take(&mut self.chunk).into_parts();
        let ticket = self.push(SentRequest::Updates(chunk, frame));
        if batch.lines.is_empty() {
            self.replied(ticket, StoreReply::Updated(Vec::new()));
            return Step::Again;
        }
        Step::Do(Effect::Update(ticket, batch))
    }

    /// Adds a request to the queue.
    pub fn push(&mut self, request: SentRequest) -> Ticket {
        let ticket = Ticket(self.first.wrapping_add(self.sent.len() as u32));
        self.sent.push_back((request, None));
        ticket
    }

    /// Succeeds when nothing is left to send or to answer.
    ///
    /// # Errors
    /// What must be done first.
    pub fn drained<'b>(&mut self) -> Result<(), Step<'b>> {
        if !self.chunk.is_empty() {
            return Err(self.send(None));
        }
        if self.sent.is_empty() { Ok(()) } else { Err(Step::Do(Effect::Wait)) }
    }

    /// Keeps a reply until its turn comes.
    pub fn replied(&mut self, Ticket(number): Ticket, reply: StoreReply) {
        let index = number.wrapping_sub(self.first) as usize;
        if let Some((_, place)) = self.sent.get_mut(index) {
            *place = Some(reply);
        }
    }

    /// Removes the front with its reply, once it has one.
    pub fn pop(&mut self) -> Option<(SentRequest, StoreReply)> {
        self.sent.front()?.1.as_ref()?;
        let (request, reply) = self.sent.pop_front()?;
        self.first = self.first.wrapping_add(1);
        Some((request, reply?))
    }
}
