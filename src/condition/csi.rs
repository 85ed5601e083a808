//! CSI drivers: is what pods say they wait for registered on the node?

use smallvec::SmallVec;

use super::{ClassFacts, Condition, Detail};
use crate::object::{CsiNode, Node};

/// The node's `CSINode`, unless it speaks of an earlier node of the same name.
fn of_this_node<'a>(node: &Node, csi_node: Option<&'a CsiNode>) -> Option<&'a CsiNode> {
    csi_node.filter(|csi_node| csi_node.is_of(&node.uid))
}

/// Is this driver registered on the node?
pub(super) fn driver_registered<'a>(
    node: &Node,
    csi_node: Option<&'a CsiNode>,
    driver: &'a str,
) -> Condition<'a> {
    if of_this_node(node, csi_node).is_some_and(|csi_node| csi_node.driver(driver).is_some()) {
        Condition::met(Detail::CsiDriversRegistered)
    } else {
        Condition::unmet(Detail::CsiDriverMissing { driver, more: 0 })
    }
}

/// Is every driver that an annotation of a critical pod on this node names registered?
pub(super) fn drivers_registered<'a>(
    node: &Node,
    csi_node: Option<&'a CsiNode>,
    facts: &ClassFacts<'_, 'a>,
) -> Condition<'a> {
    let csi_node = of_this_node(node, csi_node);
    let mut wanted: SmallVec<[&str; 4]> = facts
        .pods
        .iter()
        .filter(|pod| pod.is_live())
        .flat_map(|pod| &pod.annotations)
        .filter(|(key, _)| key.starts_with(&facts.class.csi_annotation_prefix))
        .map(|(_, driver)| driver.as_str())
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    let registered = |driver: &str| csi_node.and_then(|csi_node| csi_node.driver(driver));
    let mut missing = wanted.iter().filter(|driver| registered(driver).is_none());
    if let Some(driver) = missing.next() {
        return Condition::unmet(Detail::CsiDriverMissing {
            driver,
            more: missing.count(),
        });
    }
    let mut uncounted = wanted.iter().filter(|driver| {
        facts.class.require_csi_allocatable
            && !registered(driver).is_some_and(|registered| registered.has_allocatable_count)
    });
    match uncounted.next() {
        Some(driver) => Condition::unmet(Detail::CsiDriverWithoutCount {
            driver,
            more: uncounted.count(),
        }),
        None => Condition::met(Detail::CsiDriversRegistered),
    }
}
