//! What SIGHUP changes, in the daemon as in an agent: the log level, the permissions of the sockets and the SNMP devices. (Pollers of
//! `[[mrtg]]` read their own files again.) Of everything else that has changed, the log says that it takes a restart.

use std::path::Path;
use std::sync::PoisonError;

use crate::access::AccessSettings;
use crate::collectors::snmp::config::SnmpSettings;
use crate::connection::SharedPermissions;
use crate::listener::Listen;
use crate::settings::Settings;
use crate::{config, logging};

/// Which program reloads: each has sections that the other does not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `roundel serve`.
    Daemon,
    /// `roundel agent`.
    Agent,
}

/// What a reload works on.
pub struct Reloading {
    /// Whose settings they are.
    pub program: Program,
    /// The settings of the start.
    pub started: Settings,
    /// Those of each socket, in the order of the settings.
    pub permissions: Vec<SharedPermissions>,
    /// The log's level.
    pub log: logging::Reload,
}

impl Reloading {
    /// Reads the configuration again. One that cannot be used changes nothing. `put` changes what is polled, or says why it cannot.
    pub async fn reload(&self, put: impl AsyncFnOnce(SnmpSettings) -> Result<(), String>) {
        let Some(path) = &self.started.config_file else {
            tracing::info!("nothing to reload: the program was started without a configuration file");
            return;
        };
        let applied = match config::load(path) {
            Ok(mut new) => put(new.snmp.take().unwrap_or_default()).await.map(|()| new),
            Err(error) => Err(error.to_string()),
        };
        match applied {
            Ok(new) => self.apply(&new, path),
            Err(error) => {
                tracing::error!(%error, "the configuration was not reloaded: what was read before stays in force");
            }
        }
    }

    /// Changes what needs no permission of others.
    fn apply(&self, new: &Settings, path: &Path) {
        self.log.set(new.log_level);
        self.set_permissions(new);
        let sections = needing_restart(self.program, &self.started, new);
        if !sections.is_empty() {
            tracing::warn!(
                "these have changed in the configuration, and take a restart: {}",
                sections.join(", ")
            );
        }
        let what = match self.program {
            Program::Daemon => "log level, permissions and SNMP devices",
            Program::Agent => "log level and SNMP devices",
        };
        tracing::info!("reloaded {what} from {}", path.display());
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
            *first.permissions.write().unwrap_or_else(PoisonError::into_inner) = new.permissions;
            while shared.as_slice().first().is_some_and(|next| std::sync::Arc::ptr_eq(next, first)) {
                shared.next();
            }
        }
    }
}

fn are_sockets_same(old: &Settings, new: &Settings) -> bool {
    let sockets = |settings: &Settings| {
        let listen = settings.listen.iter();
        let of_one = |listen: &Listen| {
            let Listen { address, mode, group, anonymous, tls, permissions: _ } = listen.clone();
            (address, mode, group, anonymous, tls)
        };
        listen.map(of_one).collect::<Vec<_>>()
    };
    sockets(old) == sockets(new)
}

/// The keys and sections that have changed and that a running program does not change.
fn needing_restart(program: Program, old: &Settings, new: &Settings) -> Vec<&'static str> {
    let of_all = [
        ("base", old.base != new.base),
        ("[log] file", old.log_file != new.log_file),
        ("[collect]", old.collect_host != new.collect_host),
        ("[collectd]", old.collectd != new.collectd),
        ("[[gmond]], [gmond_listen] or [gmetad]", old.ganglia != new.ganglia),
        ("[[mrtg]]", old.mrtg != new.mrtg),
    ];
    let of_program = match program {
        Program::Daemon => changed_in_daemon(old, new).to_vec(),
        Program::Agent => vec![("[agent]", old.agent != new.agent)],
    };
    let changed = of_program.into_iter().chain(of_all);
    changed.filter(|(_, has_changed)| *has_changed).map(|(section, _)| section).collect()
}

/// What only the daemon uses, and whether it has changed.
fn changed_in_daemon(old: &Settings, new: &Settings) -> [(&'static str, bool); 13] {
    [
        ("layout, store and their sections", old.layout != new.layout),
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
            (&old.http, &old.templates, old.save_views, &old.web_access, &old.http_anonymous)
                != (&new.http, &new.templates, new.save_views, &new.web_access, &new.http_anonymous),
        ),
        ("[access]", written_access(old) != written_access(new)),
        ("[agents]", old.agents != new.agents),
        ("[carbon], [statsd] or [influx]", old.push != new.push),
    ]
}

/// What `[access]` says: not that the file of tokens is where the store is.
fn written_access(settings: &Settings) -> AccessSettings {
    let tokens = settings.access.tokens.clone().filter(|path| *path != settings.tokens_in_store());
    AccessSettings { tokens, ..settings.access.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_a_restart_is_named() {
        let parse = |text: &str| config::parse(text, "x.toml").unwrap();
        let check = |program, new: &str, want: &[&str]| {
            assert_eq!(needing_restart(program, &parse(""), &parse(new)), want, "{new}");
        };
        let daemon = |new: &str, want: &[&str]| check(Program::Daemon, new, want);
        daemon("", &[]);
        daemon("[[snmp]]\ndevice = 'r'\n[log]\nlevel = 'debug'\n", &[]);
        let listen = "[[listen]]\naddress = 'unix:var/rrdcached.sock'\n";
        daemon(&format!("{listen}permissions = ['PING']\n"), &[]);
        daemon(&format!("{listen}mode = '0600'\n"), &["[[listen]]"]);
        let collectors = "[log]\nfile = '/l'\n[collect]\nhost = true\n[collectd]\nlisten = ['127.0.0.1:1']\n\
             [[gmond]]\nname = 'a'\naddresses = ['b']\n[[mrtg]]\nconfig = '/m'\n[agents]\nlisten = ['127.0.0.1:1']\n\
             [agent]\nname = 'a'\nstore = 'b:1'\nspool = '/s'\n[[listen]]\naddress = 'unix:/x'\n";
        let of_all = [
            "base",
            "[log] file",
            "[collect]",
            "[collectd]",
            "[[gmond]], [gmond_listen] or [gmetad]",
            "[[mrtg]]",
        ];
        let of_daemon = [
            "layout, store and their sections",
            "sync",
            "no_overwrite",
            "make_directories",
            "pid_file",
            "user",
            "group",
            "[limits]",
            "[[listen]]",
            "[http]",
            "[agents]",
        ];
        let all = format!(
            "base = '/b'\nsync = 'always'\nno_overwrite = true\nmake_directories = false\npid_file = '/p'\n\
             user = '0'\ngroup = '0'\nstore = '/s'\n[limits]\nconnections = 9\n[http]\nlisten = [':1']\n{collectors}"
        );
        daemon(&all, &[&of_daemon[..], &of_all].concat());
        check(Program::Agent, &all, &[&["[agent]"][..], &of_all].concat());
    }
}
