//! What SIGHUP changes: the log level, the permissions of the sockets and the SNMP devices. (Pollers of `[[mrtg]]` read their own files
//! again.) Of everything else that has changed, the log says that it takes a restart.

use std::path::Path;
use std::sync::PoisonError;

use collect::snmp::source::SnmpSource;
use tokio::sync::watch;

use crate::collectors::snmp::config::SnmpSettings;
use crate::connection::SharedPermissions;
use crate::settings::Settings;
use crate::{config, logging};

/// What a reload works on.
pub(super) struct Reloading<'a> {
    /// The settings of the start.
    pub started: Settings,
    /// Those of each socket, in the order of the settings.
    pub permissions: Vec<SharedPermissions>,
    /// The log's level.
    pub log: &'a logging::Reload,
    /// The devices that are polled.
    pub devices: watch::Sender<SnmpSettings>,
}

impl Reloading<'_> {
    /// Reads the configuration again. One that cannot be used changes nothing.
    pub(super) fn reload(&self) {
        let Some(path) = &self.started.config_file else {
            tracing::info!("nothing to reload: the daemon was started without a configuration file");
            return;
        };
        match config::load(path) {
            Ok(new) => self.apply(new, path),
            Err(error) => {
                tracing::error!(%error, "the configuration was not reloaded: what was read before stays in force");
            }
        }
    }

    fn apply(&self, new: Settings, path: &Path) {
        self.log.set(new.log_level);
        self.set_permissions(&new);
        let sections = needing_restart(&self.started, &new);
        if !sections.is_empty() {
            tracing::warn!(
                "these have changed in the configuration, and take a restart: {}",
                sections.join(", ")
            );
        }
        self.devices.send_replace(self.polled_here(new));
        tracing::info!("reloaded log level, permissions and SNMP devices from {}", path.display());
    }

    /// The devices that this daemon polls: which agents poll, only a restart changes, so that no device is polled twice or not at all.
    fn polled_here(&self, new: Settings) -> SnmpSettings {
        let mut devices = new.snmp.unwrap_or_default();
        let given: Vec<&str> = handed_out(&self.started).map(SnmpSource::name).collect();
        let polled = self.devices.borrow();
        let is_polled =
            |source: &SnmpSource| polled.sources.iter().any(|known| known.name() == source.name());
        devices.sources.retain(|source| {
            !given.contains(&source.name()) && (source.agents.is_empty() || is_polled(source))
        });
        devices.sources.iter_mut().for_each(|source| source.agents.clear());
        devices
    }

    /// Permissions belong to sockets: where those are others, they stay.
    fn set_permissions(&self, new: &Settings) {
        if !are_sockets_same(&self.started, new) {
            return;
        }
        let mut shared = self.permissions.iter();
        for new in &new.listen {
            // A host name may resolve to several sockets, which share one set of permissions.
            let Some(first) = shared.next() else { break };
            *first.write().unwrap_or_else(PoisonError::into_inner) = new.permissions;
            while shared.as_slice().first().is_some_and(|next| std::sync::Arc::ptr_eq(next, first)) {
                shared.next();
            }
        }
    }
}

/// The devices that agents poll.
fn handed_out(settings: &Settings) -> impl Iterator<Item = &SnmpSource> {
    settings.snmp.iter().flat_map(|snmp| &snmp.sources).filter(|source| !source.agents.is_empty())
}

fn are_sockets_same(old: &Settings, new: &Settings) -> bool {
    let sockets = |settings: &Settings| {
        let listen = settings.listen.iter();
        listen.map(|listen| (listen.address.clone(), listen.mode, listen.group)).collect::<Vec<_>>()
    };
    sockets(old) == sockets(new)
}

/// The keys and sections that have changed and that a running daemon does not change.
fn needing_restart(old: &Settings, new: &Settings) -> Vec<&'static str> {
    let changed = [
        ("layout, store and their sections", old.layout != new.layout),
        ("base", old.base != new.base),
        ("sync", old.sync != new.sync),
        ("no_overwrite", old.no_overwrite != new.no_overwrite),
        ("make_directories", old.make_directories != new.make_directories),
        ("pid_file", old.pid_file != new.pid_file),
        ("user", old.user != new.user),
        ("group", old.group != new.group),
        ("[limits]", old.limits != new.limits),
        ("[[listen]]", !are_sockets_same(old, new)),
        (
            "[http]",
            (&old.http, &old.templates, old.save_views) != (&new.http, &new.templates, new.save_views),
        ),
        ("[log] file", old.log_file != new.log_file),
        ("[collect]", old.collect_host != new.collect_host),
        ("[collectd]", old.collectd != new.collectd),
        ("[[gmond]], [gmond_listen] or [gmetad]", old.ganglia != new.ganglia),
        ("[[mrtg]]", old.mrtg != new.mrtg),
        ("[agents]", old.agents != new.agents),
        ("[[snmp]] with agents", !handed_out(old).eq(handed_out(new))),
    ];
    changed.into_iter().filter(|(_, has_changed)| *has_changed).map(|(section, _)| section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_a_restart_is_named() {
        let parse = |text: &str| config::parse(text, "x.toml").unwrap();
        let check =
            |new: &str, want: &[&str]| assert_eq!(needing_restart(&parse(""), &parse(new)), want, "{new}");
        check("", &[]);
        check("[[snmp]]\ndevice = 'r'\n[log]\nlevel = 'debug'\n", &[]);
        let listen = "[[listen]]\naddress = 'unix:var/rrdcached.sock'\n";
        check(&format!("{listen}permissions = ['PING']\n"), &[]);
        let agents = "[agents]\nlisten = ['127.0.0.1:1']\n[[snmp]]\ndevice = 'r'\nagents = 'a'\n";
        check(agents, &["[agents]", "[[snmp]] with agents"]);
        check(&format!("{listen}mode = '0600'\n"), &["[[listen]]"]);
        check(
            "base = '/b'\nsync = 'always'\nno_overwrite = true\nmake_directories = false\npid_file = '/p'\n\
             user = '0'\ngroup = '0'\nstore = '/s'\n[limits]\nconnections = 9\n[http]\nlisten = [':1']\n\
             [log]\nfile = '/l'\n[collect]\nhost = true\n[collectd]\nlisten = ['127.0.0.1:1']\n\
             [[gmond]]\nname = 'a'\naddresses = ['b']\n[[mrtg]]\nconfig = '/m'\n[agents]\nlisten = ['127.0.0.1:1']\n\
             [[listen]]\naddress = 'unix:/x'\n",
            &[
                "layout, store and their sections",
                "base",
                "sync",
                "no_overwrite",
                "make_directories",
                "pid_file",
                "user",
                "group",
                "[limits]",
                "[[listen]]",
                "[http]",
                "[log] file",
                "[collect]",
                "[collectd]",
                "[[gmond]], [gmond_listen] or [gmetad]",
                "[[mrtg]]",
                "[agents]",
            ],
        );
    }

    #[test]
    fn who_polls_a_device_is_changed_by_a_restart_only() {
        let parse = |devices: &[(&str, &str)]| {
            let section = |(name, more): &(&str, &str)| format!("[[snmp]]\ndevice = '{name}'\n{more}\n");
            let devices: String = devices.iter().map(section).collect();
            config::parse(&format!("[agents]\nlisten = ['127.0.0.1:1']\n{devices}"), "x.toml").unwrap()
        };
        let agents = "agents = 'a'";
        let started = parse(&[("here", ""), ("there", agents), ("back", agents)]);
        let polled = SnmpSettings { sources: vec![SnmpSource::new("here")], ..Default::default() };
        let log = logging::Reload::default();
        let (permissions, devices) = (Vec::new(), watch::Sender::new(polled));
        let reloading = Reloading { started, permissions, log: &log, devices };
        let new = parse(&[("here", agents), ("there", agents), ("back", ""), ("new", agents), ("local", "")]);
        let sources = reloading.polled_here(new).sources;
        assert_eq!(sources, ["here", "local"].map(SnmpSource::new));
    }
}
