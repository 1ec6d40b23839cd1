//! The table of functions. `seriesByTag` and `template` are parts of the language, not of the table.

mod choose;
mod combine;
mod transform;

use super::{Call, CfRule, Function, Kind, Param};

/// What a function does to consolidation functions, and whether its series keep the values they had.
type Rule = (CfRule, bool);

/// It computes.
const COMPUTES: Rule = (CfRule::Resets, false);
/// It computes what is the same for the largest of a span.
const KEEPS: Rule = (CfRule::Keeps, false);
/// It chooses among series, or names them.
const CHOOSES: Rule = (CfRule::Keeps, true);
/// It says how series are consolidated, to a sum.
const NAMES: Rule = (CfRule::Resets, true);
/// It is `consolidateBy`.
const CONSOLIDATES: Rule = (CfRule::Sets, true);

/// The first parameter of most.
const SERIES: Param = must("seriesList", Kind::SeriesList);

/// A parameter that may be left out, with its default as JSON.
const fn may(name: &'static str, kind: Kind, default: &'static str) -> Param {
    Param { name, kind, required: false, multiple: false, default }
}

/// A parameter that must be there.
const fn must(name: &'static str, kind: Kind) -> Param {
    Param { name, kind, required: true, multiple: false, default: "" }
}

/// A parameter that may be repeated.
const fn many(name: &'static str, kind: Kind, required: bool) -> Param {
    Param { name, kind, required, multiple: true, default: "" }
}

/// A function.
const fn function(
    name: &'static str,
    group: &'static str,
    (cf, is_in_place): Rule,
    params: &'static [Param],
    call: Call,
    text: &'static str,
) -> Function {
    Function { name, group, text, params, cf, is_in_place, call }
}

/// All functions.
pub fn all() -> impl Iterator<Item = &'static Function> {
    combine::FUNCTIONS.iter().chain(transform::FUNCTIONS).chain(choose::FUNCTIONS)
}
