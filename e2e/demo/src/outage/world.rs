//! The observed state of nodes and rules. Objects come in from the watches, and notable changes come out. Pure: the time is a
//! parameter, counted from the start of the story.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::DynamicObject;

use super::cast::{CONDITION, LIMITED, TAINT_PREFIX, UNLIMITED, ZONE};
use super::picture::picture;
use crate::stage::{self, Colours, Moment, condition};
use nodegate_testbed::sights;

/// The observed state.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// The nodes, by name.
    pub nodes: BTreeMap<String, NodeRecord>,
    /// The rule with the limit.
    pub limited: RuleRecord,
    /// The rule without a limit.
    pub unlimited: RuleRecord,
    /// The most nodes that the rule without a limit had closed at once.
    pub most_unlimited: usize,
    /// The most nodes that the rule with the limit had closed at once.
    pub most_limited: usize,
}

#[derive(Debug, Clone, Default)]
pub struct NodeRecord {
    pub zone: String,
    pub met: bool,
    /// Since when it is `True`, if it is.
    pub met_since: Option<Moment>,
    /// Whether the rule with the limit has closed it.
    pub closed: bool,
    /// Whether the rule without a limit has closed it.
    pub closed_unlimited: bool,
    /// When the rule with the limit closed it.
    pub closings: Vec<Moment>,
}

impl NodeRecord {
    /// Whether it is only open because it is held back.
    #[must_use]
    pub fn waits(&self) -> bool {
        !self.met && !self.closed
    }
}

/// The observed status of a rule.
#[derive(Debug, Clone, Default)]
pub struct RuleRecord {
    /// How many nodes it selects.
    pub matched: u64,
    /// How many nodes it has closed.
    pub held: u64,
    /// Its status condition `DisruptionLimited`.
    pub limited: Option<Limited>,
    /// When every zone was last reported as disrupted.
    pub halted: Option<Moment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limited {
    /// Whether nodes are held back.
    pub holds_back: bool,
    pub reason: String,
    pub message: String,
}

impl Limited {
    fn of(rule: &DynamicObject) -> Option<Self> {
        let conditions = rule.data["status"]["conditions"].as_array()?;
        let condition = conditions
            .iter()
            .find(|condition| condition["type"] == "DisruptionLimited")?;
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        Some(Self {
            holds_back: text("status") == "True",
            reason: text("reason"),
            message: text("message"),
        })
    }

    /// Whether it reports that nothing is closed because every zone is disrupted.
    #[must_use]
    pub fn is_halt(&self) -> bool {
        self.reason == "AllZonesDisrupted"
    }
}

impl stage::World for World {
    fn picture(&self, _: Duration, width: usize, colours: Colours) -> Vec<String> {
        picture(self, width, colours)
    }
}

impl World {
    /// Records a node's current state; returns notable changes.
    pub fn see_node(&mut self, node: &Node, at: Duration) -> Vec<String> {
        let name = node.name_any();
        let moment = Moment::of(node, at);
        let record = self.nodes.entry(name.clone()).or_default();
        record.zone = node.labels().get(ZONE).cloned().unwrap_or_default();
        let met = condition(node, CONDITION).is_some_and(|it| it.status == "True");
        let was_met = std::mem::replace(&mut record.met, met);
        if record.met != was_met {
            record.met_since = record.met.then_some(moment);
        }
        record.closed_unlimited = has_taint(node, UNLIMITED);
        let was_closed = std::mem::replace(&mut record.closed, has_taint(node, LIMITED));
        let mut news = Vec::new();
        if record.closed && !was_closed {
            record.closings.push(moment);
            news.push(format!("{name}  closed by rule {LIMITED}"));
        }
        self.most_limited = self.most_limited.max(self.count(|node| node.closed));
        let closed_unlimited = self.count(|node| node.closed_unlimited);
        self.most_unlimited = self.most_unlimited.max(closed_unlimited);
        news
    }

    /// Records a rule's current state; returns notable changes.
    pub fn see_rule(&mut self, rule: &DynamicObject, at: Duration) -> Vec<String> {
        let name = rule.name_any();
        let record = match name.as_str() {
            LIMITED => &mut self.limited,
            UNLIMITED => &mut self.unlimited,
            _ => return Vec::new(),
        };
        let count = |field: &str| rule.data["status"][field].as_u64().unwrap_or_default();
        record.matched = count("matchedNodes");
        record.held = count("heldNodes");
        let limited = Limited::of(rule);
        let reason = |limited: &Option<Limited>| limited.as_ref().map(|it| it.reason.clone());
        let is_news = reason(&limited) != reason(&record.limited);
        record.limited = limited;
        let Some(limited) = record.limited.as_ref().filter(|_| is_news) else {
            return Vec::new();
        };
        if limited.is_halt() {
            record.halted = Some(Moment::of(rule, at));
        }
        vec![format!("rule {name}  {}", limited.message)]
    }

    /// How many nodes meet a predicate.
    #[must_use]
    pub fn count(&self, is_so: impl Fn(&NodeRecord) -> bool) -> usize {
        self.nodes.values().filter(|node| is_so(node)).count()
    }

    /// The nodes of a zone, by name.
    pub fn of_zone(&self, zone: &str) -> impl Iterator<Item = &NodeRecord> {
        self.nodes.values().filter(move |node| node.zone == zone)
    }
}

fn has_taint(node: &Node, rule: &str) -> bool {
    sights::count_taints(node, &format!("{TAINT_PREFIX}{rule}")) > 0
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;
    use nodegate_testbed::fixtures;

    /// A node whose condition has this status, closed by these rules.
    pub(crate) fn node(
        zone: &str,
        number: usize,
        revision: u64,
        status: &str,
        rules: &[&str],
    ) -> Node {
        let name = super::super::cast::name(zone, number);
        let node = rules.iter().fold(fixtures::node(&name), |node, rule| {
            node.taint(&format!("{TAINT_PREFIX}{rule}"), "NoSchedule")
        });
        let mut node = node.label(ZONE, zone).condition(CONDITION, status).build();
        node.metadata.resource_version = Some(revision.to_string());
        node
    }

    /// The rule with the limit, with this status condition.
    pub(crate) fn limited_rule(revision: u64, reason: &str, message: &str) -> DynamicObject {
        let rule = json!({
            "metadata": {"name": LIMITED, "resourceVersion": revision.to_string()},
            "status": {"matchedNodes": 3, "heldNodes": 1, "conditions": [{
                "type": "DisruptionLimited",
                "status": if reason == "NoNodeHeldBack" { "False" } else { "True" },
                "reason": reason,
                "message": message,
            }]},
        });
        serde_json::from_value(rule).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_node_that_is_unmet_and_open_waits() {
        let mut world = World::default();
        for (status, rules, waits) in [
            ("True", &[][..], false),
            ("False", &[], true),
            ("Unknown", &[UNLIMITED], true),
            ("False", &[LIMITED, UNLIMITED], false),
            ("True", &[LIMITED], false),
        ] {
            world.see_node(&node("a", 1, 1, status, rules), Duration::ZERO);
            assert_eq!(
                world.nodes["node-a-01"].waits(),
                waits,
                "{status} {rules:?}"
            );
        }
        assert_eq!((world.most_limited, world.most_unlimited), (1, 1));
    }

    #[test]
    fn a_closing_is_told_once_and_kept() {
        let mut world = World::default();
        let mut see = |revision, rules: &[&str]| {
            let node = node("a", 1, revision, "False", rules);
            world.see_node(&node, Duration::from_secs(revision))
        };
        assert!(see(1, &[]).is_empty());
        assert_eq!(see(2, &[LIMITED]), ["node-a-01  closed by rule limited"]);
        assert!(see(3, &[LIMITED, UNLIMITED]).is_empty());
        assert!(see(4, &[]).is_empty());
        assert_eq!(see(5, &[LIMITED]).len(), 1);
        let closings = world.nodes["node-a-01"].closings.iter();
        let revisions: Vec<u64> = closings.map(|closing| closing.revision.0).collect();
        assert_eq!(revisions, [2, 5]);
    }

    #[test]
    fn a_rule_is_told_of_when_its_reason_changes() {
        let mut world = World::default();
        let mut see = |revision, reason, message| {
            world.see_rule(&limited_rule(revision, reason, message), Duration::ZERO)
        };
        assert_eq!(
            see(1, "NodesHeldBack", "3 nodes"),
            ["rule limited  3 nodes"]
        );
        assert!(see(2, "NodesHeldBack", "4 nodes").is_empty());
        assert_eq!(see(3, "AllZonesDisrupted", "all"), ["rule limited  all"]);
        assert!(see(4, "AllZonesDisrupted", "all 5").is_empty());
        let rule = &world.limited;
        assert_eq!(rule.halted.map(|moment| moment.revision.0), Some(3));
        assert_eq!((rule.matched, rule.held), (3, 1));
    }
}
