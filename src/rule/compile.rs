//! A rule made ready for use: selector parsed, condition sources resolved, everything checked that the CRD of
//! the upstream project does not check.

use std::sync::Arc;

use jiff::Timestamp;
use kube::api::ObjectMeta;

use super::taint_key;
use crate::api::names::FINALIZER;
use crate::api::{
    ConditionPolicy, ConditionStatus, Disruption, Duration, EnforcementMode, NodeReadinessRuleSpec,
    Repair, TaintEffect, TaintPolicy,
};
use crate::condition::{CriticalComponentClass, Source};
use crate::object::{self, Taint};
use crate::selector::{Selector, SelectorError, is_label_value};

/// A `NodeReadinessRule` as the engine sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The rule's name.
    pub name: Arc<str>,
    /// The rule's UID: a rule created again under its name is another rule.
    pub uid: Arc<str>,
    /// When the rule was created.
    pub created: Option<Timestamp>,
    /// The generation of the spec.
    pub generation: i64,
    /// Whether the rule is being deleted.
    pub deleting: bool,
    /// Since when, in the sight of this process, the rule may put its taint on nodes; the beginning of time where it was so
    /// at the first sight, and `None` while it may not.
    pub in_force_since: Option<Timestamp>,
    /// Whether our finalizer is on the rule. Without it nothing is done for the rule, since nothing could be
    /// cleaned up after it.
    pub finalizer: bool,
    /// The spec, or why it cannot be used.
    pub spec: Result<CompiledSpec, Rejection>,
}

/// A spec that can be evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledSpec {
    /// What is asked of a node's conditions.
    pub conditions: Vec<Requirement>,
    /// How the conditions are combined.
    pub policy: ConditionPolicy,
    /// Whether the rule ends for a node once its conditions were met.
    pub mode: EnforcementMode,
    /// The taint as the rule puts it on a node.
    pub taint: Taint,
    /// The taint's effect.
    pub effect: TaintEffect,
    /// Whether the rule may put its taint on nodes, or only lift it.
    pub taint_policy: TaintPolicy,
    /// The nodes the rule is about.
    pub selector: Selector,
    /// What happens to a node that is not ready in time.
    pub repair: Option<Repair>,
    /// Whether the rule only counts what it would do.
    pub dry_run: bool,
    /// Whether a completed bootstrap counts only for the boot that it happened in.
    pub regate_on_reboot: bool,
    /// How long the reporter of a condition on the Node may be silent.
    pub heartbeat_timeout: Option<Duration>,
    /// How long the conditions must have been unmet before an open node is closed.
    pub grace_period: Option<Duration>,
    /// How fast open nodes may be closed.
    pub disruption: Option<Disruption>,
}

/// One condition that a rule asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The condition type.
    pub kind: Arc<str>,
    /// Where conditions of this type come from.
    pub source: Source,
    /// The status that the rule asks for.
    pub required: ConditionStatus,
    /// The status that is assumed when the node has no such condition.
    pub default: Option<ConditionStatus>,
}

/// Why a rule cannot be used. Only rules that got past an older or the upstream project's CRD can be like this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The spec does not have the form of a `NodeReadinessRule`.
    #[error("spec cannot be read: {0}")]
    Unreadable(String),
    /// The node selector cannot be parsed.
    #[error("spec.nodeSelector: {0}")]
    Selector(#[from] SelectorError),
    /// The node selector selects every node there will ever be.
    #[error("spec.nodeSelector must not be empty: name a label, such as kubernetes.io/os: linux")]
    EmptySelector,
    /// There is no condition to wait for.
    #[error("spec.conditions must name at least one condition")]
    NoCondition,
    /// `anyOf` on a rule that ends at the first success.
    #[error("spec.conditionPolicy 'anyOf' is not allowed with enforcementMode 'bootstrap-only'")]
    AnyOfBootstrap,
    /// `defaultStatus` on a rule that ends at the first success.
    #[error(
        "spec.conditions: defaultStatus of {0:?} is not allowed with enforcementMode 'bootstrap-only'"
    )]
    DefaultStatusBootstrap(String),
    /// The taint key is not one that this rule may manage.
    #[error("spec.taint.key: {0}")]
    TaintKey(&'static str),
    /// The API server would refuse the taint, and with it everything else that the node's patch carries.
    #[error("spec.taint.value: taint value must be a valid label value")]
    TaintValue,
}

impl Rule {
    /// Makes a rule ready for use.
    ///
    /// `spec` is what could be read of the object's spec, or the decoder's complaint.
    #[must_use]
    pub fn compile(
        meta: &ObjectMeta,
        spec: Result<NodeReadinessRuleSpec, String>,
        classes: &[CriticalComponentClass],
    ) -> Self {
        Self {
            name: object::name(meta),
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            generation: meta.generation.unwrap_or_default(),
            deleting: meta.deletion_timestamp.is_some(),
            in_force_since: None,
            finalizer: meta
                .finalizers
                .iter()
                .flatten()
                .any(|finalizer| finalizer == FINALIZER),
            spec: spec
                .map_err(Rejection::Unreadable)
                .and_then(|spec| CompiledSpec::compile(spec, classes)),
        }
    }

    /// The rule as it is seen at this time, after it was last seen like that.
    #[must_use]
    pub fn seen(mut self, known: Option<&Self>, at: Timestamp) -> Self {
        let adds = |spec: &CompiledSpec| spec.taint_policy == TaintPolicy::AddAndRemove;
        let known = known.filter(|known| known.uid == self.uid);
        self.in_force_since = self
            .live()
            .is_some_and(adds)
            .then(|| known.and_then(|known| known.in_force_since).unwrap_or(at));
        self
    }

    /// The spec, if anything may be done for the rule: it can be used, and its finalizer is there.
    #[must_use]
    pub fn active(&self) -> Option<&CompiledSpec> {
        self.spec.as_ref().ok().filter(|_| self.finalizer)
    }

    /// The spec, if the rule can decide about nodes now: it is active, not being deleted and no dry run.
    #[must_use]
    pub fn live(&self) -> Option<&CompiledSpec> {
        self.active().filter(|spec| !self.deleting && !spec.dry_run)
    }
}

impl CompiledSpec {
    fn compile(
        spec: NodeReadinessRuleSpec,
        classes: &[CriticalComponentClass],
    ) -> Result<Self, Rejection> {
        let selector = Selector::parse(&spec.node_selector)?;
        if selector.is_empty() {
            return Err(Rejection::EmptySelector);
        }
        if spec.conditions.is_empty() {
            return Err(Rejection::NoCondition);
        }
        taint_key::check(&spec.taint.key, spec.taint_policy).map_err(Rejection::TaintKey)?;
        let taint_value = spec.taint.value.unwrap_or_default();
        if !is_label_value(&taint_value) {
            return Err(Rejection::TaintValue);
        }
        if spec.enforcement_mode == EnforcementMode::BootstrapOnly {
            if spec.condition_policy == ConditionPolicy::AnyOf {
                return Err(Rejection::AnyOfBootstrap);
            }
            if let Some(condition) = spec
                .conditions
                .iter()
                .find(|condition| condition.default_status.is_some())
            {
                return Err(Rejection::DefaultStatusBootstrap(condition.type_.clone()));
            }
        }
        Ok(Self {
            conditions: spec
                .conditions
                .into_iter()
                .map(|condition| Requirement {
                    source: Source::of(&condition.type_, classes),
                    kind: condition.type_.into(),
                    required: condition.required_status,
                    default: condition.default_status,
                })
                .collect(),
            policy: spec.condition_policy,
            mode: spec.enforcement_mode,
            taint: Taint::new(spec.taint.key, taint_value, spec.taint.effect),
            effect: spec.taint.effect,
            taint_policy: spec.taint_policy,
            selector,
            repair: spec.repair,
            dry_run: spec.dry_run,
            regate_on_reboot: spec.regate_on_reboot,
            heartbeat_timeout: spec.heartbeat_timeout,
            grace_period: spec.grace_period,
            disruption: spec.disruption,
        })
    }
}
