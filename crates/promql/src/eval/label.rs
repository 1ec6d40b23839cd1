//! Functions of labels and of order.

use crate::ast::Expr;
use crate::labels::NAME;
use crate::value::{Column, Grid, is_absent};

use super::{Evaluator, Result, merge, refuse};

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
        let mut columns = self.vector(&arguments[0], grid)?;
        for column in &mut columns {
            let Some(found) = regex.captures(column.labels.get(source)) else { continue };
            let mut value = String::new();
            found.expand(replacement, &mut value);
            set(column, target, &value);
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
            let value = values.join(separator);
            set(column, target, &value);
        }
        merge(columns)
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

/// Sets a label; a name that is set is not removed later.
fn set(column: &mut Column, name: &str, value: &str) {
    column.labels = column.labels.with(name, value);
    if name == NAME {
        column.unnamed = false;
    }
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
