//! Series of numbers as scripts write them: `1 2+3x4 _ stale`.

use roundel_promql::value::ABSENT;

/// One place of a series: nothing, the end of the series, or a value.
pub type Place = Option<f64>;

/// The places that `text` says; `None` when one of them is a native histogram.
pub fn places(text: &str) -> Option<Vec<Place>> {
    if text.contains("{{") {
        return None;
    }
    let mut all = Vec::new();
    for word in text.split_whitespace() {
        expand(word, &mut all);
    }
    Some(all)
}

fn expand(word: &str, all: &mut Vec<Place>) {
    if let Some(count) = word.strip_prefix("_x") {
        all.extend(vec![None; count.parse().unwrap()]);
        return;
    }
    match word {
        "_" => return all.push(None),
        "stale" => return all.push(Some(ABSENT)),
        _ => {}
    }
    let Some((values, count)) = word.rsplit_once('x') else { return all.push(Some(number(word))) };
    let count: usize = count.parse().unwrap();
    let operator = values.char_indices().skip(1).filter(|(at, c)| {
        let exponent =
            matches!(values.as_bytes()[at - 1], b'e' | b'E') && values.as_bytes()[0].is_ascii_digit();
        matches!(c, '+' | '-') && !exponent
    });
    let Some((at, sign)) = operator.last() else {
        let value = if values == "stale" { ABSENT } else { number(values) };
        all.extend(vec![Some(value); count + 1]);
        return;
    };
    let (first, step) = (number(&values[..at]), number(&values[at + 1..]));
    let step = if sign == '-' { -step } else { step };
    let mut value = first;
    for _ in 0..=count {
        all.push(Some(value));
        value += step;
    }
}

pub fn number(text: &str) -> f64 {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = roundel_promql::number::parse(text).unwrap_or_else(|| panic!("{text:?} is not a number"));
    if negative { -value } else { value }
}
