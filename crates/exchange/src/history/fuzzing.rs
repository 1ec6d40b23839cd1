//! One fuzz target for each reader of foreign bytes in this crate. A panic is a finding.

use super::openmetrics::OpenMetricsReader;
use super::table::HistoryTable;
use super::whisper::WhisperFile;
use super::{History, http, servers};

/// A Whisper file: what is one becomes an RRD, or its archives are refused.
pub fn fuzz_whisper(bytes: &[u8]) {
    // Rows take no more memory than the points that a file has, but for the shortest files; so they are bounded by its size.
    if let Ok(file) = WhisperFile::decode(bytes) {
        let _refused = file.to_rrd("value").err();
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

/// The answer of a server of Graphite or Prometheus, with its head.
pub fn fuzz_servers(bytes: &[u8]) {
    let body = http::read_answer(bytes).map_or_else(|_| bytes.to_vec(), |(_, body)| body);
    let _refused = servers::render(&body).err();
    let _refused = servers::index(&body).err();
    let mut history = History::default();
    let _refused = servers::add_matrix(&body, &mut history);
    fill(history);
}

fn fill(history: History) {
    let archives = ["RRA:AVERAGE:0.5:1:10".to_string(), "RRA:MAX:0.5:3:10".to_string()];
    let Ok(mut table) = HistoryTable::new(None, None, &archives) else { return };
    for (key, collected) in history.into_series().into_iter().take(4) {
        let _refused = table.fill(&key, &collected).err();
    }
}
