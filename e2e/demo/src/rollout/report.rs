//! Checks the demo's promises against what was observed, and sums up.

use std::time::Duration;

use super::cast::{PODS_PER_NODE, WORKLOADS};
use super::record::NodeRecord;
use super::story::Ending;
use super::table::in_row;
use super::world::World;
use crate::stage::{Check, Colours, Paint, count, grid, latency, seconds, wrap};

/// Checks each promise against what was observed.
pub(super) fn checks(world: &World, ending: &Ending) -> Vec<Check> {
    vec![
        opened_when_ready(world),
        never_bound_to_a_held_node(world),
        gated_and_released_again(world, ending),
        others_stayed_released(world, ending),
        all_is_released_and_runs(world, ending),
    ]
}

fn opened_when_ready(world: &World) -> Check {
    let too_early = |node: &NodeRecord| {
        let Some(gating) = node.gatings.first() else {
            return Some("was never gated");
        };
        let Some(released) = gating.period.released else {
            return Some("never released");
        };
        let before = |revision| revision < released.revision;
        if !node.cni_ready.is_some_and(before) {
            Some("released before its CNI pod was Ready")
        } else if !node
            .registered
            .is_some_and(|moment| before(moment.revision))
        {
            Some("released before its CSI driver was registered")
        } else {
            None
        }
    };
    let mut nodes = world.nodes.iter();
    let problem = nodes.find_map(|(name, node)| Some(format!("{name} {}", too_early(node)?)));
    let promise = format!(
        "{} joined held; each released only after its CNI pod was Ready and its CSI driver registered",
        count(world.nodes.len(), "node")
    );
    Check::new(problem, promise)
}

fn never_bound_to_a_held_node(world: &World) -> Check {
    let mut bindings = world.bindings.iter();
    let problem = bindings.find_map(|binding| {
        let node = world.nodes.get(&binding.node);
        let gated = node.is_none_or(|node| node.was_held_at(binding.revision));
        gated.then(|| {
            format!(
                "pod {} was bound to {} while held",
                binding.pod, binding.node
            )
        })
    });
    let promise = format!(
        "{} bound, none to a node that was held at that moment",
        count(world.bindings.len(), "workload pod")
    );
    Check::new(problem, promise)
}

fn gated_and_released_again(world: &World, ending: &Ending) -> Check {
    let name = &ending.broken;
    let times = world.nodes.get(name).map_or(0, |node| node.gatings.len());
    let problem = (times != 2).then(|| format!("{name} was gated {times} times instead of twice"));
    let promise = format!(
        "{name} was gated {} after its CNI pod broke, and released {} after the pod was Ready again",
        latency(ending.gating),
        latency(ending.release)
    );
    Check::new(problem, promise)
}

fn others_stayed_released(world: &World, ending: &Ending) -> Check {
    let mut others = world
        .nodes
        .iter()
        .filter(|(name, _)| **name != ending.broken);
    let problem = others.find_map(|(name, node)| {
        let again = node.gatings.len() > 1;
        again.then(|| format!("{name} was gated too, with its own CNI pod Ready"))
    });
    Check::new(problem, "every other node stayed released".to_owned())
}

fn all_is_released_and_runs(world: &World, ending: &Ending) -> Check {
    let nodes = world.nodes.len();
    let pods = nodes * PODS_PER_NODE * WORKLOADS.len();
    let (released, running) = (world.released_nodes(), world.running());
    let problem = (released != nodes || running != pods || nodes != ending.nodes).then(|| {
        format!(
            "{released} of {} nodes are released, and {running} of {pods} workload pods run",
            ending.nodes
        )
    });
    let promise = format!("all {nodes} nodes are released, and all {pods} workload pods run");
    Check::new(problem, promise)
}

/// The summary: each node, and Nodegate's reaction times.
pub(super) fn summary(world: &World, width: usize, colours: Colours) -> Vec<String> {
    let mut lines = nodes(world, width, colours);
    if let Some((median, slowest)) = reactions(world) {
        lines.push(String::new());
        let text = format!(
            "From the driver's registration to the node's release: {} (median), {} (slowest)",
            latency(median),
            latency(slowest)
        );
        lines.extend(wrap(&text, width));
    }
    lines
}

fn nodes(world: &World, width: usize, colours: Colours) -> Vec<String> {
    let mut rows = Vec::new();
    for (name, node) in &world.nodes {
        for (index, gating) in node.gatings.iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            let lasted = gating.period.lasted(gating.period.gated.at);
            let waited_for = gating.waited_for.as_deref().unwrap_or_default();
            rows.push(vec![
                (name.to_owned(), Paint::Plain),
                (seconds(lasted), Paint::Plain),
                (in_row(waited_for), Paint::Plain),
            ]);
        }
    }
    grid(
        &["NODE", "GATED FOR", "WAITED FOR, LAST"],
        &rows,
        width,
        colours,
    )
}

/// The median and the longest time from the registration of a node's CSI driver, the last thing it waited for, to the observed
/// released node.
fn reactions(world: &World) -> Option<(Duration, Duration)> {
    let mut reactions: Vec<Duration> = world
        .nodes
        .values()
        .filter_map(|node| {
            let released = node.gatings.first()?.period.released?;
            Some(released.at.saturating_sub(node.registered?.at))
        })
        .collect();
    reactions.sort_unstable();
    Some((*reactions.get(reactions.len() / 2)?, *reactions.last()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::cast::{APP, BOOTSTRAP, CNI, CONTINUOUS, GATES, WORKLOAD};
    use crate::rollout::world::tests::{node, pod};
    use crate::stage::{Moment, Revision};

    const CNI_READY: u64 = 20;
    const REGISTERED: u64 = 30;
    const RELEASED: u64 = 40;

    fn ending() -> Ending {
        Ending {
            nodes: 1,
            broken: "n".to_owned(),
            gating: Duration::from_millis(30),
            explained: String::new(),
            release: Duration::from_millis(20),
        }
    }

    /// One node, released at this revision, gated and released again; its four pods are bound from this revision on.
    fn world(released: u64, bound: u64) -> World {
        let mut world = World::default();
        world.see_node(&node("n", 10, &GATES, ""), Duration::ZERO);
        world.see_pod(&pod((APP, CNI), "cni", "n", CNI_READY));
        let registered = Moment {
            revision: Revision(REGISTERED),
            at: Duration::from_millis(5),
        };
        world.see_registration("n", registered);
        for (revision, gates) in [
            (released - 1, &[BOOTSTRAP] as &[_]),
            (released, &[]),
            (60, &[CONTINUOUS]),
            (70, &[]),
        ] {
            world.see_node(
                &node("n", revision, gates, ""),
                Duration::from_millis(revision),
            );
        }
        for number in 0..4 {
            world.see_pod(&pod(
                WORKLOAD,
                &format!("pod-{number}"),
                "n",
                bound + number,
            ));
        }
        world
    }

    #[test]
    fn a_story_that_went_well_holds_every_promise() {
        let checks = checks(&world(RELEASED, RELEASED + 1), &ending());
        assert_eq!(Check::problems(&checks), [""; 0]);
    }

    #[test]
    fn what_went_wrong_is_told() {
        let mut unfinished = world(RELEASED, RELEASED + 1);
        unfinished.see_node(&node("n", 80, &[CONTINUOUS], ""), Duration::from_secs(1));
        #[rustfmt::skip]
        let cases = [
            (world(CNI_READY - 1, RELEASED + 1), "n released before its CNI pod was Ready"),
            (world(REGISTERED - 1, RELEASED + 1), "n released before its CSI driver was registered"),
            (world(RELEASED, RELEASED - 1), "pod pod-0 was bound to n while held"),
            (world(RELEASED, 59), "pod pod-1 was bound to n while held"),
            (unfinished, "n was gated 3 times instead of twice"),
        ];
        for (world, expected) in cases {
            let checks = checks(&world, &ending());
            assert!(Check::problems(&checks).contains(&expected), "{expected}");
        }
    }

    #[test]
    fn the_summary_has_a_line_for_each_time_a_node_was_gated() {
        let world = world(RELEASED, RELEASED + 1);
        let lines = summary(&world, 100, Colours::None);
        assert_eq!(lines[0], "NODE  GATED FOR  WAITED FOR, LAST");
        assert_eq!(lines[1..3], ["n     0.0 s", "      0.0 s"]);
        let last =
            "From the driver's registration to the node's release: 35 ms (median), 35 ms (slowest)";
        assert_eq!(lines.last().map(String::as_str), Some(last));
    }
}
