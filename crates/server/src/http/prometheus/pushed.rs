//! RRDs of series that were pushed: they keep the names and labels that they came with.
//!
//! A level is called as it was. Of a counter, its own name is the counter that its rates add up to, so that `rate()` and dashboards work as
//! they did where it came from; `NAME:rate` is the rate as it is kept. Labels are those that came, and no others: expressions over several
//! metrics would else find no pairs. `rrd` and `ds` are there as soon as a selector asks for them.

use ingest::sample::Samples;
use ingest::table::CreateTable;
use promql::{Labels, Matcher, NAME};
use rrd::definition::{Definition, Ds, DsKind};
use suggest::{DS_LABEL, MetricKind, RRD_LABEL};

use super::index::Entry;
use crate::service::Service;

/// What the name of a counter's rate ends with.
const RATE: &str = ":rate";

/// The data source of a series that was pushed: the only one that readings go to.
pub fn only_source(definition: &Definition) -> Option<(usize, &Ds)> {
    let mut fed = definition.ds.iter().enumerate().filter(|(_, ds)| matches!(ds.kind, DsKind::Fed { .. }));
    fed.next().filter(|_| fed.next().is_none())
}

/// Finds the series of RRDs.
pub struct PushedFinder<'a> {
    table: &'a CreateTable,
    samples: Samples,
}

/// A series that was pushed, with its RRD.
pub struct Pushed<'a> {
    samples: &'a Samples,
    series: u32,
    path: &'a str,
    ds_name: &'a str,
    /// The place of its data source.
    pub ds: usize,
    kind: MetricKind,
}

impl<'a> PushedFinder<'a> {
    /// By the table of a store.
    pub fn new(service: &'a Service) -> Self {
        PushedFinder { table: service.ingest.table(), samples: Samples::default() }
    }

    /// The series of an RRD, by its name without `.rrd`.
    pub fn find<'b>(&'b mut self, path: &'b str, definition: &'b Definition) -> Option<Pushed<'b>> {
        let (ds, source) = only_source(definition)?;
        self.samples.clear();
        let series = self.table.owner(path, &mut self.samples)?;
        let kind = MetricKind::of(&source.kind);
        Some(Pushed { samples: &self.samples, series, path, ds_name: &source.name, ds, kind })
    }

    /// Calls `with` with the label that a series brought along; with the RRD's name if it did not.
    pub fn own_label<T>(&mut self, path: &str, label: &str, with: impl FnOnce(&str) -> T) -> T {
        self.samples.clear();
        let own =
            self.table.owner(path, &mut self.samples).map(|series| self.samples.series(series).label(label));
        with(own.filter(|own| !own.is_empty()).unwrap_or(path))
    }
}

impl Pushed<'_> {
    /// Calls `each` with the names of its metrics, and whether it is the counter.
    pub fn metrics(&self, mut each: impl FnMut(String, bool)) {
        let name = self.samples.series(self.series).name();
        if self.kind == MetricKind::Rate {
            each(name.to_owned(), true);
            each(format!("{name}{RATE}"), false);
        } else {
            each(name.to_owned(), false);
        }
    }

    /// Whether it brought such a label along.
    pub fn brings(&self, label: &str) -> bool {
        !self.samples.series(self.series).label(label).is_empty()
    }

    /// The labels that it came with, but for the name.
    pub fn own_labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.samples.series(self.series).labels()
    }

    /// Its labels as that metric; `None` if it has no such metric any more.
    pub fn labels(&self, metric: &str, entry: Entry, matchers: &[Matcher]) -> Option<Labels> {
        let mut has_it = false;
        self.metrics(|name, is_counter| has_it |= name == metric && is_counter == entry.is_counter);
        if !has_it || usize::from(entry.ds) != self.ds {
            return None;
        }
        let series = self.samples.series(self.series);
        let asked = |label: &str| {
            series.label(label).is_empty() && matchers.iter().any(|matcher| matcher.name == label)
        };
        let own = series.labels().map(|(label, value)| (label.to_owned(), value.to_owned()));
        let back =
            [(RRD_LABEL, self.path), (DS_LABEL, self.ds_name)].into_iter().filter(|(label, _)| asked(label));
        let back = back.map(|(label, value)| (label.to_owned(), value.to_owned()));
        Some(Labels::new(own.chain(back).chain([(NAME.to_owned(), metric.to_owned())])))
    }
}
