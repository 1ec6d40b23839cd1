//! Samples as they are pushed, in one arena: nothing is allocated per series or sample once it is warm.

use std::fmt;
use std::ops::Range;

/// Bytes of the name and labels of a series. An RRD's name, which has all of them in it, is shorter still.
pub const SERIES_BYTES_MAX: usize = 8192;
/// Labels of a series.
pub const LABELS_MAX: usize = 64;

/// Stands before each label of a key. No text in UTF-8 contains it, nor the next one.
const LABEL: u8 = 0xff;
/// Stands between a label and its value.
const VALUE: u8 = 0xfe;

/// What the values of a series are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A level.
    Gauge,
    /// A count that grows, and begins at zero when its producer does.
    Counter,
    /// What was added since the sample before.
    Delta,
}

/// Why a series is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesError {
    /// It has no name.
    NoName,
    /// A label has no name, or a name or value contains NUL.
    BadLabel,
    /// A label stands twice.
    Twice,
    /// Its name and labels are longer than [`SERIES_BYTES_MAX`].
    TooLong,
    /// It has more than [`LABELS_MAX`] labels.
    TooManyLabels,
}

impl fmt::Display for SeriesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SeriesError::NoName => f.write_str("a series has no name"),
            SeriesError::BadLabel => f.write_str("a label has no name, or a NUL in it"),
            SeriesError::Twice => f.write_str("a series has a label twice"),
            SeriesError::TooLong => {
                write!(f, "the name and labels of a series are longer than {SERIES_BYTES_MAX} bytes")
            }
            SeriesError::TooManyLabels => write!(f, "a series has more than {LABELS_MAX} labels"),
        }
    }
}

impl std::error::Error for SeriesError {}

/// The name and labels of a series, as the bytes that tell it apart from all others: equal series have equal keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Series<'a>(&'a [u8]);

impl<'a> Series<'a> {
    /// The series of a key that [`Series::key`] gave.
    pub fn of_key(key: &'a [u8]) -> Series<'a> {
        Series(key)
    }

    /// Its key.
    pub fn key(self) -> &'a [u8] {
        self.0
    }

    /// Its name.
    pub fn name(self) -> &'a str {
        text(self.0.split(|&byte| byte == LABEL).next().unwrap_or_default())
    }

    /// Its labels and their values, by the names' bytes; none is empty.
    pub fn labels(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.split(|&byte| byte == LABEL).skip(1).map(|label| {
            let mut parts = label.split(|&byte| byte == VALUE);
            (text(parts.next().unwrap_or_default()), text(parts.next().unwrap_or_default()))
        })
    }

    /// The value of a label; empty if it has none.
    pub fn label(self, name: &str) -> &'a str {
        self.labels().find(|(label, _)| *label == name).map_or("", |(_, value)| value)
    }
}

/// Keys are only made of texts.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

impl fmt::Display for Series<'_> {
    /// As Prometheus writes it: `name{label="value"}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let mut labels = self.labels().peekable();
        if labels.peek().is_none() {
            return Ok(());
        }
        for (index, (label, value)) in labels.enumerate() {
            write!(f, "{}{label}={value:?}", if index == 0 { '{' } else { ',' })?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for Series<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A value of a series at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The place of its series in [`Samples`].
    pub series: u32,
    /// When it was measured, in milliseconds since the epoch; `None`: when it arrived.
    pub time: Option<i64>,
    /// Its value; NaN is unknown.
    pub value: f64,
}

/// A series among [`Samples`].
#[derive(Clone, Debug)]
struct Place {
    key: Range<u32>,
    kind: Kind,
}

/// The samples of a request or datagram, in their order.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    text: Vec<u8>,
    series: Vec<Place>,
    samples: Vec<Sample>,
    /// Labels of the series that is being made: places in `text` of each and of its value.
    labels: Vec<[Range<u32>; 2]>,
    sorted: Vec<u8>,
}

impl Samples {
    /// Removes all, and keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.series.clear();
        self.samples.clear();
    }

    /// Begins a series; its labels follow.
    pub fn begin(&mut self, name: &str) -> SeriesWriter<'_> {
        self.labels.clear();
        let from = self.text.len();
        let error = match name {
            "" => Some(SeriesError::NoName),
            _ if name.len() > SERIES_BYTES_MAX => Some(SeriesError::TooLong),
            _ if name.as_bytes().contains(&0) => Some(SeriesError::BadLabel),
            _ => None,
        };
        if error.is_none() {
            self.text.extend_from_slice(name.as_bytes());
        }
        SeriesWriter { samples: self, from, error }
    }

    /// Appends a sample of a series that [`SeriesWriter::end`] has numbered.
    pub fn push(&mut self, series: u32, time: Option<i64>, value: f64) {
        self.samples.push(Sample { series, time, value });
    }

    /// The samples.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// How many series there are.
    pub fn series_count(&self) -> usize {
        self.series.len()
    }

    /// A series.
    pub fn series(&self, series: u32) -> Series<'_> {
        let key = &self.series[series as usize].key;
        Series(&self.text[key.start as usize..key.end as usize])
    }

    /// What its values are.
    pub fn kind(&self, series: u32) -> Kind {
        self.series[series as usize].kind
    }

    /// Bytes of memory that these take, roughly.
    pub fn bytes(&self) -> usize {
        self.text.len() + self.series.len() * size_of::<Place>() + self.samples.len() * size_of::<Sample>()
    }
}

/// A series in the making: its name is there, and labels are added in any order.
#[must_use = "a series is only there once it is ended"]
pub struct SeriesWriter<'a> {
    samples: &'a mut Samples,
    from: usize,
    error: Option<SeriesError>,
}

impl SeriesWriter<'_> {
    /// Adds a label. One without a value is as if it were not there, but for its name.
    pub fn label(&mut self, name: &str, value: &str) {
        if self.error.is_some() {
            return;
        }
        let Samples { text, labels, .. } = &mut *self.samples;
        if name.is_empty() || name.as_bytes().contains(&0) || value.as_bytes().contains(&0) {
            self.error = Some(SeriesError::BadLabel);
        } else if text.len() - self.from + name.len() + value.len() > SERIES_BYTES_MAX {
            self.error = Some(SeriesError::TooLong);
        } else if labels.len() >= LABELS_MAX {
            self.error = Some(SeriesError::TooManyLabels);
        } else {
            text.push(LABEL);
            let start = text.len() as u32;
            text.extend_from_slice(name.as_bytes());
            let middle = text.len() as u32;
            text.push(VALUE);
            text.extend_from_slice(value.as_bytes());
            labels.push([start..middle, middle + 1..text.len() as u32]);
        }
    }

    /// The number of the series among the samples.
    ///
    /// # Errors
    /// When it is none; then nothing is left of it.
    pub fn end(self, kind: Kind) -> Result<u32, SeriesError> {
        let Samples { text, series, labels, sorted, .. } = self.samples;
        let part = |range: &Range<u32>| range.start as usize..range.end as usize;
        let has_value = |label: &[Range<u32>; 2]| !label[1].is_empty();
        let in_order = labels.is_sorted_by(|one, next| text[part(&one[0])] < text[part(&next[0])]);
        let mut error = self.error;
        if error.is_none() && !(in_order && labels.iter().all(has_value)) {
            labels.sort_by(|one, other| text[part(&one[0])].cmp(&text[part(&other[0])]));
            if labels.windows(2).any(|pair| text[part(&pair[0][0])] == text[part(&pair[1][0])]) {
                error = Some(SeriesError::Twice);
            }
            sorted.clear();
            for [name, value] in labels.iter().filter(|label| has_value(label)) {
                sorted.push(LABEL);
                sorted.extend_from_slice(&text[part(name)]);
                sorted.push(VALUE);
                sorted.extend_from_slice(&text[part(value)]);
            }
            let name_end =
                labels.iter().map(|[name, _]| name.start - 1).min().map_or(text.len(), |at| at as usize);
            text.truncate(name_end);
            text.extend_from_slice(sorted);
        }
        if let Some(error) = error {
            text.truncate(self.from);
            return Err(error);
        }
        series.push(Place { key: self.from as u32..text.len() as u32, kind });
        Ok(series.len() as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, labels: &[(&str, &str)]) -> Result<String, SeriesError> {
        let mut samples = Samples::default();
        let mut first = samples.begin("first");
        first.label("a", "b");
        first.end(Kind::Gauge).unwrap();
        let mut series = samples.begin(name);
        labels.iter().for_each(|(label, value)| series.label(label, value));
        let number = series.end(Kind::Gauge);
        let next = samples.begin("next").end(Kind::Counter).unwrap();
        assert_eq!(samples.series(next).name(), "next");
        assert_eq!(samples.series(0).to_string(), "first{a=\"b\"}");
        number.map(|number| samples.series(number).to_string())
    }

    #[test]
    fn labels_are_sorted_and_empty_ones_are_none() {
        assert_eq!(
            key("up", &[("job", "x"), ("a", ""), ("instance", "é")]).unwrap(),
            "up{instance=\"é\",job=\"x\"}"
        );
        assert_eq!(key("up", &[("a", "x"), ("b", "y")]).unwrap(), "up{a=\"x\",b=\"y\"}");
        assert_eq!(key("up", &[("a", "")]).unwrap(), "up");
        assert_eq!(key("up", &[("a", "x"), ("a", "x")]), Err(SeriesError::Twice));
        assert_eq!(key("up", &[("a", "x"), ("a", "")]), Err(SeriesError::Twice));
        assert_eq!(key("", &[]), Err(SeriesError::NoName));
        assert_eq!(key("up", &[("", "x")]), Err(SeriesError::BadLabel));
        assert_eq!(key("up", &[("a", "\0")]), Err(SeriesError::BadLabel));
        assert_eq!(key("up", &[("a", &"x".repeat(1 << 20))]), Err(SeriesError::TooLong));
        assert_eq!(key(&"x".repeat(9000), &[]), Err(SeriesError::TooLong));
        let many: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "v")).collect();
        assert_eq!(key("up", &many), Err(SeriesError::TooManyLabels));
    }
}
