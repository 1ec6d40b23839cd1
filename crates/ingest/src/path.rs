//! Names and labels in the names of RRDs, and back: a template such as `pushed/{instance}/{name}`.
//!
//! Every label is in the name of the RRD, those that the template does not mention after it: `pushed/web1:9100/up,job=node.rrd`. So no
//! two series have the same name, and a name alone says which series it is. What has another meaning in names is written as `%XX`. A component that gets too long goes on in one
//! that begins with `+`.

use std::fmt::Write as _;

use crate::sample::{Kind, Samples, Series};

/// Bytes of a component, so that a file of this name can have a suffix, too.
const COMPONENT_BYTES_MAX: usize = 200;
/// Bytes of a name: those of a path, less what a directory before it takes.
pub const PATH_BYTES_MAX: usize = 2048;
/// What a component that continues the one before it begins with.
const GOES_ON: &str = "/+";
/// What stands for a label that a series has not.
const NOTHING: &str = "%";
/// Stands for the series' name in a template.
const NAME: &str = "name";

/// How the name of an RRD is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable {
        /// The label; `None`: the name.
        label: Option<String>,
        /// Dots in it separate directories.
        is_dotted: bool,
    },
}

/// The name of an RRD would be longer than [`PATH_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathTooLong;

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Template, String> {
        let wrong = |cause: String| format!("path \"{text}\": {cause}");
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            push_literal(&mut parts, literal).map_err(wrong)?;
            let Some((variable, after)) = after.split_once('}') else {
                return Err(wrong("a { has no }".to_owned()));
            };
            let (label, is_dotted) = match variable.strip_suffix('/') {
                Some(label) => (label, true),
                None => (variable, false),
            };
            if label.is_empty() {
                return Err(wrong("{} names no label; {name} is the name of the series".to_owned()));
            }
            if !after.is_empty() && (is_dotted || !after.starts_with('/')) {
                let cause =
                    if is_dotted { "can only stand at the end" } else { "must be followed by / or the end" };
                return Err(wrong(format!("{{{variable}}} {cause}, or a name could not be read back")));
            }
            let label = (label != NAME).then(|| label.to_owned());
            parts.push(Part::Variable { label, is_dotted });
            rest = after;
        }
        push_literal(&mut parts, rest).map_err(wrong)?;
        let is_name = |part: &Part| matches!(part, Part::Variable { label: None, .. });
        if parts.iter().filter(|part| is_name(part)).count() != 1 {
            return Err(wrong("{name} must be in it, once".to_owned()));
        }
        let variables: Vec<_> = parts.iter().filter(|part| matches!(part, Part::Variable { .. })).collect();
        if (1..variables.len()).any(|at| variables[..at].contains(&variables[at])) {
            return Err(wrong("a label is in it twice".to_owned()));
        }
        let shape: String =
            parts.iter().map(|part| if let Part::Literal(text) = part { text } else { "x" }).collect();
        let is_bad = |component: &str| {
            component.is_empty() || component.starts_with('.') || component.starts_with('-')
        };
        if shape.split('/').any(is_bad) {
            return Err(wrong("a part of it is empty, or begins with . or -".to_owned()));
        }
        Ok(Template { text: text.to_owned(), parts })
    }

    /// The template as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The directory whose subdirectories are the parts of names between dots, empty or with a slash at its end: that of `DIRECTORY/{name/}`.
    pub fn dotted_directory(&self) -> Option<&str> {
        match &*self.parts {
            [Part::Variable { label: None, is_dotted: true }] => Some(""),
            [Part::Literal(directory), Part::Variable { label: None, is_dotted: true }] => {
                directory.ends_with('/').then_some(directory)
            }
            _ => None,
        }
    }

    /// The labels that it mentions.
    fn mentions(&self, name: &str) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Variable { label: Some(label), .. } if label == name))
    }

    /// Writes the name of the RRD of a series to `out`, `.rrd` included. Labels in `dropped` are left out.
    ///
    /// # Errors
    /// When it is too long.
    pub fn write(&self, series: Series<'_>, dropped: &[String], out: &mut String) -> Result<(), PathTooLong> {
        let mut path = Writer { out, component: 0 };
        for part in &self.parts {
            match part {
                Part::Literal(text) => path.literal(text),
                Part::Variable { label, is_dotted } => {
                    let value = label.as_ref().map_or(series.name(), |label| {
                        if dropped.contains(label) { "" } else { series.label(label) }
                    });
                    path.variable(value, *is_dotted);
                }
            }
        }
        let is_rest = |name: &str| !self.mentions(name) && !dropped.iter().any(|label| label == name);
        for (name, value) in series.labels().filter(|(name, _)| is_rest(name)) {
            path.put(",");
            path.encoded(name);
            path.put("=");
            path.encoded(value);
        }
        path.out.push_str(".rrd");
        if path.out.len() > PATH_BYTES_MAX { Err(PathTooLong) } else { Ok(()) }
    }

    /// The series of an RRD's name, which is without `.rrd`, as the last one of `samples`; `None` if it cannot be of this template.
    pub fn read(&self, path: &str, samples: &mut Samples) -> Option<u32> {
        match self.parts.first() {
            Some(Part::Literal(first)) if !path.starts_with(&**first) => return None,
            _ => {}
        }
        let whole = path.replace(GOES_ON, "");
        let (base, rest) = match whole.split_once(',') {
            Some((base, rest)) => (base, Some(rest)),
            None => (&*whole, None),
        };
        let mut name = String::new();
        let mut labels = Vec::new();
        let mut left = base;
        for part in &self.parts {
            match part {
                Part::Literal(text) => left = left.strip_prefix(&**text)?,
                Part::Variable { label, is_dotted } => {
                    let end = if *is_dotted { left.len() } else { left.find('/').unwrap_or(left.len()) };
                    let value = decoded_variable(&left[..end], *is_dotted)?;
                    left = &left[end..];
                    match label {
                        Some(label) => labels.push((label.clone(), value)),
                        None => name = value,
                    }
                }
            }
        }
        if !left.is_empty() {
            return None;
        }
        for label in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let (label, value) = label.split_once('=')?;
            labels.push((decoded(label)?, decoded(value)?));
        }
        let mut series = samples.begin(&name);
        labels.iter().for_each(|(label, value)| series.label(label, value));
        series.end(Kind::Gauge).ok()
    }
}

fn push_literal(parts: &mut Vec<Part>, text: &str) -> Result<(), String> {
    if let Some(bad) = text.chars().find(|&c| c != '/' && !is_plain(c)) {
        return Err(format!("{bad:?} cannot be in it"));
    }
    if !text.is_empty() {
        parts.push(Part::Literal(text.to_owned()));
    }
    Ok(())
}

/// Whether a character stands for itself.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '@' | '~')
}

/// Writes a name, component by component.
struct Writer<'a> {
    out: &'a mut String,
    /// Bytes of the last component.
    component: usize,
}

impl Writer<'_> {
    fn literal(&mut self, text: &str) {
        self.out.push_str(text);
        self.component = match text.rsplit_once('/') {
            Some((_, last)) => last.len(),
            None => self.component + text.len(),
        };
    }

    fn variable(&mut self, value: &str, is_dotted: bool) {
        if value.is_empty() {
            return self.put(NOTHING);
        }
        if !is_dotted {
            return self.encoded(value);
        }
        for (index, part) in value.split('.').enumerate() {
            if index > 0 {
                self.literal("/");
            }
            if part.is_empty() { self.put(NOTHING) } else { self.encoded(part) }
        }
    }

    fn put(&mut self, text: &str) {
        if self.component + text.len() > COMPONENT_BYTES_MAX {
            self.literal(GOES_ON);
        }
        self.out.push_str(text);
        self.component += text.len();
    }

    fn encoded(&mut self, text: &str) {
        for c in text.chars() {
            let mut buffer = [0; 4];
            let bytes = c.encode_utf8(&mut buffer);
            // Two dots are never plain: programs, rrdcached among them, refuse whatever has `../` in it, at the end of a directory's name, too.
            let is_second_dot = c == '.' && self.out.ends_with('.');
            if is_plain(c) && !is_second_dot && !(self.component == 0 && matches!(c, '.' | '-')) {
                self.put(bytes);
                continue;
            }
            let mut escaped = String::with_capacity(12);
            for byte in bytes.bytes() {
                // Writing to a text cannot fail.
                let _ = write!(escaped, "%{byte:02X}");
            }
            self.put(&escaped);
        }
    }
}

fn decoded_variable(text: &str, is_dotted: bool) -> Option<String> {
    let one = |part: &str| if part == NOTHING { Some(String::new()) } else { decoded(part) };
    if !is_dotted {
        return one(text);
    }
    Some(text.split('/').map(one).collect::<Option<Vec<_>>>()?.join("."))
}

/// The text that is written so; `None` if no text is.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(template: &str, name: &str, labels: &[(&str, &str)]) -> String {
        let template = Template::parse(template).unwrap();
        let mut samples = Samples::default();
        let mut series = samples.begin(name);
        labels.iter().for_each(|(label, value)| series.label(label, value));
        let number = series.end(Kind::Gauge).unwrap();
        let mut out = String::new();
        template.write(samples.series(number), &[], &mut out).unwrap();
        let mut read = Samples::default();
        let back = template.read(out.strip_suffix(".rrd").unwrap(), &mut read).unwrap();
        assert_eq!(read.series(back), samples.series(number), "{out}");
        assert!(
            out.split('/').all(|part| part.len() <= 255 && !part.is_empty() && !part.starts_with('.')),
            "{out}"
        );
        out
    }

    #[test]
    fn names_say_everything() {
        let check = |template, name, labels: &[_], want: &str| assert_eq!(path(template, name, labels), want);
        let host = [("instance", "web1:9100"), ("job", "node")];
        check("pushed/{instance}/{name}", "up", &host, "pushed/web1:9100/up,job=node.rrd");
        check("pushed/{name}", "up", &[], "pushed/up.rrd");
        check("x/{job}/{name}", "up", &[], "x/%/up.rrd");
        check("x/{name}/{job}", "up", &[("a", "1")], "x/up/%,a=1.rrd");
        check("carbon/{name/}", "servers.web1..load", &[], "carbon/servers/web1/%/load.rrd");
        check("carbon/{name/}", "..", &[("k", "a/b,c=d")], "carbon/%/%/%,k=a%2Fb%2Cc%3Dd.rrd");
        check("x/{name}", "..", &[("..", "../../etc/passwd")], "x/%2E.,.%2E=.%2E%2F.%2E%2Fetc%2Fpasswd.rrd");
        check("x/{a}/{name}", "n...", &[("a", "bar..")], "x/bar.%2E/n.%2E..rrd");
        check("x/{name}", "-é %+\n*", &[], "x/%2Dé%20%25%2B%0A%2A.rrd");
    }

    #[test]
    fn long_names_go_on() {
        let long = "/".repeat(300);
        let out = path("x/{name}", &long, &[("a", &"y".repeat(500)), ("b", "é")]);
        assert!(out.contains("/+") && out.len() > 1400, "{out}");
        assert!(path("x/{a}/{name}", "n", &[("a", &"y".repeat(500))]).ends_with("y/n.rrd"));
        let template = Template::parse("{name}").unwrap();
        let mut samples = Samples::default();
        let number = samples.begin(&long.repeat(10)).end(Kind::Gauge).unwrap();
        assert_eq!(template.write(samples.series(number), &[], &mut String::new()), Err(PathTooLong));
    }

    #[test]
    fn templates_that_could_not_be_read_back_are_refused() {
        for bad in [
            "",
            "x",
            "{name}{a}",
            "{name}-{a}",
            "{name/}/x",
            "../{name}",
            "/{name}",
            "a//{name}",
            "{name",
            "{}",
            "{name}/{name}",
            "a b/{name}",
            "{a}/{a}/{name}",
            "{name}/",
            "a,b/{name}",
            ".x/{name}",
        ] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
        Template::parse("a/host-{instance}/{name/}").unwrap();
    }
}
