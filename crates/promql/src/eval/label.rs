//! Functions of labels and of order.

use crate::ast::Expr;
use crate::labels::NAME;
use crate::value::{Column, Grid, is_absent};

use super::{EvalError, Evaluator, Result, merge, refuse};

/// The most bytes of a label's value that a query makes; series are pushed with fewer. Calls within calls would multiply them.
const VALUE_BYTES_MAX: usize = 64 << 10;
/// The most bytes of a value that is made only to see that it is too long: what a replacement repeats is not known before.
const MADE_BYTES_MAX: usize = 1 << 20;

impl Evaluator<'_> {
    pub(super) fn label_replace(&mut self, arguments: &[Expr], grid: Grid) -> Result<Vec<Column>> {
        let mut texts = Vec::with_capacity(4);
        for argument in &arguments[1..] {
            texts.push(self.text(argument, grid)?);
        }
        let [target, replacement, source, pattern] = texts.as_slice() else {
            return refuse("too few arguments");
        };
        let Ok(regex) = crate::matcher::anchored(pattern) else {
            return refuse(format!("invalid regular expression in label_replace(): {pattern}"));
        };
        if target.is_empty() {
            return refuse(format!("invalid destination label name in label_replace(): {target}"));
        }
        let references = replacement.matches('$').count();
        let mut columns = self.vector(&arguments[0], grid)?;
        for column in &mut columns {
            let text = column.labels.get(source);
            let Some(found) = regex.captures(text) else { continue };
            if replacement.len() + references * text.len() > MADE_BYTES_MAX {
                return too_long("label_replace");
            }
            let mut value = String::new();
            found.expand(replacement, &mut value);
            self.set(column, target, &value, "label_replace")?;
        }
        merge(columns)
    }

    pub(super) fn label_join(&mut self, arguments: &[Expr], grid: Grid) -> Result<Vec<Column>> {
        let mut texts = Vec::with_capacity(arguments.len());
        for argument in &arguments[1..] {
            texts.push(self.text(argument, grid)?);
        }
        let [target, separator, sources @ ..] = texts.as_slice() else { return refuse("too few arguments") };
        if sources.iter().any(String::is_empty) {
            return refuse("invalid source label name in label_join(): ");
        }
        if target.is_empty() {
            return refuse(format!("invalid destination label name in label_join(): {target}"));
        }
        let mut columns = self.vector(&arguments[0], grid)?;
        for column in &mut columns {
            let values: Vec<&str> = sources.iter().map(|source| column.labels.get(source)).collect();
            if values.iter().map(|value| value.len() + separator.len()).sum::<usize>() > MADE_BYTES_MAX {
                return too_long("label_join");
            }
            let value = values.join(separator);
            self.set(column, target, &value, "label_join")?;
        }
        merge(columns)
    }

    /// Sets a label, for which there must be memory; a name that is set is not removed later.
    fn set(&mut self, column: &mut Column, name: &str, value: &str, function: &str) -> Result<()> {
        if value.len() > VALUE_BYTES_MAX {
            return too_long(function);
        }
        self.source.reserve((name.len() + value.len()) as u64)?;
        column.labels = column.labels.with(name, value);
        if name == NAME {
            column.unnamed = false;
        }
        Ok(())
    }

    pub(super) fn sort(
        &mut self,
        expr: &Expr,
        name: &str,
        arguments: &[Expr],
        grid: Grid,
    ) -> Result<Vec<Column>> {
        if self.is_range {
            let text = "sort is ineffective for range queries since results are always ordered by labels";
            self.notes.warn(text.to_owned(), Some(expr.span));
        }
        let mut columns = self.vector(&arguments[0], grid)?;
        let mut labels = Vec::new();
        for argument in &arguments[1..] {
            labels.push(self.text(argument, grid)?);
        }
        if self.is_range || grid.count != 1 {
            return Ok(columns);
        }
        columns.retain(|column| !is_absent(column.values[0]));
        let descends = name.ends_with("_desc");
        if name.starts_with("sort_by_label") {
            columns.sort_by(|a, b| {
                let by_labels = labels.iter().map(|label| natural(a.labels.get(label), b.labels.get(label)));
                let order = by_labels.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then);
                let order = order.then_with(|| a.labels.cmp(&b.labels));
                if descends { order.reverse() } else { order }
            });
        } else {
            columns.sort_by(|a, b| by_value(a.values[0], b.values[0], descends));
        }
        Ok(columns)
    }
}

fn too_long<T>(function: &str) -> Result<T> {
    Err(EvalError::Limit(format!("{function}() makes a label of more than {VALUE_BYTES_MAX} bytes")))
}

/// The order of two values; NaN comes last.
pub(super) fn by_value(a: f64, b: f64, descends: bool) -> std::cmp::Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => std::cmp::Ordering::Equal,
        (true, false) => std::cmp::Ordering::Greater,
        (false, true) => std::cmp::Ordering::Less,
        _ if descends => b.partial_cmp(&a).unwrap_or(std::cmp::Ordering::Equal),
        _ => a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal),
    }
}

/// The order of texts in which numbers count as numbers: `a2` before `a10`.
fn natural(a: &str, b: &str) -> std::cmp::Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (m, n) = (digits(a), digits(b));
        let order = if m > 0 && n > 0 {
            let strip = |text: &[u8], count: usize| {
                let zeros = text[..count].iter().take_while(|byte| **byte == b'0').count();
                text[zeros..count].to_vec()
            };
            let (x, y) = (strip(a, m), strip(b, n));
            (a, b) = (&a[m..], &b[n..]);
            x.len().cmp(&y.len()).then(x.cmp(&y))
        } else {
            match (a.split_first(), b.split_first()) {
                (Some((x, rest_a)), Some((y, rest_b))) => {
                    (a, b) = (rest_a, rest_b);
                    x.cmp(y)
                }
                (x, y) => return x.is_some().cmp(&y.is_some()),
            }
        };
        if order.is_ne() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_texts_count_as_numbers() {
        assert!(natural("a2", "a10").is_lt());
        assert!(natural("a10b", "a10a").is_gt());
        assert!(natural("a", "a1").is_lt());
        assert!(natural("007", "7").is_eq());
    }
}
