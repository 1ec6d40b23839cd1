//! What `[[snmp]]` names outside `roundel.toml`: files of profiles, and the MIB files that those name.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use collect::snmp::profile::{MibNames, Profile, ProfileFile, Profiles};
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
    /// Takes out the devices that agents poll.
    pub fn take_handed_out(&mut self) -> Vec<SnmpSource> {
        self.sources.extract_if(.., |source| !source.agents.is_empty()).collect()
    }
}

/// The profiles that are built in, and those that these devices name as files.
///
/// # Errors
/// When a file cannot be read, or is no profile.
pub fn load_profiles<'a>(sources: impl IntoIterator<Item = &'a SnmpSource>) -> Result<Profiles, String> {
    let mut profiles = Profiles::default();
    for name in sources.into_iter().flat_map(|source| &source.profiles) {
        if profiles.find(name).is_none() && name.ends_with(".toml") {
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
    file.profile(&names.resolve().0).map_err(|error| named(&error))
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
        for (text, want) in [(table, "acmeLoad"), ("table = 3", "acme.toml"), ("", "table")] {
            let error = load(text).unwrap_err();
            assert!(error.contains(want) && error.contains("acme.toml"), "{error}");
        }
        fs::remove_file(&path).unwrap();
        assert!(load_profiles([&source]).unwrap_err().contains("acme.toml"));
    }
}
