//! Whisper files, Graphite's own: a header, one entry for each archive, then the points of each archive as a ring. All numbers
//! are big-endian.
//!
//! A point at a time stands for the seconds from there on, a row of an RRD for those up to its time: a point becomes the row that
//! ends where it does, and graphite-web shows that row at the point's time again.

use std::fmt;

use rrd::definition::Cf;

use super::fill::Filler;
use crate::rows::{MS, Run, leave_out};
use rrd::content::Rrd;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;

const HEADER_BYTES: usize = 16;
const ARCHIVE_BYTES: usize = 12;
const POINT_BYTES: usize = 12;
/// Archives of a file at most; carbon's documentation shows up to six.
const ARCHIVES_MAX: usize = 64;

/// Why bytes are no Whisper file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhisperError {
    /// It ends before its header or archives do.
    Short,
    /// Its header cannot be a Whisper file's.
    Header(&'static str),
    /// An archive, from 0 on, that cannot be.
    Archive(usize, &'static str),
    /// Its archives cannot be an RRD's.
    Definition(String),
}

impl fmt::Display for WhisperError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhisperError::Short => f.write_str("no Whisper file: it ends before its archives do"),
            WhisperError::Header(why) => write!(f, "no Whisper file: {why}"),
            WhisperError::Archive(index, why) => write!(f, "archive {index} cannot be used: {why}"),
            WhisperError::Definition(why) => write!(f, "its archives cannot be an RRD's: {why}"),
        }
    }
}

impl std::error::Error for WhisperError {}

/// A Whisper file.
#[derive(Clone, Debug, PartialEq)]
pub struct WhisperFile {
    /// How points of finer archives become one of a coarser archive.
    method: Method,
    /// The part of a coarser point's finer ones that must be known.
    xff: f32,
    /// Seconds per point, and how many, the finest first.
    archives: Vec<(u64, u64)>,
    /// The points of each archive by their ends, without those that have left it.
    runs: Vec<Run>,
    /// Beginnings of coarser points that reach into a finer archive, up to its first point: start, end and value.
    borders: Vec<(i64, i64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Average,
    Sum,
    Last,
    Max,
    Min,
}

impl Method {
    fn of_number(number: u32) -> Option<Self> {
        Some(match number {
            // avg_zero counts unknown points as zeros, absmax and absmin go by the size: RRDs have the nearest.
            1 | 6 => Method::Average,
            2 => Method::Sum,
            3 => Method::Last,
            4 | 7 => Method::Max,
            5 | 8 => Method::Min,
            _ => return None,
        })
    }

    /// The function of the archives. An average times the number of points is their sum.
    fn cf(self) -> Cf {
        match self {
            Method::Average | Method::Sum => Cf::Average,
            Method::Last => Cf::Last,
            Method::Max => Cf::Max,
            Method::Min => Cf::Min,
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Result<u32, WhisperError> {
    let four = bytes.get(at..at + 4).and_then(|four| four.first_chunk());
    four.map(|four| u32::from_be_bytes(*four)).ok_or(WhisperError::Short)
}

impl WhisperFile {
    /// Reads a file. Points that end after `latest`, in seconds since the epoch, are none: a damaged one would make all others too
    /// old, and today's point of an archive of days would have the RRD take nothing until tomorrow.
    ///
    /// # Errors
    /// [`WhisperError`].
    pub fn decode(bytes: &[u8], latest: i64) -> Result<Self, WhisperError> {
        let method = Method::of_number(number(bytes, 0)?);
        let method = method.ok_or(WhisperError::Header("its aggregation method is unknown"))?;
        let xff = f32::from_bits(number(bytes, 8)?);
        if !(0.0..=1.0).contains(&xff) {
            return Err(WhisperError::Header("its xFilesFactor is not within 0 and 1"));
        }
        let count = number(bytes, 12)? as usize;
        if count == 0 || count > ARCHIVES_MAX {
            return Err(WhisperError::Header("it has no archives, or more than 64"));
        }
        let mut archives: Vec<(u64, u64)> = Vec::new();
        let mut rings = Vec::new();
        for index in 0..count {
            let at = HEADER_BYTES + index * ARCHIVE_BYTES;
            let (offset, seconds, points) =
                (number(bytes, at)?, number(bytes, at + 4)?, number(bytes, at + 8)?);
            if seconds == 0 || points == 0 {
                return Err(WhisperError::Archive(index, "its points take no time or there are none"));
            }
            let (finest, _) = archives.first().copied().unwrap_or((u64::from(seconds), 0));
            let before = archives.last().map_or(0, |(seconds, _)| *seconds);
            if u64::from(seconds) <= before || !u64::from(seconds).is_multiple_of(finest) {
                return Err(WhisperError::Archive(
                    index,
                    "its seconds per point are no multiple of the finest archive's",
                ));
            }
            let end = u64::from(offset) + u64::from(points) * POINT_BYTES as u64;
            let ring = usize::try_from(end).ok().and_then(|end| bytes.get(offset as usize..end));
            archives.push((u64::from(seconds), u64::from(points)));
            rings.push(ring.ok_or(WhisperError::Short)?);
        }
        let mut file = WhisperFile { method, xff, archives, runs: Vec::new(), borders: Vec::new() };
        file.read(&rings, latest);
        Ok(file)
    }

    fn read(&mut self, rings: &[&[u8]], latest: i64) {
        let point = |bytes: &[u8]| {
            let time = bytes.first_chunk().map_or(0, |time| u32::from_be_bytes(*time));
            let value = bytes.last_chunk().map_or(f64::NAN, |value| f64::from_be_bytes(*value));
            (i64::from(time), value)
        };
        let all = |(ring, (seconds, _)): (&&[u8], &(u64, u64))| {
            let last = latest.saturating_sub(*seconds as i64);
            let points = ring.chunks_exact(POINT_BYTES).map(point);
            points.filter(|(time, _)| (1..=last).contains(time)).collect::<Vec<_>>()
        };
        let points: Vec<Vec<(i64, f64)>> = rings.iter().zip(&self.archives).map(all).collect();
        let newest = points.iter().flatten().map(|(time, _)| *time).max().unwrap_or(0);
        let (finest, _) = self.archives[0];
        for ((seconds, count), mut points) in self.archives.clone().into_iter().zip(points) {
            let step = seconds as i64;
            // What was not overwritten since has left the archive all the same.
            let from = newest.div_euclid(step) * step - step.saturating_mul(count as i64);
            points.retain(|(time, value)| *time > from && time % step == 0 && !value.is_nan());
            points.sort_by_key(|(time, _)| *time);
            points.dedup_by_key(|(time, _)| *time);
            let sum_of = if self.method == Method::Sum { (seconds / finest) as f64 } else { 1.0 };
            let times = points.iter().map(|(time, _)| (time + step) * MS).collect();
            let values = points.iter().map(|(_, value)| value / sum_of).collect();
            let (ds, cf) = (String::new(), self.method.cf());
            let mut run = Run { ds, cf, step: step * MS, times, values, newest: newest * MS };
            self.keep_border(&run);
            self.runs.iter().for_each(|finer| leave_out(&mut run, finer));
            self.runs.push(run);
        }
    }

    /// Keeps the beginning of the point in which the first finer one lies.
    fn keep_border(&mut self, run: &Run) {
        let begins = |finer: &Run| Some(finer.times.first()? - finer.step);
        let Some(first) = self.runs.iter().filter_map(begins).min() else { return };
        let at = run.times.partition_point(|end| *end <= first);
        if let (Some(end), Some(value)) = (run.times.get(at), run.values.get(at))
            && end - run.step < first
        {
            self.borders.push((end - run.step, first, *value));
        }
    }

    /// How many points become updates.
    pub fn point_count(&self) -> usize {
        self.runs.iter().map(|run| run.times.len()).sum()
    }

    /// Seconds per point of its finest archive.
    pub fn step(&self) -> i64 {
        self.archives[0].0 as i64
    }

    /// Its archives as words of `rrdcreate(1)`.
    fn own_archives(&self) -> Vec<String> {
        let (finest, _) = self.archives[0];
        // xff says how much may be unknown, xFilesFactor how much must be known; one is too many even for a row of unknowns.
        let xff = (1.0 - f64::from(self.xff)).clamp(0.0, 0.999_999);
        let word = |(seconds, points): &(u64, u64)| {
            format!("RRA:{}:{xff}:{}:{points}", self.method.cf().name(), seconds / finest)
        };
        self.archives.iter().map(word).collect()
    }

    /// The RRD with one data source called `ds` and with the archives of the file, or with this step in seconds and these `RRA:`
    /// words.
    ///
    /// # Errors
    /// [`WhisperError::Definition`].
    pub fn to_rrd(&self, ds: &str, other: Option<(u64, &[String])>) -> Result<Rrd, WhisperError> {
        let step = other.map_or(self.archives[0].0, |(step, _)| step);
        let mut args = vec![format!("DS:{ds}:GAUGE:{}:U:U", 2 * step)];
        args.extend(other.map_or_else(|| self.own_archives(), |(_, archives)| archives.to_vec()));
        let step = Step { units: step, units_per_second: 1 };
        let options = CreateOptions { step, limits: Limits::STORE, file_name: b"whisper" };
        let definition =
            parse_create(&options, &args).map_err(|error| WhisperError::Definition(error.to_string()))?;
        let mut points: Vec<(i64, i64, f64)> = Vec::with_capacity(self.point_count());
        for run in &self.runs {
            points.extend(
                run.times.iter().zip(&run.values).map(|(time, value)| (time - run.step, *time, *value)),
            );
        }
        points.extend(&self.borders);
        points.sort_by_key(|(start, _, _)| *start);
        let start = points.first().map_or(0, |(start, _, _)| *start);
        let filler = Filler::new(definition, start);
        let mut filler = filler.map_err(|error| WhisperError::Definition(error.to_string()))?.by_intervals();
        for (start, end, value) in points {
            filler.interval(start, end, value);
        }
        Ok(filler.finish().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Archives, Selection};

    /// Seconds of a point, points, and those that are there.
    type ArchiveOf<'a> = (u32, u32, &'a [(u32, f64)]);

    /// Archives of (seconds, points, contents).
    fn file(method: u32, archives: &[ArchiveOf<'_>]) -> Vec<u8> {
        let mut bytes = [method, 0, 0.5f32.to_bits(), archives.len() as u32].map(u32::to_be_bytes).concat();
        let mut offset = (HEADER_BYTES + archives.len() * ARCHIVE_BYTES) as u32;
        for (seconds, points, _) in archives {
            bytes.extend([offset, *seconds, *points].map(u32::to_be_bytes).concat());
            offset += points * POINT_BYTES as u32;
        }
        for (seconds, points, contents) in archives {
            let mut ring = vec![0; *points as usize * POINT_BYTES];
            for (time, value) in *contents {
                let at = (time / seconds % points) as usize * POINT_BYTES;
                ring[at..at + 4].copy_from_slice(&time.to_be_bytes());
                ring[at + 4..at + 12].copy_from_slice(&value.to_be_bytes());
            }
            bytes.extend(ring);
        }
        bytes
    }

    #[test]
    fn points_become_rows_that_end_where_they_do() {
        // Six minutes of one minute, before them ten minutes of five.
        let fine: Vec<(u32, f64)> = (0..6).map(|minute| (6000 + minute * 60, f64::from(minute))).collect();
        let bytes = file(1, &[(60, 6, &fine), (300, 4, &[(5100, 10.0), (5400, 20.0), (6000, 2.0)])]);
        let file = WhisperFile::decode(&bytes, i64::MAX).expect("a file");
        let rrd = file.to_rrd("value", None).expect("an RRD");
        let runs = Selection { archives: Archives::All, ..Selection::default() }.runs(&rrd);
        let rows = |index: usize| {
            runs[index].times.iter().map(|time| time / MS).zip(runs[index].values.clone()).collect::<Vec<_>>()
        };
        assert_eq!(rows(0), [(6060, 0.0), (6120, 1.0), (6180, 2.0), (6240, 3.0), (6300, 4.0), (6360, 5.0)]);
        // What 5100 had is overwritten by 6300, of which no point is known yet.
        assert_eq!(rows(1), [(5700, 20.0), (6300, 2.0)]);
    }

    #[test]
    fn a_point_of_the_future_does_not_make_the_others_old() {
        let bytes = file(1, &[(60, 6, &[(6000, 1.0), (6060, 2.0), (4_294_967_220, 3.0)])]);
        let file = WhisperFile::decode(&bytes, 10_000).expect("a file");
        assert_eq!(file.point_count(), 2);
        let today = self::file(1, &[(86_400, 6, &[(86_400, 1.0), (172_800, 2.0)])]);
        assert_eq!(WhisperFile::decode(&today, 180_000).expect("a file").point_count(), 1);
        let rrd = file.to_rrd("value", None).expect("an RRD");
        assert_eq!(Selection::default().runs(&rrd)[0].values, [1.0, 2.0]);
    }

    #[test]
    fn coarse_sums_become_averages() {
        let bytes = file(2, &[(60, 5, &[(6000, 3.0)]), (300, 4, &[(5400, 20.0)])]);
        let rrd =
            WhisperFile::decode(&bytes, i64::MAX).expect("a file").to_rrd("value", None).expect("an RRD");
        let runs = Selection { archives: Archives::All, ..Selection::default() }.runs(&rrd);
        assert_eq!((runs[1].times.clone(), runs[1].values.clone()), (vec![5_700_000], vec![4.0]));
    }

    #[test]
    fn what_is_no_whisper_file_is_refused_by_name() {
        let good = file(1, &[(60, 6, &[]), (300, 4, &[])]);
        assert!(WhisperFile::decode(&good, i64::MAX).is_ok());
        for length in 0..good.len() {
            assert_eq!(WhisperFile::decode(&good[..length], i64::MAX), Err(WhisperError::Short), "{length}");
        }
        let changed = |at: usize, number: u32| {
            let mut bytes = good.clone();
            bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
            WhisperFile::decode(&bytes, i64::MAX).expect_err("refused").to_string()
        };
        assert!(changed(0, 99).contains("aggregation method"));
        assert!(changed(8, 2f32.to_bits()).contains("xFilesFactor"));
        assert!(changed(12, u32::MAX).contains("more than 64"));
        assert!(changed(20, 0).contains("take no time"));
        assert!(changed(32, 90).contains("no multiple"));
        assert!(changed(24, u32::MAX).contains("ends before"));
    }
}
