//! CSI drivers: are those that pods wait for registered on the node, and does none that a rule names report unhealthy storage?
//!
//! The kubelet does not clear a `CSINode` when it starts, and a driver that registers as before does not change it. After a reboot
//! a driver counts once its registration is observed, or its own pod has been Ready for seconds, or a long time has passed.

use jiff::{SignedDuration, Timestamp};
use smallvec::SmallVec;

use super::detail::Detail;
use super::facts::{Condition, Facts, GroupFacts};
use super::groups::CriticalComponentClass;
use super::names::Names;
use super::observations::NOT_RENEWED;
use super::pods::{PodEvidence, assess_pod};

/// How long a driver's own pod must be Ready after a reboot: by then the kubelet noticed its new socket and registered it anew.
const REGISTRATION: SignedDuration = SignedDuration::from_secs(5);

/// The drivers that annotations of the class's pods on this node require, in order.
fn named<'a>(
    facts: &Facts<'_, 'a>,
    class: &CriticalComponentClass,
    group: &GroupFacts<'_, 'a>,
) -> SmallVec<[&'a str; 4]> {
    let live = group.pods.iter().filter(|pod| pod.is_live());
    let counting = live.filter(|pod| !facts.leaves_out(pod, group));
    let annotations = counting.flat_map(|pod| &pod.annotations);
    let drivers = annotations.filter(|(key, _)| key.starts_with(&class.csi_annotation_prefix));
    let mut named: SmallVec<[&str; 4]> = drivers.map(|(_, driver)| driver.as_str()).collect();
    named.sort_unstable();
    named.dedup();
    named
}

/// Until when this driver's registration does not count because it may be from before a reboot; `None` if it counts.
fn outdated_until(facts: &Facts<'_, '_>, driver: &str) -> Option<Timestamp> {
    let mut soonest = facts.trust.distrusts_until(NOT_RENEWED, facts.now)?;
    if facts.observations.registered.contains(driver) {
        return None;
    }
    for (class, group) in facts.classes {
        let prefix = &class.csi_annotation_prefix;
        let is_own = |(key, name): &(String, String)| name == driver && key.starts_with(prefix);
        let own = group.pods.iter().filter(|pod| pod.is_live());
        for pod in own.filter(|pod| pod.annotations.iter().any(is_own)) {
            match assess_pod(pod, 0, facts) {
                PodEvidence::Ready => {
                    let registered = pod.ready_since()?.checked_add(REGISTRATION).ok();
                    soonest = soonest.min(registered.filter(|by| facts.now < *by)?);
                }
                it => soonest = it.believed_at().map_or(soonest, |at| at.min(soonest)),
            }
        }
    }
    Some(soonest)
}

/// The unmet condition for those of these drivers that are not registered, or lack the count they need; `None` if there are none.
fn unregistered<'a>(
    facts: &Facts<'_, 'a>,
    drivers: &[&'a str],
    needs_count: bool,
) -> Option<Condition<'a>> {
    // One of an earlier node of the same name says nothing.
    let csi_node = facts.csi_node.filter(|it| it.is_of(&facts.node.uid));
    let registered = |driver: &str| csi_node.and_then(|csi_node| csi_node.driver(driver));
    let wanted = || drivers.iter().copied();
    let missing = wanted().filter(|driver| registered(driver).is_none());
    if let Some(drivers) = Names::of(missing) {
        return Some(Condition::unmet(Detail::CsiDriverMissing { drivers }));
    }
    let uncounted = wanted().filter(|driver| {
        needs_count && !registered(driver).is_some_and(|it| it.has_allocatable_count)
    });
    if let Some(drivers) = Names::of(uncounted) {
        return Some(Condition::unmet(Detail::CsiDriverWithoutCount { drivers }));
    }
    let if_outdated = |driver: &'a str| Some((driver, outdated_until(facts, driver)?));
    let outdated: SmallVec<[_; 4]> = wanted().filter_map(if_outdated).collect();
    let drivers = Names::of(outdated.iter().map(|(driver, _)| *driver))?;
    Some(Condition {
        recheck: outdated.iter().map(|(_, until)| *until).min(),
        ..Condition::unmet(Detail::CsiDriverOlderThanBoot { drivers })
    })
}

/// Is this driver registered on the node, and does it report nothing wrong with its storage?
pub(super) fn driver_registered<'a>(facts: &Facts<'_, 'a>, driver: &'a str) -> Condition<'a> {
    if let Some(unmet) = unregistered(facts, &[driver], false) {
        return unmet;
    }
    let mut unhealthy = facts.csi_node.into_iter().flat_map(|it| &it.unhealthy);
    match unhealthy.find(|it| it.driver == driver) {
        Some(storage) => Condition::unmet(Detail::CsiDriverUnhealthy { storage }),
        None => Condition::met(Detail::CsiDriversRegistered),
    }
}

/// Is every driver registered that an annotation of a critical pod on this node names?
pub(super) fn drivers_registered<'a>(
    facts: &Facts<'_, 'a>,
    class: &CriticalComponentClass,
    group: &GroupFacts<'_, 'a>,
) -> Condition<'a> {
    let drivers = named(facts, class, group);
    let unmet = unregistered(facts, &drivers, class.require_csi_allocatable);
    unmet.unwrap_or_else(|| Condition::met(Detail::CsiDriversRegistered))
}
