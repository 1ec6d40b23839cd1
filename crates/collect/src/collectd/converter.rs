//! What a `collectd.conf` says in its network, rrdtool and rrdcached sections, as lines for `roundel.toml`.

use std::fmt::Write as _;

use super::PORT;

/// The result of [`convert`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversion {
    /// Lines for `roundel.toml`.
    pub toml: String,
    /// Lines of `collectd.conf` that matter and have no place there: their number and what to do about them.
    pub remarks: Vec<(usize, String)>,
}

/// A line of `collectd.conf` with the sections it stands in, in lower case.
struct ConfLine<'a> {
    line: usize,
    sections: &'a [String],
    key: String,
    values: Vec<String>,
}

/// What was found.
#[derive(Default)]
struct Found {
    base: Option<String>,
    types: Vec<String>,
    listen: Vec<String>,
    interfaces: Vec<String>,
    security: Vec<(usize, &'static str)>,
    auth_file: Option<String>,
    /// Keys of `[collectd]` with their values in TOML.
    numbers: Vec<(&'static str, String)>,
    timespans: Vec<String>,
    remarks: Vec<(usize, String)>,
}

/// Reads `collectd.conf`. What concerns other plugins is left out without a word.
pub fn convert(text: &str) -> Conversion {
    let mut found = Found::default();
    let mut sections: Vec<String> = Vec::new();
    let mut joined = String::new();
    for (index, line) in text.lines().enumerate() {
        // A backslash at its end joins a line with the next.
        if let Some(start) = line.strip_suffix('\\') {
            joined.push_str(start);
            continue;
        }
        let whole = std::mem::take(&mut joined) + line;
        let line = whole.trim();
        if line.starts_with("</") {
            sections.pop();
            continue;
        }
        let is_section = line.starts_with('<');
        let mut words = words(line.trim_start_matches('<').trim_end_matches('>')).into_iter();
        let Some(key) = words.next() else { continue };
        let key = key.to_ascii_lowercase();
        let values: Vec<String> = words.collect();
        if is_section {
            let name = values.first().map_or(String::new(), |name| name.to_ascii_lowercase());
            sections.push(format!("{key} {name}"));
            found.section(index + 1, &sections, &key, &values);
        } else {
            found.option(&ConfLine { line: index + 1, sections: &sections, key, values });
        }
    }
    found.finish()
}

/// The words of a line, without quotes and comment.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next().filter(|&first| first != '#') {
        let mut word = String::new();
        let mut used = 0;
        if first == '"' {
            let mut characters = rest.char_indices().skip(1);
            while let Some((at, c)) = characters.next() {
                used = at + c.len_utf8();
                match c {
                    '"' => break,
                    '\\' => word.extend(characters.next().map(|(_, escaped)| escaped)),
                    plain => word.push(plain),
                }
            }
            used = used.max(1);
        } else {
            used = rest.find(char::is_whitespace).unwrap_or(rest.len());
            word.push_str(&rest[..used]);
        }
        words.push(word);
        rest = rest.get(used..).unwrap_or("").trim_start();
    }
    words
}

impl Found {
    fn section(&mut self, line: usize, sections: &[String], key: &str, values: &[String]) {
        if sections.first().map(String::as_str) != Some("plugin network") {
            return;
        }
        match key {
            "listen" => self.listen(values),
            "server" => self
                .remark(line, "forwarding to another server has no place here: let the senders send to both"),
            _ => {}
        }
    }

    fn listen(&mut self, values: &[String]) {
        let port = PORT.to_string();
        let host = values.first().map_or("::", String::as_str);
        let port = values.get(1).unwrap_or(&port);
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_string() };
        self.listen.push(format!("udp://{host}:{port}"));
    }

    fn option(&mut self, option: &ConfLine<'_>) {
        let value = option.values.first().cloned().unwrap_or_default();
        match (option.sections.first().map(String::as_str), option.key.as_str()) {
            (None, "typesdb") => self.types.extend(option.values.iter().cloned()),
            (None, "include") => self.remark(option.line, "is not followed: convert that file, too"),
            (Some("plugin network"), key) => self.network(option, key, value),
            (Some("plugin rrdtool" | "plugin rrdcached"), key) => self.rrd(option, key, value),
            _ => {}
        }
    }

    fn network(&mut self, option: &ConfLine<'_>, key: &str, value: String) {
        let in_server = option.sections.iter().any(|section| section.starts_with("server"));
        match key {
            _ if in_server => {}
            "listen" => self.listen(&option.values),
            "server" => self.section(option.line, &["plugin network".to_string()], "server", &option.values),
            "securitylevel" => {
                let levels = [("none", "none"), ("sign", "sign"), ("encrypt", "encrypt")];
                let known = levels.iter().find(|level| value.eq_ignore_ascii_case(level.0));
                match known {
                    Some(level) => self.security.push((option.line, level.1)),
                    None => self.remark(option.line, "is no security level"),
                }
            }
            "authfile" if self.auth_file.as_ref().is_some_and(|known| *known != value) => {
                self.remark(option.line, "only one file of users is possible: put all users into the first");
            }
            "authfile" => self.auth_file = Some(value),
            "interface" => self.interfaces.push(value),
            "forward" if value.eq_ignore_ascii_case("true") => {
                self.remark(option.line, "forwarding has no place here");
            }
            _ => {}
        }
    }

    fn rrd(&mut self, option: &ConfLine<'_>, key: &str, value: String) {
        let number = match key {
            "stepsize" => "step",
            "heartbeat" => "heartbeat",
            "rrarows" => "rra_rows",
            "xff" => "xff",
            "datadir" => {
                self.base = Some(value);
                return;
            }
            "rratimespan" => {
                self.timespans.push(value);
                return;
            }
            "createfilesasync" if value.eq_ignore_ascii_case("true") => {
                return self.remark(option.line, "is not needed: creating loses no value");
            }
            _ => return,
        };
        match value.parse::<f64>() {
            Ok(parsed) if parsed > 0.0 || number == "xff" => self.numbers.push((number, value)),
            _ => self.remark(option.line, "is no number above 0: the default counts"),
        }
    }

    fn remark(&mut self, line: usize, text: &str) {
        self.remarks.push((line, text.to_string()));
    }

    fn finish(mut self) -> Conversion {
        let mut toml = String::new();
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let list = |texts: &[String]| texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ");
        let mut push = |line: String| writeln!(toml, "{line}").expect("writing to a String cannot fail");
        if let Some(base) = &self.base {
            push(
                "# Names are relative to this directory: collectd's DataDir. Above all sections.".to_string(),
            );
            push(format!("base = {}\n", quoted(base)));
        }
        push("[collectd]".to_string());
        if self.listen.is_empty() {
            let text = "no <Listen> of the network plugin was found: without `listen` nothing is received";
            self.remarks.push((0, text.to_string()));
            push(format!("#: listen = [\"udp://[::]:{PORT}\"]"));
        } else {
            push(format!("listen = [{}]", list(&self.listen)));
        }
        if let Some(strictest) =
            ["encrypt", "sign"].into_iter().find(|level| self.security.iter().any(|known| known.1 == *level))
        {
            push(format!("security = \"{strictest}\""));
            let other = self.security.iter().find(|known| known.1 != strictest);
            if let Some(&(line, _)) = other {
                self.remarks
                    .push((line, format!("all sockets have one level: \"{strictest}\", the strictest")));
            }
        }
        if let Some(file) = &self.auth_file {
            push(format!("auth_file = {}", quoted(file)));
        }
        if let Some(interface) = self.interfaces.first() {
            push(format!("interface = {}", quoted(interface)));
        }
        if !self.types.is_empty() {
            push(format!("types = [{}]", list(&self.types)));
        }
        for (key, value) in &self.numbers {
            push(format!("{key} = {value}"));
        }
        if !self.timespans.is_empty() {
            push(format!("rra_timespans = [{}]", self.timespans.join(", ")));
        }
        Conversion { toml, remarks: self.remarks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_become_keys_and_the_rest_is_named() {
        let text = "Hostname \"x\"\nTypesDB \"/usr/share/collectd/types.db\" \"/etc/my.db\" # both\n\
                    LoadPlugin network\n<Plugin network>\n  <Server \"a\" \"1\">\n    SecurityLevel Encrypt\n  </Server>\n\
                    \x20 <Listen \"::\">\n    SecurityLevel \"Sign\"\n    AuthFile \"/etc/auth\"\n  </Listen>\n\
                    \x20 Listen \"239.192.74.66\" \"25827\"\n</Plugin>\n<Plugin \"rrdtool\">\n  DataDir \"/rrd\"\n\
                    \x20 RRARows 100\n  RRATimespan 3600\n  RRATimespan \\\n86400\n  XFF 0\n  CacheTimeout 120\n</Plugin>\n";
        let conversion = convert(text);
        assert_eq!(
            conversion.toml,
            "# Names are relative to this directory: collectd's DataDir. Above all sections.\nbase = \"/rrd\"\n\n\
             [collectd]\nlisten = [\"udp://[::]:25826\", \"udp://239.192.74.66:25827\"]\nsecurity = \"sign\"\n\
             auth_file = \"/etc/auth\"\ntypes = [\"/usr/share/collectd/types.db\", \"/etc/my.db\"]\nrra_rows = 100\n\
             xff = 0\nrra_timespans = [3600, 86400]\n"
        );
        assert_eq!(conversion.remarks.len(), 1, "{:?}", conversion.remarks);
        assert_eq!(conversion.remarks[0].0, 5);
    }

    #[test]
    fn words_end_with_quotes_blanks_and_comments() {
        assert_eq!(words("a \"b c\" \"d\\\"e\" # f"), ["a", "b c", "d\"e"]);
        assert_eq!(words("\"open"), ["open"]);
        assert_eq!(words("# only"), [""; 0]);
        assert_eq!(words("\""), [""]);
    }
}
