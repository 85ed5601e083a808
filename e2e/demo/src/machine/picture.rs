//! The node and its pods as a table.

use std::time::Duration;

use super::world::World;
use crate::stage::{Colours, Paint, cut, grid, seconds};

/// The kubelet's reports, the rules' decisions, and the pods.
#[must_use]
pub(super) fn picture(world: &World, now: Duration, width: usize, colours: Colours) -> Vec<String> {
    if !world.registered {
        return Vec::new();
    }
    let (ready, message) = &world.ready;
    let word = if *ready { "Ready" } else { "not Ready" };
    let gates: Vec<String> = world
        .closed_by()
        .map(|gating| {
            let lasted = seconds(gating.period.lasted(now));
            format!("closed by rule {} for {lasted}", gating.rule)
        })
        .collect();
    let gate = if gates.is_empty() {
        "open".to_owned()
    } else {
        gates.join(", ")
    };
    let mut lines = vec![
        cut(&format!("kubelet   {word}: {message}"), width),
        cut(&format!("node-1    {gate}"), width),
    ];
    let waits_for = world.waits_for.as_deref().filter(|_| !world.is_open());
    lines.push(cut(
        &format!("waits for {}", waits_for.unwrap_or("nothing")),
        width,
    ));
    lines.push(String::new());
    let rows: Vec<_> = world
        .pods
        .iter()
        .map(|(name, pod)| {
            let (word, paint) = match (&pod.waits, pod.ready) {
                (_, true) => ("yes", Paint::Good),
                (Some(reason), false) => (reason.as_str(), Paint::Waiting),
                (None, false) => ("no", Paint::Waiting),
            };
            vec![
                (name.clone(), Paint::Plain),
                (word.to_owned(), paint),
                (pod.restarts.to_string(), Paint::Plain),
            ]
        })
        .collect();
    if !rows.is_empty() {
        lines.extend(grid(&["POD", "READY", "RESTARTS"], &rows, width, colours));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::world::tests::node;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut world = World::default();
        world.see_node(&node(1, &["joining"], "False"), Duration::ZERO);
        let wide = picture(&world, Duration::from_secs(2), 100, Colours::None);
        assert_eq!(wide[0], "kubelet   not Ready: no network");
        assert_eq!(wide[1], "node-1    closed by rule joining for 2.0 s");
        for line in picture(&world, Duration::from_secs(2), 12, Colours::None) {
            assert!(line.chars().count() <= 12, "{line:?}");
        }
    }
}
