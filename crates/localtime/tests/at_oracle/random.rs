//! Time specifications by seed: from the grammar, and mutated ones.

/// A small generator; the same seed gives the same texts.
pub struct Random(u64);

const UNITS: &[&str] = &[
    "", "s", "sec", "second", "seconds", "m", "min", "minute", "minutes", "h", "hr", "hour", "hours", "d",
    "day", "days", "w", "wk", "week", "weeks", "mon", "month", "months", "y", "yr", "year", "years", "M",
    "D", "x", "secs", "noon",
];
const DAYS: &[&str] = &[
    "yesterday",
    "today",
    "tomorrow",
    "sun",
    "Monday",
    "tue",
    "WED",
    "thursday",
    "fri",
    "Saturday",
    "jan 5",
    "feb 29",
    "mar 31",
    "october 25 2026",
    "nov 1 26",
    "Dec 31 1999",
    "3/29/26",
    "29.03.2026",
    "25.10.26",
    "04/05/2026",
    "04.10.2026",
    "20261025",
    "20260329",
    "20261101",
    "20200229",
    "1/31",
    "31.12.",
];
const HOURS: &[&str] = &[
    "midnight", "noon", "teatime", "0", "7", "12", "23", "2:30", "02:15", "1:59", "3:00", "12:30am",
    "12:30pm", "8am", "11pm", "8 pm", "24", "00:00",
];
const PIECES: &[&str] = &[
    "+",
    "-",
    ":",
    ".",
    "/",
    " ",
    "_",
    ",",
    "5",
    "30",
    "12345",
    "4294967298",
    "noon",
    "am",
    "pm",
    "x",
    "now",
    "start",
    "e",
    "epoch",
    "jan",
    "mon",
    "m",
    "@",
    "!",
    "20261025",
    "900000000",
    "\t",
    "y",
    "d",
];

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % limit
    }

    fn one<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn offsets(&mut self, largest: usize) -> String {
        let mut text = String::new();
        for index in 0..self.below(4) {
            if index == 0 || self.below(2) == 0 {
                text.push_str(self.one(&["+", "-", " -", "- ", " + "]));
            }
            let limit = [7, 40, largest][self.below(3)];
            text.push_str(&self.below(limit).to_string());
            text.push_str(self.one(&["", "", " "]));
            text.push_str(self.one(UNITS));
        }
        text
    }

    fn reference(&mut self, relative: &str) -> String {
        let between = self.one(&[" ", "_", ",", "  "]);
        match self.below(9) {
            0 => "now".to_string(),
            1 => String::new(),
            2 => relative.to_string(),
            3 => format!("{}", 900_000_000 + self.below(1_200_000_000)),
            // Around the hours that occur twice.
            4 => {
                format!("{}", [1_792_886_400, 1_793_509_200, 1_775_312_000][self.below(3)] + self.below(9000))
            }
            5 => self.one(DAYS).to_string(),
            6 => format!("{}{between}{}", self.one(DAYS), self.one(HOURS)),
            _ => format!("{}{between}{}", self.one(HOURS), self.one(DAYS)),
        }
    }

    /// A text of the grammar.
    pub fn spec(&mut self) -> String {
        let relative = ["epoch", "end", "now", "n"][self.below(4)];
        format!("{}{}", self.reference(relative), self.offsets(3_000_000_000))
    }

    /// A text of the grammar with times that a graph can show.
    pub fn sane_spec(&mut self, relative: &str) -> String {
        loop {
            let text = format!("{}{}", self.reference(relative), self.offsets(300));
            if !text.contains("1/31") && !text.contains("31.12.") {
                return text;
            }
        }
    }

    /// A text with something inserted, removed or cut off.
    pub fn mutated(&mut self) -> String {
        let mut text = self.spec();
        for _ in 0..1 + self.below(3) {
            let at = self.below(text.len() + 1);
            match self.below(4) {
                0 => text.truncate(at),
                1 if at < text.len() => drop(text.remove(at)),
                _ => text.insert_str(at, self.one(PIECES)),
            }
        }
        text
    }
}
