//! `roundel serve` and `roundel validate`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use protocol::rrdcached::address::Address;
use server::access::Anonymous;
use server::agents::AgentsSettings;
use server::config;
use server::listener::Listen;
use server::replication::FollowSettings;
use server::settings::{FilesSettings, Layout, Settings, listen_plain};
use server::start_check;

use super::Result;

/// The configuration used by default, if it exists.
const CONFIG_DEFAULT: &str = "roundel.toml";

/// Options of `serve`. They override the configuration.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Configuration [default: roundel.toml if it exists, else a store in ./var that also records this host]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where RRDs are kept
    #[arg(long, value_enum)]
    layout: Option<LayoutName>,
    /// Directory of the store (of the journal, with --layout files)
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Directory that names of RRDs are relative to
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
    /// Address for rrdcached's protocol, instead of those in the configuration; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    /// Address of the page, the APIs and /metrics, such as 127.0.0.1:9181; may be repeated
    #[arg(long, value_name = "HOST:PORT")]
    http: Vec<String>,
    /// What clients may do at these addresses that do not say who they are: none, read or all. Without it, all on this machine, and none
    /// from others
    #[arg(long, value_name = "WHAT")]
    anonymous: Option<String>,
    /// Follow another server, as the section follow of a configuration says: where it listens for followers, such as tls:primary:42221 or
    /// frames+tls://primary
    #[arg(long, value_name = "ADDRESS")]
    follow: Option<String>,
    /// The file of the token by which the server that is followed knows this one
    #[arg(long, value_name = "FILE", requires = "follow")]
    follow_token_file: Option<PathBuf>,
    /// Address at which others may follow this server, as the section replication of a configuration says; may be repeated
    #[arg(long, value_name = "HOST:PORT")]
    followers: Vec<String>,
    /// Create no placeholder files
    #[arg(long)]
    no_placeholders: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LayoutName {
    Stripes,
    Files,
}

/// Options of `validate`.
#[derive(Debug, Args)]
pub struct ValidateArguments {
    /// Configuration to check
    #[arg(default_value = CONFIG_DEFAULT)]
    config: PathBuf,
}

/// Runs the daemon.
pub fn run(arguments: &Arguments) -> Result {
    let settings = settings(arguments)?;
    if settings.agent.is_some() {
        return Err("the configuration has a section [agent]: run \"roundel agent\" with it".to_string());
    }
    crate::allocator::give_back_soon();
    server::lifecycle::run(settings).map_err(|error| error.to_string())
}

/// Checks a configuration.
pub fn validate(arguments: &ValidateArguments) -> Result {
    let settings = config::load(&arguments.config).map_err(|error| error.to_string())?;
    start_check::check(&settings).map_err(|cause| format!("{}: {cause}", arguments.config.display()))?;
    for remark in &settings.remarks {
        eprintln!("{}: {remark}", arguments.config.display());
    }
    println!("{} is good", arguments.config.display());
    Ok(())
}

/// What a configuration says: this one, or that of the current directory, or what is so without any.
pub fn configured(config: Option<&Path>) -> Result<Settings, String> {
    let text = |error: config::ConfigError| error.to_string();
    let default = Path::new(CONFIG_DEFAULT);
    match config {
        Some(path) => config::load(path).map_err(text),
        None if default.exists() => config::load(default).map_err(text),
        None => {
            let mut settings = config::parse("", "the default").map_err(text)?;
            settings.collect_host = Some("localhost".to_string());
            Ok(settings)
        }
    }
}

fn settings(arguments: &Arguments) -> Result<Settings, String> {
    let text = |error: config::ConfigError| error.to_string();
    let mut settings = configured(arguments.config.as_deref())?;
    let absolute = |path: &PathBuf| config::absolute(path).map_err(text);
    if let Some(base) = &arguments.base {
        let base = absolute(base)?;
        if let Layout::Stripes(stripes) = &mut settings.layout {
            for tree in [&mut stripes.placeholders, &mut stripes.adopt].into_iter().flatten() {
                if *tree == settings.base {
                    tree.clone_from(&base);
                }
            }
        }
        settings.base = base;
    }
    let store = arguments.store.as_ref().map(absolute).transpose()?;
    let tokens_before = settings.tokens_in_store();
    relay_out(&mut settings, arguments.layout, store);
    if settings.access.tokens == Some(tokens_before) {
        settings.access.tokens = Some(settings.tokens_in_store());
    }
    let anonymous = arguments.anonymous.as_deref().map(Anonymous::parse).transpose();
    let anonymous = anonymous.map_err(|error| format!("--anonymous {error}"))?;
    if arguments.no_placeholders
        && let Layout::Stripes(stripes) = &mut settings.layout
    {
        stripes.placeholders = None;
    }
    if !arguments.listen.is_empty() {
        listen(&mut settings, &arguments.listen, anonymous.as_ref())?;
    }
    if anonymous.is_some() && !arguments.http.is_empty() {
        settings.http_anonymous = anonymous;
    }
    settings.http.extend(arguments.http.iter().cloned());
    replicate(&mut settings, arguments)?;
    Ok(settings)
}

/// Applies the options for a second server.
fn replicate(settings: &mut Settings, arguments: &Arguments) -> Result {
    if let Some(given) = &arguments.follow {
        let follow = FollowSettings::of(given).ok_or_else(|| {
            format!(
                "--follow {given:?}: give HOST:PORT of the primary's [replication] listen, or tls:HOST:PORT"
            )
        })?;
        let follow = settings.follow.insert(follow);
        if let Some(file) = &arguments.follow_token_file {
            follow.identity.token = Some(config::absolute(file).map_err(|error| error.to_string())?);
        }
    }
    for address in &arguments.followers {
        let is_local = AgentsSettings::is_local(address)
            .ok_or_else(|| format!("--followers {address:?}: give HOST:PORT, such as 127.0.0.1:42221"))?;
        settings.replication.open =
            is_local && (settings.replication.open || settings.replication.listen.is_empty());
        settings.replication.listen.push(address.clone());
    }
    Ok(())
}

/// Applies the options for layout and store directory.
fn relay_out(settings: &mut Settings, layout: Option<LayoutName>, store: Option<PathBuf>) {
    let kept = match &settings.layout {
        Layout::Stripes(stripes) => Some(stripes.store.clone()),
        Layout::Files(files) => files.journal.clone(),
    };
    match (layout, &mut settings.layout) {
        (Some(LayoutName::Files), layout @ Layout::Stripes(_)) => {
            *layout = Layout::Files(FilesSettings { journal: kept, ..Default::default() });
        }
        (Some(LayoutName::Stripes), Layout::Files(_)) => {
            let fresh = Settings::new(kept.unwrap_or_else(|| "store".into()), settings.base.clone());
            settings.layout = fresh.layout;
        }
        _ => {}
    }
    match (store, &mut settings.layout) {
        (Some(store), Layout::Stripes(stripes)) => stripes.store = store,
        (Some(store), Layout::Files(files)) => files.journal = Some(store),
        (None, _) => {}
    }
}

fn listen(settings: &mut Settings, addresses: &[String], anonymous: Option<&Anonymous>) -> Result {
    settings.listen.clear();
    for address in addresses {
        let address = match Address::parse(address).map_err(|error| error.to_string())? {
            Address::Unix(path) => Address::Unix(config::absolute(&path).map_err(|error| error.to_string())?),
            tcp => tcp,
        };
        let anonymous = match anonymous {
            Some(anonymous) => anonymous.clone(),
            None if address.is_local() => Anonymous::All,
            None => Anonymous::Nothing,
        };
        settings.listen.push(Listen { anonymous, ..listen_plain(address) });
    }
    Ok(())
}
