//! The store's replies on their way to a connection.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::session::{StoreReply, Ticket};

/// Replies that have arrived for a connection's driver. The store calls from any of its threads, or within
/// the call that makes the request.
#[derive(Debug, Default)]
pub struct Inbox {
    replies: Mutex<Vec<(Ticket, StoreReply)>>,
    /// Wakes a task; the other wakes a thread.
    for_task: Notify,
    for_thread: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Vec<(Ticket, StoreReply)>> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, ticket: Ticket, reply: StoreReply) {
        self.lock().push((ticket, reply));
        self.for_task.notify_one();
        self.for_thread.notify_one();
    }

    /// Takes the replies that have arrived.
    pub fn take(&self) -> Vec<(Ticket, StoreReply)> {
        std::mem::take(&mut *self.lock())
    }

    /// Waits until a reply arrives.
    pub async fn wait(&self) -> Vec<(Ticket, StoreReply)> {
        loop {
            let replies = self.take();
            if !replies.is_empty() {
                return replies;
            }
            self.for_task.notified().await;
        }
    }

    /// Waits until a reply arrives, blocking the thread.
    pub fn wait_blocking(&self) -> Vec<(Ticket, StoreReply)> {
        let replies = self.for_thread.wait_while(self.lock(), |replies| replies.is_empty());
        std::mem::take(&mut *replies.unwrap_or_else(PoisonError::into_inner))
    }
}

/// The destination of the store's reply to one request.
#[derive(Debug)]
pub struct ReplyTo {
    inbox: Arc<Inbox>,
    ticket: Ticket,
    sent: bool,
}

impl ReplyTo {
    /// A destination for the request with this ticket.
    pub fn new(inbox: &Arc<Inbox>, ticket: Ticket) -> Self {
        ReplyTo { inbox: Arc::clone(inbox), ticket, sent: false }
    }

    /// Sends the reply.
    pub fn send(mut self, reply: StoreReply) {
        self.sent = true;
        self.inbox.put(self.ticket, reply);
    }
}

impl Drop for ReplyTo {
    /// A request that is dropped gets a reply too.
    fn drop(&mut self) {
        if !self.sent {
            self.inbox.put(self.ticket, StoreReply::Dropped);
        }
    }
}
