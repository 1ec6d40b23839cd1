//! Entry points of the fuzz targets, which `cargo test fuzzing` drives by seeds.

use rrd::when::calendar::Utc;

use crate::{Context, Evaluator, Select, Source, SourceError, SourceSeries, Wanted, glob, output, time};

/// A few series in memory, and so much memory for their answers.
struct Few {
    bytes: u64,
}

impl Source for Few {
    fn fetch(&mut self, wanted: &Wanted<'_>) -> Result<Vec<SourceSeries>, SourceError> {
        let mut found = Vec::new();
        for (name, step) in [("a.b.c", 60), ("a.b.d", 60), ("a.x.c", 300)] {
            let is_meant = match wanted.select {
                Select::Path(pattern) => {
                    let globs = glob::of_path(pattern)?;
                    let nodes: Vec<&str> = name.split('.').collect();
                    globs.len() == 3 && globs.iter().zip(nodes).all(|(glob, node)| glob.matches(node))
                }
                Select::Tags(_) => true,
            };
            if is_meant {
                let start = wanted.from - wanted.from.rem_euclid(step);
                let values = vec![1.0, f64::NAN, -3.0, f64::INFINITY, 2.0, 2.5, 0.0];
                let end = start + step * 8;
                found.push(SourceSeries {
                    name: name.to_owned(),
                    start,
                    end,
                    step,
                    values,
                    ..SourceSeries::default()
                });
            }
        }
        Ok(found)
    }

    fn reserve(&mut self, bytes: u64) -> Result<(), SourceError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or("no memory")?;
        Ok(())
    }
}

/// A text as a target and as a time: each has an answer or an error, and each answer can be written.
pub fn fuzz_graphite(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = time::parse(&text, 1_700_000_000, &Utc);
    let mut few = Few { bytes: 1 << 20 };
    let mut context = Context::new(1_700_000_000, 1_700_000_600, 0.0);
    let mut evaluator = Evaluator::new(&mut few, &Utc, 1_700_000_600);
    let Ok(mut all) = evaluator.target(&text, &mut context) else { return };
    for points in [1000, 3, 1] {
        crate::limit_points(&mut all, points);
        output::json(&all, false, points == 3);
        output::raw(&all);
        output::csv(&all, &Utc);
        output::msgpack(&output::items(&all));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Function, Kind, functions};

    /// Numbers that follow from a seed.
    struct Seeded(u64);

    impl Seeded {
        fn below(&mut self, count: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) as usize) % count
        }

        fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
            all[self.below(all.len())]
        }

        fn series(&mut self, depth: usize) -> String {
            if depth == 0 || self.below(4) == 0 {
                return self
                    .pick(&["a.b.c", "a.*.c", "a.b.{c,d}", "a.b.[cd]", "x.y", "seriesByTag('a=b')"])
                    .to_owned();
            }
            let all: Vec<&Function> = functions().collect();
            let function = all[self.below(all.len())];
            let mut args = Vec::new();
            for param in function.params {
                if !param.required && self.below(2) == 0 {
                    break;
                }
                args.push(match param.kind {
                    Kind::SeriesList | Kind::SeriesLists => self.series(depth - 1),
                    Kind::Text => self
                        .pick(&["'a'", "'(.*)'", "'sumSeries(%.b.c)'", "'>'", "'max'", "'\\1x'"])
                        .to_owned(),
                    Kind::AggFunc | Kind::AggOrSeriesFunc => {
                        self.pick(&["'sum'", "'last'", "'median'", "'stddev'"]).to_owned()
                    }
                    Kind::Interval | Kind::IntOrInterval => {
                        self.pick(&["'1min'", "'7min'", "'1h'", "'1s'"]).to_owned()
                    }
                    _ => self
                        .pick(&[
                            "0",
                            "1",
                            "2",
                            "-1",
                            "0.5",
                            "true",
                            "inf",
                            "1e9",
                            "99999999999",
                            "9223372036854775807",
                            "-9223372036854775808",
                            "None",
                        ])
                        .to_owned(),
                });
            }
            format!("{}({})", function.name, args.join(","))
        }
    }

    #[test]
    fn random_targets_have_answers_or_errors() {
        let mut seeded = Seeded(1);
        for _ in 0..20_000 {
            let mut text = seeded.series(4);
            if seeded.below(5) == 0 {
                let at = seeded.below(text.len());
                text.replace_range(at..=at, seeded.pick(&["(", ")", ",", "'", "{", "é", "|", ""]));
            }
            fuzz_graphite(text.as_bytes());
        }
    }

    #[test]
    fn shifts_of_shifts_end() {
        let mut text = "a.b.c".to_owned();
        for _ in 0..50 {
            text = format!("timeShift({text},'1h')");
        }
        fuzz_graphite(text.as_bytes());
        fuzz_graphite(b"hitcount(a.b.c,'1s')|summarize('1s')|timeShift('100000y')");
    }
}
