//! Expressions, as the parser makes them and the evaluator walks them.

use crate::functions::Function;
use crate::matcher::Matcher;

/// A part of the text: offsets of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Where it begins.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
}

/// What an expression is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// One number.
    Scalar,
    /// One text.
    Text,
    /// A value of each series at a time.
    Vector,
    /// Values of each series over a range.
    Matrix,
}

impl Type {
    /// As messages name it.
    pub fn name(self) -> &'static str {
        match self {
            Type::Scalar => "scalar",
            Type::Text => "string",
            Type::Vector => "instant vector",
            Type::Matrix => "range vector",
        }
    }
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it does.
    pub kind: Kind,
    /// Where it stands.
    pub span: Span,
    /// Its deepest nesting.
    pub(crate) depth: u16,
}

/// What an expression does.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A number.
    Number(f64),
    /// A text in quotes.
    Text(String),
    /// Series of the source.
    Selector(Box<Selector>),
    /// An expression over a range.
    Subquery(Box<Subquery>),
    /// A function.
    Call(&'static Function, Vec<Expr>),
    /// An aggregation.
    Aggregate(Box<Aggregate>),
    /// An operator with two sides.
    Binary(Box<Binary>),
    /// A minus sign.
    Negate(Box<Expr>),
    /// A plus sign.
    Plus(Box<Expr>),
    /// Parentheses.
    Paren(Box<Expr>),
}

/// A time that an expression fixes with `@`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// Milliseconds since the epoch.
    Time(i64),
    /// `start()`
    Start,
    /// `end()`
    End,
}

/// Whether samples beyond the edges of a range count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edges {
    /// Only those inside.
    Inside,
    /// The last one before each edge stands at the edge.
    Anchored,
    /// A line between those around each edge gives the value there.
    Smoothed,
}

/// Series by name and labels.
#[derive(Clone, Debug)]
pub struct Selector {
    /// The metric's name as it was written before the braces.
    pub name: Option<String>,
    /// All conditions, with that of the name.
    pub matchers: Vec<Matcher>,
    /// The range in brackets.
    pub range: Option<Length>,
    /// How far it looks back in addition.
    pub offset: Option<Length>,
    /// The fixed time.
    pub at: Option<At>,
    /// What counts at the edges.
    pub edges: Edges,
}

/// An expression evaluated at steps over a range.
#[derive(Clone, Debug)]
pub struct Subquery {
    /// The expression.
    pub expr: Expr,
    /// The range.
    pub range: Length,
    /// The step; `None`: the default one.
    pub step: Option<Length>,
    /// How far it looks back in addition.
    pub offset: Option<Length>,
    /// The fixed time.
    pub at: Option<At>,
}

/// A duration, perhaps one that is computed.
#[derive(Clone, Debug, PartialEq)]
pub enum Length {
    /// Seconds, and whether they were written with units.
    Seconds(f64, bool),
    /// The step of the query.
    Step,
    /// The range of the query.
    Range,
    /// A minus sign.
    Negate(Box<Length>),
    /// Two of them with an operator.
    Binary(char, Box<Length>, Box<Length>),
    /// The smaller.
    Min(Box<Length>, Box<Length>),
    /// The larger.
    Max(Box<Length>, Box<Length>),
    /// Parentheses.
    Paren(Box<Length>),
}

/// Labels that group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grouping {
    /// Whether all but these labels count.
    pub without: bool,
    /// The labels.
    pub labels: Vec<String>,
}

/// An aggregation.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// Which.
    pub operator: Aggregator,
    /// The parameter in front.
    pub parameter: Option<Expr>,
    /// What is aggregated.
    pub expr: Expr,
    /// The groups.
    pub grouping: Grouping,
}

/// Operators that aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Aggregator {
    Sum,
    Avg,
    Count,
    Min,
    Max,
    Group,
    Stddev,
    Stdvar,
    Topk,
    Bottomk,
    CountValues,
    Quantile,
    Limitk,
    LimitRatio,
}

/// Their names.
pub const AGGREGATORS: [(&str, Aggregator); 14] = [
    ("sum", Aggregator::Sum),
    ("avg", Aggregator::Avg),
    ("count", Aggregator::Count),
    ("min", Aggregator::Min),
    ("max", Aggregator::Max),
    ("group", Aggregator::Group),
    ("stddev", Aggregator::Stddev),
    ("stdvar", Aggregator::Stdvar),
    ("topk", Aggregator::Topk),
    ("bottomk", Aggregator::Bottomk),
    ("count_values", Aggregator::CountValues),
    ("quantile", Aggregator::Quantile),
    ("limitk", Aggregator::Limitk),
    ("limit_ratio", Aggregator::LimitRatio),
];

impl Aggregator {
    /// Its name.
    pub fn name(self) -> &'static str {
        AGGREGATORS.iter().find(|(_, operator)| *operator == self).map_or("", |(name, _)| name)
    }

    /// What its parameter is, if it takes one.
    pub fn parameter(self) -> Option<Type> {
        match self {
            Aggregator::CountValues => Some(Type::Text),
            Aggregator::Topk
            | Aggregator::Bottomk
            | Aggregator::Quantile
            | Aggregator::Limitk
            | Aggregator::LimitRatio => Some(Type::Scalar),
            _ => None,
        }
    }
}

/// An operator with two sides.
#[derive(Clone, Debug)]
pub struct Binary {
    /// Which.
    pub operator: BinaryOperator,
    /// The left side.
    pub left: Expr,
    /// The right side.
    pub right: Expr,
    /// Whether a comparison answers 0 or 1 instead of leaving out what is false.
    pub bool: bool,
    /// Which series belong together.
    pub matching: Matching,
}

/// Which series of both sides belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matching {
    /// Whether `on` was written; otherwise all labels count but these.
    pub on: bool,
    /// The labels.
    pub labels: Vec<String>,
    /// Whether any of `on` and `ignoring` was written.
    pub is_written: bool,
    /// How many of a side belong to one of the other.
    pub cardinality: Cardinality,
    /// Labels that are taken from the side of one.
    pub include: Vec<String>,
    /// In place of series that are missing on the left.
    pub fill_left: Option<f64>,
    /// In place of series that are missing on the right.
    pub fill_right: Option<f64>,
}

/// How many of a side belong to one of the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cardinality {
    /// One of each.
    #[default]
    OneToOne,
    /// Many on the left.
    ManyToOne,
    /// Many on the right.
    OneToMany,
    /// `and`, `or`, `unless`.
    ManyToMany,
}

/// Operators with two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BinaryOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Atan2,
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    And,
    Or,
    Unless,
}

impl BinaryOperator {
    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOperator::Add => "+",
            BinaryOperator::Subtract => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
            BinaryOperator::Power => "^",
            BinaryOperator::Atan2 => "atan2",
            BinaryOperator::Equal => "==",
            BinaryOperator::NotEqual => "!=",
            BinaryOperator::Greater => ">",
            BinaryOperator::Less => "<",
            BinaryOperator::GreaterOrEqual => ">=",
            BinaryOperator::LessOrEqual => "<=",
            BinaryOperator::And => "and",
            BinaryOperator::Or => "or",
            BinaryOperator::Unless => "unless",
        }
    }

    /// How tightly it binds.
    pub fn precedence(self) -> u8 {
        match self {
            BinaryOperator::Or => 1,
            BinaryOperator::And | BinaryOperator::Unless => 2,
            operator if operator.is_comparison() => 3,
            BinaryOperator::Add | BinaryOperator::Subtract => 4,
            BinaryOperator::Power => 6,
            _ => 5,
        }
    }

    /// Whether it compares.
    pub fn is_comparison(self) -> bool {
        use BinaryOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        matches!(self, Equal | NotEqual | Greater | Less | GreaterOrEqual | LessOrEqual)
    }

    /// Whether it is one of sets.
    pub fn is_set(self) -> bool {
        matches!(self, BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Unless)
    }
}

impl Expr {
    /// What it is.
    pub fn value_type(&self) -> Type {
        match &self.kind {
            Kind::Number(_) => Type::Scalar,
            Kind::Text(_) => Type::Text,
            Kind::Selector(selector) if selector.range.is_some() => Type::Matrix,
            Kind::Selector(_) | Kind::Aggregate(_) => Type::Vector,
            Kind::Subquery(_) => Type::Matrix,
            Kind::Call(function, _) => function.returns,
            Kind::Negate(inner) | Kind::Plus(inner) | Kind::Paren(inner) => inner.value_type(),
            Kind::Binary(binary) => match (binary.left.value_type(), binary.right.value_type()) {
                (Type::Scalar, Type::Scalar) => Type::Scalar,
                _ => Type::Vector,
            },
        }
    }

    /// The expression inside of parentheses.
    pub fn inner(&self) -> &Expr {
        match &self.kind {
            Kind::Paren(inner) => inner.inner(),
            _ => self,
        }
    }

    /// Its parts.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Number(_) | Kind::Text(_) | Kind::Selector(_) => Vec::new(),
            Kind::Subquery(subquery) => vec![&subquery.expr],
            Kind::Call(_, arguments) => arguments.iter().collect(),
            Kind::Aggregate(aggregate) => aggregate.parameter.iter().chain([&aggregate.expr]).collect(),
            Kind::Negate(inner) | Kind::Plus(inner) | Kind::Paren(inner) => vec![inner],
            Kind::Binary(binary) => vec![&binary.left, &binary.right],
        }
    }

    /// The selectors in it.
    pub fn selectors(&self) -> Vec<&Selector> {
        match &self.kind {
            Kind::Selector(selector) => vec![selector],
            _ => self.children().into_iter().flat_map(Expr::selectors).collect(),
        }
    }
}
