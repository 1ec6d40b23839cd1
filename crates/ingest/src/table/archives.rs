//! The archives that a rule gives its RRDs.

use serde::Deserialize;

/// `archives`: words, or the name of a set.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged, expecting = "give \"short\", \"standard\" or \"long\", or a list of RRA words")]
pub enum Archives {
    /// A set's name.
    Set(String),
    /// Words of `rrdcreate(1)`.
    Words(Vec<String>),
}

/// Sets of archives: a function, the seconds of a row (0: the step), and days.
type ArchiveSet = &'static [(&'static str, u64, u64)];

const SHORT: ArchiveSet = &[("AVERAGE", 0, 2), ("AVERAGE", 300, 14)];
const STANDARD: ArchiveSet =
    &[("AVERAGE", 0, 2), ("AVERAGE", 300, 30), ("AVERAGE", 3600, 730), ("MAX", 3600, 730)];
const LONG: ArchiveSet = &[
    ("AVERAGE", 0, 7),
    ("AVERAGE", 300, 90),
    ("AVERAGE", 3600, 1825),
    ("AVERAGE", 86_400, 7300),
    ("MIN", 3600, 1825),
    ("MAX", 3600, 1825),
    ("MAX", 86_400, 7300),
];

impl Archives {
    /// The words for a step in seconds.
    pub(super) fn words(&self, step: u64) -> Result<Vec<String>, String> {
        let set = match self {
            Archives::Words(words) => return Ok(words.clone()),
            Archives::Set(name) => match name.as_str() {
                "short" => SHORT,
                "standard" => STANDARD,
                "long" => LONG,
                _ => {
                    return Err(format!("archives: \"{name}\" is none of short, standard, long, nor a list"));
                }
            },
        };
        let mut words = Vec::new();
        for (function, row, days) in set {
            let steps = row.div_ceil(step).max(1);
            let rows = (days * 86_400).div_ceil(steps * step).max(1);
            words.push(format!("RRA:{function}:0.5:{steps}:{rows}"));
        }
        // Of a long step, rows of several sets are the same.
        let of = |word: &String| word.rsplit_once(':').map(|(row, _)| row.to_owned());
        let all = words.clone();
        let mut at = 0;
        words.retain(|word| {
            at += 1;
            !all[at..].iter().any(|later| of(later) == of(word))
        });
        Ok(words)
    }
}
