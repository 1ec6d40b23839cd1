//! Parsers give what they read, one after the other; here it becomes [`Samples`].

use crate::fault::Fault;
use crate::influx::{InfluxField, InfluxSink};
use crate::number::Number;
use crate::pushed::Pushed;
use crate::refusal::{Refusal, Sink};
use crate::sample::{Kind, Samples, SeriesError};

/// Nanoseconds of a millisecond.
const NANOSECONDS: i64 = 1_000_000;

/// Samples of a request or message at most, where a few bytes of it are one.
pub const SAMPLES_MAX: usize = 500_000;

/// Fills samples, and tells what does not count.
pub struct Filling<'a> {
    /// Where samples go.
    pub samples: &'a mut Samples,
    /// A label of all, from outside of what is read: the database of InfluxDB's clients.
    pub extra: Option<(&'a str, &'a str)>,
    /// Samples beyond which further ones are refused.
    pub samples_max: usize,
    /// Is told what does not count.
    pub refuse: &'a mut dyn FnMut(Refusal<'_>),
    /// The name of a field's series.
    name: String,
    /// What was given so far.
    given: usize,
}

impl<'a> Filling<'a> {
    /// Fills these samples.
    pub fn new(samples: &'a mut Samples, refuse: &'a mut dyn FnMut(Refusal<'_>)) -> Self {
        Filling { samples, extra: None, samples_max: SAMPLES_MAX, refuse, name: String::new(), given: 0 }
    }

    /// Adds a sample, or tells what is wrong with its series.
    fn add<T: AsRef<str>>(
        &mut self,
        name: &str,
        labels: &[(T, T)],
        kind: Kind,
        time: Option<i64>,
        value: Number,
    ) {
        self.given += 1;
        if self.samples.samples().len() >= self.samples_max {
            let fault = Fault::TooManySamples;
            return (self.refuse)(Refusal { line: self.given, text: name.as_bytes(), fault });
        }
        let mut series = self.samples.begin(name);
        labels.iter().for_each(|(label, value)| series.label(label.as_ref(), value.as_ref()));
        let extra = self.extra.filter(|(key, _)| labels.iter().all(|(label, _)| label.as_ref() != *key));
        extra.into_iter().for_each(|(label, value)| series.label(label, value));
        let error = match series.end(kind) {
            Ok(series) => {
                let time = time.map(|time| time.div_euclid(NANOSECONDS));
                return self.samples.push(series, time, value.to_f64());
            }
            Err(error) => error,
        };
        let fault = match error {
            SeriesError::NoName => Fault::NoName,
            SeriesError::TooManyLabels => Fault::TooManyTags,
            SeriesError::BadLabel | SeriesError::Twice | SeriesError::TooLong => Fault::BadSeries,
        };
        (self.refuse)(Refusal { line: self.given, text: name.as_bytes(), fault });
    }
}

impl Sink for Filling<'_> {
    fn pushed(&mut self, pushed: &Pushed<'_>) {
        let Pushed { name, labels, time, value, kind } = *pushed;
        self.add(name, labels, kind, time, value);
    }

    fn refused(&mut self, refusal: Refusal<'_>) {
        (self.refuse)(refusal);
    }
}

impl InfluxSink for Filling<'_> {
    /// The series of a field is `MEASUREMENT_FIELD`, and `MEASUREMENT` of the field `value`.
    fn field(&mut self, field: &InfluxField<'_>) {
        let mut name = std::mem::take(&mut self.name);
        name.clear();
        name.push_str(field.measurement);
        if field.field != "value" {
            name.push('_');
            name.push_str(field.field);
        }
        self.add(&name, field.tags, Kind::Gauge, field.time, field.value);
        self.name = name;
    }

    fn refused(&mut self, refusal: Refusal<'_>) {
        (self.refuse)(refusal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::influx::{self, Precision};

    /// What the lines of InfluxDB's become, with a database.
    fn filled(text: &str) -> Vec<String> {
        let mut samples = Samples::default();
        let mut lines = Vec::new();
        let mut refuse = |refusal: Refusal<'_>| lines.push(refusal.fault.label().to_string());
        let mut filling = Filling::new(&mut samples, &mut refuse);
        filling.extra = Some(("db", "telegraf"));
        influx::read_lines(text.as_bytes(), Precision::Nanoseconds, &mut filling);
        let show = |sample: &crate::sample::Sample| {
            let series = samples.series(sample.series);
            format!("{series} {} {:?}", sample.value, sample.time)
        };
        lines.extend(samples.samples().iter().map(show));
        lines
    }

    #[test]
    fn samples_beyond_a_number_are_refused() {
        let (mut samples, mut refused) = (Samples::default(), 0);
        let mut refuse = |refusal: Refusal<'_>| {
            assert_eq!((refusal.fault, refusal.line), (Fault::TooManySamples, 3 + refused));
            refused += 1;
        };
        let mut filling = Filling::new(&mut samples, &mut refuse);
        filling.samples_max = 2;
        influx::read_lines(b"a b=1,c=2,d=3\ne f=4", Precision::Nanoseconds, &mut filling);
        assert_eq!((samples.samples().len(), refused), (2, 2));
    }

    #[test]
    fn each_field_is_a_series() {
        assert_eq!(
            filled("cpu,host=a user=1,idle=2i 1999999\nload value=3"),
            [
                "cpu_user{db=\"telegraf\",host=\"a\"} 1 Some(1)",
                "cpu_idle{db=\"telegraf\",host=\"a\"} 2 Some(1)",
                "load{db=\"telegraf\"} 3 None",
            ]
        );
        assert_eq!(filled("cpu,db=x user=1"), ["cpu_user{db=\"x\"} 1 None"]);
        assert_eq!(filled("cpu,a=x,a=y user=1\nm a=1"), ["bad_series", "m_a{db=\"telegraf\"} 1 None"]);
    }
}
