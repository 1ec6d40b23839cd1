//! Which RRDs have which metrics: the names of all metrics, each with its series.
//!
//! It is made when it is first asked for. It is made again when names have changed, and when leaders of a cluster answer again after
//! followers had to. Cost of a series: 8 bytes. Labels follow from the name of the RRD; those of some series that were asked for are
//! kept.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use promql::{Labels, Matcher, NAME, Operator};
use rrd::definition::Definition;
use store::engine::RrdStatus;
use store::name::RrdName;
use store::read_age::KeptAge;
use suggest::{DS_LABEL, Fitting, MetricKind, MetricRules, RRD_LABEL};

use super::kept_labels::KeptLabels;
use super::label_values::{LabelValues, Runs};
use super::pushed::PushedFinder;
use crate::budget::Share;
use crate::http::api::names::name_list;
use crate::http::failure::Failure;
use crate::name_index::NameList;
use crate::service::Service;

/// Definitions may change without the names.
const AGE_MAX: Duration = Duration::from_secs(300);
/// An index is used for at least so many times the time that making it took.
const REST_FACTOR: u32 = 20;
/// Followers that answer late by more than this do so because no leader answers: a leader that is only slow is heard of twice a second.
const LATE: Duration = Duration::from_secs(2);
/// The label that selects a consolidation function, and is shown only if it was asked for.
pub const CF_LABEL: &str = "cf";

/// A series: a data source, or the counter that its rates add up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The place of the RRD's name in the list.
    pub rrd: u32,
    /// The place of the data source.
    pub ds: u16,
    /// Whether it is the counter.
    pub is_counter: bool,
}

/// The metrics of a store at a time.
pub struct MetricIndex {
    list: Arc<NameList>,
    /// Series by metric, in the order of the RRDs' names.
    metrics: BTreeMap<Box<str>, Vec<Entry>>,
    /// RRDs whose series brought a label `rrd` along, by number.
    named: Vec<u32>,
    /// How many RRDs have finest rows of so many milliseconds.
    rows: BTreeMap<u64, usize>,
    values: LabelValues,
    kept: KeptLabels,
    _share: Share,
}

/// A series that matches.
pub struct FoundSeries {
    /// The series.
    pub entry: Entry,
    /// Its labels.
    pub labels: Labels,
    /// The name of its RRD.
    pub name: RrdName,
    /// What is known of its RRD.
    pub status: Arc<RrdStatus>,
}

/// A series whose labels may match: the name of its metric, and its place.
pub type CandidateSeries<'a> = (&'a str, Entry);

/// Finds which candidates match.
pub struct SeriesFinder<'a> {
    index: &'a MetricIndex,
    service: &'a Service,
    rules: &'a MetricRules,
    matchers: &'a [Matcher],
    pushed: PushedFinder<'a>,
    /// The RRD of the candidate before: data sources of one RRD follow each other.
    last: Option<(u32, RrdName, Arc<RrdStatus>)>,
}

impl SeriesFinder<'_> {
    /// The series, if it matches. Conditions on `cf` do not count.
    pub fn find(&mut self, (metric, entry): CandidateSeries<'_>) -> Option<FoundSeries> {
        let (name, status) = match &self.last {
            Some((rrd, name, status)) if *rrd == entry.rrd => (name.clone(), Arc::clone(status)),
            _ => {
                let name = RrdName::new(self.index.list.name(entry.rrd as usize)).ok()?;
                let status = Arc::new(self.service.engine.status(&name).ok()?);
                self.last = Some((entry.rrd, name.clone(), Arc::clone(&status)));
                (name, status)
            }
        };
        let labels = self.labels(metric, entry, &status.definition)?;
        let fits = |matcher: &Matcher| matcher.name == CF_LABEL || matcher.matches(labels.get(&matcher.name));
        self.matchers.iter().all(fits).then_some(FoundSeries { entry, labels, name, status })
    }

    fn labels(&mut self, metric: &str, entry: Entry, definition: &Arc<Definition>) -> Option<Labels> {
        if let Some(labels) = self.index.kept.find(entry, definition) {
            return Some(labels);
        }
        let path = path(self.index.list.name(entry.rrd as usize));
        if let Some(pushed) = self.pushed.find(&path, definition) {
            return pushed.labels(metric, entry, self.matchers);
        }
        let labels = labels(self.rules, &path, definition, metric, entry)?;
        self.index.kept.keep(entry, definition, &labels);
        Some(labels)
    }
}

/// The index that was made last.
#[derive(Default)]
pub struct Indexes(Mutex<Option<Kept>>);

struct Kept {
    index: Arc<MetricIndex>,
    made: Instant,
    took: Duration,
    read: KeptAge,
}

impl Kept {
    /// Decides whether it is used for these names: `None` if not, else whether it is current. `list_is_current`: leaders have given
    /// the names.
    fn use_with(&self, list: &Arc<NameList>, list_is_current: bool) -> Option<bool> {
        let was_late = self.read.may_exceed(LATE);
        let is_same = Arc::ptr_eq(&self.index.list, list);
        let longest = match is_same {
            // Leaders answer again, who may have what the followers did not.
            true if was_late && list_is_current => self.took,
            true => AGE_MAX.max(self.took * REST_FACTOR),
            false => self.took * REST_FACTOR,
        };
        (self.made.elapsed() < longest).then_some(is_same && !was_late)
    }
}

impl Indexes {
    /// The index of a part of a store.
    ///
    /// # Errors
    /// 503 when there is no memory for it; errors of the store.
    pub fn current(&self, service: &Service, rules: &MetricRules) -> Result<Arc<MetricIndex>, Failure> {
        let (list, list_age) = KeptAge::of(|| name_list(service));
        let list = list?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = &*kept
            && let Some(is_current) = kept.use_with(&list, !list_age.may_exceed(Duration::ZERO))
        {
            if !is_current {
                kept.read.note(false);
            }
            return Ok(Arc::clone(&kept.index));
        }
        let begun = Instant::now();
        let (index, read) = KeptAge::of(|| MetricIndex::new(service, rules, list));
        let (index, took) = (Arc::new(index?), begun.elapsed());
        *kept = Some(Kept { index: Arc::clone(&index), made: Instant::now(), took, read });
        Ok(index)
    }
}

impl MetricIndex {
    /// One of nothing.
    pub fn empty(service: &Service) -> MetricIndex {
        let list = Arc::new(NameList::new(&[], service.memory.share()));
        MetricIndex {
            list,
            metrics: BTreeMap::new(),
            named: Vec::new(),
            rows: BTreeMap::new(),
            values: LabelValues::default(),
            kept: KeptLabels::new(&service.memory),
            _share: service.memory.share(),
        }
    }

    fn new(service: &Service, rules: &MetricRules, list: Arc<NameList>) -> Result<MetricIndex, Failure> {
        let mut share = service.memory.share();
        let mut metrics: std::collections::HashMap<Box<str>, Vec<Entry>> = std::collections::HashMap::new();
        let (mut entries, mut named, mut rows) = (0u64, Vec::new(), BTreeMap::new());
        let mut values = LabelValues::default();
        let mut finder = PushedFinder::new(service);
        for rrd in 0..list.len() {
            let Ok(name) = RrdName::new(list.name(rrd)) else { continue };
            // It may be gone since the list was made, or unreadable.
            let Ok(status) = service.engine.status(&name) else { continue };
            *rows.entry(row_milliseconds(&status.definition)).or_default() += 1;
            let path = path(list.name(rrd));
            let mut add = |metric: String, ds: usize, is_counter: bool| {
                let entry = Entry { rrd: rrd as u32, ds: ds as u16, is_counter };
                metrics.entry(metric.into_boxed_str()).or_default().push(entry);
                entries += 1;
            };
            if let Some(pushed) = finder.find(&path, &status.definition) {
                pushed.metrics(|metric, is_counter| add(metric, pushed.ds, is_counter));
                pushed.own_labels().for_each(|(label, value)| values.add(label, value, rrd as u32));
                if pushed.brings(RRD_LABEL) {
                    named.push(rrd as u32);
                }
            } else if let Some(fitting) = rules.fitting(&path, &status.definition) {
                for (ds, source) in status.definition.ds.iter().enumerate() {
                    let metric = fitting.name(&source.name);
                    if MetricKind::of(&source.kind) == MetricKind::Rate {
                        add(counter_name(&metric), ds, true);
                    }
                    add(metric, ds, false);
                    let own = Labels::new(labels_of(&fitting, &source.name));
                    own.iter().for_each(|(label, value)| values.add(label, value, rrd as u32));
                }
            }
            if rrd % 1024 == 0 && !share.try_resize(entries * size_of::<Entry>() as u64 * 2 + values.bytes())
            {
                return Err(Failure::no_memory("the index of metrics", share.bytes(), &share));
            }
        }
        let metrics: BTreeMap<_, _> = metrics.into_iter().collect();
        let tables = metrics.len() as u64 * 64 + named.len() as u64 * 4 + values.bytes();
        share.resize(entries * size_of::<Entry>() as u64 + tables);
        let kept = KeptLabels::new(&service.memory);
        Ok(MetricIndex { list, metrics, named, rows, values, kept, _share: share })
    }

    /// The length of the finest rows of most RRDs; of two as frequent, the longer. `None`: there are no RRDs.
    pub fn interval(&self) -> Option<Duration> {
        let most = self.rows.iter().max_by_key(|(_, count)| **count);
        most.map(|(milliseconds, _)| Duration::from_millis(*milliseconds))
    }

    /// Which values labels have.
    pub fn label_values(&self) -> &LabelValues {
        &self.values
    }

    /// Names of metrics with their first series.
    pub fn metrics(&self) -> impl Iterator<Item = (&str, Entry)> {
        self.metrics.iter().filter_map(|(name, entries)| Some((&**name, *entries.first()?)))
    }

    /// Calls `each` with every series that matches; false stops. Conditions on `cf` do not count.
    pub fn matching(
        &self,
        service: &Service,
        rules: &MetricRules,
        matchers: &[Matcher],
        mut each: impl FnMut(FoundSeries) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let mut finder = self.finder(service, rules, matchers);
        for candidate in self.candidates(service, matchers) {
            if let Some(found) = finder.find(candidate)
                && !each(found)?
            {
                break;
            }
        }
        Ok(())
    }

    /// Finds which of [`MetricIndex::candidates`] match.
    pub fn finder<'a>(
        &'a self,
        service: &'a Service,
        rules: &'a MetricRules,
        matchers: &'a [Matcher],
    ) -> SeriesFinder<'a> {
        let pushed = PushedFinder::new(service);
        SeriesFinder { index: self, service, rules, matchers, pushed, last: None }
    }

    /// Series whose metric and RRD match, by RRD.
    pub fn candidates(&self, service: &Service, matchers: &[Matcher]) -> Vec<CandidateSeries<'_>> {
        let of = |label: &str| matchers.iter().filter(|matcher| matcher.name == label).collect::<Vec<_>>();
        let (names, paths) = (of(NAME), of(RRD_LABEL));
        let exact = |matchers: &[&Matcher]| {
            matchers
                .iter()
                .find(|matcher| matcher.operator == Operator::Equal)
                .map(|matcher| matcher.value.clone())
        };
        let fits = |metric: &str| names.iter().all(|matcher| matcher.matches(metric));
        let metrics: Vec<(&str, &Vec<Entry>)> = match exact(&names) {
            Some(name) => {
                self.metrics.get_key_value(&*name).map(|(name, all)| (&**name, all)).into_iter().collect()
            }
            None => self.metrics.iter().map(|(name, all)| (&**name, all)).collect(),
        };
        // Of a million RRDs one name means few.
        let few = exact(&paths).map(|path| self.named_so(&path));
        let runs = self.fewest(matchers);
        let is_in_runs = |rrd: u32| {
            runs.as_ref().is_none_or(|runs| {
                let after = runs.partition_point(|run| run.start <= rrd);
                after > 0 && rrd < runs[after - 1].end
            })
        };
        let may_be = |entry: &Entry| {
            few.as_ref().is_none_or(|few| few.binary_search(&entry.rrd).is_ok()) && is_in_runs(entry.rrd)
        };
        let mut all = Vec::new();
        for (metric, entries) in metrics.into_iter().filter(|(metric, _)| fits(metric)) {
            let mut finder = PushedFinder::new(service);
            let mut has_path = |entry: &&Entry| {
                if !may_be(entry) {
                    return false;
                }
                let path = path(self.list.name(entry.rrd as usize));
                // What was forwarded from another store brings a label of this name.
                finder.own_label(&path, RRD_LABEL, |own| paths.iter().all(|matcher| matcher.matches(own)))
            };
            match paths.is_empty() {
                true => {
                    all.extend(entries.iter().filter(|entry| may_be(entry)).map(|entry| (metric, *entry)))
                }
                false => all.extend(entries.iter().filter(&mut has_path).map(|entry| (metric, *entry))),
            }
        }
        all.sort_by_key(|(_, entry)| *entry);
        all
    }

    /// The RRDs that may match by one of the conditions on labels, the one that leaves fewest; `None`: any.
    fn fewest(&self, matchers: &[Matcher]) -> Option<Runs> {
        // These are there as soon as they are asked for, whether a series brought them along or not.
        let is_own = |label: &str| ![NAME, CF_LABEL, RRD_LABEL, DS_LABEL].contains(&label);
        let of_labels = matchers.iter().filter(|matcher| is_own(&matcher.name));
        let runs = of_labels.filter_map(|matcher| self.values.matching(matcher));
        runs.min_by_key(|runs| runs.iter().map(|run| u64::from(run.end - run.start)).sum::<u64>())
    }

    /// RRDs that may have this label `rrd`, by number: of that name, or with a label that they brought along.
    fn named_so(&self, path: &str) -> Vec<u32> {
        let of_name = [path.to_owned(), format!("{path}.rrd")];
        let of_name = of_name.iter().filter_map(|name| self.list.position(name.as_bytes()));
        let mut all: Vec<u32> = of_name.map(|rrd| rrd as u32).chain(self.named.iter().copied()).collect();
        all.sort_unstable();
        all
    }
}

/// The length of the finest row.
fn row_milliseconds(definition: &Definition) -> u64 {
    let readings = definition.rra.iter().map(|rra| rra.pdp_per_row).min().unwrap_or(1);
    let units = u64::from(definition.units_per_second.max(1));
    (definition.step.saturating_mul(readings).saturating_mul(1000) / units).max(1)
}

/// The metric of the counter beside a rate.
pub fn counter_name(metric: &str) -> String {
    format!("{metric}_total")
}

/// A name without `.rrd`, as a text.
fn path(name: &[u8]) -> String {
    String::from_utf8_lossy(name.strip_suffix(b".rrd").unwrap_or(name)).into_owned()
}

/// The labels of a data source, but for the name.
fn labels_of(fitting: &Fitting<'_>, ds: &str) -> impl Iterator<Item = (String, String)> {
    fitting.labels(ds).into_iter().map(|(label, value)| (label.into_owned(), value))
}

/// The labels of a series, if it still is of that metric.
fn labels(
    rules: &MetricRules,
    path: &str,
    definition: &Definition,
    metric: &str,
    entry: Entry,
) -> Option<Labels> {
    let source = definition.ds.get(usize::from(entry.ds))?;
    let fitting = rules.fitting(path, definition)?;
    let name = fitting.name(&source.name);
    let name = if entry.is_counter { counter_name(&name) } else { name };
    if name != metric {
        return None;
    }
    Some(Labels::new(labels_of(&fitting, &source.name).chain([(NAME.to_owned(), name)])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::MemoryBudget;
    use store::read_age::{Age, note};

    #[test]
    fn an_index_of_followers_is_made_again_when_leaders_answer() {
        let memory = MemoryBudget::new(1_000_000);
        let names = || Arc::new(NameList::new(&[], memory.share()));
        let list = names();
        let index = Arc::new(MetricIndex {
            list: Arc::clone(&list),
            metrics: BTreeMap::new(),
            named: Vec::new(),
            rows: BTreeMap::new(),
            values: LabelValues::default(),
            kept: KeptLabels::new(&memory),
            _share: memory.share(),
        });
        let kept = |age| Kept {
            index: Arc::clone(&index),
            made: Instant::now() - Duration::from_secs(5),
            took: Duration::from_secs(1),
            read: KeptAge::of(|| note(Age::AtMost(Duration::from_secs(age)))).1,
        };
        assert_eq!(kept(0).use_with(&list, true), Some(true));
        assert_eq!(kept(0).use_with(&names(), true), Some(false));
        assert_eq!(kept(9).use_with(&list, false), Some(false));
        assert_eq!(kept(9).use_with(&list, true), None);
    }
}
