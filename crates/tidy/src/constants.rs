//! The constants of a source file, read from its text, and small expressions over them.

use std::collections::BTreeMap;

/// What a constant is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An integer.
    Integer(i128),
    /// A text, a byte string up to its first escape, or any other literal as it is written.
    Text(String),
}

/// Constants by name.
pub type Constants = BTreeMap<String, Value>;

/// Adds the constants that a source file declares on one line each; those whose expression is more than literals,
/// earlier constants, `+ - * <<` and parentheses are left out.
pub fn collect(text: &str, constants: &mut Constants) {
    for line in text.lines() {
        let Some((_, declaration)) = line.split_once("const ") else { continue };
        let Some((name, rest)) = declaration.split_once(": ") else { continue };
        let Some((_, expression)) = rest.split_once(" = ") else { continue };
        let Some(expression) = expression.strip_suffix(';') else { continue };
        if let Some(value) =
            literal(expression).or_else(|| evaluate(expression, constants).map(Value::Integer))
        {
            constants.insert(name.to_owned(), value);
        }
    }
}

/// A text, or a number that is no integer.
fn literal(expression: &str) -> Option<Value> {
    let bare = expression.trim_start_matches('*').trim_start_matches('b');
    if let Some(text) = bare.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        let end = text.find('\\').unwrap_or(text.len());
        return Some(Value::Text(text[..end].to_owned()));
    }
    let float = expression.contains('.') && expression.parse::<f64>().is_ok();
    float.then(|| Value::Text(expression.to_owned()))
}

/// The value of an expression of integers and constants; `None` when it is anything else.
#[must_use]
pub fn evaluate(expression: &str, constants: &Constants) -> Option<i128> {
    let mut parser = Parser { rest: expression, constants };
    let value = parser.shift()?;
    parser.rest.trim().is_empty().then_some(value)
}

struct Parser<'a> {
    rest: &'a str,
    constants: &'a Constants,
}

impl Parser<'_> {
    fn takes(&mut self, token: &str) -> bool {
        let found = self.rest.trim_start().strip_prefix(token);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn shift(&mut self) -> Option<i128> {
        let mut value = self.sum()?;
        while self.takes("<<") {
            value = value.checked_shl(u32::try_from(self.sum()?).ok()?)?;
        }
        Some(value)
    }

    fn sum(&mut self) -> Option<i128> {
        let mut value = self.product()?;
        loop {
            if self.takes("+") {
                value = value.checked_add(self.product()?)?;
            } else if self.takes("-") {
                value = value.checked_sub(self.product()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<i128> {
        let mut value = self.atom()?;
        while self.takes("*") {
            value = value.checked_mul(self.atom()?)?;
        }
        Some(value)
    }

    fn atom(&mut self) -> Option<i128> {
        if self.takes("(") {
            let value = self.shift()?;
            return self.takes(")").then_some(value);
        }
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        if let Some(Value::Integer(value)) = self.constants.get(word) {
            return Some(*value);
        }
        let digits = word.replace('_', "");
        match digits.split_at_checked(2) {
            Some(("0x", digits)) => i128::from_str_radix(digits, 16).ok(),
            Some(("0b", digits)) => i128::from_str_radix(digits, 2).ok(),
            _ => digits.parse().ok(),
        }
    }
}

/// A template with each `{EXPRESSION}` replaced by its value: integers with commas between thousands, or with `:x` after
/// the expression in hexadecimal.
///
/// # Errors
/// The expression that has no value.
pub fn fill(template: &str, constants: &Constants) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((expression, after)) = after.split_once('}') else { return Err(after.to_owned()) };
        rest = after;
        let (expression, hexadecimal) = match expression.strip_suffix(":x") {
            Some(expression) => (expression, true),
            None => (expression, false),
        };
        let value = constants.get(expression).cloned();
        match value.or_else(|| evaluate(expression, constants).map(Value::Integer)) {
            Some(Value::Text(text)) => out.push_str(&text),
            Some(Value::Integer(value)) if hexadecimal => out.push_str(&format!("0x{value:x}")),
            Some(Value::Integer(value)) => out.push_str(&with_commas(value)),
            None => return Err(expression.to_owned()),
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn with_commas(value: i128) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_read_and_put_into_templates() {
        let mut constants = Constants::new();
        let source = "pub const MAGIC: &[u8; 8] = b\"RNDLCKP\\x01\";\n    const AT: usize = 4;\nconst MAX: u32 = 4 << 20;\n\
                      pub(super) const SUM: u64 = (2 + AT) * 0x10;\nconst F: f64 = 8.5E130;\nconst X: u8 = f(1);\n";
        collect(source, &mut constants);
        let fill = |template| fill(template, &constants);
        assert_eq!(
            fill("`{MAGIC}` {AT} {MAX} {SUM - AT} {SUM:x} {F}").as_deref(),
            Ok("`RNDLCKP` 4 4,194,304 92 0x60 8.5E130")
        );
        assert_eq!(fill("{X}"), Err("X".to_owned()));
        assert_eq!(fill("{AT"), Err("AT".to_owned()));
    }
}
