//! Places for password checks: who guesses takes those of its own address, and never all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::peer::Peer;

/// Checks that may wait for their turn: some seconds.
pub const PLACES: usize = 64;
/// Of these, so many are only for addresses that have none yet.
const FIRST_PLACES: usize = 16;
/// Of one address.
const OF_ADDRESS_MAX: usize = 8;
/// Of one name at one address: clients of one program ask at once when it starts.
const OF_NAME_MAX: usize = 4;
/// Beside all these, for addresses from which a password was right before.
const KNOWN_PLACES: usize = 16;
/// Addresses from which a password was right.
const KNOWN_MAX: usize = 1000;

/// Where a client comes from: an address of IPv4, a network of IPv6 as one customer has it, or a user of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressGroup {
    /// Four bytes.
    V4([u8; 4]),
    /// The first 48 bits.
    V6([u8; 6]),
    /// A user's number.
    Unix(u32),
}

impl AddressGroup {
    /// Where the client at the other end of a connection comes from.
    pub fn of(peer: &Peer) -> AddressGroup {
        match peer {
            Peer::Unix { uid, .. } => AddressGroup::Unix(*uid),
            Peer::Tcp { address, .. } => match address.ip().to_canonical() {
                IpAddr::V4(address) => AddressGroup::V4(address.octets()),
                IpAddr::V6(address) => {
                    let [a, b, c, d, e, f, ..] = address.octets();
                    AddressGroup::V6([a, b, c, d, e, f])
                }
            },
        }
    }
}

/// All places.
#[derive(Debug, Default)]
pub struct Places(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    /// Those that wait, by where they come from and a hash of the name.
    waiting: HashMap<AddressGroup, Vec<[u8; 32]>>,
    /// Where a password was right, and when last.
    known: HashMap<AddressGroup, Instant>,
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub struct TakenPlace {
    places: Arc<Places>,
    origin: AddressGroup,
    name: [u8; 32],
}

impl Places {
    /// A place for a client of this origin who says this name, which is hashed, if there is one.
    pub fn take(self: &Arc<Self>, origin: AddressGroup, name: [u8; 32]) -> Option<TakenPlace> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let total: usize = taken.waiting.values().map(Vec::len).sum();
        let is_known = taken.known.contains_key(&origin);
        let own = taken.waiting.get(&origin).map_or(&[][..], Vec::as_slice);
        let of_name = own.iter().filter(|waiting| **waiting == name).count();
        let limit = match (is_known, own.is_empty()) {
            (true, _) => PLACES + KNOWN_PLACES,
            (false, true) => PLACES,
            (false, false) => PLACES - FIRST_PLACES,
        };
        if total >= limit || own.len() >= OF_ADDRESS_MAX || of_name >= OF_NAME_MAX {
            return None;
        }
        taken.waiting.entry(origin).or_default().push(name);
        Some(TakenPlace { places: Arc::clone(self), origin, name })
    }

    /// A password from there was right.
    pub fn know(&self, origin: AddressGroup) {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.known.len() >= KNOWN_MAX
            && !taken.known.contains_key(&origin)
            && let Some(oldest) = taken.known.iter().min_by_key(|(_, at)| **at).map(|(origin, _)| *origin)
        {
            taken.known.remove(&oldest);
        }
        taken.known.insert(origin, Instant::now());
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = taken.waiting.get_mut(&self.origin) else { return };
        if let Some(at) = own.iter().position(|name| *name == self.name) {
            own.swap_remove(at);
        }
        if own.is_empty() {
            taken.waiting.remove(&self.origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(number: u8) -> AddressGroup {
        AddressGroup::V4([10, 0, 0, number])
    }

    #[test]
    fn who_guesses_leaves_places_for_others() {
        let places = Arc::new(Places::default());
        // One address takes its own, with names of all kinds.
        let of_one: Vec<_> = (0..200).map_while(|guess| places.take(v4(1), [guess; 32])).collect();
        assert_eq!(of_one.len(), OF_ADDRESS_MAX);
        assert!(places.take(v4(1), [1; 32]).is_none() && places.take(v4(2), [1; 32]).is_some());
        // Many addresses take all but those for others.
        let mut of_many = Vec::new();
        for address in 2..60 {
            of_many.extend((0..8).map_while(|guess| places.take(v4(address), [guess; 32])));
        }
        assert!(of_many.len() + of_one.len() <= PLACES);
        drop(of_many);
        let of_few: Vec<_> = (2..20).flat_map(|address| (0..8).map(move |guess| (address, guess))).collect();
        let of_few: Vec<_> =
            of_few.iter().filter_map(|(address, guess)| places.take(v4(*address), [*guess; 32])).collect();
        assert!(places.take(v4(100), [0; 32]).is_some(), "{}", of_few.len());
        drop((of_one, of_few));
        assert!(places.0.lock().unwrap().waiting.is_empty());
    }

    #[test]
    fn one_name_of_an_address_leaves_places_for_its_other_names() {
        let places = Arc::new(Places::default());
        let guessed: Vec<_> = (0..20).map_while(|_| places.take(v4(1), [7; 32])).collect();
        assert_eq!(guessed.len(), OF_NAME_MAX);
        assert!(places.take(v4(1), [8; 32]).is_some());
    }

    #[test]
    fn where_a_password_was_right_there_is_room_when_all_are_taken() {
        let places = Arc::new(Places::default());
        places.know(v4(200));
        let all: Vec<_> = (1..=100).map_while(|address| places.take(v4(address), [0; 32])).collect();
        assert_eq!(all.len(), PLACES);
        assert!(places.take(v4(201), [0; 32]).is_none());
        assert!(places.take(v4(200), [0; 32]).is_some());
        // Of these, no more than there is memory for.
        for number in 0..3 * KNOWN_MAX as u32 {
            places.know(AddressGroup::Unix(number));
        }
        assert_eq!(places.0.lock().unwrap().known.len(), KNOWN_MAX);
    }

    #[test]
    fn networks_of_ipv6_count_as_one_address() {
        let of = |text: &str| {
            let address = std::net::SocketAddr::new(text.parse().unwrap(), 1);
            AddressGroup::of(&Peer::Tcp { address, certificate: None })
        };
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:ffff::9"));
        assert_ne!(of("2001:db8:1::1"), of("2001:db8:2::1"));
        assert_eq!(of("::ffff:10.0.0.1"), v4(1));
    }
}
