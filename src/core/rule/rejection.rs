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
use crate::selector::{Selector, SelectorError, is_label_value};

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Rejection {
    #[error("{}", unreadable(.0))]
    Unreadable(String),
    #[error("spec.nodeSelector: Invalid value: {0}")]
    Selector(#[from] SelectorError),
    #[error(
        "spec.nodeSelector: Required value: nodeSelector must not be empty: name a label, such as kubernetes.io/os: linux"
    )]
    EmptySelector,
    #[error("spec.conditions: Required value: at least one condition is required")]
    NoCondition,
    #[error("spec.conditions: Too many: {0}: must have at most {MAX_CONDITIONS} items")]
    TooManyConditions(usize),
    /// The other rules may change, and then the spec is valid.
    #[error(
        "spec.conditions: Too many: this rule and older ones name more than {MOST_COMPONENTS} DaemonSets, checks and DRA drivers together: let it wait for some under a critical component class, or for daemonsets.nodegate.dev/all"
    )]
    TooManyComponents(Box<CompiledSpec>),
    #[error(
        "spec.conditionPolicy: Forbidden: anyOf conditionPolicy is not supported with bootstrap-only enforcementMode"
    )]
    AnyOfBootstrap,
    #[error(
        "spec.conditions[{0}].defaultStatus: Forbidden: defaultStatus should not be used with bootstrap-only enforcementMode"
    )]
    DefaultStatusBootstrap(usize),
    #[error("spec.taint.key: Invalid value: {key:?}: {problem}")]
    TaintKey { key: String, problem: &'static str },
    #[error("spec.conditions[{index}].type: Invalid value: {kind:?}: {advice}")]
    ComponentName {
        index: usize,
        kind: String,
        advice: &'static str,
    },
    /// Fields of a condition that do not go with its other fields.
    #[error("spec.conditions[{index}]{problem}")]
    Requirement {
        index: usize,
        /// The field, the kind of error, and the message.
        problem: &'static str,
    },
    /// The API server would refuse the taint value, and with it the whole patch of the node.
    #[error("spec.taint.value: Invalid value: {0:?}: taint value must be a valid label value")]
    TaintValue(String),
}

impl Rejection {
    /// The conditions that nothing can meet. The rule remains valid: they count as absent.
    pub fn of_conditions(spec: &NodeReadinessRuleSpec) -> Vec<Self> {
        let conditions = spec.conditions.iter().take(MAX_CONDITIONS).enumerate();
        conditions
            .filter_map(|(index, condition)| {
                Some(Self::ComponentName {
                    index,
                    kind: condition.type_.clone(),
                    advice: names_nothing(&condition.type_)?,
                })
            })
            .collect()
    }

    /// All reasons to reject a spec, in the upstream project's order; empty if it is valid.
    pub fn all(spec: &NodeReadinessRuleSpec) -> Vec<Self> {
        let mut all = Vec::new();
        match Selector::parse(&spec.node_selector) {
            Err(error) => all.push(Self::Selector(error)),
            Ok(selector) if selector.is_empty() => all.push(Self::EmptySelector),
            Ok(_) => {}
        }
        if spec.conditions.is_empty() {
            all.push(Self::NoCondition);
        }
        if spec.conditions.len() > MAX_CONDITIONS {
            all.push(Self::TooManyConditions(spec.conditions.len()));
        }
        let conditions = || spec.conditions.iter().take(MAX_CONDITIONS).enumerate();
        if spec.enforcement_mode == EnforcementMode::BootstrapOnly {
            let defaulted = conditions().filter(|(_, it)| it.default_status.is_some());
            all.extend(defaulted.map(|(index, _)| Self::DefaultStatusBootstrap(index)));
            if spec.condition_policy == ConditionPolicy::AnyOf {
                all.push(Self::AnyOfBootstrap);
            }
        }
        all.extend(conditions().filter_map(|(index, condition)| {
            let problem = problem_of(condition)?;
            Some(Self::Requirement { index, problem })
        }));
        if let Err(problem) = taint_key::check(&spec.taint.key, spec.taint_policy()) {
            let key = spec.taint.key.clone();
            all.push(Self::TaintKey { key, problem });
        }
        let value = spec.taint.value.clone().filter(|it| !is_label_value(it));
        all.extend(value.map(Self::TaintValue));
        all
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
    if ours.minimum.is_some() && ours.minimum_from_label.is_some() {
        Some(".nodegate.minimum: Forbidden: minimum and minimumFromLabel cannot be used together")
    } else if asks_for_minimum && !counts_something(&condition.type_) {
        Some(
            ".nodegate.minimum: Forbidden: minimum and minimumFromLabel can only be used with types that count something, resource.nodegate.dev/<resource> and resourceslice.nodegate.dev/<driver>",
        )
    } else if !ours.values.is_empty() && !condition.type_.starts_with(LABEL_PREFIX) {
        Some(".nodegate.values: Forbidden: values can only be used with label.nodegate.dev/<key>")
    } else if !ours.except.is_empty() && !covers_many(&condition.type_) {
        Some(
            ".nodegate.except: Forbidden: except can only be used with daemonsets.nodegate.dev/all, daemonsets.nodegate.dev/scheduled and conditions of a class",
        )
    } else if ours.minimum.is_some_and(|minimum| minimum < 1) {
        Some(".nodegate.minimum: Invalid value: minimum must be at least 1")
    } else if (asks_for_minimum || !ours.reasons.is_empty())
        && condition.required_status == ConditionStatus::Unknown
    {
        Some(
            ".requiredStatus: Forbidden: minimum, minimumFromLabel and reasons cannot be used with requiredStatus Unknown",
        )
    } else {
        None
    }
}
