//! What an agent is asked for in a pass: each term as a row of objects, with those that tell whether an interface is still the same.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ::snmp::names;
use ::snmp::oid::{Oid, push_arc};

use super::lookup::{Column as LookedUp, Kind, Place};
use crate::mrtg::plan::TermId;
use crate::mrtg::term::{How, InterfaceReference, ObjectQuery, ObjectSpec, SnmpTerm};
use crate::snmp::plan::{Column, Plan, Row, Shape};

/// The key of the row that stands for nothing: with it, a pass over an agent of which nothing is known still asks whether it is there.
pub(super) const PLACEHOLDER: u32 = u32::MAX;

/// What is known of the interfaces of an agent.
pub(super) type Interfaces = BTreeMap<Kind, LookedUp>;

/// Rows with the same columns: key, index, what a reference holds.
type Keyed = Vec<(u32, Vec<u8>, Vec<u8>)>;

/// What is asked for a term, before terms of the same columns are put together.
struct PlannedRow {
    columns: Vec<Column>,
    index: Vec<u8>,
    expected: Vec<u8>,
}

/// A walk for a term: `WaLK` and the like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TermWalk {
    pub oid: Oid,
    pub how: How,
    pub term: TermId,
    pub is_output: bool,
}

/// The objects of a term with what they are in it: false for the first value.
pub(super) fn queries(term: &SnmpTerm) -> impl Iterator<Item = (bool, &ObjectQuery)> {
    [(false, &term.input), (true, &term.output)].into_iter().filter_map(|(is_output, object)| match object {
        ObjectSpec::Object(query) => Some((is_output, query)),
        _ => None,
    })
}

/// The interfaces that a term names.
pub(super) fn references(term: &SnmpTerm) -> impl Iterator<Item = &InterfaceReference> {
    queries(term).filter_map(|(_, query)| query.interface.as_ref())
}

/// The ifIndex of an interface and, if it was looked up, where.
fn locate<'a>(
    interfaces: &'a Interfaces,
    reference: &InterfaceReference,
) -> Option<(u32, Option<(Kind, &'a Place)>)> {
    if let InterfaceReference::Number(index) = reference {
        return Some((*index, None));
    }
    let (kind, key) = Kind::of(reference)?;
    let place = interfaces.get(&kind)?.find(&key)?;
    Some((place.index, Some((kind, place))))
}

/// True when a term's interfaces are known.
pub(super) fn is_located(interfaces: &Interfaces, reference: &InterfaceReference) -> bool {
    locate(interfaces, reference).is_some()
}

/// The plan of a pass for these terms, and those of them that it does not contain.
pub(super) fn plan<'a>(
    interfaces: &Interfaces,
    terms: impl Iterator<Item = (TermId, &'a SnmpTerm)>,
) -> (Plan, Vec<TermId>) {
    let mut groups: Vec<(Vec<Column>, Keyed)> = Vec::new();
    let mut by_columns: HashMap<Vec<Column>, usize> = HashMap::new();
    let mut left_out = Vec::new();
    for (id, term) in terms {
        let Some(row) = row_of_term(interfaces, term) else {
            left_out.push(id);
            continue;
        };
        let group = *by_columns.entry(row.columns.clone()).or_insert_with(|| {
            groups.push((row.columns, Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push((id as u32, row.index, row.expected));
    }
    if groups.is_empty() {
        let uptime =
            Oid::from_arcs(names::SYS_UP_TIME).map(|oid| Column { takes_index: false, ..Column::value(oid) });
        groups.push((uptime.into_iter().collect(), vec![(PLACEHOLDER, Vec::new(), Vec::new())]));
    }
    let mut plan = Plan::default();
    for (columns, rows) in groups {
        let Some(shape): Option<Arc<Shape>> = Shape::new(columns) else { continue };
        let rows = rows.iter().map(|(key, index, expected)| Row { key: *key, index, expected });
        plan.add(&shape, None, rows);
    }
    (plan, left_out)
}

/// The row of a term; nothing when no object of it is asked for, or an interface is not known.
fn row_of_term(interfaces: &Interfaces, term: &SnmpTerm) -> Option<PlannedRow> {
    let asked: Vec<&ObjectQuery> =
        queries(term).map(|(_, query)| query).filter(|query| query.how == How::Get).collect();
    let first = asked.first()?;
    let is_row =
        asked.iter().all(|query| query.interface == first.interface && query.index_position.is_none());
    match (&first.interface, is_row) {
        (Some(reference), true) => row_of_interface(interfaces, reference, &asked),
        (None, true) => row_of_objects(&asked),
        _ => whole_objects(interfaces, &asked),
    }
}

/// Columns that many interfaces share, with the index of one.
fn row_of_interface(
    interfaces: &Interfaces,
    reference: &InterfaceReference,
    asked: &[&ObjectQuery],
) -> Option<PlannedRow> {
    let (number, place) = locate(interfaces, reference)?;
    let mut index = Vec::new();
    push_arc(&mut index, number);
    let columns = asked.iter().map(|query| Oid::from_arcs(&query.oid).map(Column::value));
    let mut columns: Vec<Column> = columns.collect::<Option<_>>()?;
    let expected = match place {
        // The address of an interface is no column of its row.
        Some((Kind::Ip, place)) => {
            columns.push(own_reference(reference, Kind::Ip, place)?);
            Vec::new()
        }
        Some((kind, place)) => {
            columns.push(Column::reference(Oid::from_arcs(kind.column())?));
            place.holds.clone()
        }
        None => Vec::new(),
    };
    Some(PlannedRow { columns, index, expected })
}

/// Whole objects: those that end alike, such as the errors of one interface, share their columns with others.
fn row_of_objects(asked: &[&ObjectQuery]) -> Option<PlannedRow> {
    let last = asked.first()?.oid.last()?;
    let is_alike = asked.iter().all(|query| query.oid.len() > 3 && query.oid.last() == Some(last));
    if !is_alike {
        return whole_objects(&Interfaces::new(), asked);
    }
    let mut index = Vec::new();
    push_arc(&mut index, *last);
    let columns =
        asked.iter().map(|query| Oid::from_arcs(&query.oid[..query.oid.len() - 1]).map(Column::value));
    Some(PlannedRow { columns: columns.collect::<Option<_>>()?, index, expected: Vec::new() })
}

/// Each object with its own index, and each interface with its own reference.
fn whole_objects(interfaces: &Interfaces, asked: &[&ObjectQuery]) -> Option<PlannedRow> {
    let mut columns = Vec::new();
    let mut checks = Vec::new();
    for query in asked {
        let prefix = object(interfaces, query)?;
        columns.push(Column { takes_index: false, ..Column::value(prefix) });
        if let Some(reference) = &query.interface
            && let Some((kind, place)) = locate(interfaces, reference)?.1
        {
            let check = own_reference(reference, kind, place)?;
            if !checks.contains(&check) {
                checks.push(check);
            }
        }
    }
    columns.extend(checks);
    Some(PlannedRow { columns, index: Vec::new(), expected: Vec::new() })
}

/// The object that tells whether an interface is still where it was found.
fn own_reference(reference: &InterfaceReference, kind: Kind, place: &Place) -> Option<Column> {
    let mut arcs = kind.column().to_vec();
    match reference {
        InterfaceReference::Ip(address) => arcs.extend(address.octets().map(u32::from)),
        _ => arcs.push(place.index),
    }
    let expected = Some(place.holds.clone().into_boxed_slice());
    Some(Column { prefix: Oid::from_arcs(&arcs)?, takes_index: false, is_reference: true, expected })
}

/// The whole object of a query.
fn object(interfaces: &Interfaces, query: &ObjectQuery) -> Option<Oid> {
    let mut arcs = query.oid.clone();
    if let Some(reference) = &query.interface {
        let at = query.index_position.unwrap_or(arcs.len()).min(arcs.len());
        arcs.insert(at, locate(interfaces, reference)?.0);
    }
    Oid::from_arcs(&arcs)
}

/// The walks of a term whose interfaces are known.
pub(super) fn walks(interfaces: &Interfaces, id: TermId, term: &SnmpTerm) -> Vec<TermWalk> {
    let walked = queries(term).filter(|(_, query)| query.how != How::Get);
    let walks = walked.filter_map(|(is_output, query)| {
        Some(TermWalk { oid: object(interfaces, query)?, how: query.how, term: id, is_output })
    });
    walks.collect()
}

/// An object as messages name it.
pub(super) fn describe(query: &ObjectQuery) -> String {
    let oid: String = query.oid.iter().map(|arc| format!(".{arc}")).collect();
    match &query.interface {
        None => oid,
        Some(reference) => format!("{oid} of {}", describe_interface(reference)),
    }
}

/// An interface as messages name it.
pub(super) fn describe_interface(reference: &InterfaceReference) -> String {
    match reference {
        InterfaceReference::Number(index) => format!("interface {index}"),
        InterfaceReference::Ip(address) => format!("the interface with the address {address}"),
        InterfaceReference::Descr(text) => format!("the interface with the description \"{text}\""),
        InterfaceReference::Name(text) => format!("the interface \"{text}\""),
        InterfaceReference::Mac(bytes) => {
            let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("the interface with the Ethernet address {}", pairs.join("-"))
        }
        InterfaceReference::Type(number) => format!("the interface of type {number}"),
    }
}
