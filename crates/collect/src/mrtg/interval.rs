//! How often targets are polled, in MRTG's arithmetic.

/// `Interval`: minutes and seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Minutes, as the double that MRTG computes with.
    pub minutes: f64,
}

impl Default for Interval {
    fn default() -> Self {
        Interval { minutes: 5.0 }
    }
}

impl Interval {
    /// Reads `MM` or `MM:SS`, the first such number in the text: `5.5` is 5. `None` below a second and above an hour.
    pub fn parse(text: &str) -> Option<Self> {
        let start = text.find(|letter: char| letter.is_ascii_digit())?;
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let text = &text[start..];
        let (minutes, rest) = text.split_at(digits(text));
        let seconds = rest.strip_prefix(':').map_or("", |rest| &rest[..digits(rest)]);
        let number = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u32>().ok() };
        let minutes = f64::from(number(minutes)?) + f64::from(number(seconds)?) / 60.0;
        (1.0 / 60.0..=60.0).contains(&minutes).then_some(Interval { minutes })
    }

    /// The step of RRDs in seconds. 49 intervals lose a second in the double: 1:40 is 99 s.
    pub fn step(self) -> u64 {
        (self.minutes * 60.0) as u64
    }

    /// The heartbeat of data sources in seconds.
    pub fn heartbeat(self) -> u64 {
        600.max(2 * self.step())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_mrtg_s_doubles() {
        let step = |text| Interval::parse(text).map(Interval::step);
        assert_eq!(
            ["5", "1:40", "1:55", "2:3", "0:10", "60", "5.5", "0:1"].map(step),
            [300, 99, 114, 122, 10, 3600, 300, 1].map(Some)
        );
        assert_eq!(["", "0", "0.5", "61", "60:01"].map(step), [None; 5]);
        let short = (1..3600).filter(|second| {
            Interval::parse(&format!("{}:{}", second / 60, second % 60))
                .is_none_or(|interval| interval.step() != *second)
        });
        assert_eq!(short.count(), 49);
    }
}
