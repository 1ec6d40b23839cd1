//! Where interfaces were when MRTG looked them up: its file `NAME.ok` beside `NAME.cfg`. What it says is checked with each poll, as what
//! is looked up is.

use std::collections::HashMap;

use super::lookup::{Kind, Place};
use super::rows::Interfaces;
use crate::mrtg::term::{SnmpIdentity, SnmpTerm};

/// The interfaces in such a file, by the agent as MRTG writes it.
#[derive(Clone, Debug, Default)]
pub struct KnownInterfaces(HashMap<String, Interfaces>);

impl KnownInterfaces {
    /// Reads the text of a file: in each line an agent, a kind of key, the key and an ifIndex. Lines that say nothing else are left out.
    pub fn parse(text: &str) -> Self {
        let mut known = KnownInterfaces::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            let [agent, method, key, index] = words[..] else { continue };
            let Some((kind, key)) = kind_of(method, key) else { continue };
            let place = index.parse().ok().map(|index: u32| {
                // The address of an interface is told by its number.
                let holds = if kind == Kind::Ip { index.to_string().into_bytes() } else { key.clone() };
                Place { index, holds }
            });
            let interfaces = known.0.entry(agent.to_string()).or_default();
            // Instead of a number stands "Dup" where several have the key.
            interfaces.entry(kind).or_default().note(key, place);
        }
        known
    }

    /// What is known of the agent of a term.
    pub(super) fn of(&self, term: &SnmpTerm) -> Option<&Interfaces> {
        let (community, versions) = match &term.identity {
            SnmpIdentity::V1 { community } => (community, &[None, Some("1")][..]),
            SnmpIdentity::V2c { community } => (community, &[Some("2"), Some("2c")][..]),
            SnmpIdentity::V3(_) => return None,
        };
        let (host, port) = (&term.agent.host, term.agent.port);
        // What the configuration leaves out is missing there, too.
        let mut ports = vec![port.to_string()];
        ports.extend((port == 161).then(String::new));
        let names =
            ports.iter().flat_map(|port| versions.iter().map(move |version| (port.as_str(), version)));
        let mut names = names.map(|name| match name {
            ("", None) => format!("{community}@{host}"),
            (port, None) => format!("{community}@{host}_{port}"),
            (port, Some(version)) => format!("{community}@{host}_{port}_{version}"),
        });
        names.find_map(|name| self.0.get(&name))
    }
}

fn kind_of(method: &str, key: &str) -> Option<(Kind, Vec<u8>)> {
    let bytes = key.as_bytes().to_vec();
    Some(match method {
        "Descr" => (Kind::Descr, bytes),
        "Name" => (Kind::Name, bytes),
        "Type" => (Kind::Type, bytes),
        "Ip" => (Kind::Ip, bytes),
        "Eth" => {
            let pairs = key.split('-').map(|pair| u8::from_str_radix(pair, 16).ok());
            (Kind::Mac, pairs.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of Debian's mrtg.
    #[test]
    fn a_file_of_mrtg_is_read() {
        let known = KnownInterfaces::parse(
            "public@127.0.0.1_22000_2\tDescr\tGi0/1001\t1001\npublic@127.0.0.1_22000_2\tType\t6\tDup\n\
             public@127.0.0.1_22000_2\tEth\t02-fc-00-00-00-01\t4\npublic@127.0.0.1_22000_2\tIp\t127.0.0.1\t1\n\
             public@127.0.0.1_22000_2\tEth\t\t1\nnonsense\na\tb\tc\td\n",
        );
        let interfaces = &known.0["public@127.0.0.1_22000_2"];
        let find = |kind: Kind, key: &[u8]| interfaces[&kind].find(key).cloned();
        let place = |index, holds: &[u8]| Some(Place { index, holds: holds.to_vec() });
        assert_eq!(find(Kind::Descr, b"Gi0/1001"), place(1001, b"Gi0/1001"));
        assert_eq!(find(Kind::Type, b"6"), None);
        let mac = [2, 0xfc, 0, 0, 0, 1];
        assert_eq!(find(Kind::Mac, &mac), place(4, &mac));
        assert_eq!(find(Kind::Ip, b"127.0.0.1"), place(1, b"1"));
        assert_eq!(known.0.len(), 1);
    }
}
