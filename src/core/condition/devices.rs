//! DRA devices: has a driver published all of its devices on the node, and are they free of taints?

use std::collections::BTreeMap;
use std::fmt;

use super::detail::Detail;
use super::facts::Condition;
use crate::object::ResourceSlice;

/// What a driver has published of its devices on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Devices<'a> {
    pub driver: &'a str,
    /// How many slices of the pools' newest generations are there.
    pub slices: usize,
    /// How many slices these pools have by their own count.
    pub expected: usize,
    pub total: usize,
    /// How many of them have a taint that keeps pods off.
    pub tainted: usize,
    /// Whether each pool has exactly as many slices as it declares. The scheduler uses no device of any other pool.
    pub is_complete: bool,
    pub is_served: bool,
}

impl<'a> Devices<'a> {
    /// Counts what the newest generation of each pool has. Slices of older generations are about to be deleted.
    pub(super) fn of<'s>(
        driver: &'a str,
        slices: impl IntoIterator<Item = &'s ResourceSlice>,
        is_served: bool,
    ) -> Self {
        let mut devices = Self {
            driver,
            is_complete: true,
            is_served,
            ..Self::default()
        };
        let mut pools: BTreeMap<&str, (i64, Self)> = BTreeMap::new();
        for slice in slices {
            let (generation, pool) = pools.entry(&slice.pool).or_default();
            if pool.slices == 0 || slice.generation > *generation {
                (*generation, *pool) = (slice.generation, Self::default());
            }
            if slice.generation == *generation {
                pool.expected = pool.expected.max(slice.of);
                pool.slices += 1;
                pool.total = pool.total.saturating_add(slice.devices);
                pool.tainted = pool.tainted.saturating_add(slice.tainted);
            }
        }
        for (_, pool) in pools.values() {
            devices.slices += pool.slices;
            devices.expected = devices.expected.saturating_add(pool.expected);
            devices.total = devices.total.saturating_add(pool.total);
            devices.tainted = devices.tainted.saturating_add(pool.tainted);
            devices.is_complete &= pool.slices == pool.expected;
        }
        devices
    }

    /// Whether all slices of every pool are published, with at least one device, and none with a taint that keeps pods off.
    pub(super) fn condition(self) -> Condition<'a> {
        let devices = self;
        if !self.is_complete || self.total == 0 {
            return Condition::unmet(Detail::DevicesNotPublished { devices });
        }
        if self.tainted > 0 {
            return Condition::unmet(Detail::DevicesTainted { devices });
        }
        Condition::met(Detail::DevicesPublished { devices })
    }

    /// How many devices have no taint that keeps pods off; `None` while that cannot be known.
    pub(super) fn untainted(&self) -> Option<u64> {
        let is_known = self.is_served && self.is_complete;
        let untainted = self.total.saturating_sub(self.tainted);
        u64::try_from(untainted).ok().filter(|_| is_known)
    }
}

impl fmt::Display for Devices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (driver, slices, expected) = (self.driver, self.slices, self.expected);
        let (total, tainted) = (self.total, self.tainted);
        if !self.is_served {
            return f.write_str("this cluster has no ResourceSlices of resource.k8s.io/v1");
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
        #[rustfmt::skip]
        let cases = [
            ("nothing", vec![], "DevicesNotPublished"),
            ("one of one", vec![slice("a", 1, 1, 8, 0)], "DevicesPublished"),
            ("one of two", vec![slice("a", 1, 2, 8, 0)], "DevicesNotPublished"),
            ("no device", vec![slice("a", 1, 1, 0, 0)], "DevicesNotPublished"),
            ("a tainted one", vec![slice("a", 1, 1, 8, 1)], "DevicesTainted"),
            (
                "an old generation does not count, not even its taints",
                vec![slice("a", 1, 1, 8, 8), slice("a", 2, 1, 8, 0)],
                "DevicesPublished",
            ),
            ("a new generation that is not complete", vec![slice("a", 1, 1, 8, 0), slice("a", 2, 2, 4, 0)], "DevicesNotPublished"),
            ("another pool is not complete", vec![slice("a", 1, 1, 8, 0), slice("b", 1, 2, 8, 0)], "DevicesNotPublished"),
            ("two pools", vec![slice("a", 4, 1, 8, 0), slice("b", 1, 1, 0, 0)], "DevicesPublished"),
            (
                "a pool with more than it declares hides no missing slice of another",
                vec![
                    slice("a", 1, 1, 8, 0),
                    slice("a", 1, 1, 8, 0),
                    slice("b", 1, 2, 8, 0),
                ],
                "DevicesNotPublished",
            ),
            (
                "declared beyond all numbers",
                vec![
                    slice("a", 1, usize::MAX, usize::MAX, 0),
                    slice("b", 1, usize::MAX, usize::MAX, 0),
                ],
                "DevicesNotPublished",
            ),
        ];
        for (name, slices, reason) in cases {
            let condition = Devices::of("d", &slices, true).condition();
            assert_eq!(condition.detail.reason(), reason, "{name}");
        }
    }
}
