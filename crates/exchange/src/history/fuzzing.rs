//! One fuzz target for each reader of foreign bytes in this crate. A panic is a finding.

use std::cell::RefCell;

use super::openmetrics::OpenMetricsReader;
use super::table::HistoryTable;
use super::whisper::WhisperFile;
use super::{History, servers};

/// A Whisper file: what is one becomes an RRD, or its archives are refused.
pub fn fuzz_whisper(bytes: &[u8]) {
    // Rows take no more memory than the points that a file has, but for the shortest files; so they are bounded by its size.
    if let Ok(file) = WhisperFile::decode(bytes, i64::from(u32::MAX)) {
        let _refused = file.to_rrd("value", None).err();
    }
}

/// Lines of OpenMetrics: what is read becomes RRDs.
pub fn fuzz_openmetrics(bytes: &[u8]) {
    let (mut reader, mut history) = (OpenMetricsReader::default(), History::default());
    for line in bytes.split(|&byte| byte == b'\n') {
        let _refused = reader.line(line, &mut history).map(Result::err);
    }
    fill(history);
}

/// The body of an answer of a server of Graphite or Prometheus.
pub fn fuzz_servers(bytes: &[u8]) {
    let _refused = servers::render(bytes).err();
    let mut history = History::default();
    let _refused = servers::add_matrix(bytes, &mut history, &mut |_| {});
    fill(history);
}

thread_local! {
    /// Made once: its regular expressions take a thousand times as long as a short text.
    static TABLE: RefCell<Option<HistoryTable>> = {
        let archives = ["RRA:AVERAGE:0.5:1:10".to_string(), "RRA:MAX:0.5:3:10".to_string()];
        RefCell::new(HistoryTable::new(None, None, &archives).ok())
    };
}

fn fill(history: History) {
    TABLE.with_borrow_mut(|table| {
        let Some(table) = table else { return };
        for (key, collected) in history.into_series().into_iter().take(4) {
            let _refused = table.fill(&key, &collected).err();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that differ from `good` in a few places, in the order that a seed makes.
    fn changed(good: &[u8], state: &mut u64) -> Vec<u8> {
        let mut next = |below: usize| {
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            (*state % below.max(1) as u64) as usize
        };
        let mut bytes = good.to_vec();
        for _ in 0..=next(4) {
            let at = next(bytes.len());
            match next(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), b"\"\\{}[],:\n0\xff"[next(11)]),
                2 if at < bytes.len() => bytes[at] = next(256) as u8,
                _ => {
                    let piece =
                        bytes[at.min(bytes.len())..].iter().take(next(40)).copied().collect::<Vec<_>>();
                    let to = next(bytes.len() + 1);
                    bytes.splice(to..to, piece);
                }
            }
        }
        bytes
    }

    #[test]
    fn no_bytes_cause_a_panic() {
        let mut whisper =
            [1u32, 600, 0.5f32.to_bits(), 2, 40, 60, 5, 100, 300, 2].map(u32::to_be_bytes).concat();
        for time in [6000u32, 6060, 6120, 0, 5940, 5700, 6000] {
            whisper.extend(time.to_be_bytes());
            whisper.extend(f64::from(time).to_be_bytes());
        }
        assert!(WhisperFile::decode(&whisper, i64::MAX).is_ok());
        let lines = b"# TYPE a counter\na_total{b=\"c\\\"d\",e=\"\"} 1.5 1700000000.25 # {x=\"y\"} 1\n{\"n m\",l=\"v\"} NaN 1700000060000\n";
        let matrix = br#"{"status":"success","data":{"result":[{"metric":{"__name__":"a"},"values":[[1.5,"1"],[9e15,"+Inf"]]}]}}"#;
        let render = br#"[{"target":"a.b;c=d","datapoints":[[1.5,60],[null,120]]}]"#;
        let mut state = 0x9e37_79b9_7f4a_7c15;
        for _ in 0..4000 {
            fuzz_whisper(&changed(&whisper, &mut state));
            fuzz_openmetrics(&changed(lines, &mut state));
            fuzz_servers(&changed(matrix, &mut state));
            fuzz_servers(&changed(render, &mut state));
        }
    }
}
