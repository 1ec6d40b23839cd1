//! What Grafana is given: data sources and dashboards, in the form in which it provisions them. `docs/grafana.md` is for its operators.
//!
//! Texts only: [`crate::http`] serves them, and `roundel grafana` writes them.

mod dashboard;

use std::fmt::Write as _;
use std::time::Duration;

pub use dashboard::{Dashboard, dashboards};

/// The data source of PromQL, by which dashboards find it.
pub const PROMETHEUS_UID: &str = "roundel-prometheus";
/// The data source of Graphite's targets.
pub const GRAPHITE_UID: &str = "roundel-graphite";
/// What clients that look at Prometheus' version find: the one whose rules of ranges and labels hold here.
pub const PROMETHEUS_VERSION: &str = "3.5.0";
/// What files begin with that may be written again.
pub const MARK: &str = "# Written by Roundel, which writes it again when it is told to: change a copy.";
/// The variable of Grafana's environment that has the token.
pub const TOKEN_VARIABLE: &str = "ROUNDEL_TOKEN";

/// The data sources of one Roundel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSources {
    /// The address of its HTTP, as Grafana's server reaches it.
    pub url: String,
    /// The interval of most rows; `None`: there are no RRDs yet.
    pub interval: Option<Duration>,
    /// Whether Grafana must show a token, which its environment has ([`TOKEN_VARIABLE`]).
    pub has_token: bool,
    /// The certificate of the authority to trust, as PEM; `None`: those that Grafana's machine trusts.
    pub authority: Option<String>,
}

impl DataSources {
    /// The file of Grafana's directory `provisioning/datasources`.
    pub fn yaml(&self) -> String {
        let mut out = format!("{MARK}\napiVersion: 1\n\ndatasources:\n");
        let prometheus = [
            ("httpMethod", "POST".to_owned()),
            ("prometheusType", "Prometheus".to_owned()),
            ("prometheusVersion", PROMETHEUS_VERSION.to_owned()),
            ("cacheLevel", "High".to_owned()),
        ];
        self.push(&mut out, ("Roundel", "prometheus", PROMETHEUS_UID), &prometheus);
        match self.interval {
            Some(interval) => {
                let _ = writeln!(out, "    # The step of most RRDs: $__rate_interval is four of them.");
                let _ = writeln!(out, "    timeInterval: {}", quoted(&interval_text(interval)));
            }
            None => out.push_str("    # timeInterval: the step of most RRDs, once there are some\n"),
        }
        // Rules and alerts are Grafana's or vmalert's; there are no exemplars.
        out.push_str("    disableRecordingRules: true\n    manageAlerts: false\n");
        self.push_secrets(&mut out);
        let graphite = [("graphiteType", "default".to_owned()), ("graphiteVersion", "1.1".to_owned())];
        self.push(&mut out, ("Roundel (Graphite)", "graphite", GRAPHITE_UID), &graphite);
        // What would be indicated are rollups by Metrictank's answers.
        out.push_str("    rollupIndicatorEnabled: false\n");
        self.push_secrets(&mut out);
        out
    }

    /// A data source up to its own settings, which may follow.
    fn push(&self, out: &mut String, (name, kind, uid): (&str, &str, &str), settings: &[(&str, String)]) {
        let url = quoted(&self.url);
        let _ = write!(
            out,
            "- name: {name}\n  type: {kind}\n  uid: {uid}\n  access: proxy\n  orgId: 1\n  url: {url}\n  \
             isDefault: false\n  editable: false\n  jsonData:\n"
        );
        if self.has_token {
            out.push_str("    httpHeaderName1: Authorization\n");
        }
        if self.authority.is_some() {
            out.push_str("    tlsAuthWithCACert: true\n");
        }
        for (key, value) in settings {
            let _ = writeln!(out, "    {key}: {}", quoted(value));
        }
    }

    fn push_secrets(&self, out: &mut String) {
        if !self.has_token && self.authority.is_none() {
            return;
        }
        out.push_str("  secureJsonData:\n");
        if self.has_token {
            let _ = writeln!(out, "    httpHeaderValue1: \"Bearer ${TOKEN_VARIABLE}\"");
        }
        if let Some(authority) = &self.authority {
            let _ = writeln!(out, "    tlsCACert: {}", quoted(authority));
        }
    }
}

/// The file of Grafana's directory `provisioning/dashboards` that names a directory of dashboards, as Grafana sees it.
pub fn provider_yaml(directory: &str) -> String {
    let path = quoted(directory);
    format!(
        "{MARK}\napiVersion: 1\n\nproviders:\n- name: Roundel\n  orgId: 1\n  folder: Roundel\n  folderUid: roundel\n  type: file\n  \
         disableDeletion: false\n  updateIntervalSeconds: 60\n  allowUiUpdates: false\n  options:\n    path: {path}\n"
    )
}

/// An interval as Grafana takes it, such as `10s` or `5m`.
pub fn interval_text(interval: Duration) -> String {
    let milliseconds = interval.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s")];
    let fits = units.into_iter().find(|(unit, _)| milliseconds.is_multiple_of(*unit));
    fits.map_or(format!("{milliseconds}ms"), |(unit, name)| format!("{}{name}", milliseconds / unit))
}

/// A text as YAML, in which Grafana finds no variable of its environment.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text.replace('$', "$$")).to_string()
}

/// Checks the address that Grafana is to use, and cuts slashes at its end.
///
/// # Errors
/// What is wrong with it.
pub fn checked_url(url: &str) -> Result<String, String> {
    let bad = |why: &str| {
        format!("url={url}: {why}; give http://HOST:PORT or https://HOST, with a path if there is one")
    };
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let rest = rest.ok_or_else(|| bad("it is neither http nor https"))?;
    if rest.contains('@') {
        return Err(bad("a password in it would stand in the file"));
    }
    let parsed = url.parse::<axum::http::Uri>().map_err(|error| bad(&error.to_string()))?;
    if parsed.authority().is_none_or(|authority| authority.host().is_empty()) {
        return Err(bad("it names no host"));
    }
    if parsed.query().is_some() || url.contains('#') {
        return Err(bad("it has a query"));
    }
    Ok(url.trim_end_matches('/').to_owned())
}
