//! The grammar: a time of day and a day, or one of the words `now start end epoch`; then offsets.
//!
//! Numbers wrap like C's `int`, because scripts can see it: `now+4294967297` is a second from now.

use super::error::AtError;
use super::fields::Fields;
use super::scanner::{Kind, Scanner, Unit};
use super::{Reference, TimeSpec};
use crate::when::calendar::Calendar;

/// A number must be above this (ten years) to be seconds since the epoch.
const SECONDS_MIN: i64 = 3600 * 24 * 365 * 10;
/// A number between these, both excluded, is a date: YYYYMMDD.
const DATE_NUMBERS: (i64, i64) = (19_700_101, 24_000_101);
/// Last day of a month.
const DAY_MAX: i64 = 31;
/// Below this, an `m` on its own means months.
const MONTHS_BELOW: i32 = 6;
/// Compat: values of hour and year while the text has not named them. The one of the year is also the default for
/// a date without a year, so `5/12` is a day of the year 30000.
const HOUR_MARK: i32 = 30;
const YEAR_MARK: i32 = 30_000;

pub(super) fn parse(text: &str, now: i64, calendar: &dyn Calendar) -> Result<TimeSpec, AtError> {
    let local = calendar.local(now);
    let fields = Fields::of(&local);
    let mut parser = Parser {
        scanner: Scanner::new(text),
        fields,
        summer: None,
        offset: 0,
        weekday: local.weekday,
        calendar,
    };
    let reference = parser.reference()?;
    parser.offsets()?;
    if parser.scanner.kind != Kind::End {
        return Err(AtError::Trailing(parser.scanner.remaining()));
    }
    let Parser { mut fields, mut summer, offset, .. } = parser;
    if reference == Reference::Absolute {
        let time = fields.time(summer, calendar);
        if time == -1 {
            return Err(AtError::OutOfRange);
        }
        // Compat: RRDtool asks the calendar once more when the time is resolved, and then knows whether summer
        // time is in force. Which of two equal times of day C picks depends on what it was asked before.
        let local = calendar.local(time);
        (fields, summer) = (Fields::of(&local), Some(local.summer));
    }
    Ok(TimeSpec { reference, fields, summer, offset })
}

/// Like `atol`: too many digits give the largest number.
fn long(digits: &str) -> i64 {
    digits.parse().unwrap_or(i64::MAX)
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    fields: Fields,
    /// Whether summer time is in force, when the text gave seconds since the epoch.
    summer: Option<bool>,
    /// Seconds.
    offset: i64,
    /// Today's, in days after Sunday.
    weekday: i32,
    calendar: &'a dyn Calendar,
}

impl Parser<'_> {
    fn reference(&mut self) -> Result<Reference, AtError> {
        match self.scanner.kind {
            Kind::Plus | Kind::Minus => {}
            Kind::RangeStart => return self.relative(Reference::Start),
            Kind::RangeEnd => return self.relative(Reference::End),
            Kind::Epoch => return self.relative(Reference::Epoch),
            Kind::Now => {
                self.scanner.advance();
                if !matches!(self.scanner.kind, Kind::End | Kind::Plus | Kind::Minus) {
                    return Err(AtError::OffsetExpected);
                }
            }
            Kind::Number => self.number()?,
            Kind::Month(_) => {
                self.day()?;
                if self.scanner.kind == Kind::Number {
                    self.time_of_day()?;
                }
            }
            Kind::Midnight => self.named_hour(0)?,
            Kind::Noon => self.named_hour(12)?,
            Kind::Teatime => self.named_hour(16)?,
            _ => return Err(AtError::Unparsable(self.scanner.remaining())),
        }
        Ok(Reference::Absolute)
    }

    fn relative(&mut self, reference: Reference) -> Result<Reference, AtError> {
        self.fields = Fields::default();
        self.scanner.advance();
        if !matches!(self.scanner.kind, Kind::Plus | Kind::Minus) {
            return Err(AtError::OffsetMissing);
        }
        Ok(reference)
    }

    fn named_hour(&mut self, hour: i32) -> Result<(), AtError> {
        self.fields.set_time_of_day(hour, 0);
        self.scanner.advance();
        self.day()
    }

    /// A text that starts with a number: a time of day, a day, both in either order, or seconds.
    fn number(&mut self) -> Result<(), AtError> {
        let (hour, year) = (self.fields.hour, self.fields.year);
        self.fields.hour = HOUR_MARK;
        self.fields.year = YEAR_MARK;
        self.time_of_day()?;
        self.day()?;
        if self.fields.hour == HOUR_MARK && self.fields.year != YEAR_MARK {
            self.time_of_day()?;
        }
        if self.fields.hour == HOUR_MARK {
            self.fields.hour = hour;
        }
        if self.fields.year == YEAR_MARK {
            self.fields.year = year;
        }
        Ok(())
    }

    /// Hours, with or without minutes, AM or PM. Changes nothing when the token is longer than two characters, when
    /// the sign of a date follows, or when it is not an hour.
    ///
    /// Compat: does not check that the token is a number; anything of one or two characters is hour 0.
    fn time_of_day(&mut self) -> Result<(), AtError> {
        let before = self.scanner;
        if before.token().len() > 2 {
            return Ok(());
        }
        let mut hour: i32 = before.token().parse().unwrap_or(0);
        if before.kind != Kind::Number {
            hour = 0;
        }
        let mut minute = 0;
        self.scanner.advance();
        if matches!(self.scanner.kind, Kind::Dot | Kind::Slash) {
            self.scanner.back_to(before, hour);
            return Ok(());
        }
        if self.scanner.kind == Kind::Colon {
            self.scanner.advance();
            if self.scanner.kind != Kind::Number {
                return Err(AtError::MinutesMissing);
            }
            minute = long(self.scanner.token()) as i32;
            if minute > 59 {
                return Err(AtError::Minutes(minute));
            }
            self.scanner.advance();
        }
        match self.scanner.kind {
            half @ (Kind::Am | Kind::Pm) => {
                if hour > 12 {
                    return Err(AtError::HalfDay);
                }
                hour = hour % 12 + if half == Kind::Pm { 12 } else { 0 };
                self.scanner.advance();
            }
            _ if hour > 23 => {
                self.scanner.back_to(before, hour);
                return Ok(());
            }
            _ => {}
        }
        self.fields.set_time_of_day(hour, minute);
        Ok(())
    }

    /// A day, if one follows.
    fn day(&mut self) -> Result<(), AtError> {
        let days = match self.scanner.kind {
            Kind::Yesterday => -1,
            Kind::Today => 0,
            Kind::Tomorrow => 1,
            Kind::Weekday(weekday) => weekday - self.weekday,
            Kind::Month(month) => return self.named_month(month),
            Kind::Number => return self.numeric_day(),
            _ => return Ok(()),
        };
        self.fields.day = self.fields.day.wrapping_add(days);
        self.scanner.advance();
        Ok(())
    }

    fn named_month(&mut self, month: i32) -> Result<(), AtError> {
        self.scanner.advance();
        if self.scanner.kind != Kind::Number {
            return Err(AtError::DayMissing);
        }
        let day = long(self.scanner.token());
        self.scanner.advance();
        let mut year = i64::from(self.fields.year);
        if self.scanner.kind == Kind::Number {
            year = long(self.scanner.token());
            self.scanner.advance();
        }
        self.set_date(day, i64::from(month), year)
    }

    /// Seconds since the epoch, YYYYMMDD, or numbers with `.` or `/` between them.
    fn numeric_day(&mut self) -> Result<(), AtError> {
        let digits = self.scanner.token();
        let mut month = long(digits);
        let mut day = 0;
        let mut year = i64::from(self.fields.year);
        self.scanner.advance();
        if month > DATE_NUMBERS.0 && month < DATE_NUMBERS.1 {
            // Compat: split by position, so leading zeros shift the date.
            (year, month, day) = (long(&digits[..4]), long(&digits[4..6]), long(&digits[6..8]));
        } else if month > SECONDS_MIN {
            let local = self.calendar.local(month);
            let today = self.fields;
            self.fields = Fields::of(&local);
            if local.day == 0 {
                // Compat: C leaves day and month unchanged when the year does not fit.
                (self.fields.day, self.fields.month) = (today.day, today.month);
            }
            self.summer = Some(local.summer);
            return Ok(());
        } else if month > DAY_MAX {
            return Err(AtError::Month(month as i32));
        } else if let sign @ (Kind::Dot | Kind::Slash) = self.scanner.kind {
            let dot = sign == Kind::Dot;
            let written = if dot { '.' } else { '/' };
            self.scanner.advance();
            if self.scanner.kind != Kind::Number {
                return Err(AtError::DatePartMissing { month: dot, sign: written });
            }
            day = long(self.scanner.token());
            self.scanner.advance();
            if self.scanner.kind == sign {
                self.scanner.advance();
                if self.scanner.kind != Kind::Number {
                    return Err(AtError::YearMissing(written));
                }
                year = long(self.scanner.token());
                self.scanner.advance();
            }
            if dot {
                std::mem::swap(&mut day, &mut month);
            }
        }
        if !(1..=12).contains(&month) {
            return Err(AtError::Month(month as i32));
        }
        if !(1..=DAY_MAX).contains(&day) {
            return Err(AtError::Day(day as i32));
        }
        self.set_date(day, month - 1, year)
    }

    /// `month` counts from 0; `year` is complete, or counts from 1900.
    fn set_date(&mut self, day: i64, month: i64, year: i64) -> Result<(), AtError> {
        let year = match year {
            1971.. => year - 1900,
            0..=37 => year + 100,
            38..=138 => year,
            _ => return Err(AtError::Year(year as i32)),
        };
        if year < 70 {
            return Err(AtError::BeforeEpoch);
        }
        self.fields.day = day as i32;
        self.fields.month = month as i32;
        self.fields.year = year as i32;
        Ok(())
    }

    fn offsets(&mut self) -> Result<(), AtError> {
        if !matches!(self.scanner.kind, Kind::Plus | Kind::Minus) {
            return Ok(());
        }
        let mut sign = 1;
        let mut context = None;
        loop {
            match self.scanner.kind {
                kind @ (Kind::Plus | Kind::Minus) => {
                    sign = if kind == Kind::Plus { 1 } else { -1 };
                    context = None;
                    self.scanner.advance();
                    if self.scanner.kind != Kind::Number {
                        return Err(AtError::NumberMissing(if kind == Kind::Plus { '+' } else { '-' }));
                    }
                }
                Kind::Number => {}
                _ => return Ok(()),
            }
            context = self.offset(sign, context);
        }
    }

    /// A number and its unit. Returns the unit, for the `m` that may follow.
    fn offset(&mut self, sign: i32, context: Option<Unit>) -> Option<Unit> {
        let count = long(self.scanner.token()) as i32;
        self.scanner.advance_unit();
        let unit = match self.scanner.kind {
            Kind::Unit(Unit::MonthOrMinute) => Some(match context {
                Some(Unit::Day | Unit::Week | Unit::Month | Unit::Year) => Unit::Month,
                Some(_) => Unit::Minute,
                None if count < MONTHS_BELOW => Unit::Month,
                None => Unit::Minute,
            }),
            Kind::Unit(unit) => Some(unit),
            // Compat: anything else is skipped, and the number counts seconds.
            _ => None,
        };
        self.scanner.advance();
        let count = count.wrapping_mul(sign);
        let add = |field: &mut i32, count: i32| *field = field.wrapping_add(count);
        match unit {
            Some(Unit::Year) => add(&mut self.fields.year, count),
            Some(Unit::Month) => add(&mut self.fields.month, count),
            Some(Unit::Week) => add(&mut self.fields.day, count.wrapping_mul(7)),
            Some(Unit::Day) => add(&mut self.fields.day, count),
            Some(Unit::Hour) => self.offset += i64::from(count.wrapping_mul(3600)),
            Some(Unit::Minute) => self.offset += i64::from(count.wrapping_mul(60)),
            _ => self.offset += i64::from(count),
        }
        unit
    }
}
