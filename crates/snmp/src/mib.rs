//! Symbolic names from MIB files: which object identifier a name stands for, and nothing else of what such a file says.

use std::collections::HashMap;

use crate::names;

/// Arcs of an object identifier at most.
const ARCS_MAX: usize = 128;
/// Names in files at most.
const NAMES_MAX: usize = 1_000_000;

/// Macros whose value is an object identifier.
const MACROS: &[&str] = &[
    "AGENT-CAPABILITIES",
    "MODULE-COMPLIANCE",
    "MODULE-IDENTITY",
    "NOTIFICATION-GROUP",
    "NOTIFICATION-TYPE",
    "OBJECT-GROUP",
    "OBJECT-IDENTITY",
    "OBJECT-TYPE",
];

/// Names that files import from others (RFC 1155, RFC 1213, RFC 2578, RFC 2863).
const ROOTS: &[(&str, &[u32])] = &[
    ("ccitt", &[0]),
    ("zeroDotZero", &[0, 0]),
    ("iso", &[1]),
    ("joint-iso-ccitt", &[2]),
    ("org", &[1, 3]),
    ("dod", &[1, 3, 6]),
    ("internet", &[1, 3, 6, 1]),
    ("directory", &[1, 3, 6, 1, 1]),
    ("mgmt", &[1, 3, 6, 1, 2]),
    ("mib-2", &[1, 3, 6, 1, 2, 1]),
    ("system", &[1, 3, 6, 1, 2, 1, 1]),
    ("interfaces", &[1, 3, 6, 1, 2, 1, 2]),
    ("ifTable", &[1, 3, 6, 1, 2, 1, 2, 2]),
    ("ifEntry", &[1, 3, 6, 1, 2, 1, 2, 2, 1]),
    ("at", &[1, 3, 6, 1, 2, 1, 3]),
    ("ip", &[1, 3, 6, 1, 2, 1, 4]),
    ("icmp", &[1, 3, 6, 1, 2, 1, 5]),
    ("tcp", &[1, 3, 6, 1, 2, 1, 6]),
    ("udp", &[1, 3, 6, 1, 2, 1, 7]),
    ("egp", &[1, 3, 6, 1, 2, 1, 8]),
    ("transmission", &[1, 3, 6, 1, 2, 1, 10]),
    ("snmp", &[1, 3, 6, 1, 2, 1, 11]),
    ("host", &[1, 3, 6, 1, 2, 1, 25]),
    ("ifMIB", &[1, 3, 6, 1, 2, 1, 31]),
    ("ifMIBObjects", &[1, 3, 6, 1, 2, 1, 31, 1]),
    ("ifXTable", &[1, 3, 6, 1, 2, 1, 31, 1, 1]),
    ("ifXEntry", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1]),
    ("experimental", &[1, 3, 6, 1, 3]),
    ("private", &[1, 3, 6, 1, 4]),
    ("enterprises", &[1, 3, 6, 1, 4, 1]),
    ("security", &[1, 3, 6, 1, 5]),
    ("snmpV2", &[1, 3, 6, 1, 6]),
    ("snmpDomains", &[1, 3, 6, 1, 6, 1]),
    ("snmpProxys", &[1, 3, 6, 1, 6, 2]),
    ("snmpModules", &[1, 3, 6, 1, 6, 3]),
];

/// What files say of names, before it is known what all of them stand for.
#[derive(Clone, Debug, Default)]
pub struct MibNames {
    /// The parent, if it is a name, and the arcs below it.
    assigned: HashMap<String, (Option<String>, Vec<u32>)>,
}

impl MibNames {
    /// Reads a file. Of a name that is said twice, the first counts.
    pub fn add(&mut self, text: &str) {
        let tokens: Vec<&str> = Tokens(text).collect();
        let mut at = 0;
        while at < tokens.len() && self.assigned.len() < NAMES_MAX {
            at = self.take(&tokens, at);
        }
    }

    /// Takes an assignment that begins at `at`, if there is one; returns where to go on.
    fn take(&mut self, tokens: &[&str], at: usize) -> usize {
        let name = tokens[at];
        let token = |nth: usize| tokens.get(nth).copied().unwrap_or("");
        if !name.starts_with(|letter: char| letter.is_ascii_lowercase()) {
            return at + 1;
        }
        let value = if (token(at + 1), token(at + 2), token(at + 3)) == ("OBJECT", "IDENTIFIER", "::=") {
            at + 4
        } else if MACROS.contains(&token(at + 1)) {
            let Some(assigned) = tokens[at + 2..].iter().position(|token| *token == "::=") else {
                return at + 1;
            };
            at + 2 + assigned + 1
        } else {
            return at + 1;
        };
        let Some((parent, arcs, end)) = value_of(tokens, value) else { return at + 1 };
        self.assigned.entry(name.to_string()).or_insert((parent, arcs));
        end
    }

    /// The object identifiers of all names whose parents are known, and the first names, sorted, of those that are not.
    pub fn resolve(&self) -> (HashMap<String, Vec<u32>>, Vec<&str>) {
        let mut known: HashMap<String, Vec<u32>> = HashMap::with_capacity(self.assigned.len());
        let mut unknown = Vec::new();
        for name in self.assigned.keys() {
            if self.find(name, &mut known).is_none() {
                unknown.push(name.as_str());
            }
        }
        unknown.sort_unstable();
        (known, unknown)
    }

    /// Follows the parents of a name up to one that is known, and then notes all of them.
    fn find(&self, name: &str, known: &mut HashMap<String, Vec<u32>>) -> Option<()> {
        let mut way = Vec::new();
        let mut at = name;
        let mut oid = loop {
            if let Some(oid) = known.get(at) {
                break oid.clone();
            }
            match self.assigned.get(at) {
                Some((None, arcs)) => {
                    known.insert(at.to_string(), arcs.clone());
                    break arcs.clone();
                }
                // More parents than arcs: it goes round in circles.
                Some((Some(parent), arcs)) if way.len() < ARCS_MAX => {
                    way.push((at, arcs));
                    at = parent;
                }
                Some(_) => return None,
                None => break built_in(at)?,
            }
        };
        for (name, arcs) in way.into_iter().rev() {
            oid.extend_from_slice(arcs);
            if oid.len() > ARCS_MAX {
                return None;
            }
            known.insert(name.to_string(), oid.clone());
        }
        Some(())
    }
}

/// What a name stands for that no file need assign.
pub fn built_in(name: &str) -> Option<Vec<u32>> {
    let found = ROOTS.iter().find(|(root, _)| *root == name).map(|(_, oid)| oid.to_vec());
    found.or_else(|| names::find(name).map(|name| name.oid))
}

/// Reads `{ parent 1 name(2) }`: the parent, the arcs below it, and where to go on.
fn value_of(tokens: &[&str], at: usize) -> Option<(Option<String>, Vec<u32>, usize)> {
    if tokens.get(at) != Some(&"{") {
        return None;
    }
    let (mut parent, mut arcs) = (None, Vec::new());
    let mut at = at + 1;
    loop {
        let token = *tokens.get(at)?;
        if token == "}" {
            return (parent.is_some() || !arcs.is_empty()).then_some((parent, arcs, at + 1));
        }
        if let Ok(arc) = token.parse() {
            arcs.push(arc);
            at += 1;
        } else if let (Some(&"("), Some(arc), Some(&")")) =
            (tokens.get(at + 1), tokens.get(at + 2), tokens.get(at + 3))
        {
            arcs.push(arc.parse().ok()?);
            at += 4;
        } else if parent.is_none()
            && arcs.is_empty()
            && token.starts_with(|letter: char| letter.is_ascii_alphabetic())
        {
            parent = Some(token.to_string());
            at += 1;
        } else {
            return None;
        }
        if arcs.len() > ARCS_MAX {
            return None;
        }
    }
}

/// The words and marks of a file, without comments and quoted texts.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            self.0 = self.0.trim_start();
            let rest = self.0;
            let first = rest.chars().next()?;
            if let Some(comment) = rest.strip_prefix("--") {
                // A comment ends with the line, or with two more hyphens.
                let line = comment.find('\n').unwrap_or(comment.len());
                let end = comment[..line].find("--").map_or(line, |end| end + 2);
                self.0 = &comment[end..];
                continue;
            }
            if first == '"' {
                let text = &rest[1..];
                self.0 = text.find('"').map_or("", |end| &text[end + 1..]);
                continue;
            }
            let length = if rest.starts_with("::=") {
                3
            } else if is_word(first) {
                word_length(rest)
            } else {
                first.len_utf8()
            };
            let (token, after) = rest.split_at(length);
            self.0 = after;
            return Some(token);
        }
    }
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-' || letter == '_' || letter == '.'
}

/// The length of the word at the beginning; two hyphens begin a comment.
fn word_length(text: &str) -> usize {
    let end = text.find(|letter| !is_word(letter)).unwrap_or(text.len());
    text[..end].find("--").unwrap_or(end).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> (HashMap<String, Vec<u32>>, Vec<String>) {
        let mut names = MibNames::default();
        texts.iter().for_each(|text| names.add(text));
        let (known, unknown) = names.resolve();
        (known, unknown.into_iter().map(str::to_string).collect())
    }

    #[test]
    fn assignments_are_found_among_the_rest() {
        let (known, unknown) = names(&[
            "MY-MIB DEFINITIONS ::= BEGIN\nIMPORTS enterprises, OBJECT-TYPE FROM SNMPv2-SMI OBJECT-GROUP FROM SNMPv2-CONF;\n\
             -- acme OBJECT IDENTIFIER ::= { enterprises 1 } -- acme OBJECT IDENTIFIER ::= { enterprises 4242 }\n\
             acmeMIB MODULE-IDENTITY LAST-UPDATED \"2026\" DESCRIPTION \"no ::= { x 1 }\" ::= { acme 1 }\n\
             AcmeEntry ::= SEQUENCE { acmeIndex INTEGER, acmeKind OBJECT IDENTIFIER, acmeLoad Gauge32 }\n\
             acmeTable OBJECT-TYPE SYNTAX SEQUENCE OF AcmeEntry ACCESS not-accessible ::= {acmeMIB 2}\n\
             acmeEntry OBJECT-TYPE INDEX { acmeIndex } DEFVAL { 3 } ::= { acmeTable 1 }\n\
             acmeLoad OBJECT-TYPE SYNTAX Gauge32 ::= { acmeEntry 3 } -- the load\n\
             acmeTrap TRAP-TYPE ENTERPRISE acme ::= 1\n\
             iso8802 OBJECT IDENTIFIER ::= { iso org(3) dod(6) 8802 }\n\
             plain OBJECT IDENTIFIER ::= { 1 3 6 9 }\nlost OBJECT IDENTIFIER ::= { elsewhere 1 }\n",
            "round OBJECT IDENTIFIER ::= { about 1 }\nabout OBJECT IDENTIFIER ::= { round 1 }\n\
             acmeLoad OBJECT IDENTIFIER ::= { iso 9 }\ninside OBJECT IDENTIFIER ::= { ifEntry 99 }\n\
             below OBJECT IDENTIFIER ::= { ifInOctets 7 }",
        ]);
        let check =
            |name: &str, want: &[u32]| assert_eq!(known.get(name).map(Vec::as_slice), Some(want), "{name}");
        check("acme", &[1, 3, 6, 1, 4, 1, 4242]);
        check("acmeLoad", &[1, 3, 6, 1, 4, 1, 4242, 1, 2, 1, 3]);
        check("iso8802", &[1, 3, 6, 8802]);
        check("plain", &[1, 3, 6, 9]);
        check("inside", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 99]);
        check("below", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 10, 7]);
        assert_eq!(unknown, ["about", "lost", "round"]);
        assert!(!known.contains_key("acmeKind") && !known.contains_key("acmeTrap"));
    }

    #[test]
    fn whatever_a_file_holds_is_no_panic() {
        let text = "a OBJECT IDENTIFIER ::= { iso 1 } b OBJECT-TYPE DESCRIPTION \"x\" ::= { a(1) 4294967296 -- y\n} \u{e9}";
        for start in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            for end in (start..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                names(&[&text[start..end]]);
            }
        }
    }
}
