//! mrtg.cfg and what it includes, from the disk.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use collect::mrtg::agents::known::KnownInterfaces;
use collect::mrtg::config::{self, Config};
use collect::mrtg::display::Display;
use collect::mrtg::plan::{MrtgPlan, PlanContext};
use collect::snmp::profile::MibNames;
use suggest::Label;

use super::labels::label;

/// A configuration, and what it was read from.
#[derive(Debug)]
pub struct LoadedConfig {
    /// What it says.
    pub config: Config,
    /// What it polls.
    pub plan: Arc<MrtgPlan>,
    /// What is wrong with the files of `LoadMIBs`.
    pub mib_faults: Vec<String>,
    stamps: Stamps,
}

/// Files and directories with their times and sizes: what must be read again when it changes.
#[derive(Debug, Default)]
struct Stamps(Vec<(PathBuf, Option<(SystemTime, u64)>)>);

impl Stamps {
    fn note(&mut self, path: &Path) {
        self.0.push((path.to_path_buf(), look(path)));
    }

    fn have_changed(&self) -> bool {
        self.0.iter().any(|(path, then)| look(path) != *then)
    }
}

fn look(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// How many things that an agent cannot do are named.
const ASKS_NAMED: usize = 5;

/// A configuration that cannot be used, with what was read of it, so that a change is seen.
#[derive(Debug)]
pub struct LoadError {
    /// Each with file and line.
    pub text: String,
    stamps: Stamps,
}

impl LoadError {
    /// Whether what was read has changed since.
    pub fn has_changed(&self) -> bool {
        self.stamps.have_changed()
    }
}

impl LoadedConfig {
    /// Reads the file `path`. Its RRDs have names relative to `base`: those below it keep their place; others begin with
    /// their target's directory.
    ///
    /// # Errors
    /// When a file cannot be read, or MRTG would refuse it.
    pub fn read(path: &Path, base: &Path) -> Result<Self, LoadError> {
        Self::read_those(path, base, &|_| true)
    }

    /// The same, but only the targets with RRDs whose name `wants` wants.
    ///
    /// # Errors
    /// The same.
    pub fn read_those(path: &Path, base: &Path, wants: &dyn Fn(&[u8]) -> bool) -> Result<Self, LoadError> {
        let mut stamps = Stamps::default();
        stamps.note(path);
        let name = path.display().to_string();
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => return Err(LoadError { text: format!("cannot read \"{name}\": {error}"), stamps }),
        };
        let beside = path.parent().unwrap_or(Path::new(""));
        let mut read = |pattern: &str| find_included(pattern, beside, &mut stamps);
        let mut config = match config::parse(&name, &bytes, &mut read) {
            Ok(config) => config,
            Err(faults) => {
                let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
                return Err(LoadError { text: texts.join("\n"), stamps });
            }
        };
        let (names, mib_faults) = load_mibs(config.get("loadmibs").unwrap_or(""), &mut stamps);
        // Written by MRTG when it was there; it says where interfaces were.
        let known = fs::read(path.with_extension("ok")).unwrap_or_default();
        let known = Arc::new(KnownInterfaces::parse(&String::from_utf8_lossy(&known)));
        let context = PlanContext { prefix: prefix(&config, base), names: Arc::new(names), known };
        let plan = MrtgPlan::new(&config, &context).and_then(|plan| {
            let are_wanted: Vec<bool> =
                plan.targets.iter().map(|target| wants(plan.inventory.name(target.rrd))).collect();
            if are_wanted.iter().all(|is_wanted| *is_wanted) {
                return Ok(plan);
            }
            let mut wanted = are_wanted.into_iter();
            config.targets.retain(|_| wanted.next().unwrap_or(true));
            MrtgPlan::new(&config, &context)
        });
        match plan {
            Ok(plan) => Ok(LoadedConfig { config, plan: Arc::new(plan), mib_faults, stamps }),
            Err(error) => Err(LoadError { text: format!("{name}: {error}"), stamps }),
        }
    }

    /// The same on an agent, which has no rows.
    ///
    /// # Errors
    /// When it says what an agent cannot do.
    pub fn for_an_agent(self, path: &Path) -> Result<Self, LoadError> {
        let forecasts =
            self.plan.targets.iter().filter(|target| {
                target.thresholds.as_ref().is_some_and(|thresholds| thresholds.has_forecast())
            });
        let asks: Vec<String> = forecasts.map(|target| format!("HWThresh of {}", target.name)).collect();
        if asks.is_empty() {
            return Ok(self);
        }
        let (more, asks) = (asks.len().saturating_sub(ASKS_NAMED), &asks[..asks.len().min(ASKS_NAMED)]);
        let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let text = format!(
            "{}: {}{and_more} look at the rows of forecasts, which an agent does not have: leave them out, or poll by [[mrtg]] of \
             the store",
            path.display(),
            asks.join(", ")
        );
        Err(LoadError { text, stamps: self.stamps })
    }

    /// Where MRTG keeps what it reads.
    pub fn directory(&self) -> &str {
        directory(&self.config)
    }

    /// How the targets' RRDs are shown; before [`LoadedConfig::keep_globals`].
    pub fn labels(&self) -> impl Iterator<Item = (Vec<u8>, Label)> {
        let targets = self.plan.targets.iter().zip(&self.config.targets);
        targets.map(|(target, settings)| {
            (self.plan.inventory.name(target.rrd).to_vec(), label(&Display::of(settings)))
        })
    }

    /// Forgets the lines and the settings of targets, which the plan has in its own form.
    pub fn keep_globals(&mut self) {
        (self.config.targets, self.config.mentions) = (Vec::new(), Vec::new());
    }

    /// Whether a file that was read has changed since, or a directory in which files were looked for.
    pub fn has_changed(&self) -> bool {
        self.stamps.have_changed()
    }
}

/// The names in the files of `LoadMIBs`, which commas separate; and what is wrong with them.
fn load_mibs(files: &str, stamps: &mut Stamps) -> (HashMap<String, Vec<u32>>, Vec<String>) {
    let mut names = MibNames::default();
    let mut faults = Vec::new();
    for file in files.split(',').map(str::trim).filter(|file| !file.is_empty()) {
        stamps.note(Path::new(file));
        match fs::read(file) {
            Ok(bytes) => names.add(&String::from_utf8_lossy(&bytes)),
            Err(error) => faults.push(format!("cannot read \"{file}\" of LoadMIBs: {error}")),
        }
    }
    let (known, unknown) = names.resolve();
    if let Some(first) = unknown.first() {
        let count = unknown.len();
        faults.push(format!(
            "LoadMIBs: the parents of {count} names are in no file, such as that of \"{first}\""
        ));
    }
    (known, faults)
}

/// Where the logs of `config` are below `base`.
fn prefix(config: &Config, base: &Path) -> String {
    let inside = Path::new(directory(config)).strip_prefix(base).ok();
    inside.and_then(Path::to_str).unwrap_or("").to_string()
}

fn directory(config: &Config) -> &str {
    config.get("workdir").or_else(|| config.get("logdir")).unwrap_or("")
}

/// The files that `Include: pattern` means: in the working directory, else beside the configuration.
fn find_included(
    pattern: &str,
    beside: &Path,
    stamps: &mut Stamps,
) -> Result<Vec<(String, Vec<u8>)>, String> {
    let places = if pattern.starts_with('/') {
        vec![PathBuf::new()]
    } else {
        vec![PathBuf::new(), beside.to_path_buf()]
    };
    let mut failure = None;
    for place in places {
        let whole = place.join(pattern);
        let found = if pattern.contains('*') {
            expand(&whole, stamps)
        } else {
            stamps.note(&whole);
            if whole.is_file() { vec![whole.clone()] } else { Vec::new() }
        };
        let mut files = Vec::with_capacity(found.len());
        for path in &found {
            stamps.note(path);
            match fs::read(path) {
                Ok(bytes) => files.push((path.display().to_string(), bytes)),
                Err(error) => failure = Some(format!("{}: {error}", path.display())),
            }
        }
        if !files.is_empty() {
            return Ok(files);
        }
    }
    match failure {
        Some(failure) => Err(failure),
        // As in MRTG: a pattern may find nothing.
        None if pattern.contains('*') => Ok(Vec::new()),
        None => Err("there is no such file".to_string()),
    }
}

/// The files that a pattern with `*` finds, sorted.
fn expand(pattern: &Path, stamps: &mut Stamps) -> Vec<PathBuf> {
    let mut found = vec![if pattern.is_absolute() { PathBuf::from("/") } else { PathBuf::new() }];
    for part in pattern.components() {
        let std::path::Component::Normal(part) = part else {
            if !matches!(part, std::path::Component::RootDir) {
                found.iter_mut().for_each(|path| path.push(part));
            }
            continue;
        };
        let Some(text) = part.to_str().filter(|text| text.contains('*')) else {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        };
        let mut next = Vec::new();
        for directory in found {
            let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
            stamps.note(&directory);
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let name = entry.file_name();
                if name.to_str().is_some_and(|name| matches(text, name)) {
                    next.push(directory.join(name));
                }
            }
        }
        found = next;
    }
    found.retain(|path| path.is_file());
    found.sort();
    found
}

/// Whether a pattern takes a name. A name that begins with a dot needs a pattern that does.
fn matches(pattern: &str, name: &str) -> bool {
    let is_hidden = name.starts_with('.') && !pattern.starts_with('.');
    !is_hidden && args::pattern::matches(pattern.as_bytes(), name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_are_any_characters() {
        let check = |pattern: &str, name: &str, want: bool| {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}")
        };
        check("*.cfg", "a.cfg", true);
        check("*.cfg", ".a.cfg", false);
        check("a*b*c", "axbyc", true);
        check("a*b*c", "abc", true);
        check("a*b*c", "acb", false);
        check("a*a", "a", false);
        check("abc", "abcd", false);
    }

    #[test]
    fn included_files_are_found_read_and_watched() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        fs::create_dir_all(root.join("inc")).unwrap();
        let head =
            format!("WorkDir: {}/rrd\nLogFormat: rrdtool\nTitle[_]: t\nMaxBytes[_]: 1\n", root.display());
        write("mrtg.cfg", &format!("{head}Include: inc/*.cfg\nInclude: one.inc\n"));
        write("inc/1.cfg", "Target[a]: `x`\n");
        write("inc/2.cfg", "Target[b]: `x`\nDirectory[b]: Sub\n");
        write("one.inc", "Target[c]: `x`\n");
        let load = || LoadedConfig::read(&root.join("mrtg.cfg"), root);
        let loaded = load().unwrap();
        let plan = &loaded.plan;
        let names: Vec<_> = plan.targets.iter().map(|target| plan.inventory.name(target.rrd)).collect();
        assert_eq!(names, [&b"rrd/Sub/b.rrd"[..], b"rrd/a.rrd", b"rrd/c.rrd"]);
        assert!(!loaded.has_changed());
        write("inc/3.cfg", "Target[d]: `x`\n");
        assert!(loaded.has_changed(), "a new file");
        write("one.inc", "Foo[c]: `x`\n");
        let error = load().unwrap_err();
        assert!(error.text.contains("one.inc:1: CFG Error Unknown Option \"foo\""), "{}", error.text);
        write("one.inc", "Target[cc]: `x`\n");
        assert!(error.has_changed());
        assert_eq!(load().unwrap().plan.targets.len(), 4);
    }
}
