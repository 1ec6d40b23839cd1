//! Groups: the RRDs of one geometry, and the sources by which their rows are stored.
//!
//! A *source* is one sequence of rows on disk. Archives with one PDP per row and a plain function hold the
//! same numbers and share a source, unless they came with others by an import; every other archive has its own.
//! SEASONAL and DEVSEASONAL archives have none: smoothing rewrites their rows in place, so their rows live in the head.

use rrd::definition::{Cf, Definition};
use rrd::grid;
use rrd::live::HeadShape;

use crate::column::codec::ColumnHint;

/// Index of a source within its group.
pub type SourceIndex = u16;

/// What two RRDs must have in common to share a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Units per second.
    pub units_per_second: u32,
    /// Units per step.
    pub step: u64,
    /// Data sources per row.
    pub ds_count: usize,
    /// Its archives.
    pub archives: Vec<ArchiveGeometry>,
}

/// What two archives must have in common to share a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArchiveGeometry {
    /// Its consolidation function.
    pub cf: Cf,
    /// PDPs per row.
    pub pdp_per_row: u64,
    /// Rows kept.
    pub row_count: u64,
    /// It came with other rows than those of archives that it would share a source with: MRTG makes such RRDs of its `.log`
    /// files, and `create --source` of some sources.
    pub is_apart: bool,
}

impl ArchiveGeometry {
    /// Whether its rows are primary points, as those of all such archives.
    fn holds_points(&self) -> bool {
        self.pdp_per_row == 1 && !self.is_holt_winters()
    }

    /// True for the six consolidation functions with Holt-Winters state.
    pub fn is_holt_winters(&self) -> bool {
        !matches!(self.cf, Cf::Average | Cf::Min | Cf::Max | Cf::Last)
    }

    fn is_season(&self) -> bool {
        matches!(self.cf, Cf::Seasonal | Cf::DevSeasonal)
    }
}

/// One sequence of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// PDPs per row.
    pub pdp_per_row: u64,
    /// Units per row.
    pub span: i64,
    /// Rows that can be fetched: those of the longest archive that shares the source.
    pub row_count: u64,
}

/// A geometry with all that is derived from it.
#[derive(Clone, Debug)]
pub struct Group {
    /// The geometry its RRDs have in common.
    pub geometry: Geometry,
    /// The layout of its heads.
    pub shape: HeadShape,
    /// Its sources.
    pub sources: Vec<Source>,
    /// The source of each archive; `None` for SEASONAL and DEVSEASONAL.
    pub source_of_archive: Vec<Option<SourceIndex>>,
    /// Whether each archive's rows are stored. Among archives that share a source, only the first of those
    /// with the most rows is stored: the others would repeat its rows.
    pub stores: Vec<bool>,
}

impl Geometry {
    /// The geometry of a definition.
    pub fn of(definition: &Definition) -> Self {
        Geometry {
            units_per_second: definition.units_per_second,
            step: definition.step,
            ds_count: definition.ds.len(),
            archives: definition
                .rra
                .iter()
                .map(|rra| ArchiveGeometry {
                    cf: rra.cf.cf(),
                    pdp_per_row: rra.pdp_per_row,
                    row_count: rra.row_count,
                    is_apart: false,
                })
                .collect(),
        }
    }

    /// The geometry of an RRD with these rows, an archive after the other, each row-major and oldest first.
    pub fn of_rows(definition: &Definition, rows: &[Vec<f64>]) -> Self {
        let mut geometry = Geometry::of(definition);
        let points = (0..rows.len()).filter(|index| geometry.archives[*index].holds_points());
        let points: Vec<usize> = points.collect();
        let longest = points.iter().max_by_key(|index| (rows[**index].len(), std::cmp::Reverse(**index)));
        let Some(longest) = longest.map(|index| &rows[*index]) else { return geometry };
        for index in points {
            let newest = &longest[longest.len() - rows[index].len()..];
            let same = |(one, other): (&f64, &f64)| {
                one.to_bits() == other.to_bits() || one.is_nan() && other.is_nan()
            };
            geometry.archives[index].is_apart = !newest.iter().zip(&rows[index]).all(same);
        }
        geometry
    }

    /// Whether it is that of a definition, whichever archives are apart.
    pub fn is_of(&self, definition: &Definition) -> bool {
        let mut of = Geometry::of(definition);
        for (archive, own) in of.archives.iter_mut().zip(&self.archives) {
            archive.is_apart = own.is_apart;
        }
        *self == of
    }
}

impl Group {
    /// The group of a geometry.
    pub fn of(geometry: Geometry) -> Self {
        let mut sources: Vec<Source> = Vec::new();
        let mut storing: Vec<usize> = Vec::new();
        let mut shared: Option<usize> = None;
        let mut source_of_archive = Vec::with_capacity(geometry.archives.len());
        for (index, rra) in geometry.archives.iter().enumerate() {
            if rra.is_season() {
                source_of_archive.push(None);
                continue;
            }
            let sharing = rra.holds_points() && !rra.is_apart;
            if let Some(source) = shared.filter(|_| sharing) {
                if rra.row_count > sources[source].row_count {
                    sources[source].row_count = rra.row_count;
                    storing[source] = index;
                }
                source_of_archive.push(Some(source as SourceIndex));
                continue;
            }
            if sharing {
                shared = Some(sources.len());
            }
            source_of_archive.push(Some(sources.len() as SourceIndex));
            storing.push(index);
            sources.push(Source {
                pdp_per_row: rra.pdp_per_row,
                span: grid::row_span(geometry.step, rra.pdp_per_row),
                row_count: rra.row_count,
            });
        }
        Group {
            shape: HeadShape::new(
                geometry.ds_count,
                geometry.archives.iter().map(|rra| (rra.pdp_per_row, rra.is_holt_winters())),
            ),
            stores: (0..geometry.archives.len()).map(|index| storing.contains(&index)).collect(),
            sources,
            source_of_archive,
            geometry,
        }
    }

    /// The oldest row of `source` that can still be fetched for an RRD last updated at `last_update_whole`.
    pub fn oldest_row(&self, source: SourceIndex, last_update_whole: i64) -> i64 {
        let source = &self.sources[usize::from(source)];
        grid::row_number(last_update_whole, source.span) - source.row_count as i64 + 1
    }

    /// How the values of a source came about, for the encoder.
    pub fn hint(&self, source: SourceIndex) -> ColumnHint {
        ColumnHint {
            units_per_second: self.geometry.units_per_second,
            step: self.geometry.step,
            pdp_per_row: self.sources[usize::from(source)].pdp_per_row,
        }
    }

    /// Seconds of history that the source keeps.
    pub fn retention_seconds(&self, source: SourceIndex) -> u64 {
        let source = &self.sources[usize::from(source)];
        (source.span as u64).saturating_mul(source.row_count) / u64::from(self.geometry.units_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rrd::definition::{Consolidation, Ds, DsKind, DsType, PlainCf, Rra};

    fn plain(cf: PlainCf, pdp_per_row: u64, row_count: u64) -> Rra {
        Rra { cf: Consolidation::Plain { cf, xff: 0.5 }, pdp_per_row, row_count }
    }

    fn definition(rra: Vec<Rra>) -> Definition {
        let kind = DsKind::Fed { ds_type: DsType::Gauge, heartbeat: 20, min: f64::NAN, max: f64::NAN };
        Definition { version: 3, units_per_second: 1, step: 10, ds: vec![Ds { name: "a".into(), kind }], rra }
    }

    #[test]
    fn archives_of_single_pdps_share_a_source() {
        let group = Group::of(Geometry::of(&definition(vec![
            plain(PlainCf::Average, 1, 100),
            plain(PlainCf::Max, 7, 50),
            plain(PlainCf::Max, 1, 300),
            plain(PlainCf::Min, 7, 50),
        ])));
        assert_eq!(group.source_of_archive, [Some(0), Some(1), Some(0), Some(2)]);
        assert_eq!(group.stores, [false, true, true, true]);
        assert_eq!(group.sources[0], Source { pdp_per_row: 1, span: 10, row_count: 300 });
        assert_eq!(group.oldest_row(0, 10_000), 1000 - 299);
        assert_eq!(group.retention_seconds(1), 3500);
    }

    #[test]
    fn archives_that_came_with_other_rows_have_their_own() {
        let definition = definition(vec![
            plain(PlainCf::Average, 1, 2),
            plain(PlainCf::Max, 1, 3),
            plain(PlainCf::Max, 1, 1),
            plain(PlainCf::Last, 1, 2),
            plain(PlainCf::Max, 2, 1),
        ]);
        let rows = [vec![8.0, f64::NAN], vec![7.0, 8.0, f64::NAN], vec![1.0], vec![7.0, f64::NAN], vec![1.0]];
        let geometry = Geometry::of_rows(&definition, &rows);
        assert!(geometry.is_of(&definition) && geometry != Geometry::of(&definition));
        let group = Group::of(geometry);
        assert_eq!(group.source_of_archive, [Some(0), Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(group.stores, [false, true, true, true, true]);
        assert_eq!(group.sources.iter().map(|source| source.row_count).collect::<Vec<_>>(), [3, 1, 2, 1]);
    }
}
