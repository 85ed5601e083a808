//! Decides whether a rule is accepted: a function of the request and the cluster's state.

#[cfg(test)]
mod tests;

use super::envelope::ReviewRequest;
use super::surroundings::Surroundings;
use super::warnings::{LONGEST, warnings};
use json_patch::merge;
use nodegate_core::api::ExistingNodes;
use nodegate_core::condition::CriticalComponentClass;
use nodegate_core::object::RuleObject;
use nodegate_core::rule::{Rejection, Rule};
use nodegate_core::text::{cut, documentation, stated};
use serde_json::{Value, json};

#[derive(Debug)]
pub(super) struct Proposal {
    /// The rule after the request.
    pub(super) rule: Rule,
    /// Faults that this request adds.
    pub(super) faults: Vec<Rejection>,
    pub(super) before: Option<Rule>,
}

impl Proposal {
    /// The rule that a request wants reviewed; `None` if the request can do no harm: a deletion, the removal of a finalizer, any
    /// other change that leaves the spec alone, as the webhook's `matchConditions` say, and one that only takes power from the rule.
    pub(super) fn of(request: ReviewRequest, classes: &[CriticalComponentClass]) -> Option<Self> {
        let object = request.object?;
        let before = match &*request.operation {
            "CREATE" => None,
            "UPDATE" => request.old_object,
            _ => return None,
        };
        let is_subresource = request.sub_resource.is_some_and(|sub| !sub.is_empty());
        let is_going = object.metadata.deletion_timestamp.is_some();
        let is_weaker = before
            .as_ref()
            .is_some_and(|before| only_takes_away(before.spec.as_ref(), object.spec.as_ref()));
        if is_subresource || is_going || is_weaker {
            return None;
        }
        let object = RuleObject::new(object.metadata, object.spec, None);
        let before = before.map(|it| RuleObject::new(it.metadata, it.spec, None));
        let known = before.as_ref().map_or_else(Vec::new, faults);
        let mut faults = faults(&object);
        faults.retain(|fault| !known.contains(fault));
        Some(Self {
            faults,
            rule: Rule::compile(&object.metadata, object.spec, classes),
            before: before.map(|before| Rule::compile(&before.metadata, before.spec, classes)),
        })
    }

    /// Whether this request makes the rule act: it is new, or was a dry run, suspended, unusable, or left existing nodes alone.
    fn begins(&self) -> bool {
        let before = self.before.as_ref();
        before.is_none_or(|before| match &before.spec {
            Ok(spec) => {
                spec.dry_run || before.suspended || spec.ours.existing_nodes == ExistingNodes::Leave
            }
            Err(_) => true,
        })
    }

    /// Whether this request can add a conflict: the rule is new, becomes usable, changes its taint or its selector, or stops
    /// being a dry run. Otherwise the conflict already exists, and the update may be what mitigates it.
    fn may_add_conflict(&self) -> bool {
        let before = self.before.as_ref();
        before.is_none_or(|before| match (&before.reach, &self.rule.reach) {
            (Some(was), Some(is)) => {
                (before.spec.is_err() && self.rule.spec.is_ok())
                    || (&was.key, was.effect, &was.selector) != (&is.key, is.effect, &is.selector)
                    || (was.dry_run && !is.dry_run)
            }
            _ => true,
        })
    }
}

/// Whether a spec is the same as before, but that the rule may do less.
fn only_takes_away(before: Option<&Value>, after: Option<&Value>) -> bool {
    let (Some(before), Some(after)) = (before, after) else {
        return before == after;
    };
    let mut weaker = before.clone();
    for less in [
        json!({"dryRun": true}),
        json!({"nodegate": {"suspend": true}}),
        json!({"nodegate": {"taintPolicy": "remove-only"}}),
        json!({"nodegate": {"existingNodes": "Leave"}}),
    ] {
        let mut with = after.clone();
        merge(&mut with, &less);
        if with == *after {
            merge(&mut weaker, &less);
        }
    }
    weaker == *after
}

/// Everything that makes a rule unusable.
fn faults(rule: &RuleObject) -> Vec<Rejection> {
    match &rule.spec {
        Ok(spec) => [Rejection::all(spec), Rejection::of_conditions(spec)].concat(),
        Err(complaint) => vec![Rejection::Unreadable(complaint.clone())],
    }
}

/// Reviews a rule against the cluster's state: the warnings about an accepted one, or why it is rejected. A rule that was already
/// unusable, for example one made under the upstream project's CRD, may be changed as long as that adds no fault.
pub(super) fn review(
    subject: &Proposal,
    classes: &[CriticalComponentClass],
    surroundings: &Surroundings,
) -> Result<Vec<String>, String> {
    let mut faults: Vec<_> = subject.faults.iter().map(ToString::to_string).collect();
    let others = surroundings.rules.rules().iter();
    // They may include the rule itself. Of a creation under an existing name, the API server's own message is better.
    let others = others.filter(|other| other.name != subject.rule.name);
    let conflicts = others.filter_map(|other| subject.rule.conflict_with(other));
    let conflicts: Vec<_> = conflicts.collect();
    let why = stated(conflicts.iter().map(ToString::to_string));
    if let [first, ..] = &*conflicts
        && subject.may_add_conflict()
    {
        let key = &first.key;
        let see = documentation::page("gitops.md#rename-a-rule");
        faults.push(format!(
            "spec.taint.key: Invalid value: {key:?}: {why}; to rename or replace a rule, see {see}"
        ));
    }
    if !faults.is_empty() {
        // As the upstream project's webhook formats its errors.
        return Err(format!("validation failed: [{}]", faults.join(", ")));
    }
    let spec = match &subject.rule.spec {
        Ok(spec) => spec,
        Err(rejection) => {
            let warning = format!("the rule stays without effect: {rejection}");
            return Ok(vec![cut(warning, LONGEST)]);
        }
    };
    let rule = (&subject.rule, spec);
    let mut warnings = warnings(rule, subject.begins(), classes, surroundings);
    if !conflicts.is_empty() {
        warnings.insert(0, why);
    }
    Ok(warnings)
}
