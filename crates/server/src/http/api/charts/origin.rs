//! Where the rows of a chart come from.

use std::collections::BTreeMap;
use std::error::Error;

use graph::plan::{ComputeLimit, Request, Rows};
use rrd::definition::{Cf, DsKind, Rra};
use rrd::fetch::FetchRows;
use serde::Serialize;
use store::engine::RrdStatus;

use crate::http::rows::{self, Source};

/// Where a series comes from; `openapi.json` says what each member is.
#[derive(Serialize)]
pub struct Origin {
    /// Which of the chart's series.
    pub series: usize,
    /// The RRD.
    pub rrd: String,
    /// Its name, percent-encoded.
    pub path: String,
    /// Its data source.
    pub ds: String,
    /// The consolidation function of the archive.
    pub cf: &'static str,
    /// The length of the archive's rows.
    pub row_seconds: f64,
    /// What else is known of it.
    #[serde(flatten)]
    pub reach: Reach,
}

/// What is known of a data source besides its rows: it says why some are unknown.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Reach {
    last_update: Option<f64>,
    oldest: Option<f64>,
    heartbeat: Option<f64>,
    minimum: Option<f64>,
    maximum: Option<f64>,
}

impl Reach {
    /// Of the source `ds` of an RRD, in its archive of `cf` with rows of `row_seconds`.
    fn new(status: &RrdStatus, ds: &[u8], cf: Cf, row_seconds: f64) -> Reach {
        let definition = &status.definition;
        let unit = f64::from(definition.units_per_second.max(1));
        let last_update = status.last_update.whole as f64 / unit;
        let seconds = |rra: &Rra| definition.step as f64 / unit * rra.pdp_per_row as f64;
        let archive = definition.rra.iter().find(|rra| rra.cf.cf() == cf && seconds(rra) == row_seconds);
        let oldest = archive.map(|rra| {
            (last_update / row_seconds).floor() * row_seconds - row_seconds * rra.row_count as f64
        });
        let reach =
            Reach { last_update: status.is_updated.then_some(last_update), oldest, ..Reach::default() };
        match definition.ds.iter().find(|one| one.name.as_bytes() == ds).map(|one| &one.kind) {
            Some(DsKind::Fed { heartbeat, min, max, .. }) => {
                let limit = |value: f64| Some(value).filter(|value| value.is_finite());
                let heartbeat = Some(*heartbeat as f64 / unit);
                Reach { heartbeat, minimum: limit(*min), maximum: limit(*max), ..reach }
            }
            _ => reach,
        }
    }
}

/// Remembers how long the rows of each fetch were.
pub struct Recording<'a> {
    /// Where they are fetched from.
    pub source: Source<'a>,
    /// The lengths in seconds, by RRD and consolidation function.
    pub row_seconds: BTreeMap<(Vec<u8>, &'static str), f64>,
}

impl Recording<'_> {
    /// What is known of a data source; nothing when its RRD is gone meanwhile.
    pub fn reach(&self, file: &[u8], ds: &[u8], cf: Cf, row_seconds: f64) -> Reach {
        let service = self.source.service;
        let status = rows::name(service, file).ok().and_then(|name| service.engine.status(&name).ok());
        status.map(|status| Reach::new(&status, ds, cf, row_seconds)).unwrap_or_default()
    }
}

impl Rows for Recording<'_> {
    fn fetch(&mut self, request: &Request) -> Result<FetchRows, Box<dyn Error + Send + Sync>> {
        let rows = self.source.fetch(request)?;
        let seconds = rows.step as f64 / f64::from(rows.units_per_second.max(1));
        self.row_seconds.insert((request.file.clone(), request.fetch.cf.name()), seconds);
        Ok(rows)
    }

    fn reserve(&mut self, values: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.source.reserve(values)
    }

    fn compute(&mut self, rows: usize, words: usize) -> Result<ComputeLimit, Box<dyn Error + Send + Sync>> {
        self.source.compute(rows, words)
    }

    fn is_limit(&self, error: &(dyn Error + Send + Sync + 'static)) -> bool {
        self.source.is_limit(error)
    }
}
