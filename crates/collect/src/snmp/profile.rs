//! Profiles: which columns of which tables become data sources of which RRDs, as data.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ::snmp::mib;
pub use ::snmp::mib::MibNames;
use ::snmp::oid::Oid;
use serde::{Deserialize, Serialize};

use super::answer::WalkedRow;
use super::plan::COLUMNS_MAX;
use super::template::{PathTemplate, WORDS};

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

/// What numbers of a column mean: the number by its name.
pub type Labels = BTreeMap<String, i64>;

/// Whether a profile's name is that of a file; others are built in.
pub fn is_file(name: &str) -> bool {
    name.ends_with(".toml")
}

/// The text of a profile, before it is known what its symbolic names stand for.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mibs: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    objects: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, Labels>,
    table: Vec<TableFile>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    name: String,
    path: String,
    #[serde(default)]
    reference: Vec<String>,
    #[serde(default)]
    info: Vec<String>,
    title: Option<String>,
    ds: Vec<DsFile>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct DsFile {
    name: String,
    objects: Vec<String>,
    kind: SourceKind,
}

/// How a data source counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// A counter; of 32 or 64 bits, as the device sends it.
    Counter,
    /// A value.
    Gauge,
}

/// A data source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceSpec {
    /// Its name.
    pub name: String,
    /// Positions among [`TableSpec::columns`]: the first that a row has is polled.
    pub columns: Vec<usize>,
    /// How it counts.
    pub kind: SourceKind,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    /// The name that the profile gives it.
    pub name: String,
    /// The object, without the index of the row.
    pub oid: Oid,
    /// What its numbers mean.
    pub labels: Option<Arc<Labels>>,
}

/// A table: each of its rows feeds an RRD.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSpec {
    /// What a configuration calls it.
    pub name: String,
    /// The RRDs' names.
    pub path: Arc<PathTemplate>,
    /// All columns that a walk asks for.
    pub columns: Vec<ColumnSpec>,
    /// Positions among the columns: the first that a row has is its name.
    pub reference: Vec<usize>,
    /// The position of the column that says in words what a row is.
    pub title: Option<usize>,
    /// The data sources.
    pub sources: Vec<SourceSpec>,
}

impl TableSpec {
    /// The position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// What a row's column holds, and what that means.
    pub(super) fn texts(&self, row: &WalkedRow, name: &str) -> Vec<String> {
        let Some(at) = self.column(name) else { return Vec::new() };
        let Some(text) = row.text(at) else { return Vec::new() };
        let labels = self.columns[at].labels.iter().flat_map(|labels| labels.iter());
        let labels = labels.filter(|(_, number)| text.parse() == Ok(**number));
        let labels: Vec<String> = labels.map(|(label, _)| label.clone()).collect();
        [vec![text], labels].concat()
    }
}

/// A profile.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its tables.
    pub tables: Vec<Arc<TableSpec>>,
    /// Of a file: its text with numbers in place of names, which needs no other file.
    pub text: Option<Arc<str>>,
}

/// The profiles that there are, by name.
#[derive(Clone, Debug)]
pub struct Profiles(BTreeMap<String, Profile>);

impl Default for Profiles {
    /// Those that are built in.
    fn default() -> Self {
        let read = |(name, text): &(&str, &str)| {
            // A test reads them all.
            let profile = ProfileFile::parse(text).and_then(|file| file.profile(&HashMap::new()));
            Some((name.to_string(), profile.ok()?))
        };
        Profiles(BUILT_IN.iter().filter_map(read).collect())
    }
}

impl Profiles {
    /// A profile.
    pub fn find(&self, name: &str) -> Option<&Profile> {
        self.0.get(name)
    }

    /// Adds one.
    pub fn add(&mut self, name: &str, profile: Profile) {
        self.0.insert(name.to_string(), profile);
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl ProfileFile {
    /// Reads the text of a profile.
    ///
    /// # Errors
    /// When it is no TOML, or has unknown keys.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// The files that say what its symbolic names stand for.
    pub fn mibs(&self) -> &[String] {
        &self.mibs
    }

    /// The profile, with what those files say.
    ///
    /// # Errors
    /// When it names objects that are not known, or a table is not good.
    pub fn profile(&self, symbols: &HashMap<String, Vec<u32>>) -> Result<Profile, String> {
        let labels = self.labels.iter().map(|(column, labels)| (column.as_str(), Arc::new(labels.clone())));
        let labels: HashMap<&str, Arc<Labels>> = labels.collect();
        let column = |name: &str| -> Result<ColumnSpec, String> {
            if WORDS.contains(&name) {
                return Err(format!("an object cannot be called \"{name}\""));
            }
            Ok(ColumnSpec {
                name: name.to_string(),
                oid: self.find(name, symbols)?,
                labels: labels.get(name).cloned(),
            })
        };
        let tables = self.table.iter().map(|table| read_table(table, column).map(Arc::new));
        Ok(Profile { tables: tables.collect::<Result<_, _>>()?, text: None })
    }

    /// The same as text, with numbers in place of names: [`ProfileFile::parse`] and [`ProfileFile::profile`] make the same profile of
    /// it without any other file.
    ///
    /// # Errors
    /// When it names objects that are not known.
    pub fn to_numbers(&self, symbols: &HashMap<String, Vec<u32>>) -> Result<String, String> {
        let named = |table: &TableFile| -> Vec<String> {
            let of_sources = table.ds.iter().flat_map(|ds| &ds.objects);
            table.reference.iter().chain(&table.info).chain(&table.title).chain(of_sources).cloned().collect()
        };
        let numbers = self.table.iter().flat_map(named).map(|name| {
            let oid = self.find(&name, symbols)?;
            Ok((name, oid.to_string()))
        });
        let objects = numbers.collect::<Result<_, String>>()?;
        let file = ProfileFile { mibs: Vec::new(), objects, ..self.clone() };
        toml::to_string(&file).map_err(|error| error.to_string())
    }

    /// The object that a name stands for.
    fn find(&self, name: &str, symbols: &HashMap<String, Vec<u32>>) -> Result<Oid, String> {
        let text = self.objects.get(name).map_or(name, String::as_str);
        let oid = Oid::parse(text).or_else(|| symbolic(text, symbols));
        oid.ok_or_else(|| format!("\"{text}\" is no object: give it under [objects], or a file under mibs"))
    }
}

/// An object such as `ifInOctets`, `IF-MIB::ifInOctets` or `enterprises.9.1`.
fn symbolic(text: &str, symbols: &HashMap<String, Vec<u32>>) -> Option<Oid> {
    let text = text.split_once("::").map_or(text, |(_, name)| name);
    let (name, arcs) = text.split_once('.').map_or((text, None), |(name, arcs)| (name, Some(arcs)));
    let mut oid = symbols.get(name).cloned().or_else(|| mib::built_in(name))?;
    for arc in arcs.into_iter().flat_map(|arcs| arcs.split('.')) {
        oid.push(arc.parse().ok()?);
    }
    Oid::from_arcs(&oid)
}

fn read_table(
    table: &TableFile,
    column: impl Fn(&str) -> Result<ColumnSpec, String>,
) -> Result<TableSpec, String> {
    let mut columns: Vec<ColumnSpec> = Vec::new();
    let mut place = |name: &String| -> Result<usize, String> {
        if let Some(at) = columns.iter().position(|known| known.name == *name) {
            return Ok(at);
        }
        columns.push(column(name)?);
        Ok(columns.len() - 1)
    };
    let reference = table.reference.iter().map(&mut place).collect::<Result<_, _>>()?;
    table.info.iter().try_for_each(|name| place(name).map(drop))?;
    let title = table.title.as_ref().map(&mut place).transpose()?;
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
    let name = table.name.clone();
    if sources.is_empty() || columns.len() > COLUMNS_MAX {
        return Err(format!("table \"{name}\" needs 1 to {COLUMNS_MAX} objects, and a data source"));
    }
    let path = PathTemplate::parse(&table.path, &columns);
    let path = Arc::new(path.map_err(|error| format!("table \"{name}\": {error}"))?);
    Ok(TableSpec { name, path, columns, reference, title, sources })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile, with one symbolic name.
    fn parse(text: &str) -> Result<Profile, String> {
        let symbols = HashMap::from([("acmeLoad".to_string(), vec![1, 3, 6, 1, 4, 1, 9])]);
        ProfileFile::parse(text)?.profile(&symbols)
    }

    #[test]
    fn built_in_profiles_are_good() {
        for (name, text) in BUILT_IN {
            ProfileFile::parse(text)
                .unwrap()
                .profile(&HashMap::new())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let profiles = Profiles::default();
        assert_eq!(profiles.names().count(), BUILT_IN.len());
        let interfaces = &profiles.find("if-mib").unwrap().tables[0];
        assert_eq!((interfaces.columns.len(), interfaces.sources.len()), (18, 8));
        assert_eq!(interfaces.columns[interfaces.sources[0].columns[0]].name, "ifHCInOctets");
    }

    #[test]
    fn objects_have_numbers_or_names() {
        for (object, want) in [
            ("1.3.6.1.9", ".1.3.6.1.9"),
            ("short", ".1.3.6.1.7"),
            ("long", ".1.3.6.1.4.1.9.3"),
            ("acmeLoad", ".1.3.6.1.4.1.9"),
            ("ACME-MIB::acmeLoad.2.1", ".1.3.6.1.4.1.9.2.1"),
            ("ifInOctets", ".1.3.6.1.2.1.2.2.1.10"),
            ("enterprises.42", ".1.3.6.1.4.1.42"),
        ] {
            let text = format!(
                "objects = {{ short = '1.3.6.1.7', long = 'acmeLoad.3' }}\n[[table]]\nname = 't'\n\
                 path = '{{device}}.rrd'\nds = [{{ name = 'a', objects = ['{object}'], kind = 'gauge' }}]"
            );
            let profile = parse(&text).unwrap();
            assert_eq!(profile.tables[0].columns[0].oid.to_string(), want);
        }
    }

    #[test]
    fn numbers_in_place_of_names_make_the_same_profile() {
        let text = "mibs = ['ACME-MIB']\nobjects = { fan = 'acmeLoad.3' }\n[labels.fan]\ngood = 1\n\
                    [[table]]\nname = 't'\npath = '{device}/{fan}.rrd'\nreference = ['ifName']\ninfo = ['fan']\ntitle = 'ifAlias'\n\
                    ds = [{ name = 'a', objects = ['acmeLoad', '1.3.6.9'], kind = 'gauge' }]\n\
                    [[table]]\nname = 'u'\npath = '{device}.rrd'\n\
                    ds = [{ name = 'b', objects = ['ACME-MIB::acmeLoad.7'], kind = 'counter' }]";
        let symbols = HashMap::from([("acmeLoad".to_string(), vec![1, 3, 6, 1, 4, 1, 9])]);
        let numbers = ProfileFile::parse(text).unwrap().to_numbers(&symbols).unwrap();
        let again = ProfileFile::parse(&numbers).unwrap();
        assert!(again.mibs().is_empty());
        let again = again.profile(&HashMap::new()).unwrap();
        assert_eq!(again.tables, parse(text).unwrap().tables, "{numbers}");
        assert!(
            ProfileFile::parse(text).unwrap().to_numbers(&HashMap::new()).unwrap_err().contains("acmeLoad")
        );
    }

    #[test]
    fn mistakes_are_named() {
        let table = "[[table]]\nname = 't'\npath = '{device}/{index}.rrd'\nds = ";
        for (text, want) in [
            ("", "table".to_string()),
            ("[]", "data source".to_string()),
            ("[{ name = 'a b', objects = ['1.3.6'], kind = 'gauge' }]", "a b".to_string()),
            ("[{ name = 'a', objects = ['ifX'], kind = 'gauge' }]", "ifX".to_string()),
            ("[{ name = 'a', objects = ['ifInOctets.x'], kind = 'gauge' }]", "ifInOctets.x".to_string()),
            ("[{ name = 'a', objects = ['name'], kind = 'gauge' }]", "called \"name\"".to_string()),
            ("[{ name = 'a', objects = ['1.3.6'], kind = 'rate' }]", "rate".to_string()),
        ] {
            let text = if text.is_empty() { String::new() } else { format!("{table}{text}") };
            let error = parse(&text).expect_err(&text);
            assert!(error.contains(&want), "{error}");
        }
        let text =
            "[[table]]\nname = 't'\npath = 'x'\nds = [{ name = 'a', objects = ['1.3.6'], kind = 'gauge' }]";
        assert!(parse(text).unwrap_err().contains("table \"t\": path"));
    }
}
