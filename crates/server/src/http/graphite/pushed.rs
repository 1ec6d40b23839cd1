//! Series that were pushed without labels: their paths are the names that they came with, so that dashboards of a Graphite find them.

use ingest::sample::Samples;
use ingest::table::CreateTable;

/// The path of the series that an RRD is, which has such a name, if `table` says that it is one and it has no labels.
pub fn path(table: &CreateTable, rrd: &[u8]) -> Option<String> {
    let stem = std::str::from_utf8(rrd.strip_suffix(b".rrd")?).ok()?;
    let mut samples = Samples::default();
    let series = table.owner(stem, &mut samples)?;
    let series = samples.series(series);
    series.labels().next().is_none().then(|| series.name().to_owned())
}
