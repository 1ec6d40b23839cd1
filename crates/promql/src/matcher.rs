//! What a selector says of one label.

use std::fmt;

use regex::{Regex, RegexBuilder};

use crate::labels::quoted;

/// The most bytes of a regular expression: longer ones come from variables with thousands of values, which fit.
const REGEX_BYTES_MAX: usize = 128 * 1024;
/// The most memory of a compiled one.
const REGEX_SIZE_MAX: usize = 8 << 20;

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Regex,
    /// `!~`
    NotRegex,
}

impl Operator {
    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Operator::Equal => "=",
            Operator::NotEqual => "!=",
            Operator::Regex => "=~",
            Operator::NotRegex => "!~",
        }
    }
}

/// A condition on one label. A label that is not there is an empty one.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// The label.
    pub name: String,
    /// The comparison.
    pub operator: Operator,
    /// What it is compared with.
    pub value: String,
    regex: Option<Regex>,
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.operator, &self.value) == (&other.name, other.operator, &other.value)
    }
}

impl Matcher {
    /// A condition.
    ///
    /// # Errors
    /// What is wrong with a regular expression.
    pub fn new(name: &str, operator: Operator, value: &str) -> Result<Matcher, String> {
        let regex = match operator {
            Operator::Equal | Operator::NotEqual => None,
            Operator::Regex | Operator::NotRegex => Some(anchored(value)?),
        };
        Ok(Matcher { name: name.to_owned(), operator, value: value.to_owned(), regex })
    }

    /// `name="value"`
    pub fn equal(name: &str, value: &str) -> Matcher {
        let (name, value) = (name.to_owned(), value.to_owned());
        Matcher { name, operator: Operator::Equal, value, regex: None }
    }

    /// Whether a label with this value fits.
    pub fn matches(&self, value: &str) -> bool {
        let found = |regex: &Option<Regex>| regex.as_ref().is_some_and(|regex| regex.is_match(value));
        match self.operator {
            Operator::Equal => self.value == value,
            Operator::NotEqual => self.value != value,
            Operator::Regex => found(&self.regex),
            Operator::NotRegex => !found(&self.regex),
        }
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = quoted(&self.value);
        match crate::labels::is_plain_name(&self.name, false) {
            true => write!(f, "{}{}{value}", self.name, self.operator.symbol()),
            false => write!(f, "{}{}{value}", quoted(&self.name), self.operator.symbol()),
        }
    }
}

/// A regular expression that must match the whole text; a dot matches the end of a line, too.
///
/// # Errors
/// What is wrong with it, or that it is too large.
pub fn anchored(text: &str) -> Result<Regex, String> {
    if text.len() > REGEX_BYTES_MAX {
        return Err(format!("a regular expression of {} bytes, more than {REGEX_BYTES_MAX}", text.len()));
    }
    let whole = format!("^(?s:{text})$");
    let built = RegexBuilder::new(&whole).size_limit(REGEX_SIZE_MAX).dfa_size_limit(REGEX_SIZE_MAX).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "a regular expression that takes too much memory".to_owned(),
        error => {
            let last = error.to_string();
            format!("error parsing regexp: {}", last.lines().last().unwrap_or_default())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_expressions_match_whole_values() {
        let check =
            |operator, value: &str, label: &str| Matcher::new("a", operator, value).unwrap().matches(label);
        assert!(check(Operator::Regex, "a|bc", "bc"));
        assert!(!check(Operator::Regex, "a|bc", "xbc"));
        assert!(check(Operator::Regex, "a.b", "a\nb"));
        assert!(check(Operator::NotRegex, "a.*", "ba"));
        assert!(check(Operator::Regex, ".*", ""));
        assert!(check(Operator::NotEqual, "", "x"));
    }

    #[test]
    fn large_ones_are_refused() {
        assert!(
            Matcher::new("a", Operator::Regex, "((a{1000}){1000}){1000}").unwrap_err().contains("memory")
        );
        assert!(Matcher::new("a", Operator::Regex, "(").unwrap_err().contains("unclosed group"));
        assert!(Matcher::new("a", Operator::Regex, &"a".repeat(REGEX_BYTES_MAX + 1)).is_err());
    }
}
