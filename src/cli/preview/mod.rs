//! `preview`: what rules would do before they are created or edited. It puts them into the engine's view, and compares the plans.

mod input;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::page::{Block, Branch, Line, Look, Page, Render, notes};
use super::rows::{Lacking, RuleOnNode, State, first_of_nodes, gap, lacking, rows};
use super::snapshot::Snapshot;
pub(super) use input::{Written, rules};
use nodegate_core::api::{NodeReadinessRuleSpec, misplaced};
use nodegate_core::finding::{Severity, evicts};
use nodegate_core::rule::{CompiledSpec, Rejection, Rule};
use nodegate_core::text::counted;

const IMMUTABLE: [&str; 4] = [
    "conditions",
    "enforcementMode",
    "nodeSelector",
    "conditionPolicy",
];
const RELEASED: &str = "its conditions are met, or the rule leaves it alone";

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Preview {
    pub rules: Vec<RulePreview>,
    /// Nodes that no rule holds and that would be gated, at once or later, by name.
    pub gates: Vec<RuleOnNode>,
    /// Held nodes that would be released, as they are now.
    pub releases: Vec<RuleOnNode>,
    /// Held nodes that no rule would release any more, since the one that holds them becomes a dry run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub abandons: Vec<RuleOnNode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RulePreview {
    pub rule: String,
    pub is_edit: bool,
    /// Whether it is in the cluster as it is.
    pub is_unchanged: bool,
    /// Whether the rule is a dry run, and everything else says what would happen if it were not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_shown_in_force: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    pub selected: usize,
    pub states: BTreeMap<State, usize>,
    /// How many of the nodes that it would gate are held by another rule already.
    pub held_already: usize,
    /// What the nodes that it would gate lack.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<Lacking>,
    /// The earliest time at which nodes in their grace period would be gated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ends: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
    /// What is wrong with what it waits for, why a node that joins would stay held, conflicts, a selector without matches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// What its author may not expect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What these rules change, compared to the rows `before`. `answers`: for each, why the API server refuses it, or was not asked.
pub(super) fn preview(
    before: &[RuleOnNode],
    after: &Snapshot,
    written: &[Written],
    answers: &[Result<Option<String>, String>],
) -> Preview {
    let rows = rows(after);
    let (held_before, held_after) = (held(before), held(&rows));
    let previews = written.iter().zip(answers);
    let previews = previews.map(|(it, answer)| of_rule(it, answer, after, &rows, &held_before));
    let previews: Vec<RulePreview> = previews.collect();
    let unasked: BTreeSet<_> = answers.iter().filter_map(|it| it.as_ref().err()).collect();
    let mut notes = after.notes();
    let runs_with = after.leader.as_ref().and_then(|it| it.says(after.at));
    if runs_with.is_none() {
        let limits = "no controller that leads says what its limits are: where a rule has none of its own, the defaults are assumed";
        notes.push(limits.into());
    }
    let not_asked = "whether the API server takes the rules was not asked";
    notes.extend(unasked.into_iter().map(|why| format!("{not_asked}: {why}")));
    let were = |state: State| before.iter().filter(move |it| it.state == state);
    let was_waiting = |it: &RuleOnNode| {
        were(State::Waiting).any(|was| (&was.node, &was.rule) == (&it.node, &it.rule))
    };
    let gates = rows.iter().filter(|it| !held_before.contains(&it.node));
    let gates =
        gates.filter(|it| it.state.holds() || it.state == State::Waiting && !was_waiting(it));
    let mut gates: Vec<_> = gates.collect();
    gates.sort_by_key(|it| it.state == State::Waiting);
    let releases = before.iter().filter(|it| it.state.holds());
    let releases = releases.filter(|it| !held_after.contains(&it.node));
    let was_abandoned = |it: &&RuleOnNode| were(State::Abandoned).any(|was| was.node == it.node);
    let abandons = rows.iter().filter(|it| it.state == State::Abandoned);
    Preview {
        abandons: first_of_nodes(abandons.filter(|it| !was_abandoned(it))),
        gates: first_of_nodes(gates),
        releases: first_of_nodes(releases),
        notes,
        rules: previews,
    }
}

/// The nodes that have a rule's taint, or are about to get it.
fn held(rows: &[RuleOnNode]) -> BTreeSet<Arc<str>> {
    let held = rows.iter();
    let held = held.filter(|it| it.state.holds() || it.state == State::Releasing);
    held.map(|it| it.node.clone()).collect()
}

fn of_rule(
    written: &Written,
    answer: &Result<Option<String>, String>,
    after: &Snapshot,
    rows: &[RuleOnNode],
    held_before: &BTreeSet<Arc<str>>,
) -> RulePreview {
    let (view, there) = (&after.view, written.there.as_ref());
    let rule = view.cached_rules().get(&*written.name);
    let rule = rule.map(|cached| &*cached.rule);
    let spec = rule.and_then(|rule| rule.spec.as_ref().ok());
    let new = &written.object["spec"];
    let old = there.and_then(|there| serde_json::to_value(there.spec.as_ref().ok()?).ok());
    let own: Vec<&RuleOnNode> = rows.iter().filter(|it| *it.rule == *written.name).collect();
    let of_state = |state: State| own.iter().filter(move |it| it.state == state);
    let mut states: BTreeMap<State, usize> = BTreeMap::new();
    for it in &own {
        *states.entry(it.state).or_default() += 1;
    }
    let held_already = of_state(State::Gating).filter(|it| held_before.contains(&it.node));
    let gated = of_state(State::Gating).chain(of_state(State::Waiting));
    let grace = spec.and_then(|spec| spec.ours.grace_period);
    let grace = grace.filter(|_| states.contains_key(&State::Waiting));
    let mut preview = RulePreview {
        rule: written.name.clone(),
        is_edit: there.is_some(),
        is_shown_in_force: written.is_shown_in_force(),
        selected: own.len(),
        held_already: held_already.count(),
        lacks: lacking(gated.copied()),
        grace_ends: grace.and_then(|grace| after.at.checked_add(grace.as_std()).ok()),
        guard: rule.and_then(|rule| Some(view.guard(rule)?.to_string())),
        states,
        ..RulePreview::default()
    };
    if let (Some(rule), Some(spec)) = (rule, spec) {
        preview.assess(rule, spec, after, &own);
    }
    let mut refusals = BTreeSet::from_iter(misplaced(new));
    let parsed = serde_json::from_value::<NodeReadinessRuleSpec>(new.clone()).ok();
    if let Some(spec) = &parsed {
        let all = Rejection::all(spec).into_iter();
        let all = all.chain(Rejection::of_conditions(spec));
        refusals.extend(all.map(|it| it.to_string()));
    }
    let rejection = rule.and_then(|rule| rule.spec.as_ref().err());
    refusals.extend(rejection.map(ToString::to_string));
    if let Some(old) = old {
        // Once it is parsed, it has the API server's defaults.
        let parsed = parsed.and_then(|spec| serde_json::to_value(spec).ok());
        let new = parsed.as_ref().unwrap_or(new);
        compare("spec", Some(&old), Some(new), &mut preview.differences);
        preview.is_unchanged = preview.differences.is_empty();
        let changed = IMMUTABLE.into_iter();
        let changed = changed.filter(|it| upstream_part(&old[*it]) != upstream_part(&new[*it]));
        let rest = "is immutable: delete the rule and create it again, or create another one";
        refusals.extend(changed.map(|field| format!("spec.{field} {rest}")));
    }
    preview.refusals = match answer {
        // It says all that is wrong with the fields, but not where an unknown one belongs.
        Ok(Some(why)) => misplaced(new).into_iter().chain([why.clone()]).collect(),
        _ => refusals.into_iter().collect(),
    };
    if !preview.is_unchanged
        && let Some(why) = rule.and_then(|rule| view.holds_back(rule))
    {
        let warning = format!("the controller will hold it back: it {why}");
        preview.warnings.push(warning);
    }
    let succeeds = rule.and_then(|rule| view.succeeds(rule));
    preview.warnings.extend(succeeds);
    preview
}

/// A field without what is ours in its items, which can be changed.
fn upstream_part(field: &Value) -> Value {
    let mut field = field.clone();
    let items = field.as_array_mut().into_iter().flatten();
    for item in items.filter_map(Value::as_object_mut) {
        item.remove("nodegate");
    }
    field
}

impl RulePreview {
    /// Adds what is wrong with what the rule waits for, whether joining nodes can expect release, and what may surprise its author.
    fn assess(&mut self, rule: &Rule, spec: &CompiledSpec, after: &Snapshot, own: &[&RuleOnNode]) {
        let remarks = after.remarks(rule).unwrap_or_default();
        for found in remarks
            .findings
            .into_iter()
            .chain(evicts(&rule.name, spec, true))
        {
            match found.check.severity {
                Severity::Error => self.faults.push(found.message),
                _ => self.warnings.push(found.message),
            }
        }
        self.warnings.extend(remarks.notes);
        let mut sources = spec.conditions.iter().map(|it| &it.source);
        let are_known = sources.all(|it| gap(it, after).is_none());
        // Where nodes would be gated, they tell.
        let is_met_nowhere = |it: &&RuleOnNode| it.state == State::NotHeld && !it.why.is_empty();
        if self.faults.is_empty()
            && are_known
            && own.iter().all(is_met_nowhere)
            && let Some(first) = own.first()
        {
            self.faults.push(format!(
                "none of the {} that it selects meets its conditions, and nodes that join would wait for the same: {}",
                counted(own.len(), "node"),
                first.why
            ));
        }
        let others = after.view.rules().rules().iter();
        let others = others.filter(|other| other.uid != rule.uid);
        let conflicts = others.filter_map(|other| rule.conflict_with(other));
        self.faults.extend(conflicts.map(|it| it.to_string()));
        let nowhere = || format!("no node is selected by {}", spec.selector);
        self.faults.extend(own.is_empty().then(nowhere));
        if rule.is_suspended() {
            let suspended = || "it is suspended: it changes nothing".into();
            self.warnings.push(rule.trouble().unwrap_or_else(suspended));
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Difference {
    pub field: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

fn compare(field: &str, from: Option<&Value>, to: Option<&Value>, all: &mut Vec<Difference>) {
    if from == to {
        return;
    }
    if let (Some(Value::Object(from)), Some(Value::Object(to))) = (from, to) {
        let added = to.keys().filter(|key| !from.contains_key(*key));
        for key in from.keys().chain(added) {
            compare(&format!("{field}.{key}"), from.get(key), to.get(key), all);
        }
        return;
    }
    all.push(Difference {
        field: field.to_owned(),
        from: from.cloned(),
        to: to.cloned(),
    });
}

impl Render for Preview {
    const KIND: &'static str = "Preview";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        let mut changes = vec![
            (&self.gates, Look::Bad, "gated", None),
            (&self.releases, Look::Good, "released", Some(RELEASED)),
        ];
        if !self.abandons.is_empty() {
            changes.push((&self.abandons, Look::Bad, "left held by a dry run", None));
        }
        let changes = changes.into_iter().map(|(changes, look, word, why)| {
            let head = match changes.len() {
                0 => Line::new().plain(format!("no node would be {word}")),
                count => Line::new().with(look, counted(count, "node") + " would be " + word),
            };
            let below = page.some(changes, |it| of_change(it, why));
            Branch::from(head).over(below).into()
        });
        let rules = self.rules.iter().map(|rule| tree(rule).into());
        rules.chain(changes).chain(notes(&self.notes)).collect()
    }

    fn is_no(&self) -> bool {
        let is_wrong = |it: &RulePreview| !it.faults.is_empty() || !it.refusals.is_empty();
        let is_worse = !self.gates.is_empty() || !self.abandons.is_empty();
        is_worse || self.rules.iter().any(is_wrong)
    }
}

fn tree(rule: &RulePreview) -> Branch {
    let done = match rule.is_edit {
        _ if rule.is_unchanged => "unchanged",
        true => "edited",
        false => "created",
    };
    let mut head = Line::about(format!("rule/{}", rule.rule)).plain(done);
    if rule.is_shown_in_force {
        head = head.faint("  (a dry run: what follows is what it would do in force)");
    }
    let faults = rule.faults.iter();
    let refusals = rule.refusals.iter();
    let warnings = rule.warnings.iter();
    let states = rule.states.iter();
    let effects = states.filter_map(|(state, count)| effect(*state, *count, rule.held_already));
    let unchanged = [State::WouldHold, State::WouldNotHold, State::Suspended];
    let unchanged: usize = unchanged.iter().filter_map(|it| rule.states.get(it)).sum();
    let unchanged = (unchanged > 0).then(|| format!("leaves {unchanged} as they are"));
    let effects: Vec<_> = effects.chain(unchanged).collect();
    let selects = match rule.selected {
        0 => "selects no node".to_owned(),
        count => format!("selects {}: {}", counted(count, "node"), effects.join(", ")),
    };
    let lacks = rule.lacks.iter().map(|lack| {
        let on = format!(": {} on {}", lack.reason, lack.nodes);
        Line::mark(false).plain(format!("{}{on}", lack.condition))
    });
    let grace = rule.grace_ends;
    let grace = grace.map(|at| format!("its grace period would end at {at:.0} at the earliest"));
    Branch::from(head)
        .over(faults.map(|it| Line::new().bad("fault: ").plain(it)))
        .over(refusals.map(|it| Line::new().bad("refused: ").plain(it)))
        .over(rule.differences.iter().map(of_difference))
        .over([Branch::from(selects).over(lacks)])
        .over(grace)
        .over(rule.guard.as_deref())
        .over(warnings.map(|it| Line::new().poor("warning: ").plain(it)))
}

/// What the rule does with its nodes in this state, if anything is to be decided about them.
fn effect(state: State, count: usize, held_already: usize) -> Option<String> {
    Some(match state {
        State::Held => format!("keeps {count} held"),
        State::Abandoned => format!("leaves {count} held"),
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
    let text = |value: &Option<Value>| value.as_ref().map(Value::to_string);
    match (text(&difference.from), text(&difference.to)) {
        (Some(from), Some(to)) => line.bad(from).plain(" -> ").good(to),
        (Some(from), None) => line.bad(from).plain(" is removed"),
        (None, Some(to)) => line.plain("set to ").good(to),
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
    line.plain(format!(" by {}{when}: {why}", row.by()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;
    use crate::testing::{Builder, NodeBuilder, RuleBuilder, at, node, rule};
    use serde_json::json;

    /// The preview of a rule on these nodes, as text, and whether the exit code says no.
    fn previewed(
        rule: &RuleBuilder,
        there: Option<&RuleBuilder>,
        nodes: &[NodeBuilder],
    ) -> (String, bool) {
        let scene = || {
            let nodes = nodes.iter().cloned();
            nodes.fold(Scene::default(), Scene::node)
        };
        let before = there.into_iter().fold(scene(), Scene::rule).read(at(60));
        let written = Written {
            name: "r".into(),
            object: rule.clone().json().clone(),
            there: there.map(RuleBuilder::object),
        };
        let after = scene().object(written.applied(at(60))).read(at(60));
        let preview = preview(&rows(&before), &after, &[written], &[Ok(None)]);
        let page = Page::plain(at(60));
        (preview.text(&page), preview.is_no())
    }

    #[test]
    fn a_dry_run_is_previewed_as_it_would_be_in_force() {
        let nodes = [node("a"), node("b"), node("c").condition("Net", "True")];
        let leaving = || rule("r").bootstrap_only().nodegate("existingNodes: Leave");
        let misspelt = || leaving().waits_for("daemonset.nodegate.dev/kube-system.cillium");
        let unheard_of = || leaving().waits_for("Nett");
        let fine = || leaving().waits_for("Net");
        let gating = || rule("r").waits_for("Net");
        let evicting = rule("r")
            .waits_for("Net")
            .taint(crate::testing::GATE, "NoExecute");
        #[rustfmt::skip]
        let cases = [
            ("misspelt", misspelt(), true, "fault: there is no DaemonSet kube-system/cillium today"),
            ("unheard of", unheard_of(), true, "fault: none of the 3 nodes that it selects meets its conditions"),
            ("fine", fine(), false, "selects 3 nodes: does not hold 3"),
            ("gating", gating(), true, "selects 3 nodes: gates 2, does not hold 1"),
            ("evicting", evicting, true, "fault: CAUTION: NoExecute"),
            ("elsewhere", rule("r").waits_for("Net").selects("pool", "x"), true, "fault: no node is selected"),
        ];
        for (name, rule, says_no, says) in cases {
            let (live, is_no) = previewed(&rule, None, &nodes);
            assert_eq!(is_no, says_no, "{name}: {live}");
            assert!(live.contains(says), "{name}: {live}");
            let (dry, is_no) = previewed(&rule.clone().dry_run(), None, &nodes);
            assert_eq!(is_no, says_no, "{name}: {dry}");
            let note = "  (a dry run: what follows is what it would do in force)";
            assert_eq!(dry.replace(note, ""), live, "{name}");
            assert!(!dry.contains("would be held"), "{dry}");
        }
    }

    #[test]
    fn a_rule_in_force_that_becomes_a_dry_run_leaves_nodes_held_that_no_rule_would_release() {
        let held = || node("a").taint(crate::testing::GATE, "NoSchedule");
        let there = rule("r").waits_for("Net");
        let dry = there.clone().dry_run();
        let (text, is_no) = previewed(&dry, Some(&there), &[held(), node("b")]);
        for part in [
            "selects 2 nodes: leaves 1 held, leaves 1 as they are",
            "1 node would be left held by a dry run\n└─ node/a by rule/r: ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(is_no, "{text}");
        let (text, is_no) = previewed(&dry, Some(&there), &[node("b")]);
        assert!(!is_no && !text.contains("left held"), "{text}");
    }

    #[test]
    fn a_successor_says_what_it_gates_in_place_of_the_earlier_rule() {
        let earlier = rule("earlier").created(at(-9)).waits_for("Old");
        let nodes = ["a", "b", "c", "d"].map(|name| node(name).condition("Old", "True"));
        let scene = || nodes.iter().cloned().fold(Scene::default(), Scene::node);
        let before = scene().rule(&earlier).read(at(60));
        let successor = Written {
            name: "r".into(),
            object: rule("r").waits_for("Net").json().clone(),
            there: None,
        };
        let after = scene().rule(&earlier).object(successor.applied(at(60)));
        let preview = preview(
            &rows(&before),
            &after.read(at(60)),
            &[successor],
            &[Ok(None)],
        );
        let text = preview.text(&Page::plain(at(60)));
        for part in [
            "leaves 4 to another rule with the same taint",
            "warning: once it governs the taint in place of 'earlier', 4 of 4 selected nodes are unmet and not held (4 have never reported \
             Net): they would be gated at once, but at most 10% are allowed: the rule would be held back",
            "no node would be gated",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_rule_that_is_there_as_it_is_is_unchanged() {
        let there = rule("r").waits_for("Net");
        for (rule, says) in [
            (there.clone(), "rule/r  unchanged"),
            (there.clone().suspended(), "rule/r  edited"),
        ] {
            let (text, _) = previewed(&rule, Some(&there), &[node("a")]);
            assert!(text.starts_with(says), "{text}");
        }
    }

    #[test]
    fn fields_are_named_that_differ() {
        let from = json!({"a": 1, "b": {"c": [1], "d": 2}});
        let to = json!({"a": 1, "b": {"c": [2], "e": 3}});
        let mut all = Vec::new();
        compare("spec", Some(&from), Some(&to), &mut all);
        let fields: Vec<_> = all
            .into_iter()
            .map(|it| (it.field, it.from, it.to))
            .collect();
        assert_eq!(
            fields,
            [
                ("spec.b.c".to_owned(), Some(json!([1])), Some(json!([2]))),
                ("spec.b.d".to_owned(), Some(json!(2)), None),
                ("spec.b.e".to_owned(), None, Some(json!(3))),
            ]
        );
    }
}
