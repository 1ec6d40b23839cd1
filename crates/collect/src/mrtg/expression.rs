//! The arithmetic between targets: Perl's expressions of numbers, without Perl.
//!
//! What a target gives is an exact [`Decimal`], as in MRTG; the numbers in the configuration are Perl's doubles, until they
//! meet one. A comparison that is false is Perl's empty text: nought in arithmetic, and unknown as a result.

use std::cmp::Ordering;

use super::decimal::Decimal;

/// Deepest nesting of parentheses and operators.
const NESTING_MAX: usize = 200;

/// An expression over the terms of a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number of the configuration.
    Number(f64),
    /// The value of the term of this index.
    Term(usize),
    /// An operator before its operand.
    Unary(Unary, Box<Expression>),
    /// Operators between operands, from left to right: a sum of a thousand ports is one chain, not a thousand nested sums.
    Chain(Box<Expression>, Vec<(Binary, Expression)>),
    /// `a ? b : c`
    Choice(Box<[Expression; 3]>),
}

/// Operators and functions of one operand.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Minus,
    Not,
    Absolute,
    Integer,
}

/// Operators of two operands.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Power,
    Multiply,
    Divide,
    Remainder,
    Add,
    Subtract,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Compare,
    And,
    Or,
}

/// Binary operators by how tightly they bind, the loosest first. Those with letters stand alone.
const LEVELS: &[&[(&str, Binary)]] = &[
    &[("||", Binary::Or)],
    &[("&&", Binary::And)],
    &[("==", Binary::Equal), ("!=", Binary::NotEqual), ("<=>", Binary::Compare)],
    &[
        ("<=", Binary::LessOrEqual),
        (">=", Binary::GreaterOrEqual),
        ("<", Binary::Less),
        (">", Binary::Greater),
    ],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[("*", Binary::Multiply), ("/", Binary::Divide), ("%", Binary::Remainder)],
];

/// A piece of a target's value: text of the expression, or one of its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// As it is written.
    Text(&'a str),
    /// A term, by its index.
    Term(usize),
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Term(usize),
    Word(String),
    Symbol(&'static str),
}

const SYMBOLS: &[&str] = &[
    "<=>", "**", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "!", "?", ":", "(",
    ")",
];

/// Reads an expression.
///
/// # Errors
/// What in it only Perl could compute.
pub fn parse(pieces: &[Piece<'_>]) -> Result<Expression, String> {
    let mut tokens = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Term(index) => tokens.push(Token::Term(*index)),
            Piece::Text(text) => tokenize(text, &mut tokens)?,
        }
    }
    if tokens.is_empty() {
        return Err("there is nothing to compute".to_string());
    }
    let mut parser = Parser { tokens, at: 0, nesting: 0 };
    let expression = parser.lowest()?;
    match parser.tokens.get(parser.at) {
        None => Ok(expression),
        Some(token) => Err(format!("an operator is missing before {}", token.text())),
    }
}

fn tokenize(text: &str, tokens: &mut Vec<Token>) -> Result<(), String> {
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit()
            || first == '.' && rest[1..].starts_with(|letter: char| letter.is_ascii_digit());
        let length = if is_number {
            let length = number_length(rest);
            let value = literal(&rest[..length]);
            tokens.push(Token::Number(value.ok_or_else(|| format!("{} is no number", &rest[..length]))?));
            length
        } else if first.is_ascii_alphabetic() || first == '_' {
            let word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let length = rest.find(|letter| !word(letter)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..length].to_string()));
            length
        } else {
            let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
            let symbol = symbol.ok_or_else(|| format!("\"{first}\" needs Perl"))?;
            tokens.push(Token::Symbol(symbol));
            symbol.len()
        };
        rest = rest[length..].trim_start();
    }
    Ok(())
}

fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut seen_exponent = false;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'e' | b'E' if !text.starts_with("0x") => {
                let signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
                let digit = bytes.get(at + 1 + usize::from(signed)).is_some_and(u8::is_ascii_digit);
                if seen_exponent || !digit {
                    break;
                }
                seen_exponent = true;
                at += 1 + usize::from(signed);
            }
            b'.' | b'_' | b'0'..=b'9' => at += 1,
            b'x' | b'b' if at == 1 && bytes[0] == b'0' => at += 1,
            b'a'..=b'f' | b'A'..=b'F' if text.starts_with("0x") => at += 1,
            _ => break,
        }
    }
    at
}

/// A number as Perl writes it: decimal, `0x`, `0b`, or octal with a leading 0.
fn literal(text: &str) -> Option<f64> {
    let plain: String = text.chars().filter(|&letter| letter != '_').collect();
    let integer = |digits: &str, radix| u64::from_str_radix(digits, radix).ok().map(|number| number as f64);
    if let Some(digits) = plain.strip_prefix("0x") {
        return integer(digits, 16);
    }
    if let Some(digits) = plain.strip_prefix("0b") {
        return integer(digits, 2);
    }
    if plain.len() > 1 && plain.starts_with('0') && plain.bytes().all(|byte| byte.is_ascii_digit()) {
        return integer(&plain, 8);
    }
    plain.parse().ok().filter(|number: &f64| number.is_finite())
}

impl Token {
    fn text(&self) -> String {
        match self {
            Token::Number(number) => number.to_string(),
            Token::Term(_) => "a target".to_string(),
            Token::Word(word) => format!("\"{word}\""),
            Token::Symbol(symbol) => format!("\"{symbol}\""),
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    nesting: usize,
}

impl Parser {
    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Symbol(next)) if *next == symbol);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Word(next)) if next == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), String> {
        if self.take(symbol) { Ok(()) } else { Err(format!("\"{symbol}\" is missing")) }
    }

    /// `or`, `and`, `not`: looser than all others.
    fn lowest(&mut self) -> Result<Expression, String> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(format!("it is nested more than {NESTING_MAX} deep"));
        }
        let first = self.conjunction()?;
        let mut rest = Vec::new();
        while self.take_word("or") {
            rest.push((Binary::Or, self.conjunction()?));
        }
        self.nesting -= 1;
        Ok(chain(first, rest))
    }

    fn conjunction(&mut self) -> Result<Expression, String> {
        let first = self.negation()?;
        let mut rest = Vec::new();
        while self.take_word("and") {
            rest.push((Binary::And, self.negation()?));
        }
        Ok(chain(first, rest))
    }

    fn negation(&mut self) -> Result<Expression, String> {
        let mut negations = 0;
        while self.take_word("not") {
            negations += 1;
        }
        let mut operand = self.choice()?;
        // Two change a number into 1 or nothing, more change nothing.
        for _ in 0..if negations > 2 { 2 - negations % 2 } else { negations } {
            operand = Expression::Unary(Unary::Not, Box::new(operand));
        }
        Ok(operand)
    }

    fn choice(&mut self) -> Result<Expression, String> {
        let condition = self.level(0)?;
        if !self.take("?") {
            return Ok(condition);
        }
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(format!("it is nested more than {NESTING_MAX} deep"));
        }
        let first = self.choice()?;
        self.expect(":")?;
        let second = self.choice()?;
        self.nesting -= 1;
        Ok(Expression::Choice(Box::new([condition, first, second])))
    }

    fn level(&mut self, level: usize) -> Result<Expression, String> {
        let Some(operators) = LEVELS.get(level) else { return self.signed() };
        let first = self.level(level + 1)?;
        let mut rest = Vec::new();
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.take(symbol)) {
            rest.push((*operator, self.level(level + 1)?));
        }
        Ok(chain(first, rest))
    }

    fn signed(&mut self) -> Result<Expression, String> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(format!("it is nested more than {NESTING_MAX} deep"));
        }
        let expression = if self.take("-") {
            Expression::Unary(Unary::Minus, Box::new(self.signed()?))
        } else if self.take("!") {
            Expression::Unary(Unary::Not, Box::new(self.signed()?))
        } else if self.take("+") {
            self.signed()?
        } else {
            let base = self.operand()?;
            // To the right of ** stands a signed operand: 2 ** -3, 2 ** 3 ** 2.
            if self.take("**") { chain(base, vec![(Binary::Power, self.signed()?)]) } else { base }
        };
        self.nesting -= 1;
        Ok(expression)
    }

    fn operand(&mut self) -> Result<Expression, String> {
        let token = self.tokens.get(self.at).cloned().ok_or("it ends where a number should follow")?;
        self.at += 1;
        match token {
            Token::Number(number) => Ok(Expression::Number(number)),
            Token::Term(index) => Ok(Expression::Term(index)),
            Token::Symbol("(") => {
                let inner = self.lowest()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Word(word) => {
                let function = match word.as_str() {
                    "abs" => Unary::Absolute,
                    "int" => Unary::Integer,
                    _ => return Err(format!("\"{word}\" needs Perl")),
                };
                let is_call = matches!(self.tokens.get(self.at), Some(Token::Symbol("(")));
                let operand = if is_call { self.operand()? } else { self.signed()? };
                Ok(Expression::Unary(function, Box::new(operand)))
            }
            Token::Symbol(symbol) => Err(format!("a number is missing before \"{symbol}\"")),
        }
    }
}

fn chain(first: Expression, rest: Vec<(Binary, Expression)>) -> Expression {
    if rest.is_empty() { first } else { Expression::Chain(Box::new(first), rest) }
}

/// A value on the way.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    /// Perl's own number.
    Native(f64),
    /// What came from a target.
    Exact(Decimal),
    /// Perl's false.
    False,
}

impl Value {
    fn exact(self) -> Option<Decimal> {
        match self {
            Value::Native(number) => Decimal::of_float(number),
            Value::Exact(number) => Some(number),
            Value::False => Some(Decimal::ZERO),
        }
    }

    fn is_true(&self) -> bool {
        match self {
            Value::Native(number) => *number != 0.0,
            Value::Exact(number) => !number.is_zero(),
            Value::False => false,
        }
    }

    fn of_truth(truth: bool) -> Self {
        if truth { Value::Native(1.0) } else { Value::False }
    }
}

impl Expression {
    /// The value of the expression where `term` gives those of the terms; `None` when it is unknown: a term is that it needs,
    /// or it divides by nought, or is false.
    pub fn evaluate(&self, term: &impl Fn(usize) -> Option<Decimal>) -> Option<Decimal> {
        match self.value(term)? {
            Value::False => None,
            value => value.exact(),
        }
    }

    fn value(&self, term: &impl Fn(usize) -> Option<Decimal>) -> Option<Value> {
        match self {
            Expression::Number(number) => Some(Value::Native(*number)),
            Expression::Term(index) => term(*index).map(Value::Exact),
            Expression::Unary(operator, operand) => unary_value(*operator, operand.value(term)?),
            Expression::Choice(parts) => {
                let chosen = if parts[0].value(term)?.is_true() { &parts[1] } else { &parts[2] };
                chosen.value(term)
            }
            Expression::Chain(first, rest) => {
                let mut left = first.value(term)?;
                for (operator, right) in rest {
                    left = match operator {
                        Binary::And if !left.is_true() => left,
                        Binary::Or if left.is_true() => left,
                        Binary::And | Binary::Or => right.value(term)?,
                        operator => binary_value(*operator, left, right.value(term)?)?,
                    };
                }
                Some(left)
            }
        }
    }
}

fn unary_value(operator: Unary, operand: Value) -> Option<Value> {
    if operator == Unary::Not {
        return Some(Value::of_truth(!operand.is_true()));
    }
    if let Value::Native(number) = operand {
        return Some(Value::Native(match operator {
            Unary::Minus => -number,
            Unary::Absolute => number.abs(),
            Unary::Integer | Unary::Not => number.trunc(),
        }));
    }
    let number = operand.exact()?;
    Some(Value::Exact(match operator {
        Unary::Minus => number.negated(),
        Unary::Absolute => number.absolute(),
        Unary::Integer | Unary::Not => number.truncated(),
    }))
}

fn binary_value(operator: Binary, left: Value, right: Value) -> Option<Value> {
    let both_native = match (&left, &right) {
        (Value::Native(left), Value::Native(right)) => Some((*left, *right)),
        _ => None,
    };
    if let Some(number) = both_native.and_then(|(left, right)| native(operator, left, right)) {
        return number.is_finite().then_some(Value::Native(number));
    }
    let (left, right) = (left.exact()?, right.exact()?);
    let computed = match operator {
        Binary::Power => left.power(&right),
        Binary::Multiply => left.multiply(&right),
        Binary::Divide => left.divide(&right),
        Binary::Remainder => left.remainder(&right),
        Binary::Add => left.add(&right),
        Binary::Subtract => left.subtract(&right),
        Binary::Compare => Some(Decimal::of_integer(left.compare(&right) as i128)),
        _ => return Some(Value::of_truth(compares(operator, left.compare(&right)))),
    };
    computed.map(Value::Exact)
}

/// Perl's own arithmetic; `None` for what is the same in both.
fn native(operator: Binary, left: f64, right: f64) -> Option<f64> {
    Some(match operator {
        Binary::Power => left.powf(right),
        Binary::Multiply => left * right,
        Binary::Divide => left / right,
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        _ => return None,
    })
}

fn compares(operator: Binary, order: Ordering) -> bool {
    match operator {
        Binary::Less => order.is_lt(),
        Binary::Greater => order.is_gt(),
        Binary::LessOrEqual => order.is_le(),
        Binary::GreaterOrEqual => order.is_ge(),
        Binary::NotEqual => order.is_ne(),
        _ => order.is_eq(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of `text`, in which `a` and `b` stand for the terms.
    fn value(text: &str, a: &str, b: &str) -> Option<String> {
        let mut pieces = Vec::new();
        for (nth, part) in text.split('@').enumerate() {
            pieces.extend((nth > 0).then_some(Piece::Term(0)));
            for (nth, part) in part.split('#').enumerate() {
                pieces.extend((nth > 0).then_some(Piece::Term(1)));
                pieces.push(Piece::Text(part));
            }
        }
        let expression = parse(&pieces).unwrap_or_else(|cause| panic!("{text}: {cause}"));
        let term = |index: usize| Decimal::parse(if index == 0 { a } else { b });
        expression.evaluate(&term).map(|number| number.to_string())
    }

    /// What Debian's mrtg stored for gauges of these expressions (`@` and `#` are the targets).
    #[test]
    fn expressions_are_perl_s() {
        let check = |text: &str, a: &str, b: &str, want: Option<&str>| {
            assert_eq!(value(text, a, b).as_deref(), want, "{text} of {a} and {b}");
        };
        check("- @ % 4 + 2 ** 3 ** 2", "7", "", Some("513"));
        check("@ / #", "7.25", "2", Some("3.625"));
        check("@ * 100 / 3", "7.25", "", Some("241.6666666666666666666666666666666666667"));
        check("@ / 3 * 3", "1", "", Some("0.9999999999999999999999999999999999999999"));
        check("@ > 1", "1", "", None);
        check("@ > 1", "2", "", Some("1"));
        check("( @ > 1 ) * 5", "1", "", Some("0"));
        check("( @ > 1 ) + 5", "2", "", Some("6"));
        check("@ <=> 2", "1", "", Some("-1"));
        check("@ % -4", "7", "", Some("-1"));
        check("2 ** @", "-1", "", Some("0.5"));
        check("- 2 ** @", "2", "", Some("-4"));
        check("-3 ** 2 + @", "5", "", Some("-4"));
        check("@ == 1 && 5", "1", "", Some("5"));
        check("@ || 5", "0", "", Some("5"));
        check("@ and 3", "0", "", Some("0"));
        check("! @", "0", "", Some("1"));
        check("not @", "5", "", None);
        check("@ > 2 ? # : 7", "3", "10", Some("10"));
        check("@ > 2 ? # : 7", "2", "nothing", Some("7"));
        check("abs(@)", "-3", "", Some("3"));
        check("int( @ )", "-3.7", "", Some("-3"));
        check("@ - #", "nothing", "1", None);
        check("7 * 3", "", "", Some("21"));
        check("0.1 + 0.2 + @", "0", "", Some("0.3"));
        check("1_000 + @ + 1e2 + 0x10 + 010", "1", "", Some("1125"));
        check("@ / #", "10", "0", None);
        check("@ % 0", "5", "", Some("5"));
        check("100 - @/3", "4", "", Some("98.666666666666666666666666666666666666667"));
        check("@ - - 3", "1", "", Some("4"));
        check("3 <= @ ? 1 : 2", "5", "", Some("1"));
        check("18446744073709551615 * @", "0", "", Some("0"));
    }

    #[test]
    fn what_needs_perl_is_said() {
        let refused = |text: &str| parse(&[Piece::Text(text)]).unwrap_err();
        assert!(refused("max(1)").contains("\"max\" needs Perl"));
        assert!(refused("1 +").contains("ends"));
        assert!(refused("1 . 3").contains("\".\" needs Perl"));
        assert!(refused("1 2").contains("operator is missing"));
        assert!(refused("").contains("nothing"));
        assert!(refused("(1").contains("\")\" is missing"));
        assert!(refused(&"(".repeat(100_000)).contains("nested"));
        assert!(refused(&"-".repeat(100_000)).contains("nested"));
        assert!(refused(&"1?".repeat(100_000)).contains("nested"));
    }
}
