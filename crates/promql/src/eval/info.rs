//! `info`: labels of other metrics that say more about where a series comes from.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::ast::{At, Edges, Expr, Kind, Length, Selector, Type};
use crate::labels::{Labels, NAME};
use crate::matcher::{Matcher, Operator};
use crate::value::{ABSENT, Column, Grid, is_absent};

use super::{Evaluator, Result, merge, refuse};

/// Labels by which series and their info belong together.
const IDENTIFYING: [&str; 2] = ["instance", "job"];
/// The metric that tells of where a series comes from, unless another is named.
const TARGET_INFO: &str = "target_info";

impl Evaluator<'_> {
    pub(super) fn info(&mut self, arguments: &[Expr], grid: Grid) -> Result<Vec<Column>> {
        let matchers: Vec<Matcher> = match arguments.get(1).map(|argument| &argument.kind) {
            Some(Kind::Selector(selector)) => selector.matchers.clone(),
            _ => Vec::new(),
        };
        let (names, data): (Vec<_>, Vec<_>) = matchers.into_iter().partition(|matcher| matcher.name == NAME);
        let base = self.vector(&arguments[0], grid)?;
        let names = if names.is_empty() { vec![Matcher::equal(NAME, TARGET_INFO)] } else { names };
        let is_positive = |matcher: &Matcher| matches!(matcher.operator, Operator::Equal | Operator::Regex);
        let is_info =
            |name: &str| names.iter().any(is_positive) && names.iter().all(|matcher| matcher.matches(name));
        let infos = self.info_series(&arguments[0], &names, &data, grid)?;
        let mut by_identity: HashMap<Labels, Vec<usize>, FixedState> =
            HashMap::with_hasher(FixedState::default());
        for (place, info) in infos.iter().enumerate() {
            by_identity.entry(identity(&info.labels)).or_default().push(place);
        }
        let needs_info = data.iter().any(|matcher| !matcher.matches(""));
        let mut answer = Vec::with_capacity(base.len());
        for column in base {
            let identity = identity(&column.labels);
            if is_info(column.name()) {
                answer.push(column);
                continue;
            }
            let places = if identity.is_empty() { None } else { by_identity.get(&identity) };
            match places {
                Some(places) => enrich(&column, &infos, places, &data, needs_info, &mut answer)?,
                None if needs_info => {}
                None => answer.push(column),
            }
        }
        merge(answer)
    }

    /// The series of info at the times of the base series.
    fn info_series(
        &mut self,
        base: &Expr,
        names: &[Matcher],
        data: &[Matcher],
        grid: Grid,
    ) -> Result<Vec<Column>> {
        let mut matchers = names.to_vec();
        if names.iter().all(|matcher| !matches!(matcher.operator, Operator::Equal | Operator::Regex)) {
            matchers.push(
                Matcher::new(NAME, Operator::Regex, ".+_info")
                    .unwrap_or_else(|_| Matcher::equal(NAME, TARGET_INFO)),
            );
        }
        matchers.extend(data.iter().filter(|matcher| !matcher.matches("")).cloned());
        let When { fixed, offset } = self.when(base)?;
        let (at, offset) = (fixed.map(At::Time), Some(Length::Seconds(offset as f64 / 1000.0, true)));
        let selector = Selector { name: None, matchers, range: None, offset, at, edges: Edges::Inside };
        // Of several, the one with the newest row counts; so rows' times are needed beside the values.
        self.instants_with(&selector, grid, Some(|time, _| time as f64))
    }
}

fn identity(labels: &Labels) -> Labels {
    labels.filter(|name| IDENTIFYING.contains(&name))
}

/// When a selector's values are: a fixed time, or so long before each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct When {
    fixed: Option<i64>,
    offset: i64,
}

impl Evaluator<'_> {
    /// When the values of the base series are, if that is the same for all of them; otherwise the times of the evaluation.
    fn when(&self, base: &Expr) -> Result<When> {
        let now = When { fixed: None, offset: 0 };
        let mut all = Vec::new();
        self.collect_times(base, now, &mut all)?;
        let first = all.first().copied().unwrap_or(now);
        Ok(if all.iter().all(|other| *other == first) { first } else { now })
    }

    fn collect_times(&self, expr: &Expr, outer: When, all: &mut Vec<When>) -> Result<()> {
        let shifted = |at: Option<At>, offset: &Option<Length>| -> Result<When> {
            let offset = offset.as_ref().map_or(Ok(0), |offset| self.length(offset))?;
            let fixed = match at {
                Some(At::Time(time)) => Some(time),
                Some(At::Start) => Some(self.query.start),
                Some(At::End) => Some(self.query.end),
                None => {
                    return Ok(match outer.fixed {
                        Some(time) => When { fixed: Some(time - offset), offset: 0 },
                        None => When { fixed: None, offset: outer.offset + offset },
                    });
                }
            };
            Ok(When { fixed: fixed.map(|time| time - offset), offset: 0 })
        };
        match &expr.kind {
            Kind::Selector(selector) => all.push(shifted(selector.at, &selector.offset)?),
            Kind::Subquery(subquery) => {
                let outer = shifted(subquery.at, &subquery.offset)?;
                self.collect_times(&subquery.expr, outer, all)?;
            }
            Kind::Call(function, arguments) if function.name == "info" => {
                self.collect_times(&arguments[0], outer, all)?;
            }
            Kind::Call(function, _) if function.name == "vector" => all.push(outer),
            _ => {
                let is_series = |child: &&Expr| !matches!(child.value_type(), Type::Scalar | Type::Text);
                for child in expr.children().into_iter().filter(is_series) {
                    self.collect_times(child, outer, all)?;
                }
            }
        }
        Ok(())
    }
}

/// Adds the labels of info to a series, at each time of the info that is valid then.
fn enrich(
    column: &Column,
    infos: &[Column],
    places: &[usize],
    data: &[Matcher],
    needs_info: bool,
    answer: &mut Vec<Column>,
) -> Result<()> {
    let mut results: Vec<Column> = Vec::new();
    for (index, value) in column.values.iter().enumerate() {
        if is_absent(*value) {
            continue;
        }
        let newest = newest(infos, places, index);
        if newest.is_empty() && needs_info {
            continue;
        }
        let labels = with_info(column, &newest, data)?;
        if needs_info
            && !data
                .iter()
                .all(|matcher| newest.iter().any(|info| matcher.matches(info.labels.get(&matcher.name))))
        {
            continue;
        }
        let at = results.iter().position(|known| known.labels == labels).unwrap_or_else(|| {
            results.push(Column {
                labels,
                unnamed: column.unnamed,
                values: vec![ABSENT; column.values.len()],
            });
            results.len() - 1
        });
        results[at].values[index] = *value;
    }
    answer.extend(results);
    Ok(())
}

/// Of each info metric, the series with the newest row.
fn newest<'a>(infos: &'a [Column], places: &[usize], index: usize) -> Vec<&'a Column> {
    let mut found: Vec<&Column> = Vec::new();
    for info in places.iter().map(|place| &infos[*place]).filter(|info| !is_absent(info.values[index])) {
        match found.iter_mut().find(|other| other.name() == info.name()) {
            Some(other) if other.values[index] < info.values[index] => *other = info,
            Some(_) => {}
            None => found.push(info),
        }
    }
    found
}

/// The labels of a series with those of its info: all of them, or those that conditions name.
fn with_info(column: &Column, infos: &[&Column], data: &[Matcher]) -> Result<Labels> {
    let mut labels = column.labels.clone();
    let mut added: Vec<(String, String)> = Vec::new();
    for info in infos {
        for (name, value) in info.labels.iter() {
            let is_wanted = data.is_empty() || data.iter().any(|matcher| matcher.name == name);
            if name == NAME || !is_wanted || !column.labels.get(name).is_empty() {
                continue;
            }
            if let Some((_, other)) = added.iter().find(|(known, other)| known == name && other != value) {
                return refuse(format!(
                    "conflicting label: {name} has the values {} and {} in info of the same series",
                    crate::labels::quoted(other),
                    crate::labels::quoted(value)
                ));
            }
            added.push((name.to_owned(), value.to_owned()));
            labels = labels.with(name, value);
        }
    }
    Ok(labels)
}
