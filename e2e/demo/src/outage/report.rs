//! Checks the story's promises against what was observed.

use std::time::Duration;

use super::cast::{LIMITED, RATE, UNLIMITED, ZONES};
use super::world::{NodeRecord, World};
use crate::stage::{Check, Colours, Moment, Revision, count, seconds, wrap};

/// The measured times of the story.
#[derive(Debug)]
pub(super) struct Ending {
    /// The number of registered nodes.
    pub nodes: usize,
    /// When the first condition of each zone turned false, in the order of [`ZONES`].
    pub broken: [Duration; 3],
    /// When the rule with the limit reported every zone as disrupted.
    pub halted: Moment,
    /// How long that lasted, until the first condition was repaired.
    pub halt: Duration,
    /// How many nodes waited at the end of it.
    pub waited: usize,
}

/// Checks each promise against what was observed.
#[must_use]
pub(super) fn checks(world: &World, ending: &Ending) -> Vec<Check> {
    vec![
        all_closed_without_a_limit(world, ending),
        rate_was_kept(world, ending),
        nothing_closed_while_halted(world, ending),
        some_were_never_closed(world, ending),
        all_are_open(world, ending),
    ]
}

fn all_closed_without_a_limit(world: &World, ending: &Ending) -> Check {
    let (most, nodes) = (world.most_unlimited, ending.nodes);
    let problem = (most != nodes)
        .then(|| format!("rule {UNLIMITED} had {most} of {nodes} nodes closed at a time, not all"));
    let promise = format!("rule {UNLIMITED} had all {nodes} nodes closed at a time");
    Check::new(problem, promise)
}

/// The time from a break to a closing is measured from the request to the observation, so it is at least the real one: a rate
/// above the limit here was above it in reality.
fn rate_was_kept(world: &World, ending: &Ending) -> Check {
    let problem = ZONES.iter().zip(ending.broken).find_map(|(zone, broken)| {
        let mut closings: Vec<Duration> = world
            .of_zone(zone)
            .flat_map(|node| &node.closings)
            .filter_map(|closing| closing.at.checked_sub(broken))
            .collect();
        closings.sort_unstable();
        let mut closings = closings.iter().zip(1_u16..);
        let (within, number) = closings
            .find(|(within, number)| f64::from(*number) > 1.0 + RATE * within.as_secs_f64())?;
        let nodes = count(number.into(), "node");
        let within = seconds(*within);
        Some(format!(
            "rule {LIMITED} closed {nodes} of zone {zone} within {within}"
        ))
    });
    let promise = format!(
        "rule {LIMITED} closed no zone's nodes faster than one at once and {RATE} a second, and never more than {} at a time",
        world.most_limited
    );
    let problem = problem.or_else(|| {
        let all = world.most_limited >= ending.nodes;
        all.then(|| format!("rule {LIMITED} had all nodes closed at a time too"))
    });
    Check::new(problem, promise)
}

fn nothing_closed_while_halted(world: &World, ending: &Ending) -> Check {
    let mended = first_mended(world, ending.halted.revision);
    let mut nodes = world.nodes.iter();
    let problem = nodes.find_map(|(name, node)| {
        let mut revisions = node.closings.iter().map(|closing| closing.revision);
        let meanwhile = |at: &Revision| {
            ending.halted.revision < *at && mended.is_none_or(|mended| *at < mended)
        };
        let closed = revisions.find(meanwhile);
        closed.map(|_| format!("rule {LIMITED} closed {name} while every zone was disrupted"))
    });
    let problem = problem.or_else(|| {
        (ending.waited == 0)
            .then(|| "no node was held back while every zone was disrupted".to_owned())
    });
    let promise = format!(
        "while every zone was disrupted, for {}, it closed nothing, with {} held back",
        seconds(ending.halt),
        count(ending.waited, "node")
    );
    Check::new(problem, promise)
}

/// When the first condition was repaired after this.
fn first_mended(world: &World, after: Revision) -> Option<Revision> {
    let mended = world.nodes.values().filter_map(|node| node.met_since);
    mended
        .map(|moment| moment.revision)
        .filter(|revision| *revision > after)
        .min()
}

fn some_were_never_closed(world: &World, ending: &Ending) -> Check {
    let spared = world.count(|node| node.closings.is_empty());
    let problem = (spared == 0).then(|| format!("rule {LIMITED} closed every node in the end"));
    let promise = format!(
        "{spared} of {} nodes recovered without ever having been closed by rule {LIMITED}",
        ending.nodes
    );
    Check::new(problem, promise)
}

fn all_are_open(world: &World, ending: &Ending) -> Check {
    let is_open = |node: &NodeRecord| node.met && !node.closed && !node.closed_unlimited;
    let open = world.count(is_open);
    let holds_back = world
        .limited
        .limited
        .as_ref()
        .is_none_or(|limited| limited.holds_back);
    let problem = if open != ending.nodes {
        Some(format!(
            "{open} of {} nodes are open in the end",
            ending.nodes
        ))
    } else if holds_back {
        Some(format!(
            "rule {LIMITED} still says that it holds nodes back"
        ))
    } else {
        None
    };
    Check::new(
        problem,
        format!("all {open} nodes are open again, and rule {LIMITED} says so"),
    )
}

#[must_use]
pub(super) fn summary(world: &World, width: usize, _: Colours) -> Vec<String> {
    let text = format!(
        "Closed at the worst of times: {} with the limit, {} without.",
        count(world.most_limited, "node"),
        world.most_unlimited
    );
    wrap(&text, width)
}

#[cfg(test)]
mod tests {
    use super::super::world::tests::{limited_rule, node};
    use super::*;

    const BOTH: &[&str] = &[LIMITED, UNLIMITED];

    fn ending() -> Ending {
        Ending {
            nodes: 3,
            broken: [10, 20, 20].map(Duration::from_secs),
            halted: Moment {
                revision: Revision(100),
                at: Duration::from_secs(30),
            },
            halt: Duration::from_secs(6),
            waited: 2,
        }
    }

    /// One node in each zone; that of zone a is closed at this revision and time, the others are held back.
    fn world(revision: u64, at: u64) -> World {
        let mut world = World::default();
        let second = Duration::from_secs;
        for zone in ZONES {
            world.see_node(&node(zone, 1, 1, "True", &[]), second(1));
        }
        for zone in ZONES {
            world.see_node(&node(zone, 1, 50, "False", &[UNLIMITED]), second(9));
        }
        world.see_node(&node("a", 1, revision, "False", BOTH), second(at));
        for zone in ZONES {
            world.see_node(&node(zone, 1, 200, "True", &[]), second(40));
        }
        world.see_rule(&limited_rule(201, "NoNodeHeldBack", "none"), second(41));
        world
    }

    #[test]
    fn a_story_that_went_well_holds_every_promise() {
        let checks = checks(&world(60, 12), &ending());
        assert_eq!(Check::problems(&checks), [""; 0]);
    }

    #[test]
    fn what_went_wrong_is_told() {
        let second = Duration::from_secs;
        let mut fast = world(60, 11);
        fast.see_node(&node("a", 2, 61, "False", BOTH), second(11));
        fast.see_node(&node("a", 2, 201, "True", &[]), second(40));
        let mut unfinished = world(60, 12);
        unfinished.see_node(&node("c", 1, 300, "True", &[UNLIMITED]), second(50));
        let mut holding = world(60, 12);
        holding.see_rule(&limited_rule(300, "NodesHeldBack", "1 node"), second(50));
        let waited = |waited| Ending { waited, ..ending() };
        let nodes = |nodes| Ending { nodes, ..ending() };
        #[rustfmt::skip]
        let cases = [
            (fast, ending(), "rule limited closed 2 nodes of zone a within 1.0 s"),
            (world(150, 33), ending(), "rule limited closed node-a-01 while every zone was disrupted"),
            (unfinished, ending(), "2 of 3 nodes are open in the end"),
            (holding, ending(), "rule limited still says that it holds nodes back"),
            (world(60, 12), waited(0), "no node was held back while every zone was disrupted"),
            (world(60, 12), nodes(4), "rule unlimited had 3 of 4 nodes closed at a time, not all"),
        ];
        for (world, ending, expected) in cases {
            let checks = checks(&world, &ending);
            let problems = Check::problems(&checks);
            assert!(problems.contains(&expected), "{expected}: {problems:?}");
        }
    }
}
