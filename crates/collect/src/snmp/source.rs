//! What a configuration says of SNMP devices: `[[snmp]]`.

use ::snmp::message::Version;
use ::snmp::usm::keys::{AuthProtocol, PrivProtocol};
use serde::Deserialize;

use super::device::{Credentials, DeviceOptions};
use super::profile::Profile;
use super::users::{UserSpec, Users};

/// One `[[snmp]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
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
    #[serde(default = "minute")]
    pub step: u64,
    /// Profiles by name.
    #[serde(default = "interfaces")]
    pub profiles: Vec<String>,
    /// Rows whose names match one of these patterns are polled; no pattern is all.
    #[serde(default)]
    pub only: Vec<String>,
    /// Rows whose names match one of these patterns are not polled.
    #[serde(default)]
    pub except: Vec<String>,
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
}

fn public() -> String {
    "public".to_string()
}

fn minute() -> u64 {
    60
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
            profiles: interfaces(),
            only: Vec::new(),
            except: Vec::new(),
            retries: twice(),
            objects_max: 0,
            bulk: yes(),
            any_source: false,
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
    pub fn check(&self) -> Result<(), String> {
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
            return Err(format!("a step of {} s is not 1 to 86400 s", self.step));
        }
        if self.address().is_none() {
            return Err(format!("\"{}\" is no device: give a name or an address, and :port", self.device));
        }
        if self.name().is_empty() {
            return Err("its name is empty".to_string());
        }
        let unknown = self.profiles.iter().find(|name| Profile::built_in(name).is_none());
        match unknown {
            Some(name) => Err(format!("there is no profile \"{name}\"")),
            None => Ok(()),
        }
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
        ) -> Result<Option<(P, String)>, String> {
            let found = match name {
                Some(name) => find(name).ok_or_else(|| format!("{key} \"{name}\" is unknown"))?,
                None => usual,
            };
            match password {
                Some(password) => Ok(Some((found, password.clone()))),
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

    /// Whether a row of this name is polled.
    pub fn wants(&self, name: &str) -> bool {
        let matches = |patterns: &[String]| {
            patterns.iter().any(|pattern| is_match(pattern.as_bytes(), name.as_bytes()))
        };
        (self.only.is_empty() || matches(&self.only)) && !matches(&self.except)
    }
}

/// Whether `text` is of the form `pattern`, in which `*` is any text and `?` any character.
fn is_match(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on if what follows the last star does not match.
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == b'?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((after, from)) = star else { return false };
                star = Some((after, from + 1));
                (p, t) = (after + 1, from + 1);
            }
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
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
        assert_eq!((source.check(), source.address(), source.step), (Ok(()), Some(("router1", 161)), 60));
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
        assert_eq!((source.check(), source.version()), (Ok(()), Ok(Version::V3)));
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
            ("device = 'r'\nstep = 0", "step"),
            ("device = 'r:x'", "r:x"),
            ("device = ''", "no device"),
            ("device = 'r'\nprofiles = ['cisco']", "cisco"),
        ] {
            let error = parse(text).check().expect_err(text);
            assert!(error.contains(want), "{error}");
        }
    }

    #[test]
    fn rows_are_chosen_by_patterns() {
        let source: SnmpSource =
            toml::from_str("device = 'r'\nonly = ['eth*', 'Gi?/*1']\nexcept = ['eth*.?']").unwrap();
        for (name, wanted) in [
            ("eth0", true),
            ("eth0.1", false),
            ("eth0.10", true),
            ("Gi0/21", true),
            ("Gi0/2", false),
            ("lo", false),
        ] {
            assert_eq!(source.wants(name), wanted, "{name}");
        }
    }
}
