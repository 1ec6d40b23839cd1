//! What a device has: its tables are walked, and each row that is wanted becomes a target and an RRD.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ::snmp::names;
use ::snmp::oid::Oid;
use ::snmp::value::{OwnedValue, Value};

use super::State;
use crate::inventory::RrdSpec;
use crate::snmp::answer::{WalkedRow, text_of};
use crate::snmp::engine::{DeviceId, Engine, Handler as _, Now};
use crate::snmp::plan::{Column, Plan, Row, Shape};
use crate::snmp::profile::SourceKind;
use crate::snmp::rules;
use crate::snmp::source::{DISCOVER_MIN, PolledTable};

/// Microseconds between two discoveries of a device at least.
const PAUSE_MICROS: u64 = DISCOVER_MIN * 1_000_000;

/// The walk that asks whether a device answers at all: `sysUpTime`.
const PROBE: u32 = u32::MAX;

/// The discovery of a device.
#[derive(Debug)]
pub(super) struct Discovery {
    tables: Vec<PolledTable>,
    /// Microseconds until it is looked again without a reason.
    every: u64,
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

/// What becomes of rows.
#[derive(Default)]
struct PlannedRows {
    /// The names of their RRDs.
    paths: HashSet<String>,
    /// Those of one table.
    groups: Groups,
    /// Objects that rows lack, by the key of the row and the number of the column.
    absent: Vec<(u32, u16)>,
}

impl Discovery {
    pub(super) fn new(tables: Vec<PolledTable>, every: u64) -> Self {
        Discovery {
            found: vec![Vec::new(); tables.len()],
            tables,
            every,
            outstanding: 0,
            succeeded: 0,
            has_begun: false,
            is_silent: false,
            began: 0,
            due: u64::MAX,
        }
    }

    /// What is walked.
    pub(super) fn tables(&self) -> &[PolledTable] {
        &self.tables
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(super) fn is_due(&self, now: Now) -> bool {
        self.outstanding == 0 && self.due <= now.mono
    }

    /// Something has changed: looks again as soon as the pause allows.
    pub(super) fn want(&mut self, now: Now) {
        self.due = self.due.min((self.began + PAUSE_MICROS).max(now.mono));
    }

    pub(super) fn begin(&mut self, id: DeviceId, now: Now, engine: &mut Engine) {
        (self.has_begun, self.began, self.due) = (true, now.mono, u64::MAX);
        if self.is_silent {
            self.outstanding = 1;
            if let Some(oid) = Oid::from_arcs(names::SYS_UP_TIME) {
                engine.probe(id, PROBE, oid);
            }
            return;
        }
        (self.outstanding, self.succeeded) = (self.tables.len(), 0);
        for (nth, table) in self.tables.iter().enumerate() {
            let columns = table.spec.columns.iter().map(|column| column.oid.clone()).collect();
            engine.walk(id, nth as u32, columns);
        }
    }

    /// Takes the rows of one table. True when all have come and there is something to poll.
    pub(super) fn take(&mut self, table: u32, rows: Option<Vec<WalkedRow>>, now: Now) -> bool {
        self.outstanding = self.outstanding.saturating_sub(1);
        if table == PROBE {
            self.is_silent = rows.is_none();
            let pause = if self.is_silent { PAUSE_MICROS } else { 0 };
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
        let pause = if all { self.every } else { PAUSE_MICROS };
        self.due = self.due.min(now.mono + pause);
        self.is_silent = self.succeeded == 0;
        !self.is_silent
    }
}

/// A value as a reference column is compared with it.
fn expected_of(value: &OwnedValue) -> Vec<u8> {
    match value.value() {
        Value::Bytes(bytes) => bytes.to_vec(),
        _ => text_of(value).into_bytes(),
    }
}

impl State {
    /// What is to be polled of a device after its discovery.
    pub(super) fn plan(&mut self, id: DeviceId) -> Plan {
        let mut plan = Plan::default();
        let mut found = PlannedRows::default();
        self.devices[id.index()].rrds.clear();
        let tables = self.devices[id.index()].discovery.tables.clone();
        for (nth, table) in tables.iter().enumerate() {
            let rows = std::mem::take(&mut self.devices[id.index()].discovery.found[nth]);
            for row in &rows {
                self.take_row(id, table, row, &mut found);
            }
            let PolledTable { spec, .. } = table;
            for (columns, targets) in &std::mem::take(&mut found.groups) {
                let columns: Vec<Column> = columns
                    .iter()
                    .enumerate()
                    .map(|(place, &at)| {
                        let is_reference = place >= spec.sources.len();
                        Column { is_reference, ..Column::value(spec.columns[at].oid.clone()) }
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
        plan.leave_out(&found.absent);
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
    fn take_row(
        &mut self,
        id: DeviceId,
        PolledTable { spec, path }: &PolledTable,
        row: &WalkedRow,
        found: &mut PlannedRows,
    ) {
        let device = &self.devices[id.index()];
        let has = |at: &usize| row.values[*at].is_some();
        let named = spec.reference.iter().find(|at| has(at));
        if spec.sources.iter().all(|source| !source.columns.iter().any(has)) {
            return;
        }
        let reference = named.and_then(|&at| row.values[at].as_ref());
        let name = reference.map_or_else(|| row.index_text(), text_of);
        let source = &device.source;
        if !rules::wants((&source.only, &source.except), spec, row, &name) {
            return;
        }
        let mut path = path.path(&device.component, row, &name);
        if found.paths.contains(&path) {
            // Two rows of one name: both are kept apart by their index.
            path = path.replace(".rrd", &format!("-{}.rrd", row.index_text()));
        }
        found.paths.insert(path.clone());
        let mut columns = Vec::with_capacity(spec.sources.len() + 1);
        let mut args = Vec::new();
        let mut are_counters = Vec::new();
        for ds in &spec.sources {
            let at = ds.columns.iter().copied().find(|at| has(at)).unwrap_or(ds.columns[0]);
            let is_wide = matches!(row.values[at].as_ref().map(OwnedValue::value), Some(Value::Counter64(_)));
            // A counter of 64 bits never wraps: a smaller value is a reset, and unknown.
            let (kind, least) = match (ds.kind, is_wide) {
                (SourceKind::Gauge, _) => ("GAUGE", "U"),
                (SourceKind::Counter, true) => ("DERIVE", "0"),
                (SourceKind::Counter, false) => ("COUNTER", "0"),
            };
            args.push(source.ds_arg(&ds.name, kind, least));
            are_counters.push(ds.kind == SourceKind::Counter);
            columns.push(at);
        }
        args.extend(source.rra_args());
        let rrd_spec = RrdSpec { step: source.step, starts_before: source.step, args };
        let rrd_spec = Arc::clone(self.specs.entry(rrd_spec.clone()).or_insert_with(|| Arc::new(rrd_spec)));
        match self.inventory.find_or_define(path.as_bytes(), rrd_spec) {
            Ok(rrd) => {
                if let Some(title) = spec.title.and_then(|at| row.text(at)).filter(|title| !title.is_empty())
                {
                    self.titles.push((path.into_bytes(), title));
                }
                let assignment = self.devices[id.index()].source.assignment;
                self.inventory.assign(rrd, assignment);
                self.feed(rrd, are_counters.into());
                self.devices[id.index()].rrds.push(rrd);
                let lacking = (0..).zip(&columns).filter(|(_, at)| !has(at));
                found.absent.extend(lacking.map(|(column, _)| (rrd.index() as u32, column)));
                columns.extend(named);
                let expected = reference.map(expected_of).unwrap_or_default();
                found.groups.entry(columns).or_default().push((
                    rrd.index() as u32,
                    row.index.clone(),
                    expected,
                ));
            }
            Err(full) => {
                let name = self.devices[id.index()].name.clone();
                self.complaints.raise(&name, full.to_string());
            }
        }
    }
}
