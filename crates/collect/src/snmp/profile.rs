//! Profiles: which columns of which tables become data sources of which RRDs, as data.

use std::collections::BTreeMap;

use ::snmp::oid::Oid;
use serde::Deserialize;

use super::plan::COLUMNS_MAX;

/// The profiles that are built in: a name, and the text of a file.
const BUILT_IN: [(&str, &str); 6] = [
    ("if-mib", include_str!("profiles/if-mib.toml")),
    ("host-resources", include_str!("profiles/host-resources.toml")),
    ("ucd", include_str!("profiles/ucd.toml")),
    ("entity-sensor", include_str!("profiles/entity-sensor.toml")),
    ("bgp4", include_str!("profiles/bgp4.toml")),
    ("printer", include_str!("profiles/printer.toml")),
];
/// Data sources with longer names are refused.
const DS_NAME_MAX: usize = 19;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    #[serde(default)]
    objects: BTreeMap<String, String>,
    table: Vec<TableFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    path: String,
    #[serde(default)]
    reference: Vec<String>,
    #[serde(default)]
    info: Vec<String>,
    ds: Vec<DsFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DsFile {
    name: String,
    objects: Vec<String>,
    kind: SourceKind,
}

/// How a data source counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// A counter; of 32 or 64 bits, as the device sends it.
    Counter,
    /// A value.
    Gauge,
}

/// A data source.
#[derive(Clone, Debug)]
pub struct SourceSpec {
    /// Its name.
    pub name: String,
    /// Positions among [`TableSpec::columns`]: the first that a row has is polled.
    pub columns: Vec<usize>,
    /// How it counts.
    pub kind: SourceKind,
}

/// A table: each of its rows feeds an RRD.
#[derive(Clone, Debug)]
pub struct TableSpec {
    /// The RRD's name, with `{device}`, `{name}`, `{index}` and `{COLUMN}` for what the row holds.
    pub path: String,
    /// All columns that a walk asks for, with the names that the profile gives them.
    pub columns: Vec<(String, Oid)>,
    /// Positions among the columns: the first that a row has is its name.
    pub reference: Vec<usize>,
    /// The data sources.
    pub sources: Vec<SourceSpec>,
}

/// A profile.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its tables.
    pub tables: Vec<TableSpec>,
}

impl Profile {
    /// A profile that is built in.
    pub fn built_in(name: &str) -> Option<Self> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Profile::parse(text).ok()
    }

    /// The names of the profiles that are built in.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Reads the text of a profile.
    ///
    /// # Errors
    /// When it is no TOML, has unknown keys, or names objects that it does not define.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: ProfileFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let find = |name: &String| {
            let text = file.objects.get(name).unwrap_or(name);
            Oid::parse(text).ok_or_else(|| format!("\"{name}\" is no object: give it under [objects]"))
        };
        let tables = file.table.iter().map(|table| read_table(table, find)).collect::<Result<_, _>>()?;
        Ok(Profile { tables })
    }
}

fn read_table(table: &TableFile, find: impl Fn(&String) -> Result<Oid, String>) -> Result<TableSpec, String> {
    let mut columns: Vec<(String, Oid)> = Vec::new();
    let mut place = |name: &String| -> Result<usize, String> {
        if let Some(at) = columns.iter().position(|(known, _)| known == name) {
            return Ok(at);
        }
        columns.push((name.clone(), find(name)?));
        Ok(columns.len() - 1)
    };
    let reference = table.reference.iter().map(&mut place).collect::<Result<_, _>>()?;
    table.info.iter().try_for_each(|name| place(name).map(drop))?;
    let mut sources = Vec::new();
    for ds in &table.ds {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if ds.name.is_empty() || ds.name.len() > DS_NAME_MAX || !ds.name.chars().all(good) {
            return Err(format!("\"{}\" cannot name a data source", ds.name));
        }
        if ds.objects.is_empty() {
            return Err(format!("data source \"{}\" has no objects", ds.name));
        }
        let columns = ds.objects.iter().map(&mut place).collect::<Result<_, _>>()?;
        sources.push(SourceSpec { name: ds.name.clone(), columns, kind: ds.kind });
    }
    if sources.is_empty() || columns.len() > COLUMNS_MAX {
        return Err(format!("table \"{}\" needs 1 to {COLUMNS_MAX} objects, and a data source", table.path));
    }
    Ok(TableSpec { path: table.path.clone(), columns, reference, sources })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_profiles_are_good() {
        for name in Profile::names() {
            let profile = Profile::built_in(name).unwrap_or_else(|| panic!("{name}"));
            assert!(profile.tables.iter().all(|table| table.path.contains("{device}")), "{name}");
        }
        let interfaces = &Profile::built_in("if-mib").unwrap().tables[0];
        assert_eq!((interfaces.columns.len(), interfaces.sources.len()), (17, 8));
        assert_eq!(interfaces.columns[interfaces.sources[0].columns[0]].0, "ifHCInOctets");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, want) in [
            ("", "table"),
            ("[[table]]\npath = 'x'\nds = []", "data source"),
            ("[[table]]\npath = 'x'\nds = [{ name = 'a b', objects = ['1.3.6'], kind = 'gauge' }]", "a b"),
            ("[[table]]\npath = 'x'\nds = [{ name = 'a', objects = ['ifX'], kind = 'gauge' }]", "ifX"),
            ("[[table]]\npath = 'x'\nds = [{ name = 'a', objects = ['1.3.6'], kind = 'rate' }]", "rate"),
        ] {
            let error = Profile::parse(text).expect_err(text);
            assert!(error.contains(want), "{error}");
        }
    }
}
