//! The leader according to the controller's Lease, which is all that other processes can see.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use serde::Serialize;

use nodegate_cluster::process::is_nodegate;
use nodegate_core::api::names::{RUNS_WITH, SUSPEND_ALL};
use nodegate_core::config::RunsWith;

/// How long after its lease expires a holder still counts as alive, because clocks differ.
const LENIENCE: SignedDuration = SignedDuration::from_secs(15);

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Leader {
    /// The namespace of the Lease and of the controller.
    pub namespace: String,
    /// The holder's identity; empty if nobody leads.
    pub holder: String,
    /// When the lease was renewed, by the holder's clock.
    pub renewed: Option<Timestamp>,
    pub duration_seconds: i32,
    pub suspends_all: bool,
    /// What it last said that it runs with.
    #[serde(skip)]
    pub runs_with: Option<RunsWith>,
    /// Who else leads, by another Lease of the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rival: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum LeaderHealth {
    Alive,
    /// The lease has expired, so nothing is decided.
    Silent,
    Nobody,
}

impl Leader {
    pub(crate) fn of(lease: Lease) -> Self {
        let spec = lease.spec.unwrap_or_default();
        let mut annotations = lease.metadata.annotations.unwrap_or_default();
        let runs_with = annotations.remove(RUNS_WITH);
        let brake = annotations.get(SUSPEND_ALL);
        Self {
            namespace: lease.metadata.namespace.unwrap_or_default(),
            holder: spec.holder_identity.unwrap_or_default(),
            renewed: spec.renew_time.map(|time| time.0),
            duration_seconds: spec.lease_duration_seconds.unwrap_or(15),
            suspends_all: brake.is_some_and(|value| value != "false"),
            runs_with: runs_with.and_then(|text| RunsWith::read(&text)),
            rival: None,
        }
    }

    pub(crate) fn health(&self, now: Timestamp) -> LeaderHealth {
        let good_for = SignedDuration::from_secs(self.duration_seconds.into()) + LENIENCE;
        match self.renewed {
            _ if self.holder.is_empty() => LeaderHealth::Nobody,
            Some(renewed) if now.duration_since(renewed) <= good_for => LeaderHealth::Alive,
            _ => LeaderHealth::Silent,
        }
    }

    /// What it runs with, if it leads and says so.
    pub(crate) fn says(&self, now: Timestamp) -> Option<&RunsWith> {
        let leads = self.health(now) == LeaderHealth::Alive && is_nodegate(&self.holder);
        self.runs_with.as_ref().filter(|_| leads)
    }

    /// Why it decides nothing; `None` if it leads.
    pub(crate) fn idle(&self, now: Timestamp) -> Option<String> {
        let since = self.renewed.map(|at| format!(" since {at:.0}"));
        let (pod, since) = (self.pod(), since.unwrap_or_default());
        Some(match self.health(now) {
            LeaderHealth::Alive => return None,
            LeaderHealth::Nobody => "no controller leads, so no taint is added or removed".into(),
            LeaderHealth::Silent => format!(
                "the controller {pod} has not renewed its lease{since}, so it may add and remove no taints"
            ),
        })
    }

    /// The name of the holder's pod: the identity adds a suffix that distinguishes processes of one pod.
    pub(crate) fn pod(&self) -> &str {
        let parts = self.holder.split_once('_');
        parts.map_or(self.holder.as_str(), |(pod, _)| pod)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;
    use serde_json::json;

    #[test]
    fn a_leader_is_alive_while_it_renews_its_lease() {
        let lease = |holder: &str| {
            let lease = json!({
                "metadata": {"namespace": "nrr-system"},
                "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "1970-01-01T00:00:00.000000Z"},
            });
            Leader::of(serde_json::from_value(lease).unwrap())
        };
        let renewed = Timestamp::UNIX_EPOCH;
        let after = |seconds| renewed + SignedDuration::from_secs(seconds);
        assert_eq!(lease("pod-1_a-b").health(after(20)), LeaderHealth::Alive);
        assert_eq!(lease("pod-1_a-b").health(after(40)), LeaderHealth::Silent);
        assert_eq!(lease("").health(at(0)), LeaderHealth::Nobody);
        assert_eq!(lease("pod-1_a-b").pod(), "pod-1");
        assert!(!lease("pod-1_a-b").suspends_all);
    }

    #[test]
    fn every_value_of_the_brake_but_false_suspends_all_rules() {
        for (value, expected) in [("true", true), ("yes", true), ("false", false)] {
            let lease = json!({"metadata": {"annotations": {SUSPEND_ALL: value}}});
            let leader = Leader::of(serde_json::from_value(lease).unwrap());
            assert_eq!(leader.suspends_all, expected, "{value}");
        }
    }
}
