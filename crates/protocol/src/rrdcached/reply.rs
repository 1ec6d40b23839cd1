//! Answers: a status line and the lines that follow it.

/// Appends `code text\n`.
pub fn push_status(out: &mut Vec<u8>, code: i64, text: &[u8]) {
    push_number(out, code);
    out.push(b' ');
    out.extend_from_slice(text);
    out.push(b'\n');
}

/// Appends `-1 text\n`. A line feed inside the text stays, as in rrdcached.
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

/// Appends the answer to an UPDATE whose arguments were all applied.
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

/// The counters of STATS, with the meaning rrdcached gives them.
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
    /// How often the log started a new file.
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

/// The errors of a BATCH, which are answered in the order of the commands.
#[derive(Debug, Default)]
pub struct BatchErrors {
    texts: Vec<u8>,
    /// Command number, and the range of its text.
    lines: Vec<(u32, u32, u32)>,
    unlisted: u64,
}

impl BatchErrors {
    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.texts.capacity() + self.lines.capacity() * size_of::<(u32, u32, u32)>()
    }

    /// Records that command `number` (from 1) failed. A line feed in the text becomes a space, because
    /// clients count lines.
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
    fn batch_errors_come_in_the_order_of_the_commands() {
        let mut errors = BatchErrors::default();
        errors.push(12, b"late");
        errors.push(1, b"two\nlines");
        assert_eq!(text(|out| errors.push_answer(out)), "2 errors\n1 two lines\n12 late\n");
        assert_eq!(text(|out| BatchErrors::default().push_answer(out)), "0 errors\n");
    }

    #[test]
    fn batch_errors_are_limited() {
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
