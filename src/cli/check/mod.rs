//! `check`: whether the cluster has what Nodegate needs, before and after it is installed. It judges the API server's answers
//! part by part.

mod facts;
mod parts;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::page::{Branch, Line, Look, Page, Render};
pub(super) use facts::{BIRTH, ClusterFacts, Definition, Lookup, WEBHOOK, WebhookFacts};
use facts::{Item, ItemHealth};

/// The results of all checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Checkup {
    pub items: Vec<Item>,
}

/// Checks every part.
pub(super) fn check(facts: &ClusterFacts) -> Checkup {
    let items = vec![
        parts::api_server(facts),
        parts::clock(facts),
        parts::rights(facts),
        parts::definition(facts),
        parts::birth(facts),
        parts::webhook(facts),
        parts::leader(facts),
        parts::deletions(facts),
    ];
    Checkup { items }
}

impl Render for Checkup {
    const KIND: &'static str = "Check";

    fn text(&self, page: &Page) -> String {
        let mut out = String::new();
        for item in &self.items {
            let (look, word) = match item.health {
                ItemHealth::Ok => (Look::Good, "ok     "),
                ItemHealth::Warning => (Look::Poor, "warning"),
                ItemHealth::Failed => (Look::Bad, "failed "),
                ItemHealth::Unknown => (Look::Poor, "unknown"),
            };
            let line = Line::new()
                .with(look, word)
                .plain("  ")
                .strong(item.what)
                .plain(format!(": {}", item.message));
            let next = item.next.iter().map(|next| Branch::new(next.line()));
            page.tree(&mut out, &Branch::new(line).over(next));
        }
        out
    }

    fn names(&self) -> Vec<String> {
        let items = self.items.iter();
        let amiss = items.filter(|item| item.health != ItemHealth::Ok);
        amiss
            .map(|item| format!("check/{}", item.what.replace(' ', "-")))
            .collect()
    }

    fn is_no(&self) -> bool {
        let mut items = self.items.iter();
        items.any(|item| item.health == ItemHealth::Failed)
    }

    fn unread(&self) -> Option<String> {
        let items = self.items.iter();
        let unknown = items.filter(|item| item.health == ItemHealth::Unknown);
        let unknown: Vec<_> = unknown.map(|item| item.what).collect();
        (!unknown.is_empty()).then(|| format!("unknown: {}", unknown.join(", ")))
    }
}
