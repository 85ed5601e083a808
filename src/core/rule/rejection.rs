//! Why a rule is rejected that an older CRD, or the upstream project's, accepts. Each reason reads like the API server's field
//! errors, as in the upstream project's webhook: the field, the kind of error, and the message.

use super::compile::CompiledSpec;
use super::set::MOST_COMPONENTS;
use super::taint_key;
use crate::api::{
    ConditionPolicy, ConditionRequirement, ConditionStatus, EnforcementMode, MAX_CONDITIONS,
    NodeReadinessRuleSpec,
};
use crate::condition::{LABEL_PREFIX, counts_something, covers_many, names_nothing};
use crate::selector::{Selector, is_label_value};

const EMPTY_SELECTOR: &str = "spec.nodeSelector: Required value: nodeSelector must not be empty: name a label, such as kubernetes.io/os: linux";

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Rejection {
    #[error("{}", unreadable(.0))]
    Unreadable(String),
    #[error("{0}")]
    Invalid(String),
    /// The other rules may change, and then the spec is valid.
    #[error(
        "spec.conditions: Too many: this rule and older ones name more than {MOST_COMPONENTS} DaemonSets, checks and DRA drivers together: let it wait for some under a critical component class, or for daemonsets.nodegate.dev/all"
    )]
    TooManyComponents(Box<CompiledSpec>),
}

impl Rejection {
    /// The conditions that nothing can meet. The rule remains valid: they count as absent.
    pub fn of_conditions(spec: &NodeReadinessRuleSpec) -> Vec<Self> {
        let conditions = spec.conditions.iter().take(MAX_CONDITIONS).enumerate();
        let unmade = conditions.filter_map(|(index, condition)| {
            let (kind, advice) = (&condition.type_, names_nothing(&condition.type_)?);
            Some(format!(
                "spec.conditions[{index}].type: Invalid value: {kind:?}: {advice}"
            ))
        });
        unmade.map(Self::Invalid).collect()
    }

    /// All reasons to reject a spec, in the upstream project's order; empty if it is valid.
    pub fn all(spec: &NodeReadinessRuleSpec) -> Vec<Self> {
        let mut all: Vec<String> = Vec::new();
        match Selector::parse(&spec.node_selector) {
            Err(error) => all.push(format!("spec.nodeSelector: Invalid value: {error}")),
            Ok(selector) if selector.is_empty() => all.push(EMPTY_SELECTOR.into()),
            Ok(_) => {}
        }
        let number = spec.conditions.len();
        if number == 0 {
            all.push("spec.conditions: Required value: at least one condition is required".into());
        }
        if number > MAX_CONDITIONS {
            all.push(format!(
                "spec.conditions: Too many: {number}: must have at most {MAX_CONDITIONS} items"
            ));
        }
        let conditions = || spec.conditions.iter().take(MAX_CONDITIONS).enumerate();
        if spec.enforcement_mode == EnforcementMode::BootstrapOnly {
            let defaulted = conditions().filter(|(_, it)| it.default_status.is_some());
            all.extend(defaulted.map(|(index, _)| format!(
                "spec.conditions[{index}].defaultStatus: Forbidden: defaultStatus should not be used with bootstrap-only enforcementMode"
            )));
            if spec.condition_policy == ConditionPolicy::AnyOf {
                all.push("spec.conditionPolicy: Forbidden: anyOf conditionPolicy is not supported with bootstrap-only enforcementMode".into());
            }
        }
        all.extend(conditions().filter_map(|(index, condition)| {
            let problem = problem_of(condition)?;
            Some(format!("spec.conditions[{index}]{problem}"))
        }));
        if let Err(problem) = taint_key::check(&spec.taint.key, spec.taint_policy()) {
            let key = &spec.taint.key;
            all.push(format!("spec.taint.key: Invalid value: {key:?}: {problem}"));
        }
        // The API server would refuse the taint value, and with it the whole patch of the node.
        let value = spec.taint.value.iter().filter(|it| !is_label_value(it));
        all.extend(value.map(|it| {
            format!(
                "spec.taint.value: Invalid value: {it:?}: taint value must be a valid label value"
            )
        }));
        all.into_iter().map(Self::Invalid).collect()
    }
}

/// The decoder's error; a missing field is named by its path.
fn unreadable(error: &str) -> String {
    match error.split_once("missing field `") {
        Some(("", "spec`")) => "spec: Required value".into(),
        Some((path, field)) => {
            let path = path.replace(": ", ".");
            let field = field.trim_end_matches('`');
            format!("spec.{path}{field}: Required value")
        }
        None => format!("spec cannot be read: {error}"),
    }
}

/// What is wrong with the fields of a condition that ask for more than its status.
fn problem_of(condition: &ConditionRequirement) -> Option<&'static str> {
    let ours = condition.nodegate.as_ref()?;
    let asks_for_minimum = ours.minimum.is_some() || ours.minimum_from_label.is_some();
    let problem = if ours.minimum.is_some() && ours.minimum_from_label.is_some() {
        ".nodegate.minimum: Forbidden: minimum and minimumFromLabel cannot be used together"
    } else if asks_for_minimum && !counts_something(&condition.type_) {
        ".nodegate.minimum: Forbidden: minimum and minimumFromLabel can only be used with types that count something, resource.nodegate.dev/<resource> and resourceslice.nodegate.dev/<driver>"
    } else if !ours.values.is_empty() && !condition.type_.starts_with(LABEL_PREFIX) {
        ".nodegate.values: Forbidden: values can only be used with label.nodegate.dev/<key>"
    } else if !ours.except.is_empty() && !covers_many(&condition.type_) {
        ".nodegate.except: Forbidden: except can only be used with daemonsets.nodegate.dev/all, daemonsets.nodegate.dev/scheduled and conditions of a class"
    } else if ours.minimum.is_some_and(|minimum| minimum < 1) {
        ".nodegate.minimum: Invalid value: minimum must be at least 1"
    } else if (asks_for_minimum || !ours.reasons.is_empty())
        && condition.required_status == ConditionStatus::Unknown
    {
        ".requiredStatus: Forbidden: minimum, minimumFromLabel and reasons cannot be used with requiredStatus Unknown"
    } else {
        return None;
    };
    Some(problem)
}
