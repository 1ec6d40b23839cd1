//! The devices of a poller, which change while it runs: from who decides what is polled to the poller, and back how far that follows.

use tokio::sync::watch;

use super::config::SnmpSettings;

/// Settings with the number of their change.
#[derive(Debug, Default)]
struct Numbered {
    number: u64,
    settings: SnmpSettings,
}

/// The end of who decides.
#[derive(Debug)]
pub struct DeviceSender {
    settings: watch::Sender<Numbered>,
    followed: watch::Receiver<u64>,
}

/// The poller's end.
#[derive(Debug)]
pub struct DeviceReceiver {
    settings: watch::Receiver<Numbered>,
    followed: watch::Sender<u64>,
    /// The change that was taken last.
    taken: u64,
}

/// Both ends, with the devices of the start.
pub fn channel(settings: SnmpSettings) -> (DeviceSender, DeviceReceiver) {
    let (settings, received) = watch::channel(Numbered { number: 0, settings });
    let (follows, followed) = watch::channel(0);
    let receiver = DeviceReceiver { settings: received, followed: follows, taken: 0 };
    (DeviceSender { settings, followed }, receiver)
}

impl DeviceSender {
    /// What was sent last.
    pub fn current(&self) -> SnmpSettings {
        self.settings.borrow().settings.clone()
    }

    /// From soon on, the poller polls these.
    pub fn send(&self, settings: SnmpSettings) {
        self.settings.send_modify(|last| *last = Numbered { number: last.number + 1, settings });
    }

    /// Waits until the poller polls what was sent last, and has recorded what it read before. A poller that has ended polls nothing.
    pub async fn followed(&self) {
        let number = self.settings.borrow().number;
        let mut followed = self.followed.clone();
        followed.wait_for(|done| *done >= number).await.ok();
    }
}

impl DeviceReceiver {
    /// Waits until the devices change; for ever, when they cannot change any more.
    pub async fn changed(&mut self) {
        if self.settings.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// Whether there is something to take.
    #[cfg(test)]
    pub fn has_changed(&self) -> bool {
        self.settings.has_changed().unwrap()
    }

    /// What is to be polled.
    pub fn take(&mut self) -> SnmpSettings {
        let last = self.settings.borrow_and_update();
        self.taken = last.number;
        last.settings.clone()
    }

    /// What was taken last is polled.
    pub fn confirm(&self) {
        self.followed.send_replace(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use collect::snmp::source::SnmpSource;

    use super::*;

    fn is_followed(sender: &DeviceSender) -> bool {
        pin!(sender.followed()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn who_decides_knows_when_the_poller_follows() {
        let named = |name: &str| SnmpSettings { sources: vec![SnmpSource::new(name)], ..Default::default() };
        let (sender, mut receiver) = channel(named("a"));
        assert!(is_followed(&sender));
        sender.send(named("b"));
        receiver.confirm();
        assert!(!is_followed(&sender), "what was there before is not what was sent");
        assert_eq!(receiver.take().sources, sender.current().sources);
        assert!(!is_followed(&sender), "it is not polled yet");
        receiver.confirm();
        assert!(is_followed(&sender));
        sender.send(named("c"));
        assert!(!is_followed(&sender));
        drop(receiver);
        assert!(is_followed(&sender), "nothing is polled any more");
    }
}
