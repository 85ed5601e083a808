//! Places for requests at a server: so many in all, and fewer for each address, so that no client takes every place.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) struct Places {
    most: usize,
    /// The most of one address.
    each: usize,
    /// How many each address has.
    taken: Mutex<HashMap<IpAddr, usize>>,
}

/// A request's place, until it is dropped.
pub(crate) struct Place<'a> {
    places: &'a Places,
    peer: IpAddr,
}

impl Places {
    pub(crate) fn new(most: usize, each: usize) -> Self {
        Self {
            most,
            each,
            taken: Mutex::default(),
        }
    }

    /// A place for a request from this address, if one is free.
    pub(crate) fn take(&self, peer: IpAddr) -> Option<Place<'_>> {
        let mut taken = self.taken();
        let all: usize = taken.values().sum();
        let own = taken.get(&peer).copied().unwrap_or_default();
        let is_free = all < self.most && own < self.each;
        is_free.then(|| {
            taken.insert(peer, own + 1);
            Place { places: self, peer }
        })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        // No panic elsewhere leaves a half-made change.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        match taken.get_mut(&self.peer) {
            Some(own) if *own > 1 => *own -= 1,
            _ => {
                taken.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn one_address_cannot_take_every_place() {
        let places = Places::new(8, 4);
        let mut taken: Vec<_> = (0..100).filter_map(|_| places.take(peer(1))).collect();
        assert_eq!(taken.len(), 4);
        assert!(places.take(peer(2)).is_some());
        taken.pop();
        taken.extend(places.take(peer(1)));
        assert_eq!(taken.len(), 4);
        assert!(places.take(peer(1)).is_none());
    }

    #[test]
    fn there_is_a_bound_over_all_addresses() {
        let places = Places::new(8, 4);
        let all = (0..200).map(|number| peer(number % 50));
        let taken: Vec<_> = all.filter_map(|peer| places.take(peer)).collect();
        assert_eq!(taken.len(), 8);
        drop(taken);
        assert!(places.taken().is_empty());
    }
}
