//! A preview as text.

use super::{Difference, Preview, RulePreview};
use crate::cli::page::{Block, Branch, Line, Look, Page, Render, notes};
use crate::cli::rows::{RuleOnNode, State, clock};
use crate::wording::counted;

/// Why a held node would be released.
const RELEASED: &str = "its conditions are met, or the rule leaves it alone";

impl Render for Preview {
    const KIND: &'static str = "Preview";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        let rules = self.rules.iter().map(|rule| of_rule(rule).into());
        let changes = [
            (&self.gates, Look::Bad, "gated", None),
            (&self.releases, Look::Good, "released", Some(RELEASED)),
        ];
        let changes = changes.map(|(changes, look, word, why)| {
            let head = match changes.len() {
                0 => Line::new().plain(format!("no node would be {word}")),
                count => Line::new().with(look, counted(count, "node") + " would be " + word),
            };
            let below = page.some(changes, |it| of_change(it, why));
            Branch::from(head).over(below).into()
        });
        rules.chain(changes).chain(notes(&self.notes)).collect()
    }

    fn is_no(&self) -> bool {
        let is_faulty = self.rules.iter().any(|it| !it.faults.is_empty());
        !self.gates.is_empty() || self.is_refused || is_faulty
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
    let mut tree = Branch::from(head);
    for fault in &rule.faults {
        tree.push(Line::new().bad("fault: ").plain(fault));
    }
    for refusal in &rule.refusals {
        tree.push(Line::new().bad("refused: ").plain(refusal));
    }
    for difference in &rule.differences {
        tree.push(of_difference(difference));
    }
    let states = rule.states.iter();
    let effects = states.filter_map(|(state, count)| effect(*state, *count, rule.held_already));
    let unchanged = [State::WouldHold, State::WouldNotHold, State::Suspended];
    let unchanged: usize = unchanged.iter().filter_map(|it| rule.states.get(it)).sum();
    let unchanged = (unchanged > 0).then(|| format!("leaves {unchanged} as they are"));
    let effects: Vec<_> = effects.chain(unchanged).collect();
    let mut selects = Branch::from(match rule.selected {
        0 => "selects no node".to_owned(),
        count => format!("selects {}: {}", counted(count, "node"), effects.join(", ")),
    });
    for (unmet, count) in &rule.unmet {
        let line = Line::mark(false).plain(format!("{unmet} on {count}"));
        selects.push(line);
    }
    tree.push(selects);
    if let Some(at) = rule.grace_ends {
        let line = format!(
            "its grace period would end at {} at the earliest",
            clock(at)
        );
        tree.push(line);
    }
    if let Some(guard) = &rule.guard {
        tree.push(guard.as_str());
    }
    for warning in &rule.warnings {
        tree.push(Line::new().poor("warning: ").plain(warning));
    }
    tree
}

/// What the rule does with its nodes in this state, if anything is to be decided about them.
fn effect(state: State, count: usize, held_already: usize) -> Option<String> {
    Some(match state {
        State::Held => format!("keeps {count} held"),
        State::Gating if held_already > 0 => {
            format!("gates {count} ({held_already} held by another rule already)")
        }
        State::Gating => format!("gates {count}"),
        State::Waiting => format!("gates {count} later"),
        State::Releasing => format!("releases {count}"),
        State::NotHeld => format!("does not hold {count}"),
        State::Conflicted => format!("leaves {count} to another rule with the same taint"),
        State::WouldHold | State::WouldNotHold | State::Suspended => return None,
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

fn of_change(row: &RuleOnNode, why: Option<&str>) -> Line {
    let when = match row.state {
        State::Waiting => " later, by its grace period or disruption limit",
        _ => "",
    };
    let why = why.unwrap_or(&row.why);
    let line = Line::new().strong(format!("node/{}", row.node));
    line.plain(format!(" by rule/{}{when}: {why}", row.rule))
}
