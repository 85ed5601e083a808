//! UIDs that follow from a seed.

/// A generator of UIDs that repeats for the same seed.
#[derive(Debug, Clone)]
pub(crate) struct Uids(u64);

impl Uids {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next UID, in the form of a random UUID (RFC 9562, version 4).
    pub(crate) fn next(&mut self) -> String {
        let (high, low) = (self.word(), self.word());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48 & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        )
    }

    /// `SplitMix64`: every seed gives another sequence.
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }
}
