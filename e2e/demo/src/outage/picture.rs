//! The zones as a table: their nodes under the rule with the limit and the one without, and the former's status.

use super::cast::{LIMITED, UNLIMITED, ZONES};
use super::world::{NodeRecord, World};
use crate::stage::{Cell, Colours, Paint, cut, grid, wrap};

const OPEN: char = '·';
const WAITS: char = '▒';
const CLOSED: char = '█';

/// A line for each zone, a legend, and the rule's status condition; empty without nodes.
#[must_use]
pub(super) fn picture(world: &World, width: usize, colours: Colours) -> Vec<String> {
    if world.nodes.is_empty() {
        return Vec::new();
    }
    let mut rows: Vec<Vec<Cell>> = ZONES.iter().map(|zone| row(world, zone)).collect();
    rows.push(total(world));
    let limited = format!("RULE {LIMITED}");
    let unlimited = format!("RULE {UNLIMITED}, CLOSED");
    // With 20 nodes a zone it fits into 80 columns.
    let heading = [
        "ZONE", "MET", "UNMET", &limited, "CLOSED", "WAITS", &unlimited,
    ];
    let mut lines = grid(&heading, &rows, width, colours);
    let legend = format!("{OPEN} open   {WAITS} unmet, held back open   {CLOSED} closed");
    lines.push(colours.paint(Paint::Faint, &cut(&legend, width)));
    lines.extend(says(world, width, colours));
    lines
}

fn row(world: &World, zone: &str) -> Vec<Cell> {
    let strip = |glyph: fn(&NodeRecord) -> char| world.of_zone(zone).map(glyph).collect::<String>();
    let nodes = || world.of_zone(zone);
    cells(zone, nodes, strip(limited), &strip(unlimited))
}

fn total(world: &World) -> Vec<Cell> {
    cells("all", || world.nodes.values(), String::new(), "")
}

fn cells<'a, Nodes: Iterator<Item = &'a NodeRecord>>(
    name: &str,
    nodes: impl Fn() -> Nodes,
    limited: String,
    unlimited: &str,
) -> Vec<Cell> {
    let count = |is_so: fn(&NodeRecord) -> bool| nodes().filter(|node| is_so(node)).count();
    let cell = |number: usize, paint| {
        let paint = if number == 0 { Paint::Faint } else { paint };
        (number.to_string(), paint)
    };
    let (number, paint) = cell(count(|node| node.closed_unlimited), Paint::Bad);
    let unlimited = format!("{unlimited} {number}").trim_start().to_owned();
    vec![
        (name.to_owned(), Paint::Plain),
        cell(count(|node| node.met), Paint::Good),
        cell(count(|node| !node.met), Paint::Bad),
        (limited, Paint::Plain),
        cell(count(|node| node.closed), Paint::Bad),
        cell(count(NodeRecord::waits), Paint::Waiting),
        (unlimited, paint),
    ]
}

fn limited(node: &NodeRecord) -> char {
    match node {
        _ if node.closed => CLOSED,
        _ if node.waits() => WAITS,
        _ => OPEN,
    }
}

fn unlimited(node: &NodeRecord) -> char {
    if node.closed_unlimited { CLOSED } else { OPEN }
}

/// The status of the rule with the limit: a line for each zone that it names.
fn says(world: &World, width: usize, colours: Colours) -> Vec<String> {
    let Some(limited) = &world.limited.limited else {
        return Vec::new();
    };
    let (status, paint) = if limited.holds_back {
        ("True", Paint::Waiting)
    } else {
        ("False", Paint::Good)
    };
    let head = format!(
        "rule {LIMITED}, DisruptionLimited {status}, {}",
        limited.reason
    );
    let mut lines = vec![String::new(), colours.paint(paint, &cut(&head, width))];
    let indent = "  ";
    for part in limited.message.split("; ") {
        let part = wrap(part, width.saturating_sub(indent.len())).into_iter();
        lines.extend(part.map(|line| format!("{indent}{line}")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::world::tests::{limited_rule, node};
    use super::*;

    fn world() -> World {
        let mut world = World::default();
        for (zone, number, status, rules) in [
            ("a", 1, "False", &[LIMITED, UNLIMITED][..]),
            ("a", 2, "Unknown", &[UNLIMITED]),
            ("a", 3, "True", &[]),
            ("b", 1, "True", &[]),
        ] {
            world.see_node(&node(zone, number, 1, status, rules), Duration::ZERO);
        }
        let message = "2 nodes held back by the disruption limit: zone a is so; zone b is not";
        world.see_rule(&limited_rule(1, "NodesHeldBack", message), Duration::ZERO);
        world
    }

    #[test]
    fn each_zone_has_a_line_with_its_nodes_under_both_rules() {
        assert_eq!(
            picture(&world(), 80, Colours::None),
            [
                "ZONE  MET  UNMET  RULE limited  CLOSED  WAITS  RULE unlimited, CLOSED",
                "a     1    2      █▒·           1       1      ██· 2",
                "b     1    0      ·             0       0      · 0",
                "c     0    0                    0       0      0",
                "all   2    2                    1       1      2",
                "· open   ▒ unmet, held back open   █ closed",
                "",
                "rule limited, DisruptionLimited True, NodesHeldBack",
                "  2 nodes held back by the disruption limit: zone a is so",
                "  zone b is not",
            ]
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [20, 40, 80, 130] {
            for line in picture(&world(), width, Colours::None) {
                assert!(line.chars().count() <= width, "{width}: {line:?}");
            }
        }
    }
}
