//! Evaluates targets.

pub mod combine;
pub mod filter;
pub mod names;
pub mod spans;
pub mod transform;
pub mod windows;

use std::fmt;

use rrd::definition::Cf;
use rrd::when::calendar::Calendar;

use crate::args::{Args, Value};
use crate::ast::{Expr, Number};
use crate::functions::{self, CfRule};
use crate::parse::{self, ParseError};
use crate::series::{Consolidation, Series};
use crate::source::{Select, Source, SourceError, TagCondition, Wanted};

/// The most evaluations of a part of a target: some functions evaluate theirs again, so that nesting them doubles the work.
const CALLS_MAX: usize = 100_000;
/// The most targets within texts within targets (`applyByNode`).
const NESTED_MAX: usize = 3;
/// Operations between two looks at the clock.
const WORK_BETWEEN: u64 = 4 << 20;

/// Why there is no answer.
#[derive(Debug)]
pub enum EvalError {
    /// A target cannot be read.
    Parse(ParseError),
    /// A function cannot do that.
    Wrong(String),
    /// The source's.
    Source(SourceError),
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Parse(error) => error.fmt(f),
            EvalError::Wrong(text) => f.write_str(text),
            EvalError::Source(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for EvalError {}

impl From<ParseError> for EvalError {
    fn from(error: ParseError) -> Self {
        EvalError::Parse(error)
    }
}

/// What holds while a part of a target is evaluated.
#[derive(Clone, Debug)]
pub struct Context {
    /// The range, in seconds since the epoch.
    pub from: i64,
    /// Its end.
    pub until: i64,
    /// The share of values that must be known where several become one.
    pub xff: f64,
    /// The consolidation function that `consolidateBy` names.
    pub cf: Option<Cf>,
}

impl Context {
    /// That of a request.
    pub fn new(from: i64, until: i64, xff: f64) -> Context {
        Context { from, until, xff, cf: None }
    }
}

/// What evaluates targets.
pub struct Evaluator<'a> {
    source: &'a mut dyn Source,
    calendar: &'a dyn Calendar,
    now: i64,
    /// Values for the names of templates, which come before their own.
    templates: Vec<(String, String)>,
    calls: usize,
    nested: usize,
    work: u64,
    stacks: Vec<(String, Vec<f64>)>,
}

impl<'a> Evaluator<'a> {
    /// One for a request, when it is `now` there.
    pub fn new(source: &'a mut dyn Source, calendar: &'a dyn Calendar, now: i64) -> Evaluator<'a> {
        Evaluator {
            source,
            calendar,
            now,
            templates: Vec::new(),
            calls: 0,
            nested: 0,
            work: 0,
            stacks: Vec::new(),
        }
    }

    /// Values for templates that come before those in the targets (`template[name]=value`).
    #[must_use]
    pub fn with_templates(self, templates: Vec<(String, String)>) -> Evaluator<'a> {
        Evaluator { templates, ..self }
    }

    /// The series of a target.
    ///
    /// # Errors
    /// When it cannot be read or evaluated, or the source has none of something.
    pub fn target(&mut self, text: &str, context: &mut Context) -> Result<Vec<Series>, EvalError> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        if self.nested >= NESTED_MAX {
            return Err(EvalError::Wrong(format!("targets are nested in texts more than {NESTED_MAX} deep")));
        }
        let expr = parse::parse(text)?;
        self.nested += 1;
        let value = self.eval(&expr, context, &[]);
        self.nested -= 1;
        match value? {
            Value::List(series) => Ok(series),
            Value::Lists(lists) => Ok(lists.into_iter().flatten().collect()),
            _ => Ok(Vec::new()),
        }
    }

    /// The series of an expression.
    fn list(&mut self, expr: Option<&Expr>, context: &mut Context) -> Result<Vec<Series>, EvalError> {
        let Some(expr) = expr else { return Ok(Vec::new()) };
        match self.eval(expr, context, &[])? {
            Value::List(series) => Ok(series),
            Value::Lists(lists) => Ok(lists.into_iter().flatten().collect()),
            _ => Ok(Vec::new()),
        }
    }

    fn eval(
        &mut self,
        expr: &Expr,
        context: &mut Context,
        values: &[(String, Value)],
    ) -> Result<Value, EvalError> {
        self.calls += 1;
        if self.calls > CALLS_MAX {
            return Err(EvalError::Wrong(format!(
                "more than {CALLS_MAX} calls: nest fewer functions that shift times"
            )));
        }
        Ok(match expr {
            Expr::Path(pattern) => return self.path(pattern, context, values),
            Expr::Call { name, args, named } => return self.call(name, args, named, context, values),
            Expr::Template { body, values: own } => {
                let mut values: Vec<(String, Value)> =
                    own.iter().map(|(name, value)| (name.clone(), literal(value))).collect();
                for (name, value) in &self.templates {
                    values.retain(|(one, _)| one != name);
                    values.push((name.clone(), Value::Text(value.clone())));
                }
                return self.eval(body, context, &values);
            }
            value => literal(value),
        })
    }

    /// A pattern, or the value of a template that stands in its place.
    fn path(
        &mut self,
        pattern: &str,
        context: &Context,
        values: &[(String, Value)],
    ) -> Result<Value, EvalError> {
        let mut pattern = pattern.to_owned();
        for (name, value) in values {
            let variable = format!("${name}");
            if pattern == variable {
                return Ok(match value {
                    Value::Text(text) => text.parse().map_or_else(|_| value.clone(), Value::Float),
                    value => value.clone(),
                });
            }
            pattern = pattern.replace(&variable, &value.text());
            if pattern.len() > parse::TEXT_BYTES_MAX {
                return Err(EvalError::Wrong("a template makes a pattern that is too long".to_owned()));
            }
        }
        self.fetch(Select::Path(&pattern), &pattern, context)
    }

    fn fetch(&mut self, select: Select<'_>, expression: &str, context: &Context) -> Result<Value, EvalError> {
        let Context { from, until, cf, xff } = *context;
        let found = self.source.fetch(&Wanted { select, from, until, cf }).map_err(EvalError::Source)?;
        let list = found.into_iter().map(|found| {
            let mut series = Series::from(found);
            expression.clone_into(&mut series.expression);
            series.xff = xff;
            series
        });
        Ok(Value::List(list.collect()))
    }

    fn call(
        &mut self,
        name: &str,
        exprs: &[Expr],
        named: &[(String, Expr)],
        context: &mut Context,
        values: &[(String, Value)],
    ) -> Result<Value, EvalError> {
        if name == "seriesByTag" {
            return self.by_tags(exprs, context);
        }
        let function = functions::find(name).ok_or_else(|| EvalError::Wrong(functions::unknown(name)))?;
        let outer = context.cf;
        context.cf = match function.cf {
            CfRule::Keeps => outer,
            CfRule::Resets => None,
            CfRule::Sets => {
                let text = exprs.get(1).or_else(|| {
                    named.iter().find(|(name, _)| name == "consolidationFunc").map(|(_, value)| value)
                });
                match text {
                    Some(Expr::Text(text)) => cf_of(text).or(outer),
                    _ => outer,
                }
            }
        };
        let mut args = Vec::with_capacity(exprs.len());
        for expr in exprs {
            args.push(self.eval(expr, context, values)?);
        }
        let mut by_name = Vec::with_capacity(named.len());
        for (key, expr) in named {
            by_name.push((key.clone(), self.eval(expr, context, values)?));
        }
        let substituted = exprs.first().filter(|_| !values.is_empty()).map(|expr| substituted(expr, values));
        let args = Args::bind(function, substituted.as_ref().or(exprs.first()), args, by_name)?;
        let result = (function.call)(self, context, args);
        context.cf = outer;
        let mut result = result?;
        if let (Value::List(series), false) = (&mut result, function.is_in_place) {
            let bytes: usize = series.iter().map(|series| series.values.len() * 8).sum();
            self.reserve(bytes)?;
        }
        Ok(result)
    }

    fn by_tags(&mut self, exprs: &[Expr], context: &Context) -> Result<Value, EvalError> {
        let mut conditions = Vec::new();
        let mut texts = Vec::new();
        for expr in exprs {
            let Expr::Text(text) = expr else {
                return Err(EvalError::Wrong("seriesByTag(): takes texts such as \"name=x\"".to_owned()));
            };
            let condition = TagCondition::parse(text)
                .ok_or_else(|| EvalError::Wrong(format!("seriesByTag(): {text:?} is no condition: write tag=value, tag!=value, tag=~regex or tag!=~regex")))?;
            conditions.push(condition);
            texts.push(format!("'{text}'"));
        }
        let is_positive = |condition: &TagCondition| !condition.is_not && !condition.value.is_empty();
        if !conditions.iter().any(is_positive) {
            return Err(EvalError::Wrong(
                "seriesByTag(): at least one condition must be tag=value or tag=~regex with a value"
                    .to_owned(),
            ));
        }
        let expression = format!("seriesByTag({})", texts.join(","));
        self.fetch(Select::Tags(&conditions), &expression, context)
    }

    /// Asks for memory, and looks at the clock.
    fn reserve(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.source.reserve(bytes as u64).map_err(EvalError::Source)
    }

    /// Counts operations, and looks at the clock now and then.
    fn work(&mut self, operations: usize) -> Result<(), EvalError> {
        self.work += operations as u64;
        if self.work < WORK_BETWEEN {
            return Ok(());
        }
        self.work = 0;
        self.reserve(0)
    }
}

/// An expression with the values of a template in it, for a function that evaluates it again.
fn substituted(expr: &Expr, values: &[(String, Value)]) -> Expr {
    let values = values.iter().map(|(name, value)| {
        let value = match value {
            Value::Int(value) => Expr::Number(Number::Int(*value)),
            Value::Float(value) => Expr::Number(Number::Float(*value)),
            value => Expr::Text(value.text()),
        };
        (name.clone(), value)
    });
    Expr::Template { body: Box::new(expr.clone()), values: values.collect() }
}

fn literal(expr: &Expr) -> Value {
    match expr {
        Expr::Number(Number::Int(value)) => Value::Int(*value),
        Expr::Number(Number::Float(value)) => Value::Float(*value),
        Expr::Text(text) => Value::Text(text.clone()),
        Expr::Bool(value) => Value::Bool(*value),
        Expr::Infinity => Value::Float(f64::INFINITY),
        _ => Value::None,
    }
}

/// The archive that a function of `consolidateBy` reads.
fn cf_of(text: &str) -> Option<Cf> {
    Some(match Consolidation::from_name(text)? {
        Consolidation::Min => Cf::Min,
        Consolidation::Max => Cf::Max,
        Consolidation::Last => Cf::Last,
        _ => Cf::Average,
    })
}
