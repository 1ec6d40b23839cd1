//! What `/functions` says.

use std::fmt::Write;

use super::{Function, Kind, Param};
use crate::aggregate::Aggregation;
use crate::output::push_text;

/// A function as an object of JSON.
pub fn describe(function: &Function) -> String {
    let mut out = String::new();
    let names: Vec<&str> = function.params.iter().map(|param| param.name).collect();
    let _ = write!(
        out,
        "{{\"name\": \"{0}\", \"function\": \"{0}({1})\", \"description\": ",
        function.name,
        names.join(", ")
    );
    push_text(&mut out, function.text, true);
    let _ = write!(
        out,
        ", \"module\": \"graphite.render.functions\", \"group\": \"{}\", \"params\": [",
        function.group
    );
    for (index, param) in function.params.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        push_param(&mut out, param);
    }
    out.push_str("]}");
    out
}

fn push_param(out: &mut String, param: &Param) {
    let _ = write!(out, "{{\"name\": \"{}\", \"type\": \"{}\"", param.name, param.kind.name());
    if param.required {
        out.push_str(", \"required\": true");
    }
    if !param.default.is_empty() {
        let _ = write!(out, ", \"default\": {}", param.default);
    }
    if param.multiple {
        out.push_str(", \"multiple\": true");
    }
    if matches!(param.kind, Kind::AggFunc | Kind::AggOrSeriesFunc) {
        let mut names: Vec<String> = Aggregation::names().map(|name| format!("\"{name}\"")).collect();
        names.sort();
        let _ = write!(out, ", \"options\": [{}]", names.join(", "));
    }
    if param.kind == Kind::IntOrInterval {
        out.push_str(", \"suggestions\": [5, 7, 10, \"1min\", \"5min\", \"10min\", \"30min\", \"1hour\"]");
    }
    if param.kind == Kind::Interval {
        out.push_str(", \"suggestions\": [\"10min\", \"1h\", \"1d\"]");
    }
    out.push('}');
}
