//! The operators, their names and their numbers.

/// A kind of node in a program.
///
/// The numbers are RRDtool's, as in `.rrd` files; they were read from files that Debian's rrdtool wrote. The gap,
/// 32, is the end mark. ROUND came with 1.9 and has the number after POW.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are those of the manual page")]
pub enum Operator {
    Number = 0,
    Variable = 1,
    Inf = 2,
    Prev = 3,
    NegInf = 4,
    Unknown = 5,
    Now = 6,
    Time = 7,
    Add = 8,
    Modulo = 9,
    Subtract = 10,
    Multiply = 11,
    Divide = 12,
    Sin = 13,
    Dup = 14,
    Exc = 15,
    Pop = 16,
    Cos = 17,
    Log = 18,
    Exp = 19,
    Lt = 20,
    Le = 21,
    Gt = 22,
    Ge = 23,
    Eq = 24,
    If = 25,
    Min = 26,
    Max = 27,
    Limit = 28,
    Floor = 29,
    Ceil = 30,
    Un = 31,
    LocalTime = 33,
    Ne = 34,
    IsInf = 35,
    PrevOther = 36,
    Count = 37,
    Atan = 38,
    Sqrt = 39,
    Sort = 40,
    Reverse = 41,
    Trend = 42,
    TrendNan = 43,
    Atan2 = 44,
    RadToDeg = 45,
    DegToRad = 46,
    Predict = 47,
    PredictSigma = 48,
    Average = 49,
    Abs = 50,
    AddNan = 51,
    MinNan = 52,
    MaxNan = 53,
    Median = 54,
    PredictPercent = 55,
    Depth = 56,
    Copy = 57,
    Roll = 58,
    Index = 59,
    StepWidth = 60,
    NewDay = 61,
    NewWeek = 62,
    NewMonth = 63,
    NewYear = 64,
    SetMin = 65,
    SetMax = 66,
    StDev = 67,
    Percent = 68,
    Pow = 69,
    Round = 70,
    /// MAD, which is ours: it occurs in no file, and a variable of that name takes precedence.
    Deviation = 200,
}

use Operator as O;

/// Every operator that is a plain name, with that name.
const NAMES: [(Operator, &str); 67] = [
    (O::Inf, "INF"),
    (O::Prev, "PREV"),
    (O::NegInf, "NEGINF"),
    (O::Unknown, "UNKN"),
    (O::Now, "NOW"),
    (O::Time, "TIME"),
    (O::Add, "+"),
    (O::Modulo, "%"),
    (O::Subtract, "-"),
    (O::Multiply, "*"),
    (O::Divide, "/"),
    (O::Sin, "SIN"),
    (O::Dup, "DUP"),
    (O::Exc, "EXC"),
    (O::Pop, "POP"),
    (O::Cos, "COS"),
    (O::Log, "LOG"),
    (O::Exp, "EXP"),
    (O::Lt, "LT"),
    (O::Le, "LE"),
    (O::Gt, "GT"),
    (O::Ge, "GE"),
    (O::Eq, "EQ"),
    (O::If, "IF"),
    (O::Min, "MIN"),
    (O::Max, "MAX"),
    (O::Limit, "LIMIT"),
    (O::Floor, "FLOOR"),
    (O::Ceil, "CEIL"),
    (O::Un, "UN"),
    (O::LocalTime, "LTIME"),
    (O::Ne, "NE"),
    (O::IsInf, "ISINF"),
    (O::Count, "COUNT"),
    (O::Atan, "ATAN"),
    (O::Sqrt, "SQRT"),
    (O::Sort, "SORT"),
    (O::Reverse, "REV"),
    (O::Trend, "TREND"),
    (O::TrendNan, "TRENDNAN"),
    (O::Atan2, "ATAN2"),
    (O::RadToDeg, "RAD2DEG"),
    (O::DegToRad, "DEG2RAD"),
    (O::Predict, "PREDICT"),
    (O::PredictSigma, "PREDICTSIGMA"),
    (O::Average, "AVG"),
    (O::Abs, "ABS"),
    (O::AddNan, "ADDNAN"),
    (O::MinNan, "MINNAN"),
    (O::MaxNan, "MAXNAN"),
    (O::Median, "MEDIAN"),
    (O::PredictPercent, "PREDICTPERC"),
    (O::Depth, "DEPTH"),
    (O::Copy, "COPY"),
    (O::Roll, "ROLL"),
    (O::Index, "INDEX"),
    (O::StepWidth, "STEPWIDTH"),
    (O::NewDay, "NEWDAY"),
    (O::NewWeek, "NEWWEEK"),
    (O::NewMonth, "NEWMONTH"),
    (O::NewYear, "NEWYEAR"),
    (O::SetMin, "SMIN"),
    (O::SetMax, "SMAX"),
    (O::StDev, "STDEV"),
    (O::Percent, "PERCENT"),
    (O::Pow, "POW"),
    (O::Round, "ROUND"),
];

impl Operator {
    /// The operator with this number in a file.
    pub fn from_number(number: u8) -> Option<Operator> {
        match number {
            0 => Some(Operator::Number),
            1 => Some(Operator::Variable),
            36 => Some(Operator::PrevOther),
            _ => NAMES.iter().map(|&(operator, _)| operator).find(|&operator| operator as u8 == number),
        }
    }

    /// The operator with exactly this name.
    pub fn from_name(name: &str) -> Option<Operator> {
        NAMES.iter().find(|&&(_, text)| text == name).map(|&(operator, _)| operator)
    }

    /// Its name; `None` for numbers, variables and `PREV(..)`, whose text depends on the operand.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|&&(operator, _)| operator == self).map(|&(_, text)| text)
    }

    /// True for operators that read neighbouring rows or the row's own time, which a COMPUTE source cannot.
    pub fn needs_series(self) -> bool {
        matches!(
            self,
            O::Time
                | O::LocalTime
                | O::StepWidth
                | O::Prev
                | O::NewDay
                | O::NewWeek
                | O::NewMonth
                | O::NewYear
                | O::Count
                | O::Trend
                | O::TrendNan
                | O::Predict
                | O::PredictSigma
                | O::PredictPercent
        )
    }
}
