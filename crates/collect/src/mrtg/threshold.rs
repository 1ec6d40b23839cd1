//! Thresholds: what is done when a stored rate leaves its bounds, and when it comes back.

use std::collections::BTreeSet;

use super::config::{Config, TargetSettings};

/// What programs are told when there is no description, as by Debian's MRTG.
const NO_DESCRIPTION: &str = "No Description";

/// The state of a threshold that is broken: the target, and which threshold.
pub type Broken = BTreeSet<(String, Bound)>;

/// One of the thresholds of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bound {
    /// Of the forecast's failures, not of the rate.
    pub is_forecast: bool,
    /// The first value or the second.
    pub is_output: bool,
    /// Least or most.
    pub is_max: bool,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Run a program.
    Run {
        /// Its path.
        program: String,
        /// The target, the threshold, the value, and when it is broken, the description.
        arguments: Vec<String>,
        /// What is added to its environment.
        environment: Vec<(String, String)>,
    },
    /// Send a mail.
    Mail {
        /// To whom.
        to: String,
        /// Its subject.
        subject: String,
        /// Its text.
        text: String,
    },
}

/// The thresholds of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    target: String,
    bounds: Vec<(Bound, f64, String)>,
    /// What values are percent of, if a bound is given in percent.
    maxima: [Option<f64>; 2],
    /// Programs by (forecast, output): when broken, when well again.
    programs: [[[Option<String>; 2]; 2]; 2],
    mail_to: [Option<String>; 2],
    environment: Vec<(String, String)>,
    description: [Option<String>; 2],
    hysteresis: [f64; 2],
    /// With a directory for its state, MRTG acts when a bound is crossed; else in each round in which it is broken.
    is_stateful: bool,
}

/// The rates of a target's two values, and the failures of their forecasts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Stored averages.
    pub rates: [Option<f64>; 2],
    /// Of the archive FAILURES.
    pub failures: [Option<f64>; 2],
}

impl Bound {
    /// How MRTG's file in `ThreshDir` ends, which is there as long as the bound is broken.
    pub fn file_ending(self) -> String {
        let prefix = if self.is_forecast { "hw" } else { "" };
        let end = if self.is_max { "max" } else { "min" };
        let side = if self.is_output { "O" } else { "I" };
        format!("{prefix}thresh{end}{side}")
    }
}

impl Thresholds {
    /// The thresholds of a target, if it has any.
    pub fn of(config: &Config, target: &TargetSettings) -> Option<Self> {
        let text =
            |keyword: String| target.get(&keyword).filter(|value| !value.is_empty()).map(str::to_string);
        let mut bounds = Vec::new();
        for (is_forecast, prefix) in [(false, ""), (true, "hw")] {
            for (is_output, side) in [(false, "i"), (true, "o")] {
                for (is_max, end) in [(false, "min"), (true, "max")] {
                    let Some(value) = text(format!("{prefix}thresh{end}{side}")) else { continue };
                    let max = maximum(target, is_output);
                    let bound = match value.trim().strip_suffix('%') {
                        Some(share) => share
                            .trim()
                            .parse()
                            .ok()
                            .zip(max)
                            .map(|(share, max): (f64, f64)| share / 100.0 * max),
                        None => value.trim().parse().ok(),
                    };
                    let Some(bound) = bound.filter(|bound: &f64| bound.is_finite()) else { continue };
                    bounds.push((Bound { is_forecast, is_output, is_max }, bound, value));
                }
            }
        }
        if bounds.is_empty() {
            return None;
        }
        let hysteresis = |keyword| config.get(keyword).and_then(|value| value.parse().ok()).unwrap_or(0.1);
        Some(Thresholds {
            target: target.name.clone(),
            bounds,
            programs: ["", "hw"].map(|prefix| {
                ["i", "o"].map(|side| ["", "ok"].map(|when| text(format!("{prefix}threshprog{when}{side}"))))
            }),
            mail_to: ["", "hw"].map(|prefix| text(format!("{prefix}threshmailaddress"))),
            environment: target.get("setenv").and_then(environment).unwrap_or_default(),
            description: ["", "hw"].map(|prefix| text(format!("{prefix}threshdesc"))),
            hysteresis: [hysteresis("threshhyst"), hysteresis("hwthreshhyst")],
            maxima: [false, true].map(|is_output| maximum(target, is_output)),
            is_stateful: config.get("threshdir").is_some(),
        })
    }

    /// Whether any of them is of a forecast.
    pub fn has_forecast(&self) -> bool {
        self.bounds.iter().any(|(bound, ..)| bound.is_forecast)
    }

    /// Its target, and its bounds.
    pub fn keys(&self) -> impl Iterator<Item = (String, Bound)> {
        self.bounds.iter().map(|(bound, ..)| (self.target.clone(), *bound))
    }

    /// Whether a broken bound is remembered in the directory of `ThreshDir`.
    pub fn is_stateful(&self) -> bool {
        self.is_stateful
    }

    /// What `rates` call for. A value that is unknown changes nothing.
    pub fn decide(&self, rates: &Rates, broken: &mut Broken) -> Vec<Action> {
        let mut actions = Vec::new();
        for (bound, limit, written) in &self.bounds {
            let values = if bound.is_forecast { &rates.failures } else { &rates.rates };
            let Some(value) = values[usize::from(bound.is_output)] else { continue };
            let key = (self.target.clone(), *bound);
            let was_broken = broken.contains(&key);
            let is_broken = if bound.is_max { value > *limit } else { value < *limit };
            if is_broken {
                broken.insert(key);
                if !(self.is_stateful && was_broken) {
                    self.act(*bound, written, value, 0, &mut actions);
                }
            } else if was_broken {
                let slack = limit.abs() * self.hysteresis[usize::from(bound.is_forecast)];
                let is_well = if bound.is_max { value <= limit - slack } else { value >= limit + slack };
                if is_well {
                    broken.remove(&key);
                    if self.is_stateful {
                        self.act(*bound, written, value, 1, &mut actions);
                    }
                }
            }
        }
        actions
    }

    /// The program and the mail for a bound that is broken (`when` = 0) or well again (1).
    fn act(&self, bound: Bound, written: &str, value: f64, when: usize, actions: &mut Vec<Action>) {
        let forecast = usize::from(bound.is_forecast);
        let name = ["THRESH_DESC", "HWTHRESH_DESC"][forecast];
        let max = self.maxima[usize::from(bound.is_output)].filter(|_| written.trim().ends_with('%'));
        let value = max.map_or_else(|| value.to_string(), |max| format!("{:.1}", value * 100.0 / max));
        if let Some(program) = &self.programs[forecast][usize::from(bound.is_output)][when] {
            let mut environment = self.environment.clone();
            environment
                .extend(self.description[forecast].iter().map(|text| (name.to_string(), text.clone())));
            let mut arguments = vec![self.target.clone(), written.to_string(), value.clone()];
            if when == 0 {
                let description = self.description[forecast].as_deref();
                arguments.push(description.unwrap_or(NO_DESCRIPTION).to_string());
            }
            actions.push(Action::Run { program: program.clone(), arguments, environment });
        }
        if let Some(to) = &self.mail_to[forecast] {
            let state = ["broken", "un-broken"][when];
            let kind = if bound.is_max { "maximum" } else { "minimum" };
            let side = if bound.is_output { "output" } else { "input" };
            let subject = format!("[MRTG] {state}: {kind} {side} threshold of {}", self.target);
            let description = self.description[forecast].as_deref().unwrap_or("");
            let text = format!(
                "Target: {}\nThe {kind} {side} threshold is {written}, the value is {value}.\n{description}\n",
                self.target
            );
            actions.push(Action::Mail { to: to.clone(), subject, text });
        }
    }
}

/// What a value is at most.
fn maximum(target: &TargetSettings, is_output: bool) -> Option<f64> {
    let max = target.get(if is_output { "maxbytes2" } else { "maxbytes1" });
    max.or_else(|| target.get("maxbytes")).and_then(|max| max.parse().ok())
}

/// `NAME="value" NAME="value"`, or `None`.
pub fn environment(value: &str) -> Option<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut rest = value.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"")?;
        let (text, after) = after.split_once('"')?;
        let word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if name.is_empty() || !name.chars().all(word) {
            return None;
        }
        pairs.push((name.to_string(), text.to_string()));
        rest = after.trim_start();
    }
    (!pairs.is_empty()).then_some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thresholds(text: &str) -> Thresholds {
        let text = format!("WorkDir: /\nTarget[a]: `x`\nTitle[a]: t\nMaxBytes[a]: 1000\n{text}");
        let mut none = |_: &str| Err(String::new());
        let config = super::super::config::parse("x", text.as_bytes(), &mut none).unwrap();
        Thresholds::of(&config, &config.targets[0]).unwrap()
    }

    fn programs(thresholds: &Thresholds, broken: &mut Broken, value: f64) -> Vec<(String, Vec<String>)> {
        let rates = Rates { rates: [Some(value), None], failures: [None; 2] };
        let actions = thresholds.decide(&rates, broken).into_iter();
        let runs = actions.filter_map(|action| match action {
            Action::Run { program, arguments, .. } => Some((program, arguments)),
            Action::Mail { .. } => None,
        });
        runs.collect()
    }

    #[test]
    fn a_bound_acts_when_it_is_crossed_and_when_the_rate_is_well_back() {
        let thresholds = thresholds(
            "ThreshDir: /tmp\nThreshMaxI[a]: 50%\nThreshProgI[a]: /bad\nThreshProgOKI[a]: /good\n",
        );
        let mut broken = Broken::new();
        let mut names = |value| {
            let runs = programs(&thresholds, &mut broken, value);
            runs.into_iter()
                .map(|(program, arguments)| format!("{program} {}", arguments.join(" ")))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(500.0), [""; 0]);
        assert_eq!(names(501.0), ["/bad a 50% 50.1 No Description"]);
        assert_eq!(names(600.0), [""; 0], "said");
        assert_eq!(names(451.0), [""; 0], "within a tenth of the threshold");
        assert_eq!(names(450.0), ["/good a 50% 45.0"]);
        assert_eq!(names(10.0), [""; 0]);
    }

    #[test]
    fn without_a_directory_a_broken_bound_acts_each_time() {
        let thresholds = thresholds(
            "ThreshMinI[a]: 5\nThreshProgI[a]: /bad\nThreshProgOKI[a]: /good\nThreshMailAddress[a]: a@b\n\
             ThreshDesc[a]: low\nSetEnv[a]: A=\"1\" B=\"x y\"\n",
        );
        let mut broken = Broken::new();
        let rates = Rates { rates: [Some(4.0), Some(1.0)], failures: [None; 2] };
        for _ in 0..2 {
            let actions = thresholds.decide(&rates, &mut broken);
            let Action::Run { environment, arguments, .. } = &actions[0] else { panic!() };
            assert_eq!(arguments.join(" "), "a 5 4 low");
            let pairs = [("A", "1"), ("B", "x y"), ("THRESH_DESC", "low")];
            assert_eq!(*environment, pairs.map(|(a, b)| (a.to_string(), b.to_string())));
            let Action::Mail { to, subject, .. } = &actions[1] else { panic!() };
            assert!(to == "a@b" && subject.contains("broken: minimum input"), "{subject}");
        }
        assert_eq!(programs(&thresholds, &mut broken, 9.0), []);
        let unknown = Rates::default();
        assert_eq!(thresholds.decide(&unknown, &mut broken), []);
    }

    #[test]
    fn environments_are_quoted() {
        assert_eq!(environment("A=b"), None);
        assert_eq!(environment(""), None);
        assert_eq!(environment("A=\"\"").unwrap().len(), 1);
    }
}
