//! Failure zones: the zones of a node, and the state of a zone.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::api::words;

/// The failure zone of an instance: region and zone. Instances with neither share one zone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Zone {
    region: Arc<str>,
    zone: Arc<str>,
}

/// The zones in which a node counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zones {
    pub home: Zone,
    /// Another that the node has named since it joined, as its kubelet may. It counts there too, but only for the worse.
    pub other: Option<Zone>,
}

impl Zone {
    /// By the provider ID, which cannot be changed once set, if it names the zone; else by labels (`GetZoneKey` of
    /// `k8s.io/component-helpers/node/topology`): deprecated ones, even empty, come first.
    pub fn of(provider_id: Option<&str>, labels: &BTreeMap<String, String>) -> Self {
        if let Some(zone) = provider_id.and_then(named_by) {
            let number = zone.find(|c: char| c.is_ascii_digit()).unwrap_or_default();
            let rest = zone[number..].trim_start_matches(|c: char| c.is_ascii_digit());
            return Self {
                region: zone[..zone.len() - rest.len()].into(),
                zone: zone.into(),
            };
        }
        let part = |name| {
            let value = labels
                .get(&format!("failure-domain.beta.kubernetes.io/{name}"))
                .or_else(|| labels.get(&format!("topology.kubernetes.io/{name}")));
            value.map(String::as_str).unwrap_or_default().into()
        };
        Self {
            region: part("region"),
            zone: part("zone"),
        }
    }

    /// Whether this is the zone of instances of which no zone is known.
    pub(crate) fn is_none(&self) -> bool {
        self.region.is_empty() && self.zone.is_empty()
    }
}

/// The zone in a provider ID of AWS (`aws:///eu-west-1a/i-1`) or Google Cloud (`gce://project/europe-west1-b/name`).
fn named_by(provider_id: &str) -> Option<&str> {
    let (cloud, path) = provider_id.split_once("://")?;
    let mut parts = path.split('/').skip(1);
    let zone = parts.next().filter(|_| parts.next().is_some())?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_zone = (1..=63).contains(&zone.len()) && zone.chars().all(is_name);
    (is_zone && ["aws", "gce"].contains(&cloud)).then_some(zone)
}

/// Different zones print differently: label values contain no slashes or parentheses.
impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.region, &*self.zone) {
            ("", "") => f.write_str("(no zone)"),
            ("", zone) => f.write_str(zone),
            (region, zone) => write!(f, "{region}/{zone}"),
        }
    }
}

words! {
    /// The state of a zone, in the terms of the Kubernetes node lifecycle controller.
    pub enum ZoneState {
        Normal = "Normal",
        PartialDisruption = "PartialDisruption",
        FullDisruption = "FullDisruption",
    }
}

/// The state of a zone with this many nodes whose conditions are met and unmet (`ComputeZoneState` of
/// `pkg/controller/nodelifecycle/node_lifecycle_controller.go`). From a share of `threshold` (0 to 1) and more than 2 unmet
/// nodes, a zone is partially disrupted.
#[expect(
    clippy::cast_precision_loss,
    reason = "exact below 2^52, and no zone has that many nodes"
)]
pub(super) fn zone_state(met: usize, unmet: usize, threshold: f64) -> ZoneState {
    match (met, unmet) {
        (_, 0) => ZoneState::Normal,
        (0, _) => ZoneState::FullDisruption,
        _ if unmet > 2 && unmet as f64 / (met + unmet) as f64 >= threshold => {
            ZoneState::PartialDisruption
        }
        _ => ZoneState::Normal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: &str = "topology.kubernetes.io/region";
    const ZONE: &str = "topology.kubernetes.io/zone";
    const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
    const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";

    #[test]
    fn a_node_is_in_the_zone_that_kubernetes_puts_it_in() {
        for (labels, zone) in [
            (&[][..], "(no zone)"),
            (&[("kubernetes.io/os", "linux")], "(no zone)"),
            (&[(REGION, ""), (ZONE, "")], "(no zone)"),
            (&[(REGION, "eu"), (ZONE, "eu-a")], "eu/eu-a"),
            (&[(ZONE, "eu-a")], "eu-a"),
            (&[(REGION, "eu")], "eu/"),
            (&[(BETA_REGION, "eu"), (BETA_ZONE, "eu-a")], "eu/eu-a"),
            (&[(BETA_REGION, "eu"), (ZONE, "eu-a")], "eu/eu-a"),
            (&[(BETA_ZONE, "old"), (ZONE, "new")], "old"),
            (&[(BETA_ZONE, ""), (ZONE, "new"), (REGION, "eu")], "eu/"),
        ] {
            let map = labels
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_string()));
            let found = Zone::of(None, &map.collect());
            assert_eq!(found.to_string(), zone, "{labels:?}");
        }
    }

    #[test]
    fn a_provider_id_that_names_the_zone_counts_before_labels() {
        let labels = BTreeMap::from([(ZONE.to_owned(), "label".to_owned())]);
        let long = format!("aws:///{}/i-1", "z".repeat(64));
        for (provider_id, zone) in [
            ("aws:///eu-west-1a/i-0abc", "eu-west-1/eu-west-1a"),
            (
                "aws:///us-west-2-lax-1a/i-0abc",
                "us-west-2/us-west-2-lax-1a",
            ),
            (
                "aws:///us-gov-west-1b/i-0abc",
                "us-gov-west-1/us-gov-west-1b",
            ),
            (
                "aws:///us-west-2a/f1/fargate-ip-10-0-0-1",
                "us-west-2/us-west-2a",
            ),
            (
                "gce://project/europe-west12-c/n",
                "europe-west12/europe-west12-c",
            ),
            (
                "gce://example.com:project/us-central1-ai1a/n",
                "us-central1/us-central1-ai1a",
            ),
            ("aws:///i-0abc", "label"),
            ("aws:////i-0abc", "label"),
            ("aws:///(no zone)/i-0abc", "label"),
            ("aws:///a\nb/i-0abc", "label"),
            (&long, "label"),
            (
                "azure:///subscriptions/s/resourceGroups/g/providers/p",
                "label",
            ),
            ("openstack:///eu-west-1a/id", "label"),
            ("aws", "label"),
        ] {
            let found = Zone::of(Some(provider_id), &labels);
            assert_eq!(found.to_string(), zone, "{provider_id}");
        }
    }

    #[test]
    fn a_zone_is_in_the_state_that_kubernetes_computes() {
        use ZoneState::{FullDisruption, Normal, PartialDisruption};
        for (name, met, unmet, state) in [
            ("no nodes", 0, 0, Normal),
            ("one node, met", 1, 0, Normal),
            ("one node, unmet", 0, 1, FullDisruption),
            ("two nodes, one unmet", 1, 1, Normal),
            ("two nodes, both unmet", 0, 2, FullDisruption),
            ("two of three is not more than two", 1, 2, Normal),
            ("three of four", 1, 3, PartialDisruption),
            ("three of five, 60 %", 2, 3, PartialDisruption),
            ("three of six, 50 %", 3, 3, Normal),
            ("exactly 55 %", 9, 11, PartialDisruption),
            ("exactly 55 % of many", 450, 550, PartialDisruption),
            ("just below 55 %", 451, 549, Normal),
            ("all but one", 1, 999, PartialDisruption),
            ("all", 0, 1000, FullDisruption),
        ] {
            assert_eq!(zone_state(met, unmet, 0.55), state, "{name}");
        }
        assert_eq!(
            zone_state(97, 3, 0.03),
            PartialDisruption,
            "another threshold"
        );
        assert_eq!(
            zone_state(1, 99, 1.0),
            Normal,
            "a threshold that is never reached"
        );
    }

    #[test]
    fn a_share_that_equals_the_threshold_reaches_it_whatever_the_size() {
        for nodes in (20..=5000_usize).step_by(20) {
            let unmet = nodes / 20 * 11;
            assert_eq!(
                zone_state(nodes - unmet, unmet, 0.55),
                ZoneState::PartialDisruption,
                "{unmet} of {nodes}"
            );
        }
    }
}
