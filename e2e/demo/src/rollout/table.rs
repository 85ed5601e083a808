//! The nodes as a table: Ready, held or released, for how long, the workload's pods, and what each node waits for.

use std::time::Duration;

use super::record::NodeRecord;
use super::world::World;
use crate::stage::{Cell, Colours, Paint, cut, grid, seconds};

/// The width from which the rules' names fit.
const WIDE: usize = 110;

/// One line for each node under a heading, and one for the workload, each at most `width` wide.
pub(super) fn table(world: &World, now: Duration, width: usize, colours: Colours) -> Vec<String> {
    let wide = width >= WIDE;
    let rows: Vec<Vec<Cell>> = world
        .nodes
        .iter()
        .map(|(name, node)| row(name, node, world.running_on(name), now, wide))
        .collect();
    let mut lines = Vec::new();
    if !rows.is_empty() {
        lines = grid(&heading(wide), &rows, width, colours);
        lines.push(String::new());
    }
    lines.push(workload(world, width));
    lines
}

fn heading(wide: bool) -> Vec<&'static str> {
    let mut heading = vec!["NODE", "READY", "GATE", "FOR", "PODS"];
    if wide {
        heading.push("HELD BY RULE");
    }
    heading.push("WAITS FOR");
    heading
}

fn row(name: &str, node: &NodeRecord, pods: usize, now: Duration, wide: bool) -> Vec<Cell> {
    let gate = if node.is_held() {
        ("held".to_owned(), Paint::Waiting)
    } else {
        ("released".to_owned(), Paint::Good)
    };
    let lasted = node.gatings.last().map(|gating| gating.period.lasted(now));
    let mut row = vec![
        (name.to_owned(), Paint::Plain),
        if node.ready {
            ("yes".to_owned(), Paint::Plain)
        } else {
            ("no".to_owned(), Paint::Waiting)
        },
        gate,
        (lasted.map(seconds).unwrap_or_default(), Paint::Plain),
        (pods.to_string(), Paint::Plain),
    ];
    if wide {
        row.push((node.held_by.join(", "), Paint::Faint));
    }
    let waits_for = node.waits_for.as_deref().unwrap_or_default();
    row.push((in_row(waits_for), Paint::Plain));
    row
}

/// A message without words that repeat the row.
pub(super) fn in_row(message: &str) -> String {
    message.replacen(" on this node", "", 1)
}

fn workload(world: &World, width: usize) -> String {
    let all = world.workload.len();
    let line = format!(
        "workload: {} of {all} pods run, {} wait for a released node",
        world.running(),
        world.unbound()
    );
    cut(&line, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::cast::{GATES, WORKLOAD};
    use crate::rollout::world::tests::{node, pod};

    fn world() -> World {
        let mut world = World::default();
        let message = "DaemonSets kube-system/cni, kube-system/csi have no pod on this node";
        world.see_node(&node("node-1", 1, &GATES, ""), Duration::from_secs(1));
        world.see_node(&node("node-2", 2, &GATES, message), Duration::from_secs(2));
        world.see_node(&node("node-1", 3, &[], ""), Duration::from_secs(9));
        world.see_pod(&pod(WORKLOAD, "shop-1", "node-1", 4));
        world
    }

    #[test]
    fn each_node_has_a_line_with_what_it_waits_for() {
        let lines = table(&world(), Duration::from_secs(12), 80, Colours::None);
        assert_eq!(
            lines,
            [
                "NODE    READY  GATE      FOR     PODS  WAITS FOR",
                "node-1  yes    released  8.0 s   1",
                "node-2  yes    held      10.0 s  0     DaemonSets kube-system/cni, kube-system/…",
                "",
                "workload: 1 of 1 pods run, 0 wait for a released node",
            ]
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [0, 10, 40, 80, 109, 110, 200] {
            for line in table(&world(), Duration::from_secs(12), width, Colours::None) {
                assert!(line.chars().count() <= width, "{width}: {line:?}");
            }
        }
    }

    #[test]
    fn a_wide_terminal_shows_which_rules_hold_a_node() {
        let lines = table(&world(), Duration::from_secs(12), WIDE, Colours::None);
        assert!(
            lines[2].contains("critical-components, critical-pods"),
            "{lines:?}"
        );
    }
}
