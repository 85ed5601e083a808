//! Compiles a rule: parses its selector, resolves its condition sources, and checks what only our CRD checks.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kube::core::ObjectMeta;

use super::rejection::Rejection;
use super::requirement::RequiredCondition;
use super::taint_key::is_foreign;
use crate::api::names::{BOOTSTRAP_COMPLETED_PREFIX, FINALIZER};
use crate::api::{
    ConditionPolicy, EnforcementMode, ExistingNodes, NodeReadinessRuleSpec, NodegateSpec,
    TaintEffect, TaintPolicy,
};
use crate::condition::CriticalComponentClass;
use crate::object::{self, Taint};
use crate::selector::Selector;

const FIELDS_PRUNED: &str = "the rule is suspended, because its fields under `nodegate` are gone: another project's CustomResourceDefinition dropped them; apply Nodegate's definition, and then the rule again (with `nodegate: {}`, if it is to go without them)";

#[derive(Debug, Clone, PartialEq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and may go with any of the others"
)]
pub struct Rule {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    pub created: Option<Timestamp>,
    pub generation: i64,
    /// Keys of the completion annotation: by UID, which we write, and by name, as older releases of the upstream project wrote.
    pub completion_keys: [String; 2],
    pub deleting: bool,
    /// Whether the rule is suspended: nothing is changed for it, except for its deletion.
    pub suspended: bool,
    /// Whether another project's definition dropped the fields under `nodegate`: suspended, as it may now mean the opposite.
    pub pruned: bool,
    /// Since when this process saw the rule enforce its taint; [`Timestamp::MIN`] if from the start, `None` while it does not.
    pub in_force_since: Option<Timestamp>,
    /// Whether our finalizer is on the rule. Without it nothing is done, since nothing could be cleaned up; a dry run needs none.
    pub finalizer: bool,
    /// The API server keeps refusing our finalizer on the rule: other rules no longer wait for it.
    pub refused: bool,
    /// Whether its author has changed its taint or nodes since this process first saw it.
    pub edited: bool,
    pub reach: Option<Reach>,
    pub spec: Result<CompiledSpec, Rejection>,
}

/// A rule's taint, and the nodes that may have it; known for rejected rules too, as other controllers may have enforced them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    pub key: String,
    pub effect: TaintEffect,
    /// The node selector, if it is valid. An empty one matches all nodes.
    pub selector: Option<Selector>,
    pub dry_run: bool,
    /// Whether the taint is removed with the rule: rules may add this key, and it is neither a dry run nor remove-only.
    pub is_removed_in_the_end: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CompiledSpec {
    pub conditions: Vec<RequiredCondition>,
    pub policy: ConditionPolicy,
    pub mode: EnforcementMode,
    pub taint: Taint,
    pub effect: TaintEffect,
    pub selector: Selector,
    pub dry_run: bool,
    /// What is under `nodegate`. A continuous rule never leaves existing nodes alone.
    pub ours: NodegateSpec,
}

impl Rule {
    pub fn compile(
        meta: &ObjectMeta,
        spec: Result<NodeReadinessRuleSpec, String>,
        classes: &[CriticalComponentClass],
    ) -> Self {
        let name = object::name(meta);
        let ours = spec.as_ref().ok().and_then(|spec| spec.nodegate.as_ref());
        // Managed fields are there where a manager has set what is ours: see `object::watched`.
        let pruned =
            meta.managed_fields.is_some() && spec.as_ref().is_ok_and(|spec| !spec.has_nodegate());
        let mut finalizers = meta.finalizers.iter().flatten();
        let uid: Arc<str> = meta.uid.as_deref().unwrap_or_default().into();
        let suspended = pruned || ours.is_some_and(|ours| ours.suspend);
        let reach = spec.as_ref().ok().map(Reach::of);
        let spec = spec.map_err(Rejection::Unreadable);
        let spec = spec.and_then(|spec| CompiledSpec::compile(spec, classes));
        Self {
            completion_keys: [&uid, &name].map(|id| format!("{BOOTSTRAP_COMPLETED_PREFIX}{id}")),
            name,
            uid,
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            generation: meta.generation.unwrap_or_default(),
            deleting: meta.deletion_timestamp.is_some(),
            suspended: suspended || spec.as_ref().is_ok_and(|it| it.lacks_class().is_some()),
            pruned,
            in_force_since: None,
            finalizer: finalizers.any(|finalizer| finalizer == FINALIZER),
            refused: false,
            edited: false,
            reach,
            spec,
        }
    }

    /// The rule as observed at this time, given its previous state.
    pub fn seen(mut self, known: Option<&Self>, at: Timestamp) -> Self {
        let adds = |spec: &CompiledSpec| {
            !spec.dry_run && spec.ours.taint_policy == TaintPolicy::AddAndRemove
        };
        let known = known.filter(|known| known.uid == self.uid);
        self.refused |= known.is_some_and(|known| known.refused) && !self.finalizer;
        self.edited = known.is_some_and(|it| it.edited || it.reach != self.reach);
        // A missing finalizer is added at once, so it does not matter here.
        let is_in_force = !self.deleting && !self.suspended && self.spec.as_ref().is_ok_and(adds);
        self.in_force_since =
            is_in_force.then(|| known.and_then(|known| known.in_force_since).unwrap_or(at));
        self
    }

    /// Earlier rules come first.
    pub(super) fn precedence(&self) -> (Option<Timestamp>, &str) {
        (self.created, &self.name)
    }

    /// Whether the controller may act for the rule: our finalizer is present, or no cleanup will be needed.
    pub fn is_taken_on(&self) -> bool {
        self.finalizer || self.spec.as_ref().is_ok_and(|spec| spec.dry_run)
    }

    /// The spec, if it is valid and the controller may act for the rule.
    pub fn active(&self) -> Option<&CompiledSpec> {
        self.spec.as_ref().ok().filter(|_| self.is_taken_on())
    }

    /// Whether the rule never taints a node that was created at this time, because the node is older than the rule.
    pub fn leaves_alone(&self, created: Option<Timestamp>) -> bool {
        let leaves = |spec: &CompiledSpec| spec.ours.existing_nodes == ExistingNodes::Leave;
        self.spec.as_ref().is_ok_and(leaves)
            && created
                .zip(self.created)
                .is_some_and(|(node, rule)| node < rule)
    }

    /// Why the rule cannot be used as it is.
    pub fn trouble(&self) -> Option<String> {
        match &self.spec {
            Err(rejection) => Some(rejection.to_string()),
            Ok(_) if self.pruned => Some(FIELDS_PRUNED.to_owned()),
            Ok(spec) => spec.lacks_class(),
        }
    }

    /// Whether nothing is changed for the rule now. A rule that is being deleted still cleans up.
    pub fn is_suspended(&self) -> bool {
        self.suspended && !self.deleting
    }

    pub fn is_about(&self, key: &str, effect: TaintEffect) -> bool {
        let mut reach = self.reach.iter();
        reach.any(|reach| reach.key == key && reach.effect == effect)
    }

    /// The taint to remove from a node with these labels because the rule was rejected and is being deleted.
    pub fn left_behind(&self, labels: &BTreeMap<String, String>) -> Option<&Reach> {
        let reach = self.reach.as_ref()?;
        let cleans_up = self.deleting && self.finalizer && self.spec.is_err();
        (cleans_up && reach.is_removed_in_the_end && self.selects(labels)).then_some(reach)
    }

    /// Whether the rule selects nodes with these labels, although it may not be usable.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut selector = self.reach.iter().filter_map(|it| it.selector.as_ref());
        selector.any(|selector| selector.matches(labels))
    }

    /// The spec, if the rule decides about nodes now: it is active, not being deleted and no dry run.
    pub fn live(&self) -> Option<&CompiledSpec> {
        self.active().filter(|spec| !self.deleting && !spec.dry_run)
    }
}

impl Reach {
    fn of(spec: &NodeReadinessRuleSpec) -> Self {
        let key = &spec.taint.key;
        Self {
            key: key.clone(),
            effect: spec.taint.effect,
            selector: Selector::parse(&spec.node_selector).ok(),
            dry_run: spec.dry_run,
            is_removed_in_the_end: !spec.dry_run
                && spec.taint_policy() == TaintPolicy::AddAndRemove
                && !is_foreign(key),
        }
    }
}

impl CompiledSpec {
    /// Why the rule is suspended, if no class makes one of its conditions.
    fn lacks_class(&self) -> Option<String> {
        let mut conditions = self.conditions.iter();
        conditions.find_map(RequiredCondition::lacks_class)
    }

    fn compile(
        spec: NodeReadinessRuleSpec,
        classes: &[CriticalComponentClass],
    ) -> Result<Self, Rejection> {
        if let Some(rejection) = Rejection::all(&spec).into_iter().next() {
            return Err(rejection);
        }
        let selector = Selector::parse(&spec.node_selector);
        let selector = selector.map_err(|error| Rejection::Invalid(error.to_string()))?;
        let taint_value = spec.taint.value.unwrap_or_default();
        let mut ours = spec.nodegate.unwrap_or_default();
        if spec.enforcement_mode == EnforcementMode::Continuous {
            ours.existing_nodes = ExistingNodes::Gate;
        }
        let conditions = spec.conditions.into_iter();
        let conditions = conditions.map(|it| RequiredCondition::compile(it, classes));
        Ok(Self {
            conditions: conditions.collect(),
            policy: spec.condition_policy,
            mode: spec.enforcement_mode,
            taint: Taint::new(spec.taint.key, taint_value, spec.taint.effect),
            effect: spec.taint.effect,
            selector,
            dry_run: spec.dry_run,
            ours,
        })
    }
}
