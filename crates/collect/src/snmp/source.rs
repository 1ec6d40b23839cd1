//! What a configuration says of SNMP devices: `[[snmp]]`.

use ::snmp::message::Version;
use serde::Deserialize;

use super::device::{Credentials, DeviceOptions};
use super::profile::Profile;

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
    /// `1` or `2c`.
    #[serde(default = "two")]
    pub version: String,
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

fn two() -> String {
    "2c".to_string()
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
            version: two(),
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
        if self.version().is_none() {
            return Err(format!("version \"{}\" is not 1 or 2c", self.version));
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
    pub fn version(&self) -> Option<Version> {
        match self.version.as_str() {
            "1" => Some(Version::V1),
            "2" | "2c" => Some(Version::V2c),
            _ => None,
        }
    }

    /// How the engine asks it; `None` for a version that there is not.
    pub fn engine_options(&self) -> Option<(Credentials, DeviceOptions)> {
        let options = DeviceOptions {
            retries: self.retries,
            objects_max: self.objects_max,
            bulk: self.bulk,
            any_source: self.any_source,
            ..DeviceOptions::new(self.step, &self.device)
        };
        let community = self.community.clone().into_bytes();
        Some((Credentials::Community { version: self.version()?, community }, options))
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
        for (text, want) in [
            ("device = 'r'\nversion = '4'", "4"),
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
