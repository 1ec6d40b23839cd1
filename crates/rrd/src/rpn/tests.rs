//! Cases of expressions, and expressions that would not come to an end.

use super::*;
use crate::when::calendar::Utc;

const CONTEXT: EvalContext<'static> = EvalContext { now: 5, first_weekday: 0, calendar: &Utc };

fn series(start: i64, step: u64, values: &[f64]) -> Series {
    Series { start, step, values: values.to_vec() }
}

fn lookup(name: &str) -> Option<Symbol> {
    match name {
        "x" => Some(Symbol::Series(0)),
        "w" => Some(Symbol::Series(1)),
        "v" => Some(Symbol::Scalar(0)),
        _ => None,
    }
}

/// Rows of `x`, of 100 seconds, and `w`, of 300.
fn evaluate_text(text: &str) -> Result<Series, EvaluateError> {
    let x = series(600, 100, &[1.0, 2.0, f64::NAN, 4.0, 5.0, 6.0]);
    let w = series(300, 300, &[10.0, 20.0, 30.0, 40.0]);
    Expression::parse(text, lookup).unwrap().evaluate(&[&x, &w], &[7.5], &CONTEXT)
}

#[test]
fn rows_are_those_that_all_series_have() {
    fn check(text: &str, start: i64, step: u64, want: &[f64]) {
        let got = evaluate_text(text).unwrap();
        assert_eq!((got.start, got.step), (start, step), "{text}");
        let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        assert!(got.values.len() == want.len() && got.values.iter().zip(want).all(same), "{text}: {got:?}");
    }
    let u = f64::NAN;
    check("x", 600, 100, &[1.0, 2.0, u, 4.0, 5.0, 6.0]);
    check("w", 300, 300, &[10.0, 20.0, 30.0, 40.0]);
    check("x,w,+", 600, 100, &[21.0, 22.0, u, 34.0, 35.0, 36.0]);
    check("x,POP,w", 600, 100, &[20.0, 20.0, 20.0, 30.0, 30.0, 30.0]);
    check("w,TIME,POP,COUNT,*", 300, 300, &[10.0, 40.0, 90.0, 160.0]);
    check("x,POP,v", 600, 100, &[7.5; 6]);
    check("x,POP,NOW", 600, 100, &[5.0; 6]);
    // The previous row of a wider variable is the last that has ended.
    check("x,POP,PREV(w)", 600, 100, &[u, 10.0, 10.0, 20.0, 20.0, 20.0]);
    check("x,POP,w,300,TREND", 600, 100, &[10.0, 10.0, 20.0, 20.0, 20.0, 30.0]);
    check("x,200,TRENDNAN", 600, 100, &[u, 1.5, 2.0, 4.0, 4.5, 5.5]);
    // A time that does not fit in an int.
    check("x,UNKN,TREND", 600, 100, &[u; 6]);
    check("x,INF,TRENDNAN", 600, 100, &[u; 6]);
    // Rows that do not exist: the shift of 0 reads after the last one.
    check("0,1,0,w,PREDICT", 300, 300, &[u, 30.0, 40.0, u]);
}

/// Where 1.9 fixes what Debian's 1.7.2 does wrong, or where that reads outside its data.
#[test]
fn newer_than_the_oracle() {
    fn check(text: &str, want: f64) {
        let got = evaluate_text(text).unwrap().values[0];
        assert!(got == want || (got.is_nan() && want.is_nan()), "{text}: {got}");
    }
    check("x,POP,2.5,ROUND", 3.0);
    check("x,POP,-2.5,ROUND", -3.0);
    check("x,POP,2.4,ROUND", 2.0);
    check("x,POP,UNKN,ROUND", f64::NAN);
    check("UNKN,UNKN,2,MEDIAN,x,POP", f64::NAN);
    check("x,POP,3,5,1,3,MEDIAN", 3.0);
    // The smallest one, not the value before the set.
    check("x,POP,3,5,1,0,3,PERCENT", 1.0);
    // Ours: the median of the distances from the median.
    check("x,POP,1,1,2,2,4,6,9,7,MAD", 1.0);
    check("x,POP,UNKN,1,3,3,MAD", 1.0);
}

#[test]
fn mad_gives_way_to_a_variable() {
    let lookup = |name: &str| (name == "MAD").then_some(Symbol::Series(0));
    let expression = Expression::parse("MAD,2,*", lookup).unwrap();
    let rows = expression.evaluate(&[&series(0, 10, &[4.0])], &[], &CONTEXT).unwrap();
    assert_eq!(rows.values, [8.0]);
}

#[test]
fn vdefs_have_times_where_they_are_of_a_row() {
    fn check(text: &str, value: f64, time: Option<i64>) {
        let rows = series(600, 100, &[f64::NAN, 2.0, 9.0, 9.0, f64::NAN]);
        let got = Vdef::parse("v", text, lookup).unwrap().evaluate(&rows);
        assert_eq!((got.value, got.time), (value, time), "{text}");
    }
    check("x,MAXIMUM", 9.0, Some(900));
    check("x,MINIMUM", 2.0, Some(800));
    check("x,FIRST", 2.0, Some(700));
    check("x,LAST", 9.0, Some(1000));
    check("x,TOTAL", 2000.0, None);
    check("x,60,PERCENT", 2.0, None);
    check("x,60,PERCENTNAN", 9.0, None);
    for text in ["x,MAXIMUM", "x,LAST", "x,50,PERCENTNAN", "x,50,PERCENT", "x,STDEV", "x,LSLINT"] {
        for rows in [&[][..], &[f64::NAN, f64::NAN]] {
            let got = Vdef::parse("v", text, lookup).unwrap().evaluate(&series(600, 100, rows));
            assert!(got.value.is_nan() && got.time.is_none(), "{text} of {rows:?}: {got:?}");
        }
    }
}

#[test]
fn what_would_not_end_is_refused() {
    fn check(text: &str, want: EvaluateError) {
        assert_eq!(
            evaluate_text(text).map(|rows| rows.values.len()),
            Err(want),
            "{}",
            &text[..60.min(text.len())]
        );
    }
    check("1,2,+", EvaluateError::NoSeries);
    check("v,2,+", EvaluateError::NoSeries);
    check(&format!("x{}", ",DEPTH,COPY".repeat(40)), EvaluateError::OutOfMemory(1 << 20));
    check("x,2e9,COPY", EvaluateError::Underflow);
    check("x,2e9,SORT", EvaluateError::Underflow);
    check("x,2e9,INDEX", EvaluateError::Underflow);
    check("x,2e9,2e9,ROLL", EvaluateError::Underflow);
    check("x,-1,1,ROLL", EvaluateError::OutOfMemory(-1));
    check("x,-1,SORT", EvaluateError::Underflow);
    check("x,1e300,AVG", EvaluateError::Underflow);
    check("x,1,1e9,UNKN,x,PREDICTPERC", EvaluateError::UnsupportedPercentile(crate::live::UNKNOWN.to_bits()));
    check("x,UNKN,0,x,PREDICT", EvaluateError::NegativeShift(i32::MIN));
    let deep = "x,".repeat(200_000);
    check(&deep, EvaluateError::FinalSize);
    assert_eq!(evaluate_text(&format!("{deep}{}", "+,".repeat(199_999))).unwrap().values[0], 200_000.0);
    assert_eq!(Expression::parse(&"1,".repeat(TOKENS), lookup).unwrap_err(), RpnError::TooLong);
    // This asks for so much work in one row; the limit is the caller's.
    let expression = Expression::parse("0,-2e9,1e9,x,PREDICT", lookup).unwrap();
    let x = series(0, 1, &[1.0; 5]);
    let got = expression.evaluate_within(1 << 20, &[&x], &[], &CONTEXT);
    assert_eq!(got, Err(EvaluateError::TooMuchWork));
    // Two wide steps that make one row per second.
    let expression = Expression::parse("x,w,+", lookup).unwrap();
    let wide = [series(0, 1 << 40, &[1.0]), series(0, (1 << 40) - 1, &[1.0])];
    let got = expression.evaluate(&[&wide[0], &wide[1]], &[], &CONTEXT);
    assert_eq!(got, Err(EvaluateError::TooMuchWork));
}

/// One token more than an expression may have.
const TOKENS: usize = expression::TOKENS_MAX + 1;

#[test]
fn series_that_have_no_time_in_common_give_no_rows() {
    let expression = Expression::parse("x,w,+", lookup).unwrap();
    let apart = [series(0, 100, &[1.0, 2.0]), series(500, 100, &[1.0])];
    let got = expression.evaluate(&[&apart[0], &apart[1]], &[], &CONTEXT).unwrap();
    assert_eq!(got, series(500, 100, &[]));
}

#[test]
fn bad_expressions_are_refused_in_rrdtools_words() {
    fn check(text: &str, want: &str) {
        let refused = Expression::parse(text, lookup).map_err(|error| error.to_string());
        assert_eq!(refused.unwrap_err(), want, "{text}");
    }
    check("", "can not parse an empty rpn expression");
    check("x,1", "don't understand '1'");
    check("x,foo,+", "don't understand 'foo,+'");
    check("x,,w", "don't understand ',w'");
    check("x, 1,+", "don't understand ' 1,+'");
    check("x,1E3,+", "don't understand '1E3,+'");
    check("x,-inf,+", "don't understand '-inf,+'");
    check(
        "x,00000000000000000000000000000000000000001,+",
        "don't understand '00000000000000000000000000000000000000001,+'",
    );
    check("PREV(q)", "variable 'q' not found");
    check("PREV()", "don't understand 'PREV()'");
    check("PREV(x)y,1,+", "garbage in RPN: 'PREV(x)y,1,+'");
    check("x,PREV(x", "garbage in RPN: 'PREV(x'");
    check("x,PREV(é", "don't understand 'PREV(é'");
    let long = "y".repeat(256);
    assert!(Expression::parse(&long, |_| Some(Symbol::Series(0))).is_err());
}

#[test]
fn good_expressions_read_what_they_name() {
    fn check(text: &str, want: &[Symbol]) {
        assert_eq!(Expression::parse(text, lookup).unwrap().symbols(), want, "{text}");
    }
    let [x, w, v] = [Symbol::Series(0), Symbol::Series(1), Symbol::Scalar(0)];
    check("x,", &[x]);
    check("x,w,+,x,v,*,-", &[x, w, x, v]);
    check("1e400,x,+", &[x]);
    check("PREV(w),PREV(v),+", &[w, v]);
    // Any letter closes the bracket.
    check("PREV(x;", &[x]);
    check("PREV(x,,w,+", &[x, w]);
    check("TIME", &[]);
}

#[test]
fn bad_vdefs_are_refused_in_rrdtools_words() {
    fn check(text: &str, want: &str) {
        assert_eq!(Vdef::parse("v", text, lookup).unwrap_err().to_string(), want, "{text}");
    }
    check("x", "Comma expected in VDEF definition x");
    check("q,LAST", "Not a valid vname: q in line q,LAST");
    check("v,LAST", "variable 'v' not DEF nor CDEF in VDEF 'v,LAST'");
    check("x,last", "Unknown function string 'last' in VDEF 'v'");
    check("x,5-5,PERCENT", "Unknown function string '5-5,PERCENT' in VDEF 'v'");
    // These end in a line feed.
    check("x,LATEST", "Unknown function 'LATEST' in VDEF 'v'\n");
    check("x,95", "Unknown function '' in VDEF 'v'\n");
    check("x,PERCENT", "Function 'PERCENT' needs parameter in VDEF 'v'\n");
    check("x,95,LAST", "Function 'LAST' needs no parameter in VDEF 'v'\n");
    check("x,101,PERCENT", "Parameter '101.000000' out of range in VDEF 'v'\n");
    check("x,1e400,PERCENTNAN", "Parameter 'inf' out of range in VDEF 'v'\n");
}
