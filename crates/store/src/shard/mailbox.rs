//! The mailbox of a shard: two queues to its worker.
//!
//! Commands wait in a bounded lane: a client that writes faster than the shard can apply is blocked before it
//! fills the memory. Queries and events have a priority lane that the worker checks every few updates, so a
//! read waits some microseconds and never for a whole batch.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::lock::lock;
use crate::sync::{AtomicBool, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of commands that may be queued before senders block. Guessed: some milliseconds of work.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Commands that may be queued, however small.
const WAITING_COUNT_MAX: usize = 16 * 1024;

/// Two lanes to one owner.
#[derive(Debug)]
pub struct Mailbox<Command, Priority> {
    lanes: Mutex<Lanes<Command, Priority>>,
    /// Whether the priority lane holds anything; changed under the lock, read without it.
    has_priority: AtomicBool,
    filled: Condvar,
    emptied: Condvar,
}

#[derive(Debug)]
struct Lanes<Command, Priority> {
    commands: VecDeque<(Command, usize)>,
    command_bytes: usize,
    priority: VecDeque<Priority>,
    closed: bool,
    owner_sleeps: bool,
    /// The owner may still be working on the commands it last took.
    owner_holds: bool,
    /// The owner has to run a round, although the lanes may be empty.
    nudged: bool,
    senders_wait: usize,
}

/// The owner is gone; the message is returned.
#[derive(Debug)]
pub struct Closed<T>(pub T);

impl<Command, Priority> Default for Mailbox<Command, Priority> {
    fn default() -> Self {
        Mailbox {
            lanes: Mutex::new(Lanes {
                commands: VecDeque::new(),
                command_bytes: 0,
                priority: VecDeque::new(),
                closed: false,
                owner_sleeps: false,
                owner_holds: false,
                nudged: false,
                senders_wait: 0,
            }),
            has_priority: AtomicBool::new(false),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        }
    }
}

impl<Command, Priority> Mailbox<Command, Priority> {
    fn lock(&self) -> MutexGuard<'_, Lanes<Command, Priority>> {
        lock(&self.lanes)
    }

    /// Sends a command of about `bytes` bytes; waits while the lane is full.
    ///
    /// # Errors
    /// [`Closed`] with the command.
    pub fn send_command(&self, command: Command, bytes: usize) -> Result<(), Closed<Command>> {
        let mut lanes = self.lock();
        while !lanes.closed
            && (lanes.command_bytes >= WAITING_BYTES_MAX || lanes.commands.len() >= WAITING_COUNT_MAX)
        {
            lanes.senders_wait += 1;
            lanes = self.emptied.wait(lanes).unwrap_or_else(PoisonError::into_inner);
            lanes.senders_wait -= 1;
        }
        self.push(lanes, command, bytes)
    }

    /// Sends a command without waiting, also when the lane is full: for a thread on which the owner may wait to empty it, and that sends few.
    ///
    /// # Errors
    /// [`Closed`] with the command.
    pub fn send_command_at_once(&self, command: Command, bytes: usize) -> Result<(), Closed<Command>> {
        self.push(self.lock(), command, bytes)
    }

    fn push(
        &self,
        mut lanes: MutexGuard<'_, Lanes<Command, Priority>>,
        command: Command,
        bytes: usize,
    ) -> Result<(), Closed<Command>> {
        if lanes.closed {
            return Err(Closed(command));
        }
        lanes.commands.push_back((command, bytes));
        lanes.command_bytes += bytes;
        self.wake(lanes);
        Ok(())
    }

    /// Sends a query or an event. Never waits: the sender waits for the answer anyway.
    ///
    /// # Errors
    /// [`Closed`] with the message.
    pub fn send_priority(&self, message: Priority) -> Result<(), Closed<Priority>> {
        let mut lanes = self.lock();
        if lanes.closed {
            return Err(Closed(message));
        }
        lanes.priority.push_back(message);
        self.has_priority.store(true, Ordering::Relaxed);
        self.wake(lanes);
        Ok(())
    }

    fn wake(&self, lanes: MutexGuard<'_, Lanes<Command, Priority>>) {
        let sleeping = lanes.owner_sleeps;
        drop(lanes);
        if sleeping {
            self.filled.notify_one();
        }
    }

    /// Moves the whole priority lane and at most about `bytes` of commands to the owner. Waits up to
    /// `timeout` when there is neither, unless the mailbox is closed. Returns false once it is closed and empty.
    pub fn take(
        &self,
        commands: &mut Vec<Command>,
        priority: &mut Vec<Priority>,
        bytes: usize,
        timeout: Duration,
    ) -> bool {
        let mut lanes = self.lock();
        lanes.owner_holds = false;
        let idle = (lanes.commands.is_empty() || bytes == 0) && lanes.priority.is_empty() && !lanes.nudged;
        if idle && !timeout.is_zero() && !lanes.closed {
            lanes.owner_sleeps = true;
            lanes = match self.filled.wait_timeout(lanes, timeout) {
                Ok((lanes, _)) => lanes,
                Err(poisoned) => poisoned.into_inner().0,
            };
            lanes.owner_sleeps = false;
        }
        lanes.nudged = false;
        self.drain_priority(&mut lanes, priority);
        let mut taken = 0;
        while taken < bytes
            && let Some((command, size)) = lanes.commands.pop_front()
        {
            taken += size.max(1);
            lanes.command_bytes -= size;
            commands.push(command);
        }
        lanes.owner_holds = taken > 0;
        if lanes.senders_wait > 0 && taken > 0 {
            self.emptied.notify_all();
        }
        !(lanes.closed && lanes.commands.is_empty() && commands.is_empty() && priority.is_empty())
    }

    /// True when every command that was sent has been executed, so one executed now overtakes none.
    pub fn is_idle(&self) -> bool {
        let lanes = self.lock();
        lanes.commands.is_empty() && !lanes.owner_holds && !lanes.closed
    }

    /// Wakes the owner, or cancels its next sleep.
    pub fn nudge(&self) {
        let mut lanes = self.lock();
        lanes.nudged = true;
        self.wake(lanes);
    }

    /// True when any message is queued.
    pub fn is_waiting(&self) -> bool {
        let lanes = self.lock();
        !lanes.priority.is_empty() || !lanes.commands.is_empty()
    }

    /// True when the priority lane is not empty. Costs a load from memory.
    #[inline]
    pub fn has_priority(&self) -> bool {
        self.has_priority.load(Ordering::Relaxed)
    }

    /// Empties the priority lane.
    pub fn take_priority(&self, priority: &mut Vec<Priority>) {
        self.drain_priority(&mut self.lock(), priority);
    }

    fn drain_priority(&self, lanes: &mut Lanes<Command, Priority>, priority: &mut Vec<Priority>) {
        self.has_priority.store(false, Ordering::Relaxed);
        priority.extend(lanes.priority.drain(..));
    }

    /// Refuses further messages. Queued ones are still delivered.
    pub fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
        self.emptied.notify_all();
    }
}
