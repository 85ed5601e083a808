//! A line for each change, where there is no screen: time, node, what has become of it, the rule, and why.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::closed::{Fleet, Lacking};
use crate::cli::page::age;
use crate::cli::standing::clock;

/// Why a node is held that is about to be opened.
const MET: &str = "its conditions are met";

/// What has been told so far: why each rule holds each node.
#[derive(Debug, Default)]
pub struct Told(BTreeMap<(Arc<str>, Arc<str>), Lacking>);

impl Told {
    /// The lines for what is not as it was told last; at first, one for each rule that holds a node. A node is told of again
    /// while it is held where it lacks something else than before. `is_there` tells whether there is a node of this name.
    pub fn lines(&mut self, fleet: &Fleet, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        let at = clock(fleet.at);
        let mut now = BTreeMap::new();
        for closed in &fleet.closed {
            for (rule, lacking) in &closed.lacks {
                now.insert((closed.node.clone(), rule.clone()), lacking.clone());
            }
        }
        let mut lines = Vec::new();
        for ((node, rule), before) in &self.0 {
            if !now.contains_key(&(node.clone(), rule.clone())) {
                let word = if is_there(node) { "opened" } else { "gone" };
                let after = before
                    .since
                    .map_or_else(String::new, |since| after(fleet.at, since));
                lines.push(format!("{at} {node} {word} {rule}{after}"));
            }
        }
        for ((node, rule), lacking) in &now {
            let told = self.0.get(&(node.clone(), rule.clone()));
            let is_met = lacking.what.is_empty();
            if told.is_none_or(|told| !is_met && told.what != lacking.what) {
                let why = if is_met { MET } else { &lacking.why };
                lines.push(format!("{at} {node} held {rule} {why}"));
            }
        }
        self.0 = now;
        lines
    }
}

fn after(now: Timestamp, since: Timestamp) -> String {
    format!(" after {}", age(now, since))
}
