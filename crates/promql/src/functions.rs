//! The functions with what they take and answer.

use crate::ast::Type;

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: &'static [Type],
    /// How many of the last arguments may be left out; the last may be repeated if this is negative.
    pub optional: i8,
    /// What it answers.
    pub returns: Type,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

use Type::{Matrix as M, Scalar as S, Text as T, Vector as V};

const fn of(name: &'static str, takes: &'static [Type], returns: Type) -> Function {
    Function { name, takes, optional: 0, returns }
}

const fn optional(name: &'static str, takes: &'static [Type], optional: i8) -> Function {
    Function { name, takes, optional, returns: Type::Vector }
}

/// All of them, by name.
pub static FUNCTIONS: &[Function] = &[
    of("abs", &[V], V),
    of("absent", &[V], V),
    of("absent_over_time", &[M], V),
    of("acos", &[V], V),
    of("acosh", &[V], V),
    of("asin", &[V], V),
    of("asinh", &[V], V),
    of("atan", &[V], V),
    of("atanh", &[V], V),
    of("avg_over_time", &[M], V),
    of("ceil", &[V], V),
    of("changes", &[M], V),
    of("clamp", &[V, S, S], V),
    of("clamp_max", &[V, S], V),
    of("clamp_min", &[V, S], V),
    of("cos", &[V], V),
    of("cosh", &[V], V),
    of("count_over_time", &[M], V),
    optional("day_of_month", &[V], 1),
    optional("day_of_week", &[V], 1),
    optional("day_of_year", &[V], 1),
    optional("days_in_month", &[V], 1),
    of("deg", &[V], V),
    of("delta", &[M], V),
    of("deriv", &[M], V),
    of("double_exponential_smoothing", &[M, S, S], V),
    of("end", &[], S),
    of("exp", &[V], V),
    of("first_over_time", &[M], V),
    of("floor", &[V], V),
    of("histogram_avg", &[V], V),
    of("histogram_count", &[V], V),
    of("histogram_fraction", &[S, S, V], V),
    of("histogram_quantile", &[S, V], V),
    optional("histogram_quantiles", &[V, T, S, S, S, S, S, S, S, S, S, S], 9),
    of("histogram_stddev", &[V], V),
    of("histogram_stdvar", &[V], V),
    of("histogram_sum", &[V], V),
    optional("hour", &[V], 1),
    of("idelta", &[M], V),
    of("increase", &[M], V),
    optional("info", &[V, V], 1),
    optional("integral", &[M, S], 1),
    of("irate", &[M], V),
    optional("label_join", &[V, T, T, T], -1),
    of("label_replace", &[V, T, T, T, T], V),
    of("last_over_time", &[M], V),
    of("ln", &[V], V),
    of("log10", &[V], V),
    of("log2", &[V], V),
    of("mad_over_time", &[M], V),
    of("max_of", &[S, S], S),
    of("max_over_time", &[M], V),
    of("min_of", &[S, S], S),
    of("min_over_time", &[M], V),
    optional("minute", &[V], 1),
    optional("month", &[V], 1),
    of("pi", &[], S),
    of("predict_linear", &[M, S], V),
    of("present_over_time", &[M], V),
    of("quantile_over_time", &[S, M], V),
    of("rad", &[V], V),
    of("range", &[], S),
    of("rate", &[M], V),
    of("resets", &[M], V),
    optional("round", &[V, S], 1),
    of("scalar", &[V], S),
    of("sgn", &[V], V),
    of("sin", &[V], V),
    of("sinh", &[V], V),
    of("sort", &[V], V),
    optional("sort_by_label", &[V, T], -1),
    optional("sort_by_label_desc", &[V, T], -1),
    of("sort_desc", &[V], V),
    of("sqrt", &[V], V),
    of("start", &[], S),
    of("stddev_over_time", &[M], V),
    of("stdvar_over_time", &[M], V),
    of("step", &[], S),
    of("sum_over_time", &[M], V),
    of("tan", &[V], V),
    of("tanh", &[V], V),
    of("time", &[], S),
    of("timestamp", &[V], V),
    of("ts_of_first_over_time", &[M], V),
    of("ts_of_last_over_time", &[M], V),
    of("ts_of_max_over_time", &[M], V),
    of("ts_of_min_over_time", &[M], V),
    of("vector", &[S], V),
    optional("year", &[V], 1),
];

/// The function called so; names are in lower case.
pub fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.binary_search_by(|function| function.name.cmp(name)).ok().map(|index| &FUNCTIONS[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name() {
        for function in FUNCTIONS {
            assert_eq!(find(function.name), Some(function));
        }
        assert_eq!(find("nothing"), None);
    }
}
