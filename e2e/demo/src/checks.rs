//! Asserts that what the demo shows really happened.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::history::{History, Moment, Period, node_of};
use crate::manifests::{CNI, NODES, PODS, WORKLOADS};

/// The part of the story that no watch shows.
#[derive(Debug)]
pub(crate) struct Broken {
    /// The node whose CNI pod broke.
    pub node: String,
    pub broke_at: Instant,
    pub mended_at: Instant,
}

/// What happened, a sentence for each check.
///
/// # Errors
///
/// What went wrong.
pub(crate) fn check(history: &History, broken: &Broken) -> Result<[String; 5]> {
    let held = history.held();
    Ok([
        released_when_ready(history, &held)?,
        never_bound_to_a_held_node(history, &held)?,
        others_stayed_released(&held, broken)?,
        gated_and_released_again(&held, broken)?,
        all_is_released_and_runs(history)?,
    ])
}

type Held = BTreeMap<String, Vec<Period>>;

fn released_when_ready(history: &History, held: &Held) -> Result<String> {
    let mut slowest = Duration::ZERO;
    for (node, periods) in held {
        let first = periods.first();
        let first = first.with_context(|| format!("{node} was never gated"))?;
        let released = first.released;
        let released = released.with_context(|| format!("{node} was never released"))?;
        let is_before = |it: &Moment| it.revision < released.revision;
        ensure!(
            history.ready(CNI, node).as_ref().is_some_and(is_before),
            "{node} was released before its CNI pod was Ready"
        );
        let registered = history.registered.get(node).filter(|it| is_before(it));
        let registered = registered
            .with_context(|| format!("{node} was released before its CSI driver was registered"))?;
        slowest = slowest.max(released.at.saturating_duration_since(registered.at));
    }
    Ok(format!(
        "{} nodes joined held; each was released once its CNI pod was Ready and its CSI driver registered, {} ms later at most",
        held.len(),
        slowest.as_millis()
    ))
}

fn never_bound_to_a_held_node(history: &History, held: &Held) -> Result<String> {
    let mut bound = BTreeMap::new();
    for (pod, moment, state) in history.workload() {
        if let Some(node) = node_of(state) {
            bound.entry(pod).or_insert((node, moment.revision));
        }
    }
    for (pod, (node, revision)) in &bound {
        let is_after = |it: Moment| *revision < it.revision;
        let was_held = |it: &Period| !is_after(it.gated) && it.released.is_none_or(is_after);
        let periods = held.get(*node);
        ensure!(
            periods.is_some_and(|periods| !periods.iter().any(was_held)),
            "pod {pod} was bound to {node} while that was held"
        );
    }
    let pods = bound.len();
    Ok(format!(
        "{pods} workload pods were bound, none to a node that was held at that moment"
    ))
}

fn others_stayed_released(held: &Held, broken: &Broken) -> Result<String> {
    for (node, periods) in held {
        ensure!(
            periods.len() == 1 || *node == broken.node,
            "{node} was gated again, with its own CNI pod Ready"
        );
    }
    Ok("every node but one stayed released".to_owned())
}

fn gated_and_released_again(held: &Held, broken: &Broken) -> Result<String> {
    let node = &broken.node;
    let periods = held.get(node).map_or(&[][..], Vec::as_slice);
    let [_, again] = periods else {
        bail!("{node} was gated {} times instead of twice", periods.len());
    };
    let released = again.released;
    let released = released.with_context(|| format!("{node} was not released again"))?;
    let since = |cause, effect: Moment| effect.at.saturating_duration_since(cause).as_millis();
    Ok(format!(
        "{node} was gated {} ms after its CNI pod broke (by default a rule waits 1 s of that), and released {} ms after the pod was \
         Ready again",
        since(broken.broke_at, again.gated),
        since(broken.mended_at, released)
    ))
}

fn all_is_released_and_runs(history: &History) -> Result<String> {
    let pods = PODS * WORKLOADS.len();
    let (released, running) = (history.released(), history.running());
    ensure!(
        (released, running) == (NODES, pods),
        "{released} of {NODES} nodes are released, and {running} of {pods} workload pods run"
    );
    Ok(format!(
        "all {NODES} nodes are released, and all {pods} workload pods run"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::{PODS_PER_NODE, TAINTS};
    use serde_json::json;
    use testkit::nodegate::fixtures;

    fn at(revision: u64) -> Moment {
        let at = Instant::now();
        Moment { revision, at }
    }

    fn node(history: &mut History, name: &str, revision: u64, taints: &[&str]) {
        let mut node = fixtures::node(name);
        for taint in taints {
            node = node.taint(taint, "NoSchedule");
        }
        history.nodes.push((at(revision), node.build()));
    }

    fn ready_pod(history: &mut History, app: &str, name: &str, node: &str, revision: u64) {
        let mut pod = fixtures::pod(name).label("app", app).on(node).build();
        let status = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        pod.status = serde_json::from_value(status).ok();
        history.pods.push((at(revision), pod));
    }

    /// All nodes are released at revision 40, and the first is held again from 60 to 70. These are the revisions at which CNI pods
    /// are Ready, CSI drivers registered, and the workloads' pods bound.
    fn history(cni_ready: u64, registered: u64, bound: u64) -> History {
        let mut history = History::default();
        for number in 1..=NODES {
            let name = format!("node-{number}");
            node(&mut history, &name, 10, &TAINTS);
            node(&mut history, &name, 35, &TAINTS[..1]);
            node(&mut history, &name, 40, &[]);
            ready_pod(
                &mut history,
                CNI,
                &format!("cni-{number}"),
                &name,
                cni_ready,
            );
            history.registered.insert(name.clone(), at(registered));
            for app in WORKLOADS {
                for pod in 1..=PODS_PER_NODE {
                    let pod = format!("{app}-{number}-{pod}");
                    ready_pod(&mut history, app, &pod, &name, bound);
                }
            }
        }
        node(&mut history, "node-1", 60, &TAINTS[1..]);
        node(&mut history, "node-1", 70, &[]);
        history
    }

    #[test]
    fn each_check_says_what_went_wrong() {
        let mut gated_thrice = history(20, 30, 41);
        node(&mut gated_thrice, "node-1", 80, &TAINTS);
        let mut another_gated = history(20, 30, 41);
        node(&mut another_gated, "node-2", 60, &TAINTS);
        let mut one_is_missing = history(20, 30, 41);
        one_is_missing.pods.pop();
        #[rustfmt::skip]
        let cases = [
            (history(20, 30, 41), ""),
            (history(40, 30, 41), "node-1 was released before its CNI pod was Ready"),
            (history(20, 40, 41), "node-1 was released before its CSI driver was registered"),
            (history(20, 30, 39), "pod search-1-1 was bound to node-1 while that was held"),
            (history(20, 30, 60), "pod search-1-1 was bound to node-1 while that was held"),
            (history(20, 30, 70), ""),
            (gated_thrice, "node-1 was gated 3 times instead of twice"),
            (another_gated, "node-2 was gated again, with its own CNI pod Ready"),
            (one_is_missing, "6 of 6 nodes are released, and 23 of 24 workload pods run"),
        ];
        let now = Instant::now();
        let broken = Broken {
            node: "node-1".to_owned(),
            broke_at: now,
            mended_at: now,
        };
        for (history, expected) in cases {
            let wrong = check(&history, &broken).err();
            let wrong = wrong.map(|it| it.to_string()).unwrap_or_default();
            assert_eq!(wrong, expected);
        }
    }
}
