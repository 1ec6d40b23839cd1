//! What is polled of a device on each step: targets, each a row of some columns.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use ::snmp::oid::{Oid, OidRef, Suffix};

/// Columns of a target at most: one GETBULK asks for all of them.
pub const COLUMNS_MAX: usize = 64;
/// A table of which more than this part is wanted is read by GETBULK, in percent.
const BULK_PERCENT: usize = 40;

/// A column of a table, or a single object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Column {
    /// The object, without the index of the row if [`Column::takes_index`].
    pub prefix: Oid,
    /// Whether the index of the target's row follows. Without, the object is the same for all targets of the shape.
    pub takes_index: bool,
    /// True for a reference: its value tells that the row is still the same, and must be the one its target expects.
    pub is_reference: bool,
    /// What a reference must hold, if that is the same for all targets of the shape.
    pub expected: Option<Box<[u8]>>,
}

impl Column {
    /// A column whose values are wanted.
    pub fn value(prefix: Oid) -> Self {
        Column { prefix, takes_index: true, is_reference: false, expected: None }
    }

    /// A column that identifies rows.
    pub fn reference(prefix: Oid) -> Self {
        Column { prefix, takes_index: true, is_reference: true, expected: None }
    }
}

/// The columns of targets of one kind; many devices share one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    columns: Vec<Column>,
}

impl Shape {
    /// A shape of 1 to [`COLUMNS_MAX`] columns.
    pub fn new(columns: Vec<Column>) -> Option<Arc<Self>> {
        (1..=COLUMNS_MAX).contains(&columns.len()).then(|| Arc::new(Shape { columns }))
    }

    /// Its columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
}

/// One target: its object identifiers are those of the shape's columns with its index.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// What the handler calls it.
    pub key: u32,
    index: Range<u32>,
    expected: Range<u32>,
}

/// Targets of one shape, in the order of their indexes.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub shape: Arc<Shape>,
    /// Positions of its targets.
    pub targets: Range<usize>,
    /// Whether it is read by GETBULK, where the version allows it.
    pub is_bulk: bool,
}

/// All targets of a device.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub(crate) blocks: Vec<Block>,
    targets: Vec<Target>,
    bytes: Vec<u8>,
    /// Objects that the device does not have, by target and column.
    pub(crate) absent: HashSet<(u32, u16)>,
}

/// A row that is to be polled.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// What outcomes call the target; the caller's own number.
    pub key: u32,
    /// The encoded index; empty if the columns are whole object identifiers.
    pub index: &'a [u8],
    /// What the reference column must hold: bytes, or a number in decimal digits.
    pub expected: &'a [u8],
}

impl Plan {
    /// Adds targets of one shape, of a table that has `table_rows` rows in all, if that is known.
    pub fn add<'a>(
        &mut self,
        shape: &Arc<Shape>,
        table_rows: Option<usize>,
        rows: impl Iterator<Item = Row<'a>>,
    ) {
        let start = self.targets.len();
        for row in rows {
            let index = self.keep(row.index);
            let expected = self.keep(row.expected);
            self.targets.push(Target { key: row.key, index, expected });
        }
        let bytes = &self.bytes;
        let index =
            |target: &Target| Suffix::new(&bytes[target.index.start as usize..target.index.end as usize]);
        self.targets[start..].sort_by(|a, b| index(a).cmp(&index(b)));
        let wanted = self.targets.len() - start;
        let indexed = shape.columns.iter().all(|column| column.takes_index);
        let is_bulk =
            indexed && wanted > 1 && table_rows.is_some_and(|rows| wanted * 100 > rows * BULK_PERCENT);
        if wanted > 0 {
            self.blocks.push(Block { shape: Arc::clone(shape), targets: start..self.targets.len(), is_bulk });
        }
    }

    /// These objects, by the key of their target and the number of their column, are not asked for one by one: the device does not
    /// have them.
    pub fn leave_out(&mut self, objects: &[(u32, u16)]) {
        if objects.is_empty() {
            return;
        }
        let places = self.targets.iter().enumerate().map(|(at, target)| (target.key, at as u32));
        let places: HashMap<u32, u32> = places.collect();
        let absent = objects.iter().filter_map(|(key, column)| Some((*places.get(key)?, *column)));
        self.absent.extend(absent);
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<u32> {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len() as u32
    }

    /// How many targets there are.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    pub(crate) fn target(&self, at: usize) -> &Target {
        &self.targets[at]
    }

    /// The encoded index of a target.
    pub(crate) fn index(&self, at: usize) -> &[u8] {
        let range = &self.targets[at].index;
        &self.bytes[range.start as usize..range.end as usize]
    }

    /// What a reference column must hold for a target.
    pub(crate) fn expected<'a>(&'a self, column: &'a Column, at: usize) -> &'a [u8] {
        if let Some(expected) = &column.expected {
            return expected;
        }
        let range = &self.targets[at].expected;
        &self.bytes[range.start as usize..range.end as usize]
    }

    /// The index as it follows a column's prefix.
    pub(crate) fn index_for(&self, column: &Column, at: usize) -> &[u8] {
        if column.takes_index { self.index(at) } else { &[] }
    }

    /// Whether `oid` is that of a column for a target.
    pub(crate) fn is_object(&self, oid: OidRef<'_>, column: &Column, at: usize) -> bool {
        let index = self.index_for(column, at);
        let prefix = column.prefix.as_ref().bytes();
        let bytes = oid.bytes();
        bytes.len() == prefix.len() + index.len() && bytes.ends_with(index) && bytes.starts_with(prefix)
    }

    /// The object identifier of a column for a target, for messages.
    pub(crate) fn object(&self, column: &Column, at: usize) -> Oid {
        match Suffix::new(self.index_for(column, at)) {
            Some(index) => column.prefix.join_suffix(index),
            None => column.prefix.clone(),
        }
    }
}
