//! The labels of a series.

use std::fmt;
use std::sync::Arc;

/// The label that holds a metric's name.
pub const NAME: &str = "__name__";
/// Labels that say what a metric is; they go where its name goes.
const ABOUT_METRIC: [&str; 3] = [NAME, "__type__", "__unit__"];

type Pair = (Arc<str>, Arc<str>);

/// Labels in the order of their names, none of them empty. A copy costs one count.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Labels(Arc<[Pair]>);

impl Default for Labels {
    fn default() -> Self {
        Labels(Arc::from([]))
    }
}

impl Labels {
    /// Labels of `pairs` in any order. Of two with the same name the last counts; one with an empty value is none.
    pub fn new<N: Into<Arc<str>>, V: Into<Arc<str>>>(pairs: impl IntoIterator<Item = (N, V)>) -> Labels {
        let mut all: Vec<Pair> = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let mut kept: Vec<Pair> = Vec::with_capacity(all.len());
        for pair in all {
            match kept.last_mut() {
                Some(last) if last.0 == pair.0 => *last = pair,
                _ => kept.push(pair),
            }
        }
        kept.retain(|pair| !pair.1.is_empty());
        Labels(kept.into())
    }

    /// The value of a label; empty when there is none.
    pub fn get(&self, name: &str) -> &str {
        match self.0.binary_search_by(|pair| (*pair.0).cmp(name)) {
            Ok(index) => &self.0[index].1,
            Err(_) => "",
        }
    }

    /// The metric's name; empty when there is none.
    pub fn name(&self) -> &str {
        self.get(NAME)
    }

    /// Names and values in the order of the names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same with one label set, or removed if `value` is empty.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Labels {
        if self.get(name) == value {
            return self.clone();
        }
        let mut pairs: Vec<Pair> = self.0.iter().filter(|pair| *pair.0 != *name).cloned().collect();
        if !value.is_empty() {
            let at = pairs.partition_point(|pair| *pair.0 < *name);
            pairs.insert(at, (name.into(), value.into()));
        }
        Labels(pairs.into())
    }

    /// Those whose names `keep` takes.
    #[must_use]
    pub fn filter(&self, mut keep: impl FnMut(&str) -> bool) -> Labels {
        if self.0.iter().all(|pair| keep(&pair.0)) {
            return self.clone();
        }
        Labels(self.0.iter().filter(|pair| keep(&pair.0)).cloned().collect())
    }

    /// Those that are not about the metric itself: without name, type and unit.
    #[must_use]
    pub fn without_name(&self) -> Labels {
        self.filter(|name| !ABOUT_METRIC.contains(&name))
    }

    /// The bytes that they take.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|(name, value)| (name.len() + value.len() + 64) as u64).sum()
    }
}

/// Whether `name` is one that Prometheus' older versions take: letters, digits, `_` (and `:` in a metric's name), no digit first.
pub fn is_plain_name(name: &str, colon: bool) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || (colon && c == ':');
    !name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// `text` in double quotes, as Go quotes it.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() && (c as u32) < 0x100 => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, (name, value)) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            match is_plain_name(name, false) {
                true => write!(f, "{comma}{name}={}", quoted(value))?,
                false => write!(f, "{comma}{}={}", quoted(name), quoted(value))?,
            }
        }
        f.write_str("}")
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_ordered_and_never_empty() {
        let labels = Labels::new([("b", "2"), ("a", "1"), ("c", ""), ("b", "3")]);
        assert_eq!(labels.to_string(), r#"{a="1", b="3"}"#);
        assert_eq!(labels.with("c", "x").with("a", "").to_string(), r#"{b="3", c="x"}"#);
        assert_eq!((labels.get("a"), labels.get("z"), labels.len()), ("1", "", 2));
        assert_eq!(
            Labels::new([("__name__", "up"), ("a.b", "x\n")]).without_name().to_string(),
            r#"{"a.b"="x\n"}"#
        );
    }
}
