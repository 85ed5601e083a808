//! Checks the demo's promises against what was observed, and sums up.

use std::time::Duration;

use super::cast::{JOINING, NETWORK, WORKLOAD};
use super::world::{Gating, World};
use crate::stage::{Check, Colours, Paint, grid, latency, seconds};

/// The measured times of the story.
#[derive(Debug)]
pub(super) struct Ending {
    /// From the kill after which the kubelet waited to the observed taint.
    pub closing: Duration,
    /// From the power's return to the open node.
    pub reboot: Duration,
}

/// Checks each promise against what was observed.
#[must_use]
pub(super) fn checks(world: &World, ending: &Ending) -> Vec<Check> {
    vec![
        joined(world),
        never_bound_while_closed(world),
        // Once when it joined; perhaps once after a slow restart of its process.
        closed(world, NETWORK, |count| (2..=3).contains(&count)).or(format!(
            "its network died: closed {} later, until the network was back",
            latency(ending.closing)
        )),
        closed(world, JOINING, |count| count == 2).or(format!(
            "it rebooted: closed until its pods were back, open {} after the power was",
            latency(ending.reboot)
        )),
        all_runs(world),
    ]
}

/// A problem, if any.
struct Problem(Option<String>);

impl Problem {
    fn or(self, promise: String) -> Check {
        Check::new(self.0, promise)
    }
}

fn closed(world: &World, rule: &str, fits: impl Fn(usize) -> bool) -> Problem {
    let of_rule = |gating: &&Gating| gating.rule == rule;
    let times = world.gatings.iter().filter(of_rule).count();
    Problem((!fits(times)).then(|| format!("rule {rule} closed the node {times} times")))
}

fn joined(world: &World) -> Check {
    let first = world.gatings.iter().find(|gating| gating.rule == JOINING);
    let opened = first.and_then(|gating| gating.period.opened);
    let before = |revision| opened.is_some_and(|opened| revision < opened.revision);
    let problem = if !world.registered_closed {
        Some("the node was open when it registered")
    } else if !world.network_ready.is_some_and(before) {
        Some("the node opened before its network was Ready")
    } else if !world.driver.is_some_and(before) {
        Some("the node opened before its CSI driver was registered")
    } else {
        None
    };
    Check::new(
        problem.map(str::to_owned),
        "the node registered closed, and opened once its network was Ready and its kubelet had registered the CSI driver".to_owned(),
    )
}

fn never_bound_while_closed(world: &World) -> Check {
    let is_closed_at = |revision| {
        let mut gatings = world.gatings.iter();
        gatings.any(|gating| gating.period.includes(revision))
    };
    let workload = world
        .pods
        .iter()
        .filter(|(name, _)| name.starts_with(WORKLOAD.0));
    let mut early = workload.filter(|(_, pod)| pod.bound.is_none_or(is_closed_at));
    let problem = early
        .next()
        .map(|(name, _)| format!("pod {name} was bound while the node was closed"));
    Check::new(
        problem,
        "no pod of the workload was bound while the node was closed".to_owned(),
    )
}

fn all_runs(world: &World) -> Check {
    let running = world.running();
    let wanted = WORKLOAD.1 as usize;
    let problem = (!world.is_open() || running != wanted || !world.rebooted).then(|| {
        format!(
            "open: {}, {running} of {wanted} pods run, rebooted: {}",
            world.is_open(),
            world.rebooted
        )
    });
    Check::new(
        problem,
        "the node is open, and the whole workload runs".to_owned(),
    )
}

/// Each period in which the node was closed.
#[must_use]
pub(super) fn summary(world: &World, width: usize, colours: Colours) -> Vec<String> {
    let rows: Vec<_> = world
        .gatings
        .iter()
        .map(|gating| {
            let period = gating.period;
            let end = period
                .opened
                .map_or("...".to_owned(), |opened| seconds(period.lasted(opened.at)));
            vec![
                (gating.rule.clone(), Paint::Plain),
                (seconds(period.closed.at), Paint::Plain),
                (end, Paint::Plain),
            ]
        })
        .collect();
    grid(&["RULE", "CLOSED AT", "FOR"], &rows, width, colours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::world::tests::node;
    use crate::stage::Revision;

    fn ending() -> Ending {
        Ending {
            closing: Duration::from_millis(30),
            reboot: Duration::from_secs(3),
        }
    }

    /// A node that joined, was closed for its network, and rebooted; the network was first Ready at this revision.
    fn world(network: u64) -> World {
        let mut world = World {
            network_ready: Some(Revision(network)),
            driver: Some(Revision(2)),
            rebooted: true,
            ..World::default()
        };
        for (revision, rules) in [
            (1, &[JOINING, NETWORK][..]),
            (4, &[]),
            (5, &[NETWORK]),
            (6, &[]),
            (7, &[JOINING]),
            (8, &[]),
        ] {
            world.see_node(
                &node(revision, rules, "True"),
                Duration::from_secs(revision),
            );
        }
        world
    }

    #[test]
    fn what_went_wrong_is_told() {
        for (network, expected) in [
            (3, "open: true, 0 of 2 pods run, rebooted: true"),
            (4, "the node opened before its network was Ready"),
        ] {
            let checks = checks(&world(network), &ending());
            assert_eq!(Check::problems(&checks)[0], expected);
        }
    }

    #[test]
    fn the_summary_has_a_line_for_each_time_the_node_was_closed() {
        let lines = summary(&world(3), 80, Colours::None);
        assert_eq!(lines[1], "joining  1.0 s      3.0 s");
    }
}
