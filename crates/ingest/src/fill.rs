//! Parsers give what they read, one after the other; here it becomes [`Samples`].

use crate::fault::Fault;
use crate::influx::{InfluxField, InfluxSink};
use crate::pushed::Pushed;
use crate::refusal::{Refusal, Sink};
use crate::sample::{Kind, Samples, SeriesError};

/// Nanoseconds of a millisecond.
const NANOSECONDS: i64 = 1_000_000;

/// Fills samples, and tells what does not count.
pub struct Filling<'a> {
    /// Where samples go.
    pub samples: &'a mut Samples,
    /// A label of all, from outside of what is read: the database of InfluxDB's clients.
    pub extra: Option<(&'a str, &'a str)>,
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
        Filling { samples, extra: None, refuse, name: String::new(), given: 0 }
    }

    fn told(&mut self, name: &str, result: Result<(), SeriesError>) {
        let Err(error) = result else { return };
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
        self.given += 1;
        let mut series = self.samples.begin(pushed.name);
        pushed.labels.iter().for_each(|(label, value)| series.label(label, value));
        let extra = self.extra.filter(|(key, _)| pushed.labels.iter().all(|(label, _)| label != key));
        extra.into_iter().for_each(|(label, value)| series.label(label, value));
        let ended = series.end(pushed.kind).map(|series| {
            let time = pushed.time.map(|time| time.div_euclid(NANOSECONDS));
            self.samples.push(series, time, pushed.value.to_f64());
        });
        self.told(pushed.name, ended);
    }

    fn refused(&mut self, refusal: Refusal<'_>) {
        (self.refuse)(refusal);
    }
}

impl InfluxSink for Filling<'_> {
    /// The series of a field is `MEASUREMENT_FIELD`, and `MEASUREMENT` of the field `value`.
    fn field(&mut self, field: &InfluxField<'_>) {
        self.given += 1;
        self.name.clear();
        self.name.push_str(field.measurement);
        if field.field != "value" {
            self.name.push('_');
            self.name.push_str(field.field);
        }
        let mut series = self.samples.begin(&self.name);
        field.tags.iter().for_each(|(label, value)| series.label(label, value));
        let extra = self.extra.filter(|(key, _)| field.tags.iter().all(|(label, _)| label != key));
        extra.into_iter().for_each(|(label, value)| series.label(label, value));
        let ended = series.end(Kind::Gauge).map(|series| {
            let time = field.time.map(|time| time.div_euclid(NANOSECONDS));
            self.samples.push(series, time, field.value.to_f64());
        });
        self.told(field.measurement, ended);
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
