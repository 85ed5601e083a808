//! A preview as text.

use super::{Difference, Preview, RulePreview};
use crate::cli::page::{Branch, Line, Look, Page, Render};
use crate::cli::rows::{RuleOnNode, State, clock};
use crate::wording::counted;

const SHOWN: usize = 10;
/// Why a held node would be released.
const RELEASED: &str = "its conditions are met, or the rule leaves it alone";

impl Render for Preview {
    const KIND: &'static str = "Preview";

    fn text(&self, page: &Page) -> String {
        let mut out = String::new();
        for rule in &self.rules {
            page.tree(&mut out, &of_rule(rule));
        }
        let shown = if page.wide { usize::MAX } else { SHOWN };
        for (changes, look, word, why) in [
            (&self.gates, Look::Bad, "gated", None),
            (&self.releases, Look::Good, "released", Some(RELEASED)),
        ] {
            let head = match changes.len() {
                0 => Line::new().plain(format!("no node would be {word}")),
                count => Line::new().with(look, counted(count, "node") + " would be " + word),
            };
            let below = changes.iter().take(shown).map(|it| of_change(it, why));
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
    let effects = states.filter_map(|(state, count)| effect(*state, *count, rule.held_already));
    let unchanged = [State::WouldHold, State::WouldNotHold, State::Suspended];
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

fn of_change(row: &RuleOnNode, why: Option<&str>) -> Branch {
    let when = match row.state {
        State::Waiting => " later, by its grace period or disruption limit",
        _ => "",
    };
    let why = why.unwrap_or(&row.why);
    let line = Line::new().strong(format!("node/{}", row.node));
    Branch::new(line.plain(format!(" by rule/{}{when}: {why}", row.rule)))
}
