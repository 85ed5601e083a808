//! The status as text.

use super::{ClusterStatus, LeaderStatus, NodeCounts, RuleStatus};
use crate::cli::page::{Column, Line, Look, NextStep, Page, Render};
use crate::cli::snapshot::LeaderHealth;
use crate::wording::counted;

/// The most held nodes that are shown, and the most unmet conditions of a rule.
const SHOWN: usize = 10;

const RULES: [Column; 9] = [
    Column::new("RULE"),
    Column::new("STATE"),
    Column::wide("MODE"),
    Column::new("NODES"),
    Column::new("HELD"),
    Column::wide("WAITING"),
    Column::wide("NOT HELD"),
    Column::new("FAILING"),
    Column::new("LONGEST"),
];

impl Render for ClusterStatus {
    const KIND: &'static str = "Status";

    fn text(&self, page: &Page) -> String {
        let mut out = String::new();
        let known = self.leader.as_ref();
        let leader = leader(known, self.leader_unknown.as_deref(), page);
        for line in [leader, versions(self), nodes(&self.nodes)] {
            page.wrapped(&mut out, "", "            ", &line);
        }
        out.push('\n');
        if self.rules.is_empty() {
            page.line(&mut out, "there are no rules");
        } else {
            rules(&mut out, page, &self.rules);
        }
        let shown = if page.wide { usize::MAX } else { SHOWN };
        for rule in &self.rules {
            for lack in rule.lacks.iter().take(shown) {
                let nodes = counted(lack.nodes, "node");
                let line = Line::new().plain(format!("rule/{} waits for ", rule.rule));
                let line = line.strong(&*lack.condition);
                page.line(
                    &mut out,
                    line.plain(format!(": {} on {nodes}", lack.reason)),
                );
            }
            for published in &rule.published {
                let line = Line::new()
                    .poor(format!("rule/{} {}: ", rule.rule, published.kind))
                    .plain(&published.message);
                page.line(&mut out, line);
            }
            for remark in &rule.remarks {
                let line = Line::new().plain(format!("rule/{}: {remark}", rule.rule));
                page.line(&mut out, line);
            }
        }
        for stray in &self.stray_taints {
            let head = format!(
                "taint {} on {}: ",
                stray.taint,
                counted(stray.nodes, "node")
            );
            let line = format!(
                "no rule removes it ({}); see node/{}",
                stray.why, stray.example
            );
            page.line(&mut out, Line::new().bad(head).plain(line));
        }
        if !self.held.is_empty() {
            out.push('\n');
            for row in self.held.iter().take(shown) {
                page.line(&mut out, row.of_node(page, true));
            }
            if let more @ 1.. = self.held.len().saturating_sub(shown) {
                let line = format!("and {more} more (-o wide shows all)");
                page.line(&mut out, Line::new().faint(line));
            }
        }
        page.notes(&mut out, &self.notes);
        let held = self.held.iter().map(|it| &it.node);
        let stray = self.stray_taints.iter().map(|it| &it.example);
        if let Some(first) = held.chain(stray).next() {
            let command = format!("kubectl nodegate explain node/{first}");
            page.line(
                &mut out,
                NextStep::new("see why, and what to do", command).line(),
            );
        }
        out
    }

    fn is_no(&self) -> bool {
        self.is_too_late
    }
}

/// The line about the leader; `unknown` says why it is unknown.
pub(crate) fn leader(leader: Option<&LeaderStatus>, unknown: Option<&str>, page: &Page) -> Line {
    let line = Line::new().faint("controller  ");
    if let Some(why) = unknown {
        return line.poor("unknown").plain(format!("  {why}"));
    }
    let Some(LeaderStatus {
        lease,
        health,
        instances,
    }) = leader
    else {
        return line.plain(
            "there is no Lease: the controller does not run, or runs without leader election",
        );
    };
    let renewed = lease
        .renewed
        .map_or_else(String::new, |at| format!(" {} ago", page.age(at)));
    let line = match health {
        LeaderHealth::Alive => line
            .good("leading")
            .plain(format!("  {} (lease renewed{renewed})", lease.pod())),
        LeaderHealth::Silent => line.bad("silent").plain(format!(
            "  {} renewed its lease{renewed}: it may add and remove no taints",
            lease.pod()
        )),
        LeaderHealth::Nobody => line.bad("no instance leads"),
    };
    let line = match instances {
        (0, _) => line,
        (all, ready) => line.plain(format!(", {ready} of {all} instances ready")),
    };
    if lease.suspends_all {
        line.bad("  all rules are suspended")
    } else {
        line
    }
}

fn versions(status: &ClusterStatus) -> Line {
    let images = status.versions.controllers.iter();
    let images = images.cloned().collect::<Vec<_>>().join(", ");
    let line = Line::new()
        .faint("versions    ")
        .plain(format!("kubectl nodegate {}", status.versions.client));
    if images.is_empty() {
        line
    } else {
        line.plain(format!(", controller {images}"))
    }
}

/// The line of node counts.
pub(crate) fn nodes(nodes: &NodeCounts) -> Line {
    let mut line = Line::new()
        .faint("nodes       ")
        .plain(nodes.total.to_string());
    for (count, look, word) in [
        (nodes.held, Look::Bad, "held"),
        (nodes.releasing, Look::Good, "about to be released"),
        (nodes.waiting, Look::Poor, "waiting to be gated"),
        (nodes.not_held, Look::Good, "not held"),
        (nodes.not_selected, Look::Plain, "not selected"),
        (nodes.left_alone, Look::Bad, "left as they are"),
    ] {
        if count > 0 {
            line = line.plain(", ").with(look, format!("{count} {word}"));
        }
    }
    line
}

fn rules(out: &mut String, page: &Page, rules: &[RuleStatus]) {
    let cell = |look, text: String| Line::new().with(look, text);
    let count = |look, count: usize| {
        cell(
            if count > 0 { look } else { Look::Faint },
            count.to_string(),
        )
    };
    let rows: Vec<Vec<Line>> = rules
        .iter()
        .map(|rule| {
            let mode = rule.mode.map_or("", |mode| mode.as_str());
            let failing = usize::try_from(rule.failing).unwrap_or_default();
            let longest = rule
                .longest_held
                .map_or_else(|| "-".into(), |at| page.age(at));
            vec![
                cell(Look::Strong, rule.rule.to_string()),
                cell(rule.state.look(), rule.state.word().into()),
                mode.into(),
                count(Look::Plain, rule.matched),
                count(Look::Bad, rule.held),
                count(Look::Poor, rule.waiting),
                count(Look::Plain, rule.not_held),
                count(Look::Bad, failing),
                longest.into(),
            ]
        })
        .collect();
    page.table(out, &RULES, &rows);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::status::status;
    use crate::cli::testing::Scene;
    use crate::cluster::{ResourceKind, Unreadable};
    use crate::testing::at;

    #[test]
    fn a_lease_that_may_not_be_read_does_not_mean_that_nothing_runs() {
        let mut snapshot = Scene::default().read(at(0));
        let first = |text: String| text.lines().next().map(str::to_owned);
        let absent = first(status(&snapshot).text(&Page::plain(at(0)))).unwrap();
        assert!(absent.contains("there is no Lease"), "{absent}");
        let gap = Unreadable::failed(ResourceKind::Leases, "");
        snapshot.gaps.push(Unreadable {
            forbidden: true,
            ..gap
        });
        assert_eq!(
            first(status(&snapshot).text(&Page::plain(at(0)))).unwrap(),
            "controller  unknown  not allowed to list leases"
        );
    }
}
