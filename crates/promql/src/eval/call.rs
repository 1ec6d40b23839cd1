//! Functions.

use crate::ast::{Edges, Expr, Kind};
use crate::source::RowKind;
use crate::value::{ABSENT, Column, Grid, Value, is_absent};

use super::over_time::{integral, line, simple, smooth, sum};
use super::rate::{Change, SharedExtents, change, count_steps, instant};
use super::scalar::{self, quantile};
use super::window::{Ranges, Rows, Window};
use super::{Evaluator, Result, refuse};

/// What a function of a range computes at a time: its index, the series and the window.
type OfRange<'f> = dyn Fn(usize, &Ranges, &Rows, Window<'_>) -> Option<f64> + Sync + 'f;

impl Evaluator<'_> {
    pub(super) fn call(&mut self, expr: &Expr, name: &str, arguments: &[Expr], grid: Grid) -> Result<Value> {
        if let Some(function) = scalar::simple(name) {
            let columns = self.vector(&arguments[0], grid)?;
            return self.map(columns, |_, value| function(value)).map(Value::Vector);
        }
        if let Some(function) = scalar::calendar(name) {
            return self.calendar(function, arguments, grid);
        }
        if let Some(values) = self.constant(name, grid)? {
            return Ok(Value::Scalar(values));
        }
        if arguments.iter().any(|argument| argument.value_type() == crate::ast::Type::Matrix) {
            return self.of_ranges(expr, name, arguments, grid).map(Value::Vector);
        }
        match name {
            "max_of" | "min_of" => {
                let (a, b) = (self.scalar(&arguments[0], grid)?, self.scalar(&arguments[1], grid)?);
                let choose = |a: f64, b: f64| match (a.is_nan() || b.is_nan(), name) {
                    (true, _) => f64::NAN,
                    (false, "max_of") => a.max(b),
                    _ => a.min(b),
                };
                Ok(Value::Scalar(a.iter().zip(&b).map(|(a, b)| choose(*a, *b)).collect()))
            }
            "scalar" => self.single(&arguments[0], grid),
            "vector" => {
                let values = self.scalar(&arguments[0], grid)?;
                Ok(Value::Vector(vec![Column::new(crate::labels::Labels::default(), values)]))
            }
            _ => self.of_vector(expr, name, arguments, grid).map(Value::Vector),
        }
    }

    /// What functions without arguments answer.
    fn constant(&mut self, name: &str, grid: Grid) -> Result<Option<Vec<f64>>> {
        let value = match name {
            "time" => {
                self.reserve(1, grid)?;
                return Ok(Some(grid.times().map(|time| time as f64 / 1000.0).collect()));
            }
            "pi" => std::f64::consts::PI,
            "start" => self.query.start as f64 / 1000.0,
            "end" => self.query.end as f64 / 1000.0,
            "range" => (self.query.end - self.query.start) as f64 / 1000.0,
            "step" => self.query.step as f64 / 1000.0,
            _ => return Ok(None),
        };
        self.repeated(value, grid).map(Some)
    }

    fn calendar(&mut self, function: fn(f64) -> f64, arguments: &[Expr], grid: Grid) -> Result<Value> {
        let columns = match arguments.first() {
            Some(argument) => self.vector(argument, grid)?,
            None => {
                let values = grid.times().map(|time| time as f64 / 1000.0).collect();
                vec![Column::new(crate::labels::Labels::default(), values)]
            }
        };
        self.map(columns, |_, value| function(value)).map(Value::Vector)
    }

    /// `scalar`: the value of the only series.
    fn single(&mut self, argument: &Expr, grid: Grid) -> Result<Value> {
        let columns = self.vector(argument, grid)?;
        let mut values = vec![f64::NAN; grid.count];
        for (index, value) in values.iter_mut().enumerate() {
            let mut present =
                columns.iter().map(|column| column.values[index]).filter(|value| !is_absent(*value));
            if let (Some(only), None) = (present.next(), present.next()) {
                *value = only;
            }
        }
        Ok(Value::Scalar(values))
    }

    fn of_vector(&mut self, expr: &Expr, name: &str, arguments: &[Expr], grid: Grid) -> Result<Vec<Column>> {
        match name {
            "absent" => self.absent(&arguments[0], grid),
            "clamp" | "clamp_min" | "clamp_max" => self.clamp(name, arguments, grid),
            "round" => {
                let nearest = match arguments.get(1) {
                    Some(nearest) => self.scalar(nearest, grid)?,
                    None => self.repeated(1.0, grid)?,
                };
                let columns = self.vector(&arguments[0], grid)?;
                self.map(columns, |index, value| scalar::round(value, nearest[index as usize]))
            }
            "timestamp" => self.timestamp(&arguments[0], grid),
            "sort" | "sort_desc" | "sort_by_label" | "sort_by_label_desc" => {
                self.sort(expr, name, arguments, grid)
            }
            "label_replace" => self.label_replace(arguments, grid),
            "label_join" => self.label_join(arguments, grid),
            "histogram_quantile" => self.histogram_quantile(arguments, grid),
            "histogram_quantiles" => self.histogram_quantiles(arguments, grid),
            "histogram_fraction" => self.histogram_fraction(arguments, grid),
            "histogram_avg" | "histogram_count" | "histogram_sum" | "histogram_stddev"
            | "histogram_stdvar" => {
                // These look into native histograms, which no series has.
                self.vector(&arguments[0], grid)?;
                Ok(Vec::new())
            }
            "info" => self.info(arguments, grid),
            name => refuse(format!("{name} is not known here")),
        }
    }

    fn clamp(&mut self, name: &str, arguments: &[Expr], grid: Grid) -> Result<Vec<Column>> {
        let low = match name {
            "clamp_max" => self.repeated(f64::NEG_INFINITY, grid)?,
            _ => self.scalar(&arguments[1], grid)?,
        };
        let high = match name {
            "clamp_min" => self.repeated(f64::INFINITY, grid)?,
            "clamp_max" => self.scalar(&arguments[1], grid)?,
            _ => self.scalar(&arguments[2], grid)?,
        };
        let mut columns = self.vector(&arguments[0], grid)?;
        for column in &mut columns {
            for (index, value) in column.values.iter_mut().enumerate() {
                if is_absent(*value) {
                    continue;
                }
                let (low, high) = (low[index], high[index]);
                *value = if low > high {
                    ABSENT
                } else if low.is_nan() || high.is_nan() {
                    f64::NAN
                } else {
                    value.min(high).max(low) + if value.is_nan() { f64::NAN } else { 0.0 }
                };
            }
        }
        self.unname(columns)
    }

    /// The times of rows, where they are a selector's; else the time of the evaluation.
    fn timestamp(&mut self, argument: &Expr, grid: Grid) -> Result<Vec<Column>> {
        let columns = match &argument.inner().kind {
            Kind::Selector(selector) if selector.edges == Edges::Inside => {
                self.instants_with(selector, grid, Some(|time, _| time as f64 / 1000.0))?
            }
            _ => {
                let columns = self.vector(argument, grid)?;
                return self.map(columns, |index, _| grid.time(index as usize) as f64 / 1000.0);
            }
        };
        self.unname(columns)
    }

    /// Functions of ranges.
    fn of_ranges(&mut self, expr: &Expr, name: &str, arguments: &[Expr], grid: Grid) -> Result<Vec<Column>> {
        if name == "absent_over_time" {
            return self.absent_over_time(&arguments[0], grid);
        }
        let place = usize::from(name == "quantile_over_time");
        let function = crate::functions::find(name).map_or("", |function| function.name);
        may_have_edges(name, &arguments[place])?;
        let ranges = self.ranges(&arguments[place], grid, function)?;
        let compute = self.of_range(expr, name, arguments, grid)?;
        self.reserve(ranges.rows.len(), grid)?;
        let keeps_name = matches!(name, "last_over_time" | "first_over_time");
        let shared = self.shared_extents(name, &ranges, grid)?;
        let all = self.of_each(&ranges.rows, grid, |rows| {
            if let Some(values) = shared.as_ref().and_then(|shared| shared.changes(rows)) {
                return values;
            }
            let mut values = vec![ABSENT; grid.count];
            ranges.windows(rows, |index, window| {
                if let Some(value) = compute(index, &ranges, rows, window) {
                    values[index] = value;
                }
            });
            values
        })?;
        let mut columns = Vec::with_capacity(ranges.rows.len());
        // Most series have the name of the one before, and the same note.
        let mut noted = None;
        for (rows, values) in ranges.rows.iter().zip(all) {
            let column = Column { values, ..rows.series.clone() };
            if column.is_empty() {
                continue;
            }
            let about = Some((rows.series.name(), rows.kind));
            if noted != about {
                self.note_rate(name, rows, &arguments[place]);
                noted = about;
            }
            columns.push(column);
        }
        drop(compute);
        if keeps_name { Ok(columns) } else { self.unname(columns) }
    }

    /// What several series need for `rate` and its kin, once for those with the times of the first.
    fn shared_extents(&mut self, name: &str, ranges: &Ranges, grid: Grid) -> Result<Option<SharedExtents>> {
        let (Some(change), [rows, _, ..]) = (Change::of_function(name), &ranges.rows[..]) else {
            return Ok(None);
        };
        self.reserve(SharedExtents::COLUMNS, grid)?;
        Ok(SharedExtents::of(change, ranges, rows))
    }

    /// What is worth knowing of a rate.
    fn note_rate(&mut self, function: &str, rows: &Rows, argument: &Expr) {
        if !matches!(function, "rate" | "increase" | "irate") {
            return;
        }
        let name = rows.series.name();
        if rows.kind == RowKind::Rates && function != "increase" {
            let text = format!("the rows of {} are a rate already", crate::labels::quoted(name));
            self.notes.inform(text, Some(argument.span));
            return;
        }
        let is_counter = ["_total", "_sum", "_count", "_bucket"].iter().any(|end| name.ends_with(end));
        if function != "irate" && !name.is_empty() && !is_counter {
            let text = format!(
                "metric might not be a counter, name does not end in _total/_sum/_count/_bucket: {}",
                crate::labels::quoted(name)
            );
            self.notes.inform(text, Some(argument.span));
        }
    }

    /// The function called `name`, with its other arguments.
    fn of_range(
        &mut self,
        expr: &Expr,
        name: &str,
        arguments: &[Expr],
        grid: Grid,
    ) -> Result<Box<OfRange<'static>>> {
        if let Some(function) = simple(name) {
            return Ok(Box::new(
                move |_, _, _, window| if window.len() == 0 { None } else { function(&window) },
            ));
        }
        if let Some(kind) = Change::of_function(name) {
            return Ok(Box::new(move |_, ranges, rows, window| change(kind, ranges, rows, window)));
        }
        Ok(match name {
            "irate" => Box::new(|_, _, rows, window| instant(true, rows, window)),
            "idelta" => Box::new(|_, _, rows, window| instant(false, rows, window)),
            "changes" => Box::new(|_, ranges, rows, window| count_steps(ranges, rows, window, false)),
            "resets" => Box::new(|_, ranges, rows, window| count_steps(ranges, rows, window, true)),
            "sum_over_time" => {
                Box::new(|_, _, rows, window| (window.len() > 0).then(|| sum(window.values) * rows.weight))
            }
            "count_over_time" => {
                Box::new(|_, _, rows, window| (window.len() > 0).then(|| window.len() as f64 * rows.weight))
            }
            "quantile_over_time" => self.quantile_over_time(arguments, grid)?,
            "predict_linear" => {
                let seconds = self.scalar(&arguments[1], grid)?;
                Box::new(move |index, _, _, window| {
                    let (slope, value) = line(&window, grid.time(index))?;
                    Some(slope * seconds[index] + value)
                })
            }
            "double_exponential_smoothing" => {
                let factors = (
                    self.factor("smoothing", &arguments[1], grid)?,
                    self.factor("trend", &arguments[2], grid)?,
                );
                Box::new(move |index, _, _, window| smooth(&window, factors.0[index], factors.1[index]))
            }
            "integral" => self.integral(expr, arguments, grid)?,
            name => return refuse(format!("{name} is not known here")),
        })
    }

    fn quantile_over_time(&mut self, arguments: &[Expr], grid: Grid) -> Result<Box<OfRange<'static>>> {
        let q = self.scalar(&arguments[0], grid)?;
        if let Some(wrong) = q.iter().find(|q| !(0.0..=1.0).contains(*q)) {
            self.warn_quantile(*wrong, arguments[0].span);
        }
        Ok(Box::new(move |index, _, _, window| {
            (window.len() > 0).then(|| quantile(q[index], &mut window.values.to_vec()))
        }))
    }

    pub(super) fn warn_quantile(&mut self, q: f64, span: crate::ast::Span) {
        let text = format!("quantile value should be between 0 and 1, got {}", crate::number::short(q));
        self.notes.warn(text, Some(span));
    }

    fn factor(&mut self, what: &str, argument: &Expr, grid: Grid) -> Result<Vec<f64>> {
        let factors = self.scalar(argument, grid)?;
        let short = if what == "smoothing" { "sf" } else { "tf" };
        match factors.iter().find(|factor| !(**factor > 0.0 && **factor < 1.0)) {
            None => Ok(factors),
            Some(wrong) => {
                refuse(format!("invalid {what} factor. Expected: 0 < {short} < 1, got: {wrong:.6}"))
            }
        }
    }

    fn integral(&mut self, expr: &Expr, arguments: &[Expr], grid: Grid) -> Result<Box<OfRange<'static>>> {
        let mut strategies = match arguments.get(1) {
            Some(strategy) => self.scalar(strategy, grid)?,
            None => vec![2.0; grid.count],
        };
        for strategy in &mut strategies {
            if ![0.0, 1.0, 2.0].contains(strategy) {
                let text = format!(
                    "strategy should be 0, 1, or 2 (default), using 2, got {}",
                    crate::number::short(*strategy)
                );
                self.notes.warn(text, Some(arguments.get(1).map_or(expr.span, |strategy| strategy.span)));
                *strategy = 2.0;
            }
        }
        Ok(Box::new(move |index, _, _, window| {
            (window.len() > 0).then(|| integral(&window, strategies[index] as i64)).flatten()
        }))
    }
}

/// Whether the function may count rows at the edges of its range.
fn may_have_edges(function: &str, argument: &Expr) -> Result<()> {
    let Kind::Selector(selector) = &argument.inner().kind else { return Ok(()) };
    let (word, may): (&str, &[&str]) = match selector.edges {
        Edges::Inside => return Ok(()),
        Edges::Anchored => ("anchored", &["changes", "delta", "increase", "rate", "resets"]),
        Edges::Smoothed => ("smoothed", &["delta", "increase", "rate"]),
    };
    match may.contains(&function) {
        true => Ok(()),
        false => {
            refuse(format!("{word} modifier can only be used with: {} - not with {function}", may.join(", ")))
        }
    }
}
