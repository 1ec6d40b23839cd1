//! `roundel snmp`: what SNMP devices have, and whether a configuration's devices answer.

mod poller;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use collect::inventory::RrdSpec;
use collect::reading::Readings;
use collect::snmp::answer::{PassReport, WalkedRow};
use collect::snmp::profile::Profiles;
use collect::snmp::source::SnmpSource;
use indicatif::ProgressBar;
use server::collectors::snmp::config::{SnmpSettings, load_profiles};
use server::config;
use snmp::oid::Oid;

use super::{Result, print};
use poller::{Polled, Poller};

/// `mib-2`, of which most objects are.
const WALKED: &str = "1.3.6.1.2.1";

/// Options of `snmp`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what would be stored of a device, with its values now, and the lines for roundel.toml
    Discover(Discover),
    /// Show all objects of a device below an object identifier, or the object itself
    Walk(Walk),
    /// Poll each device of a configuration once, and say which do not answer
    Test(Test),
}

#[derive(Debug, Args)]
struct Discover {
    #[command(flatten)]
    device: Device,
    /// What is looked for: if-mib, host-resources, ucd, entity-sensor, bgp4, printer, and files of your own, such as acme.toml
    #[arg(long, value_name = "NAME,NAME...", value_delimiter = ',', default_value = "if-mib")]
    profiles: Vec<String>,
}

#[derive(Debug, Args)]
struct Walk {
    #[command(flatten)]
    device: Device,
    /// Where to begin, in numbers
    #[arg(value_name = "OID", default_value = WALKED)]
    oid: String,
}

#[derive(Debug, Args)]
struct Test {
    /// The configuration
    #[arg(value_name = "CONFIG", default_value = "roundel.toml")]
    config: PathBuf,
    /// Seconds to wait for all devices
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    timeout: u64,
}

/// A device, and how it is asked.
#[derive(Debug, Args)]
struct Device {
    /// Name or address, with :port if it is not 161
    #[arg(value_name = "DEVICE")]
    device: String,
    /// The community
    #[arg(short, long, default_value = "public")]
    community: String,
    /// 1, 2c or 3; 3 if there is a user, and otherwise 2c
    #[arg(short, long)]
    version: Option<String>,
    /// Version 3: the user
    #[arg(short, long)]
    user: Option<String>,
    /// Version 3: MD5, SHA, SHA-224, SHA-256, SHA-384 or SHA-512
    #[arg(short, long, value_name = "PROTOCOL")]
    auth: Option<String>,
    /// Version 3: the password of it
    #[arg(short = 'A', long, value_name = "PASSWORD")]
    auth_password: Option<String>,
    /// Version 3: DES, 3DES, AES-128, AES-192, AES-256, and with Cisco's keys AES-192-C, AES-256-C
    #[arg(short = 'x', long, value_name = "PROTOCOL")]
    privacy: Option<String>,
    /// Version 3: the password of it
    #[arg(short = 'X', long, value_name = "PASSWORD")]
    privacy_password: Option<String>,
    /// Version 3: the context
    #[arg(short = 'n', long)]
    context: Option<String>,
    /// Whether tables may be read by GETBULK
    #[arg(long, value_name = "true|false", default_value_t = true, action = clap::ArgAction::Set)]
    bulk: bool,
    /// Seconds to wait for the device
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    timeout: u64,
}

impl Device {
    fn source(&self) -> SnmpSource {
        SnmpSource {
            community: self.community.clone(),
            version: self.version.clone(),
            user: self.user.clone(),
            auth: self.auth.clone(),
            auth_password: self.auth_password.clone(),
            privacy: self.privacy.clone(),
            privacy_password: self.privacy_password.clone(),
            context: self.context.clone(),
            bulk: self.bulk,
            ..SnmpSource::new(&self.device)
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result {
    match &arguments.command {
        Command::Discover(arguments) => discover(arguments),
        Command::Walk(arguments) => walk(arguments),
        Command::Test(arguments) => test(arguments),
    }
}

fn discover(arguments: &Discover) -> Result {
    let source = SnmpSource { profiles: arguments.profiles.clone(), ..arguments.device.source() };
    let spinner = spinner(format!("asking {}", source.device));
    let timeout = Duration::from_secs(arguments.device.timeout);
    let mut poller = Poller::new(std::slice::from_ref(&source), load_profiles([&source])?)?;
    let polled = poller.poll(timeout, |_| spinner.tick())?;
    spinner.finish_and_clear();
    let Polled::Answered(report) = &polled[0] else { return Err(failure(&source, &polled[0])) };
    let (inventory, readings) = poller.readings();
    let rrds = poller.rrds(0);
    let mut text = format!(
        "{} answered in {} ms with {} requests. Of it would be stored, in {} RRDs:\n",
        source.device,
        report.micros / 1000,
        report.requests,
        rrds.len()
    );
    for &rrd in rrds {
        let values = values_of(readings, inventory.spec(rrd), rrd);
        text += &format!("  {}  {values}\n", String::from_utf8_lossy(inventory.name(rrd)));
    }
    let section = source.section().map_err(|error| error.to_string())?;
    text += &format!("\nTo poll it every {} s, add to roundel.toml:\n\n{section}", source.step);
    print(&text)
}

/// The last reading of an RRD, by data source.
fn values_of(readings: &Readings, spec: &RrdSpec, rrd: collect::inventory::RrdId) -> String {
    let mut text = Vec::new();
    if let Some(reading) = readings.iter().rfind(|reading| reading.rrd == rrd) {
        readings.push_text(reading, &mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let names = spec.args.iter().filter_map(|word| word.strip_prefix("DS:")?.split(':').next());
    let values = text.split(':').skip(1);
    let pairs: Vec<String> = names.zip(values).map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}

fn walk(arguments: &Walk) -> Result {
    let source = arguments.device.source();
    source.check(&Profiles::default())?;
    let oid = Oid::parse(&arguments.oid)
        .ok_or_else(|| format!("\"{}\" is no object identifier such as .{WALKED}", arguments.oid))?;
    let spinner = spinner(format!("walking over {}", source.device));
    let timeout = Duration::from_secs(arguments.device.timeout);
    let rows = poller::walk(&source, &oid, timeout, || spinner.tick())?;
    spinner.finish_and_clear();
    if rows.is_empty() {
        return Err(format!("{} has nothing at {oid} or below", source.device));
    }
    let line = |row: &WalkedRow| {
        let value = row.values.first().and_then(Option::as_ref);
        let value = value.map(|value| value.value().to_string()).unwrap_or_default();
        match row.index_text().as_str() {
            "" => format!("{oid} = {value}\n"),
            index => format!("{oid}.{index} = {value}\n"),
        }
    };
    print(rows.iter().map(line).collect::<String>())
}

fn test(arguments: &Test) -> Result {
    let settings = config::load(&arguments.config).map_err(|error| error.to_string())?;
    let Some(SnmpSettings { sources, profiles }) = settings.snmp else {
        return Err(format!("{} has no [[snmp]]", arguments.config.display()));
    };
    let bar = ProgressBar::new(sources.len() as u64);
    let mut poller = Poller::new(&sources, profiles)?;
    let polled = poller.poll(Duration::from_secs(arguments.timeout), |done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    let (mut text, mut failed) = (String::new(), 0);
    for (nth, (source, polled)) in sources.iter().zip(&polled).enumerate() {
        text += &match polled {
            Polled::Answered(report) => good(source, poller.rrds(nth).len(), report),
            bad => {
                failed += 1;
                failure(source, bad)
            }
        };
        text.push('\n');
    }
    print(&text)?;
    match failed {
        0 => Ok(()),
        _ => Err(format!("{failed} of {} devices cannot be polled", polled.len())),
    }
}

fn good(source: &SnmpSource, rrds: usize, report: &PassReport) -> String {
    let missing = match report.missing {
        0 => String::new(),
        missing => format!(", {missing} without values"),
    };
    let (millis, requests) = (report.micros / 1000, report.requests);
    format!("{}: good, {rrds} RRDs, {millis} ms, {requests} requests{missing}", called(source))
}

/// A device with its name, if it has one.
fn called(source: &SnmpSource) -> String {
    source.name.as_ref().map_or_else(|| source.device.clone(), |name| format!("{name} ({})", source.device))
}

fn failure(source: &SnmpSource, polled: &Polled) -> String {
    match polled {
        Polled::Failed(why) => format!("{}: {why}", called(source)),
        _ => format!("{}: {}", called(source), poller::LATE),
    }
}

fn spinner(text: String) -> ProgressBar {
    ProgressBar::new_spinner().with_message(text)
}
