//! The sections `[[gmond]]`, `[gmond_listen]` and `[gmetad]` of `roundel.toml`.

use std::path::Path;
use std::time::Duration;

use collect::ganglia::GangliaOptions;
use collect::ganglia::gmond::GmondOptions;
use serde::Deserialize;

use super::{GangliaSettings, GmondListenSettings, GmondSettings};
use crate::collectors::datagrams::parse_address;
use crate::config::parse_with_unit;
use crate::settings::parse_bytes;
use crate::tls::TlsOptions;

/// gmond's port, for UDP and TCP.
const GMOND_PORT: u16 = 8649;
/// gmetad's step.
const STEP_DEFAULT: &str = "15s";
/// Bytes asked for the kernel's buffer.
const BUFFER_BYTES_DEFAULT: usize = 8 << 20;

/// `[[gmond]]`: a source to poll, gmetad.conf's `data_source`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section [[gmond]]")]
pub struct GmondSection {
    name: String,
    addresses: Vec<String>,
    #[serde(default = "step_default")]
    step: String,
}

/// `[gmond_listen]`: gmond's datagrams.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [gmond_listen]")]
pub struct GmondListenSection {
    listen: Vec<String>,
    interface: Option<String>,
    cluster: String,
    owner: String,
    step: String,
    host_dmax: u32,
    hosts: usize,
    receive_buffer: Option<String>,
}

/// `[gmetad]`: what is made of the sources, and the ports that answer from them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [gmetad]")]
pub struct GmetadSection {
    directory: String,
    rras: Vec<String>,
    case_sensitive_hostnames: bool,
    unsummarized_metrics: Vec<String>,
    gridname: String,
    authority: String,
    scalable: bool,
    xml_listen: Vec<String>,
    interactive_listen: Vec<String>,
    tls: Option<TlsOptions>,
    rrds: usize,
}

fn step_default() -> String {
    STEP_DEFAULT.to_string()
}

impl Default for GmondListenSection {
    fn default() -> Self {
        let GmondOptions { cluster, owner, host_dmax, hosts_max } = GmondOptions::default();
        GmondListenSection {
            listen: Vec::new(),
            interface: None,
            cluster,
            owner,
            step: step_default(),
            host_dmax,
            hosts: hosts_max,
            receive_buffer: None,
        }
    }
}

impl Default for GmetadSection {
    fn default() -> Self {
        let options = GangliaOptions::default();
        GmetadSection {
            directory: options.directory,
            rras: options.archives,
            case_sensitive_hostnames: options.case_sensitive_hostnames,
            unsummarized_metrics: options.unsummarized,
            gridname: options.grid,
            authority: options.authority,
            scalable: options.scalable,
            xml_listen: Vec::new(),
            interactive_listen: Vec::new(),
            tls: None,
            rrds: options.rrds_max,
        }
    }
}

impl GmetadSection {
    /// Makes relative paths relative to `directory`.
    pub fn set_directory(&mut self, directory: &Path) {
        if let Some(tls) = &mut self.tls {
            tls.set_directory(directory);
        }
    }
}

/// Checks the three sections; none where nothing is polled or received.
///
/// # Errors
/// A text that names the key.
pub fn settings(
    sources: Vec<GmondSection>,
    listen: Option<GmondListenSection>,
    gmetad: GmetadSection,
) -> Result<Option<GangliaSettings>, String> {
    let sources = sources.into_iter().map(source).collect::<Result<Vec<_>, _>>()?;
    let listen = listen.map(listener).transpose()?.filter(|listen| !listen.listen.is_empty());
    if sources.is_empty() && listen.is_none() {
        return Ok(None);
    }
    if gmetad.rrds == 0 {
        return Err("[gmetad] rrds is at least 1: with 0, nothing would be stored".to_string());
    }
    let options = GangliaOptions {
        directory: gmetad.directory.trim_matches('/').to_string(),
        archives: gmetad.rras,
        case_sensitive_hostnames: gmetad.case_sensitive_hostnames,
        unsummarized: gmetad.unsummarized_metrics,
        grid: gmetad.gridname,
        authority: gmetad.authority,
        scalable: gmetad.scalable,
        rrds_max: gmetad.rrds,
    };
    let (xml, interactive, tls) = (gmetad.xml_listen, gmetad.interactive_listen, gmetad.tls);
    Ok(Some(GangliaSettings { sources, listen, options, xml, interactive, tls }))
}

fn source(section: GmondSection) -> Result<GmondSettings, String> {
    let fail = |cause: String| format!("[[gmond]] \"{}\": {cause}", section.name);
    let addresses = section.addresses.iter().map(|text| {
        let text = text.strip_prefix("tcp://").unwrap_or(text);
        parse_address(text, GMOND_PORT).map_err(|_| fail(format!("addresses: \"{text}\" is not host:port")))
    });
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    if addresses.is_empty() {
        return Err(fail("addresses: give at least one".to_string()));
    }
    let step = step(&section.step).map_err(fail)?;
    Ok(GmondSettings { name: section.name, addresses, step })
}

fn listener(section: GmondListenSection) -> Result<GmondListenSettings, String> {
    let fail = |cause: String| format!("[gmond_listen] {cause}");
    if section.hosts == 0 {
        return Err(fail("hosts is at least 1: with 0, nothing would be received".to_string()));
    }
    let listen = section.listen.iter().map(|text| parse_address(text, GMOND_PORT));
    let listen = listen.collect::<Result<Vec<_>, _>>().map_err(fail)?;
    let buffer_bytes = section.receive_buffer.as_deref().map_or(Some(BUFFER_BYTES_DEFAULT), |text| {
        parse_bytes(text).and_then(|bytes| usize::try_from(bytes).ok())
    });
    Ok(GmondListenSettings {
        listen,
        interface: section.interface,
        buffer_bytes: buffer_bytes.ok_or_else(|| fail("receive_buffer is no number of bytes".to_string()))?,
        step: step(&section.step).map_err(fail)?,
        options: GmondOptions {
            cluster: section.cluster,
            owner: section.owner,
            host_dmax: section.host_dmax,
            hosts_max: section.hosts,
        },
    })
}

fn step(text: &str) -> Result<Duration, String> {
    let whole = parse_with_unit(text).filter(|step| step.subsec_millis() == 0 && !step.is_zero());
    whole.ok_or_else(|| format!("step: \"{text}\" is no number of whole seconds, such as \"15s\""))
}
