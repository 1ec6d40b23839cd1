//! The settings of a configuration: what each target has been given, with what `[^]`, `[$]` and `[_]` add.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::fault::{Fault, Place};
use super::keywords::{self, Scope};
use super::lexer::{self, Reader, Statement};

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The value, with prefix and suffix. Targets with the same `[_]` share it.
    pub value: Arc<str>,
    /// Where it was given; of a value that `[_]` gives, the place of that.
    pub place: Place,
}

/// The settings of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetSettings {
    /// In lower case.
    pub name: String,
    /// Where it is mentioned first.
    pub place: Place,
    /// By keyword, which all targets share.
    pub settings: BTreeMap<Arc<str>, Setting>,
}

impl TargetSettings {
    /// The value of a keyword.
    pub fn get(&self, keyword: &str) -> Option<&str> {
        self.settings.get(keyword).map(|setting| &*setting.value)
    }
}

/// A whole configuration, every value of which keeps MRTG's rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// By keyword; where one is given twice, the last.
    pub globals: BTreeMap<Arc<str>, Setting>,
    /// In the order of their first mention.
    pub targets: Vec<TargetSettings>,
    /// All lines in their order, for a report.
    pub mentions: Vec<Mention>,
}

/// Where a keyword is given a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The line.
    pub place: Place,
    /// In lower case.
    pub keyword: Arc<str>,
    /// In lower case.
    pub target: Option<String>,
}

impl Config {
    /// The value of a global keyword.
    pub fn get(&self, keyword: &str) -> Option<&str> {
        self.globals.get(keyword).map(|setting| &*setting.value)
    }

    /// Whether a global keyword of `yes` and `no` says yes.
    pub fn is_yes(&self, keyword: &str) -> bool {
        self.get(keyword).is_some_and(|value| value.eq_ignore_ascii_case("yes"))
    }
}

/// Reads the configuration `name` with `bytes`, and what it includes through `read`.
///
/// # Errors
/// The first line that MRTG stops at, or all of what its second check reports.
pub fn parse(name: &str, bytes: &[u8], read: &mut Reader<'_>) -> Result<Config, Vec<Fault>> {
    let statements = lexer::statements(name, bytes, read).map_err(|fault| vec![fault])?;
    let mut builder = Builder::default();
    for statement in statements {
        builder.add(statement).map_err(|fault| vec![fault])?;
    }
    let config = builder.finish().map_err(|fault| vec![fault])?;
    let faults = check(&config, name);
    if faults.is_empty() { Ok(config) } else { Err(faults) }
}

/// What `[^]`, `[$]` and `[_]` hold at some line.
#[derive(Clone, Debug, Default)]
struct Around {
    before: BTreeMap<Arc<str>, Setting>,
    after: BTreeMap<Arc<str>, Setting>,
    default: BTreeMap<Arc<str>, Setting>,
}

struct Mentioned {
    name: String,
    place: Place,
    around: Arc<Around>,
    explicit: BTreeMap<Arc<str>, Setting>,
}

#[derive(Default)]
struct Builder {
    /// Each is kept once: ten thousand targets have the same few.
    keywords: HashSet<Arc<str>>,
    mentions: Vec<Mention>,
    globals: BTreeMap<Arc<str>, Setting>,
    around: Arc<Around>,
    targets: Vec<Mentioned>,
    by_name: HashMap<String, usize>,
}

impl Builder {
    fn keyword(&mut self, keyword: &str) -> Arc<str> {
        if let Some(known) = self.keywords.get(keyword) {
            return Arc::clone(known);
        }
        let new: Arc<str> = keyword.into();
        self.keywords.insert(Arc::clone(&new));
        new
    }

    fn add(&mut self, statement: Statement) -> Result<(), Fault> {
        let Statement { place, line, keyword, target, value } = statement;
        let keyword = self.keyword(&keyword);
        let mention = Mention { place: place.clone(), keyword: Arc::clone(&keyword), target: target.clone() };
        self.mentions.push(mention);
        let (place, value) = (&place, Arc::<str>::from(value));
        let setting = Setting { value: Arc::clone(&value), place: place.clone() };
        // The keywords of front ends have a prefix: no list of their names would be complete.
        let is_foreign = keyword.contains('*');
        let Some(target) = target else {
            if !is_foreign {
                known(&keyword, Scope::Global, place)?;
                self.globals.insert(keyword, setting);
            }
            return Ok(());
        };
        if !is_foreign {
            known(&keyword, Scope::Target, place)?;
        }
        if matches!(target.as_str(), "^" | "$" | "_") {
            let around = Arc::make_mut(&mut self.around);
            let settings = match target.as_str() {
                "^" => &mut around.before,
                "$" => &mut around.after,
                _ => &mut around.default,
            };
            if value.is_empty() {
                settings.remove(&keyword);
            } else {
                settings.insert(keyword, setting);
            }
            return Ok(());
        }
        let index = *self.by_name.entry(target.clone()).or_insert_with(|| {
            self.targets.push(Mentioned {
                name: target.clone(),
                place: place.clone(),
                around: Arc::clone(&self.around),
                explicit: BTreeMap::new(),
            });
            self.targets.len() - 1
        });
        if let Some(first) = self.targets[index].explicit.get(&keyword) {
            let text = format!(
                "Line {} ({}) in CFG file ({})\ncontains a duplicate definition for {keyword}[{target}].\n\
                 First definition is on line {}",
                place.line, line, place.file, first.place.line
            );
            return Err(Fault { place: place.clone(), text });
        }
        self.targets[index].explicit.insert(keyword, setting);
        Ok(())
    }

    fn finish(self) -> Result<Config, Fault> {
        let no_space = self.globals.get("nospacechar").and_then(|setting| setting.value.chars().next());
        for (keyword, setting) in &self.globals {
            hold(keyword, Scope::Global, None, setting)?;
        }
        let mut targets = Vec::with_capacity(self.targets.len());
        for Mentioned { name, place, around, explicit } in self.targets {
            let mut settings = BTreeMap::new();
            let Around { before, after, default } = &*around;
            for keyword in explicit.keys().chain(default.keys()).chain(before.keys()).chain(after.keys()) {
                if keyword.contains('*') || settings.contains_key(keyword) {
                    continue;
                }
                let setting = match (explicit.get(keyword), default.get(keyword)) {
                    // A default stands alone: neither prefix nor suffix is put around it.
                    (None, Some(default)) => default.clone(),
                    (explicit, _) => join(before.get(keyword), explicit, after.get(keyword), no_space),
                };
                hold(keyword, Scope::Target, Some(&name), &setting)?;
                settings.insert(Arc::clone(keyword), setting);
            }
            targets.push(TargetSettings { name, place, settings });
        }
        Ok(Config { globals: self.globals, targets, mentions: self.mentions })
    }
}

fn known(keyword: &str, scope: Scope, place: &Place) -> Result<(), Fault> {
    if keywords::find(keyword, scope).is_some() {
        return Ok(());
    }
    let text =
        format!("CFG Error Unknown Option \"{keyword}\" in file {} on line {}", place.file, place.line);
    Err(Fault { place: place.clone(), text })
}

/// Holds a value to its keyword's rule.
fn hold(keyword: &str, scope: Scope, target: Option<&str>, setting: &Setting) -> Result<(), Fault> {
    let Some(known) = keywords::find(keyword, scope) else { return Ok(()) };
    known.check(&setting.value).map_err(|cause| {
        let name = target.map_or(keyword.to_string(), |target| format!("{keyword}[{target}]"));
        let Place { file, line } = &setting.place;
        let text = format!("CFG Error in \"{name}\", file {file} line {line}: {cause}");
        Fault { place: setting.place.clone(), text }
    })
}

/// Prefix, value and suffix with a space between them; a prefix or suffix whose inner end is the `NoSpaceChar` loses that
/// character and the space.
fn join(
    before: Option<&Setting>,
    value: Option<&Setting>,
    after: Option<&Setting>,
    no_space: Option<char>,
) -> Setting {
    if let (None, Some(value), None) = (before, value, after) {
        return value.clone();
    }
    let mut text = String::new();
    if let Some(before) = before {
        match no_space.and_then(|character| before.value.strip_suffix(character)) {
            Some(bare) => text.push_str(bare),
            None => text.extend([&before.value, " "]),
        }
    }
    text.extend(value.map(|value| &*value.value));
    if let Some(after) = after {
        match no_space.and_then(|character| after.value.strip_prefix(character)) {
            Some(bare) => text.push_str(bare),
            None => text.extend([" ", &after.value]),
        }
    }
    let place = value.or(before).or(after).map(|setting| setting.place.clone());
    Setting { value: text.into(), place: place.unwrap_or_else(|| Place { file: "".into(), line: 0 }) }
}

/// MRTG's check of the whole: it reports all there is.
fn check(config: &Config, file: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    let whole = || Place { file: file.into(), line: 1 };
    let has = |keyword| config.globals.contains_key(keyword);
    if !has("workdir") && !["logdir", "htmldir", "imagedir"].into_iter().all(has) {
        faults.push(Fault {
            place: whole(),
            text: "\"WorkDir\" not specified in mrtg config file".to_string(),
        });
    }
    let is_rrdtool = config.get("logformat").is_some_and(|format| format.eq_ignore_ascii_case("rrdtool"));
    if let Some(setting) = config.globals.get("interval")
        && !is_rrdtool
        && super::interval::Interval::parse(&setting.value).is_some_and(|interval| interval.minutes < 5.0)
    {
        let text = "CFG Error in \"Interval\": should be at least 5 Minutes (unless you use rrdtool)";
        faults.push(Fault { place: setting.place.clone(), text: text.to_string() });
    }
    if has("threshmailserver") && !has("threshmailsender") {
        let text = "If \"ThreshMailServer\" is defined, then \"ThreshMailSender\" must be defined too.";
        faults.push(Fault { place: whole(), text: text.to_string() });
    }
    for target in &config.targets {
        check_target(target, &mut faults);
    }
    faults
}

fn check_target(target: &TargetSettings, faults: &mut Vec<Fault>) {
    let name = &target.name;
    let mut fault = |place: &Place, text: String| faults.push(Fault { place: place.clone(), text });
    if !target.settings.contains_key("target") {
        fault(&target.place, format!("I can't find a \"target[{name}]\" definition"));
    }
    for (keyword, spelling) in [("maxbytes", "MaxBytes"), ("title", "Title")] {
        let has_both = keyword == "maxbytes"
            && ["maxbytes1", "maxbytes2"].iter().all(|keyword| target.settings.contains_key(*keyword));
        if !target.settings.contains_key(keyword) && !has_both {
            fault(&target.place, format!("\"{spelling}[{name}]\" not specified"));
        }
    }
    for (keyword, setting) in &target.settings {
        let known = keywords::find(keyword, Scope::Target);
        if let Some(text) = known.and_then(|known| known.check_colour(name, &setting.value)) {
            fault(&setting.place, text);
        }
    }
    if let Some(setting) = target.settings.get("options") {
        for word in super::options::unknown(&setting.value) {
            fault(&setting.place, format!("Option[{name}]: \"{word}\" is unknown"));
        }
    }
    if let Some(setting) = target.settings.get("absmax") {
        let number = |keyword| target.get(keyword).and_then(|value| value.parse::<f64>().ok());
        let most = setting.value.parse().unwrap_or(f64::MAX);
        for max in [number("maxbytes1"), number("maxbytes2"), number("maxbytes")].into_iter().flatten() {
            if most < max {
                fault(&setting.place, format!("AbsMax: {} is smaller than MaxBytes: {max}", setting.value));
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests;
