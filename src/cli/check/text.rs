//! A checkup for people.

use super::{Checkup, ItemHealth};
use crate::cli::answer::Answer;
use crate::cli::page::{Branch, Line, Look, Page};

impl Answer for Checkup {
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
                .with(Look::Strong, item.what)
                .plain(format!(": {}", item.message));
            let next = item.next.iter().map(|next| {
                let line = Line::new().with(Look::Strong, "next: ");
                let line = line.plain(format!("{}: ", next.say));
                Branch::new(line.with(Look::Strong, &next.command))
            });
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
}
