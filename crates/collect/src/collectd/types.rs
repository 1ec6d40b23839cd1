//! `types.db`: the data sources of each type, with their kinds and limits. The receiver's file decides.

use std::collections::HashMap;
use std::sync::Arc;

use super::packet::ValueKind;

/// A data source of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeSource {
    /// Its name in the RRD.
    pub name: String,
    /// How it is measured.
    pub kind: ValueKind,
    /// Its least value; none = `U`.
    pub min: Option<f64>,
    /// Its greatest value; none = `U`.
    pub max: Option<f64>,
}

/// The sources of a type, in the order of the values.
pub type TypeSources = Arc<[TypeSource]>;

/// A line of types.db that cannot be read; the others count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypesFault {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub cause: String,
}

/// The types of one or several types.db.
#[derive(Clone, Debug, Default)]
pub struct TypesDb {
    types: HashMap<Box<[u8]>, TypeSources>,
}

impl TypesDb {
    /// Adds the types of a file; a type that is there already is replaced. Returns the lines that cannot be read.
    pub fn add(&mut self, text: &str) -> Vec<TypesFault> {
        let mut faults = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match parse_line(line) {
                Ok((name, sources)) => {
                    self.types.insert(name.as_bytes().into(), sources);
                }
                Err(cause) => faults.push(TypesFault { line: index + 1, cause }),
            }
        }
        faults
    }

    /// The sources of a type.
    pub fn find(&self, name: &[u8]) -> Option<&TypeSources> {
        self.types.get(name)
    }

    /// How many types there are.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }
}

fn parse_line(line: &str) -> Result<(&str, TypeSources), String> {
    let (name, rest) = line.split_once(char::is_whitespace).ok_or("a type without sources")?;
    let words = rest.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    let sources = words.map(parse_source).collect::<Result<Vec<_>, _>>()?;
    if sources.is_empty() {
        return Err("a type without sources".to_string());
    }
    Ok((name, sources.into()))
}

fn parse_source(word: &str) -> Result<TypeSource, String> {
    let bad = || format!("\"{word}\" is not name:KIND:min:max");
    let mut fields = word.split(':');
    let mut next = || fields.next().filter(|field| !field.is_empty()).ok_or_else(bad);
    let (name, kind, min, max) = (next()?, next()?, next()?, next()?);
    let kinds = [ValueKind::Counter, ValueKind::Gauge, ValueKind::Derive, ValueKind::Absolute];
    let kind = kinds.into_iter().find(|known| kind.eq_ignore_ascii_case(known.name())).ok_or_else(bad)?;
    let limit = |text: &str| match text {
        "U" | "u" => Ok(None),
        number => number.parse().map(Some).map_err(|_| bad()),
    };
    if name.len() > 19 || fields.next().is_some() {
        return Err(bad());
    }
    Ok(TypeSource { name: name.to_string(), kind, min: limit(min)?, max: limit(max)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_sources_and_faults_have_lines() {
        let mut types = TypesDb::default();
        let faults = types.add(
            "# comment\nif_octets  rx:DERIVE:0:U, tx:DERIVE:0:U\n\nbool value:GAUGE:0:1\nbad\nbad2 x:GAUGE:0\n\
             bad3 x:LEVEL:0:U\nbool value:gauge:-1.5:2\n",
        );
        assert_eq!(faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [5, 6, 7]);
        let octets = types.find(b"if_octets").unwrap();
        assert_eq!(octets.iter().map(|source| source.name.as_str()).collect::<Vec<_>>(), ["rx", "tx"]);
        let (min, max) = (types.find(b"bool").unwrap()[0].min, types.find(b"bool").unwrap()[0].max);
        assert_eq!((min, max), (Some(-1.5), Some(2.0)));
        assert_eq!(types.len(), 2);
    }

    #[test]
    fn debian_s_file_is_read_whole() {
        let Ok(text) = std::fs::read_to_string("/usr/share/collectd/types.db") else { return };
        let mut types = TypesDb::default();
        assert_eq!(types.add(&text), []);
        assert!(types.len() > 300);
    }
}
