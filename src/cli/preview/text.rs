//! A preview as text.

use super::{Change, Difference, Preview, RulePreview, When};
use crate::cli::fleet::clock;
use crate::cli::page::{Branch, Line, Look, Page, Render, counted};

/// The most nodes that are shown.
const SHOWN: usize = 10;

impl Render for Preview {
    const KIND: &'static str = "Preview";

    fn text(&self, page: &Page) -> String {
        let mut out = String::new();
        for rule in &self.rules {
            page.tree(&mut out, &of_rule(rule));
        }
        let shown = if page.wide { usize::MAX } else { SHOWN };
        for (changes, look, word) in [
            (&self.closes, Look::Bad, "closed"),
            (&self.opens, Look::Good, "opened"),
        ] {
            let head = match changes.len() {
                0 => Line::new().plain(format!("no node would be {word}")),
                count => Line::new().with(look, counted(count, "node") + " would be " + word),
            };
            let below = changes.iter().take(shown).map(of_change);
            let mut tree = Branch::new(head).over(below);
            if let more @ 1.. = changes.len().saturating_sub(shown) {
                let line = format!("and {more} more (-o wide shows all)");
                tree.push(Branch::new(Line::new().faint(line)));
            }
            page.tree(&mut out, &tree);
        }
        page.notes(&mut out, &self.notes);
        out
    }

    fn names(&self) -> Vec<String> {
        let nodes = self.closes.iter().chain(&self.opens);
        nodes.map(|it| format!("node/{}", it.node)).collect()
    }

    fn is_no(&self) -> bool {
        !self.closes.is_empty() || self.is_refused
    }

    fn unread(&self) -> Option<String> {
        self.unread.clone()
    }
}

fn of_rule(rule: &RulePreview) -> Branch {
    let head = Line::new()
        .strong(format!("rule/{}", rule.rule))
        .plain(if rule.is_edit {
            "  edited"
        } else {
            "  created"
        });
    let mut tree = Branch::new(head);
    for refusal in &rule.refusals {
        tree.push(Branch::new(Line::new().bad("refused: ").plain(refusal)));
    }
    for difference in &rule.differences {
        tree.push(Branch::new(of_difference(difference)));
    }
    let states = rule.states.iter();
    let states: Vec<_> = states
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let mut selects = Branch::new(match rule.selected {
        0 => "selects no node".to_owned(),
        count => format!("selects {}: {}", counted(count, "node"), states.join(", ")),
    });
    for (lacking, count) in &rule.lacking {
        let line = Line::mark(false).plain(format!("{lacking} on {count}"));
        selects.push(Branch::new(line));
    }
    tree.push(selects);
    if let Some(at) = rule.grace_ends {
        let line = format!(
            "its grace period would end at {} at the earliest",
            clock(at)
        );
        tree.push(Branch::new(line));
    }
    if let Some(guard) = &rule.guard {
        tree.push(Branch::new(guard.as_str()));
    }
    for warning in &rule.warnings {
        tree.push(Branch::new(Line::new().poor("warning: ").plain(warning)));
    }
    tree
}

fn of_difference(difference: &Difference) -> Line {
    let line = Line::new().plain(format!("{}: ", difference.field));
    match (&difference.from, &difference.to) {
        (Some(from), Some(to)) => line
            .bad(from.to_string())
            .plain(" -> ")
            .good(to.to_string()),
        (Some(from), None) => line.bad(from.to_string()).plain(" is taken out"),
        (None, Some(to)) => line.plain("set to ").good(to.to_string()),
        (None, None) => line,
    }
}

fn of_change(change: &Change) -> Branch {
    let when = match change.when {
        When::AtOnce => "",
        When::Later => " later, by grace period and guard",
    };
    let line = Line::new()
        .strong(format!("node/{}", change.node))
        .plain(format!(" by rule/{}{when}: {}", change.rule, change.why));
    Branch::new(line)
}
