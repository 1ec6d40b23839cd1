//! `/tags/autoComplete/*` and `/tags/findSeries`: the labels that series have for Prometheus, as tags.

use std::collections::BTreeSet;

use axum::http::HeaderMap;
use axum::response::Response;
use graphite::TagCondition;
use promql::{Labels, NAME};

use super::answer::{GraphiteRefusal, json, texts, wants_ascii};
use super::source::{matchers, tagged};
use super::{Graphite, whole_number};
use crate::http::failure::Failure;
use crate::http::query::Query;
use crate::http::rows::Budget;

/// How many names or values an answer has, if it is not said.
const LIMIT: usize = 100;
/// The most series that are looked through.
const EXAMINED_MAX: usize = 5_000_000;

fn conditions(query: &mut Query) -> Result<Vec<TagCondition>, GraphiteRefusal> {
    let mut texts = query.take_all("expr");
    texts.extend(query.take_all("expr[]"));
    let one = |text: &Vec<u8>| {
        let text = String::from_utf8_lossy(text);
        TagCondition::parse(&text).ok_or_else(|| {
            GraphiteRefusal::bad(format!(
                "expr={text}: write tag=value, tag!=value, tag=~regex or tag!=~regex"
            ))
        })
    };
    texts.iter().map(one).collect()
}

/// Calls `each` with the labels of all series that fit.
fn visit(
    state: &Graphite,
    conditions: &[TagCondition],
    mut each: impl FnMut(&Labels) -> bool,
) -> Result<(), GraphiteRefusal> {
    let budget = Budget::new(&state.service.memory);
    let index = state.indexes.current(&state.service, &state.rules)?;
    let mut examined = 0;
    index.matching(&state.service, &state.rules, &matchers(conditions)?, |found| {
        examined += 1;
        if examined > EXAMINED_MAX {
            return Err(Failure::too_much(format!("more than {EXAMINED_MAX} series: select fewer")));
        }
        if examined % 1024 == 0 {
            budget.count(0)?;
        }
        Ok(each(&found.labels))
    })?;
    Ok(())
}

fn limit(query: &mut Query) -> Result<usize, GraphiteRefusal> {
    Ok(whole_number(query, "limit")?.map_or(LIMIT, |limit| usize::try_from(limit).unwrap_or(0)))
}

fn shown(tag: &str) -> &str {
    if tag == NAME { "name" } else { tag }
}

/// `/tags/autoComplete/tags`
pub fn tags(state: &Graphite, headers: &HeaderMap, mut query: Query) -> Result<Response, GraphiteRefusal> {
    let (conditions, limit) = (conditions(&mut query)?, limit(&mut query)?);
    let prefix = query.text("tagPrefix").unwrap_or_default();
    let mut names = BTreeSet::new();
    visit(state, &conditions, |labels| {
        for (tag, _) in labels.iter() {
            let tag = shown(tag);
            let is_asked = conditions.iter().any(|condition| condition.tag == tag);
            if tag.starts_with(&prefix) && !is_asked && !names.contains(tag) {
                names.insert(tag.to_owned());
            }
        }
        true
    })?;
    Ok(json(headers, texts(names.iter().take(limit).map(String::as_str), wants_ascii(headers))))
}

/// `/tags/autoComplete/values`
pub fn values(state: &Graphite, headers: &HeaderMap, mut query: Query) -> Result<Response, GraphiteRefusal> {
    let (conditions, limit) = (conditions(&mut query)?, limit(&mut query)?);
    let prefix = query.text("valuePrefix").unwrap_or_default();
    let tag = query
        .text("tag")
        .filter(|tag| !tag.is_empty())
        .ok_or_else(|| GraphiteRefusal::bad("no tag specified"))?;
    let label = if tag == "name" { NAME } else { &tag };
    let mut values = BTreeSet::new();
    visit(state, &conditions, |labels| {
        let value = labels.get(label);
        if !value.is_empty() && value.starts_with(&prefix) && !values.contains(value) {
            values.insert(value.to_owned());
        }
        true
    })?;
    Ok(json(headers, texts(values.iter().take(limit).map(String::as_str), wants_ascii(headers))))
}

/// `/tags/findSeries`
pub fn find_series(
    state: &Graphite,
    headers: &HeaderMap,
    mut query: Query,
) -> Result<Response, GraphiteRefusal> {
    let conditions = conditions(&mut query)?;
    if conditions.is_empty() {
        return Err(GraphiteRefusal::bad("no tag expressions specified"));
    }
    let limit =
        whole_number(&mut query, "limit")?.map_or(EXAMINED_MAX, |limit| usize::try_from(limit).unwrap_or(0));
    let mut names = BTreeSet::new();
    visit(state, &conditions, |labels| {
        names.insert(tagged(labels).0);
        names.len() < limit.max(1)
    })?;
    Ok(json(headers, texts(names.iter().take(limit).map(String::as_str), wants_ascii(headers))))
}
