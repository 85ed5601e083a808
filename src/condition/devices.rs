//! DRA devices: has a driver published all of its devices on the node, and are they free of taints?

use std::collections::BTreeMap;
use std::fmt;

use super::detail::Detail;
use super::facts::ComponentFacts;
use super::state::Condition;
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
    pub devices: usize,
    /// How many of them have a taint that keeps pods off.
    pub tainted: usize,
    /// Whether the cluster has ResourceSlices.
    pub is_served: bool,
}

impl Devices<'_> {
    /// Whether every slice of every pool is there, and a device.
    fn are_published(&self) -> bool {
        self.slices >= self.expected && self.devices > 0
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
            devices,
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
            "{driver} has published {slices} of {expected} ResourceSlices with {devices} devices, {tainted} of them tainted"
        )
    }
}

/// Has the driver published every device of the node, at least one, and none with a taint that keeps pods off?
pub(super) fn published<'a>(driver: &'a str, facts: &ComponentFacts<'_, 'a>) -> Condition<'a> {
    let devices = count(driver, facts.slices, facts.named.is_served);
    let detail = Detail::Devices(devices);
    if devices.are_published() && devices.tainted == 0 {
        Condition::met(detail)
    } else {
        Condition::unmet(detail)
    }
}

/// Counts what the newest generation of each pool has. Slices of older generations are about to be deleted.
fn count<'a>(driver: &'a str, slices: &[ResourceSlice], is_served: bool) -> Devices<'a> {
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
    Devices {
        driver,
        slices: current().count(),
        expected: newest.keys().map(|pool| in_pool(pool)).sum(),
        devices: current().map(|slice| slice.devices).sum(),
        tainted: current().map(|slice| slice.tainted).sum(),
        is_served,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_count_once_each_pool_is_complete_in_its_newest_generation() {
        let slice = |pool: &str, generation, of, devices, tainted| ResourceSlice {
            pool: pool.into(),
            generation,
            of,
            devices,
            tainted,
            ..ResourceSlice::default()
        };
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
            assert_eq!(count("d", &slices, true).reason(), reason, "{name}");
        }
    }
}
