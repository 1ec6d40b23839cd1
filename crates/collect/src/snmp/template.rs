//! Names of RRDs by template: `net/{device}/{ifName}.rrd`.

use super::answer::WalkedRow;
use super::profile::ColumnSpec;
use crate::host::safe_component;

/// A template, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTemplate(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Device,
    /// What names the row.
    Name,
    /// The row's index.
    Index,
    /// What this column of the row holds.
    Column(usize),
}

/// Words in braces that are no columns.
pub(super) const WORDS: [&str; 3] = ["device", "name", "index"];

impl PathTemplate {
    /// Reads the template of a table with these columns.
    ///
    /// # Errors
    /// When a word in braces is none of them, or it gives no name of an RRD, or several devices the same one.
    pub fn parse(text: &str, columns: &[ColumnSpec]) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((word, after)) = after.split_once('}') else {
                return Err(format!("path \"{text}\": a brace is not closed"));
            };
            parts.push(Part::Text(before.to_string()));
            parts.push(match word {
                "device" => Part::Device,
                "name" => Part::Name,
                "index" => Part::Index,
                _ => {
                    Part::Column(columns.iter().position(|column| column.name == word).ok_or_else(|| {
                        let known = columns.iter().map(|column| column.name.as_str());
                        let known: Vec<&str> = WORDS.into_iter().chain(known).collect();
                        format!("path \"{text}\": there is no {{{word}}}, but {}", known.join(", "))
                    })?)
                }
            });
            rest = after;
        }
        let is_relative = text.split('/').all(|component| !["", ".", ".."].contains(&component));
        let has_end = rest.ends_with(".rrd") && rest.len() < text.len();
        if !is_relative || !has_end {
            return Err(format!("path \"{text}\" is no relative name of RRDs that ends in .rrd"));
        }
        if !parts.contains(&Part::Device) {
            return Err(format!("path \"{text}\" has no {{device}}, so devices would share RRDs"));
        }
        parts.push(Part::Text(rest.to_string()));
        parts.retain(|part| *part != Part::Text(String::new()));
        Ok(PathTemplate(parts))
    }

    /// The directory of all RRDs of a device; `None` when it depends on the row.
    pub(super) fn directory(&self, device: &str) -> Option<String> {
        let slash = self.0.iter().rposition(|part| matches!(part, Part::Text(text) if text.contains('/')));
        let mut directory = String::new();
        for part in &self.0[..slash.map_or(0, |slash| slash + 1)] {
            match part {
                Part::Text(text) => directory.push_str(text),
                Part::Device => directory.push_str(device),
                Part::Name | Part::Index | Part::Column(_) => return None,
            }
        }
        directory.truncate(directory.rfind('/').unwrap_or(0));
        Some(directory)
    }

    /// The name of a row's RRD. What the row does not have is its index.
    pub(super) fn path(&self, device: &str, row: &WalkedRow, name: &str) -> String {
        let mut path = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => path.push_str(text),
                // It is a component already.
                Part::Device => path.push_str(device),
                Part::Name => path.push_str(&safe_component(name)),
                Part::Index => path.push_str(&row.index_text()),
                Part::Column(at) => {
                    let text = row.text(*at).filter(|text| !text.is_empty());
                    path.push_str(&safe_component(&text.unwrap_or_else(|| row.index_text())));
                }
            }
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use ::snmp::oid::Oid;
    use ::snmp::value::{OwnedValue, Value};

    use super::*;

    fn columns() -> [ColumnSpec; 2] {
        ["ifName", "ifAlias"].map(|name| ColumnSpec {
            name: name.to_string(),
            oid: Oid::parse("1.3.6").unwrap(),
            labels: None,
        })
    }

    #[test]
    fn words_become_what_the_row_has() {
        let bytes = |text: &str| Some(OwnedValue::of(&Value::Bytes(text.as_bytes())));
        let row = WalkedRow { index: [7].into(), values: vec![bytes("Gi0/1"), bytes("")] };
        for (template, want) in [
            ("net/{device}/{ifName}.rrd", "net/r1/Gi0%2F1.rrd"),
            ("{device}/{name}-{index}.rrd", "r1/n-7.rrd"),
            ("a/{device}/{ifAlias}.rrd", "a/r1/7.rrd"),
            ("a/{device}.rrd", "a/r1.rrd"),
        ] {
            let template = PathTemplate::parse(template, &columns()).unwrap();
            assert_eq!(template.path("r1", &row, "n"), want);
            assert_eq!(
                template.directory("r1").as_deref(),
                want.rsplit_once('/').map(|(directory, _)| directory)
            );
        }
    }

    #[test]
    fn a_directory_may_depend_on_the_row() {
        for (template, want) in [("{device}/{ifName}/x-{index}.rrd", None), ("{device}.rrd", Some(""))] {
            let template = PathTemplate::parse(template, &columns()).unwrap();
            assert_eq!(template.directory("r1").as_deref(), want);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (template, want) in [
            ("net/{device}/{ifname}.rrd", "ifAlias"),
            ("net/{device", "not closed"),
            ("net/{ifName}.rrd", "{device}"),
            ("/{device}.rrd", "relative"),
            ("../{device}.rrd", "relative"),
            ("a//{device}.rrd", "relative"),
            ("{device}", ".rrd"),
            ("", ".rrd"),
        ] {
            let error = PathTemplate::parse(template, &columns()).expect_err(template);
            assert!(error.contains(want), "{error}");
        }
    }
}
