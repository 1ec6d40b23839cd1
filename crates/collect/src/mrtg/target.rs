//! The value of `Target`: terms, and the arithmetic between them.
//!
//! Terms are found as MRTG finds them: programs in back-quotes first, then pairs of objects, then single interfaces; what is
//! left is the expression.

use std::collections::HashMap;

use super::expression::{self, Expression, Piece};
use super::term::{self, Fields, Term, TermContext};

/// Most fields after the host.
const FIELDS_MAX: usize = 6;

/// Most terms of a target. IXP Manager's sums have one a port.
const TERMS_MAX: usize = 100_000;

/// What `Target` says.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetValue {
    /// The distinct terms as they are written, each with what it reads.
    pub terms: Vec<(String, Term)>,
    /// What is computed of them; or why only Perl could compute it: then both values are unknown.
    pub expression: Result<Expression, String>,
}

/// A part of the text on the way.
enum Part<'a> {
    Text(&'a str),
    Term(usize),
}

/// Reads the value of a `Target`.
pub fn parse(text: &str, context: &TermContext) -> TargetValue {
    let mut found = Found { terms: Vec::new(), by_text: HashMap::new(), context };
    let mut parts = Vec::new();
    found.programs(text, &mut parts);
    for find in [find_pair, find_interface] {
        let mut next = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Part::Text(text) => found.agents(text, find, &mut next),
                term => next.push(term),
            }
        }
        parts = next;
    }
    let pieces: Vec<Piece<'_>> = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => Piece::Text(text),
            Part::Term(index) => Piece::Term(*index),
        })
        .collect();
    let expression = if found.terms.len() > TERMS_MAX {
        Err(format!("it has more than {TERMS_MAX} targets"))
    } else {
        expression::parse(&pieces)
    };
    TargetValue { terms: found.terms, expression }
}

struct Found<'a> {
    terms: Vec<(String, Term)>,
    by_text: HashMap<String, usize>,
    context: &'a TermContext,
}

/// Where a term is in a text: the bytes, the objects, the fields, and the conversion after `|`.
struct Hit<'a> {
    start: usize,
    end: usize,
    objects: &'a str,
    fields: Fields<'a>,
    conversion: Option<&'a str>,
}

impl<'a> Found<'a> {
    fn index(&mut self, text: &str, term: impl FnOnce() -> Term) -> usize {
        if let Some(&index) = self.by_text.get(text) {
            return index;
        }
        let index = self.terms.len();
        self.by_text.insert(text.to_string(), index);
        self.terms.push((text.to_string(), term()));
        index
    }

    /// Cuts out what stands in back-quotes; "\`" is one of the program's own.
    fn programs<'t>(&mut self, text: &'t str, parts: &mut Vec<Part<'t>>) {
        let mut rest = text;
        while let Some((before, after)) = split_quote(rest) {
            let Some((program, after)) = split_quote(after) else { break };
            parts.push(Part::Text(before));
            let command = program.replace("\\`", "`");
            let index = self.index(&rest[before.len()..rest.len() - after.len()], || Term::Program(command));
            parts.push(Part::Term(index));
            rest = after;
        }
        parts.push(Part::Text(rest));
    }

    fn agents<'t>(
        &mut self,
        text: &'t str,
        find: fn(&'t str, usize, usize) -> Option<usize>,
        parts: &mut Vec<Part<'t>>,
    ) {
        let mut from = 0;
        while let Some(hit) = next_hit(text, from, find) {
            let before = &text[from..hit.start];
            parts.push(Part::Text(before));
            let context = self.context;
            let index = self.index(&text[hit.start..hit.end], || match hit.conversion {
                Some(name) => Term::Unreadable(format!("the conversion \"{name}\" needs Perl")),
                None => term::snmp(hit.objects, hit.fields, context),
            });
            parts.push(Part::Term(index));
            from = hit.end;
        }
        parts.push(Part::Text(&text[from..]));
    }
}

/// Splits at the first back-quote that no backslash precedes.
fn split_quote(text: &str) -> Option<(&str, &str)> {
    term::split_unescaped(text, '`')
}

/// The next term at or after `from`: each `@` may be the one after a community. `find` gives the start of the objects that end
/// at a colon, not before the given place.
fn next_hit<'a>(
    text: &'a str,
    from: usize,
    find: fn(&'a str, usize, usize) -> Option<usize>,
) -> Option<Hit<'a>> {
    let ats = text[from..].match_indices('@').map(|(at, _)| from + at);
    ats.filter(|at| !text[..*at].ends_with('\\')).find_map(|at| {
        let host_length = host_length(&text[at + 1..]);
        if host_length == 0 {
            return None;
        }
        let word = word_start(text, from, at);
        let colon = text[word..at].match_indices(':').map(|(colon, _)| word + colon);
        let mut colons = colon.filter(|colon| !text[..*colon].ends_with('\\'));
        let (start, colon) = colons.find_map(|colon| Some((find(text, word, colon)?, colon)))?;
        let fields_start = at + 1 + host_length;
        let fields_length = fields_length(&text[fields_start..]);
        let end = fields_start + fields_length;
        let conversion = text[end..].strip_prefix('|').map(|rest| {
            let word = |letter: char| letter.is_alphanumeric() || letter == '_';
            &rest[..rest.find(|letter| !word(letter)).unwrap_or(rest.len())]
        });
        let conversion = conversion.filter(|name| !name.is_empty());
        let fields = Fields {
            community: &text[colon + 1..at],
            host: &text[at + 1..fields_start],
            rest: text[fields_start..end].strip_prefix(':').unwrap_or(""),
        };
        let end = end + conversion.map_or(0, |name| 1 + name.len());
        Some(Hit { start, end, objects: &text[start..colon], fields, conversion })
    })
}

/// Where the run without blanks that holds `at` begins, not before `from`; blanks after a backslash belong to it.
fn word_start(text: &str, from: usize, at: usize) -> usize {
    let mut blanks = text[from..at].match_indices([' ', '\n']).map(|(blank, _)| from + blank);
    let last = blanks.rfind(|blank| !text[..*blank].ends_with('\\'));
    last.map_or(from, |blank| blank + 1)
}

fn host_length(text: &str) -> usize {
    if text.starts_with('[') {
        return text.find(']').map_or(0, |end| end + 1);
    }
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')).count()
}

/// The length of `:port!address!port:timeout:retries:backoff:version:...`.
fn fields_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    for nth in 0..FIELDS_MAX {
        if bytes.get(at) != Some(&b':') {
            break;
        }
        at += 1;
        let mut is_local = false;
        while let Some(&byte) = bytes.get(at) {
            is_local |= nth == 0 && byte == b'!';
            let is_name = is_local && (byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'!'));
            if !(byte.is_ascii_digit() || byte == b'.' || is_name) {
                break;
            }
            at += 1;
        }
    }
    at
}

/// Two objects with `&` between them.
fn find_pair(text: &str, word: usize, colon: usize) -> Option<usize> {
    let candidate = &text[word..colon];
    let (first, second) = term::split_unescaped(candidate, '&')?;
    if first.is_empty() || second.is_empty() {
        return None;
    }
    // What binds the pair to an expression: it begins after the last operator or parenthesis before its name.
    let reference = first.find(['\\', '#', '!', '%']).unwrap_or(first.len());
    let name = &first[..reference];
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let end = name.find('/').map_or(name.len(), |slash| if slash == 0 { name.len() } else { slash });
    let length = name[..end].bytes().rev().take_while(|&byte| is_name(byte)).count();
    let has_object = second.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '.');
    (length > 0 && has_object).then_some(word + end - length)
}

/// An interface: a number, or a reference with its mark.
fn find_interface(text: &str, word: usize, colon: usize) -> Option<usize> {
    let candidate = &text[word..colon];
    // The mark nearest to the beginning begins the reference: names may contain the others.
    let mark = candidate.find(['#', '\\', '!', '%', '/']);
    let start = match mark {
        Some(mark) if is_reference(&candidate[mark..]) => mark,
        _ => {
            let digits = candidate.bytes().rev().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return None;
            }
            candidate.len() - digits
        }
    };
    let swapped = candidate[..start].ends_with('-');
    Some(word + start - usize::from(swapped))
}

fn is_reference(text: &str) -> bool {
    let rest = &text[1..];
    match text.as_bytes()[0] {
        b'/' => rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && rest.contains('.'),
        b'%' => !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()),
        b'!' => rest.contains('-') && rest.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-'),
        _ => !rest.is_empty(),
    }
}

#[cfg(test)]
mod tests;
