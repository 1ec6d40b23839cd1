//! InfluxDB's line protocol, as its export tools write it: each field is a series `MEASUREMENT_FIELD` with the tags as labels, as if
//! it had been pushed.

use ingest::fill::Filling;
use ingest::influx::{Precision, read_lines};
use ingest::refusal::Refusal;
use ingest::sample::Samples;

use super::{History, HistoryError, Refused};

/// What the export tools write beside lines of data.
const STATEMENT: &[u8] = b"CREATE DATABASE ";

/// Reads whole lines; `first_line` is the number of the first one, from 1 on.
///
/// # Errors
/// When there is no room for more.
pub fn read_block(
    text: &[u8],
    first_line: usize,
    history: &mut History,
    refused: &mut dyn FnMut(Refused),
) -> Result<(), HistoryError> {
    let mut samples = Samples::default();
    let mut refuse = |refusal: Refusal<'_>| {
        if !refusal.text.starts_with(STATEMENT) {
            let line = first_line + refusal.line.saturating_sub(1);
            refused(Refused { line, why: refusal.fault.to_string() });
        }
    };
    read_lines(text, Precision::Nanoseconds, &mut Filling::new(&mut samples, &mut refuse));
    history.absorb(&samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ingest::sample::Series;

    #[test]
    fn fields_become_series() {
        let text = b"# DML\nCREATE DATABASE x WITH NAME autogen\ncpu,host=a idle=1.5,user=2i,note=\"t\" 1700000000000000000\n\
            bad line\ncpu,host=a idle=2 1700000060000000000\ncpu,host=a idle=3\n";
        let (mut history, mut refused) = (History::default(), Vec::new());
        read_block(text, 10, &mut history, &mut |one| refused.push(one.line)).expect("room");
        let shown = |(key, of): &(Vec<u8>, super::super::Collected)| {
            format!("{} {:?}", Series::of_key(key), of.points)
        };
        let series: Vec<String> = history.into_series().iter().map(shown).collect();
        assert_eq!(
            series,
            [
                "cpu_idle{host=\"a\"} [(1700000000000, 1.5), (1700000060000, 2.0)]",
                "cpu_user{host=\"a\"} [(1700000000000, 2.0)]"
            ]
        );
        assert!(refused.contains(&13), "{refused:?}");
    }
}
