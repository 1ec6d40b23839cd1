//! Targets: function calls with positional and named arguments, pipes, templates, and patterns of series.

use std::fmt;

use crate::ast::{Expr, Number};

/// The longest target, in bytes.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
/// The deepest nesting of calls.
pub const DEPTH_MAX: usize = 64;

/// Why a text is no target, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The place in the text, in bytes.
    pub place: usize,
    /// What is wrong there.
    pub text: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.place, self.text)
    }
}

impl std::error::Error for ParseError {}

/// The expression that a target is.
///
/// # Errors
/// When it is none, or too long or deep.
pub fn parse(text: &str) -> Result<Expr, ParseError> {
    if text.len() > TEXT_BYTES_MAX {
        let text = format!("a target of {} bytes, more than {TEXT_BYTES_MAX}", text.len());
        return Err(ParseError { place: 0, text });
    }
    let mut parser = Parser { text, at: 0, depth: 0 };
    let expr = parser.expression()?;
    parser.spaces();
    match parser.rest() {
        "" => Ok(expr),
        _ => Err(parser.error("the target should end here")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error(&self, text: impl Into<String>) -> ParseError {
        ParseError { place: self.at, text: text.into() }
    }

    fn spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes a character after spaces, if it is the next.
    fn take(&mut self, c: char) -> bool {
        self.spaces();
        let is_next = self.rest().starts_with(c);
        self.at += if is_next { c.len_utf8() } else { 0 };
        is_next
    }

    fn expect(&mut self, c: char, where_: &str) -> Result<(), ParseError> {
        match self.take(c) {
            true => Ok(()),
            false => Err(self.error(format!("\"{c}\" is missing {where_}"))),
        }
    }

    /// A call, a template or a path, and calls that it is piped into.
    fn expression(&mut self) -> Result<Expr, ParseError> {
        if self.depth >= DEPTH_MAX {
            return Err(self.error(format!("calls are nested more than {DEPTH_MAX} deep")));
        }
        self.depth += 1;
        let mut expr = self.operand()?;
        let mut pipes = 0;
        while self.take('|') {
            pipes += 1;
            if self.depth + pipes > DEPTH_MAX {
                return Err(self.error(format!("calls are nested more than {DEPTH_MAX} deep")));
            }
            self.spaces();
            let Some(name) = self.function_name() else {
                return Err(self.error("a pipe leads into a function's call"));
            };
            let Expr::Call { name, mut args, named } = self.call(name)? else { continue };
            args.insert(0, expr);
            expr = Expr::Call { name, args, named };
        }
        self.depth -= 1;
        Ok(expr)
    }

    fn operand(&mut self) -> Result<Expr, ParseError> {
        self.spaces();
        match self.function_name() {
            Some("template") => self.template(),
            Some(name) => self.call(name),
            None => self.path(),
        }
    }

    /// Takes a name and the parenthesis after it.
    fn function_name(&mut self) -> Option<&'a str> {
        let name = self.word()?;
        let before = self.at;
        self.at += name.len();
        if self.take('(') {
            return Some(name);
        }
        self.at = before;
        None
    }

    /// The name that begins here.
    fn word(&self) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let word = &rest[..end];
        (!word.is_empty() && !word.starts_with(|c: char| c.is_ascii_digit())).then_some(word)
    }

    /// The rest of a call, after its opening parenthesis.
    fn call(&mut self, name: &str) -> Result<Expr, ParseError> {
        let (mut args, mut named): (Vec<Expr>, Vec<(String, Expr)>) = (Vec::new(), Vec::new());
        if !self.take(')') {
            loop {
                match self.argument_name() {
                    Some(key) => {
                        let value = self.argument()?;
                        named.push((key, value));
                    }
                    None if named.is_empty() => args.push(self.argument()?),
                    None => return Err(self.error("arguments by position come before those by name")),
                }
                if !self.take(',') {
                    break;
                }
            }
            self.expect(')', &format!("at the end of {name}(...)"))?;
        }
        Ok(Expr::Call { name: name.to_owned(), args, named })
    }

    /// Takes `name =`.
    fn argument_name(&mut self) -> Option<String> {
        self.spaces();
        let word = self.word()?;
        let before = self.at;
        self.at += word.len();
        if self.take('=') {
            return Some(word.to_owned());
        }
        self.at = before;
        None
    }

    fn argument(&mut self) -> Result<Expr, ParseError> {
        self.spaces();
        match self.literal()? {
            Some(literal) => Ok(literal),
            None => self.expression(),
        }
    }

    /// A number, text or word that stands for a value.
    fn literal(&mut self) -> Result<Option<Expr>, ParseError> {
        let rest = self.rest();
        if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
            return self.quoted(quote).map(Some);
        }
        let end = rest.find([',', ')', '(', '|']).unwrap_or(rest.len());
        if matches!(rest.as_bytes().get(end), Some(b'(' | b'|')) {
            return Ok(None);
        }
        let word = rest[..end].trim_end();
        let value = match &*word.to_ascii_lowercase() {
            "true" => Expr::Bool(true),
            "false" => Expr::Bool(false),
            "none" => Expr::None,
            "inf" => Expr::Infinity,
            _ => match number(word) {
                Some(number) => Expr::Number(number),
                None => return Ok(None),
            },
        };
        self.at += word.len();
        Ok(Some(value))
    }

    /// A text in quotes; a backslash stays where it is, and the quote after one does not end the text.
    fn quoted(&mut self, quote: char) -> Result<Expr, ParseError> {
        let inside = &self.rest()[1..];
        let mut is_escaped = false;
        for (place, c) in inside.char_indices() {
            if c == quote && !is_escaped {
                self.at += place + 2;
                return Ok(Expr::Text(inside[..place].to_owned()));
            }
            is_escaped = c == '\\' && !is_escaped;
        }
        Err(self.error(format!("the text that begins here has no {quote} at its end")))
    }

    fn template(&mut self) -> Result<Expr, ParseError> {
        let body = Box::new(self.expression()?);
        let mut values = Vec::new();
        while self.take(',') {
            let name = self.argument_name().unwrap_or_else(|| (values.len() + 1).to_string());
            self.spaces();
            match self.literal()? {
                Some(value @ (Expr::Number(_) | Expr::Text(_))) => values.push((name, value)),
                _ => return Err(self.error("a template takes numbers and texts only")),
            }
        }
        self.expect(')', "at the end of template(...)")?;
        Ok(Expr::Template { body, values })
    }

    /// A pattern of series: all up to a comma, a parenthesis or a quote that is not in braces.
    fn path(&mut self) -> Result<Expr, ParseError> {
        let start = self.at;
        let mut out = String::new();
        let mut open = 0usize;
        let mut chars = self.rest().char_indices().peekable();
        let mut end = self.rest().len();
        while let Some((place, c)) = chars.next() {
            match c {
                '\\' => {
                    if let Some((_, next)) = chars.next() {
                        out.push(next);
                    }
                    continue;
                }
                '{' => open += 1,
                '}' => open = open.saturating_sub(1),
                ',' if open > 0 => {}
                ',' | '(' | ')' | '"' | '\'' | '|' => {
                    end = place;
                    break;
                }
                c if c.is_whitespace() => {
                    end = place;
                    break;
                }
                _ => {}
            }
            out.push(c);
        }
        self.at = start + end;
        match out.is_empty() {
            true => Err(self.error("a series, a function or a value is missing")),
            false => Ok(Expr::Path(out)),
        }
    }
}

/// A whole word as a number.
fn number(word: &str) -> Option<Number> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = word.strip_prefix('-').unwrap_or(word);
    if digits(unsigned) {
        return Some(word.parse().map_or_else(|_| float(word), Number::Int));
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let is_exponent = exponent.is_none_or(|text| digits(text.strip_prefix('-').unwrap_or(text)));
    let is_mantissa = match mantissa.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(mantissa),
    };
    (is_exponent && is_mantissa).then(|| float(word))
}

fn float(word: &str) -> Number {
    Number::Float(word.parse().unwrap_or(f64::INFINITY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Expr {
        Expr::Path(text.to_owned())
    }

    fn call(name: &str, args: Vec<Expr>) -> Expr {
        Expr::Call { name: name.to_owned(), args, named: Vec::new() }
    }

    #[test]
    fn targets_are_read() {
        let int = |value| Expr::Number(Number::Int(value));
        for (text, want) in [
            ("a.b-c.*", path("a.b-c.*")),
            (" a.{b,c}.d[0-9]?x ", path("a.{b,c}.d[0-9]?x")),
            ("1min.load", path("1min.load")),
            ("sum(a.b, c)", call("sum", vec![path("a.b"), path("c")])),
            ("f(a, 1, -2.5e3)", call("f", vec![path("a"), int(1), Expr::Number(Number::Float(-2500.0))])),
            (
                "f(a,'x,)', \"y\")",
                call("f", vec![path("a"), Expr::Text("x,)".into()), Expr::Text("y".into())]),
            ),
            ("a|f(1)|g()", call("g", vec![call("f", vec![path("a"), int(1)])])),
            ("f(a,true,None,INF)", call("f", vec![path("a"), Expr::Bool(true), Expr::None, Expr::Infinity])),
            ("f(g(a|h()))", call("f", vec![call("g", vec![call("h", vec![path("a")])])])),
            ("f(true.a,1.b)", call("f", vec![path("true.a"), path("1.b")])),
            ("a;x=y", path("a;x=y")),
        ] {
            assert_eq!(parse(text).unwrap(), want, "{text}");
        }
        let Expr::Call { args, named, .. } = parse("f(a, func='max', n = 2)").unwrap() else { panic!() };
        assert_eq!((args, named.len()), (vec![path("a")], 2));
        let Expr::Template { values, .. } = parse("template(f($1.$x), 'web', x=3)").unwrap() else {
            panic!()
        };
        assert_eq!(values[0], ("1".to_owned(), Expr::Text("web".into())));
        assert_eq!(values[1].0, "x");
    }

    #[test]
    fn what_is_none_says_where() {
        for (text, place) in [
            ("", 0),
            ("f(a", 3),
            ("f(a))", 4),
            ("f(a,'x", 4),
            ("f(x=1,a)", 6),
            ("a|b", 2),
            ("template(a,b)", 11),
            ("f(,)", 2),
        ] {
            assert_eq!(parse(text).unwrap_err().place, place, "{text}");
        }
        assert!(parse(&"f(".repeat(10_000)).unwrap_err().text.contains("nested"));
        assert!(parse(&format!("a{}", "|f()".repeat(10_000))).unwrap_err().text.contains("nested"));
        assert!(parse(&"a".repeat(TEXT_BYTES_MAX + 1)).is_err());
    }
}
