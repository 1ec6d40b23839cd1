//! The differences of `docs/compatibility.md` that random commands meet, each as narrow as it is.

use std::ops::Range;
use std::path::Path;

use crate::bytes::{Head, Layout, canonical, head};
use crate::harness::{Answer, THEIRS};
use crate::random::{Files, comparable};

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
    /// Our files and Debian's after it.
    pub after: &'a [Files; 2],
}

impl Call<'_> {
    /// Whether the difference is listed.
    pub fn is_listed(&self) -> bool {
        self.is_listed_address()
            || self.is_formatted()
            || match self.words[0].as_str() {
                "create" => self.is_listed_create(),
                "dump" => self.is_listed_dump() || self.lacks_previous(),
                "info" => self.lacks_previous(),
                "tune" => self.is_listed_tune(),
                "restore" => self.is_listed_daemon() || self.is_listed_restore(),
                "updatev" => self.is_listed_daemon() || self.is_listed_update() || self.is_half_done(),
                "update" => self.is_listed_update() || self.is_half_done(),
                "graph" | "graphv" => self.is_listed_graph() || self.is_listed_plot(),
                "xport" => self.is_listed_plot(),
                _ => false,
            }
    }

    /// The reason why an address cannot be resolved.
    fn is_listed_address(&self) -> bool {
        let parts = |answer: &Answer| {
            let (start, rest) = answer.error.split_once("failed to resolve address '")?;
            Some((start.to_string(), rest.split_once("' (port ")?.0.to_string()))
        };
        let (ours, theirs) = (parts(self.ours), parts(self.theirs));
        ours.is_some() && ours == theirs && self.ours.status == self.theirs.status && self.same_files()
    }

    /// Our program refuses, with this text, what Debian's does.
    fn refused(&self, text: &str) -> bool {
        self.theirs.status == Some(0) && self.ours.status == Some(1) && self.ours.error.contains(text)
    }

    /// Both succeed, and say the same.
    fn agreed(&self) -> bool {
        self.ours == self.theirs && self.ours.status == Some(0)
    }

    /// A word with a `%` that Debian's rrdtool takes for a format of `printf`.
    fn is_formatted(&self) -> bool {
        const STARTS: [&str; 6] = [
            "bad CF: ",
            "bad reduce CF: ",
            "Bad step value: ",
            "start time: ",
            "end time: ",
            "mmaping file '",
        ];
        let Some((start, _)) = self.ours.error.split_once('%') else { return false };
        self.ours.status == self.theirs.status
            && self.theirs.error.starts_with(start)
            && STARTS.iter().any(|text| start.contains(text))
            && self.ours.output == self.theirs.output
            && self.same_files()
    }

    /// The text of a COMPUTE source without its `PREV(name)`.
    fn lacks_previous(&self) -> bool {
        self.ours.error == self.theirs.error
            && self.ours.status == self.theirs.status
            && self.differs_in_lines(|_, _, ours, theirs| {
                let without = ours.split("PREV(").enumerate().map(|(at, part)| match part.split_once(')') {
                    Some((_, rest)) if at > 0 => rest,
                    _ => part,
                });
                ours.contains("cdef") && without.collect::<String>() == theirs
            })
    }

    fn same_files(&self) -> bool {
        self.differing_files().is_some_and(|names| names.is_empty())
    }

    /// The files that differ; `None` if one of them is only on one side.
    fn differing_files(&self) -> Option<Vec<&Path>> {
        let [ours, theirs] = self.after;
        let differs = |(name, bytes): &(_, &Vec<u8>)| comparable(bytes) != comparable(&theirs[*name]);
        let names = ours.keys().eq(theirs.keys());
        names.then(|| ours.iter().filter(differs).map(|(name, _)| name.as_path()).collect())
    }

    /// Both succeed and say the same, and only one file differs: an RRD, and it only in these bytes, which are counted
    /// after its rings are turned to begin at their oldest rows.
    fn agreed_but_for(&self, ranges: impl Fn(&Layout, [&[u8]; 2]) -> Vec<Range<usize>>) -> bool {
        self.agreed() && self.differs_only_in(ranges)
    }

    fn differs_only_in(&self, ranges: impl Fn(&Layout, [&[u8]; 2]) -> Vec<Range<usize>>) -> bool {
        let names = self.differing_files().unwrap_or_default();
        let [name] = names[..] else { return false };
        let files = [&self.after[0][name][..], self.without_former_end(name)];
        let [ours, theirs] = files.map(|file| (Layout::of(file), canonical(file)));
        let ((Some(layout), Some(mut ours)), (Some(other), Some(mut theirs))) = (ours, theirs) else {
            return false;
        };
        if layout != other {
            return false;
        }
        for range in ranges(&layout, [&ours, &theirs]) {
            ours[range.clone()].fill(0);
            theirs[range].fill(0);
        }
        ours == theirs
    }

    /// Debian's file after the command, without the end of a longer file which `restore` leaves there.
    fn without_former_end(&self, name: &Path) -> &[u8] {
        let [ours, theirs] = self.after.each_ref().map(|files| &files[name][..]);
        let is_left = self.words[0] == "restore"
            && self.before.get(name).is_some_and(|before| before.len() == theirs.len());
        if is_left { &theirs[..theirs.len().min(ours.len())] } else { theirs }
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
        // After a template of version 0004 or 0005, the version that all else needs.
        let versions: Vec<_> =
            self.values("-t", "--template").filter_map(|name| Some(self.head(name)?.version)).collect();
        let version = self.agreed_but_for(|_, [ours, theirs]| {
            let of_template = versions.iter().any(|version| version.as_bytes() == &ours[4..8]);
            (of_template && theirs[4..8] < ours[4..8]).then_some(4..8).into_iter().collect()
        });
        let archives = || self.words.iter().filter(|word| word.starts_with("RRA:"));
        let decimals = |word: &String| word.split(':').any(|part| part.contains('.'));
        // Debian's rrdtool goes on to the sources, to the rows, and to the file.
        let later = [
            "ERROR: Cannot open source RRD ",
            "ERROR: cannot allocate memory",
            "ERROR: Cannot rename temporary file",
        ];
        let unread = later.iter().any(|text| self.theirs.error.starts_with(text));
        let mate = "which it is not; correct its last argument";
        version
            || (self.at_least("-s", "--step", (1u64 << 53) as f64)
                && self.ours.error.starts_with("ERROR: step size: out of range; use one of"))
            || (archives().any(|word| is_forecast(word))
                && (self.refused(mate) || unread && self.ours.error.contains(mate)))
            || self.refused("spans too long a time; take fewer rows or steps")
            || (self.theirs.error.ends_with("value has trailing garbage")
                && self.words.iter().any(decimals)
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
        let rows = |layout: &Layout, _: [&[u8]; 2]| vec![layout.open_rows(), layout.rings()];
        self.values("-r", "--source").any(coprime) && self.agreed_but_for(rows)
    }

    /// The library tells its caller when a dump cannot be written.
    fn is_listed_dump(&self) -> bool {
        self.program == Path::new(THEIRS) && self.refused("ERROR: opening '")
    }

    fn is_listed_tune(&self) -> bool {
        let name = self.words.iter().skip(1).find(|word| self.head(word).is_some());
        let Some(file) = name.and_then(|name| self.head(name)) else { return false };
        let any = |start: &str| self.words.iter().any(|word| word.starts_with(start));
        // What Debian's rrdtool does, unless it finds a bad argument that follows.
        let refusals = [
            (
                !file.computed.is_empty(),
                "ERROR: cannot set heartbeat, minimum or maximum of the COMPUTE data source",
            ),
            (any("DEL:") || any("DELRRA:"), "ERROR: you must define at least one"),
            (any("DEL:") || any("DELRRA:") || any("RRA#"), "ERROR: cannot delete "),
            (any("RRA#"), "ERROR: cannot resize RRA "),
            (self.words.iter().any(|word| word.ends_with(":COMPUTE")), "ERROR: cannot make '"),
            (
                any("--step") || any("-t"),
                "ERROR: cannot change the step together with data sources or archives",
            ),
        ];
        let refused = self.ours.status == Some(1) && self.after[0] == *self.before;
        (refused && refusals.iter().any(|(may, text)| *may && self.ours.error.starts_with(text)))
            || self.mixes_rows(&file)
            || self.makes_numbers(&file)
    }

    /// Without an archive that is not the last, rows are mixed up, and the references of Holt-Winters archives are stale.
    fn mixes_rows(&self, file: &Head) -> bool {
        let number = |text: &str| {
            let end = text.bytes().take_while(u8::is_ascii_digit).count();
            text[..end].parse().unwrap_or(0)
        };
        let deleted = |word: &String| match word.strip_prefix("RRA#").and_then(|rest| rest.split_once(":-")) {
            Some((at, rows)) => {
                Some(number(at)).filter(|at| file.rows.get(*at).is_some_and(|had| *had <= number(rows)))
            }
            None => word.strip_prefix("DELRRA:").map(number),
        };
        let mixed = self.words.iter().filter_map(deleted).any(|at: usize| at + 1 < file.rows.len());
        let rows = |layout: &Layout, [ours, _]: [&[u8]; 2]| {
            let forecasts = (0..layout.archives).map(|archive| layout.archive(archive));
            let forecasts =
                forecasts.filter(|range| FORECASTS.iter().any(|cf| ours[range.clone()].starts_with(cf)));
            forecasts.map(|range| range.start + 40..range.end).chain([layout.rings()]).collect()
        };
        mixed && self.agreed_but_for(rows) && self.keeps_rows()
    }

    /// If the only change is one archive less: whether ours keeps the rows of the others.
    fn keeps_rows(&self) -> bool {
        let [_, name, change] = self.words else { return true };
        let Some(deleted) = change.strip_prefix("DELRRA:").and_then(|number| number.parse().ok()) else {
            return true;
        };
        let rows = |files: &Files, without: usize| {
            let file = canonical(files.get(Path::new(name))?)?;
            let layout = Layout::of(&file)?;
            let kept = (0..layout.archives).filter(|archive| *archive != without);
            Some(kept.flat_map(|archive| file[layout.ring(archive)].to_vec()).collect::<Vec<u8>>())
        };
        rows(self.before, deleted) == rows(&self.after[0], usize::MAX)
    }

    /// What a COMPUTE source was makes the heartbeat and the limits.
    fn makes_numbers(&self, file: &Head) -> bool {
        let names: Vec<_> =
            self.values("-d", "--data-source-type").filter_map(|value| value.split_once(':')).collect();
        let changed = |source: &usize| names.iter().any(|(name, _)| *name == file.sources[*source]);
        let changed: Vec<usize> = file.computed.iter().copied().filter(changed).collect();
        let numbers = |layout: &Layout, _: [&[u8]; 2]| {
            let range = |source: &usize| layout.source(*source).start + 40..layout.source(*source).end;
            changed.iter().map(range).collect()
        };
        !changed.is_empty() && self.agreed_but_for(numbers)
    }

    /// A reading that an expression of a COMPUTE source refuses, when the open points have changed.
    fn is_half_done(&self) -> bool {
        let computes = |word: &String| self.head(word).is_some_and(|head| !head.computed.is_empty());
        let refused = ["RPN", "VDEF made it into rpn_calc"].iter().any(|text| self.ours.error.contains(text));
        refused
            && self.ours == self.theirs
            && self.words.iter().any(computes)
            && self.differs_only_in(|layout, _| std::iter::once(layout.points()).collect())
    }

    /// A gap of 2^31 steps; all RRDs begin at the same time.
    fn is_listed_update(&self) -> bool {
        let step = self.words.iter().skip(1).find_map(|word| self.head(word)).map_or(1, |head| head.step);
        let time = |word: &String| {
            let word = word.trim_start();
            let end = word.bytes().take_while(u8::is_ascii_digit).count();
            word[..end].parse::<f64>().unwrap_or(0.0)
        };
        let latest = self.words.iter().map(time).fold(START, f64::max);
        let rows = |layout: &Layout, _: [&[u8]; 2]| vec![layout.open_rows(), layout.rings()];
        let same = self.ours.status == self.theirs.status && self.ours.error == self.theirs.error;
        let same = same && (self.words[0] == "updatev" || self.ours.output == self.theirs.output);
        same && (latest - START) / step as f64 >= (1u64 << 31) as f64
            && (self.same_files() || self.differs_only_in(rows))
    }

    /// `--daemon`, which RRDtool does not know here.
    fn is_listed_daemon(&self) -> bool {
        let unknown = ["ERROR: invalid option -- 'd'", "ERROR: invalid option -- 'daemon"];
        unknown.iter().any(|text| self.theirs.error.starts_with(text))
            && self.words.iter().any(|word| word.starts_with('-') && word.contains('d'))
            && self.ours.status == Some(1)
            && self.same_files()
    }

    fn is_listed_restore(&self) -> bool {
        // libxml2's text for input that is not XML.
        let parsed = self.theirs.error.starts_with("ERROR: error reading/parsing XML");
        if parsed && self.ours.status == Some(1) {
            return self.same_files();
        }
        // With `-r`, the rows of COMPUTE sources that are outside of what Debian's rrdtool takes for their limits.
        let is_checked = self.has_option("-r", "--range-check");
        let dropped = |layout: &Layout, [ours, theirs]: [&[u8]; 2]| {
            let computed = head(ours).filter(|_| is_checked).map_or(Vec::new(), |head| head.computed);
            let values = computed.into_iter().flat_map(|source| layout.column(source).collect::<Vec<_>>());
            values.filter(|range| is_nan(&theirs[range.clone()])).collect()
        };
        self.agreed_but_for(dropped)
    }

    fn is_listed_graph(&self) -> bool {
        let failed = self.ours.status == Some(1);
        let height = self.ours.error == self.theirs.error
            && self.ours.error.contains("Could not save png to '")
            && self.at_least("-h", "--height", (1u64 << 31) as f64)
            && self.same_files();
        let width = failed && self.at_least("-w", "--width", 10_000_000.0);
        let missing = self.has_option("-Z", "--use-nan-for-all-missing-data")
            && self.theirs.error.contains("No DS called")
            && !self.ours.error.contains("No DS called");
        // Without a series, a table has whatever step is in memory; mostly it is divided by 0.
        let table = ["ERROR: Could not save png to '", "ERROR: no XPORT found, nothing to do"];
        // Debian's rrdtool succeeds without the picture.
        let unsaved = self.values("-a", "--imgformat").any(|format| ["SVG", "PDF", "EPS"].contains(&format))
            && self.refused(table[0])
            && self.ours.output == self.theirs.output
            && self.same_files();
        (height && failed && self.theirs.status == Some(1))
            || (width && self.ours.error.contains("malloc data_proc"))
            || missing
            || unsaved
            || (self.is_table() && table.iter().any(|text| self.refused(text)))
    }

    fn is_table(&self) -> bool {
        let tables = ["CSV", "TSV", "SSV", "XML", "XMLENUM", "JSON", "JSONTIME"];
        self.values("-a", "--imgformat").any(|format| tables.contains(&format))
    }

    fn is_listed_plot(&self) -> bool {
        self.names_itself() || self.differs_in_listed_lines()
    }

    /// A CDEF that names itself. Debian's rrdtool reports any other error first, or crashes.
    fn names_itself(&self) -> bool {
        let Some((_, from)) = self.ours.error.split_once("ERROR: don't understand '") else { return false };
        let from = from.trim_end_matches(['\n', '\'']);
        // An error after that name.
        let other = self.theirs.error.split_once("ERROR: don't understand '");
        let other = other.map(|(_, other)| other.trim_end_matches(['\n', '\'']));
        let itself = |word: &String| {
            let parts = word.strip_prefix("CDEF:").and_then(|word| word.split_once('='));
            parts.is_some_and(|(name, expression)| {
                expression.ends_with(from) && expression.split(',').any(|token| token == name)
            })
        };
        let Some(at) = self.words.iter().position(itself) else { return false };
        // Further on in its expression, or in a later one.
        let is_after = |other: &str| {
            (from.len() > other.len() && from.ends_with(other))
                || self.words[at + 1..].iter().any(|word| word.starts_with("CDEF:") && word.ends_with(other))
        };
        self.ours.status == Some(1) && self.theirs.status == Some(1) && other.is_none_or(is_after)
    }

    /// Whether what is printed and written differs only in lines that are listed.
    fn differs_in_listed_lines(&self) -> bool {
        self.ours.status == self.theirs.status
            && self.ours.error == self.theirs.error
            && self.differs_in_lines(|table, at, ours, theirs| {
                self.is_time_of_series(ours)
                    || self.is_escaped(ours, theirs)
                    || self.is_shifted_row(table, at, ours, theirs)
            })
    }

    /// Whether what is printed and written differs only in lines of this kind: of a text of ours, the number of the line,
    /// ours and Debian's.
    fn differs_in_lines(&self, is_listed: impl Fn(&str, usize, &str, &str) -> bool) -> bool {
        let Some(names) = self.differing_files() else { return false };
        let text = |side: usize, name: &Path| String::from_utf8_lossy(&self.after[side][name]).into_owned();
        let files = names.into_iter().map(|name| [0, 1].map(|side| text(side, name)));
        let mut texts = files.chain([[self.ours, self.theirs].map(|answer| answer.output.clone())]);
        texts.all(|[ours, theirs]| {
            let mut lines = ours.lines().zip(theirs.lines()).enumerate();
            ours.lines().count() == theirs.lines().count()
                && lines.all(|(at, (line, other))| line == other || is_listed(&ours, at, line, other))
        })
    }

    /// PRINT of the time of a series, which has none: our line has the dashes of one of the formats.
    fn is_time_of_series(&self, line: &str) -> bool {
        let formats = self.words.iter().filter_map(|word| {
            let word = word.strip_suffix(":strftime").filter(|word| word.contains("PRINT:"))?;
            Some(word.replace("\\:", "\u{1}").rsplit(':').next()?.replace('\u{1}', ":"))
        });
        formats.map(|format| dashes(if self.words[0] == "xport" { "%d" } else { &format })).any(|want| {
            // As it is, or within `print[0] = ""`, XML, JSON.
            let within = [("", ""), (" = \"", "\""), (">", "</"), (": \"", "\" }")];
            let line = line.replace("--", "-").replace("--", "-");
            within.iter().any(|(start, end)| match start.is_empty() {
                true => line == want,
                false => line.contains(&format!("{start}{want}{end}")),
            })
        })
    }

    /// A legend in JSON.
    fn is_escaped(&self, ours: &str, theirs: &str) -> bool {
        let plain = ours.replace("\\\"", "\"").replace("\\t", "\t");
        self.words.iter().any(|word| word == "--json") && plain == theirs
    }

    /// One of the first or last rows of a table, with a series that SHIFT moves later or earlier.
    fn is_shifted_row(&self, table: &str, at: usize, ours: &str, theirs: &str) -> bool {
        let shifts = self.words.iter().filter_map(|word| word.strip_prefix("SHIFT:")?.rsplit(':').next());
        let shifts = || shifts.clone().filter_map(|shift| shift.parse::<isize>().ok());
        let (later, earlier) = (shifts().max().unwrap_or(0).max(0), -shifts().min().unwrap_or(0).min(0));
        let rows: Vec<usize> =
            table.lines().enumerate().filter(|(_, line)| is_row(line)).map(|row| row.0).collect();
        let Some(row) = rows.iter().position(|row| *row == at) else { return false };
        let step = table_step(table, rows[0]);
        let [later, earlier] = [later, earlier].map(|seconds| seconds.unsigned_abs().div_ceil(step));
        let fields = |line: &str| -> Vec<String> {
            line.split([',', ';', '\t', ' ', '<', '>', '"']).map(str::to_string).collect()
        };
        let (ours, theirs) = (fields(ours), fields(theirs));
        let unknown = |(ours, theirs): (&String, &String)| ours == theirs || ours == "NaN" || ours == "null";
        (self.is_table() || self.words[0] == "xport")
            && (row < later || row + earlier >= rows.len())
            && ours.len() == theirs.len()
            && ours.iter().zip(&theirs).all(unknown)
    }
}

/// The first bytes of the archives of a forecast.
const FORECASTS: [&[u8]; 6] =
    [b"HWPREDICT", b"MHWPREDICT", b"SEASONAL", b"DEVSEASONAL", b"DEVPREDICT", b"FAILURES"];

/// Whether this defines an archive of a forecast.
fn is_forecast(word: &str) -> bool {
    word.strip_prefix("RRA:").is_some_and(|rest| FORECASTS.iter().any(|cf| rest.as_bytes().starts_with(cf)))
}

fn is_nan(bytes: &[u8]) -> bool {
    bytes.try_into().is_ok_and(|bytes| f64::from_le_bytes(bytes).is_nan())
}

/// What ours prints of an unknown time, each number of it as a single dash.
fn dashes(format: &str) -> String {
    let (mut text, mut rest) = (String::new(), format.chars());
    while let Some(letter) = rest.next() {
        if letter == '%' {
            rest.next();
            text.push('-');
        } else {
            text.push(letter);
        }
    }
    text.replace("--", "-").replace("--", "-")
}

/// Whether a line of a table is a row.
fn is_row(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(|start: char| start.is_ascii_digit())
        || line.starts_with("<row>")
        || line.starts_with("[ ")
}

/// The seconds of a row of a table, or 1 if it does not tell.
fn table_step(table: &str, first: usize) -> usize {
    let told = table.lines().find_map(|line| {
        let line = line.trim();
        line.strip_prefix("<step>").or_else(|| line.strip_prefix("\"step\": "))
    });
    let number = |text: &str| {
        let end = text.bytes().take_while(u8::is_ascii_digit).count();
        text[..end].parse::<usize>().ok()
    };
    let times: Vec<usize> = table.lines().skip(first).take(2).filter_map(number).collect();
    told.and_then(number).or_else(|| times.get(1)?.checked_sub(times[0])).unwrap_or(1).max(1)
}

fn greatest_common_divisor(one: usize, other: usize) -> usize {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}
