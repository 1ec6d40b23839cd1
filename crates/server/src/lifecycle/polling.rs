//! Who polls the SNMP devices of the configuration: this daemon, or agents. A device that changes sides is polled by one of them at a time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use collect::snmp::source::SnmpSource;

use crate::agents::work::Dispatcher;
use crate::collectors::snmp::config::SnmpSettings;
use crate::collectors::snmp::devices::DeviceSender;

/// How long to wait until the poller lets go of devices, while no signal is heard. It records what it has read first, which takes
/// milliseconds unless the store hangs.
pub(super) const FOLLOW_WAIT: Duration = Duration::from_secs(10);

/// The two places where devices go.
pub(super) struct Polling {
    /// The daemon's own poller.
    pub here: DeviceSender,
    /// `None` when the daemon was started without a socket for agents.
    pub agents: Option<Arc<Dispatcher>>,
    /// How long the poller may take to let go of devices.
    pub follow_wait: Duration,
}

impl Polling {
    /// Polls these devices instead of those so far, and hands out those of agents.
    ///
    /// # Errors
    /// A text for the operator: nothing has changed.
    pub(super) async fn replace(&self, mut new: SnmpSettings) -> Result<(), String> {
        let before = self.here.current();
        let Some(agents) = &self.agents else {
            self.here.send(until_agents_can_connect(new, &before));
            return Ok(());
        };
        let handed_out = new.take_handed_out();
        let going: HashSet<&str> = handed_out.sources.iter().map(SnmpSource::name).collect();
        let mut staying = before.clone();
        staying.sources.retain(|source| !going.contains(source.name()));
        if staying.sources.len() < before.sources.len() {
            // An agent may begin in the next moment.
            self.here.send(staying);
            if tokio::time::timeout(self.follow_wait, self.here.followed()).await.is_err() {
                self.here.send(before);
                let wait = self.follow_wait;
                return Err(format!("the SNMP poller has not let go of devices for agents within {wait:?}"));
            }
        }
        if let Err(error) = tokio::task::block_in_place(|| agents.replace(handed_out)) {
            self.here.send(before);
            return Err(error);
        }
        // What agents read of their former devices from now on is refused.
        self.here.send(new);
        Ok(())
    }
}

/// What is polled here as long as no agent can connect: devices that are polled here already go on, and new ones of agents wait.
fn until_agents_can_connect(mut new: SnmpSettings, before: &SnmpSettings) -> SnmpSettings {
    let polled: HashSet<&str> = before.sources.iter().map(SnmpSource::name).collect();
    new.sources.retain(|source| source.agents.is_empty() || polled.contains(source.name()));
    new.sources.iter_mut().for_each(|source| source.agents.clear());
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::work::WorkSettings;
    use crate::collectors::snmp::devices::channel;

    fn settings(devices: &[(&str, &str)]) -> SnmpSettings {
        let source = |(name, agent): &(&str, &str)| {
            let agents = [*agent].into_iter().filter(|agent| !agent.is_empty()).map(String::from).collect();
            SnmpSource { agents, ..SnmpSource::new(name) }
        };
        SnmpSettings { sources: devices.iter().map(source).collect(), ..Default::default() }
    }

    fn names(settings: &SnmpSettings) -> Vec<&str> {
        settings.sources.iter().map(SnmpSource::name).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_device_leaves_one_side_before_it_comes_to_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let devices = settings(&[("there", "a"), ("back", "a")]).take_handed_out();
        let handover = Duration::from_secs(9);
        let file = directory.path().join("assignments");
        let agents = Dispatcher::open(WorkSettings { devices, handover, file }).unwrap();
        let _seat = agents.join(b"a", Vec::new(), true);
        let held = || {
            let assignments = agents.assignments();
            let mut held: Vec<String> = assignments.devices().map(String::from).collect();
            held.sort();
            held
        };
        assert_eq!(held(), ["back", "there"]);
        let (here, mut poller) = channel(settings(&[("here", ""), ("stays", "")]));
        let follow_wait = Duration::from_secs(60);
        let polling = Arc::new(Polling { here, agents: Some(Arc::clone(&agents)), follow_wait });
        let new = || settings(&[("here", "a"), ("stays", ""), ("there", "a"), ("back", ""), ("new", "a")]);
        let replacing = Arc::clone(&polling);
        let replacing = tokio::spawn(async move { replacing.replace(new()).await });
        poller.changed().await;
        assert_eq!(names(&poller.take()), ["stays"]);
        // As long as the poller has not stopped, no agent begins.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(held(), ["back", "there"]);
        poller.confirm();
        replacing.await.unwrap().unwrap();
        assert_eq!(held(), ["here", "new", "there"]);
        assert_eq!(names(&poller.take()), ["stays", "back"]);
        poller.confirm();

        // What cannot be written changes nothing.
        std::fs::create_dir(directory.path().join("assignments.new")).unwrap();
        let error = polling.replace(settings(&[("here", ""), ("new", "b")])).await.unwrap_err();
        assert!(error.contains("assignments"), "{error}");
        assert_eq!(held(), ["here", "new", "there"]);
        assert_eq!(names(&poller.take()), ["stays", "back"]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_poller_that_does_not_let_go_keeps_its_devices() {
        let directory = tempfile::tempdir().unwrap();
        let (devices, handover) = (Default::default(), Duration::from_secs(9));
        let file = directory.path().join("assignments");
        let agents = Dispatcher::open(WorkSettings { devices, handover, file }).unwrap();
        let _seat = agents.join(b"a", Vec::new(), true);
        let (here, mut poller) = channel(settings(&[("here", "")]));
        let follow_wait = Duration::from_millis(20);
        let polling = Polling { here, agents: Some(Arc::clone(&agents)), follow_wait };
        let error = polling.replace(settings(&[("here", "a")])).await.unwrap_err();
        assert!(error.contains("let go"), "{error}");
        assert_eq!(agents.assignments().devices().count(), 0);
        assert_eq!(names(&poller.take()), ["here"]);
    }

    #[tokio::test]
    async fn without_a_socket_for_agents_nothing_is_left_unpolled() {
        let (here, mut poller) = channel(settings(&[("here", "")]));
        let polling = Polling { here, agents: None, follow_wait: FOLLOW_WAIT };
        polling.replace(settings(&[("here", "a"), ("new", "a"), ("local", "")])).await.unwrap();
        assert_eq!(poller.take().sources, settings(&[("here", ""), ("local", "")]).sources);
    }
}
