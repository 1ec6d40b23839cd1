//! Finds the RRDs of series, and makes those that are not there.

use std::sync::{Arc, PoisonError};

use ingest::sample::Samples;
use ingest::series::KnownSeries;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::definition::{Definition, DsKind};
use rrd::when::Step;
use store::engine::{CreateRequest, StoreError};
use store::name::RrdName;
use tokio::sync::oneshot;

use super::{PushWay, Ready, SampleError};
use crate::collectors::store_writer::WriteError;
use crate::service::Service;

/// Where the samples of a series go.
pub(super) type Found = Result<Arc<KnownSeries>, SampleError>;

/// An RRD that is being made.
struct Making {
    series: u32,
    path: String,
    answer: oneshot::Receiver<Result<(), StoreError>>,
}

/// The RRDs of all series, by their numbers.
pub(super) async fn find(
    ready: &Ready,
    service: &Service,
    way: PushWay<'_>,
    samples: &Samples,
    created: &mut u64,
) -> Vec<Found> {
    let mut found = Vec::with_capacity(samples.series_count());
    let mut new = Vec::new();
    {
        let mut cache = ready.series.lock().unwrap_or_else(PoisonError::into_inner);
        for series in 0..samples.series_count() as u32 {
            // What others have pushed tells one nothing who may not write it.
            let known = cache.get(samples.series(series));
            let known = known.filter(|known| service.may_write(known.path.as_bytes()));
            if known.is_none() {
                new.push(series);
            }
            found.push(known.ok_or(SampleError::NotLater));
        }
    }
    if new.is_empty() {
        return found;
    }
    // The first sample of each says when its RRD begins.
    let mut first = vec![None; samples.series_count()];
    for sample in samples.samples().iter().rev() {
        first[sample.series as usize] = Some(sample.time);
    }
    // Names of files, perhaps, and many of them.
    let making = tokio::task::block_in_place(|| {
        let (asker, now) = (way.asker(service), super::now_ms());
        let mut maker = Maker { ready, service, asker, samples, now, there: None };
        let mut making = Vec::new();
        for series in new {
            let Some(time) = first[series as usize] else { continue };
            match maker.begin(series, time) {
                Ok(Begun::There(path)) => {
                    found[series as usize] = Ok(remember(ready, samples, series, &path))
                }
                Ok(Begun::Making(one)) => making.push(one),
                Err(error) => found[series as usize] = Err(error),
            }
        }
        making
    });
    for one in making {
        let answer = one.answer.await.unwrap_or(Err(StoreError::Stopping));
        found[one.series as usize] = match answer {
            Ok(()) => {
                *created += 1;
                Ok(remember(ready, samples, one.series, &one.path))
            }
            // Another one of these samples, or another connection, was first.
            Err(StoreError::Exists(_)) => Ok(remember(ready, samples, one.series, &one.path)),
            Err(error) => Err(SampleError::Write(WriteError::Store(error))),
        };
    }
    found
}

fn remember(ready: &Ready, samples: &Samples, series: u32, path: &str) -> Arc<KnownSeries> {
    let mut cache = ready.series.lock().unwrap_or_else(PoisonError::into_inner);
    // The same series twice in a request has one place.
    if let Some(known) = cache.get(samples.series(series)) {
        return known;
    }
    let known = Arc::new(KnownSeries::new(path));
    cache.add(samples.series(series), Arc::clone(&known));
    known
}

enum Begun {
    /// The RRD is there.
    There(String),
    /// It is being made.
    Making(Making),
}

/// Makes the RRDs of a request.
struct Maker<'a> {
    ready: &'a Ready,
    service: &'a Service,
    /// Whose share of new RRDs it takes.
    asker: String,
    samples: &'a Samples,
    /// This machine's clock, in milliseconds.
    now: i64,
    /// RRDs of the store, with those that are being made here; asked for once, when the first one is new.
    there: Option<u64>,
}

impl Maker<'_> {
    /// Places a series, and has its RRD made if there is none.
    fn begin(&mut self, number: u32, time: Option<i64>) -> Result<Begun, SampleError> {
        let series = self.samples.series(number);
        let place = self.ready.table.place(series).map_err(SampleError::Unplaced)?;
        let name_error = |error| SampleError::Write(WriteError::Store(StoreError::Name(error)));
        let name = RrdName::new(place.path.as_bytes()).map_err(name_error)?;
        if !self.service.may_write(name.as_bytes()) {
            // Whether it is there or not; it takes none of the limits for new ones.
            self.service.refused_write(&place.path, "push");
            return Err(SampleError::Write(WriteError::Store(StoreError::Denied(name))));
        }
        match self.service.engine.status_for_change(&name) {
            Ok(status) => return fits(&status.definition).map(|()| Begun::There(place.path)),
            Err(StoreError::NoSuchRrd(_)) => {}
            Err(error) => return Err(SampleError::Write(WriteError::Store(error))),
        }
        // One that is out of bounds makes no RRD.
        let time = time.unwrap_or(self.now);
        if time < 0 || time > self.now.saturating_add(super::AHEAD_MAX_MS) {
            return Err(SampleError::OutOfBounds);
        }
        self.admit()?;
        let rrd = self.ready.table.new_rrd(place.rule, series, self.samples.kind(number));
        let options = CreateOptions {
            step: Step { units: rrd.step, units_per_second: 1 },
            limits: Limits::FILE,
            file_name: place.path.as_bytes(),
        };
        let wrong = |error: rrd::definition::text::DefinitionError| {
            SampleError::Write(WriteError::Definition(error.to_string()))
        };
        let definition = parse_create(&options, &rrd.args).map_err(wrong)?;
        // So that the first value is that of a whole step.
        let start = time.div_euclid(1000).saturating_sub_unsigned(rrd.step);
        let (sender, answer) = oneshot::channel();
        let request = CreateRequest { definition, start, no_overwrite: true };
        self.service.engine.create(name, request, Box::new(move |result| drop(sender.send(result))));
        Ok(Begun::Making(Making { series: number, path: place.path, answer }))
    }

    /// Counts one more RRD, if it may be made.
    fn admit(&mut self) -> Result<(), SampleError> {
        let there = self.there.get_or_insert_with(|| self.service.ingest.rrd_count());
        let mut new = self.ready.new.lock().unwrap_or_else(PoisonError::into_inner);
        new.admit(&self.asker, self.now.div_euclid(1000), *there).map_err(SampleError::Limit)?;
        *there += 1;
        Ok(())
    }
}

/// Whether an RRD that is there takes samples: it has one data source that is fed.
fn fits(definition: &Definition) -> Result<(), SampleError> {
    let fed = definition.ds.iter().filter(|ds| matches!(ds.kind, DsKind::Fed { .. })).count();
    if fed == 1 {
        return Ok(());
    }
    let text = format!("its RRD is there and has {fed} data sources that are fed, where a series has one");
    Err(SampleError::Write(WriteError::Other(text)))
}
