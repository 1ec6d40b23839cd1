//! The RRDs with the largest values over a range.

use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use rrd::definition::Cf;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::rpn::{Series, Symbol, Vdef};
use serde_json::{Value, json};

use super::graphs::Wanted;
use super::rrds::JSON_HEADERS;
use super::{Api, query, range};
use crate::http::failure::Failure;
use crate::http::percent;
use crate::http::query::Query;
use crate::http::rows;
use crate::service::Service;

/// Default number of answered series.
const ITEMS_DEFAULT: u64 = 20;
/// The most answered series.
const ITEMS_MAX: u64 = 1_000;
/// The most RRDs that are examined.
const RRDS_MAX: usize = 200_000;
/// Rows of each RRD that are asked for: as many as a graph of this width has.
const ROWS: u64 = 400;
/// The most values of one RRD.
const VALUES_MAX: u64 = 1 << 20;
/// What is not examined in this time is skipped, and counted.
const TIME_MAX: Duration = Duration::from_secs(10);

/// What series are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The newest known value.
    Last,
    /// The average.
    Mean,
    /// The largest value.
    Max,
    /// The smallest value.
    Min,
    /// The 95th percentile of known values.
    Percentile,
}

/// Names of [`By`], in the order of the page's form.
pub const BY: [(&str, By); 5] = [
    ("mean", By::Mean),
    ("max", By::Max),
    ("percentile", By::Percentile),
    ("last", By::Last),
    ("min", By::Min),
];

impl By {
    /// Takes `by`; the average by default.
    ///
    /// # Errors
    /// 400 for an unknown one.
    pub fn take(query: &mut Query) -> Result<By, Failure> {
        let Some(text) = query.text("by") else { return Ok(By::Mean) };
        let found = BY.iter().find(|(name, _)| *name == text);
        found.map(|(_, by)| *by).ok_or_else(|| {
            let names: Vec<&str> = BY.iter().map(|(name, _)| *name).collect();
            Failure::bad(format!("by={text}: give {}", names.join(", ")))
        })
    }

    fn of(self, series: &Series) -> f64 {
        let function = match self {
            By::Last => "LAST",
            By::Mean => "AVERAGE",
            By::Max => "MAXIMUM",
            By::Min => "MINIMUM",
            By::Percentile => "95,PERCENTNAN",
        };
        let vdef = Vdef::parse("n", &format!("v,{function}"), |_| Some(Symbol::Series(0)));
        vdef.map_or(f64::NAN, |vdef| vdef.evaluate(series).value)
    }
}

/// What is asked for.
pub struct Asked {
    /// Which RRDs.
    pub wanted: Wanted,
    /// Which data source; `None`: all.
    pub ds: Option<String>,
    /// Which consolidation function.
    pub cf: Cf,
    /// The order.
    pub by: By,
    /// Start and end in seconds since the epoch.
    pub range: (i64, i64),
    /// How many are answered.
    pub limit: usize,
}

/// A data source of an RRD with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct TopItem {
    /// The RRD.
    pub name: Vec<u8>,
    /// The data source.
    pub ds: String,
    /// What it was ordered by.
    pub value: f64,
}

/// The first ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Top {
    /// Largest first.
    pub items: Vec<TopItem>,
    /// RRDs that were examined.
    pub examined: usize,
    /// RRDs that were not, because there are too many or the time was over.
    pub skipped: usize,
}

/// `GET /api/v1/top`
///
/// # Errors
/// 4xx and 503, as in `openapi.json`.
pub async fn top(State(api): State<Api>, uri: Uri) -> Result<Response, Failure> {
    let mut query = query(&uri)?;
    let asked = Asked {
        wanted: Wanted::take(&mut query),
        ds: query.text("ds").filter(|ds| !ds.is_empty()),
        cf: rows::cf(&query.text("cf").unwrap_or_else(|| "AVERAGE".to_string()))?,
        by: By::take(&mut query)?,
        range: range(&mut query, api.service.now())?,
        limit: query.number("limit", ITEMS_DEFAULT)?.clamp(1, ITEMS_MAX) as usize,
    };
    query.finish()?;
    api.work
        .run(|| {
            let top = find(&api.service, asked)?;
            let item = |item: &TopItem| {
                json!({
                    "name": String::from_utf8_lossy(&item.name),
                    "path": percent::encode(&item.name),
                    "ds": item.ds,
                    "value": item.value,
                })
            };
            let items: Vec<Value> = top.items.iter().map(item).collect();
            let answer = json!({ "items": items, "examined": top.examined, "skipped": top.skipped });
            Ok((JSON_HEADERS, answer.to_string() + "\n").into_response())
        })
        .await
}

/// Examines the RRDs that are asked for.
///
/// # Errors
/// When none is selected; errors of the store's list.
pub fn find(service: &Service, asked: Asked) -> Result<Top, Failure> {
    let Asked { wanted, ds, cf, by, range: (start, end), limit } = asked;
    let selection = wanted.selection(service, RRDS_MAX)?;
    let until = Instant::now() + TIME_MAX;
    let step = (end.saturating_sub(start).max(0) as u64 / ROWS).max(1);
    let request = FetchRequest { values_max: VALUES_MAX, ..FetchRequest::new(cf, start, end, step) };
    let mut top = Top { skipped: selection.left_out, ..Top::default() };
    for name in &selection.names {
        if Instant::now() >= until {
            top.skipped += 1;
            continue;
        }
        // An RRD without such an archive, or one that is gone, has no place in the order.
        let rows =
            rows::name(service, name).ok().and_then(|known| service.engine.fetch(&known, request).ok());
        top.examined += 1;
        if let Some(rows) = rows {
            top.add(name, &rows, ds.as_deref(), by);
        }
        if top.items.len() > 4 * limit + 1_000 {
            top.keep(limit);
        }
    }
    top.keep(limit);
    Ok(top)
}

impl Top {
    fn add(&mut self, name: &[u8], rows: &FetchRows, ds: Option<&str>, by: By) {
        for (index, column) in rows.ds_names.iter().enumerate() {
            if ds.is_some_and(|ds| ds != column) {
                continue;
            }
            let series = Series { start: rows.start, step: rows.step.max(1), values: rows.column(index) };
            let value = by.of(&series);
            if !value.is_nan() {
                self.items.push(TopItem { name: name.to_vec(), ds: column.clone(), value });
            }
        }
    }

    fn keep(&mut self, limit: usize) {
        let order = |one: &TopItem, other: &TopItem| {
            other
                .value
                .total_cmp(&one.value)
                .then_with(|| (&one.name, &one.ds).cmp(&(&other.name, &other.ds)))
        };
        self.items.sort_by(order);
        self.items.truncate(limit);
    }
}
