//! `/metrics/find`, `/metrics/expand`, `/metrics/index.json`: which paths there are.

use std::collections::BTreeSet;
use std::fmt::Write;

use axum::http::HeaderMap;
use axum::response::Response;
use graphite::output::{Item, msgpack, push_text};

use super::answer::{GraphiteRefusal, answer, json, texts, wants_ascii};
use super::nodes::{self, FoundNode};
use super::{Graphite, whole_number};
use crate::http::api::names::name_list;
use crate::http::query::Query;
use crate::http::rows::Budget;

/// `/metrics/find`
pub fn find(state: &Graphite, headers: &HeaderMap, mut query: Query) -> Result<Response, GraphiteRefusal> {
    super::refuse_jsonp(&mut query)?;
    let format = query.text("format").unwrap_or_else(|| "treejson".to_owned());
    let flag =
        |query: &mut Query, key: &str| Ok::<_, GraphiteRefusal>(whole_number(query, key)?.unwrap_or(0) != 0);
    let leaves_only = flag(&mut query, "leavesOnly")?;
    let has_wildcards = flag(&mut query, "wildcards")?;
    let has_variants = flag(&mut query, "automatic_variants")?;
    let position = whole_number(&mut query, "position")?.unwrap_or(-1);
    let mut pattern =
        query.text("query").ok_or_else(|| GraphiteRefusal::bad("Missing required parameter 'query'"))?;
    if pattern.is_empty() {
        return Err(GraphiteRefusal::bad("Required parameter 'query' is empty"));
    }
    let base = pattern.rfind('.').map_or("", |at| &pattern[..=at]).to_owned();
    if format == "completer" {
        pattern = completed(&pattern, has_variants);
    }
    let budget = Budget::new(&state.service.memory);
    let list = name_list(&state.service)?;
    let mut found = nodes::find(&state.service, &list, &budget, &pattern, leaves_only)?;
    found.sort_by(|one, other| one.name().cmp(other.name()));
    let bytes: usize = found.iter().map(|found| 2 * found.path.len() + 100).sum();
    budget.hold(bytes as u64)?;
    let is_ascii = wants_ascii(headers);
    let text = match &*format {
        "treejson" => tree(&found, &base, has_wildcards, is_ascii),
        "completer" => completer(&found, has_wildcards, is_ascii),
        "nodelist" => node_list(&found, position, is_ascii),
        "json" => with_intervals(state, &mut found, is_ascii),
        "msgpack" => {
            let items = found.iter().map(|found| item(state, found)).collect();
            return Ok(answer(headers, "application/x-msgpack", msgpack(&Item::List(items))));
        }
        _ => return Err(GraphiteRefusal::bad("format: give treejson, completer, nodelist, json or msgpack")),
    };
    Ok(json(headers, text))
}

/// A pattern of what may follow what was typed.
fn completed(pattern: &str, has_variants: bool) -> String {
    let mut pattern = pattern.replace("..", "*.");
    if !pattern.ends_with('*') {
        pattern.push('*');
    }
    if !has_variants {
        return pattern;
    }
    let part = |part: &str| match part.contains(',') && !part.contains('{') {
        true => format!("{{{part}}}"),
        false => part.to_owned(),
    };
    pattern.split('.').map(part).collect::<Vec<_>>().join(".")
}

fn push_tree_node(out: &mut String, (text, id): (&str, &str), is_leaf: bool, is_ascii: bool) {
    out.push_str(if out.len() > 1 { ", {\"text\": " } else { "{\"text\": " });
    push_text(out, text, is_ascii);
    out.push_str(", \"id\": ");
    push_text(out, id, is_ascii);
    let (children, leaf) = if is_leaf { (0, 1) } else { (1, 0) };
    let _ = write!(out, ", \"allowChildren\": {children}, \"expandable\": {children}, \"leaf\": {leaf}}}");
}

/// Branches first, then leaves; each name once.
fn tree(found: &[FoundNode], base: &str, has_wildcards: bool, is_ascii: bool) -> String {
    let mut out = String::from("[");
    if found.len() > 1 && has_wildcards {
        let is_leaf = found.iter().all(|found| found.leaf.is_some());
        push_tree_node(&mut out, ("*", &format!("{base}*")), is_leaf, is_ascii);
    }
    let mut seen = BTreeSet::new();
    let each: Vec<&FoundNode> = found.iter().filter(|found| seen.insert(found.name())).collect();
    for is_leaf in [false, true] {
        for found in each.iter().filter(|found| found.leaf.is_some() == is_leaf) {
            let name = found.name();
            let plain = name.replace('+', " ");
            let text = crate::http::percent::decode(plain.as_bytes())
                .map_or(plain, |bytes| String::from_utf8_lossy(&bytes).into_owned());
            push_tree_node(&mut out, (&text, &format!("{base}{name}")), is_leaf, is_ascii);
        }
    }
    out.push(']');
    out
}

fn completer(found: &[FoundNode], has_wildcards: bool, is_ascii: bool) -> String {
    let mut out = String::from("{\"metrics\": [");
    for (index, found) in found.iter().enumerate() {
        out.push_str(if index > 0 { ", {\"path\": " } else { "{\"path\": " });
        let (dot, is_leaf) = if found.leaf.is_some() { ("", 1) } else { (".", 0) };
        push_text(&mut out, &format!("{}{dot}", found.path), is_ascii);
        out.push_str(", \"name\": ");
        push_text(&mut out, found.name(), is_ascii);
        let _ = write!(out, ", \"is_leaf\": \"{is_leaf}\"}}");
    }
    if found.len() > 1 && has_wildcards {
        out.push_str(", {\"name\": \"*\"}");
    }
    out.push_str("]}");
    out
}

fn node_list(found: &[FoundNode], position: i64, is_ascii: bool) -> String {
    let node = |found: &FoundNode| {
        let nodes: Vec<&str> = found.path.split('.').collect();
        let place = if position < 0 { nodes.len() as i64 + position } else { position };
        nodes.get(usize::try_from(place).ok()?).map(|node| (*node).to_owned())
    };
    let nodes: BTreeSet<String> = found.iter().filter_map(node).collect();
    format!("{{\"nodes\": {}}}", texts(nodes.iter().map(String::as_str), is_ascii))
}

/// When the rows of a leaf begin and end, in seconds.
fn interval(state: &Graphite, found: &FoundNode) -> Option<(i64, i64)> {
    let status = &found.leaf.as_ref()?.status;
    let units = i64::from(status.definition.units_per_second.max(1));
    let span = |rra: &rrd::definition::Rra| {
        rrd::grid::row_span(status.definition.step, rra.pdp_per_row).saturating_mul(rra.row_count as i64)
    };
    let longest = status.definition.rra.iter().map(span).max().unwrap_or(0) / units;
    let start = state.service.now() - longest;
    Some((start, (status.last_update.whole / units).max(start)))
}

fn with_intervals(state: &Graphite, found: &mut [FoundNode], is_ascii: bool) -> String {
    found.sort_by(|one, other| one.path.cmp(&other.path));
    let mut out = String::from("[");
    for (index, found) in found.iter().enumerate() {
        out.push_str(if index > 0 { ", {\"path\": " } else { "{\"path\": " });
        push_text(&mut out, &found.path, is_ascii);
        let _ = write!(out, ", \"is_leaf\": {}", found.leaf.is_some());
        if let Some((start, end)) = interval(state, found) {
            let _ = write!(out, ", \"intervals\": [{{\"start\": {start}, \"end\": {end}}}]");
        }
        out.push('}');
    }
    out.push(']');
    out
}

fn item(state: &Graphite, found: &FoundNode) -> Item {
    let mut pairs =
        vec![("path", Item::Text(found.path.clone())), ("is_leaf", Item::Bool(found.leaf.is_some()))];
    if let Some((start, end)) = interval(state, found) {
        pairs.push(("intervals", Item::List(vec![Item::List(vec![Item::Int(start), Item::Int(end)])])));
    }
    Item::Map(pairs)
}

/// `/metrics/expand`
pub fn expand(state: &Graphite, headers: &HeaderMap, mut query: Query) -> Result<Response, GraphiteRefusal> {
    super::refuse_jsonp(&mut query)?;
    let by_expression = whole_number(&mut query, "groupByExpr")?.unwrap_or(0) != 0;
    let leaves_only = whole_number(&mut query, "leavesOnly")?.unwrap_or(0) != 0;
    let budget = Budget::new(&state.service.memory);
    let list = name_list(&state.service)?;
    let is_ascii = wants_ascii(headers);
    let (mut all, mut groups) = (BTreeSet::new(), Vec::new());
    for pattern in query.take_all("query") {
        let pattern = String::from_utf8_lossy(&pattern).into_owned();
        let found = nodes::find(&state.service, &list, &budget, &pattern, leaves_only)?;
        let paths: Vec<String> = found.into_iter().map(|found| found.path).collect();
        match by_expression {
            true => groups.push((pattern, paths)),
            false => all.extend(paths),
        }
    }
    if !by_expression {
        let text = texts(all.iter().map(String::as_str), is_ascii);
        return Ok(json(headers, format!("{{\"results\": {text}}}")));
    }
    let mut out = String::from("{\"results\": {");
    for (index, (pattern, paths)) in groups.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        push_text(&mut out, pattern, is_ascii);
        let _ = write!(out, ": {}", texts(paths.iter().map(String::as_str), is_ascii));
    }
    out.push_str("}}");
    Ok(json(headers, out))
}

/// `/metrics/index.json`
pub fn index(state: &Graphite, headers: &HeaderMap, mut query: Query) -> Result<Response, GraphiteRefusal> {
    super::refuse_jsonp(&mut query)?;
    let budget = Budget::new(&state.service.memory);
    let list = name_list(&state.service)?;
    let all = nodes::all(&state.service, &list, &budget)?;
    Ok(json(headers, texts(all.iter().map(String::as_str), wants_ascii(headers))))
}
