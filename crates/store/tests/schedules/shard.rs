//! A minimal stand-in for the shard of `slot.rs`: commands are numbers, and a round records them.

#[path = "../../src/shard/mailbox.rs"]
pub mod mailbox;
pub mod worker;

use shuttle::sync::atomic::AtomicBool;
use shuttle::sync::mpsc::Sender;

use self::mailbox::Mailbox;
use self::message::{Command, Priority};

pub mod message {
    use super::Sender;
    use super::view::View;

    /// The `number`th command of a client.
    pub struct Command {
        pub client: usize,
        pub number: u32,
        pub reply: Sender<u32>,
    }

    pub enum Priority {
        Query(Box<dyn FnOnce(&View<'_>) + Send>),
        /// From the checkpointer: memory is free again.
        CycleEnded,
    }
}

pub mod view {
    pub struct View<'a> {
        /// How many commands of each client are done.
        pub done: &'a [u32],
        /// How often memory was full.
        pub cycles: u32,
    }
}

#[derive(Default)]
pub struct Shared {
    pub mailbox: Mailbox<Command, Priority>,
    pub stopping: AtomicBool,
}

pub fn abort_on_panic(body: impl FnOnce()) {
    body();
}
