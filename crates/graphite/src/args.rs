//! The arguments of a call, bound to the parameters of its function.

use crate::aggregate::Aggregation;
use crate::ast::Expr;
use crate::eval::EvalError;
use crate::functions::{Function, Kind, Param};
use crate::number;
use crate::series::Series;

/// A value of an expression.
#[derive(Clone, Debug)]
pub enum Value {
    /// Series.
    List(Vec<Series>),
    /// Groups of series, as `mapSeries` makes them.
    Lists(Vec<Vec<Series>>),
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// A text.
    Text(String),
    /// True or false.
    Bool(bool),
    /// Nothing.
    None,
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Value::List(_) => "series",
            Value::Lists(_) => "groups of series",
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Text(_) => "a text",
            Value::Bool(_) => "true or false",
            Value::None => "None",
        }
    }

    /// The value as Python prints it; empty for series.
    pub fn text(&self) -> String {
        match self {
            Value::Int(value) => value.to_string(),
            Value::Float(value) => number::repr(*value),
            Value::Text(text) => text.clone(),
            Value::Bool(true) => "True".to_owned(),
            Value::Bool(false) => "False".to_owned(),
            Value::None => "None".to_owned(),
            Value::List(_) | Value::Lists(_) => String::new(),
        }
    }
}

/// A part of a name: by its place, or by a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// By its place; negative from the end.
    Place(i64),
    /// By a tag.
    Tag(String),
}

/// Arguments of a call.
pub struct Args<'a> {
    /// The function.
    pub function: &'static Function,
    /// The expression of the first argument, for functions that evaluate it for other times.
    pub first: Option<&'a Expr>,
    /// A value for each parameter but the last, if that may be repeated.
    bound: Vec<Option<Value>>,
    /// Values of a last parameter that may be repeated.
    rest: Vec<Value>,
}

impl<'a> Args<'a> {
    /// Binds values to parameters.
    ///
    /// # Errors
    /// When there are too many or too few, or one is of another kind.
    pub fn bind(
        function: &'static Function,
        first: Option<&'a Expr>,
        values: Vec<Value>,
        named: Vec<(String, Value)>,
    ) -> Result<Args<'a>, EvalError> {
        let params = function.params;
        let repeated = params.last().filter(|param| param.multiple);
        let single = params.len() - usize::from(repeated.is_some());
        let mut bound: Vec<Option<Value>> = Vec::new();
        let mut rest = Vec::new();
        for value in values {
            let place = bound.len();
            if place < single {
                bound.push(Some(value));
            } else if repeated.is_some() {
                rest.push(value);
            } else {
                return Err(wrong(function, &format!("takes at most {single} arguments")));
            }
        }
        bound.resize(single, None);
        for (name, value) in named {
            let place = params.iter().position(|param| param.name == name);
            match place {
                Some(place) if place < single && bound[place].is_none() => bound[place] = Some(value),
                Some(place) if place == single && rest.is_empty() => rest.push(value),
                Some(_) => return Err(wrong(function, &format!("has {name} twice"))),
                None => return Err(wrong(function, &format!("has no parameter {name:?}"))),
            }
        }
        let args = Args { function, first, bound, rest };
        args.check()?;
        Ok(args)
    }

    fn check(&self) -> Result<(), EvalError> {
        for (place, param) in self.function.params.iter().enumerate() {
            let values: &[Value] = match self.bound.get(place) {
                Some(value) => value.as_slice(),
                None => &self.rest,
            };
            if param.required && !values.iter().any(|value| !matches!(value, Value::None)) {
                return Err(wrong(self.function, &format!("needs {:?}", param.name)));
            }
            for value in values {
                self.check_value(param, value)?;
            }
        }
        Ok(())
    }

    fn check_value(&self, param: &Param, value: &Value) -> Result<(), EvalError> {
        let is_number = |text: &str| text.trim().parse::<f64>().is_ok();
        let fits = match (param.kind, value) {
            (_, Value::None) => !param.required,
            (Kind::Any, _) | (Kind::SeriesList, Value::List(_)) => true,
            (Kind::SeriesLists, Value::Lists(_) | Value::List(_)) => true,
            (Kind::SeriesList | Kind::SeriesLists, _) | (_, Value::List(_) | Value::Lists(_)) => false,
            (Kind::Float, Value::Text(text)) => is_number(text),
            (Kind::Float, _) | (Kind::IntOrInterval | Kind::NodeOrTag, _) => true,
            (Kind::Integer | Kind::Node, Value::Text(text)) => text.trim().parse::<i64>().is_ok(),
            (Kind::Integer | Kind::Node, value) => !matches!(value, Value::Float(_)),
            (Kind::IntOrInf, Value::Float(value)) => *value == f64::INFINITY,
            (Kind::IntOrInf, value) => !matches!(value, Value::Text(_)),
            (Kind::Boolean, Value::Text(text)) => {
                text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
            }
            (Kind::Boolean, Value::Int(value)) => matches!(value, 0 | 1),
            (Kind::Boolean, value) => matches!(value, Value::Bool(_)),
            (Kind::AggFunc, Value::Text(text)) => Aggregation::from_name(text).is_some(),
            (Kind::Text | Kind::AggOrSeriesFunc | Kind::Interval | Kind::Date, Value::Text(_)) => true,
            (Kind::AggFunc | Kind::AggOrSeriesFunc | Kind::Interval, _) => false,
            (Kind::Text | Kind::Date, _) => true,
        };
        if fits {
            return Ok(());
        }
        let (what, name) = (param.kind.name(), param.name);
        let given = match value {
            Value::Text(text) => format!("{text:?}"),
            value => value.kind().to_owned(),
        };
        Err(wrong(self.function, &format!("takes {what} as {name:?}, not {given}")))
    }

    /// An error about this call.
    pub fn error(&self, text: &str) -> EvalError {
        wrong(self.function, text)
    }

    /// Takes the series of a parameter.
    pub fn series(&mut self, place: usize) -> Vec<Series> {
        match self.bound.get_mut(place).and_then(Option::take) {
            Some(Value::List(series)) => series,
            Some(Value::Lists(lists)) => lists.into_iter().flatten().collect(),
            _ => Vec::new(),
        }
    }

    /// Takes the groups of series of a parameter.
    pub fn lists(&mut self, place: usize) -> Vec<Vec<Series>> {
        match self.bound.get_mut(place).and_then(Option::take) {
            Some(Value::Lists(lists)) => lists,
            Some(Value::List(series)) => vec![series],
            _ => Vec::new(),
        }
    }

    /// Takes the series of all repeated arguments, one after another.
    pub fn all_series(&mut self) -> Vec<Series> {
        let of = |value| match value {
            Value::List(series) => series,
            Value::Lists(lists) => lists.into_iter().flatten().collect(),
            _ => Vec::new(),
        };
        std::mem::take(&mut self.rest).into_iter().flat_map(of).collect()
    }

    /// A parameter's value.
    pub fn value(&self, place: usize) -> &Value {
        self.bound.get(place).and_then(Option::as_ref).unwrap_or(&Value::None)
    }

    /// A number, if there is one.
    pub fn float(&self, place: usize) -> Option<f64> {
        match self.value(place) {
            Value::Int(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            Value::Bool(value) => Some(f64::from(u8::from(*value))),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// A number that must be there; binding has checked it.
    pub fn number(&self, place: usize) -> f64 {
        self.float(place).unwrap_or(0.0)
    }

    /// A whole number, if there is one.
    pub fn int(&self, place: usize) -> Option<i64> {
        match self.value(place) {
            Value::Int(value) => Some(*value),
            Value::Bool(value) => Some(i64::from(*value)),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// A text, if there is one; of a number, as Python prints it.
    pub fn text(&self, place: usize) -> Option<String> {
        match self.value(place) {
            Value::None => None,
            value => Some(value.text()),
        }
    }

    /// Whether it is true.
    pub fn flag(&self, place: usize) -> bool {
        match self.value(place) {
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Text(text) => text.eq_ignore_ascii_case("true"),
            _ => false,
        }
    }

    /// An aggregating function, or the default.
    pub fn aggregation(&self, place: usize, default: Aggregation) -> Aggregation {
        self.text(place).and_then(|name| Aggregation::from_name(&name)).unwrap_or(default)
    }

    /// Repeated arguments as parts of a name.
    pub fn nodes(&self) -> Vec<Node> {
        self.rest.iter().map(node).collect()
    }

    /// A parameter as a part of a name.
    pub fn node(&self, place: usize) -> Node {
        node(self.value(place))
    }

    /// Repeated arguments as texts.
    pub fn texts(&self) -> Vec<String> {
        self.rest.iter().map(Value::text).collect()
    }

    /// Repeated arguments as whole numbers.
    pub fn ints(&self) -> Vec<i64> {
        let int = |value: &Value| match value {
            Value::Int(value) => *value,
            Value::Bool(value) => i64::from(*value),
            Value::Text(text) => text.trim().parse().unwrap_or(0),
            _ => 0,
        };
        self.rest.iter().map(int).collect()
    }
}

fn node(value: &Value) -> Node {
    match value {
        Value::Int(place) => Node::Place(*place),
        Value::Float(value) if value.fract() == 0.0 => Node::Place(*value as i64),
        value => Node::Tag(value.text()),
    }
}

fn wrong(function: &Function, text: &str) -> EvalError {
    EvalError::Wrong(format!("{}(): {text}", function.name))
}
