//! Which rows of a device's tables are polled: rules over their names and what their columns hold.

use std::collections::BTreeMap;

use args::pattern;
use serde::{Deserialize, Serialize};

use super::answer::WalkedRow;
use super::profile::TableSpec;

/// What a rule calls the name of a row, whichever column that is.
const NAME: &str = "name";

/// A rule: a pattern for the name, or patterns by column, all of which must match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RuleText", into = "RuleText")]
pub struct RowRule(BTreeMap<String, Vec<String>>);

/// A rule as a configuration has it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged, expecting = "a rule is a pattern of names, or a table of patterns by column")]
enum RuleText {
    Name(String),
    Columns(BTreeMap<String, OneOrMore>),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(Pattern),
    More(Vec<Pattern>),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Pattern {
    Number(i64),
    Text(String),
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        match pattern {
            Pattern::Number(number) => number.to_string(),
            Pattern::Text(text) => text,
        }
    }
}

impl From<RuleText> for RowRule {
    fn from(text: RuleText) -> Self {
        let patterns = |patterns| match patterns {
            OneOrMore::One(pattern) => vec![pattern.into()],
            OneOrMore::More(patterns) => patterns.into_iter().map(String::from).collect(),
        };
        RowRule(match text {
            RuleText::Name(pattern) => BTreeMap::from([(NAME.to_string(), vec![pattern])]),
            RuleText::Columns(columns) => {
                columns.into_iter().map(|(column, one)| (column, patterns(one))).collect()
            }
        })
    }
}

impl From<RowRule> for RuleText {
    fn from(rule: RowRule) -> Self {
        let more = |patterns: Vec<String>| OneOrMore::More(patterns.into_iter().map(Pattern::Text).collect());
        RuleText::Columns(rule.0.into_iter().map(|(column, patterns)| (column, more(patterns))).collect())
    }
}

impl RowRule {
    /// Whether it can be asked of rows of this table: they have all that it looks at.
    pub(super) fn concerns(&self, table: &TableSpec) -> bool {
        self.0.keys().all(|column| match column.as_str() {
            NAME => !table.reference.is_empty(),
            column => table.column(column).is_some(),
        })
    }

    /// What it looks at, for messages.
    pub(super) fn columns(&self) -> String {
        self.0.keys().map(String::as_str).collect::<Vec<_>>().join(" and ")
    }

    fn matches(&self, table: &TableSpec, row: &WalkedRow, name: &str) -> bool {
        self.0.iter().all(|(column, patterns)| {
            let texts = match column.as_str() {
                NAME => vec![name.to_string()],
                column => table.texts(row, column),
            };
            let is_one = |text: &String| {
                patterns.iter().any(|pattern| pattern::matches(pattern.as_bytes(), text.as_bytes()))
            };
            texts.iter().any(is_one)
        })
    }
}

/// Whether a row is polled: if there are rules of `only` for its table, one of them must match, and none of `except`.
pub(super) fn wants(
    (only, except): (&[RowRule], &[RowRule]),
    table: &TableSpec,
    row: &WalkedRow,
    name: &str,
) -> bool {
    let mut concerned = only.iter().filter(|rule| rule.concerns(table)).peekable();
    let is_in = concerned.peek().is_none() || concerned.any(|rule| rule.matches(table, row, name));
    is_in && !except.iter().any(|rule| rule.concerns(table) && rule.matches(table, row, name))
}

#[cfg(test)]
mod tests {
    use ::snmp::value::{OwnedValue, Value};

    use super::*;
    use crate::snmp::profile::Profiles;

    #[derive(Deserialize)]
    struct Rules {
        #[serde(default)]
        only: Vec<RowRule>,
        #[serde(default)]
        except: Vec<RowRule>,
    }

    /// Whether a table's row with this name and these columns is wanted.
    fn wants_row(rules: &str, profile: &str, name: &str, columns: &[(&str, i64)]) -> bool {
        let rules: Rules = toml::from_str(rules).unwrap();
        let profiles = Profiles::default();
        let table = profiles.find(profile).unwrap().tables.last().unwrap();
        let value = |column: &str| {
            let found = columns.iter().find(|(known, _)| *known == column);
            found.map(|(_, number)| OwnedValue::of(&Value::Integer(*number)))
        };
        let values = table.columns.iter().map(|column| value(&column.name)).collect();
        let row = WalkedRow { index: [1].into(), values };
        wants((&rules.only, &rules.except), table, &row, name)
    }

    #[test]
    fn rows_are_chosen_by_the_patterns_of_their_names() {
        let rules = "only = ['eth*', 'Gi?/*1']\nexcept = ['eth*.?']";
        for (name, wanted) in [
            ("eth0", true),
            ("eth0.1", false),
            ("eth0.10", true),
            ("Gi0/21", true),
            ("Gi0/2", false),
            ("lo", false),
        ] {
            assert_eq!(wants_row(rules, "if-mib", name, &[]), wanted, "{name}");
        }
        // Processors have no names.
        assert!(wants_row(rules, "printer", "1.1", &[]));
    }

    #[test]
    fn rows_are_chosen_by_what_their_columns_hold() {
        let up = [("ifType", 6), ("ifOperStatus", 1)];
        let down = [("ifType", 6), ("ifOperStatus", 2)];
        let lag = [("ifType", 161), ("ifOperStatus", 1)];
        for (rules, columns, wanted) in [
            ("only = [{ ifType = 'ethernetCsmacd' }]", &up, true),
            ("only = [{ ifType = 6 }]", &lag, false),
            ("only = [{ ifType = [6, 'ieee8023adLag'] }]", &lag, true),
            ("only = [{ name = 'e*', ifOperStatus = 'up' }]", &up, true),
            ("only = [{ name = 'G*', ifOperStatus = 'up' }]", &up, false),
            ("only = ['G*', { ifOperStatus = 'up' }]", &up, true),
            ("except = [{ ifOperStatus = 'down' }]", &down, false),
            ("except = [{ ifOperStatus = 'down' }]", &up, true),
            ("except = [{ ifAlias = '*' }]", &up, true),
        ] {
            assert_eq!(wants_row(rules, "if-mib", "eth0", columns), wanted, "{rules}");
        }
        assert!(
            wants_row("only = [{ ifType = 6 }]", "printer", "", &[]),
            "of other tables, a rule says nothing"
        );
    }
}
