//! Plans the horizontal axis: the times of grid lines, and the labels.
//!
//! Owns the table of grids that RRDtool chooses from; [`super::time_steps`] steps through local time.

use rrd::when::calendar::Calendar;

use super::time_steps::{first, next};
use crate::picture::options::TimeUnit::{Day, Hour, Minute, Month, Second, Week};
use crate::picture::options::{Interval, Options, XGrid};
use crate::print::TimeFormat;

/// Most lines and labels of a grid; later ones are left out. RRDtool has no limit; no canvas shows so many.
pub const LINES_MAX: usize = 5000;
const DAY: i64 = 86_400;
/// What labels of months and of years are centred over.
const MONTH: i64 = 30 * DAY;
const YEAR: i64 = 365 * DAY;

/// A line of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLine {
    /// Seconds since the epoch.
    pub time: i64,
    /// Whether it belongs to the major grid.
    pub major: bool,
}

/// A label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeLabel {
    /// The time under which it is centred: seconds since the epoch.
    pub time: i64,
    /// The text.
    pub text: Vec<u8>,
}

/// The horizontal axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeAxis {
    /// Its lines in drawing order: the minor grid, then the major one.
    pub lines: Vec<TimeLine>,
    /// Its labels.
    pub labels: Vec<TimeLabel>,
}

/// What a horizontal axis is planned from.
#[derive(Clone, Copy)]
pub struct TimeAxisInput<'a> {
    /// The options.
    pub options: &'a Options,
    /// Start and end in seconds since the epoch; the second is later.
    pub span: (i64, i64),
    /// Width of the canvas in pixels.
    pub width: f64,
    /// Local time.
    pub calendar: &'a dyn Calendar,
    /// Formats dates.
    pub times: &'a dyn TimeFormat,
    /// The day on which weeks begin, counted from Sunday = 0.
    pub first_weekday: u32,
}

/// A grid.
struct Grid<'a> {
    minor: Interval,
    major: Interval,
    label: Interval,
    /// Seconds that a label is centred over.
    precision: i64,
    format: &'a [u8],
}

/// A grid that RRDtool may choose.
struct Choice {
    /// It suits from this many seconds per pixel on,
    seconds_per_pixel: f64,
    /// and from this many seconds in the whole range on.
    seconds: i64,
    minor: Interval,
    major: Interval,
    label: Interval,
    precision: i64,
    /// `None` = `--week-fmt`.
    format: Option<&'static [u8]>,
}

/// An entry of [`CHOICES`].
const fn choice(
    from: (f64, i64),
    minor: Interval,
    major: Interval,
    label: Interval,
    precision: i64,
    format: &'static str,
) -> Choice {
    let format = if format.is_empty() { None } else { Some(format.as_bytes()) };
    Choice { seconds_per_pixel: from.0, seconds: from.1, minor, major, label, precision, format }
}

const fn every(count: i32, unit: crate::picture::options::TimeUnit) -> Interval {
    Interval { unit, count }
}

/// The grids that RRDtool chooses from; the last that suits is taken. Measured by drawing spans of 2 s to 40 years at widths of 150 to 20000 pixels.
const CHOICES: [Choice; 37] = [
    choice((0.0, 0), every(1, Second), every(5, Second), every(1, Second), 0, "%H:%M:%S"),
    choice((0.015, 0), every(1, Second), every(5, Second), every(5, Second), 0, "%H:%M:%S"),
    choice((0.08, 0), every(1, Second), every(5, Second), every(10, Second), 0, "%H:%M:%S"),
    choice((0.15, 0), every(5, Second), every(15, Second), every(30, Second), 0, "%H:%M:%S"),
    choice((0.4, 0), every(10, Second), every(1, Minute), every(1, Minute), 0, "%H:%M"),
    choice((0.7, 0), every(20, Second), every(1, Minute), every(1, Minute), 0, "%H:%M"),
    choice((1.0, 0), every(30, Second), every(1, Minute), every(2, Minute), 0, "%H:%M"),
    choice((2.0, 0), every(1, Minute), every(5, Minute), every(5, Minute), 0, "%H:%M"),
    choice((5.0, 0), every(2, Minute), every(10, Minute), every(10, Minute), 0, "%H:%M"),
    choice((10.0, 0), every(5, Minute), every(20, Minute), every(20, Minute), 0, "%H:%M"),
    choice((30.0, 0), every(10, Minute), every(30, Minute), every(1, Hour), 0, "%H:%M"),
    choice((60.0, 0), every(30, Minute), every(1, Hour), every(2, Hour), 0, "%H:%M"),
    choice((60.0, DAY), every(30, Minute), every(1, Hour), every(3, Hour), 0, "%a %H:%M"),
    choice((140.0, 0), every(1, Hour), every(2, Hour), every(4, Hour), 0, "%a %H:%M"),
    choice((180.0, 0), every(1, Hour), every(3, Hour), every(6, Hour), 0, "%a %H:%M"),
    choice((300.0, 0), every(2, Hour), every(6, Hour), every(12, Hour), 0, "%a %H:%M"),
    choice((600.0, 0), every(6, Hour), every(1, Day), every(1, Day), DAY, "%a %d %b"),
    choice((1200.0, 0), every(6, Hour), every(1, Day), every(1, Day), DAY, "%d %b"),
    choice((1800.0, 0), every(12, Hour), every(1, Day), every(2, Day), DAY, "%a %d %b"),
    choice((2400.0, 0), every(12, Hour), every(1, Day), every(2, Day), DAY, "%d %b"),
    choice((3600.0, 0), every(1, Day), every(1, Week), every(1, Week), 7 * DAY, ""),
    choice((12_000.0, 0), every(1, Day), every(1, Month), every(1, Month), MONTH, "%B %Y"),
    choice((18_000.0, 0), every(2, Day), every(1, Month), every(1, Month), MONTH, "%B %Y"),
    choice((23_000.0, 0), every(1, Week), every(1, Month), every(1, Month), MONTH, "%b %Y"),
    choice((32_000.0, 0), every(1, Week), every(1, Month), every(1, Month), MONTH, "%b '%g"),
    choice((42_000.0, 0), every(1, Week), every(1, Month), every(2, Month), MONTH, "%B %Y"),
    choice((52_000.0, 0), every(1, Week), every(1, Month), every(2, Month), MONTH, "%b %Y"),
    choice((78_000.0, 0), every(1, Week), every(1, Month), every(2, Month), MONTH, "%b '%g"),
    choice((84_000.0, 0), every(2, Week), every(1, Month), every(3, Month), MONTH, "%B %Y"),
    choice((94_000.0, 0), every(2, Week), every(1, Month), every(3, Month), MONTH, "%b %Y"),
    choice((120_000.0, 0), every(2, Week), every(1, Month), every(3, Month), MONTH, "%b '%g"),
    choice((130_000.0, 0), every(1, Month), every(2, Month), every(4, Month), 0, "%Y-%m-%d"),
    choice((142_000.0, 0), every(1, Month), every(3, Month), every(6, Month), 0, "%Y-%m-%d"),
    choice((220_000.0, 0), every(1, Month), every(6, Month), every(12, Month), 0, "%Y-%m-%d"),
    choice((400_000.0, 0), every(2, Month), every(12, Month), every(12, Month), YEAR, "%Y"),
    choice((800_000.0, 0), every(4, Month), every(12, Month), every(24, Month), YEAR, "%Y"),
    choice((2_000_000.0, 0), every(6, Month), every(12, Month), every(24, Month), YEAR, "'%g"),
];

/// Plans the horizontal axis.
pub fn plan(input: &TimeAxisInput<'_>) -> TimeAxis {
    let Some(grid) = grid(input) else { return TimeAxis::default() };
    let (start, end) = input.span;
    let lines = |every: Interval| walk(input, every, start).take_while(move |time| *time < end);
    let mut axis = TimeAxis::default();
    let mut majors = walk(input, grid.major, start).peekable();
    for time in lines(grid.minor).filter(|time| *time >= start) {
        while majors.next_if(|major| *major < time).is_some() {}
        if majors.peek() != Some(&time) {
            axis.lines.push(TimeLine { time, major: false });
        }
    }
    let majors = lines(grid.major).filter(|time| *time >= start);
    axis.lines.extend(majors.map(|time| TimeLine { time, major: true }));
    axis.labels = labels(input, &grid);
    axis
}

/// The grid of the options, or the one for the range and the width.
fn grid<'a>(input: &TimeAxisInput<'a>) -> Option<Grid<'a>> {
    match &input.options.x_grid {
        XGrid::None => None,
        XGrid::Custom { grid, major, label, precision, format } => {
            Some(Grid { minor: *grid, major: *major, label: *label, precision: *precision, format })
        }
        XGrid::Auto => {
            let seconds = input.span.1.saturating_sub(input.span.0);
            let seconds_per_pixel = seconds as f64 / input.width;
            let suits =
                |choice: &&Choice| choice.seconds_per_pixel <= seconds_per_pixel && choice.seconds <= seconds;
            let choice = CHOICES.iter().rev().find(suits).unwrap_or(&CHOICES[0]);
            let format = choice.format.unwrap_or(&input.options.week_format);
            let Choice { minor, major, label, precision, .. } = *choice;
            Some(Grid { minor, major, label, precision, format })
        }
    }
}

/// The labels. Compat: a label is in the middle of its period and shows the date there; it is left out if that is
/// outside of the range.
fn labels(input: &TimeAxisInput<'_>, grid: &Grid<'_>) -> Vec<TimeLabel> {
    let (start, end) = input.span;
    let half = grid.precision / 2;
    let of = walk(input, grid.label, start.saturating_sub(half));
    let middles = of.map(|time| time.saturating_add(half)).take_while(|time| *time <= end);
    let middles = middles.filter(|time| *time >= start);
    middles.map(|time| TimeLabel { time, text: input.times.strftime(grid.format, time) }).collect()
}

/// Times at this interval; the first is not after `from`.
fn walk(input: &TimeAxisInput<'_>, every: Interval, from: i64) -> impl Iterator<Item = i64> {
    let (calendar, first_weekday) = (input.calendar, input.first_weekday);
    let start = first(calendar, from, every, first_weekday);
    let later = move |time: &i64| Some(next(calendar, *time, every)).filter(|next| next > time);
    std::iter::successors(Some(start), later).take(LINES_MAX)
}
