//! The arguments of `rrdcreate(1)` that describe a definition: the reverse of [`super::text`].

use super::{Consolidation, Definition, Ds, DsKind, Rra, VERSION_SMOOTHING_WINDOW};
use crate::rpn;

/// Longest limit that `create` reads, in characters.
const LIMIT_CHARACTERS: usize = 18;

impl Definition {
    /// The step as the option `--step` takes it, in seconds.
    pub fn step_argument(&self) -> String {
        self.seconds(self.step)
    }

    /// The `DS:` and `RRA:` arguments. Where the row at which a season is smoothed follows from a file's name, it is the new one's.
    pub fn arguments(&self) -> Vec<String> {
        let sources = self.ds.iter().map(|ds| self.source_argument(ds));
        sources.chain(self.rra.iter().map(|rra| self.archive_argument(rra))).collect()
    }

    fn source_argument(&self, Ds { name, kind }: &Ds) -> String {
        let parameters = match kind {
            DsKind::Fed { heartbeat, min, max, .. } => {
                format!("{}:{}:{}", self.seconds(*heartbeat), limit(*min), limit(*max))
            }
            DsKind::Compute(program) => {
                rpn::decompile(program, |index| self.ds.get(index).map(|ds| ds.name.as_str()))
            }
        };
        format!("DS:{name}:{}:{parameters}", kind.name())
    }

    fn archive_argument(&self, rra: &Rra) -> String {
        let (name, rows) = (rra.cf.cf().name(), rra.row_count);
        match rra.cf {
            Consolidation::Plain { xff, .. } => format!("RRA:{name}:{xff}:{}:{rows}", rra.pdp_per_row),
            Consolidation::Predict { alpha, beta, seasonal, period, .. } => {
                format!("RRA:{name}:{rows}:{alpha}:{beta}:{period}:{}", seasonal + 1)
            }
            Consolidation::Seasonal { gamma, smoothing_window, predict, .. } => {
                let window = match self.version >= VERSION_SMOOTHING_WINDOW {
                    true => format!(":smoothing-window={smoothing_window}"),
                    false => String::new(),
                };
                format!("RRA:{name}:{rows}:{gamma}:{}{window}", predict + 1)
            }
            Consolidation::DevPredict { devseasonal } => format!("RRA:{name}:{rows}:{}", devseasonal + 1),
            Consolidation::Failures { devseasonal, window_length, threshold, .. } => {
                format!("RRA:{name}:{rows}:{threshold}:{window_length}:{}", devseasonal + 1)
            }
        }
    }

    /// Units as seconds, with decimals where they are no whole number of them.
    fn seconds(&self, units: u64) -> String {
        let per_second = u64::from(self.units_per_second.max(1));
        match (units / per_second, units % per_second) {
            (whole, 0) => whole.to_string(),
            (whole, rest) => {
                let millionths = rest * 1_000_000 / per_second;
                format!("{whole}.{millionths:06}").trim_end_matches('0').to_owned()
            }
        }
    }
}

/// A limit of a source, in as many digits as fit.
fn limit(value: f64) -> String {
    if value.is_nan() {
        return "U".to_owned();
    }
    let exact = [format!("{value}"), format!("{value:e}")];
    let fitting = exact.into_iter().find(|text| text.len() <= LIMIT_CHARACTERS);
    fitting.unwrap_or_else(|| format!("{value:.10e}"))
}

#[cfg(test)]
mod tests {
    use crate::definition::text::{CreateOptions, Limits, parse_create};
    use crate::definition::{Consolidation, Definition};

    fn parse(step: &str, words: &[impl AsRef<str>]) -> Definition {
        let step = crate::when::parse_step(step, true).unwrap();
        let options = CreateOptions { step, limits: Limits::STORE, file_name: b"x.rrd" };
        parse_create(&options, words).unwrap()
    }

    fn check(step: &str, words: &[&str], want: &[&str]) {
        let definition = parse(step, words);
        assert_eq!(definition.arguments(), want);
        assert_eq!(definition.step_argument(), step);
        // As text, because an unlimited source is no number, which is never equal.
        let again = parse(&definition.step_argument(), &definition.arguments());
        assert_eq!(format!("{again:?}"), format!("{definition:?}"));
    }

    #[test]
    fn what_create_takes_comes_back() {
        let same = |step: &str, words: &[&str]| check(step, words, words);
        same("300", &["DS:a:GAUGE:600:U:U", "RRA:AVERAGE:0.5:1:10", "RRA:MAX:0:12:20"]);
        same(
            "10",
            &[
                "DS:in:COUNTER:20:0:12500000000",
                "DS:out:DDERIVE:20:-1.5:4000",
                "DS:sum:COMPUTE:in,out,+,8,*",
                "RRA:LAST:0.99:6:5",
            ],
        );
        same("0.5", &["DS:a:GAUGE:1.25:U:U", "RRA:MIN:0.5:1:10"]);
        check(
            "60",
            &["DS:a:GAUGE:1m30:U:0.1".replace("1m30", "90").as_str(), "RRA:AVERAGE:0.5:1h:1d"],
            &["DS:a:GAUGE:90:U:0.1", "RRA:AVERAGE:0.5:60:24"],
        );
    }

    #[test]
    fn predictions_come_back_with_their_mates() {
        let words = [
            "DS:a:GAUGE:600:U:U",
            "RRA:MHWPREDICT:1440:0.1:0.0035:288:2",
            "RRA:SEASONAL:288:0.1:1:smoothing-window=0.1",
            "RRA:DEVSEASONAL:288:0.1:1:smoothing-window=0.2",
            "RRA:DEVPREDICT:1440:3",
            "RRA:FAILURES:288:7:9:3",
        ];
        check("300", &words, &words);
        let short = parse("300", &["DS:a:GAUGE:600:U:U", "RRA:HWPREDICT:1440:0.1:0.0035:288"]);
        let again = parse("300", &short.arguments());
        // The window of those that HWPREDICT made by itself cannot be said in that version.
        let shape = |definition: &Definition| {
            let plain = definition.rra.iter().map(|rra| match &rra.cf {
                Consolidation::Seasonal { deviation, predict, .. } => {
                    (format!("{deviation} {predict}"), rra.row_count)
                }
                cf => (format!("{cf:?}"), rra.row_count),
            });
            plain.collect::<Vec<_>>()
        };
        assert_eq!(shape(&again), shape(&short));
    }

    #[test]
    fn limits_have_the_digits_that_fit() {
        let limits = [0.1, -1.0 / 3.0, 1e18, 1.234567890123e300, f64::MIN_POSITIVE, -123_456_789.123_456_78];
        let texts = limits.map(super::limit);
        assert_eq!(texts[0], "0.1");
        for (text, limit) in texts.iter().zip(limits) {
            let read: f64 = text.parse().unwrap();
            assert!(
                text.len() <= super::LIMIT_CHARACTERS && (read - limit).abs() <= limit.abs() * 1e-10,
                "{text}"
            );
        }
    }
}
