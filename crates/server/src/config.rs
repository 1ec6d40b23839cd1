//! Reads and checks `roundel.toml`, and turns it into [`Settings`]. `roundel.example.toml` documents every
//! key.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use collect::snmp::source::SnmpSource;
use protocol::rrdcached::address::Address;
use protocol::rrdcached::command::Permissions;
use serde::Deserialize;

use crate::collectors::collectd::config::CollectdSection;
use crate::collectors::ganglia;
use crate::collectors::ganglia::config::{GmetadSection, GmondListenSection, GmondSection};
use crate::collectors::mrtg::{MrtgSettings, PROGRAM_TIMEOUT};
use crate::listener::Listen;
use crate::privileges;
use crate::settings::{
    FilesSettings, Layout, LimitSettings, LogLevel, SCRUB_DEFAULT, Settings, StripesSettings, SyncPolicy,
    parse_bytes, parse_duration,
};

/// Why a configuration cannot be used, with file and line.
#[derive(Debug)]
pub struct ConfigError(String);

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// The file, key by key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    layout: LayoutName,
    store: PathBuf,
    base: PathBuf,
    placeholders: bool,
    tree: Option<PathBuf>,
    adopt: bool,
    sync: toml::Spanned<String>,
    no_overwrite: bool,
    make_directories: bool,
    pid_file: Option<PathBuf>,
    user: Option<toml::Spanned<String>>,
    group: Option<toml::Spanned<String>>,
    listen: Vec<FileListen>,
    http: FileHttp,
    log: FileLog,
    limits: FileLimits,
    stripes: FileStripes,
    files: FileFiles,
    collect: FileCollect,
    collectd: Option<toml::Spanned<CollectdSection>>,
    gmond: Vec<GmondSection>,
    gmond_listen: Option<GmondListenSection>,
    gmetad: Option<GmetadSection>,
    mrtg: Vec<FileMrtg>,
    snmp: Vec<toml::Spanned<SnmpSource>>,
}

impl Default for File {
    fn default() -> Self {
        File {
            layout: LayoutName::Stripes,
            store: "var/store".into(),
            base: ".".into(),
            placeholders: true,
            tree: None,
            adopt: true,
            sync: toml::Spanned::new(0..0, "1s".to_string()),
            no_overwrite: false,
            make_directories: true,
            pid_file: None,
            user: None,
            group: None,
            listen: vec![FileListen {
                address: toml::Spanned::new(0..0, "unix:var/rrdcached.sock".to_string()),
                permissions: None,
                mode: None,
                group: None,
            }],
            http: FileHttp { listen: Vec::new(), templates: None },
            log: FileLog { level: LevelName::Info, file: None },
            limits: FileLimits::default(),
            stripes: FileStripes::default(),
            files: FileFiles::default(),
            collect: FileCollect { host: false, directory: "localhost".to_string() },
            collectd: None,
            gmond: Vec::new(),
            gmond_listen: None,
            gmetad: None,
            mrtg: Vec::new(),
            snmp: Vec::new(),
        }
    }
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum LayoutName {
    Stripes,
    Files,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LevelName {
    Error,
    Warn,
    Info,
    Debug,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileListen {
    address: toml::Spanned<String>,
    permissions: Option<Vec<toml::Spanned<String>>>,
    mode: Option<toml::Spanned<String>>,
    group: Option<toml::Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileHttp {
    listen: Vec<String>,
    templates: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileLog {
    level: LevelName,
    file: Option<PathBuf>,
}

impl Default for FileLog {
    fn default() -> Self {
        FileLog { level: LevelName::Info, file: None }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileLimits {
    memory: Option<toml::Spanned<String>>,
    idle: Option<toml::Spanned<String>>,
    connections: Option<usize>,
    rrd_memory: Option<toml::Spanned<String>>,
    store_memory: Option<toml::Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileStripes {
    shards: Option<u32>,
    open_bytes: Option<usize>,
    log_bytes: Option<u64>,
    scrub: Option<toml::Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileFiles {
    journal: Option<PathBuf>,
    write_interval: Option<toml::Spanned<String>>,
    write_jitter: Option<toml::Spanned<String>>,
    flush_interval: Option<toml::Spanned<String>>,
    write_threads: Option<usize>,
    flush_at_stop: bool,
    scrub: Option<toml::Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileCollect {
    host: bool,
    directory: String,
}

impl Default for FileCollect {
    fn default() -> Self {
        FileCollect { host: false, directory: "localhost".to_string() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileMrtg {
    config: PathBuf,
    #[serde(default = "yes")]
    programs: bool,
    program_timeout: Option<toml::Spanned<String>>,
}

fn yes() -> bool {
    true
}

/// Reads a configuration file. Relative paths in it are relative to the daemon's working directory.
///
/// # Errors
/// When the file cannot be read, or a key or value is invalid.
pub fn load(path: &Path) -> Result<Settings, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError(format!("cannot read configuration \"{}\": {error}", path.display())))?;
    let mut settings = parse(&text, &path.display().to_string())?;
    settings.config_file = Some(path.to_path_buf());
    Ok(settings)
}

/// Parses the text of a configuration; errors call it `source`.
///
/// # Errors
/// When a key or value is invalid.
pub fn parse(text: &str, source: &str) -> Result<Settings, ConfigError> {
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| line_of(text, span.start));
        ConfigError(format!("{source}:{line}: {}", error.message().trim_end()))
    })?;
    Reader { text, source }.settings(file)
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Converts TOML values to settings; errors name the key's line.
struct Reader<'a> {
    text: &'a str,
    source: &'a str,
}

impl Reader<'_> {
    fn error(&self, value: &toml::Spanned<String>, cause: impl std::fmt::Display) -> ConfigError {
        let line = line_of(self.text, value.span().start);
        ConfigError(format!("{}:{line}: cannot use \"{}\": {cause}", self.source, value.get_ref()))
    }

    fn settings(&self, file: File) -> Result<Settings, ConfigError> {
        let base = absolute(&file.base)?;
        let tree = file.tree.as_deref().map(absolute).transpose()?.unwrap_or_else(|| base.clone());
        let layout = match file.layout {
            LayoutName::Stripes => Layout::Stripes(StripesSettings {
                store: absolute(&file.store)?,
                shards: file.stripes.shards,
                placeholders: file.placeholders.then(|| tree.clone()),
                adopt: file.adopt.then_some(tree),
                open_bytes: file.stripes.open_bytes,
                log_bytes: file.stripes.log_bytes,
                scrub: self.scrub(file.stripes.scrub.as_ref())?,
            }),
            LayoutName::Files => Layout::Files(self.files(&file.files, &file.store)?),
        };
        let listen = file.listen.iter().map(|listen| self.listen(listen)).collect::<Result<Vec<_>, _>>()?;
        Ok(Settings {
            layout,
            sync: self.sync(&file.sync)?,
            limits: self.limits(&file.limits)?,
            listen,
            http: file.http.listen,
            templates: file.http.templates.as_deref().map(Path::new).map(absolute).transpose()?,
            no_overwrite: file.no_overwrite,
            make_directories: file.make_directories,
            pid_file: file.pid_file.as_deref().map(absolute).transpose()?,
            user: self.id(file.user.as_ref(), privileges::user_id, "user")?,
            group: self.id(file.group.as_ref(), privileges::group_id, "group")?,
            log_level: match file.log.level {
                LevelName::Error => LogLevel::Error,
                LevelName::Warn => LogLevel::Warn,
                LevelName::Info => LogLevel::Info,
                LevelName::Debug => LogLevel::Debug,
            },
            log_file: file.log.file.as_deref().map(absolute).transpose()?,
            collect_host: file.collect.host.then_some(file.collect.directory),
            collectd: self.section("collectd", file.collectd, CollectdSection::settings)?.flatten(),
            ganglia: ganglia::config::settings(file.gmond, file.gmond_listen, file.gmetad)
                .map_err(|cause| ConfigError(format!("{}: {cause}", self.source)))?,
            mrtg: file.mrtg.iter().map(|mrtg| self.mrtg(mrtg)).collect::<Result<_, _>>()?,
            snmp: self.snmp(file.snmp)?,
            ..Settings::new(PathBuf::new(), base)
        })
    }

    /// The settings of a section that checks itself; its errors name the key, and get the section's line.
    fn section<T, U>(
        &self,
        name: &str,
        section: Option<toml::Spanned<T>>,
        check: impl Fn(T) -> Result<U, String>,
    ) -> Result<Option<U>, ConfigError> {
        let Some(section) = section else { return Ok(None) };
        let line = line_of(self.text, section.span().start);
        let checked = check(section.into_inner());
        checked.map(Some).map_err(|cause| ConfigError(format!("{}:{line}: [{name}] {cause}", self.source)))
    }

    fn snmp(&self, sources: Vec<toml::Spanned<SnmpSource>>) -> Result<Vec<SnmpSource>, ConfigError> {
        let mut names = HashSet::new();
        let check = |source: toml::Spanned<SnmpSource>| {
            let line = line_of(self.text, source.span().start);
            let source = source.into_inner();
            let named = |error| ConfigError(format!("{}:{line}: [[snmp]]: {error}", self.source));
            source.check().map_err(named)?;
            if !names.insert(source.name().to_string()) {
                let name = source.name();
                return Err(named(format!(
                    "another device is called \"{name}\", too: give one of them a name"
                )));
            }
            Ok(source)
        };
        sources.into_iter().map(check).collect()
    }

    fn files(&self, files: &FileFiles, store: &Path) -> Result<FilesSettings, ConfigError> {
        let defaults = FilesSettings::default();
        let journal = files.journal.as_deref().unwrap_or(store);
        Ok(FilesSettings {
            journal: Some(absolute(journal)?),
            write_interval: self.duration(files.write_interval.as_ref(), defaults.write_interval)?,
            write_jitter: self.duration(files.write_jitter.as_ref(), defaults.write_jitter)?,
            flush_interval: self.duration(files.flush_interval.as_ref(), defaults.flush_interval)?,
            write_threads: files.write_threads,
            flush_at_stop: files.flush_at_stop,
            scrub: self.scrub(files.scrub.as_ref())?,
        })
    }

    fn duration(
        &self,
        value: Option<&toml::Spanned<String>>,
        default: std::time::Duration,
    ) -> Result<std::time::Duration, ConfigError> {
        let Some(value) = value else { return Ok(default) };
        let cause = "give a number with a suffix ms, s, m, h, d or w";
        parse_duration(value.get_ref()).ok_or_else(|| self.error(value, cause))
    }

    fn limits(&self, limits: &FileLimits) -> Result<LimitSettings, ConfigError> {
        let defaults = LimitSettings::default();
        Ok(LimitSettings {
            memory: self.bytes(limits.memory.as_ref(), defaults.memory)?,
            idle: self.duration(limits.idle.as_ref(), defaults.idle)?,
            connections: limits.connections.unwrap_or(defaults.connections),
            rrd_memory: self.bytes(limits.rrd_memory.as_ref(), defaults.rrd_memory)?,
            store_memory: self.bytes(limits.store_memory.as_ref(), defaults.store_memory)?,
        })
    }

    fn bytes(&self, value: Option<&toml::Spanned<String>>, default: u64) -> Result<u64, ConfigError> {
        let Some(value) = value else { return Ok(default) };
        let cause = "give a number of bytes, such as \"500 MB\" or \"2 GiB\"";
        parse_bytes(value.get_ref()).ok_or_else(|| self.error(value, cause))
    }

    fn mrtg(&self, mrtg: &FileMrtg) -> Result<MrtgSettings, ConfigError> {
        Ok(MrtgSettings {
            config: absolute(&mrtg.config)?,
            programs: mrtg.programs,
            program_timeout: self.duration(mrtg.program_timeout.as_ref(), PROGRAM_TIMEOUT)?,
        })
    }

    fn sync(&self, value: &toml::Spanned<String>) -> Result<SyncPolicy, ConfigError> {
        if value.get_ref() == "always" {
            return Ok(SyncPolicy::Always);
        }
        match parse_duration(value.get_ref()) {
            Some(every) if !every.is_zero() => Ok(SyncPolicy::Every(every)),
            _ => Err(self.error(value, "give \"always\" or a duration such as \"1s\"")),
        }
    }

    fn scrub(
        &self,
        value: Option<&toml::Spanned<String>>,
    ) -> Result<Option<std::time::Duration>, ConfigError> {
        let Some(value) = value else { return Ok(Some(SCRUB_DEFAULT)) };
        match (value.get_ref().as_str(), parse_duration(value.get_ref())) {
            ("off", _) => Ok(None),
            (_, Some(every)) if !every.is_zero() => Ok(Some(every)),
            _ => Err(self.error(value, "give \"off\" or a duration such as \"30d\"")),
        }
    }

    fn listen(&self, listen: &FileListen) -> Result<Listen, ConfigError> {
        if listen.address.get_ref().is_empty() {
            return Err(self.error(
                &listen.address,
                "it is empty; give unix:PATH, HOST:PORT, or :PORT for all addresses",
            ));
        }
        let address =
            Address::parse(listen.address.get_ref()).map_err(|error| self.error(&listen.address, error))?;
        let address = match address {
            Address::Unix(path) => Address::Unix(absolute(&path)?),
            tcp => tcp,
        };
        let mut permissions = Permissions::ALL;
        if let Some(commands) = &listen.permissions {
            permissions = Permissions::NONE;
            for command in commands {
                let found = protocol::rrdcached::command::Command::find(command.get_ref().as_bytes());
                let found = found.ok_or_else(|| self.error(command, "there is no such command"))?;
                permissions = permissions.with(found.verb);
            }
        }
        let mode = match &listen.mode {
            None => None,
            Some(mode) => Some(
                u32::from_str_radix(mode.get_ref(), 8)
                    .ok()
                    .filter(|mode| *mode <= 0o777)
                    .ok_or_else(|| self.error(mode, "give an octal mode such as \"0660\""))?,
            ),
        };
        let group = self.id(listen.group.as_ref(), privileges::group_id, "group")?;
        Ok(Listen { address, permissions, mode, group })
    }

    fn id(
        &self,
        value: Option<&toml::Spanned<String>>,
        find: impl Fn(&str) -> Option<u32>,
        what: &str,
    ) -> Result<Option<u32>, ConfigError> {
        let Some(value) = value else { return Ok(None) };
        let found = find(value.get_ref()).ok_or_else(|| self.error(value, format!("no such {what}")))?;
        Ok(Some(found))
    }
}

/// Makes a path absolute, relative to the current directory.
///
/// # Errors
/// When there is no current directory, or the path is empty.
pub fn absolute(path: &Path) -> Result<PathBuf, ConfigError> {
    std::path::absolute(path)
        .map_err(|error| ConfigError(format!("cannot use path \"{}\": {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_empty_file_is_the_default() {
        let settings = parse("", "x.toml").unwrap();
        assert_eq!(settings.sync, SyncPolicy::Every(Duration::from_secs(1)));
        assert_eq!(settings.listen.len(), 1);
        assert!(matches!(settings.layout, Layout::Stripes(StripesSettings { placeholders: Some(_), .. })));
    }

    #[test]
    fn every_key_is_applied() {
        let settings = parse(
            "layout = 'files'\nstore = '/s'\nbase = '/b'\nsync = 'always'\nno_overwrite = true\n\
             [[listen]]\naddress = '[::1]:4242'\npermissions = ['flush', 'BATCH']\n\
             [[listen]]\naddress = 'unix:/x/sock'\nmode = '0660'\ngroup = '0'\n\
             [files]\nwrite_interval = '5m'\nwrite_threads = 7\n[log]\nlevel = 'debug'\n\
             [limits]\nmemory = '5 GB'\nidle = '3s'\nconnections = 99\n\
             rrd_memory = '1 MB'\nstore_memory = '3 GiB'\n\
             [[mrtg]]\nconfig = '/m.cfg'\nprograms = false\nprogram_timeout = '5s'\n\
             [collect]\nhost = true\n[[snmp]]\ndevice = 'router1'\n[http]\nlisten = ['127.0.0.1:9181']\ntemplates = '/x/graphs'\n",
            "x.toml",
        )
        .unwrap();
        let Layout::Files(files) = &settings.layout else { panic!() };
        assert_eq!(files.write_interval, Duration::from_secs(300));
        assert_eq!(files.scrub, Some(SCRUB_DEFAULT));
        assert_eq!((files.write_threads, files.journal.as_deref()), (Some(7), Some(Path::new("/s"))));
        assert_eq!(settings.sync, SyncPolicy::Always);
        assert_eq!((settings.limits.rrd_memory, settings.limits.store_memory), (1_000_000, 3 << 30));
        let limits = settings.limits;
        assert_eq!(
            (limits.memory, limits.idle, limits.connections),
            (5_000_000_000, Duration::from_secs(3), 99)
        );
        assert!(settings.no_overwrite);
        assert_eq!(settings.listen[1].mode, Some(0o660));
        assert_eq!(settings.listen[1].group, Some(0));
        assert_eq!(settings.listen[0].permissions, Permissions::parse("FLUSH,BATCH").unwrap());
        assert_eq!(settings.templates.as_deref(), Some(Path::new("/x/graphs")));
        let [mrtg] = &settings.mrtg[..] else { panic!() };
        assert_eq!((mrtg.config.as_path(), mrtg.programs), (Path::new("/m.cfg"), false));
        assert_eq!(mrtg.program_timeout, Duration::from_secs(5));
        assert_eq!(settings.collect_host.as_deref(), Some("localhost"));
        assert_eq!(settings.snmp[0].device, "router1");
    }

    #[test]
    fn errors_name_the_key_and_the_line() {
        let check = |text: &str, want: &[&str]| {
            let error = parse(text, "x.toml").expect_err(text).to_string();
            for part in want {
                assert!(error.contains(part), "{error:?} lacks {part:?}");
            }
        };
        check("layout = 'stripes'\nbse = 'x'\n", &["x.toml:2:", "bse"]);
        check("layout = 'tables'\n", &["x.toml:1:", "tables"]);
        check("\n\nsync = 'soon'\n", &["x.toml:3:", "soon", "always"]);
        check("[[listen]]\naddress = ''\n", &["x.toml:2:", "empty"]);
        check("[[listen]]\naddress = 'unix:/x'\nmode = '999'\n", &["x.toml:3:", "999"]);
        check("[[listen]]\naddress = 'unix:/x'\npermissions = ['FOO']\n", &["x.toml:3:", "FOO"]);
        check("user = 'nobody-of-this-name'\n", &["x.toml:1:", "no such user"]);
        check("[limits]\nrrd_memory = 'much'\n", &["x.toml:2:", "much", "2 GiB"]);
        check("\n[[snmp]]\ndevice = 'r'\nversion = '9'\n", &["x.toml:2:", "9"]);
        check("[[snmp]]\ndevice = 'r'\n[[snmp]]\ndevice = 'r:99'\n", &["x.toml:3:", "\"r\""]);
        check("[[snmp]]\ndevice = 'r'\ncomunity = 'x'\n", &["comunity"]);
        check("store = \n", &["x.toml:1:"]);
        check("sync = 5\n", &["x.toml:1:"]);
    }

    #[test]
    fn the_example_is_complete_and_runs() {
        let text = include_str!("../../../roundel.example.toml");
        let settings = parse(text, "roundel.example.toml").unwrap();
        assert_eq!(settings.listen.len(), 1);
        // Keys that are commented out must be valid too.
        let uncommented: String =
            text.lines().map(|line| format!("{}\n", line.strip_prefix("#: ").unwrap_or(line))).collect();
        parse(&uncommented, "roundel.example.toml, uncommented").unwrap();
    }
}
