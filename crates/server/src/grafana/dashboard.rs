//! Dashboards: short descriptions (`*.toml` here), from which Grafana's JSON follows.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use super::PROMETHEUS_UID;

/// The version of Grafana's schema of dashboards: that of Grafana 11; later ones read it, too.
const SCHEMA_VERSION: u32 = 39;
/// The columns of Grafana's grid.
const COLUMNS: u32 = 24;
/// The height of a row's title, of a number and of anything else.
const HEIGHTS: [u32; 3] = [1, 4, 8];
/// The width of a number and of anything else.
const WIDTHS: [u32; 2] = [6, 12];

/// The descriptions, by name.
const SOURCES: [(&str, &str); 5] = [
    ("roundel", include_str!("roundel.toml")),
    ("metrics", include_str!("metrics.toml")),
    ("host", include_str!("host.toml")),
    ("interface", include_str!("interface.toml")),
    ("collectd", include_str!("collectd.toml")),
];

/// A dashboard.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dashboard {
    /// What its file and its address are called, without `.json`.
    #[serde(skip)]
    pub name: &'static str,
    /// Its title.
    pub title: String,
    /// What must be recorded for it.
    pub needs: String,
    #[serde(default)]
    variable: Vec<Variable>,
    panel: Vec<Panel>,
}

/// A choice above the panels.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    name: String,
    label: String,
    query: String,
    /// Whether several may be chosen, or all.
    #[serde(default)]
    multi: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Panel {
    title: String,
    /// The title of a row that begins with it.
    row: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    kind: Kind,
    #[serde(default = "short")]
    unit: String,
    min: Option<f64>,
    max: Option<f64>,
    /// From which value on it is red.
    warn: Option<f64>,
    #[serde(default)]
    stack: bool,
    width: Option<u32>,
    queries: Vec<PanelQuery>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PanelQuery {
    expr: String,
    legend: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Lines,
    Stat,
    Table,
}

fn short() -> String {
    "short".to_owned()
}

/// All dashboards.
pub fn dashboards() -> &'static [Dashboard] {
    static ALL: LazyLock<Vec<Dashboard>> = LazyLock::new(|| {
        let read = |(name, text): (&'static str, &str)| {
            let mut dashboard: Dashboard = toml::from_str(text).ok()?;
            dashboard.name = name;
            Some(dashboard)
        };
        SOURCES.into_iter().filter_map(read).collect()
    });
    &ALL
}

impl Dashboard {
    /// The identifier by which Grafana knows it.
    pub fn uid(&self) -> String {
        format!("roundel-{}", self.name)
    }

    /// Grafana's JSON, which ends with a line end.
    pub fn json(&self) -> String {
        let mut list = vec![source_variable()];
        list.extend(self.variable.iter().map(Variable::json));
        let value = json!({
            "uid": self.uid(),
            "title": self.title,
            "description": format!("Needs {}. Written by Roundel; change a copy.", self.needs),
            "tags": ["roundel"],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "id": null,
            "editable": true,
            "graphTooltip": 1,
            "fiscalYearStartMonth": 0,
            "timezone": "browser",
            "weekStart": "",
            "refresh": "1m",
            "time": {"from": "now-6h", "to": "now"},
            "timepicker": {},
            "links": [{
                "type": "dashboards", "title": "Roundel", "tags": ["roundel"], "asDropdown": true, "icon": "external link",
                "includeVars": false, "keepTime": true, "targetBlank": false, "tooltip": "", "url": "",
            }],
            "annotations": {"list": [{
                "builtIn": 1, "datasource": {"type": "grafana", "uid": "-- Grafana --"}, "enable": true, "hide": true,
                "iconColor": "rgba(0, 211, 255, 1)", "name": "Annotations & Alerts", "type": "dashboard",
            }]},
            "templating": {"list": list},
            "panels": self.panels(),
        });
        format!("{value:#}\n")
    }

    /// The panels, each where the one before leaves room.
    fn panels(&self) -> Vec<Value> {
        let (mut all, mut id) = (Vec::new(), 0);
        let (mut x, mut y, mut height) = (0, 0, 0);
        for panel in &self.panel {
            let (width, own_height) = panel.size();
            if panel.row.is_some() || x + width > COLUMNS {
                (x, y, height) = (0, y + height, 0);
            }
            if let Some(title) = &panel.row {
                id += 1;
                let place = json!({"h": HEIGHTS[0], "w": COLUMNS, "x": 0, "y": y});
                all.push(json!({
                    "id": id, "type": "row", "title": title, "gridPos": place, "collapsed": false, "panels": [],
                }));
                y += HEIGHTS[0];
            }
            id += 1;
            let place = json!({"h": own_height, "w": width, "x": x, "y": y});
            all.push(panel.json(id, &place));
            x += width;
            height = height.max(own_height);
        }
        all
    }
}

/// The data source that all queries go to: ours, or another one that has the same metrics.
fn source_variable() -> Value {
    json!({
        "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "regex": "",
        "current": {"selected": true, "text": "Roundel", "value": PROMETHEUS_UID},
        "hide": 0, "includeAll": false, "multi": false, "options": [], "refresh": 1, "skipUrlSync": false,
    })
}

fn source() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

impl Variable {
    fn json(&self) -> Value {
        let mut value = json!({
            "name": self.name, "label": self.label, "type": "query", "datasource": source(),
            "definition": self.query,
            "query": {"qryType": 1, "query": self.query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
            "current": {}, "hide": 0, "includeAll": self.multi, "multi": self.multi, "options": [],
            // When the range changes: what is chosen depends on what there is.
            "refresh": 2, "regex": "", "skipUrlSync": false, "sort": 7,
        });
        if self.multi {
            value["current"] = json!({"selected": true, "text": ["All"], "value": ["$__all"]});
            // All names of a thousand interfaces would be a long query.
            value["allValue"] = json!(".+");
        }
        value
    }
}

impl Panel {
    /// Width and height.
    fn size(&self) -> (u32, u32) {
        match self.kind {
            Kind::Stat => (self.width.unwrap_or(WIDTHS[0]), HEIGHTS[1]),
            Kind::Lines | Kind::Table => (self.width.unwrap_or(WIDTHS[1]), HEIGHTS[2]),
        }
    }

    fn json(&self, id: u32, place: &Value) -> Value {
        let mut value = json!({
            "id": id, "title": self.title, "description": self.description, "gridPos": place, "datasource": source(),
            "type": match self.kind { Kind::Lines => "timeseries", Kind::Stat => "stat", Kind::Table => "table" },
            "targets": self.targets(),
            "fieldConfig": {"defaults": self.field(), "overrides": []},
            "options": self.options(),
        });
        if self.kind == Kind::Table {
            let names: serde_json::Map<String, Value> = self
                .queries
                .iter()
                .zip(references())
                .map(|(query, of)| (format!("Value #{of}"), json!(query.legend)))
                .collect();
            value["transformations"] = json!([
                {"id": "merge", "options": {}},
                {"id": "organize", "options": {"excludeByName": {"Time": true}, "indexByName": {}, "renameByName": names}},
            ]);
        }
        value
    }

    fn targets(&self) -> Vec<Value> {
        let is_range = self.kind == Kind::Lines;
        let target = |(query, reference): (&PanelQuery, String)| {
            json!({
                "refId": reference, "datasource": source(), "expr": query.expr, "legendFormat": query.legend,
                "range": is_range, "instant": !is_range, "editorMode": "code", "exemplar": false,
                "format": if self.kind == Kind::Table { "table" } else { "time_series" },
            })
        };
        self.queries.iter().zip(references()).map(target).collect()
    }

    /// How values are shown.
    fn field(&self) -> Value {
        let mut steps = vec![json!({"color": "green", "value": null})];
        steps.extend(self.warn.map(|value| json!({"color": "red", "value": value})));
        let mut field = json!({
            "unit": self.unit,
            "color": {"mode": if self.kind == Kind::Lines { "palette-classic" } else { "thresholds" }},
            "mappings": [],
            "thresholds": {"mode": "absolute", "steps": steps},
        });
        for (key, bound) in [("min", self.min), ("max", self.max)] {
            if let Some(bound) = bound {
                field[key] = json!(bound);
            }
        }
        field["custom"] = match self.kind {
            Kind::Lines => json!({
                "drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 1, "showPoints": "never", "spanNulls": false,
                "fillOpacity": if self.stack { 60 } else { 10 },
                "stacking": {"group": "A", "mode": if self.stack { "normal" } else { "none" }},
            }),
            Kind::Table => json!({"align": "auto", "cellOptions": {"type": "auto"}, "inspect": false}),
            Kind::Stat => json!({}),
        };
        field
    }

    fn options(&self) -> Value {
        let reduced = json!({"calcs": ["lastNotNull"], "fields": "", "values": false});
        match self.kind {
            Kind::Lines => json!({
                "legend": {"calcs": ["mean", "max"], "displayMode": "table", "placement": "bottom", "showLegend": true},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }),
            Kind::Stat => json!({
                "colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto", "textMode": "auto",
                "reduceOptions": reduced,
            }),
            Kind::Table => json!({"showHeader": true, "cellHeight": "sm", "footer": {"show": false}}),
        }
    }
}

/// `A`, `B` and so on.
fn references() -> impl Iterator<Item = String> {
    ('A'..='Z').map(String::from)
}
