//! What a server does beside answering, as long as it is the primary: collecting, polling, forwarding. A follower leaves it to its primary,
//! and begins when it is promoted.

use std::sync::Arc;

use store::position::Position;
use store::replication::Role;

use super::polling::{FOLLOW_WAIT, Polling};
use super::{LifecycleError, fail};
use crate::agents::work::{Dispatcher, WorkSettings};
use crate::agents::{AgentSockets, AgentsSettings};
use crate::collectors::collectd::CollectdReceiver;
use crate::collectors::ganglia::GangliaSockets;
use crate::collectors::snmp::config::SnmpSettings;
use crate::daemon::{CollectorSockets, Daemon};
use crate::forward::{Forwarding, UnsentLog};
use crate::push::PushSockets;
use crate::service::Service;
use crate::settings::Settings;
use crate::sink::Sinks;

/// The duties of a primary; what has begun, and the sockets of what has not.
pub(super) struct Duties {
    sockets: CollectorSockets,
    push: PushSockets,
    agents: Option<AgentSockets>,
    polling: Option<Polling>,
    forwarding: Option<Forwarding>,
    sinks: Option<Sinks>,
}

fn is_primary(service: &Service) -> bool {
    service.engine.replica().is_none_or(|replica| replica.role() == Role::Primary)
}

impl Duties {
    /// Binds the sockets of collectors.
    pub(super) fn bind(settings: &Settings) -> Result<Self, LifecycleError> {
        let mut sockets = CollectorSockets::default();
        if let Some(collectd) = &settings.collectd {
            sockets.collectd = Some(CollectdReceiver::bind(collectd).map_err(fail)?);
        }
        if let Some(ganglia) = &settings.ganglia {
            sockets.ganglia = Some(GangliaSockets::bind(ganglia).map_err(fail)?);
        }
        let push = PushSockets::bind(&settings.push).map_err(fail)?;
        let agents = settings.agents.as_ref().map(AgentSockets::bind).transpose().map_err(fail)?;
        Ok(Duties { sockets, push, agents, polling: None, forwarding: None, sinks: None })
    }

    /// Forwards what the store accepts, from where it was or from `start` on. Before the first update of a primary, so that new targets get it.
    pub(super) fn forward(
        &mut self,
        service: &Service,
        settings: &mut Settings,
        start: Option<&[Position]>,
    ) -> Result<(), LifecycleError> {
        let engine = &service.engine;
        if !is_primary(service) {
            engine.release_log();
            return Ok(());
        }
        let positions = settings.own_directory().join("forward");
        let targets = std::mem::take(&mut settings.forward);
        let forwarding =
            Forwarding::start((engine, &service.ingest), targets, &positions, start).map_err(fail)?;
        if !forwarding.statuses.is_empty() {
            let _ = service.metrics.forwarding.set(forwarding.statuses.clone());
        }
        self.forwarding = Some(forwarding);
        let sinks = std::mem::take(&mut settings.sinks);
        self.sinks = Some(Sinks::start(engine, sinks, &service.metrics.sinks).map_err(fail)?);
        Ok(())
    }

    /// Collects and polls.
    pub(super) fn collect(
        &mut self,
        daemon: &mut Daemon,
        settings: &mut Settings,
    ) -> Result<(), LifecycleError> {
        if !is_primary(daemon.service()) {
            return Ok(());
        }
        daemon.collect(std::mem::take(&mut self.sockets), settings.collect_host.take());
        std::mem::take(&mut self.push).run(daemon).map_err(fail)?;
        for mrtg in std::mem::take(&mut settings.mrtg) {
            daemon.poll_mrtg(mrtg, settings.base.clone());
        }
        let polling = poll_snmp(daemon, settings, self.agents.take())?;
        self.polling = Some(polling);
        Ok(())
    }

    /// Begins all of it after a promotion, and forwards what came since its epoch began. What cannot begin is logged: this server is the primary all the same.
    pub(super) fn begin(
        &mut self,
        daemon: &mut Daemon,
        settings: &mut Settings,
        epoch_start: Option<Vec<Position>>,
    ) {
        let service = Arc::clone(daemon.service());
        let forwards = self.forward(&service, settings, epoch_start.as_deref());
        for begun in [forwards, self.collect(daemon, settings)] {
            if let Err(error) = begun {
                tracing::error!("after the promotion: {error}");
            }
        }
    }

    /// Polls these SNMP devices from now on, or once it is the primary.
    ///
    /// # Errors
    /// A text for the operator: nothing has changed.
    pub(super) async fn poll(&self, devices: SnmpSettings, settings: &mut Settings) -> Result<(), String> {
        match &self.polling {
            Some(polling) => polling.replace(devices).await,
            None => {
                settings.snmp = Some(devices);
                Ok(())
            }
        }
    }

    /// Stops forwarding and sinks; what was not sent is kept as long as what this returns.
    pub(super) fn stop_forwarding(&mut self) -> Option<UnsentLog> {
        self.sinks.take().into_iter().for_each(Sinks::stop);
        self.forwarding.take().map(Forwarding::stop)
    }
}

/// Polls the SNMP devices, and lets agents poll theirs.
fn poll_snmp(
    daemon: &mut Daemon,
    settings: &mut Settings,
    sockets: Option<AgentSockets>,
) -> Result<Polling, LifecycleError> {
    let mut devices = settings.snmp.take().unwrap_or_default();
    let mut agents = None;
    if let (Some(sockets), Some(AgentsSettings { handover, .. })) = (sockets, &settings.agents) {
        let work = Dispatcher::open(WorkSettings {
            devices: devices.take_handed_out(),
            handover: *handover,
            file: settings.own_directory().join("assignments"),
        });
        let work = work.map_err(fail)?;
        daemon.receive_agents(sockets, Arc::clone(&work));
        agents = Some(work);
    }
    Ok(Polling { here: daemon.poll_snmp(devices), agents, follow_wait: FOLLOW_WAIT })
}
