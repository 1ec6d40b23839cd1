//! Requests that the store has not answered, in the order of their answers.

use std::collections::VecDeque;

use store::engine::UpdateFailure;

use super::{Effect, Step};
use crate::connection::chunk::{SentChunk, UpdateChunk};
use crate::connection::refusal::Refusal;

/// Names a request that the store was handed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u32);

/// What the store says to a request.
#[derive(Debug)]
pub enum StoreReply {
    /// Updates went in, but for these.
    Updated(Vec<UpdateFailure>),
    /// An RRD was made, or not.
    Created(Result<(), Refusal>),
    /// The store dropped the request: it is stopping, or has failed.
    Dropped,
}

/// A request that is answered when it is its turn.
#[derive(Debug)]
pub enum Sent {
    /// A chunk of updates; the number of the frame that ends with it, if one does.
    Updates(SentChunk, Option<u32>),
    /// A CREATE, with the number that its session knows it by.
    Create(u32),
}

/// The chunk being filled, and what was handed over.
#[derive(Debug, Default)]
pub struct Queue {
    pub chunk: UpdateChunk,
    sent: VecDeque<(Sent, Option<StoreReply>)>,
    /// The ticket of the front.
    first: u32,
}

impl Queue {
    /// How many were handed over and not answered.
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Hands the chunk over; the number of the frame it ends, if any.
    pub fn send<'b>(&mut self, frame: Option<u32>) -> Step<'b> {
        let (batch, chunk) = std::mem::take(&mut self.chunk).into_parts();
        let ticket = self.push(Sent::Updates(chunk, frame));
        if batch.lines.is_empty() {
            self.replied(ticket, StoreReply::Updated(Vec::new()));
            return Step::Again;
        }
        Step::Do(Effect::Update(ticket, batch))
    }

    /// Puts a request into the queue.
    pub fn push(&mut self, request: Sent) -> Ticket {
        let ticket = Ticket(self.first.wrapping_add(self.sent.len() as u32));
        self.sent.push_back((request, None));
        ticket
    }

    /// Nothing is left to be sent or to be answered; or what has to be done for that.
    pub fn drained<'b>(&mut self) -> Result<(), Step<'b>> {
        if !self.chunk.is_empty() {
            return Err(self.send(None));
        }
        if self.sent.is_empty() { Ok(()) } else { Err(Step::Do(Effect::Wait)) }
    }

    /// Keeps a reply until it is its turn.
    pub fn replied(&mut self, Ticket(number): Ticket, reply: StoreReply) {
        let index = number.wrapping_sub(self.first) as usize;
        if let Some((_, place)) = self.sent.get_mut(index) {
            *place = Some(reply);
        }
    }

    /// The front and its reply, once it has one.
    pub fn pop(&mut self) -> Option<(Sent, StoreReply)> {
        self.sent.front()?.1.as_ref()?;
        let (request, reply) = self.sent.pop_front()?;
        self.first = self.first.wrapping_add(1);
        Some((request, reply?))
    }
}
