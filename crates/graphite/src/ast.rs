//! What a target says.

/// A number as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Without a fraction and an exponent.
    Int(i64),
    /// Any other.
    Float(f64),
}

/// A target or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A pattern of series.
    Path(String),
    /// A function's call. `raw` is its text.
    Call {
        /// The function.
        name: String,
        /// Arguments by position; what is piped into a call is its first.
        args: Vec<Expr>,
        /// Arguments by name.
        named: Vec<(String, Expr)>,
    },
    /// `template(expression, values)`: values for `$1`, `$name`.
    Template {
        /// The expression.
        body: Box<Expr>,
        /// Values by the name after the dollar sign.
        values: Vec<(String, Expr)>,
    },
    /// A number.
    Number(Number),
    /// A quoted text.
    Text(String),
    /// `true` or `false`.
    Bool(bool),
    /// `None`.
    None,
    /// `inf`.
    Infinity,
}
