//! Remote write: requests of versions 1.0 (`prometheus.WriteRequest`) and 2.0 (`io.prometheus.write.v2.Request`), series by series,
//! without a copy of their texts.

use super::DecodeError;
use super::wire::{Field, fields_up_to, varint};

/// Fields of a message; what its bytes are limited to limits them before.
const FIELDS_MAX: usize = usize::MAX;
/// Labels of a series that are read; a series with more is refused.
const LABELS_MAX: usize = 1000;

/// Samples of a series that are read; a series with more is refused. An empty one takes two bytes of a message, and eight times that here.
const SAMPLES_MAX: usize = 1_000_000;
/// Symbols of a request. An empty one takes two bytes of it, too.
const SYMBOLS_MAX: usize = 1_000_000;

/// Which message a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteVersion {
    /// `prometheus.WriteRequest`.
    One,
    /// `io.prometheus.write.v2.Request`.
    Two,
}

/// What a metric is, by its metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricType {
    /// Nothing says.
    #[default]
    Unknown,
    /// It only grows.
    Counter,
    /// A level, or another one that is not a counter.
    Gauge,
    /// A histogram or summary: its `_count`, `_sum` and `_bucket` are counters.
    Distribution,
}

impl MetricType {
    /// The numbers of both versions.
    fn of(number: u64) -> MetricType {
        match number {
            1 => MetricType::Counter,
            2 | 4 | 6 | 7 => MetricType::Gauge,
            3 | 5 => MetricType::Distribution,
            _ => MetricType::Unknown,
        }
    }
}

/// Why a series of a request is none, while others may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesFault {
    /// A text is not UTF-8.
    NotUtf8,
    /// A reference to a text leads nowhere.
    Reference,
    /// A label has no value: the number of references is odd.
    Odd,
    /// It has more than a thousand labels.
    TooManyLabels,
    /// It has more than a million samples.
    TooManySamples,
}

impl std::fmt::Display for SeriesFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SeriesFault::NotUtf8 => "a label is not UTF-8",
            SeriesFault::Reference => "a label refers to a symbol that is not there",
            SeriesFault::Odd => "a label has no value: the number of references is odd",
            SeriesFault::TooManyLabels => "a series has more than a thousand labels",
            SeriesFault::TooManySamples => "a series has more than a million samples: send fewer at once",
        })
    }
}

/// A series of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteSeries<'a> {
    /// Labels and their values as they came, the name of the metric among them.
    pub labels: Vec<(&'a str, &'a str)>,
    /// Times in milliseconds since the epoch, and values.
    pub samples: Vec<(i64, f64)>,
    /// How many native histograms it has.
    pub histograms: u64,
    /// How many exemplars it has.
    pub exemplars: u64,
    /// What its metric is, if this request says.
    pub metric_type: MetricType,
    /// What is wrong with its labels; then some are missing.
    pub fault: Option<SeriesFault>,
}

/// What a request consists of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WritePart<'a, 'b> {
    /// A series with its samples.
    Series(&'b WriteSeries<'a>),
    /// What a metric is (version 1.0 only): its name and type.
    Metadata(&'a str, MetricType),
}

/// Calls `each` with the parts of a request that is no longer compressed.
///
/// # Errors
/// When it is none. What was passed on before that is good.
pub fn visit_write<'a>(
    version: WriteVersion,
    bytes: &'a [u8],
    mut each: impl FnMut(WritePart<'a, '_>),
) -> Result<(), DecodeError> {
    let mut series = WriteSeries::default();
    match version {
        WriteVersion::One => fields_up_to(FIELDS_MAX, bytes, |number, field| {
            match (number, field) {
                (1, Field::Bytes(bytes)) => {
                    read_one(bytes, &mut series)?;
                    each(WritePart::Series(&series));
                }
                (3, Field::Bytes(bytes)) => {
                    let (name, metric_type) = metadata(bytes)?;
                    each(WritePart::Metadata(name, metric_type));
                }
                _ => {}
            }
            Ok(())
        }),
        WriteVersion::Two => {
            // Symbols may come after the series that refer to them.
            let mut symbols = Vec::new();
            fields_up_to(FIELDS_MAX, bytes, |number, field| {
                if let (4, Field::Bytes(text)) = (number, field) {
                    if symbols.len() >= SYMBOLS_MAX {
                        return Err(DecodeError::TooLong);
                    }
                    symbols.push(text);
                }
                Ok(())
            })?;
            if symbols.first().is_some_and(|first| !first.is_empty()) {
                return Err(DecodeError::Broken);
            }
            fields_up_to(FIELDS_MAX, bytes, |number, field| {
                if let (5, Field::Bytes(bytes)) = (number, field) {
                    read_two(bytes, &symbols, &mut series)?;
                    each(WritePart::Series(&series));
                }
                Ok(())
            })
        }
    }
}

impl<'a> WriteSeries<'a> {
    fn clear(&mut self) {
        self.labels.clear();
        self.samples.clear();
        (self.histograms, self.exemplars) = (0, 0);
        (self.metric_type, self.fault) = (MetricType::Unknown, None);
    }

    fn sample(&mut self, sample: (i64, f64)) {
        if self.samples.len() >= SAMPLES_MAX {
            self.fault = Some(SeriesFault::TooManySamples);
            return;
        }
        self.samples.push(sample);
    }

    fn label(&mut self, name: &'a [u8], value: &'a [u8]) {
        if self.labels.len() >= LABELS_MAX {
            self.fault = Some(SeriesFault::TooManyLabels);
            return;
        }
        match (std::str::from_utf8(name), std::str::from_utf8(value)) {
            (Ok(name), Ok(value)) => self.labels.push((name, value)),
            _ => self.fault = Some(SeriesFault::NotUtf8),
        }
    }
}

fn read_one<'a>(bytes: &'a [u8], series: &mut WriteSeries<'a>) -> Result<(), DecodeError> {
    series.clear();
    fields_up_to(FIELDS_MAX, bytes, |number, field| {
        match (number, field) {
            (1, Field::Bytes(bytes)) => {
                let (mut name, mut value): (&[u8], &[u8]) = (&[], &[]);
                fields_up_to(FIELDS_MAX, bytes, |number, field| {
                    match (number, field) {
                        (1, Field::Bytes(bytes)) => name = bytes,
                        (2, Field::Bytes(bytes)) => value = bytes,
                        _ => {}
                    }
                    Ok(())
                })?;
                series.label(name, value);
            }
            (2, Field::Bytes(bytes)) => series.sample(sample(bytes)?),
            (3, Field::Bytes(_)) => series.exemplars += 1,
            (4, Field::Bytes(_)) => series.histograms += 1,
            _ => {}
        }
        Ok(())
    })
}

fn read_two<'a>(
    bytes: &'a [u8],
    symbols: &[&'a [u8]],
    series: &mut WriteSeries<'a>,
) -> Result<(), DecodeError> {
    series.clear();
    let mut name: Option<u64> = None;
    let mut reference = |series: &mut WriteSeries<'a>, reference: u64| {
        let Some(label) = name.take() else {
            name = Some(reference);
            return;
        };
        let symbol = |reference: u64| usize::try_from(reference).ok().and_then(|at| symbols.get(at));
        match (symbol(label), symbol(reference)) {
            (Some(name), Some(value)) => series.label(name, value),
            _ => series.fault = Some(SeriesFault::Reference),
        }
    };
    fields_up_to(FIELDS_MAX, bytes, |number, field| {
        match (number, field) {
            (1, Field::Bytes(mut packed)) => {
                while !packed.is_empty() {
                    reference(series, varint(&mut packed)?);
                }
            }
            (1, Field::Number(number)) => reference(series, number),
            (2, Field::Bytes(bytes)) => series.sample(sample(bytes)?),
            (3, Field::Bytes(_)) => series.histograms += 1,
            (4, Field::Bytes(_)) => series.exemplars += 1,
            (5, Field::Bytes(bytes)) => fields_up_to(FIELDS_MAX, bytes, |number, field| {
                if let (1, Field::Number(number)) = (number, field) {
                    series.metric_type = MetricType::of(number);
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    if name.is_some() {
        series.fault = Some(SeriesFault::Odd);
    }
    Ok(())
}

#[inline]
fn sample(bytes: &[u8]) -> Result<(i64, f64), DecodeError> {
    let (mut time, mut value) = (0, 0.0);
    fields_up_to(FIELDS_MAX, bytes, |number, field| {
        match (number, field) {
            (1, Field::Eight(bits)) => value = f64::from_bits(bits),
            (2, Field::Number(number)) => time = number as i64,
            _ => {}
        }
        Ok(())
    })?;
    Ok((time, value))
}

fn metadata(bytes: &[u8]) -> Result<(&str, MetricType), DecodeError> {
    let (mut name, mut metric_type) = ("", MetricType::Unknown);
    fields_up_to(FIELDS_MAX, bytes, |number, field| {
        match (number, field) {
            (1, Field::Number(number)) => metric_type = MetricType::of(number),
            (2, Field::Bytes(bytes)) => name = std::str::from_utf8(bytes).map_err(|_| DecodeError::Broken)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok((name, metric_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(version: WriteVersion, bytes: &[u8]) -> Result<Vec<String>, DecodeError> {
        let mut parts = Vec::new();
        visit_write(version, bytes, |part| {
            parts.push(match part {
                WritePart::Series(series) => format!(
                    "{:?} {:?} {}h {}e {:?} {:?}",
                    series.labels,
                    series.samples,
                    series.histograms,
                    series.exemplars,
                    series.metric_type,
                    series.fault
                ),
                WritePart::Metadata(name, metric_type) => format!("{name} {metric_type:?}"),
            });
        })?;
        Ok(parts)
    }

    #[test]
    fn what_takes_two_bytes_of_a_request_takes_no_memory_without_end() {
        let body = |bytes: &[u8], count: usize| bytes.repeat(count);
        let series = body(b"\x12\0", SAMPLES_MAX + 1);
        let mut request = vec![0x0a];
        let mut length = series.len();
        while length >= 128 {
            request.push(length as u8 | 128);
            length >>= 7;
        }
        request.push(length as u8);
        request.extend_from_slice(&series);
        let mut samples = 0;
        let read = visit_write(WriteVersion::One, &request, |part| {
            let WritePart::Series(series) = part else { return };
            assert_eq!(series.fault, Some(SeriesFault::TooManySamples));
            samples = series.samples.len();
        });
        assert_eq!((read, samples), (Ok(()), SAMPLES_MAX));
        let symbols = body(b"\x22\0", SYMBOLS_MAX + 1);
        assert_eq!(parts(WriteVersion::Two, &symbols), Err(DecodeError::TooLong));
        assert_eq!(parts(WriteVersion::Two, &symbols[2..]), Ok(Vec::new()));
    }

    #[test]
    fn a_request_of_version_1_is_read() {
        let mut bytes = b"\x0a\x2b\x0a\x0d\x0a\x08__name__\x12\x01x\x0a\x06\x0a\x01a\x12\x01b\x12\x0c\x09\0\0\0\0\0\0\0\x40\x10\xe8\x07\x1a\0\x22\0".to_vec();
        bytes[1] = bytes.len() as u8 - 2;
        bytes.extend_from_slice(b"\x1a\x05\x08\x01\x12\x01x");
        let want = [
            "[(\"__name__\", \"x\"), (\"a\", \"b\")] [(1000, 2.0)] 1h 1e Unknown None".to_owned(),
            "x Counter".to_owned(),
        ];
        assert_eq!(parts(WriteVersion::One, &bytes).unwrap(), want);
        assert!(parts(WriteVersion::One, &bytes[..20]).is_err());
    }

    #[test]
    fn a_request_of_version_2_is_read() {
        let symbols = b"\x22\0\x22\x08__name__\x22\x01x\x22\x01\xff";
        let check = |series: &[u8], want: &str| {
            // Symbols last: any order is good.
            let mut bytes = vec![0x2a, series.len() as u8];
            bytes.extend_from_slice(series);
            bytes.extend_from_slice(symbols);
            assert_eq!(parts(WriteVersion::Two, &bytes).unwrap(), [want]);
        };
        let name = "[(\"__name__\", \"x\")]";
        check(
            b"\x0a\x02\x01\x02\x12\x0c\x09\0\0\0\0\0\0\0\x40\x10\xe8\x07\x2a\x02\x08\x01",
            &format!("{name} [(1000, 2.0)] 0h 0e Counter None"),
        );
        check(b"\x08\x01\x08\x02\x1a\0\x22\0", &format!("{name} [] 1h 1e Unknown None"));
        check(b"\x0a\x03\x01\x02\x01", &format!("{name} [] 0h 0e Unknown Some(Odd)"));
        check(b"\x0a\x04\x01\x02\x01\x09", &format!("{name} [] 0h 0e Unknown Some(Reference)"));
        check(b"\x0a\x04\x01\x02\x02\x03", &format!("{name} [] 0h 0e Unknown Some(NotUtf8)"));
        // Nothing of a series is left for the next one.
        let bad: &[u8] = b"\x0a\x04\x01\x02\x01\x09\x12\0\x1a\0\x22\0\x2a\x02\x08\x01";
        let mut bytes = Vec::new();
        for series in [bad, b"\x08\x01\x08\x02"] {
            bytes.extend_from_slice(&[0x2a, series.len() as u8]);
            bytes.extend_from_slice(series);
        }
        bytes.extend_from_slice(symbols);
        let want = [
            format!("{name} [(0, 0.0)] 1h 1e Counter Some(Reference)"),
            format!("{name} [] 0h 0e Unknown None"),
        ];
        assert_eq!(parts(WriteVersion::Two, &bytes).unwrap(), want);
        assert_eq!(parts(WriteVersion::Two, b"\x22\x01x"), Err(DecodeError::Broken));
        assert_eq!(parts(WriteVersion::Two, b"\x22\xff\xff\xff\xff\x0f"), Err(DecodeError::Broken));
    }
}
