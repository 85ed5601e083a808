//! DRA devices: has a driver published all of its devices on the node, and are they free of taints?

use std::collections::BTreeMap;
use std::fmt;

use crate::object::ResourceSlice;

pub(super) const DEVICES_PUBLISHED: &str = "DevicesPublished";
pub(super) const DEVICES_NOT_PUBLISHED: &str = "DevicesNotPublished";
pub(super) const DEVICES_TAINTED: &str = "DevicesTainted";

/// What a driver has published of its devices on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Devices<'a> {
    /// The driver.
    pub driver: &'a str,
    /// How many slices of the pools' newest generations are there.
    pub slices: usize,
    /// How many slices these pools have by their own count.
    pub expected: usize,
    /// How many devices are in the slices.
    pub total: usize,
    /// How many of them have a taint that keeps pods off.
    pub tainted: usize,
    /// Whether the cluster has `ResourceSlice`s.
    pub is_served: bool,
}

impl<'a> Devices<'a> {
    /// Counts what the newest generation of each pool has. Slices of older generations are about to be deleted.
    pub(super) fn of(driver: &'a str, slices: &[ResourceSlice], is_served: bool) -> Self {
        let mut newest: BTreeMap<&str, i64> = BTreeMap::new();
        for slice in slices {
            let generation = newest.entry(&slice.pool).or_insert(slice.generation);
            *generation = slice.generation.max(*generation);
        }
        let current = || {
            let is_current = |slice: &&ResourceSlice| newest[&*slice.pool] == slice.generation;
            slices.iter().filter(is_current)
        };
        let in_pool = |pool: &str| {
            let of_it = current().filter(|slice| &*slice.pool == pool);
            of_it.map(|slice| slice.of).max().unwrap_or_default()
        };
        Self {
            driver,
            slices: current().count(),
            expected: newest.keys().map(|pool| in_pool(pool)).sum(),
            total: current().map(|slice| slice.devices).sum(),
            tainted: current().map(|slice| slice.tainted).sum(),
            is_served,
        }
    }

    /// Whether every slice of every pool is there, and a device.
    pub(super) fn are_published(&self) -> bool {
        self.slices >= self.expected && self.total > 0
    }

    /// How many devices have no taint that keeps pods off; `None` while a slice is missing, since the scheduler uses no device
    /// of an incomplete pool.
    pub(super) fn untainted(&self) -> Option<u64> {
        let is_complete = self.is_served && self.slices >= self.expected;
        let untainted = self.total.saturating_sub(self.tainted);
        u64::try_from(untainted).ok().filter(|_| is_complete)
    }

    pub(super) fn reason(&self) -> &'static str {
        if !self.are_published() {
            DEVICES_NOT_PUBLISHED
        } else if self.tainted > 0 {
            DEVICES_TAINTED
        } else {
            DEVICES_PUBLISHED
        }
    }
}

impl fmt::Display for Devices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            driver,
            slices,
            expected,
            total,
            tainted,
            is_served,
        } = self;
        if !is_served {
            return write!(
                f,
                "this cluster has no ResourceSlices of resource.k8s.io/v1"
            );
        }
        write!(
            f,
            "{driver} has published {slices} of {expected} ResourceSlices with {total} devices, {tainted} of them tainted"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(
        pool: &str,
        generation: i64,
        of: usize,
        devices: usize,
        tainted: usize,
    ) -> ResourceSlice {
        ResourceSlice {
            pool: pool.into(),
            generation,
            of,
            devices,
            tainted,
            ..ResourceSlice::default()
        }
    }

    #[test]
    fn untainted_devices_are_counted_while_every_pool_is_complete() {
        for (name, slices, is_served, untainted) in [
            ("nothing", vec![], true, Some(0)),
            ("not served", vec![], false, None),
            ("a tainted one", vec![slice("a", 1, 1, 8, 1)], true, Some(7)),
            ("one slice of two", vec![slice("a", 1, 2, 8, 0)], true, None),
            (
                "two pools",
                vec![slice("a", 1, 1, 8, 8), slice("b", 2, 1, 4, 0)],
                true,
                Some(4),
            ),
        ] {
            assert_eq!(
                Devices::of("d", &slices, is_served).untainted(),
                untainted,
                "{name}"
            );
        }
    }

    #[test]
    fn devices_count_once_each_pool_is_complete_in_its_newest_generation() {
        for (name, slices, reason) in [
            ("nothing", vec![], DEVICES_NOT_PUBLISHED),
            (
                "one of one",
                vec![slice("a", 1, 1, 8, 0)],
                DEVICES_PUBLISHED,
            ),
            (
                "one of two",
                vec![slice("a", 1, 2, 8, 0)],
                DEVICES_NOT_PUBLISHED,
            ),
            (
                "no device",
                vec![slice("a", 1, 1, 0, 0)],
                DEVICES_NOT_PUBLISHED,
            ),
            (
                "a tainted one",
                vec![slice("a", 1, 1, 8, 1)],
                DEVICES_TAINTED,
            ),
            (
                "an old generation does not count, not even its taints",
                vec![slice("a", 1, 1, 8, 8), slice("a", 2, 1, 8, 0)],
                DEVICES_PUBLISHED,
            ),
            (
                "a new generation that is not complete",
                vec![slice("a", 1, 1, 8, 0), slice("a", 2, 2, 4, 0)],
                DEVICES_NOT_PUBLISHED,
            ),
            (
                "another pool is not complete",
                vec![slice("a", 1, 1, 8, 0), slice("b", 1, 2, 8, 0)],
                DEVICES_NOT_PUBLISHED,
            ),
            (
                "two pools",
                vec![slice("a", 4, 1, 8, 0), slice("b", 1, 1, 0, 0)],
                DEVICES_PUBLISHED,
            ),
        ] {
            assert_eq!(Devices::of("d", &slices, true).reason(), reason, "{name}");
        }
    }
}
