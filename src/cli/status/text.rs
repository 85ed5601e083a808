//! The status as text.

use super::{ClusterStatus, NodeCounts, RuleStatus};
use crate::page::{Block, Line, Look, NextStep, Page, Render, notes};
use nodegate_core::text::{counted, documentation};

impl Render for ClusterStatus {
    const KIND: &'static str = "Status";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        let mut blocks: Vec<Block> = vec![
            leader(self, page).into(),
            versions(self).into(),
            nodes(&self.nodes).into(),
            Line::new().into(),
            match &*self.rules {
                [] => "there are no rules".into(),
                all => rules(page, all),
            },
        ];
        for rule in &self.rules {
            let name = &rule.rule;
            let lacks = page.some(&rule.lacks, |lack| {
                let line = Line::new().plain(format!("rule/{name} waits for "));
                let on = format!(": {} on {}", lack.reason, counted(lack.nodes, "node"));
                line.strong(&*lack.condition).plain(on)
            });
            let published = rule.published.iter().map(|published| {
                let line = Line::new().poor(format!("rule/{name} {}: ", published.kind));
                line.plain(&published.message).into()
            });
            let remarks = rule.remarks.iter();
            let remarks = remarks.map(|remark| format!("rule/{name}: {remark}").into());
            let all = lacks.into_iter().chain(published).chain(remarks);
            blocks.extend(all.map(Block::Tree));
        }
        blocks.extend(self.stray_taints.iter().map(|stray| {
            let nodes = counted(stray.nodes, "node");
            let line = Line::new().bad(format!("taint {} on {nodes}: ", stray.taint));
            let (why, example) = (&stray.why, &stray.example);
            let why = format!("no rule removes it ({why}); see node/{example}");
            line.plain(why).into()
        }));
        if !self.held.is_empty() {
            blocks.push(Line::new().into());
            let held = page.some(&self.held, |row| row.of_node(page, true));
            blocks.extend(held.into_iter().map(Block::Tree));
        }
        blocks.extend(notes(&self.notes));
        let held = self.held.iter().map(|it| &it.node);
        let stray = self.stray_taints.iter().map(|it| &it.example);
        if let Some(first) = held.chain(stray).next() {
            blocks.push(Line::from(&NextStep::see_node(first)).into());
        }
        if !self.held.is_empty() {
            let say = "if a rule holds nodes that it should not";
            let next = NextStep::new(say, documentation::page("emergency.md"));
            blocks.push(Line::from(&next).into());
        }
        blocks
    }
}

fn leader(status: &ClusterStatus, page: &Page) -> Line {
    let line = Line::new().faint("controller  ");
    if let Some(why) = &status.leader_unknown {
        return line.poor("unknown").plain(format!("  {why}"));
    }
    let Some(leader) = &status.leader else {
        let why = "there is no Lease: the controller does not run, or runs without leader election";
        return line.plain(why);
    };
    let lease = &leader.lease;
    let ago = |at| format!(" {} ago", page.age(at));
    let renewed = lease.renewed.map(ago).unwrap_or_default();
    let leads = format!("  {} (lease renewed{renewed})", lease.pod());
    let line = match lease.idle(page.now) {
        None => line.good("leading").plain(leads),
        Some(why) => line.bad(why),
    };
    let line = match leader.instances {
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
    let images = images.map(|image| format!(", controller {image}"));
    let line = Line::new().faint("versions    ");
    let line = line.plain(format!("kubectl nodegate {}", status.versions.client));
    line.plain(images.collect::<String>())
}

fn nodes(nodes: &NodeCounts) -> Line {
    let line = Line::new().faint("nodes       ");
    let mut line = line.plain(nodes.total.to_string());
    for (verdict, count) in nodes.by_verdict.iter().filter(|(_, count)| **count > 0) {
        let (look, word) = verdict.words();
        line = line.plain(", ").with(look, format!("{count} {word}"));
    }
    line
}

fn rules(page: &Page, rules: &[RuleStatus]) -> Block {
    const HEADS: [&str; 10] = [
        "RULE", "STATE", "TAINT", "MODE", "NODES", "HELD", "WAITING", "NOT HELD", "FAILING",
        "LONGEST",
    ];
    const WIDE: [&str; 4] = ["TAINT", "MODE", "WAITING", "NOT HELD"];
    let shown = |cells: [Line; HEADS.len()]| {
        let cells = cells.into_iter().zip(HEADS);
        let cells = cells.filter(|(_, head)| page.wide || !WIDE.contains(head));
        cells.map(|(cell, _)| cell).collect()
    };
    let count = |look, count: usize| {
        let look = if count > 0 { look } else { Look::Faint };
        Line::new().with(look, count.to_string())
    };
    let rows = rules.iter().map(|rule| {
        let (look, state) = rule.state.words();
        let longest = rule.longest_held.map(|at| page.age(at));
        shown([
            Line::new().strong(&*rule.rule),
            Line::new().with(look, state),
            rule.taint.as_str().into(),
            rule.mode.map_or("", |mode| mode.as_str()).into(),
            count(Look::Plain, rule.matched),
            count(Look::Bad, rule.held),
            count(Look::Poor, rule.waiting),
            count(Look::Plain, rule.not_held),
            count(Look::Bad, usize::try_from(rule.failing).unwrap_or_default()),
            longest.as_deref().unwrap_or("-").into(),
        ])
    });
    let heads = shown(HEADS.map(|head| Line::new().faint(head)));
    Block::Table([heads].into_iter().chain(rows).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::status;
    use crate::testing::Scene;
    use crate::testing::at;

    #[test]
    fn without_a_lease_it_is_said_that_there_is_none() {
        let snapshot = Scene::default().read(at(0));
        let text = status(&snapshot).text(&Page::plain(at(0)));
        assert!(text.contains("there is no Lease"), "{text}");
    }
}
