//! The durations of each condition over many starts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::start::{Start, StartStage};

/// The durations of a condition under a rule, in seconds since the node's creation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spread {
    pub rule: String,
    /// The condition; empty for the whole start, until the node is opened.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    pub nodes: usize,
    /// How many nodes still wait for it.
    pub waiting: usize,
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    pub max: f64,
    pub slowest: String,
    /// On how many nodes it was met last.
    pub last: usize,
    /// How much earlier nodes would have opened without it, averaged over all ended starts of the rule.
    pub delay: f64,
}

/// The spreads of all conditions by rule, longest delay first; each rule's last one is its whole start.
pub(crate) fn spreads(starts: &[Start]) -> Vec<Spread> {
    let mut of_rules: BTreeMap<&str, Vec<&Start>> = BTreeMap::new();
    for start in starts {
        of_rules.entry(&start.rule).or_default().push(start);
    }
    let of_rules = of_rules.into_iter();
    of_rules
        .flat_map(|(rule, starts)| of_rule(rule, &starts))
        .collect()
}

fn of_rule(rule: &str, starts: &[&Start]) -> Vec<Spread> {
    let mut conditions: BTreeMap<&str, Vec<(&Start, &StartStage)>> = BTreeMap::new();
    for start in starts {
        for stage in start.conditions() {
            let of_it = conditions.entry(&stage.condition).or_default();
            of_it.push((start, stage));
        }
    }
    let ended = starts.iter().filter(|start| start.opened.is_some()).count();
    let mut spreads: Vec<Spread> = conditions
        .into_iter()
        .map(|(condition, stages)| {
            let times = stages
                .iter()
                .filter_map(|(start, stage)| Some((stage.seconds?, start.node.as_str())));
            let lasts = stages
                .iter()
                .filter(|(start, stage)| stage.last && start.opened.is_some());
            let delay: f64 = lasts.clone().map(|(start, _)| delay_by_last(start)).sum();
            // An empty sum of floats is -0.
            let delay = delay + 0.0;
            Spread {
                last: lasts.count(),
                delay: mean(delay, ended),
                ..spread(rule, condition, stages.len(), times.collect())
            }
        })
        .collect();
    spreads.sort_by(|a, b| {
        let delay = b.delay.total_cmp(&a.delay);
        delay.then_with(|| b.p90.total_cmp(&a.p90))
    });
    let whole = starts.iter().filter(|start| start.opened.is_some());
    let whole = whole.map(|start| (start.seconds, start.node.as_str()));
    spreads.push(spread(rule, "", starts.len(), whole.collect()));
    spreads
}

/// How much earlier the node would have opened if its last condition had been met at once.
fn delay_by_last(start: &Start) -> f64 {
    let mut times: Vec<f64> = start.conditions().filter_map(|it| it.seconds).collect();
    times.sort_by(f64::total_cmp);
    let last = times.pop().unwrap_or_default();
    let closed = times.pop().unwrap_or_default().max(0.0);
    (last - closed).max(0.0)
}

#[allow(clippy::cast_precision_loss, reason = "there are no 2^52 nodes")]
fn mean(sum: f64, count: usize) -> f64 {
    (sum / count.max(1) as f64 * 1000.0).round() / 1000.0
}

fn spread(rule: &str, condition: &str, all: usize, mut times: Vec<(f64, &str)>) -> Spread {
    times.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    // The nearest rank, so that it is the time of an actual node.
    let rank = |hundredths: usize| {
        let rank = (times.len() * hundredths).div_ceil(100).max(1) - 1;
        times.get(rank).copied().unwrap_or_default()
    };
    let (max, slowest) = rank(100);
    Spread {
        rule: rule.into(),
        condition: condition.into(),
        nodes: times.len(),
        waiting: all - times.len(),
        p50: rank(50).0,
        p90: rank(90).0,
        max,
        slowest: slowest.into(),
        last: 0,
        delay: 0.0,
    }
}
