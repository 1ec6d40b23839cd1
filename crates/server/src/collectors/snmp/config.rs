//! What `[[snmp]]` names outside `roundel.toml`: files of profiles, and the MIB files that those name.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use collect::snmp::profile::{MibNames, Profile, ProfileFile, Profiles, is_file};
use collect::snmp::source::SnmpSource;

/// The devices of `[[snmp]]`, checked.
#[derive(Clone, Debug, Default)]
pub struct SnmpSettings {
    /// The devices.
    pub sources: Vec<SnmpSource>,
    /// What they name as profiles.
    pub profiles: Profiles,
}

impl SnmpSettings {
    /// Takes out the devices that agents poll, with what agents need of files.
    pub fn take_handed_out(&mut self) -> HandedOut {
        let sources: Vec<_> = self.sources.extract_if(.., |source| !source.agents.is_empty()).collect();
        let names = sources.iter().flat_map(|source| &source.profiles).filter(|name| is_file(name));
        let text = |name: &String| Some((name.clone(), self.profiles.find(name)?.text.clone()?));
        HandedOut { profiles: names.filter_map(text).collect(), sources }
    }
}

/// Devices that agents poll, as the store gives them and as agents keep them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandedOut {
    /// The devices.
    pub sources: Vec<SnmpSource>,
    /// The texts of their profiles that are files, with numbers in place of names.
    pub profiles: BTreeMap<String, Arc<str>>,
}

/// The profiles that are built in, and those that these devices name as files.
///
/// # Errors
/// When a file cannot be read, or is no profile.
pub fn load_profiles<'a>(sources: impl IntoIterator<Item = &'a SnmpSource>) -> Result<Profiles, String> {
    let mut profiles = Profiles::default();
    for name in sources.into_iter().flat_map(|source| &source.profiles) {
        if profiles.find(name).is_none() && is_file(name) {
            profiles.add(name, read(Path::new(name))?);
        }
    }
    Ok(profiles)
}

fn read(path: &Path) -> Result<Profile, String> {
    let named = |error: &dyn Display| format!("profile \"{}\": {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| named(&error))?;
    let file = ProfileFile::parse(&text).map_err(|error| named(&error))?;
    let mut names = MibNames::default();
    for mib in file.mibs() {
        let mib = path.parent().unwrap_or(Path::new("")).join(mib);
        let bytes = fs::read(&mib);
        let bytes = bytes.map_err(|error| named(&format!("cannot read \"{}\": {error}", mib.display())))?;
        names.add(&String::from_utf8_lossy(&bytes));
    }
    let symbols = names.resolve().0;
    let text = file.to_numbers(&symbols).map_err(|error| named(&error))?;
    let profile = file.profile(&symbols).map_err(|error| named(&error))?;
    Ok(Profile { text: Some(text.into()), ..profile })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_come_from_files_with_names_from_files_beside_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("acme.toml");
        let source = SnmpSource {
            profiles: vec!["if-mib".to_string(), path.display().to_string()],
            ..SnmpSource::new("r")
        };
        let load = |text: &str| {
            fs::write(&path, text).unwrap();
            load_profiles([&source])
        };
        let table = "[[table]]\nname = 'load'\npath = 'acme/{device}.rrd'\n\
                     ds = [{ name = 'load', objects = ['acmeLoad'], kind = 'gauge' }]";
        let with_mib = format!("mibs = ['ACME-MIB']\n{table}");
        assert!(load(&with_mib).unwrap_err().contains("ACME-MIB"));
        let mib = "acmeLoad OBJECT-TYPE SYNTAX INTEGER ::= { enterprises 99999 3 }";
        fs::write(directory.path().join("ACME-MIB"), mib).unwrap();
        let profiles = load(&with_mib).unwrap();
        assert_eq!(source.check(&profiles), Ok(()));
        let oid = &profiles.find(&source.profiles[1]).unwrap().tables[0].columns[0].oid;
        assert_eq!(oid.to_string(), ".1.3.6.1.4.1.99999.3");
        let given = SnmpSource { agents: vec!["a".to_string()], ..source.clone() };
        let handed_out = SnmpSettings { sources: vec![given], profiles }.take_handed_out();
        let [(name, text)] = &Vec::from_iter(&handed_out.profiles)[..] else { panic!("one is a file") };
        assert!(**name == source.profiles[1] && text.contains(".1.3.6.1.4.1.99999.3"), "{text}");
        for (text, want) in [(table, "acmeLoad"), ("table = 3", "acme.toml"), ("", "table")] {
            let error = load(text).unwrap_err();
            assert!(error.contains(want) && error.contains("acme.toml"), "{error}");
        }
        fs::remove_file(&path).unwrap();
        assert!(load_profiles([&source]).unwrap_err().contains("acme.toml"));
    }
}
