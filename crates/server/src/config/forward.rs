//! The sections `[[forward]]`.

use std::collections::HashSet;
use std::path::PathBuf;

use ::access::PathSet;
use client::daemon::ClientIdentity;
use protocol::rrdcached::address::Address;
use serde::Deserialize;
use toml::Spanned;

use super::{ConfigError, LayoutName, Reader, absolute, values};
use crate::forward::ForwardSettings;
use crate::forward::destination::Destination;
use crate::limits::FORWARD_TARGETS_MAX;

/// What may wait for a target unless the configuration says otherwise: 100 million readings and more.
const SPOOL_BYTES_DEFAULT: u64 = 1 << 30;
/// The longest name of a target: it is a file's.
const NAME_BYTES_MAX: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section [[forward]]")]
pub(super) struct FileForward {
    to: Spanned<String>,
    name: Option<Spanned<String>>,
    names: Option<Spanned<Vec<String>>>,
    spool_bytes: Option<Spanned<String>>,
    token_file: Option<Spanned<PathBuf>>,
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
}

impl Reader<'_> {
    /// The targets.
    pub(super) fn forward(
        &self,
        given: &[FileForward],
        layout: &LayoutName,
    ) -> Result<Vec<ForwardSettings>, ConfigError> {
        let mut names = HashSet::new();
        let mut targets = Vec::with_capacity(given.len());
        for one in given {
            if *layout == LayoutName::Files {
                let cause = "forwarding reads the store's log, which layout = \"files\" does not have: use layout = \"stripes\"";
                return Err(self.error("to", &one.to, cause));
            }
            if targets.len() == FORWARD_TARGETS_MAX {
                return Err(self.error("to", &one.to, format!("at most {FORWARD_TARGETS_MAX} targets")));
            }
            let target = self.forward_one(one)?;
            if !names.insert(target.name.clone()) {
                let (key, given) = one.name.as_ref().map_or(("to", &one.to), |name| ("name", name));
                let cause =
                    format!("another [[forward]] is called \"{}\", too: give each a name", target.name);
                return Err(self.error(key, given, cause));
            }
            targets.push(target);
        }
        Ok(targets)
    }

    fn forward_one(&self, given: &FileForward) -> Result<ForwardSettings, ConfigError> {
        let to =
            Destination::parse(given.to.get_ref()).map_err(|cause| self.error("to", &given.to, cause))?;
        let name = match &given.name {
            None => file_name(given.to.get_ref()),
            Some(name) if *name.get_ref() == file_name(name.get_ref()) => name.get_ref().clone(),
            Some(name) => {
                let cause = format!("give up to {NAME_BYTES_MAX} letters, digits, dots and hyphens");
                return Err(self.error("name", name, cause));
            }
        };
        let names = match &given.names {
            None => PathSet::all(),
            Some(patterns) => {
                let set = PathSet::new(patterns.get_ref(), "");
                let set = set.map_err(|cause| self.error("names", patterns, cause))?;
                if set.is_empty() {
                    return Err(self.error("names", patterns, "no name matches: leave it out for all RRDs"));
                }
                set
            }
        };
        let bytes = given.spool_bytes.as_ref();
        Ok(ForwardSettings {
            name,
            names,
            spool_bytes: self.bytes("spool_bytes", bytes, SPOOL_BYTES_DEFAULT, values::SPOOL_BYTES)?,
            identity: self.forward_identity(given, &to)?,
            to,
        })
    }

    /// How it shows who it is.
    fn forward_identity(&self, given: &FileForward, to: &Destination) -> Result<ClientIdentity, ConfigError> {
        let is_encrypted = match to {
            Destination::Roundel(address) => matches!(Address::parse(address), Ok(Address::Tls { .. })),
            Destination::Prometheus(url) => url.starts_with("https://"),
            _ => false,
        };
        let advice = (!is_encrypted).then_some("tls:HOST:PORT or an https:// URL");
        let files = [&given.ca_file, &given.cert_file, &given.key_file];
        let tls = self.tls_files(("to", &given.to), files, advice)?;
        if let (Some(file), Some(cause)) = (&given.token_file, to.refuses_token()) {
            return Err(self.error("token_file", file, cause));
        }
        let token_file = given.token_file.as_ref().map(|file| absolute(file.get_ref())).transpose()?;
        Ok(ClientIdentity { token_file, tls })
    }
}

/// A text as the name of a file.
fn file_name(text: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '-' };
    let name: String = text.chars().map(letter).collect();
    name.trim_matches(['.', '-']).chars().take(NAME_BYTES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[test]
    fn a_target_is_all_rrds_and_named_after_its_address_unless_told_otherwise() {
        let text = "[[forward]]\nto = \"tls:second:42217\"\n\
                    [[forward]]\nto = \"graphite:carbon\"\nname = \"g.1\"\nnames = [\"net/**\"]\nspool_bytes = \"10 MB\"\n";
        let settings = parse(text, "roundel.toml").unwrap();
        let [second, graphite] = &settings.forward[..] else { panic!("two") };
        assert_eq!((second.name.as_str(), second.spool_bytes), ("tls-second-42217", SPOOL_BYTES_DEFAULT));
        assert!(second.names.is_all());
        assert_eq!((graphite.name.as_str(), graphite.spool_bytes), ("g.1", 10_000_000));
        assert!(graphite.names.contains(b"net/a.rrd") && !graphite.names.contains(b"a.rrd"));
    }

    #[test]
    fn the_example_of_the_page_is_good() {
        let page = include_str!("../../../../docs/forward.md");
        let (_, block) = page.split_once("```toml\n").unwrap();
        let (block, _) = block.split_once("```").unwrap();
        let settings = parse(block, "docs/forward.md").unwrap();
        let names: Vec<&str> = settings.forward.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["second", "graphite-carbon.example.org"]);
        assert!(settings.forward[1].names.contains(b"hosts/a/cpu.rrd"));
    }

    #[test]
    fn each_wrong_key_is_named_with_its_line() {
        let check = |keys: &str, want: &str| {
            let text = format!("[[forward]]\n{keys}");
            let error = parse(&text, "roundel.toml").unwrap_err().to_string();
            assert!(error.contains(want), "{keys}: {error}");
        };
        check("name = \"x\"\n", "roundel.toml:1: missing field `to`");
        check("to = \"a:1\"\nspeed = 1\n", "roundel.toml:3: unknown field `speed`");
        check("to = \"ftp://a\"\n", "roundel.toml:2: cannot use to = \"ftp://a\": give HOST:PORT");
        check("to = \"a:1\"\nname = \"a b\"\n", "roundel.toml:3: cannot use name = \"a b\": give up to 64");
        check("to = \"a:1\"\nnames = [\"a//b\"]\n", "roundel.toml:3: cannot use names");
        check("to = \"a:1\"\nnames = []\n", "leave it out");
        check("to = \"a:1\"\nspool_bytes = \"1\"\n", "roundel.toml:3: cannot use spool_bytes");
        check(
            "to = \"a:1\"\ntoken_file = \"t\"\n",
            "roundel.toml:3: cannot use token_file = \"t\": a token is not sent",
        );
        check("to = \"a:1\"\nca_file = \"t\"\n", "are for TLS");
        check("to = \"tls:a:1\"\ncert_file = \"t\"\n", "give both");
        check(
            "to = \"a:1\"\n[[forward]]\nto = \"a:1\"\n",
            "roundel.toml:4: cannot use to = \"a:1\": another [[forward]]",
        );
        let error = parse("layout = \"files\"\n[[forward]]\nto = \"a:1\"\n", "roundel.toml").unwrap_err();
        assert!(error.to_string().contains("layout = \"files\" does not have"), "{error}");
    }
}
