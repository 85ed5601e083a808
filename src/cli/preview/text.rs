//! A preview as text.

use super::{Change, Difference, Preview, RulePreview, When};
use crate::cli::fleet::{State, clock};
use crate::cli::page::{Branch, Line, Look, Page, Render};
use crate::wording::counted;

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
        for (changes, look, which, word) in [
            (&self.closes, Look::Bad, "open node", "closed"),
            (&self.opens, Look::Good, "closed node", "opened"),
        ] {
            let head = match changes.len() {
                0 => Line::new().plain(format!("no {which} would be {word}")),
                count => Line::new().with(look, counted(count, which) + " would be " + word),
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

    fn is_no(&self) -> bool {
        let is_faulty = self.rules.iter().any(|it| !it.faults.is_empty());
        !self.closes.is_empty() || self.is_refused || is_faulty
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
    let head = if rule.is_shown_in_force {
        head.faint("  (a dry run: what follows is what it would do in force)")
    } else {
        head
    };
    let mut tree = Branch::new(head);
    for fault in &rule.faults {
        tree.push(Branch::new(Line::new().bad("fault: ").plain(fault)));
    }
    for refusal in &rule.refusals {
        tree.push(Branch::new(Line::new().bad("refused: ").plain(refusal)));
    }
    for difference in &rule.differences {
        tree.push(Branch::new(of_difference(difference)));
    }
    let states = rule.states.iter();
    let effects = states.filter_map(|(state, count)| effect(*state, *count, rule.closed_already));
    let unchanged = [State::WouldClose, State::WouldOpen, State::Suspended];
    let unchanged: usize = unchanged.iter().filter_map(|it| rule.states.get(it)).sum();
    let unchanged = (unchanged > 0).then(|| format!("leaves {unchanged} as they are"));
    let effects: Vec<_> = effects.chain(unchanged).collect();
    let mut selects = Branch::new(match rule.selected {
        0 => "selects no node".to_owned(),
        count => format!("selects {}: {}", counted(count, "node"), effects.join(", ")),
    });
    for (unmet, count) in &rule.unmet {
        let line = Line::mark(false).plain(format!("{unmet} on {count}"));
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

/// What the rule does with its nodes in this state, if anything is to be decided about them.
fn effect(state: State, count: usize, closed_already: usize) -> Option<String> {
    Some(match state {
        State::Held => format!("keeps {count} closed"),
        State::Closing if closed_already > 0 => {
            format!("closes {count} ({closed_already} closed by another rule already)")
        }
        State::Closing => format!("closes {count}"),
        State::Waiting => format!("closes {count} later"),
        State::Opening => format!("opens {count}"),
        State::Open => format!("leaves {count} open"),
        State::Conflicted => format!("leaves {count} to another rule with the same taint"),
        State::WouldClose | State::WouldOpen | State::Suspended => return None,
    })
}

fn of_difference(difference: &Difference) -> Line {
    let line = Line::new().plain(format!("{}: ", difference.field));
    match (&difference.from, &difference.to) {
        (Some(from), Some(to)) => line
            .bad(from.to_string())
            .plain(" -> ")
            .good(to.to_string()),
        (Some(from), None) => line.bad(from.to_string()).plain(" is removed"),
        (None, Some(to)) => line.plain("set to ").good(to.to_string()),
        (None, None) => line,
    }
}

fn of_change(change: &Change) -> Branch {
    let when = match change.when {
        When::AtOnce => "",
        When::Later => " later, by its grace period or disruption limit",
    };
    let line = Line::new()
        .strong(format!("node/{}", change.node))
        .plain(format!(" by rule/{}{when}: {}", change.rule, change.why));
    Branch::new(line)
}
