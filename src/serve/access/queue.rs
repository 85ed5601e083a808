//! Whose unknown tokens the API server is asked about: those of a few, and of each address fewer still, so that no
//! stranger takes every place. Pure.

use std::collections::HashMap;
use std::net::IpAddr;

/// How many may be waiting for an answer. Fewer than a server has connections: those that wait here keep theirs.
const ALL: usize = 32;
/// How many of one address.
const EACH: usize = 4;

/// Those who wait for an answer.
#[derive(Debug, Default)]
pub struct Queue {
    of: HashMap<IpAddr, usize>,
    all: usize,
}

impl Queue {
    /// Whether one more of this address may wait. Whoever may has to leave.
    pub fn join(&mut self, peer: IpAddr) -> bool {
        let there = self.of.get(&peer).copied().unwrap_or_default();
        let may = self.all < ALL && there < EACH;
        if may {
            self.all += 1;
            self.of.insert(peer, there + 1);
        }
        may
    }

    /// One of this address waits no more.
    pub fn leave(&mut self, peer: IpAddr) {
        let Some(there) = self.of.get_mut(&peer) else {
            return;
        };
        self.all -= 1;
        *there -= 1;
        if *there == 0 {
            self.of.remove(&peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: usize) -> IpAddr {
        IpAddr::from([10, 0, 0, u8::try_from(number).unwrap()])
    }

    #[test]
    fn nobody_takes_the_places_of_others() {
        let mut queue = Queue::default();
        let joined = (0..100).filter(|_| queue.join(peer(1))).count();
        assert_eq!(joined, EACH);
        assert!(queue.join(peer(2)));
        queue.leave(peer(1));
        assert!(queue.join(peer(1)));
        assert!(!queue.join(peer(1)));
    }

    #[test]
    fn places_are_few_however_many_come() {
        let mut queue = Queue::default();
        let all: Vec<_> = (0..200).map(|number| peer(number % 50)).collect();
        let joined: Vec<_> = all.into_iter().filter(|peer| queue.join(*peer)).collect();
        assert_eq!(joined.len(), ALL);
        for peer in joined {
            queue.leave(peer);
            queue.leave(IpAddr::from([10, 0, 0, 99]));
        }
        assert_eq!(queue.all, 0);
        assert!(queue.of.is_empty());
    }
}
