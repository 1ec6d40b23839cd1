//! Warnings and infos of an answer.

use crate::ast::Span;
use crate::parse::place;

/// The most of each kind; more say nothing new.
const NOTES_MAX: usize = 10;

/// Warnings and infos, each once.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    warnings: Vec<(String, Option<Span>)>,
    infos: Vec<(String, Option<Span>)>,
    /// The one that sums up many: histograms whose buckets had to be mended.
    pub(crate) mended: Vec<Mended>,
}

/// Buckets of classic histograms that were not in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mended {
    pub name: String,
    pub span: Span,
    pub times: (i64, i64),
    pub buckets: (f64, f64),
    pub difference: f64,
    pub count: usize,
}

impl Notes {
    /// Adds a warning about the expression at `span`.
    pub(crate) fn warn(&mut self, text: String, span: Option<Span>) {
        add(&mut self.warnings, (text, span));
    }

    /// Adds an info about the expression at `span`.
    pub(crate) fn inform(&mut self, text: String, span: Option<Span>) {
        add(&mut self.infos, (text, span));
    }

    /// Adds one of many.
    pub(crate) fn mend(&mut self, mended: Mended) {
        let same = |other: &Mended| other.name == mended.name && other.span == mended.span;
        let Some(place) = self.mended.iter().position(same) else {
            if self.mended.len() < NOTES_MAX {
                self.mended.push(mended);
            }
            return;
        };
        let other = &mut self.mended[place];
        other.times = (other.times.0.min(mended.times.0), other.times.1.max(mended.times.1));
        other.buckets = (other.buckets.0.min(mended.buckets.0), other.buckets.1.max(mended.buckets.1));
        other.difference = other.difference.max(mended.difference);
        other.count += mended.count;
    }

    /// The warnings, with their places in `query`.
    pub fn warnings(&self, query: &str) -> Vec<String> {
        self.warnings.iter().map(|note| shown("PromQL warning: ", note, query)).collect()
    }

    /// The infos, with their places in `query`.
    pub fn infos(&self, query: &str) -> Vec<String> {
        let mended = self.mended.iter().map(|mended| mended.text(query));
        self.infos.iter().map(|note| shown("PromQL info: ", note, query)).chain(mended).collect()
    }
}

fn add(notes: &mut Vec<(String, Option<Span>)>, note: (String, Option<Span>)) {
    if notes.len() < NOTES_MAX && !notes.contains(&note) {
        notes.push(note);
    }
}

fn shown(kind: &str, (text, span): &(String, Option<Span>), query: &str) -> String {
    match span {
        None => text.clone(),
        Some(span) => {
            let (line, column) = place(query, span.start as usize);
            format!("{kind}{text} ({line}:{column})")
        }
    }
}

impl Mended {
    fn text(&self, query: &str) -> String {
        let (line, column) = place(query, self.span.start as usize);
        let name = match self.name.is_empty() {
            true => String::new(),
            false => format!(" for metric name {}", crate::labels::quoted(&self.name)),
        };
        let number = crate::number::short;
        format!(
            "PromQL info: input to histogram_quantile needed to be fixed for monotonicity \
             (see https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile){name}, \
             from buckets {} to {}, with a max diff of {}, over {} samples from {} to {} ({line}:{column})",
            number(self.buckets.0),
            number(self.buckets.1),
            two_digits(self.difference),
            self.count,
            crate::calendar::text(self.times.0),
            crate::calendar::text(self.times.1),
        )
    }
}

/// A number with two digits that count.
fn two_digits(value: f64) -> String {
    let rounded: f64 = format!("{value:.1e}").parse().unwrap_or(value);
    let size = rounded.abs();
    if size != 0.0 && !(1e-4..100.0).contains(&size) {
        return crate::number::with_exponent(rounded);
    }
    format!("{rounded}")
}
