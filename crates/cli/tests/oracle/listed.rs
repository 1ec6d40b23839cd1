//! The differences of `docs/compatibility.md` that random commands meet, each as narrow as it is.

use std::path::Path;

use crate::bytes::{Head, head};
use crate::harness::{Answer, THEIRS};
use crate::random::Files;

/// Where the RRDs of all scenarios begin.
const START: f64 = 1e9;

/// A command whose answers, or the files after it, differ.
pub struct Call<'a> {
    pub words: &'a [String],
    pub ours: &'a Answer,
    pub theirs: &'a Answer,
    /// Our program: our `rrdtool`, or Debian's on our library.
    pub program: &'a Path,
    /// Our files before the command.
    pub before: &'a Files,
}

impl Call<'_> {
    /// Whether the difference is listed.
    pub fn is_listed(&self) -> bool {
        let address = self.theirs.error.contains("failed to resolve address") && self.ours.status == Some(1);
        address
            || match self.words[0].as_str() {
                "create" => self.is_listed_create(),
                "dump" => self.is_listed_dump(),
                "tune" => self.is_listed_tune(),
                "restore" => self.is_listed_restore(),
                "update" | "updatev" => self.is_listed_update(),
                "graph" | "graphv" => self.is_listed_graph() || self.is_listed_plot(),
                "xport" => self.is_listed_plot(),
                _ => false,
            }
    }

    /// Our program refuses, with this text, what Debian's does.
    fn refused(&self, text: &str) -> bool {
        self.theirs.status == Some(0) && self.ours.status == Some(1) && self.ours.error.contains(text)
    }

    /// Both succeed, and say the same.
    fn agreed(&self) -> bool {
        self.ours == self.theirs && self.ours.status == Some(0)
    }

    /// The arguments of an option.
    fn values<'b>(&'b self, short: &'b str, long: &'b str) -> impl Iterator<Item = &'b str> {
        let pairs = self.words.iter().zip(self.words.iter().skip(1));
        let apart = pairs.filter(move |(word, _)| [short, long].contains(&word.as_str()));
        let joined = self.words.iter().filter_map(move |word| {
            let value = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
            value.or_else(|| word.strip_prefix(short).filter(|rest| !rest.is_empty()))
        });
        apart.map(|(_, value)| value.as_str()).chain(joined)
    }

    fn has_option(&self, short: &str, long: &str) -> bool {
        self.words.iter().any(|word| [short, long].contains(&word.as_str()))
    }

    /// Whether an option's number is not less than this.
    fn at_least(&self, short: &str, long: &str, limit: f64) -> bool {
        self.values(short, long).any(|value| value.parse::<f64>().is_ok_and(|number| number >= limit))
    }

    /// The RRD of this name before the command.
    fn head(&self, name: &str) -> Option<Head> {
        head(self.before.get(Path::new(name.strip_prefix("./").unwrap_or(name)))?)
    }

    fn is_listed_create(&self) -> bool {
        // After a template of version 0004 or 0005.
        let newer = |name| self.head(name).is_some_and(|head| head.version != "0003");
        let version = self.agreed() && self.values("-t", "--template").any(newer);
        version
            || (self.at_least("-s", "--step", (1u64 << 53) as f64)
                && self.ours.error.starts_with("ERROR: step size: out of range; use one of"))
            || self.refused("which it is not; correct its last argument")
            || self.refused("spans too long a time; take fewer rows or steps")
            || (self.theirs.error.ends_with("value has trailing garbage")
                && self.ours.error.contains("durations with decimals need a store"))
            || self.shares_single_seconds()
    }

    /// Rows of which one second belongs to a row of a source.
    fn shares_single_seconds(&self) -> bool {
        let step = self.values("-s", "--step").last().and_then(|step| step.parse().ok());
        let coprime = |source: &str| {
            let source = self.head(source).map(|head| head.step);
            source.zip(step).is_some_and(|(source, step)| greatest_common_divisor(source, step) == 1)
        };
        self.agreed() && self.values("-r", "--source").any(coprime)
    }

    /// The library tells its caller when a dump cannot be written.
    fn is_listed_dump(&self) -> bool {
        self.program == Path::new(THEIRS) && self.refused("ERROR: opening '")
    }

    fn is_listed_tune(&self) -> bool {
        let file = self.words.iter().skip(1).find_map(|word| self.head(word));
        let Some(file) = file else { return false };
        // What Debian's rrdtool does, unless it finds a bad argument that follows.
        let refusals = [
            "ERROR: cannot set heartbeat, minimum or maximum of the COMPUTE data source",
            "ERROR: you must define at least one",
            "ERROR: cannot delete ",
            "ERROR: cannot change the step together with data sources or archives",
        ];
        // Without an archive that is not the last, rows are mixed up.
        let deleted = self.words.iter().filter_map(|word| word.strip_prefix("DELRRA:"));
        let number = |text: &str| {
            let end = text.bytes().take_while(u8::is_ascii_digit).count();
            text[..end].parse().unwrap_or(0)
        };
        let mixed = deleted.map(number).any(|at: usize| at + 1 < file.archives);
        // What a COMPUTE source was makes numbers.
        let of_computed = |value: &str| {
            value.split_once(':').is_some_and(|(name, _)| file.computed.iter().any(|one| one == name))
        };
        let numbers = self.values("-d", "--data-source-type").any(of_computed);
        refusals.iter().any(|text| self.ours.error.starts_with(text)) || (self.agreed() && (mixed || numbers))
    }

    /// A gap of 2^31 steps; all RRDs begin at the same time.
    fn is_listed_update(&self) -> bool {
        let step = self.words.iter().skip(1).find_map(|word| self.head(word)).map_or(1, |head| head.step);
        let time = |word: &String| {
            let end = word.bytes().take_while(u8::is_ascii_digit).count();
            word[..end].parse::<f64>().unwrap_or(0.0)
        };
        let latest = self.words.iter().map(time).fold(START, f64::max);
        self.ours.status == self.theirs.status && (latest - START) / step as f64 >= (1u64 << 31) as f64
    }

    fn is_listed_restore(&self) -> bool {
        // libxml2's text for input that is not XML.
        let parsed = self.theirs.error.starts_with("ERROR: error reading/parsing XML");
        if parsed && self.ours.status == Some(1) {
            return true;
        }
        // `--daemon`, which RRDtool does not know.
        if ["ERROR: invalid option -- 'd'", "ERROR: invalid option -- 'daemon"]
            .iter()
            .any(|text| self.theirs.error.starts_with(text))
        {
            return true;
        }
        // Limits of COMPUTE sources.
        let checked = self.has_option("-r", "--range-check");
        let texts = self.words.iter().filter_map(|word| self.before.get(Path::new(word)));
        let computed = |text: &Vec<u8>| String::from_utf8_lossy(text).contains("COMPUTE");
        self.agreed() && checked && texts.into_iter().any(computed)
    }

    fn is_listed_graph(&self) -> bool {
        let failed = self.ours.status == Some(1);
        let height = failed && self.at_least("-h", "--height", (1u64 << 31) as f64);
        let width = failed && self.at_least("-w", "--width", 10_000_000.0);
        let missing = self.has_option("-Z", "--use-nan-for-all-missing-data")
            && self.theirs.error.contains("No DS called");
        let table = self.refused("ERROR: Could not save png to '");
        (height && self.ours.error.ends_with("height below 10 pixels\n"))
            || (width && self.ours.error.contains("malloc data_proc"))
            || missing
            || table
            || self.is_shifted_table()
    }

    /// The first rows of a table of a series that SHIFT moves.
    fn is_shifted_table(&self) -> bool {
        let tables = ["CSV", "TSV", "SSV", "XML", "XMLENUM", "JSON", "JSONTIME"];
        let table = self.values("-a", "--imgformat").any(|format| tables.contains(&format));
        self.agreed() && table && self.words.iter().any(|word| word.starts_with("SHIFT:"))
    }

    fn is_listed_plot(&self) -> bool {
        // A CDEF that names itself.
        let itself = |word: &String| {
            let parts = word.strip_prefix("CDEF:").and_then(|word| word.split_once('='));
            parts.is_some_and(|(name, expression)| expression.split(',').any(|token| token == name))
        };
        let unknown = self.ours.error.starts_with("ERROR: don't understand '");
        (unknown && self.words.iter().any(itself)) || self.is_time_of_series() || self.is_escaped()
    }

    /// PRINT of the time of a series, which has none.
    fn is_time_of_series(&self) -> bool {
        let is_time = |word: &String| word.contains("PRINT:") && word.contains(":strftime");
        if self.ours.status != Some(0) || self.theirs.status != Some(0) || !self.words.iter().any(is_time) {
            return false;
        }
        let (ours, theirs) = (self.ours.output.lines(), self.theirs.output.lines());
        ours.clone().count() == theirs.clone().count()
            && ours.zip(theirs).all(|(ours, theirs)| ours == theirs || ours.trim_matches(' ').ends_with('-'))
    }

    /// A legend in JSON.
    fn is_escaped(&self) -> bool {
        let plain = |text: &str| text.replace("\\\"", "\"").replace("\\t", "\t");
        self.words.iter().any(|word| word == "--json") && plain(&self.ours.output) == self.theirs.output
    }
}

fn greatest_common_divisor(one: usize, other: usize) -> usize {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}
