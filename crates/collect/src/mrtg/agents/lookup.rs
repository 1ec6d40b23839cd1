//! Where interfaces are that are known by a name, an address or a type: the columns of an agent in which they are looked up.

use std::collections::HashMap;

use ::snmp::names;
use ::snmp::value::{OwnedValue, Value};

use crate::mrtg::term::InterfaceReference;
use crate::snmp::answer::WalkedRow;

/// The columns in which interfaces are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Descr,
    Type,
    Mac,
    Name,
    Ip,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] = [Kind::Descr, Kind::Type, Kind::Mac, Kind::Name, Kind::Ip];

    pub(super) fn column(self) -> &'static [u32] {
        match self {
            Kind::Descr => names::IF_DESCR,
            Kind::Type => names::IF_TYPE,
            Kind::Mac => names::IF_PHYS_ADDRESS,
            Kind::Name => names::IF_NAME,
            Kind::Ip => names::IP_AD_ENT_IF_INDEX,
        }
    }

    /// Where to look for an interface, and by what; for an address, that is the row's index as text.
    pub(super) fn of(reference: &InterfaceReference) -> Option<(Kind, Vec<u8>)> {
        match reference {
            InterfaceReference::Number(_) => None,
            InterfaceReference::Ip(address) => Some((Kind::Ip, address.to_string().into_bytes())),
            InterfaceReference::Descr(text) => Some((Kind::Descr, text.clone().into_bytes())),
            InterfaceReference::Name(text) => Some((Kind::Name, text.clone().into_bytes())),
            InterfaceReference::Mac(bytes) => Some((Kind::Mac, bytes.clone())),
            InterfaceReference::Type(number) => Some((Kind::Type, number.to_string().into_bytes())),
        }
    }
}

/// An interface that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Its ifIndex.
    pub index: u32,
    /// What the column holds, so that it can be asked whether it still does.
    pub holds: Vec<u8>,
}

/// The interfaces of an agent by what a column holds; `None` where several hold the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Column(HashMap<Vec<u8>, Option<Place>>);

impl Column {
    /// Reads the rows of a walk.
    pub(super) fn of(kind: Kind, rows: &[WalkedRow]) -> Self {
        let mut column = Column::default();
        for row in rows {
            let Some(value) = row.values.first().and_then(Option::as_ref) else { continue };
            let found = match (kind, value) {
                (Kind::Ip, OwnedValue::Plain(Value::Integer(index))) => {
                    let holds = index.to_string().into_bytes();
                    let index = u32::try_from(*index).ok();
                    index.map(|index| (row.index_text().into_bytes(), Place { index, holds }))
                }
                (_, OwnedValue::Bytes(bytes)) => {
                    let index = row.index_text().parse().ok();
                    index.map(|index| (bytes.to_vec(), Place { index, holds: bytes.to_vec() }))
                }
                (_, OwnedValue::Plain(Value::Integer(number))) => {
                    let key = number.to_string().into_bytes();
                    let index = row.index_text().parse().ok();
                    index.map(|index| (key.clone(), Place { index, holds: key }))
                }
                _ => None,
            };
            let Some((key, place)) = found else { continue };
            // Descriptions of Windows end in a NUL, which is missing in configurations.
            let end = key.iter().rposition(|byte| !matches!(byte, 0 | b' ')).map_or(0, |at| at + 1);
            if matches!(kind, Kind::Descr | Kind::Name) && end < key.len() {
                column.add(key[..end].to_vec(), place.clone());
            }
            column.add(key, place);
        }
        column
    }

    /// Notes what is known of a key: a place, or that several interfaces have it.
    pub(super) fn note(&mut self, key: Vec<u8>, place: Option<Place>) {
        self.0.insert(key, place);
    }

    fn add(&mut self, key: Vec<u8>, place: Place) {
        self.0.entry(key).and_modify(|place| *place = None).or_insert(Some(place));
    }

    /// The only interface for which the column holds `key`.
    pub(super) fn find(&self, key: &[u8]) -> Option<&Place> {
        self.0.get(key)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::snmp::oid::push_arc;

    fn rows(rows: &[(&[u32], OwnedValue)]) -> Vec<WalkedRow> {
        rows.iter()
            .map(|(index, value)| {
                let mut encoded = Vec::new();
                index.iter().for_each(|arc| push_arc(&mut encoded, *arc));
                WalkedRow { index: encoded.into(), values: vec![Some(value.clone())] }
            })
            .collect()
    }

    #[test]
    fn interfaces_are_found_unless_two_are_alike() {
        let bytes = |text: &str| OwnedValue::Bytes(text.as_bytes().into());
        let descr = Column::of(
            Kind::Descr,
            &rows(&[(&[1], bytes("lo")), (&[300], bytes("PRO \0")), (&[4], bytes("a")), (&[5], bytes("a"))]),
        );
        assert_eq!(descr.find(b"PRO"), Some(&Place { index: 300, holds: b"PRO \0".to_vec() }));
        assert_eq!(descr.find(b"lo").map(|place| place.index), Some(1));
        assert_eq!((descr.find(b"a"), descr.find(b"b")), (None, None));
        let integer = |number| OwnedValue::Plain(Value::Integer(number));
        let kinds =
            Column::of(Kind::Type, &rows(&[(&[1], integer(24)), (&[2], integer(6)), (&[3], integer(6))]));
        assert_eq!(kinds.find(b"24").map(|place| place.index), Some(1));
        assert_eq!(kinds.find(b"6"), None);
        let addresses = Column::of(Kind::Ip, &rows(&[(&[10, 0, 0, 1], integer(7))]));
        assert_eq!(addresses.find(b"10.0.0.1"), Some(&Place { index: 7, holds: b"7".to_vec() }));
    }
}
