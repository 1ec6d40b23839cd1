//! Where series come from.

use std::error::Error;

use rrd::definition::Cf;

use crate::series::Series;

/// An error of a source.
pub type SourceError = Box<dyn Error + Send + Sync>;

/// A condition of `seriesByTag`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCondition {
    /// The tag.
    pub tag: String,
    /// Whether the value is a regular expression, which must fit from the value's beginning on.
    pub is_regex: bool,
    /// Whether it must not fit.
    pub is_not: bool,
    /// The value.
    pub value: String,
}

impl TagCondition {
    /// Reads `tag=value`, `tag!=value`, `tag=~regex` or `tag!=~regex`; `None` if it is neither.
    pub fn parse(text: &str) -> Option<TagCondition> {
        let at = text.find(['=', '!']).filter(|at| *at > 0)?;
        let (tag, operator) = text.split_at(at);
        let (is_not, rest) = match operator.strip_prefix("!=") {
            Some(rest) => (true, rest),
            None => (false, operator.strip_prefix('=')?),
        };
        let (is_regex, value) = match rest.strip_prefix('~') {
            Some(regex) => (true, regex),
            None => (false, rest),
        };
        Some(TagCondition { tag: tag.to_owned(), is_regex, is_not, value: value.to_owned() })
    }
}

/// Which series are meant.
#[derive(Clone, Copy, Debug)]
pub enum Select<'a> {
    /// Those whose path fits a pattern.
    Path(&'a str),
    /// Those whose tags fit all conditions.
    Tags(&'a [TagCondition]),
}

/// What is asked for. Times are in seconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Which series.
    pub select: Select<'a>,
    /// From then on.
    pub from: i64,
    /// Up to then.
    pub until: i64,
    /// The consolidation function that `consolidateBy` names, if one does.
    pub cf: Option<Cf>,
}

/// A series of the source.
#[derive(Clone, Debug, Default)]
pub struct SourceSeries {
    /// Its path.
    pub name: String,
    /// Tags besides its name, in order.
    pub tags: Vec<(String, String)>,
    /// When its first row begins.
    pub start: i64,
    /// The end that is shown, as graphite-web says it of RRDs.
    pub end: i64,
    /// The length of a row in seconds, at least 1.
    pub step: i64,
    /// Rows; NaN is unknown.
    pub values: Vec<f64>,
}

/// Series and limits for the evaluation of targets.
pub trait Source {
    /// The series that are meant, in order of their names, each once.
    ///
    /// # Errors
    /// When they cannot be read, or are too many.
    fn fetch(&mut self, wanted: &Wanted<'_>) -> Result<Vec<SourceSeries>, SourceError>;

    /// Called before so many more bytes are taken, and now and then with 0.
    ///
    /// # Errors
    /// When there is no memory for them, or the time is over.
    fn reserve(&mut self, bytes: u64) -> Result<(), SourceError>;
}

impl From<SourceSeries> for Series {
    fn from(source: SourceSeries) -> Series {
        let SourceSeries { name, tags, start, end, step, values } = source;
        let mut series = Series::new(name, start, end, step.max(1), values);
        if !tags.is_empty() {
            series.tags = tags;
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_tags_are_read() {
        let check =
            |text: &str| TagCondition::parse(text).map(|it| (it.tag, it.is_not, it.is_regex, it.value));
        let want =
            |tag: &str, is_not, is_regex, value: &str| Some((tag.into(), is_not, is_regex, value.into()));
        assert_eq!(check("a=b"), want("a", false, false, "b"));
        assert_eq!(check("a!=b=c"), want("a", true, false, "b=c"));
        assert_eq!(check("a=~b.*"), want("a", false, true, "b.*"));
        assert_eq!(check("a!=~"), want("a", true, true, ""));
        for text in ["a", "=b", "a!b", ""] {
            assert_eq!(check(text), None);
        }
    }
}
