//! The sections `[carbon]`, `[statsd]` and `[influx]`: ports that others push to.

use std::path::PathBuf;
use std::time::Duration;

use ::ingest::carbon_schemas::CarbonSchemas;
use ::ingest::influx::Precision;
use ::ingest::statsd::aggregate::StatsdOptions;
use ::ingest::table::CreateRule;
use protocol::rrdcached::address::is_local_host;
use serde::Deserialize;
use toml::Spanned;

use super::{ConfigError, FileAnonymous, Reader, absolute, line_of};
use crate::access::Anonymous;
use crate::collectors::datagrams::parse_address;
use crate::push::{PushPort, PushProtocol, PushSettings, StatsdSettings, Transport};
use crate::settings::parse_bytes;

/// Bytes asked for the kernel's buffer of a UDP socket.
const BUFFER_BYTES_DEFAULT: usize = 8 << 20;
/// How often statsd flushes.
const FLUSH_DEFAULT: Duration = Duration::from_secs(10);
/// The port of Graphite's lines.
const GRAPHITE_PORT: u16 = 2003;
/// The port of Graphite's pickles.
const PICKLE_PORT: u16 = 2004;
/// statsd's port.
const STATSD_PORT: u16 = 8125;
/// The port of InfluxDB's lines over UDP.
const INFLUX_PORT: u16 = 8089;

/// `[carbon]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [carbon]")]
pub(super) struct FileCarbon {
    listen: Vec<Spanned<String>>,
    pickle: Vec<Spanned<String>>,
    anonymous: Option<Spanned<FileAnonymous>>,
    receive_buffer: Option<Spanned<String>>,
    schemas: Option<Spanned<PathBuf>>,
    aggregation: Option<Spanned<PathBuf>>,
    path: Option<String>,
}

/// `[statsd]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [statsd]")]
pub(super) struct FileStatsd {
    listen: Vec<Spanned<String>>,
    anonymous: Option<Spanned<FileAnonymous>>,
    receive_buffer: Option<Spanned<String>>,
    flush: Option<Spanned<String>>,
    prefix: Option<String>,
    percentiles: Option<Spanned<Vec<f64>>>,
    series_max: Option<Spanned<usize>>,
}

/// `[influx]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [influx]")]
pub(super) struct FileInflux {
    listen: Vec<Spanned<String>>,
    anonymous: Option<Spanned<FileAnonymous>>,
    receive_buffer: Option<Spanned<String>>,
    precision: Option<Spanned<String>>,
    database: Option<String>,
}

/// What ports of a section have in common.
struct Common<'a> {
    anonymous: &'a Option<Spanned<FileAnonymous>>,
    receive_buffer: &'a Option<Spanned<String>>,
}

impl Reader<'_> {
    /// All ports of the three sections.
    pub(super) fn push(
        &self,
        carbon: &FileCarbon,
        statsd: &FileStatsd,
        influx: &FileInflux,
    ) -> Result<PushSettings, ConfigError> {
        let mut ports = Vec::new();
        let common = Common { anonymous: &carbon.anonymous, receive_buffer: &carbon.receive_buffer };
        for given in &carbon.listen {
            ports.push(self.port(given, PushProtocol::Graphite, GRAPHITE_PORT, Transport::Tcp, &common)?);
        }
        for given in &carbon.pickle {
            let port = self.port(given, PushProtocol::Pickle, PICKLE_PORT, Transport::Tcp, &common)?;
            if port.transport == Transport::Udp {
                return Err(self.error("pickle", given, "pickles come over TCP"));
            }
            ports.push(port);
        }
        let precision = match &influx.precision {
            None => Precision::default(),
            Some(name) => Precision::of_name(name.get_ref())
                .ok_or_else(|| self.error("precision", name, "give ns, us, ms, s, m or h"))?,
        };
        let protocol =
            PushProtocol::Influx { precision, database: influx.database.clone().unwrap_or_default() };
        let common = Common { anonymous: &influx.anonymous, receive_buffer: &influx.receive_buffer };
        for given in &influx.listen {
            let port = self.port(given, protocol.clone(), INFLUX_PORT, Transport::Udp, &common)?;
            if port.transport == Transport::Tcp {
                let cause = "InfluxDB's lines come over UDP here, and over [http] at /write";
                return Err(self.error("listen", given, cause));
            }
            ports.push(port);
        }
        let statsd = self.statsd(statsd, &mut ports)?;
        Ok(PushSettings { ports, statsd })
    }

    fn statsd(
        &self,
        given: &FileStatsd,
        ports: &mut Vec<PushPort>,
    ) -> Result<Option<StatsdSettings>, ConfigError> {
        let common = Common { anonymous: &given.anonymous, receive_buffer: &given.receive_buffer };
        for address in &given.listen {
            ports.push(self.port(address, PushProtocol::Statsd, STATSD_PORT, Transport::Udp, &common)?);
        }
        let Some(first) = given.listen.first() else { return Ok(None) };
        let mut options = StatsdOptions::default();
        if let Some(prefix) = &given.prefix {
            options.prefix.clone_from(prefix);
        }
        if let Some(percentiles) = &given.percentiles {
            if !percentiles.get_ref().iter().all(|percentile| *percentile > 0.0 && *percentile <= 100.0) {
                let line = line_of(self.text, percentiles.span().start);
                let text = format!("{}:{line}: percentiles: give numbers above 0, at most 100", self.source);
                return Err(ConfigError(text));
            }
            options.percentiles.clone_from(percentiles.get_ref());
        }
        let series_max = self.number("series_max", given.series_max.as_ref(), 1..=10_000_000)?;
        options.series_max = series_max.unwrap_or(options.series_max);
        let flush = self.duration("flush", given.flush.as_ref(), FLUSH_DEFAULT, ["1s", "1h"])?;
        let flush_seconds = flush.as_secs();
        let anonymous = self.rights(first, &given.anonymous)?;
        Ok(Some(StatsdSettings { flush_seconds, options, anonymous }))
    }

    fn port(
        &self,
        given: &Spanned<String>,
        protocol: PushProtocol,
        port_default: u16,
        transport_default: Transport,
        common: &Common<'_>,
    ) -> Result<PushPort, ConfigError> {
        let text = given.get_ref();
        let (transport, rest) = match text.split_once("://") {
            Some(("tcp", rest)) => (Transport::Tcp, rest),
            Some(("udp", rest)) => (Transport::Udp, rest),
            None => (transport_default, text.as_str()),
            Some(_) => return Err(self.error("listen", given, "give tcp://HOST:PORT or udp://HOST:PORT")),
        };
        let (host, port) =
            parse_address(rest, port_default).map_err(|cause| self.error("listen", given, cause))?;
        let buffer_bytes = match common.receive_buffer {
            None => BUFFER_BYTES_DEFAULT,
            Some(text) => {
                let bytes = parse_bytes(text.get_ref()).and_then(|bytes| usize::try_from(bytes).ok());
                bytes.ok_or_else(|| {
                    self.error("receive_buffer", text, "give a number of bytes, such as \"8 MiB\"")
                })?
            }
        };
        let anonymous = self.rights(given, common.anonymous)?;
        Ok(PushPort { protocol, transport, host, port, anonymous, buffer_bytes })
    }

    /// What clients of a port may do. They cannot say who they are there, so a port that others reach must be opened in words.
    fn rights(
        &self,
        address: &Spanned<String>,
        given: &Option<Spanned<FileAnonymous>>,
    ) -> Result<Anonymous, ConfigError> {
        let text = address.get_ref();
        let bare = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
        let is_local = parse_address(bare, 0).is_ok_and(|(host, _)| is_local_host(&host));
        match self.anonymous(given.as_ref())? {
            Some(anonymous) => Ok(anonymous),
            None if is_local => Ok(Anonymous::All),
            None => {
                let cause = "other machines reach it, and nothing says who sends: say what it may write by anonymous = \
                             { write = [\"PATTERN\"] }, or \"all\"";
                Err(self.error("listen", address, cause))
            }
        }
    }

    /// The rules that carbon's files stand for, and what is wrong in them: carbon, too, leaves such sections out and goes on.
    pub(super) fn carbon_rules(
        &self,
        given: &FileCarbon,
    ) -> Result<(Vec<CreateRule>, Vec<String>), ConfigError> {
        let read = |key: &str, file: &Option<Spanned<PathBuf>>| match file {
            None => Ok(None),
            Some(file) => {
                let path = absolute(file.get_ref())?;
                let line = line_of(self.text, file.span().start);
                let text = std::fs::read_to_string(&path).map_err(|error| {
                    ConfigError(format!("{}:{line}: {key} = \"{}\": {error}", self.source, path.display()))
                })?;
                Ok(Some(text))
            }
        };
        let schemas = read("schemas", &given.schemas)?;
        let aggregation = read("aggregation", &given.aggregation)?;
        if schemas.is_none() && aggregation.is_none() {
            return Ok((Vec::new(), Vec::new()));
        }
        let mut faults = Vec::new();
        let schemas = CarbonSchemas::parse(
            schemas.as_deref().unwrap_or_default(),
            aggregation.as_deref(),
            &mut |file, fault| faults.push(format!("{file}: {fault}")),
        );
        Ok((schemas.rules(given.path.as_deref().unwrap_or("series/{name/}")), faults))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[test]
    fn ports_have_defaults_and_are_opened_in_words() {
        let settings = parse(
            "[carbon]\nlisten = ['127.0.0.1', 'udp://[::1]:2013']\npickle = ['localhost']\n\
             [statsd]\nlisten = ['0.0.0.0:8125']\nanonymous = { write = ['s/**'] }\nflush = '30s'\npercentiles = [50.0, 99.9]\n\
             [influx]\nlisten = ['127.0.0.1']\nprecision = 's'\n",
            "x.toml",
        )
        .unwrap()
        .push;
        let ports: Vec<_> =
            settings.ports.iter().map(|port| (port.protocol.name(), port.address())).collect();
        let want = [
            ("graphite", "tcp://127.0.0.1:2003"),
            ("graphite", "udp://[::1]:2013"),
            ("pickle", "tcp://localhost:2004"),
            ("influx", "udp://127.0.0.1:8089"),
            ("statsd", "udp://0.0.0.0:8125"),
        ];
        assert_eq!(ports, want.map(|(name, address)| (name, address.to_string())));
        assert_eq!(settings.ports[0].anonymous, Anonymous::All);
        let statsd = settings.statsd.unwrap();
        assert!(matches!(statsd.anonymous, Anonymous::Account(_)));
        assert_eq!((statsd.flush_seconds, statsd.options.percentiles), (30, vec![50.0, 99.9]));
    }

    #[test]
    fn what_is_wrong_in_carbons_files_is_told() {
        let carbon = tempfile::tempdir().unwrap();
        let file = carbon.path().join("storage-schemas.conf");
        let text =
            "[ahead]\npattern = (?=x)\nretentions = 60s:1d\n[all]\npattern = .*\nretentions = 60s:1d\n";
        std::fs::write(&file, text).unwrap();
        let settings = parse(&format!("[carbon]\nschemas = '{}'\n", file.display()), "x.toml").unwrap();
        let [remark] = settings.remarks.as_slice() else { panic!("{:?}", settings.remarks) };
        assert!(remark.starts_with("storage-schemas.conf: line 2: ") && remark.contains("(?=x)"), "{remark}");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let check = |text: &str, want: &[&str]| {
            let error = parse(text, "x.toml").expect_err(text).to_string();
            for part in want {
                assert!(error.contains(part), "{error:?} lacks {part:?}");
            }
        };
        check("[carbon]\nlisten = ['0.0.0.0:2003']\n", &["x.toml:2:", "0.0.0.0:2003", "anonymous"]);
        check("[carbon]\nlisten = ['http://127.0.0.1']\n", &["x.toml:2:", "tcp://HOST:PORT"]);
        check("[carbon]\npickle = ['udp://127.0.0.1']\n", &["x.toml:2:", "over TCP"]);
        check("[influx]\nlisten = ['tcp://127.0.0.1']\n", &["x.toml:2:", "/write"]);
        check("[influx]\nlisten = ['127.0.0.1']\nprecision = 'week'\n", &["x.toml:3:", "week"]);
        check("[statsd]\nlisten = ['127.0.0.1']\npercentiles = [0.0]\n", &["x.toml:3:", "percentiles"]);
        check("[statsd]\nlisten = ['127.0.0.1']\nflush = '10'\n", &["x.toml:3:", "flush = \"10\""]);
        check("[carbon]\nschemas = '/none/s.conf'\n", &["x.toml:2:", "/none/s.conf"]);
        check("[carbon]\nlisten = ['127.0.0.1']\nreceive_buffer = 'much'\n", &["x.toml:3:", "much"]);
    }
}
