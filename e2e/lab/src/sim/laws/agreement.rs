//! The command line agrees with the controller: at the end, `kubectl nodegate` makes of every node what has been made of it.
//!
//! It is asked on the cluster's objects alone, as it is by whoever may only read them. A controller that is at rest has nothing
//! left to do; so an answer that has a taint put on or lifted is another one than the controller's.

use std::collections::BTreeMap;

use nodegate::cli::fleet::fleet;
use nodegate::cli::snapshot::Kind as Asked;
use nodegate::cli::standing::State;
use nodegate::cli::{Lists, snapshot_of};

use super::end::is_interfered_with;
use crate::sim::fault::Fault;
use crate::sim::law::{Law, Moment};
use crate::{Key, Kind};

/// The law.
pub struct Agreement;

impl Law for Agreement {
    fn name(&self) -> &'static str {
        "the command line agrees with the controller"
    }

    fn finally(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        // Whose clock was set or stood still counts other times than the one who asks.
        let is_of_clocks =
            |fault: &Fault| matches!(fault, Fault::ClockStep { .. } | Fault::Suspend { .. });
        if moment.faults.iter().any(is_of_clocks) {
            return Ok(());
        }
        let snapshot = snapshot_of(
            lists(moment),
            moment.settings.classes.clone(),
            moment.settings.passing_taints.clone(),
        );
        let snapshot = snapshot.map_err(|error| error.to_string())?;
        let now = moment.cluster.now();
        for it in fleet(&snapshot) {
            let key = Key::cluster(Kind::Node, &it.node);
            let is_at_rest = !matches!(it.state, State::Closing | State::Opening);
            let is_held = it.state == State::Held;
            if (is_at_rest && (!is_held || it.tainted)) || is_interfered_with(moment, &key, now) {
                continue;
            }
            return Err(format!(
                "node {} is {} by rule {} to the command line, and the node {} the taint at the end: {}",
                it.node,
                it.state.word(),
                it.rule,
                if it.tainted { "has" } else { "has not" },
                it.why
            ));
        }
        Ok(())
    }
}

/// The cluster's objects, as they are listed.
fn lists(moment: &Moment<'_>) -> Lists {
    let kinds = [
        (Kind::NodeReadinessRule, Asked::Rules),
        (Kind::Node, Asked::Nodes),
        (Kind::CsiNode, Asked::CsiNodes),
        (Kind::DaemonSet, Asked::DaemonSets),
        (Kind::Pod, Asked::Pods),
        (Kind::NodeClaim, Asked::NodeClaims),
        (Kind::NodePool, Asked::NodePools),
    ];
    let objects = kinds.into_iter().map(|(kind, asked)| {
        let objects = moment.cluster.objects(kind);
        (
            asked,
            objects.map(|(_, object)| object.to_string()).collect(),
        )
    });
    Lists {
        at: moment.cluster.wall(),
        objects: objects.collect::<BTreeMap<_, _>>(),
    }
}
