//! Reads and checks `roundel.toml`, and turns it into [`Settings`]. `roundel.example.toml` documents every
//! key.

#[cfg(not(all(feature = "backup", feature = "cluster", feature = "exchange")))]
mod absent;
#[cfg(feature = "backup")]
mod backup;
#[cfg(not(feature = "backup"))]
#[path = "config/backup_absent.rs"]
mod backup;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "config/cluster_absent.rs"]
mod cluster;
mod forward;
mod ingest;
mod metric;
mod push;
mod replication;
#[cfg(feature = "exchange")]
mod sink;
#[cfg(not(feature = "exchange"))]
#[path = "config/sink_absent.rs"]
mod sink;
mod values;

pub use values::parse_with_unit;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use access::Account;
use client::tls::TlsFiles;
use collect::snmp::profile::Profiles;
use collect::snmp::source::SnmpSource;
use protocol::frames::agent::work::{PROFILE_BYTES_MAX, PROFILE_NAME_BYTES_MAX};
use protocol::frames::agent::{LIVE_STREAM, TAGS_MAX, is_agent_name};
use protocol::rrdcached::address::Address;
use protocol::rrdcached::command::Permissions;
use serde::Deserialize;
use store::identity::SHARDS_MAX;
use store::stripes::Adopted;

use crate::access::{AccessSettings, Anonymous};
use crate::agent::AgentSettings;
use crate::agent::spool::SpoolOptions;
use crate::agent::wire::AgentIdentity;
use crate::agents::AgentsSettings;
use crate::collectors::collectd::config::CollectdSection;
use crate::collectors::ganglia;
use crate::collectors::ganglia::config::{GmetadSection, GmondListenSection, GmondSection};
use crate::collectors::mrtg::{MrtgSettings, PROGRAM_TIMEOUT};
use crate::collectors::snmp::config::{SnmpSettings, load_profiles};
use crate::http::access::{WebAccess, WebConfig};
use crate::limits::CONNECTIONS_MAX;
use crate::listener::Listen;
use crate::privileges;
use crate::settings::{
    FilesSettings, Layout, LimitSettings, LogLevel, MAX_REMOVED_DEFAULT, Settings, StripesSettings,
    TRASH_DEFAULT,
};
use crate::tls::TlsOptions;

/// What a spool may take unless the configuration says otherwise: 30 million values and more.
const SPOOL_BYTES_DEFAULT: u64 = 1 << 30;
/// How long an agent keeps what the store has: as long as the last copy of that is old.
const SPOOL_KEEP_DEFAULT: Duration = Duration::from_secs(86_400);

/// How long an agent is gone before its devices go to others: longer than its restart, or a lost connection.
const HANDOVER_DEFAULT: Duration = Duration::from_secs(60);

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
    adopt: toml::Spanned<Adopt>,
    keep_adopted: Option<toml::Spanned<String>>,
    adopt_unused: Option<toml::Spanned<String>>,
    rrdcached_journal: Option<PathBuf>,
    trash: Option<toml::Spanned<String>>,
    snapshots: Option<PathBuf>,
    max_removed: Option<toml::Spanned<String>>,
    sync: toml::Spanned<String>,
    no_overwrite: bool,
    make_directories: bool,
    pid_file: Option<PathBuf>,
    user: Option<toml::Spanned<String>>,
    group: Option<toml::Spanned<String>>,
    listen: Vec<FileListen>,
    access: FileAccess,
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
    agent: Option<FileAgent>,
    agents: FileAgents,
    backup: Option<backup::FileBackup>,
    replication: replication::FileReplication,
    follow: Option<replication::FileFollow>,
    cluster: Option<cluster::FileCluster>,
    forward: Vec<forward::FileForward>,
    sink: Vec<sink::FileSink>,
    metric: Vec<toml::Spanned<suggest::MetricRule>>,
    ingest: ingest::FileIngest,
    carbon: push::FileCarbon,
    statsd: push::FileStatsd,
    influx: push::FileInflux,
    create: Vec<toml::Spanned<::ingest::table::CreateRule>>,
}

impl Default for File {
    fn default() -> Self {
        File {
            layout: LayoutName::Stripes,
            store: "var/store".into(),
            base: ".".into(),
            placeholders: true,
            tree: None,
            adopt: toml::Spanned::new(0..0, Adopt::Whether(true)),
            keep_adopted: None,
            adopt_unused: None,
            rrdcached_journal: None,
            trash: None,
            snapshots: None,
            max_removed: None,
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
                anonymous: None,
                tls: None,
            }],
            access: FileAccess::default(),
            http: FileHttp {
                listen: Vec::new(),
                anonymous: None,
                templates: Some("var/graphs".to_string()),
                save_views: None,
                web_config: None,
            },
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
            agent: None,
            agents: FileAgents::default(),
            backup: None,
            replication: Default::default(),
            follow: None,
            cluster: None,
            forward: Vec::new(),
            sink: Vec::new(),
            metric: Vec::new(),
            ingest: ingest::FileIngest::default(),
            carbon: push::FileCarbon::default(),
            statsd: push::FileStatsd::default(),
            influx: push::FileInflux::default(),
            create: Vec::new(),
        }
    }
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum LayoutName {
    Stripes,
    Files,
}

/// `adopt`: whether, or "keep".
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged, expecting = "give true, false or \"keep\"")]
enum Adopt {
    Whether(bool),
    Word(String),
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
#[serde(deny_unknown_fields, expecting = "a section [[listen]]")]
struct FileListen {
    address: toml::Spanned<String>,
    permissions: Option<Vec<toml::Spanned<String>>>,
    mode: Option<toml::Spanned<String>>,
    group: Option<toml::Spanned<String>>,
    anonymous: Option<toml::Spanned<FileAnonymous>>,
    tls: Option<TlsOptions>,
}

/// `[access]`: who clients are.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [access]")]
struct FileAccess {
    tokens: Option<PathBuf>,
    audit: Option<PathBuf>,
    user: Vec<Account>,
}

/// `anonymous`: a word, or what an account says.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "give \"none\", \"read\", \"all\", or { read = [...], write = [...] }")]
enum FileAnonymous {
    Word(String),
    Account(Box<Account>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section [http]")]
struct FileHttp {
    listen: Vec<String>,
    anonymous: Option<toml::Spanned<FileAnonymous>>,
    templates: Option<String>,
    save_views: Option<bool>,
    web_config: Option<FileWebConfig>,
}

/// `web_config`: a file, or what would be in it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum FileWebConfig {
    File(PathBuf),
    Here(toml::Value),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [log]")]
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
#[serde(deny_unknown_fields, default, expecting = "a section [limits]")]
struct FileLimits {
    memory: Option<toml::Spanned<String>>,
    idle: Option<toml::Spanned<String>>,
    connections: Option<toml::Spanned<usize>>,
    rrd_memory: Option<toml::Spanned<String>>,
    store_memory: Option<toml::Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [stripes]")]
struct FileStripes {
    shards: Option<toml::Spanned<u32>>,
    open_bytes: Option<toml::Spanned<usize>>,
    log_bytes: Option<toml::Spanned<u64>>,
    scrub: Option<toml::Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [files]")]
struct FileFiles {
    journal: Option<PathBuf>,
    write_interval: Option<toml::Spanned<String>>,
    write_jitter: Option<toml::Spanned<String>>,
    flush_interval: Option<toml::Spanned<String>>,
    write_threads: Option<toml::Spanned<usize>>,
    flush_at_stop: bool,
    scrub: Option<toml::Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [collect]")]
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
#[serde(deny_unknown_fields, expecting = "a section [[mrtg]]")]
struct FileMrtg {
    config: PathBuf,
    #[serde(default = "yes")]
    programs: bool,
    program_timeout: Option<toml::Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section [agent]")]
struct FileAgent {
    name: toml::Spanned<String>,
    store: toml::Spanned<String>,
    spool: PathBuf,
    spool_bytes: Option<toml::Spanned<String>>,
    keep: Option<toml::Spanned<String>>,
    #[serde(default)]
    tags: Vec<toml::Spanned<String>>,
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    token_file: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [agents]")]
struct FileAgents {
    listen: Vec<toml::Spanned<String>>,
    open: bool,
    handover: Option<toml::Spanned<String>>,
    tls: Option<TlsOptions>,
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

/// What is wrong with a device that is handed out to agents.
fn check_handed_out(source: &SnmpSource, profiles: &Profiles, takes_agents: bool) -> Result<(), String> {
    if source.agents.is_empty() {
        return Ok(());
    }
    if !takes_agents {
        return Err(
            "agents: no agent can connect: give [agents] an address to listen on; on an agent, leave it out"
                .into(),
        );
    }
    if source.name().contains(char::is_control) {
        return Err("agents: a device that is handed out has a name without control characters".into());
    }
    for name in &source.profiles {
        let bytes =
            profiles.find(name).and_then(|profile| profile.text.as_ref()).map_or(0, |text| text.len());
        if bytes > PROFILE_BYTES_MAX || name.len() > PROFILE_NAME_BYTES_MAX {
            return Err(format!(
                "agents: profile \"{name}\" has {bytes} bytes with numbers for its names, and is handed out up to {PROFILE_BYTES_MAX}"
            ));
        }
    }
    Ok(())
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
    fn settings(&self, file: File) -> Result<Settings, ConfigError> {
        let base = absolute(&file.base)?;
        let tree = file.tree.as_deref().map(absolute).transpose()?.unwrap_or_else(|| base.clone());
        let layout = match file.layout {
            LayoutName::Stripes => Layout::Stripes(StripesSettings {
                store: absolute(&file.store)?,
                placeholders: file.placeholders.then(|| tree.clone()),
                adopted: self.adopted(&file.adopt, file.keep_adopted.as_ref())?,
                adopt_unused: self.adopt_unused(file.adopt_unused.as_ref())?,
                adopt: (*file.adopt.get_ref() != Adopt::Whether(false)).then_some(tree),
                trash: self.trash(file.trash.as_ref())?,
                max_removed: self.percent("max_removed", file.max_removed.as_ref(), MAX_REMOVED_DEFAULT)?,
                ..self.stripes(&file.stripes)?
            }),
            LayoutName::Files => Layout::Files(self.files(&file.files, &file.store)?),
        };
        let access = self.access(file.access)?;
        let mut gmetad = file.gmetad.unwrap_or_default();
        gmetad.set_directory(&absolute(Path::new("."))?);
        let (carbon_rules, remarks) = self.carbon_rules(&file.carbon)?;
        let mut settings = Settings {
            layout,
            sync: self.sync(&file.sync)?,
            limits: self.limits(&file.limits)?,
            listen: file.listen.iter().map(|listen| self.listen(listen)).collect::<Result<_, _>>()?,
            access,
            http: file.http.listen,
            http_anonymous: self.anonymous(file.http.anonymous.as_ref())?,
            templates: file.http.templates.as_deref().map(Path::new).map(absolute).transpose()?,
            save_views: file.http.save_views,
            web_access: self.web_access(file.http.web_config)?,
            no_overwrite: file.no_overwrite,
            make_directories: file.make_directories,
            pid_file: file.pid_file.as_deref().map(absolute).transpose()?,
            user: self.id("user", file.user.as_ref(), privileges::user_id)?,
            group: self.id("group", file.group.as_ref(), privileges::group_id)?,
            log_level: match file.log.level {
                LevelName::Error => LogLevel::Error,
                LevelName::Warn => LogLevel::Warn,
                LevelName::Info => LogLevel::Info,
                LevelName::Debug => LogLevel::Debug,
            },
            log_file: file.log.file.as_deref().map(absolute).transpose()?,
            collect_host: file.collect.host.then_some(file.collect.directory),
            collectd: self.section("collectd", file.collectd, CollectdSection::settings)?.flatten(),
            ganglia: ganglia::config::settings(file.gmond, file.gmond_listen, gmetad)
                .map_err(|cause| ConfigError(format!("{}: {cause}", self.source)))?,
            mrtg: file.mrtg.iter().map(|mrtg| self.mrtg(mrtg)).collect::<Result<_, _>>()?,
            snmp: self.snmp(file.snmp, !file.agents.listen.is_empty())?,
            agent: file.agent.as_ref().map(|agent| self.agent(agent)).transpose()?,
            agents: self.agents(&file.agents)?,
            snapshots: file.snapshots.as_deref().map(absolute).transpose()?,
            #[cfg(feature = "backup")]
            backup: file.backup.as_ref().map(|given| self.backup(given)).transpose()?,
            replication: self.replication(&file.replication)?,
            follow: file.follow.as_ref().map(|follow| self.follow(follow)).transpose()?,
            forward: self.forward(&file.forward, &file.layout)?,
            sinks: self.sinks(&file.sink)?,
            metrics: self.metrics(file.metric)?,
            ingest: self.ingest(&file.ingest, file.create, carbon_rules)?,
            remarks,
            push: self.push(&file.carbon, &file.statsd, &file.influx)?,
            rrdcached_journal: file.rrdcached_journal.as_deref().map(absolute).transpose()?,
            ..Settings::new(PathBuf::new(), base)
        };
        self.add_cluster(file.cluster, &mut settings)?;
        let in_store = settings.tokens_in_store();
        settings.access.tokens.get_or_insert(in_store);
        Ok(settings)
    }

    /// Who clients are.
    fn access(&self, access: FileAccess) -> Result<AccessSettings, ConfigError> {
        let settings = AccessSettings {
            users: access.user,
            tokens: access.tokens.as_deref().map(absolute).transpose()?,
            audit: access.audit.as_deref().map(absolute).transpose()?,
        };
        settings.check_users().map_err(|cause| ConfigError(format!("{}: {cause}", self.source)))?;
        Ok(settings)
    }

    fn anonymous(
        &self,
        given: Option<&toml::Spanned<FileAnonymous>>,
    ) -> Result<Option<Anonymous>, ConfigError> {
        let Some(given) = given else { return Ok(None) };
        let line = line_of(self.text, given.span().start);
        let cannot = |cause: String| ConfigError(format!("{}:{line}: anonymous: {cause}", self.source));
        let anonymous = match given.get_ref() {
            FileAnonymous::Word(word) => Anonymous::parse(word).map_err(cannot)?,
            FileAnonymous::Account(account) => Anonymous::Account(Box::new(Account {
                name: "anonymous".to_string(),
                ..Account::clone(account)
            })),
        };
        anonymous.principal().map_err(cannot)?;
        Ok(Some(anonymous))
    }

    /// Who gets in over HTTP.
    fn web_access(&self, given: Option<FileWebConfig>) -> Result<WebAccess, ConfigError> {
        match given {
            None => Ok(WebAccess::default()),
            Some(FileWebConfig::File(path)) => absolute(&path).map(WebAccess::File),
            Some(FileWebConfig::Here(table)) => {
                let cannot = |error| ConfigError(format!("{}: [http.web_config]: {error}", self.source));
                let mut config: WebConfig =
                    table.try_into().map_err(|error: toml::de::Error| cannot(error.message().to_string()))?;
                config.set_directory(&absolute(Path::new("."))?);
                Ok(WebAccess::Here(Box::new(config)))
            }
        }
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

    /// The devices; `takes_agents` says whether agents may poll some.
    fn snmp(
        &self,
        sources: Vec<toml::Spanned<SnmpSource>>,
        takes_agents: bool,
    ) -> Result<Option<SnmpSettings>, ConfigError> {
        let Some(first) = sources.first() else { return Ok(None) };
        let named = |at: usize, error: String| {
            ConfigError(format!("{}:{}: [[snmp]]: {error}", self.source, line_of(self.text, at)))
        };
        let first = first.span().start;
        let profiles = load_profiles(sources.iter().map(toml::Spanned::get_ref));
        let profiles = profiles.map_err(|error| named(first, error))?;
        let mut names = HashSet::new();
        let check = |source: toml::Spanned<SnmpSource>| {
            let (at, source) = (source.span().start, source.into_inner());
            source.check(&profiles).map_err(|error| named(at, error))?;
            check_handed_out(&source, &profiles, takes_agents).map_err(|error| named(at, error))?;
            if !names.insert(source.name().to_string()) {
                let name = source.name();
                let error = format!("another device is called \"{name}\", too: give one of them a name");
                return Err(named(at, error));
            }
            Ok(source)
        };
        let sources = sources.into_iter().map(check).collect::<Result<_, _>>()?;
        Ok(Some(SnmpSettings { sources, profiles }))
    }

    /// The numbers of a striped store; its places are not known here.
    fn stripes(&self, stripes: &FileStripes) -> Result<StripesSettings, ConfigError> {
        Ok(StripesSettings {
            store: PathBuf::new(),
            placeholders: None,
            adopt: None,
            adopted: Adopted::Stays,
            adopt_unused: None,
            trash: TRASH_DEFAULT,
            max_removed: MAX_REMOVED_DEFAULT,
            shards: self.number("shards", stripes.shards.as_ref(), 1..=SHARDS_MAX)?,
            open_bytes: self.number("open_bytes", stripes.open_bytes.as_ref(), values::OPEN_BYTES)?,
            log_bytes: self.number("log_bytes", stripes.log_bytes.as_ref(), values::LOG_BYTES)?,
            scrub: self.scrub(stripes.scrub.as_ref())?,
        })
    }

    fn files(&self, files: &FileFiles, store: &Path) -> Result<FilesSettings, ConfigError> {
        let defaults = FilesSettings::default();
        let journal = files.journal.as_deref().unwrap_or(store);
        let interval = |key, value: &Option<toml::Spanned<String>>, default| {
            self.duration(key, value.as_ref(), default, values::INTERVAL)
        };
        let jitter = files.write_jitter.as_ref();
        Ok(FilesSettings {
            journal: Some(absolute(journal)?),
            write_interval: interval("write_interval", &files.write_interval, defaults.write_interval)?,
            write_jitter: self.duration("write_jitter", jitter, defaults.write_jitter, values::JITTER)?,
            flush_interval: interval("flush_interval", &files.flush_interval, defaults.flush_interval)?,
            write_threads: self.number(
                "write_threads",
                files.write_threads.as_ref(),
                values::WRITE_THREADS,
            )?,
            flush_at_stop: files.flush_at_stop,
            scrub: self.scrub(files.scrub.as_ref())?,
        })
    }

    fn limits(&self, limits: &FileLimits) -> Result<LimitSettings, ConfigError> {
        let defaults = LimitSettings::default();
        let bytes = |key, value: &Option<toml::Spanned<String>>, default, bounds| {
            self.bytes(key, value.as_ref(), default, bounds)
        };
        let connections = self.number("connections", limits.connections.as_ref(), 1..=CONNECTIONS_MAX)?;
        Ok(LimitSettings {
            memory: bytes("memory", &limits.memory, defaults.memory, values::MEMORY)?,
            idle: self.duration("idle", limits.idle.as_ref(), defaults.idle, values::IDLE)?,
            connections: connections.unwrap_or(defaults.connections),
            rrd_memory: bytes("rrd_memory", &limits.rrd_memory, defaults.rrd_memory, values::RRD_MEMORY)?,
            store_memory: bytes(
                "store_memory",
                &limits.store_memory,
                defaults.store_memory,
                values::STORE_MEMORY,
            )?,
        })
    }

    fn agent(&self, agent: &FileAgent) -> Result<AgentSettings, ConfigError> {
        let name = agent.name.get_ref();
        // It is a directory of RRDs, too.
        if !is_agent_name(format!("{name}{LIVE_STREAM}").as_bytes())
            || name.contains(['/', '\\'])
            || name.starts_with('.')
        {
            return Err(self.error(
                "name",
                &agent.name,
                "give printable ASCII without spaces and slashes, such as \"hall-2\"",
            ));
        }
        if AgentsSettings::is_local(agent.store.get_ref()).is_none() {
            return Err(self.error(
                "store",
                &agent.store,
                "give HOST:PORT of the store's [agents], or tls:HOST:PORT",
            ));
        }
        let is_tag = |tag: &&toml::Spanned<String>| is_agent_name(tag.get_ref().as_bytes());
        if let Some(tag) = agent.tags.iter().find(|tag| !is_tag(tag)) {
            return Err(self.error("tags", tag, "give printable ASCII without spaces"));
        }
        if let Some(tag) = agent.tags.get(TAGS_MAX) {
            return Err(self.error("tags", tag, format!("an agent has at most {TAGS_MAX} tags")));
        }
        let bytes = agent.spool_bytes.as_ref();
        Ok(AgentSettings {
            name: name.clone(),
            tags: agent.tags.iter().map(|tag| tag.get_ref().clone()).collect(),
            store: agent.store.get_ref().clone(),
            identity: self.agent_identity(agent)?,
            spool: SpoolOptions {
                directory: absolute(&agent.spool)?,
                bytes_max: self.bytes("spool_bytes", bytes, SPOOL_BYTES_DEFAULT, values::SPOOL_BYTES)?,
                keep: self.duration("keep", agent.keep.as_ref(), SPOOL_KEEP_DEFAULT, values::SPOOL_KEEP)?,
            },
        })
    }

    /// How an agent shows who it is.
    fn agent_identity(&self, agent: &FileAgent) -> Result<AgentIdentity, ConfigError> {
        let FileAgent { ca_file, cert_file, key_file, token_file, .. } = agent;
        self.identity(("store", &agent.store), [ca_file, cert_file, key_file, token_file])
    }

    /// How this server shows who it is at the address that a key names: files with the certificates of authorities, its own certificate
    /// and its key, and a token.
    fn identity(
        &self,
        (key, address): (&str, &toml::Spanned<String>),
        files: [&Option<PathBuf>; 4],
    ) -> Result<AgentIdentity, ConfigError> {
        let [ca, certificate, private_key, token] = files;
        let is_encrypted = matches!(Address::parse(address.get_ref()), Ok(Address::Tls { .. }));
        let advice = (!is_encrypted).then_some("tls:HOST:PORT");
        let files = self.tls_files((key, address), [ca, certificate, private_key], advice)?;
        Ok(AgentIdentity { files, token: token.as_deref().map(absolute).transpose()? })
    }

    /// The files of TLS beside an address, which is not one of TLS when there is advice what to give instead.
    fn tls_files(
        &self,
        (key, address): (&str, &toml::Spanned<String>),
        files: [&Option<PathBuf>; 3],
        advice: Option<&str>,
    ) -> Result<TlsFiles, ConfigError> {
        let path = |file: &Option<PathBuf>| file.as_deref().map(absolute).transpose();
        let [ca, certificate, private_key] = files;
        let identity = match (path(certificate)?, path(private_key)?) {
            (Some(certificate), Some(private_key)) => Some((certificate, private_key)),
            (None, None) => None,
            _ => return Err(self.error(key, address, "give both cert_file and key_file, or neither")),
        };
        let files = TlsFiles { ca: path(ca)?, identity };
        match advice.filter(|_| files != TlsFiles::default()) {
            None => Ok(files),
            Some(advice) => {
                let cause = format!("ca_file, cert_file and key_file are for TLS: give {advice}");
                Err(self.error(key, address, cause))
            }
        }
    }

    fn agents(&self, agents: &FileAgents) -> Result<Option<AgentsSettings>, ConfigError> {
        let FileAgents { listen, open, tls, .. } = agents;
        let (listen, open, tls) = self.frames_port(listen, *open, tls.as_ref(), "127.0.0.1:42219")?;
        let handover = agents.handover.as_ref();
        let handover = self.duration("handover", handover, HANDOVER_DEFAULT, values::INTERVAL)?;
        Ok((!listen.is_empty()).then_some(AgentsSettings { listen, handover, open, tls }))
    }

    /// A port for frames: its addresses, whether clients need not say who they are there, and its TLS.
    fn frames_port(
        &self,
        listen: &[toml::Spanned<String>],
        open: bool,
        tls: Option<&TlsOptions>,
        example: &str,
    ) -> Result<(Vec<String>, bool, Option<TlsOptions>), ConfigError> {
        let tls = tls.map(tls_options).transpose()?;
        let is_closed = tls.as_ref().is_some_and(TlsOptions::demands_certificates);
        let mut is_open = true;
        for address in listen {
            let is_local = AgentsSettings::is_local(address.get_ref())
                .ok_or_else(|| self.error("listen", address, format!("give HOST:PORT, such as {example}")))?;
            is_open &= is_local || open || is_closed;
        }
        let listen = listen.iter().map(|address| address.get_ref().clone()).collect();
        Ok((listen, is_open, tls))
    }

    fn mrtg(&self, mrtg: &FileMrtg) -> Result<MrtgSettings, ConfigError> {
        Ok(MrtgSettings {
            config: absolute(&mrtg.config)?,
            programs: mrtg.programs,
            program_timeout: self.duration(
                "program_timeout",
                mrtg.program_timeout.as_ref(),
                PROGRAM_TIMEOUT,
                values::INTERVAL,
            )?,
        })
    }

    fn listen(&self, listen: &FileListen) -> Result<Listen, ConfigError> {
        if listen.address.get_ref().is_empty() {
            return Err(self.error(
                "address",
                &listen.address,
                "it is empty; give unix:PATH, HOST:PORT, or :PORT for all addresses",
            ));
        }
        let address = Address::parse(listen.address.get_ref())
            .map_err(|error| self.error("address", &listen.address, error))?;
        let address = match address {
            Address::Unix(path) => Address::Unix(absolute(&path)?),
            Address::Tls { .. } => {
                let cause = "give HOST:PORT, and certificate and key in tls of this section";
                return Err(self.error("address", &listen.address, cause));
            }
            tcp => tcp,
        };
        let mut permissions = Permissions::ALL;
        if let Some(commands) = &listen.permissions {
            permissions = Permissions::NONE;
            for command in commands {
                let found = protocol::rrdcached::command::Command::find(command.get_ref().as_bytes());
                let found =
                    found.ok_or_else(|| self.error("permissions", command, "there is no such command"))?;
                permissions = permissions.with(found.verb);
            }
        }
        let mode = match &listen.mode {
            None => None,
            Some(mode) => Some(
                u32::from_str_radix(mode.get_ref(), 8)
                    .ok()
                    .filter(|mode| *mode <= 0o777)
                    .ok_or_else(|| self.error("mode", mode, "give an octal mode such as \"0660\""))?,
            ),
        };
        let group = self.id("group", listen.group.as_ref(), privileges::group_id)?;
        let tls = listen.tls.as_ref().map(tls_options).transpose()?;
        if tls.is_some() && matches!(address, Address::Unix(_)) {
            return Err(self.error(
                "address",
                &listen.address,
                "tls is for TCP; a UNIX socket stays on this machine, so leave tls out",
            ));
        }
        let anonymous = match self.anonymous(listen.anonymous.as_ref())? {
            Some(anonymous) => anonymous,
            None if address.is_local() => Anonymous::All,
            None => Anonymous::Nothing,
        };
        Ok(Listen { address, permissions, mode, group, anonymous, tls })
    }
}

/// TLS of a port, with absolute paths.
fn tls_options(options: &TlsOptions) -> Result<TlsOptions, ConfigError> {
    let mut options = options.clone();
    options.set_directory(&absolute(Path::new("."))?);
    Ok(options)
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
    use crate::settings::{SCRUB_DEFAULT, SyncPolicy};

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
        assert_eq!(settings.snmp.unwrap().sources[0].device, "router1");
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
        check(
            "[[metric]]\npath = 'a'\nname = 'x'\n[[metric]]\npath = '('\nname = 'x'\n",
            &["x.toml:4:", "[[metric]]", "unclosed group"],
        );
        check("[[metric]]\npath = 'a'\nname = 'x'\nlable = 1\n", &["x.toml:4:", "lable"]);
        check("layout = 'tables'\n", &["x.toml:1:", "tables"]);
        check("\n\nsync = 'soon'\n", &["x.toml:3:", "soon", "always"]);
        check("listen = ['/s']\n", &["x.toml:1:", "[[listen]]"]);
        check("[[listen]]\naddress = ''\n", &["x.toml:2:", "empty"]);
        check("[[listen]]\naddress = 'unix:/x'\nmode = '999'\n", &["x.toml:3:", "999"]);
        check("[[listen]]\naddress = 'unix:/x'\npermissions = ['FOO']\n", &["x.toml:3:", "FOO"]);
        check("user = 'nobody-of-this-name'\n", &["x.toml:1:", "user = \"nobody-of-this-name\"", "none"]);
        check("[limits]\nrrd_memory = 'much'\n", &["x.toml:2:", "much", "2 GiB"]);
        check("\n[[snmp]]\ndevice = 'r'\nversion = '9'\n", &["x.toml:2:", "9"]);
        check("[[snmp]]\ndevice = 'r'\n[[snmp]]\ndevice = 'r:99'\n", &["x.toml:3:", "\"r\""]);
        check("[[snmp]]\ndevice = 'r'\ncomunity = 'x'\n", &["comunity"]);
        check("[[snmp]]\ndevice = 'r'\n\nstep = '1x'\n", &["x.toml:4:", "1x"]);
        check("[[snmp]]\ndevice = 'r'\nonly = [3]\n", &["x.toml:3:", "a rule is a pattern"]);
        check("[[snmp]]\ndevice = 'r'\nprofiles = ['/none/a.toml']\n", &["x.toml:1:", "/none/a.toml"]);
        let agent = "[agent]\nspool = '/s'\n";
        check(&format!("{agent}name = 'a b'\nstore = 'x:1'\n"), &["x.toml:3:", "a b"]);
        check(&format!("{agent}name = 'a'\nstore = 'x'\n"), &["x.toml:4:", "HOST:PORT"]);
        check(
            &format!("{agent}name = 'a'\nstore = 'x:1'\nspool_bytes = '1'\n"),
            &["spool_bytes", "from 1 MB"],
        );
        check("[agents]\nlisten = ['127.0.0.1']\n", &["x.toml:2:", "HOST:PORT"]);
        check("[agents]\nhandover = '10'\n", &["x.toml:2:", "handover = \"10\"", "from 1s"]);
        check("[[snmp]]\ndevice = 'r'\nagents = 'a*'\n", &["x.toml:1:", "[agents]"]);
        let agents = "[agents]\nlisten = ['127.0.0.1:1']\n[[snmp]]\ndevice = 'r'\n";
        check(&format!("{agents}agents = 3\n"), &["x.toml:5:", "a pattern"]);
        check(&format!("{agents}agents = 'a'\nname = \"a\\nb\"\n"), &["x.toml:3:", "control"]);
        check(&format!("{agent}name = 'a'\nstore = 'x:1'\ntags = ['x', 'a b']\n"), &["x.toml:5:", "a b"]);
        check("[limits]\nconnections = 0\n", &["x.toml:2:", "connections = 0", "from 1 to 65536"]);
        check("[limits]\nmemory = '1'\n", &["x.toml:2:", "memory = \"1\"", "from 8 MB to 1 TB"]);
        check("[limits]\nidle = '0s'\n", &["idle = \"0s\"", "from 1s to 7d"]);
        check("[limits]\nrrd_memory = '1 kB'\n", &["rrd_memory = \"1 kB\"", "from 64 kB"]);
        check("[limits]\nstore_memory = '1 kB'\n", &["store_memory = \"1 kB\"", "from 1 MB"]);
        check("\nsync = '1'\n", &["x.toml:2:", "sync = \"1\"", "\"1s\"", "from 1ms to 1h"]);
        check("sync = '0s'\n", &["sync = \"0s\""]);
        check("[stripes]\nshards = 100000\n", &["x.toml:2:", "shards = 100000", "from 1 to 256"]);
        check("[stripes]\nshards = 0\n", &["shards = 0"]);
        check("[stripes]\nopen_bytes = 1\n", &["open_bytes = 1", "from 4096"]);
        check("[stripes]\nlog_bytes = 1\n", &["log_bytes = 1", "from 32768"]);
        check("[stripes]\nscrub = '1s'\n", &["scrub = \"1s\"", "off", "from 1m"]);
        let files = "layout = 'files'\n[files]\n";
        check(&format!("{files}write_threads = 0\n"), &["x.toml:3:", "write_threads = 0", "from 1 to 256"]);
        check(&format!("{files}write_interval = '0s'\n"), &["write_interval = \"0s\"", "from 1s"]);
        check(&format!("{files}flush_interval = '5'\n"), &["flush_interval = \"5\"", "from 1s"]);
        check("[backup]\ninterval = '10s'\n", &["to"]);
        check("[backup]\nto = 'ftp://x'\n", &["x.toml:2:", "to = \"ftp://x\"", "s3://BUCKET/PREFIX"]);
        check("[backup]\nto = '/x'\ninterval = '0s'\n", &["x.toml:3:", "interval = \"0s\"", "from 1s"]);
        check("[backup]\nto = '/x'\nbandwidth = '1'\n", &["bandwidth = \"1\"", "from 10 kB"]);
        check("[backup]\nto = '/x'\nrequests = 0\n", &["requests = 0", "from 1 to"]);
        check("[backup]\nto = '/x'\nkeep = '7d'\n", &["keep = \"7d\"", "7d all, 90d daily"]);
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
        // Carbon's files are read at once.
        let carbon = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(carbon.path().join(name), text).unwrap();
        write("storage-schemas.conf", "[all]\npattern = .*\nretentions = 60s:1d\n");
        write("storage-aggregation.conf", "[all]\npattern = .*\naggregationMethod = average\n");
        let uncommented = uncommented.replace("/etc/carbon", carbon.path().to_str().unwrap());
        // A node of a cluster does not do all the rest, and has one log of two.
        let (before, after) = uncommented.split_once("[cluster]\n").unwrap();
        let (cluster, after) = after.split_once("[agents]\n").unwrap();
        parse(&format!("{before}[agents]\n{after}"), "roundel.example.toml, uncommented").unwrap();
        let (node, kafka) = cluster.split_once("[cluster.kafka]\n").unwrap();
        let without_directory = node.lines().filter(|line| !line.starts_with("directory = "));
        let without_directory: Vec<&str> = without_directory.collect();
        for section in
            [node.to_owned(), format!("{}\n[cluster.kafka]\n{kafka}", without_directory.join("\n"))]
        {
            let settings = parse(&format!("[cluster]\n{section}"), "[cluster], uncommented").unwrap();
            assert!(settings.cluster.is_some());
        }
    }
}
