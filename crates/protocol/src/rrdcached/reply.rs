//! Answers: a status line and the lines that follow it.

/// Appends `code text\n`.
pub fn push_status(out: &mut Vec<u8>, code: i64, text: &[u8]) {
    push_number(out, code);
    out.push(b' ');
    out.extend_from_slice(text);
    out.push(b'\n');
}

/// Appends `-1 text\n`. A line feed inside the text stays: rrdcached sends it so too.
pub fn push_error(out: &mut Vec<u8>, text: &[u8]) {
    push_status(out, -1, text);
}

/// Appends a decimal number.
pub fn push_number(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    let mut rest = number.unsigned_abs();
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends the answer to an UPDATE whose words all went in.
#[inline]
pub fn push_enqueued(out: &mut Vec<u8>, words: u32) {
    if words == 1 {
        out.extend_from_slice(b"0 errors, enqueued 1 value(s).\n");
    } else {
        out.extend_from_slice(b"0 errors, enqueued ");
        push_number(out, i64::from(words));
        out.extend_from_slice(b" value(s).\n");
    }
}

/// What a client may know of the daemon's work (`STATS`), in rrdcached's meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// RRDs waiting to be written.
    pub queue_length: u64,
    /// UPDATE commands received.
    pub updates_received: u64,
    /// FLUSH commands received.
    pub flushes_received: u64,
    /// RRD writes since the start.
    pub updates_written: u64,
    /// Readings written since the start.
    pub data_sets_written: u64,
    /// RRDs in memory.
    pub tree_nodes: u64,
    /// Depth of the tree of names.
    pub tree_depth: u64,
    /// Bytes of log written since the start.
    pub journal_bytes: u64,
    /// Times the log began a new file.
    pub journal_rotations: u64,
}

impl Statistics {
    /// Appends the answer to STATS.
    pub fn push(&self, out: &mut Vec<u8>) {
        let lines = [
            ("QueueLength", self.queue_length),
            ("UpdatesReceived", self.updates_received),
            ("FlushesReceived", self.flushes_received),
            ("UpdatesWritten", self.updates_written),
            ("DataSetsWritten", self.data_sets_written),
            ("TreeNodesNumber", self.tree_nodes),
            ("TreeDepth", self.tree_depth),
            ("JournalBytes", self.journal_bytes),
            ("JournalRotate", self.journal_rotations),
        ];
        push_status(out, lines.len() as i64, b"Statistics follow");
        for (name, value) in lines {
            out.extend_from_slice(format!("{name}: {value}\n").as_bytes());
        }
    }
}

/// Characters of a row's time.
const TIME_WIDTH: usize = 10;
/// From here on times have more characters.
const TIME_MAX: i64 = 10_i64.pow(TIME_WIDTH as u32);

/// Rows to answer a FETCH or FETCHBIN with.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// The row before the first, in units.
    pub start: i64,
    /// The last row, in units.
    pub end: i64,
    /// Units between rows.
    pub step: u64,
    /// Units in a second: 1, or 1000 for an RRD whose step is a fraction of a second, whose times then
    /// have a fraction too.
    pub units_per_second: u32,
    /// The sources wanted, in order.
    pub names: &'a [&'a str],
    /// Which columns of `values` they are.
    pub columns: &'a [usize],
    /// Columns a row of `values` has.
    pub width: usize,
    /// All rows, row-major.
    pub values: &'a [f64],
}

impl Rows<'_> {
    fn count(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    fn push_head(&self, out: &mut Vec<u8>, lines: usize) {
        push_status(out, lines as i64, b"Success");
        out.extend_from_slice(b"FlushVersion: 1");
        let step = i64::try_from(self.step).unwrap_or(i64::MAX);
        for (key, time) in [("Start", self.start), ("End", self.end), ("Step", step)] {
            out.push(b'\n');
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(b": ");
            self.push_time(out, time);
        }
        out.extend_from_slice(format!("\nDSCount: {}\n", self.columns.len()).as_bytes());
    }

    /// Appends a time in seconds, with three decimals where it is no whole second.
    #[inline]
    fn push_time(&self, out: &mut Vec<u8>, time: i64) {
        let unit = i64::from(self.units_per_second.max(1));
        if unit == 1 {
            return push_number(out, time);
        }
        push_number(out, time.div_euclid(unit));
        let rest = time.rem_euclid(unit);
        if rest != 0 {
            out.extend_from_slice(format!(".{:03}", rest * 1000 / unit).as_bytes());
        }
    }

    /// Compat: right-aligned to ten characters, as `%10lu`.
    #[inline]
    fn push_row_time(&self, out: &mut Vec<u8>, time: i64) {
        // From September 2001 on whole seconds have ten digits.
        if self.units_per_second == 1 && (TIME_MAX / 10..TIME_MAX).contains(&time) {
            let mut digits = [0; TIME_WIDTH];
            let high = (time / 100_000_000) as u8;
            digits[0] = b'0' + high / 10;
            digits[1] = b'0' + high % 10;
            digits[2..].copy_from_slice(&rrd::format::eight_digits((time % 100_000_000) as u32));
            return out.extend_from_slice(&digits);
        }
        let line_start = out.len();
        self.push_time(out, time);
        let width = out.len() - line_start;
        if width < TIME_WIDTH {
            out.splice(line_start..line_start, std::iter::repeat_n(b' ', TIME_WIDTH - width));
        }
    }

    /// Appends the answer to FETCH. `push_value` appends a double as `%.17e` does.
    pub fn push_text(&self, out: &mut Vec<u8>, push_value: impl Fn(&mut Vec<u8>, f64)) {
        out.reserve(256 + self.count() * (13 + 24 * self.columns.len()));
        self.push_head(out, 6 + self.count());
        out.extend_from_slice(b"DSName:");
        for name in self.names {
            out.push(b' ');
            out.extend_from_slice(name.as_bytes());
        }
        out.push(b'\n');
        let mut time = self.start;
        for row in self.values.chunks_exact(self.width.max(1)) {
            time = time.saturating_add(self.step as i64);
            self.push_row_time(out, time);
            out.push(b':');
            for &column in self.columns {
                out.push(b' ');
                push_value(out, row[column]);
            }
            out.push(b'\n');
        }
    }

    /// Appends the answer to FETCHBIN: each column as doubles in the machine's byte order.
    pub fn push_binary(&self, out: &mut Vec<u8>) {
        out.reserve(256 + (self.count() * 8 + 64) * self.columns.len());
        self.push_head(out, 5 + self.columns.len());
        let order = if cfg!(target_endian = "little") { "LITTLE" } else { "BIG" };
        for (name, &column) in self.names.iter().zip(self.columns) {
            let line = format!("DSName-{name}: BinaryData {} 8 {order}\n", self.count());
            out.extend_from_slice(line.as_bytes());
            for row in self.values.chunks_exact(self.width.max(1)) {
                out.extend_from_slice(&row[column].to_ne_bytes());
            }
            out.push(b'\n');
        }
    }
}

/// Errors of a BATCH as they come in; answered in the order of the commands.
#[derive(Debug, Default)]
pub struct BatchErrors {
    texts: Vec<u8>,
    /// Command number, and where its text begins and ends.
    lines: Vec<(u32, u32, u32)>,
    unlisted: u64,
}

impl BatchErrors {
    /// Notes that command `number` (the first is 1) failed. A line feed in the text becomes a space: a
    /// client counts lines.
    pub fn push(&mut self, number: u32, text: &[u8]) {
        if self.texts.len() + text.len() > super::limits::BATCH_ERROR_BYTES_MAX {
            self.unlisted += 1;
            return;
        }
        let start = self.texts.len() as u32;
        self.texts.extend(text.iter().map(|&byte| if byte == b'\n' { b' ' } else { byte }));
        self.lines.push((number, start, self.texts.len() as u32));
    }

    /// Appends the answer to the end of the batch.
    pub fn push_answer(&mut self, out: &mut Vec<u8>) {
        self.lines.sort_by_key(|line| line.0);
        let closing = usize::from(self.unlisted > 0);
        push_status(out, (self.lines.len() + closing) as i64, b"errors");
        for &(number, start, end) in &self.lines {
            push_status(out, i64::from(number), &self.texts[start as usize..end as usize]);
        }
        if self.unlisted > 0 {
            let last = self.lines.last().map_or(0, |line| line.0);
            let text = format!("{} more errors, too many to list", self.unlisted);
            push_status(out, i64::from(last), text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(build: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        build(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 7, -1, 10, 42217, i64::MAX, i64::MIN] {
            assert_eq!(text(|out| push_number(out, number)), number.to_string());
        }
    }

    #[test]
    fn status_lines_carry_code_and_text() {
        assert_eq!(text(|out| push_status(out, 0, b"PONG")), "0 PONG\n");
        assert_eq!(text(|out| push_error(out, b"Permission denied.")), "-1 Permission denied.\n");
        assert_eq!(text(|out| push_enqueued(out, 1)), "0 errors, enqueued 1 value(s).\n");
        assert_eq!(text(|out| push_enqueued(out, 12)), "0 errors, enqueued 12 value(s).\n");
    }

    #[test]
    fn statistics_have_nine_lines() {
        let got = text(|out| Statistics { journal_bytes: 190, ..Default::default() }.push(out));
        assert!(got.starts_with("9 Statistics follow\nQueueLength: 0\nUpdatesReceived: 0\n"));
        assert!(got.ends_with("JournalBytes: 190\nJournalRotate: 0\n"));
    }

    #[test]
    fn rows_are_text_or_binary() {
        let rows = Rows {
            start: 100,
            end: 120,
            step: 10,
            units_per_second: 1,
            names: &["b"],
            columns: &[1],
            width: 2,
            values: &[0.0, 1.0, 2.0, 3.0],
        };
        let push = |out: &mut Vec<u8>, value: f64| out.extend_from_slice(value.to_string().as_bytes());
        let want = "8 Success\nFlushVersion: 1\nStart: 100\nEnd: 120\nStep: 10\nDSCount: 1\nDSName: b\n       110: 1\n       120: 3\n";
        assert_eq!(text(|out| rows.push_text(out, push)), want);
        let fine = Rows { start: 1000, end: 1500, step: 250, units_per_second: 1000, ..rows };
        let want = "8 Success\nFlushVersion: 1\nStart: 1\nEnd: 1.500\nStep: 0.250\nDSCount: 1\nDSName: b\n";
        assert_eq!(text(|out| fine.push_text(out, push)), format!("{want}     1.250: 1\n     1.500: 3\n"));
        for start in [999_999_980, 1_234_567_890, 9_999_999_970, 9_999_999_990, 10_000_000_000, -30] {
            let got = text(|out| Rows { start, end: start + 20, ..rows }.push_text(out, push));
            let want = format!("{:10}: 1\n{:10}: 3\n", start + 10, start + 20);
            assert_eq!(got.rsplit("b\n").next(), Some(&*want));
        }
        let mut out = Vec::new();
        rows.push_binary(&mut out);
        let mut want = b"6 Success\nFlushVersion: 1\nStart: 100\nEnd: 120\nStep: 10\nDSCount: 1\n".to_vec();
        want.extend_from_slice(b"DSName-b: BinaryData 2 8 LITTLE\n");
        want.extend_from_slice(&1f64.to_le_bytes());
        want.extend_from_slice(&3f64.to_le_bytes());
        want.push(b'\n');
        assert_eq!(out, want);
    }

    #[test]
    fn batch_errors_come_in_the_order_of_the_commands() {
        let mut errors = BatchErrors::default();
        errors.push(12, b"late");
        errors.push(1, b"two\nlines");
        assert_eq!(text(|out| errors.push_answer(out)), "2 errors\n1 two lines\n12 late\n");
        assert_eq!(text(|out| BatchErrors::default().push_answer(out)), "0 errors\n");
    }

    #[test]
    fn batch_errors_are_bounded() {
        let mut errors = BatchErrors::default();
        for number in 0..20 {
            errors.push(number, &vec![b'x'; 1 << 20]);
        }
        let got = text(|out| errors.push_answer(out));
        assert!(got.starts_with("17 errors\n"));
        assert_eq!(got.lines().count(), 18);
        assert!(got.ends_with("15 4 more errors, too many to list\n"));
    }
}
