//! What a configuration says of SNMP devices: `[[snmp]]`.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::snmp::message::Version;
use ::snmp::usm::Secret;
use ::snmp::usm::keys::{AuthProtocol, PrivProtocol};
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;
use serde::{Deserialize, Serialize};

use super::device::{Credentials, DeviceOptions};
use super::profile::{Profiles, TableSpec};
use super::rules::RowRule;
use super::template::PathTemplate;
use super::users::{UserSpec, Users};
use crate::host::safe_component;

/// How long rows of which length are kept: (seconds of a row, seconds kept).
const ARCHIVES: [(u64, u64); 4] =
    [(1, 2 * 86_400), (300, 14 * 86_400), (1_800, 62 * 86_400), (86_400, 732 * 86_400)];
/// Seconds between two discoveries of a device at least.
pub(super) const DISCOVER_MIN: u64 = 30;

/// One `[[snmp]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section [[snmp]]")]
pub struct SnmpSource {
    /// Name or address, with `:port` if it is not 161.
    pub device: String,
    /// What it is called in names of RRDs and in messages; the host, if nothing is said.
    pub name: Option<String>,
    /// The community.
    #[serde(default = "public")]
    pub community: String,
    /// `1`, `2c` or `3`; nothing is `3` if there is a user, and otherwise `2c`.
    pub version: Option<String>,
    /// Version 3: the user.
    pub user: Option<String>,
    /// Version 3: how messages are authenticated, such as `SHA-256`.
    pub auth: Option<String>,
    /// Version 3: the password of that; without it messages are not authenticated.
    pub auth_password: Option<String>,
    /// Version 3: how messages are encrypted, such as `AES-128`.
    pub privacy: Option<String>,
    /// Version 3: the password of that; without it messages are not encrypted.
    pub privacy_password: Option<String>,
    /// Version 3: the context, usually none.
    pub context: Option<String>,
    /// Seconds from poll to poll.
    #[serde(default = "minute", with = "seconds")]
    pub step: u64,
    /// Seconds without a reading after which values are unknown; 0 is twice the step.
    #[serde(default, with = "seconds", skip_serializing_if = "is_zero")]
    pub heartbeat: u64,
    /// Seconds until it is looked again what the device has.
    #[serde(default = "day", with = "seconds")]
    pub discover: u64,
    /// Profiles by name.
    #[serde(default = "interfaces")]
    pub profiles: Vec<String>,
    /// Rows for which one of these rules holds are polled; no rule is all.
    #[serde(default)]
    pub only: Vec<RowRule>,
    /// Rows for which one of these rules holds are not polled.
    #[serde(default)]
    pub except: Vec<RowRule>,
    /// Names of RRDs by table, instead of those of the profiles.
    #[serde(default)]
    pub paths: BTreeMap<String, String>,
    /// The archives, as `rrdcreate(1)` has them, instead of ours.
    #[serde(default)]
    pub rras: Vec<String>,
    /// How often a request is repeated.
    #[serde(default = "twice")]
    pub retries: u8,
    /// Objects per request at most; 0 is as many as the device takes.
    #[serde(default)]
    pub objects_max: u16,
    /// Whether tables may be read by GETBULK.
    #[serde(default = "yes")]
    pub bulk: bool,
    /// Whether answers may come from other addresses.
    #[serde(default)]
    pub any_source: bool,
    /// Patterns of the agents that may poll it instead of the store's own machine: of their names, or `tag:` and of their tags.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// On an agent: the assignment that it is polled for; 0 when it is the agent's own device.
    #[serde(skip)]
    pub assignment: u64,
    /// On a node of a cluster: of the tables whose RRDs have known directories, only those of these are polled.
    #[serde(skip)]
    pub share: Option<Vec<String>>,
}

/// A time of 0 has no text.
fn is_zero(seconds: &u64) -> bool {
    *seconds == 0
}

/// A text, or a list of texts.
fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "give a pattern, or a list of patterns")]
    enum Patterns {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Patterns::deserialize(deserializer)? {
        Patterns::One(pattern) => vec![pattern],
        Patterns::Many(patterns) => patterns,
    })
}

fn public() -> String {
    "public".to_string()
}

fn minute() -> u64 {
    60
}

fn day() -> u64 {
    86_400
}

fn interfaces() -> Vec<String> {
    vec!["if-mib".to_string()]
}

fn twice() -> u8 {
    2
}

fn yes() -> bool {
    true
}

impl SnmpSource {
    /// A device of which no more is said.
    pub fn new(device: &str) -> Self {
        SnmpSource {
            device: device.to_string(),
            name: None,
            community: public(),
            version: None,
            user: None,
            auth: None,
            auth_password: None,
            privacy: None,
            privacy_password: None,
            context: None,
            step: minute(),
            heartbeat: 0,
            discover: day(),
            profiles: interfaces(),
            only: Vec::new(),
            except: Vec::new(),
            paths: BTreeMap::new(),
            rras: Vec::new(),
            retries: twice(),
            objects_max: 0,
            bulk: yes(),
            any_source: false,
            agents: Vec::new(),
            assignment: 0,
            share: None,
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        let host = self.address().map_or(self.device.as_str(), |(host, _)| host);
        self.name.as_deref().unwrap_or(host)
    }

    /// What is wrong with it, if anything is.
    ///
    /// # Errors
    /// The first mistake.
    pub fn check(&self, profiles: &Profiles) -> Result<(), String> {
        let secrets = [&self.auth, &self.auth_password, &self.privacy, &self.privacy_password, &self.context];
        if self.version()? == Version::V3 {
            self.user()?.check()?;
        } else if self.user.is_some() || secrets.iter().any(|secret| secret.is_some()) {
            return Err(
                "user, auth, privacy and context are of version 3: give a user, and no other version".into(),
            );
        }
        if self.profiles.is_empty() {
            return Err("it has no profiles, so nothing would be polled".into());
        }
        if self.step == 0 || self.step > 86_400 {
            return Err(format!("a step of {} s is not 1 s to 1 d", self.step));
        }
        if self.heartbeat != 0 && self.heartbeat < self.step {
            return Err("the heartbeat is shorter than the step, so all would be unknown".into());
        }
        if self.discover < DISCOVER_MIN {
            return Err(format!("discover is less than {DISCOVER_MIN} s"));
        }
        if self.address().is_none() {
            return Err(format!("\"{}\" is no device: give a name or an address, and :port", self.device));
        }
        if self.name().is_empty() {
            return Err("its name is empty".to_string());
        }
        self.check_rules(&self.tables(profiles)?)?;
        self.check_rras()
    }

    fn check_rules(&self, tables: &[PolledTable]) -> Result<(), String> {
        let rules = self.only.iter().chain(&self.except);
        for rule in rules {
            if !tables.iter().any(|table| rule.concerns(&table.spec)) {
                return Err(format!(
                    "no table of its profiles has {}, of which a rule speaks",
                    rule.columns()
                ));
            }
        }
        Ok(())
    }

    fn check_rras(&self) -> Result<(), String> {
        let options = CreateOptions {
            step: Step { units: self.step, units_per_second: 1 },
            limits: Limits::FILE,
            file_name: b"x",
        };
        let args = [vec![self.ds_arg("x", "GAUGE", "U")], self.rra_args()].concat();
        let is_archive = |arg: &String| arg.starts_with("RRA:");
        match self.rras.iter().find(|arg| !is_archive(arg)) {
            Some(arg) => Err(format!("\"{arg}\" is no archive such as RRA:AVERAGE:0.5:1m:2d")),
            None => parse_create(&options, &args).map(drop).map_err(|error| format!("rras: {error}")),
        }
    }

    /// The tables that are walked.
    ///
    /// # Errors
    /// When there is no such profile, or a path is no good.
    pub(super) fn tables(&self, profiles: &Profiles) -> Result<Vec<PolledTable>, String> {
        let mut tables = Vec::new();
        for name in &self.profiles {
            let profile = profiles.find(name).ok_or_else(|| {
                let known: Vec<&str> = profiles.names().collect();
                format!("there is no profile \"{name}\", but {}", known.join(", "))
            })?;
            for spec in &profile.tables {
                let path = self.paths.get(&spec.name).map(|path| PathTemplate::parse(path, &spec.columns));
                let path = path.transpose()?.map_or_else(|| Arc::clone(&spec.path), Arc::new);
                tables.push(PolledTable { spec: Arc::clone(spec), path });
            }
        }
        let is_table = |name: &&String| tables.iter().any(|table| table.spec.name == **name);
        match self.paths.keys().find(|name| !is_table(name)) {
            None => {
                if let Some(share) = &self.share {
                    let component = safe_component(self.name());
                    let is_shared = |path: &PathTemplate| {
                        path.directory(&component).is_none_or(|directory| share.contains(&directory))
                    };
                    tables.retain(|table| is_shared(&table.path));
                }
                Ok(tables)
            }
            Some(name) => {
                let known: Vec<&str> = tables.iter().map(|table| table.spec.name.as_str()).collect();
                Err(format!("paths: its profiles have no table \"{name}\", but {}", known.join(", ")))
            }
        }
    }

    /// The directories of its RRDs, each once; `None` when they depend on what the device has, or the source is not good.
    pub fn directories(&self, profiles: &Profiles) -> Option<Vec<String>> {
        let component = safe_component(self.name());
        let mut directories = Vec::new();
        for table in self.tables(profiles).ok()? {
            let directory = table.path.directory(&component)?;
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
        Some(directories)
    }

    /// The RRD of the device's own statistics, and the device's name in paths.
    pub fn statistics_name(&self) -> (String, String) {
        let component = safe_component(self.name());
        (format!("snmp/{component}.rrd"), component)
    }

    /// The argument of `rrdcreate(1)` for a data source.
    pub(super) fn ds_arg(&self, name: &str, kind: &str, least: &str) -> String {
        let heartbeat = if self.heartbeat == 0 { self.step * 2 } else { self.heartbeat };
        format!("DS:{name}:{kind}:{heartbeat}:{least}:U")
    }

    /// The arguments of `rrdcreate(1)` for the archives.
    pub(super) fn rra_args(&self) -> Vec<String> {
        if !self.rras.is_empty() {
            return self.rras.clone();
        }
        let step = self.step;
        let wanted = ARCHIVES.iter().enumerate().filter(|(nth, (row, _))| *nth == 0 || *row > step);
        let rows: Vec<(u64, u64)> = wanted
            .map(|(_, (row, kept))| {
                let steps = (row / step).max(1);
                (steps, kept / (steps * step))
            })
            .collect();
        let archives = |cf| rows.iter().map(move |(steps, rows)| format!("RRA:{cf}:0.5:{steps}:{rows}"));
        ["AVERAGE", "MAX"].into_iter().flat_map(archives).collect()
    }

    /// The lines of a configuration for it: what is not the default.
    ///
    /// # Errors
    /// Never, unless a key cannot be written as TOML.
    pub fn section(&self) -> Result<String, toml::ser::Error> {
        let mut keys = toml::Table::try_from(self)?;
        let default = toml::Table::try_from(SnmpSource::new(&self.device))?;
        keys.retain(|key, value| default.get(key) != Some(value));
        let device = toml::Table::from_iter([("device".to_string(), self.device.as_str().into())]);
        Ok(format!("[[snmp]]\n{device}{keys}"))
    }

    /// The version.
    ///
    /// # Errors
    /// When there is no such version.
    pub fn version(&self) -> Result<Version, String> {
        match self.version.as_deref() {
            None if self.user.is_some() => Ok(Version::V3),
            None | Some("2" | "2c") => Ok(Version::V2c),
            Some("1") => Ok(Version::V1),
            Some("3") => Ok(Version::V3),
            Some(other) => Err(format!("version \"{other}\" is not 1, 2c or 3")),
        }
    }

    /// The user of version 3. A password without a protocol is for the one that every agent has: SHA-1 and AES-128.
    ///
    /// # Errors
    /// When there is no such protocol, or it has no password.
    pub fn user(&self) -> Result<UserSpec, String> {
        fn protocol<P>(
            name: Option<&String>,
            password: Option<&String>,
            find: impl Fn(&str) -> Option<P>,
            usual: P,
            key: &str,
        ) -> Result<Option<(P, Secret)>, String> {
            let found = match name {
                Some(name) => find(name).ok_or_else(|| format!("{key} \"{name}\" is unknown"))?,
                None => usual,
            };
            match password {
                Some(password) => Ok(Some((found, Secret::Password(password.clone())))),
                None if name.is_some() => Err(format!("{key} needs {key}_password")),
                None => Ok(None),
            }
        }
        let (auth, auth_password) = (self.auth.as_ref(), self.auth_password.as_ref());
        let (privacy, privacy_password) = (self.privacy.as_ref(), self.privacy_password.as_ref());
        Ok(UserSpec {
            name: self.user.clone().unwrap_or_default(),
            auth: protocol(auth, auth_password, AuthProtocol::find, AuthProtocol::Sha1, "auth")?,
            privacy: protocol(
                privacy,
                privacy_password,
                PrivProtocol::find,
                PrivProtocol::Aes128,
                "privacy",
            )?,
            context: self.context.clone().unwrap_or_default(),
            context_engine: Vec::new(),
        })
    }

    /// How the engine asks it.
    ///
    /// # Errors
    /// When there is no such version or no such protocol.
    pub fn engine_options(&self, users: &mut Users) -> Result<(Credentials, DeviceOptions), String> {
        let options = DeviceOptions {
            retries: self.retries,
            objects_max: self.objects_max,
            bulk: self.bulk,
            any_source: self.any_source,
            ..DeviceOptions::new(self.step, &self.device)
        };
        let credentials = match self.version()? {
            Version::V3 => users.credentials(&self.user()?),
            version => Credentials::Community { version, community: self.community.clone().into_bytes() },
        };
        Ok((credentials, options))
    }

    /// Host and port.
    pub fn address(&self) -> Option<(&str, u16)> {
        if let Some(rest) = self.device.strip_prefix('[') {
            let (host, port) = rest.split_once(']')?;
            return match port.strip_prefix(':') {
                Some(port) => Some((host, port.parse().ok()?)),
                None => port.is_empty().then_some((host, 161)),
            };
        }
        match self.device.split_once(':') {
            Some((host, port)) if !port.contains(':') => Some((host, port.parse().ok()?)),
            _ => Some((self.device.as_str(), 161)),
        }
        .filter(|(host, _)| !host.is_empty())
    }
}

/// A table of a profile, with the names that a device's RRDs have.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PolledTable {
    pub spec: Arc<TableSpec>,
    pub path: Arc<PathTemplate>,
}

/// A time as a text such as `30s`.
mod seconds {
    use rrd::when::{DurationScale, parse_duration};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(seconds: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{seconds}s"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        // RRDtool ignores what follows a unit: `100ms` are 100 minutes to it.
        let unit = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let is_plain = ["", "s", "m", "h", "d", "w"].contains(&unit);
        let seconds = parse_duration(&text, DurationScale::SECONDS).ok().filter(|_| is_plain);
        let cause = "give whole seconds, or a number with a suffix s, m, h, d or w";
        seconds.ok_or_else(|| D::Error::custom(format!("cannot use \"{text}\": {cause}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_enough_and_mistakes_are_named() {
        let parse = |text: &str| toml::from_str::<SnmpSource>(text).unwrap();
        let source = parse("device = 'router1'");
        assert_eq!(source, SnmpSource::new("router1"));
        assert_eq!((source.name(), parse("device = 'r:99'\nname = 'a'").name()), ("router1", "a"));
        let profiles = Profiles::default();
        let check = |source: &SnmpSource| source.check(&profiles);
        assert_eq!((check(&source), source.address(), source.step), (Ok(()), Some(("router1", 161)), 60));
        for (text, host, port) in [
            ("r:1161", "r", 1161),
            ("[::1]:99", "::1", 99),
            ("[::1]", "::1", 161),
            ("fe80::1", "fe80::1", 161),
        ] {
            assert_eq!(parse(&format!("device = '{text}'")).address(), Some((host, port)));
        }
        let secret =
            "device = 'r'\nuser = 'a'\nauth_password = 'maplesyrup'\nprivacy_password = 'maplesyrup'";
        let source = parse(secret);
        assert_eq!((check(&source), source.version()), (Ok(()), Ok(Version::V3)));
        assert_eq!(format!("{:?}", source.user().unwrap()), "a, Some(Sha1), Some(Aes128)");
        for (text, want) in [
            ("device = 'r'\nversion = '4'", "4"),
            ("device = 'r'\nversion = '3'", "user"),
            ("device = 'r'\nversion = '2c'\nuser = 'a'", "version 3"),
            ("device = 'r'\nauth_password = 'maplesyrup'", "give a user"),
            ("device = 'r'\nprofiles = []", "no profiles"),
            ("device = 'r'\nuser = 'a'\nauth = 'SHA-3'", "SHA-3"),
            ("device = 'r'\nuser = 'a'\nauth = 'SHA'", "auth_password"),
            ("device = 'r'\nuser = 'a'\nauth_password = 'short'", "8 characters"),
            ("device = 'r'\nuser = 'a'\nprivacy_password = 'longenough'", "authentication"),
            ("device = 'r'\nstep = '2d'", "step"),
            ("device = 'r'\nheartbeat = '30s'", "heartbeat"),
            ("device = 'r'\ndiscover = '1s'", "discover"),
            ("device = 'r'\nonly = [{ ifTyp = 6 }]", "ifTyp"),
            ("device = 'r'\npaths = { interfaces = '{device}.rrd' }", "interface"),
            ("device = 'r'\npaths = { interface = '{name}.rrd' }", "{device}"),
            ("device = 'r'\nrras = ['AVERAGE:0.5:1:10']", "RRA:"),
            ("device = 'r'\nrras = ['RRA:AVERAGE:0.5:1:x']", "rras"),
            ("device = 'r:x'", "r:x"),
            ("device = ''", "no device"),
            ("device = 'r'\nprofiles = ['cisco']", "cisco"),
        ] {
            let error = check(&parse(text)).expect_err(text);
            assert!(error.contains(want), "{error}");
        }
        for bad in ["0", "100ms", "1.5s", "s", "-1s", "1M", ""] {
            let text = format!("device = 'r'\nstep = '{bad}'");
            let error = toml::from_str::<SnmpSource>(&text).unwrap_err().to_string();
            assert!(error.contains(&format!("cannot use \"{bad}\"")), "{error}");
        }
    }

    #[test]
    fn archives_are_ours_or_those_that_are_given() {
        let source = |text: &str| toml::from_str::<SnmpSource>(text).unwrap();
        let ours = source("device = 'r'").rra_args();
        assert_eq!(ours[..2], ["RRA:AVERAGE:0.5:1:2880", "RRA:AVERAGE:0.5:5:4032"]);
        let given = source("device = 'r'\nstep = '10s'\nheartbeat = '1m'\nrras = ['RRA:LAST:0.5:10s:1d']");
        assert_eq!(given.check(&Profiles::default()), Ok(()));
        assert_eq!(given.rra_args(), ["RRA:LAST:0.5:10s:1d"]);
        assert_eq!(given.ds_arg("in", "DERIVE", "0"), "DS:in:DERIVE:60:0:U");
    }

    #[test]
    fn the_section_says_what_is_not_the_default_and_is_read_back() {
        assert_eq!(SnmpSource::new("router1").section().unwrap(), "[[snmp]]\ndevice = \"router1\"\n");
        let source = SnmpSource {
            community: "a\"b".to_string(),
            user: Some("reader".to_string()),
            step: 30,
            profiles: vec!["if-mib".to_string(), "ucd".to_string()],
            except: vec![toml::from_str::<SnmpSource>("device = 'r'\nonly = ['lo']").unwrap().only.remove(0)],
            paths: BTreeMap::from([("load".to_string(), "{device}/{index}.rrd".to_string())]),
            bulk: false,
            ..SnmpSource::new("[::1]:99")
        };
        let text = source.section().unwrap();
        let lines = text.strip_prefix("[[snmp]]\n").unwrap();
        assert_eq!(toml::from_str::<SnmpSource>(lines), Ok(source.clone()), "{text}");
        // Whole, as the store gives it to agents.
        for source in [source, SnmpSource::new("router1")] {
            let text = toml::to_string(&source).unwrap();
            assert_eq!(toml::from_str::<SnmpSource>(&text), Ok(source), "{text}");
        }
    }
}
