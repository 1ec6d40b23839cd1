//! Entry points of the fuzz targets, which `cargo test fuzzing` drives by seeds.

use crate::value::ABSENT;
use crate::{
    Data, Grid, Labels, Options, RowKind, Selected, Source, SourceError, SourceSeries, Wanted, evaluate,
    format, parse, pretty,
};

/// A few series in memory, and so much memory for their answers.
struct Few {
    bytes: u64,
}

impl Source for Few {
    fn select(&mut self, wanted: &Wanted<'_>) -> Result<Selected, SourceError> {
        let mut selected = Selected::default();
        for (index, name) in ["a", "b_total", "c_bucket", "c_bucket"].into_iter().enumerate() {
            let labels = Labels::new([("__name__", name), ("le", ["", "", "1", "+Inf"][index]), ("x", "y")]);
            if wanted.matchers.iter().all(|matcher| matcher.matches(labels.get(&matcher.name))) {
                let values = vec![1.0, f64::NAN, ABSENT, -3.0, f64::INFINITY, 2.0];
                let times = (0..6).map(|time| time * 60_000).collect();
                let kind = if index == 1 { RowKind::Counter { row: 60_000 } } else { RowKind::Points };
                selected.series.push(SourceSeries { labels, times, values, kind, ..SourceSeries::default() });
            }
        }
        Ok(selected)
    }

    fn reserve(&mut self, bytes: u64) -> Result<(), SourceError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or("no memory")?;
        Ok(())
    }
}

/// A text as a query: what can be read can be written, and read again; what is written is the same then; and every query has an
/// answer or an error.
pub fn fuzz_promql(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(expr) = parse(&text) else { return };
    let written = format(&expr);
    if let Ok(again) = parse(&written) {
        assert_eq!(format(&again), written);
    }
    pretty(&expr);
    let options = Options { points_max: 2_000, values_max: 100_000, ..Options::default() };
    for (grid, is_range) in [(Grid::at(240_000), false), (Grid::new(0, 600_000, 60_000), true)] {
        let Ok(answer) = evaluate(&expr, grid, is_range, &options, &mut Few { bytes: 10 << 20 }) else {
            continue;
        };
        answer.notes.warnings(&text);
        answer.notes.infos(&text);
        if let Data::Vector(columns) = answer.data {
            assert!(columns.iter().all(|column| column.values.len() == grid.count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzzing_by_seeds() {
        let parts = [
            "a",
            "b_total",
            "c_bucket",
            "{x=\"y\"}",
            "[5m]",
            "[5m:1m]",
            " + ",
            " - ",
            " or ",
            " == bool ",
            "(",
            ")",
            ", ",
            "rate(",
            "sum(",
            "sum by (x) (",
            "topk(2, ",
            "histogram_quantile(0.5, ",
            "1",
            "NaN",
            " offset 1m",
            " @ 60",
            "avg_over_time(",
            " smoothed",
            " on (x) ",
            " group_left ",
            "label_replace(a, \"x\", \"$1\", \"x\", \"(.*)\")",
            "\"t\"",
            "-",
            "absent(",
            "info(",
            "time()",
            " fill(0) ",
            "quantile_over_time(2, ",
            "[step()]",
            "count_values(\"v\", ",
        ];
        let mut random = testkit::random::Random::new(1);
        for _ in 0..30_000 {
            let count = random.between(1, 12);
            let mut text: String = (0..count).map(|_| random.pick(&parts)).collect();
            // Most of what is open is closed, so that more of it is a query.
            let open = text.matches('(').count().saturating_sub(text.matches(')').count());
            text.push_str(&")".repeat(open));
            fuzz_promql(text.as_bytes());
        }
        fuzz_promql(&[0xff, b'(', 0]);
    }

    #[test]
    fn numbers_of_many_times_take_memory() {
        // Each level of the nesting holds a million numbers while the rest is computed.
        let sum = format!("{}1{}", "1+(".repeat(60), ")".repeat(60));
        let round = format!("{}vector(1){}", "round(".repeat(60), ")".repeat(60));
        for inner in [format!("vector({sum})"), round] {
            let expr = parse(&format!("max_over_time({inner}[1000000s:1s])")).unwrap();
            let refused =
                evaluate(&expr, Grid::at(0), false, &Options::default(), &mut Few { bytes: 100 << 20 });
            assert_eq!(refused.unwrap_err().to_string(), "no memory");
        }
    }

    #[test]
    fn labels_of_labels_take_memory_and_have_a_longest() {
        let nested = |depth: usize, begin: &str, end: &str| {
            format!("{}a{}", begin.repeat(depth), format!(",{end})").repeat(depth))
        };
        let replaced = format!("\"x\",\"{}\",\"x\",\"(.*)\"", "$1".repeat(30));
        let joined = "\"x\",\"-\",\"x\",\"x\",\"x\",\"x\"";
        let evaluated = |text: String, bytes: u64| {
            let expr = parse(&text).unwrap();
            evaluate(&expr, Grid::at(240_000), false, &Options::default(), &mut Few { bytes })
        };
        for (function, end, depth) in [("label_replace", replaced.as_str(), 2), ("label_join", joined, 5)] {
            let begin = format!("{function}(");
            let refused = evaluated(nested(12, &begin, end), 1 << 40).unwrap_err().to_string();
            assert_eq!(refused, format!("{function}() makes a label of more than 65536 bytes"));
            let refused = evaluated(nested(depth, &begin, end), 900).unwrap_err().to_string();
            assert_eq!(refused, "no memory", "{function}");
            let Data::Vector(columns) = evaluated(nested(depth, &begin, end), 1 << 20).unwrap().data else {
                panic!("{function}")
            };
            assert!(columns[0].labels.get("x").len() >= 900, "{columns:?}");
        }
    }

    #[test]
    fn the_deepest_expressions_fit_on_a_small_stack() {
        let deep = |depth: usize| format!("{}a{}", "abs(".repeat(depth), ")".repeat(depth));
        let chain = vec!["a"; 195].join(" + ");
        let run = move || {
            for text in [deep(95), chain, "-".repeat(90) + "a"] {
                let expr = parse(&text).unwrap_or_else(|error| panic!("{error}"));
                evaluate(&expr, Grid::at(0), false, &Options::default(), &mut Few { bytes: 10 << 20 })
                    .unwrap();
            }
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
    }
}
