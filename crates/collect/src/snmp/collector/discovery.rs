//! What a device has: its tables are walked, and each row that is wanted becomes a target and an RRD.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ::snmp::oid::Oid;
use ::snmp::value::{OwnedValue, Value};

use super::{DISCOVER_MICROS, DISCOVER_PAUSE_MICROS, State};
use crate::host::safe_component;
use crate::inventory::RrdSpec;
use crate::snmp::answer::WalkedRow;
use crate::snmp::engine::{DeviceId, Engine, Handler as _, Now};
use crate::snmp::plan::{Column, Plan, Row, Shape};
use crate::snmp::profile::{SourceKind, TableSpec};

/// How long rows of which length are kept: (seconds of a row, seconds kept).
const ARCHIVES: [(u64, u64); 4] =
    [(1, 2 * 86_400), (300, 14 * 86_400), (1_800, 62 * 86_400), (86_400, 732 * 86_400)];

/// The walk that asks whether a device answers at all: `sysUpTime`.
const PROBE: u32 = u32::MAX;
const SYS_UP_TIME: [u32; 8] = [1, 3, 6, 1, 2, 1, 1, 3];

/// The discovery of a device.
#[derive(Debug)]
pub(super) struct Discovery {
    tables: Vec<Arc<TableSpec>>,
    found: Vec<Vec<WalkedRow>>,
    /// Walks that have not ended.
    outstanding: usize,
    /// Walks of this round that brought something.
    succeeded: usize,
    has_begun: bool,
    /// Whether nothing was answered the last time: then it is first asked whether it answers at all.
    is_silent: bool,
    /// When the last one began, and when the next is due.
    began: u64,
    due: u64,
}

/// Rows that are polled by the same columns.
type Groups = BTreeMap<Vec<usize>, Vec<(u32, Box<[u8]>, Vec<u8>)>>;

/// The arguments of `rrdcreate(1)` for the archives of RRDs with this step.
pub(super) fn archives(step: u64) -> impl Iterator<Item = String> {
    let wanted = ARCHIVES.iter().enumerate().filter(move |(nth, (row, _))| *nth == 0 || *row > step);
    let rows = wanted.map(move |(_, (row, kept))| {
        let steps = (row / step).max(1);
        (steps, kept / (steps * step))
    });
    let rows: Vec<(u64, u64)> = rows.collect();
    ["AVERAGE", "MAX"].into_iter().flat_map(move |cf| {
        rows.clone().into_iter().map(move |(steps, rows)| format!("RRA:{cf}:0.5:{steps}:{rows}"))
    })
}

impl Discovery {
    pub(super) fn new(tables: Vec<TableSpec>) -> Self {
        Discovery {
            found: vec![Vec::new(); tables.len()],
            tables: tables.into_iter().map(Arc::new).collect(),
            outstanding: 0,
            succeeded: 0,
            has_begun: false,
            is_silent: false,
            began: 0,
            due: u64::MAX,
        }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(super) fn is_due(&self, now: Now) -> bool {
        self.outstanding == 0 && self.due <= now.mono
    }

    /// Something has changed: looks again as soon as the pause allows.
    pub(super) fn want(&mut self, now: Now) {
        self.due = self.due.min((self.began + DISCOVER_PAUSE_MICROS).max(now.mono));
    }

    pub(super) fn begin(&mut self, id: DeviceId, now: Now, engine: &mut Engine) {
        (self.has_begun, self.began, self.due) = (true, now.mono, u64::MAX);
        if self.is_silent {
            self.outstanding = 1;
            engine.walk(id, PROBE, Oid::from_arcs(&SYS_UP_TIME).into_iter().collect());
            return;
        }
        (self.outstanding, self.succeeded) = (self.tables.len(), 0);
        for (nth, table) in self.tables.iter().enumerate() {
            let columns = table.columns.iter().map(|(_, oid)| oid.clone()).collect();
            engine.walk(id, nth as u32, columns);
        }
    }

    /// Takes the rows of one table. True when all have come and there is something to poll.
    pub(super) fn take(&mut self, table: u32, rows: Option<Vec<WalkedRow>>, now: Now) -> bool {
        self.outstanding = self.outstanding.saturating_sub(1);
        if table == PROBE {
            self.is_silent = rows.is_none();
            let pause = if self.is_silent { DISCOVER_PAUSE_MICROS } else { 0 };
            self.due = self.due.min(now.mono + pause);
            return false;
        }
        if let Some(rows) = rows {
            self.found[table as usize] = rows;
            self.succeeded += 1;
        }
        if self.outstanding > 0 {
            return false;
        }
        let all = self.succeeded == self.tables.len();
        let pause = if all { DISCOVER_MICROS } else { DISCOVER_PAUSE_MICROS };
        self.due = self.due.min(now.mono + pause);
        self.is_silent = self.succeeded == 0;
        !self.is_silent
    }
}

/// A value as a part of a name.
fn text_of(value: &OwnedValue) -> String {
    match value.value() {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Gauge32(number) | Value::Counter32(number) => number.to_string(),
        Value::Oid(oid) => oid.to_string(),
        _ => String::new(),
    }
}

/// A value as a reference column is compared with it.
fn expected_of(value: &OwnedValue) -> Vec<u8> {
    match value.value() {
        Value::Bytes(bytes) => bytes.to_vec(),
        _ => text_of(value).into_bytes(),
    }
}

/// The path of a row's RRD.
fn path_of(table: &TableSpec, device: &str, row: &WalkedRow, name: &str) -> String {
    let mut path = table.path.replace("{device}", device);
    path = path.replace("{name}", &safe_component(name)).replace("{index}", &row.index_text());
    for ((column, _), value) in table.columns.iter().zip(&row.values) {
        let pattern = format!("{{{column}}}");
        if path.contains(&pattern) {
            let text = value.as_ref().map(text_of).unwrap_or_default();
            path = path.replace(&pattern, &safe_component(&text));
        }
    }
    path
}

impl State {
    /// What is to be polled of a device after its discovery.
    pub(super) fn plan(&mut self, id: DeviceId) -> Plan {
        let mut plan = Plan::default();
        let mut paths = HashSet::new();
        self.devices[id.index()].rrds.clear();
        let tables = self.devices[id.index()].discovery.tables.clone();
        for (nth, table) in tables.iter().enumerate() {
            let rows = std::mem::take(&mut self.devices[id.index()].discovery.found[nth]);
            let mut groups = Groups::new();
            for row in &rows {
                self.group_row(id, table, row, &mut paths, &mut groups);
            }
            for (columns, targets) in &groups {
                let columns: Vec<Column> = columns
                    .iter()
                    .enumerate()
                    .map(|(place, &at)| {
                        let is_reference = place >= table.sources.len();
                        Column { is_reference, ..Column::value(table.columns[at].1.clone()) }
                    })
                    .collect();
                if let Some(shape) = self.shape(columns) {
                    let targets =
                        targets.iter().map(|(key, index, expected)| Row { key: *key, index, expected });
                    plan.add(&shape, Some(rows.len()), targets);
                }
            }
            self.devices[id.index()].discovery.found[nth] = rows;
        }
        if plan.is_empty() {
            let name = self.devices[id.index()].name.clone();
            self.complaints.raise(&name, "it has nothing that its profiles ask for");
        } else {
            self.is_well(id);
        }
        plan
    }

    fn shape(&mut self, columns: Vec<Column>) -> Option<Arc<Shape>> {
        if let Some(shape) = self.shapes.get(&columns) {
            return Some(Arc::clone(shape));
        }
        let shape = Shape::new(columns.clone())?;
        self.shapes.insert(columns, Arc::clone(&shape));
        Some(shape)
    }

    /// Adds a row to the targets that have the same columns.
    fn group_row(
        &mut self,
        id: DeviceId,
        table: &TableSpec,
        row: &WalkedRow,
        paths: &mut HashSet<String>,
        groups: &mut Groups,
    ) {
        let device = &self.devices[id.index()];
        let has = |at: &usize| row.values[*at].is_some();
        let named = table.reference.iter().find(|at| has(at));
        if table.sources.iter().all(|source| !source.columns.iter().any(has)) {
            return;
        }
        let reference = named.and_then(|&at| row.values[at].as_ref());
        let name = reference.map_or_else(|| row.index_text(), text_of);
        if !device.source.wants(&name) {
            return;
        }
        let mut path = path_of(table, &device.component, row, &name);
        if paths.contains(&path) {
            // Two rows of one name: both are kept apart by their index.
            path = path.replace(".rrd", &format!("-{}.rrd", row.index_text()));
        }
        paths.insert(path.clone());
        let step = device.source.step;
        let mut columns = Vec::with_capacity(table.sources.len() + 1);
        let mut args = Vec::new();
        let mut are_counters = Vec::new();
        for source in &table.sources {
            let at = source.columns.iter().copied().find(|at| has(at)).unwrap_or(source.columns[0]);
            let is_wide = matches!(row.values[at].as_ref().map(OwnedValue::value), Some(Value::Counter64(_)));
            // A counter of 64 bits never wraps: a smaller value is a reset, and unknown.
            let (kind, least) = match (source.kind, is_wide) {
                (SourceKind::Gauge, _) => ("GAUGE", "U"),
                (SourceKind::Counter, true) => ("DERIVE", "0"),
                (SourceKind::Counter, false) => ("COUNTER", "0"),
            };
            args.push(format!("DS:{}:{kind}:{}:{least}:U", source.name, step * 2));
            are_counters.push(source.kind == SourceKind::Counter);
            columns.push(at);
        }
        args.extend(archives(step));
        let spec = RrdSpec { step, starts_before: step, args };
        let spec = Arc::clone(self.specs.entry(spec.clone()).or_insert_with(|| Arc::new(spec)));
        match self.inventory.find_or_add(path.as_bytes(), || spec) {
            Ok(rrd) => {
                self.feed(rrd, are_counters.into());
                self.devices[id.index()].rrds.push(rrd);
                columns.extend(named);
                let expected = reference.map(expected_of).unwrap_or_default();
                groups.entry(columns).or_default().push((rrd.index() as u32, row.index.clone(), expected));
            }
            Err(full) => {
                let name = self.devices[id.index()].name.clone();
                self.complaints.raise(&name, full.to_string());
            }
        }
    }
}
