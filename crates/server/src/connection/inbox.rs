//! Replies of the store on their way to one connection.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::session::{StoreReply, Ticket};

/// Replies that have come, for the driver of a connection to fetch. The store calls from any of its threads, or from
/// within the call that hands it the request.
#[derive(Debug, Default)]
pub struct Inbox {
    replies: Mutex<Vec<(Ticket, StoreReply)>>,
    /// A task waits for this, a thread for the other.
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

    /// What has come.
    pub fn take(&self) -> Vec<(Ticket, StoreReply)> {
        std::mem::take(&mut *self.lock())
    }

    /// Waits until something has come.
    pub async fn wait(&self) -> Vec<(Ticket, StoreReply)> {
        loop {
            let replies = self.take();
            if !replies.is_empty() {
                return replies;
            }
            self.for_task.notified().await;
        }
    }

    /// The same on a thread of its own.
    pub fn wait_blocking(&self) -> Vec<(Ticket, StoreReply)> {
        let replies = self.for_thread.wait_while(self.lock(), |replies| replies.is_empty());
        std::mem::take(&mut *replies.unwrap_or_else(PoisonError::into_inner))
    }
}

/// Where the store's reply to one request goes.
#[derive(Debug)]
pub struct ReplyTo {
    inbox: Arc<Inbox>,
    ticket: Ticket,
    sent: bool,
}

impl ReplyTo {
    /// To the request of this ticket.
    pub fn new(inbox: &Arc<Inbox>, ticket: Ticket) -> Self {
        ReplyTo { inbox: Arc::clone(inbox), ticket, sent: false }
    }

    /// Replies.
    pub fn send(mut self, reply: StoreReply) {
        self.sent = true;
        self.inbox.put(self.ticket, reply);
    }
}

impl Drop for ReplyTo {
    /// A request that is dropped is answered, too.
    fn drop(&mut self) {
        if !self.sent {
            self.inbox.put(self.ticket, StoreReply::Dropped);
        }
    }
}
