//! Chance that follows from a seed.

use std::time::{SystemTime, UNIX_EPOCH};

/// A random number generator (`SplitMix64`) that repeats for the same seed.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// A number below this one, which must be above 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % end).unwrap_or_default()
    }

    /// True with this probability in percent.
    pub(crate) fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A random item of a list, which must not be empty.
    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// Another seed each time, short enough to type.
pub(crate) fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = now.map_or(0, |now| now.subsec_nanos());
    Chance::of(nanos.into()).next() % 1_000_000
}
