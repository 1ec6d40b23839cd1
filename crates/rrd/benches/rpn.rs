//! The cost of a row of an expression, and of a VDEF over many rows.
//!
//! `cargo bench -p roundel-rrd --bench rpn`. Prints nanoseconds per row, the best of several rounds.

use std::hint::black_box;
use std::time::Instant;

use roundel_rrd::rpn::{EvalContext, Expression, Series, Symbol, Vdef};
use roundel_rrd::when::calendar::Utc;

const ROUNDS: usize = 7;
const ROWS: usize = 100_000;

fn series(seed: u64) -> Series {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if state >> 60 == 0 { f64::NAN } else { (state >> 33) as f64 / 1e3 }
    };
    Series { start: 1_000_000_000, step: 300, values: (0..ROWS).map(|_| next()).collect() }
}

fn lookup(name: &str) -> Option<Symbol> {
    ["a", "b", "c", "d"].iter().position(|known| *known == name).map(Symbol::Series)
}

/// Nanoseconds per row in the fastest round.
fn best(mut run: impl FnMut()) -> f64 {
    let times = (0..ROUNDS).map(|_| {
        let begin = Instant::now();
        run();
        begin.elapsed().as_nanos() as f64 / ROWS as f64
    });
    times.fold(f64::INFINITY, f64::min)
}

fn main() {
    let inputs = [series(1), series(2), series(3), series(4)];
    let inputs: Vec<&Series> = inputs.iter().collect();
    let context = EvalContext { now: 0, first_weekday: 0, calendar: &Utc };
    let expressions = [
        "a",
        "a,8,*",
        "a,b,+,8,*",
        "a,UN,0,a,IF,b,UN,0,b,IF,+",
        "a,b,ADDNAN,c,ADDNAN,d,ADDNAN,1024,/",
        "a,PREV,ADDNAN",
        "a,1800,TREND",
        "a,86400,TRENDNAN",
        "a,b,c,d,4,AVG",
        "a,b,c,d,4,SORT,POP,POP,POP",
        "a,b,c,d,4,MEDIAN",
        "a,STEPWIDTH,*,NEWMONTH,0,PREV,IF,ADDNAN",
        "86400,-7,1800,a,PREDICT",
        "86400,-7,1800,95,a,PREDICTPERC",
    ];
    println!("ns a row, {ROWS} rows");
    for text in expressions {
        let Ok(expression) = Expression::parse(text, lookup) else { panic!("{text}") };
        let ns = best(|| {
            black_box(expression.evaluate(&inputs, &[], &context).ok());
        });
        println!("{ns:9.1}  CDEF {text}");
    }
    for text in ["a,MAXIMUM", "a,AVERAGE", "a,STDEV", "a,95,PERCENT", "a,95,PERCENTNAN", "a,LSLSLOPE"] {
        let Ok(vdef) = Vdef::parse("v", text, lookup) else { panic!("{text}") };
        let ns = best(|| {
            black_box(vdef.evaluate(inputs[0]));
        });
        println!("{ns:9.1}  VDEF {text}");
    }
}
