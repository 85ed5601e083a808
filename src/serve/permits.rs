//! Permits for clients: so many in all, and fewer for each address, so that no client takes every one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::lock;

const NEVER_CLOSED: &str = "no semaphore is ever closed";

pub struct Permits {
    all: Arc<Semaphore>,
    /// The most of one address.
    each: usize,
    /// The addresses that have a permit or wait for one.
    addresses: Mutex<HashMap<IpAddr, Arc<Semaphore>>>,
}

/// One of all, and one of the address: given back when dropped.
pub(crate) type Permit = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Permits {
    pub fn new(all: usize, each: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            each,
            addresses: Mutex::default(),
        }
    }

    /// A permit for this address, at once or as soon as one is free.
    pub async fn take(&self, address: IpAddr) -> Permit {
        self.complete(self.begin(address).await).await
    }

    /// The address's part of a permit, at once or as soon as one is free.
    pub async fn begin(&self, address: IpAddr) -> OwnedSemaphorePermit {
        let own = self.of(address).acquire_owned().await;
        own.expect(NEVER_CLOSED)
    }

    /// The same, or `None` if the address has all that it may have.
    pub(crate) async fn take_within(&self, address: IpAddr) -> Option<Permit> {
        let own = self.of(address).try_acquire_owned().ok()?;
        Some(self.complete(own).await)
    }

    /// The rest of a permit, at once or as soon as one is free.
    pub async fn complete(&self, own: OwnedSemaphorePermit) -> Permit {
        let all = self.all.clone().acquire_owned().await;
        (all.expect(NEVER_CLOSED), own)
    }

    fn of(&self, address: IpAddr) -> Arc<Semaphore> {
        let mut addresses = lock(&self.addresses);
        addresses.retain(|_, permits| Arc::strong_count(permits) > 1);
        let own = addresses.entry(address);
        own.or_insert_with(|| Arc::new(Semaphore::new(self.each)))
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn address(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn one_address_cannot_take_every_permit() {
        let permits = Permits::new(8, 4);
        let take = || permits.take_within(address(1)).now_or_never().flatten();
        let mut taken: Vec<_> = (0..100).filter_map(|_| take()).collect();
        assert_eq!(taken.len(), 4);
        assert!(permits.take(address(1)).now_or_never().is_none());
        assert!(permits.take(address(2)).now_or_never().is_some());
        taken.pop();
        assert!(take().is_some());
    }

    #[test]
    fn there_is_a_bound_over_all_addresses_and_none_is_remembered() {
        let permits = Permits::new(8, 4);
        let all = (0..200).map(|number| address(number % 50));
        let taken = all.filter_map(|address| permits.take(address).now_or_never());
        assert_eq!(taken.collect::<Vec<_>>().len(), 8);
        assert!(permits.take(address(0)).now_or_never().is_some());
        permits.of(address(0));
        assert_eq!(permits.addresses.lock().unwrap().len(), 1);
    }
}
