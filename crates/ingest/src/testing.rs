//! What unit tests of this crate share.

use testkit::random::{Random, seeds};

use crate::number::Number;
use crate::pushed::Pushed;
use crate::refusal::{Refusal, Sink};

/// Samples and refusals as lines of text.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) lines: Vec<String>,
}

impl Sink for Recorded {
    fn pushed(&mut self, pushed: &Pushed<'_>) {
        let labels: Vec<_> = pushed.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let time = pushed.time.map_or("now".to_string(), |time| time.to_string());
        let value = match pushed.value {
            Number::Unsigned(number) => number.to_string(),
            Number::Signed(number) => number.to_string(),
            Number::Float(number) => number.to_string(),
        };
        self.lines.push(format!("{}{{{}}} {value} @{time} {:?}", pushed.name, labels.join(","), pushed.kind));
    }

    fn refused(&mut self, refusal: Refusal<'_>) {
        let text = String::from_utf8_lossy(refusal.text);
        self.lines.push(format!("{} {}: {text}", refusal.line, refusal.fault.label()));
    }
}

/// Gives `run` texts of these pieces, put together at random, with a byte changed in some.
pub(crate) fn pieces_at_random(usual: u64, pieces: &[&str], run: fn(&[u8])) {
    for seed in seeds(usual) {
        let mut random = Random::new(seed);
        let mut text = Vec::new();
        for _ in 0..random.below(40) {
            text.extend_from_slice(random.pick(pieces).as_bytes());
        }
        if random.once_in(3) && !text.is_empty() {
            let at = random.below(text.len() as u64) as usize;
            text[at] = random.next() as u8;
        }
        run(&text);
    }
}
