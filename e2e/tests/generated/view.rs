//! What nodes and rules say, and what must hold of it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{DynamicObject, ListParams};
use kube::core::{Selector, SelectorExt};
use kube::{Client, ResourceExt};
use nodegate_tests::rules::{TIMES, without};
use serde_json::Value;
use testkit::nodegate::fixtures::rules;
use testkit::nodegate::state::nodes;

use crate::world::taints;

/// What we write into the annotations of nodes while a rule needs it.
const ANNOTATIONS: &[&str] = &["nodegate.dev/", "readiness.k8s.io/bootstrap-completed-"];

/// All nodes and rules at one time.
#[derive(Debug)]
pub(crate) struct View {
    nodes: Vec<Node>,
    rules: Vec<DynamicObject>,
}

/// A taint by key and effect.
pub(crate) type Taint = (String, String);

impl View {
    pub(crate) async fn read(client: &Client) -> Result<Self> {
        let all = rules(client).list(&ListParams::default()).await;
        Ok(Self {
            nodes: nodes(client).await?,
            rules: all.context("listing the rules")?.items,
        })
    }

    /// Every taint on any node has a rule that may want it there, unless the node was born with it, or it was left there;
    /// and every rule's status is up to date.
    pub(crate) fn is_sound(
        &self,
        born_with: &BTreeMap<&str, BTreeSet<Taint>>,
        left: &BTreeSet<Taint>,
    ) -> Result<()> {
        for node in &self.nodes {
            let name = node.name_any();
            for taint in taints(node) {
                let is_known = left.contains(&taint)
                    || born_with
                        .get(&*name)
                        .is_some_and(|born| born.contains(&taint));
                let is_wanted = || self.rules.iter().any(|rule| may_want(rule, &taint, node));
                ensure!(
                    is_known || is_wanted(),
                    "{name} has a taint that no rule wants: {taint:?}"
                );
            }
        }
        for rule in &self.rules {
            let name = rule.name_any();
            let (current, seen) = (
                rule.metadata.generation,
                &rule.data["status"]["observedGeneration"],
            );
            ensure!(
                seen.as_i64() == current,
                "the status of {name} is of generation {seen}, which is {current:?} now"
            );
        }
        Ok(())
    }

    /// Nothing of ours is left, but for taints.
    pub(crate) fn is_clean(&self) -> Result<()> {
        ensure!(self.rules.is_empty(), "there are rules yet");
        for node in &self.nodes {
            let is_ours = |key: &&String| ANNOTATIONS.iter().any(|ours| key.starts_with(ours));
            let annotations: Vec<&String> = node.annotations().keys().filter(is_ours).collect();
            ensure!(
                annotations.is_empty(),
                "{} keeps {annotations:?}",
                node.name_any()
            );
            let conditions = node
                .status
                .iter()
                .flat_map(|it| it.conditions.iter().flatten());
            let made = conditions.filter(|it| {
                it.type_.contains("nodegate.dev/") || it.type_.contains("gardener.cloud/")
            });
            let made: Vec<&String> = made.map(|it| &it.type_).collect();
            ensure!(
                made.is_empty(),
                "{} keeps conditions {made:?}",
                node.name_any()
            );
        }
        Ok(())
    }

    /// The rules whose decisions depend on no other rule: their taint is theirs alone.
    pub(crate) fn independent(&self) -> BTreeSet<String> {
        let key = |rule: &DynamicObject| rule.data["spec"]["taint"]["key"].clone();
        let is_alone = |rule: &&DynamicObject| {
            let of_key = self.rules.iter().filter(|other| key(other) == key(rule));
            of_key.count() == 1
        };
        self.rules
            .iter()
            .filter(is_alone)
            .map(ResourceExt::name_any)
            .collect()
    }

    /// Whether a rule gates nodes at a rate: then it gates more as time goes by.
    pub(crate) fn has_rates(&self) -> bool {
        self.rules
            .iter()
            .any(|rule| rule.data["spec"]["nodegate"]["disruption"].is_object())
    }

    /// What a rule has done and says: the nodes with its taint, and its status without times.
    pub(crate) fn effect_of(&self, rule: &str) -> Result<(BTreeSet<String>, Value)> {
        let of_name = self.rules.iter().find(|it| it.name_any() == rule);
        let rule = of_name.with_context(|| format!("{rule} is gone"))?;
        let taint = taint_of(rule);
        let tainted = self
            .nodes
            .iter()
            .filter(|node| taints(node).contains(&taint));
        Ok((
            tainted.map(ResourceExt::name_any).collect(),
            without(
                &rule.data["status"],
                &[&TIMES[..], &["observedGeneration"]].concat(),
            ),
        ))
    }

    /// All taints of all nodes.
    pub(crate) fn taints(&self) -> BTreeSet<(String, Taint)> {
        let of = |node: &Node| {
            let name = node.name_any();
            taints(node)
                .into_iter()
                .map(move |taint| (name.clone(), taint))
        };
        self.nodes.iter().flat_map(of).collect()
    }

    /// How often a node and a rule may have to be evaluated together.
    pub(crate) fn pairs(&self) -> usize {
        self.nodes.len() * self.rules.len()
    }

    pub(crate) fn is_dry_run(&self, rule: &str) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|it| {
            it.metadata.name.as_deref() == Some(rule) && it.data["spec"]["dryRun"] == true
        })
    }

    /// How many rules the controller has turned down.
    pub(crate) fn turned_down(&self) -> usize {
        self.rules.iter().filter(|rule| !is_accepted(rule)).count()
    }
}

pub(crate) fn taint_of(rule: &DynamicObject) -> Taint {
    let taint = &rule.data["spec"]["taint"];
    let text = |field: &str| taint[field].as_str().unwrap_or_default().to_owned();
    (text("key"), text("effect"))
}

/// Whether the rule may want its taint on the node. A rule that may not act keeps what it has.
fn may_want(rule: &DynamicObject, taint: &Taint, node: &Node) -> bool {
    let spec = &rule.data["spec"];
    taint_of(rule) == *taint
        && (spec["nodegate"]["suspend"] == true
            || !is_accepted(rule)
            || selects(&spec["nodeSelector"], node))
}

fn is_accepted(rule: &DynamicObject) -> bool {
    let conditions = rule.data["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "Accepted" && it["status"] == "True")
}

/// Whether a label selector that the CRD accepts matches a node.
fn selects(selector: &Value, node: &Node) -> bool {
    let selector = serde_json::from_value::<LabelSelector>(selector.clone()).ok();
    let selector = selector.and_then(|it| Selector::try_from(it).ok());
    selector.is_some_and(|it| it.matches(node.labels()))
}

/// An edit that added something was undone: what a rule does and says has to be as before.
pub(crate) fn is_as_before(rule: &str, before: &View, after: &View) -> Result<()> {
    let (was, is) = (before.effect_of(rule)?, after.effect_of(rule)?);
    ensure!(
        was.0 == is.0,
        "the taint of {rule} was on {:?}, and is on {:?}",
        was.0,
        is.0
    );
    if was.1 != is.1 {
        bail!("the status of {rule} was\n{:#}\nand is\n{:#}", was.1, is.1);
    }
    Ok(())
}

/// Edits were undone that may have released or held nodes for good: no taint is in a third state.
pub(crate) fn is_one_or_the_other(before: &View, between: &View, after: &View) -> Result<()> {
    let [before, between, after] = [before, between, after].map(View::taints);
    let both: Vec<_> = before.intersection(&between).collect();
    let lost: Vec<_> = both
        .iter()
        .filter(|taint| !after.contains(**taint))
        .collect();
    ensure!(
        lost.is_empty(),
        "taints that were there before and between are gone: {lost:?}"
    );
    let new = after
        .iter()
        .filter(|taint| !before.contains(taint) && !between.contains(taint));
    let new: Vec<_> = new.collect();
    ensure!(
        new.is_empty(),
        "taints that were there neither before nor between: {new:?}"
    );
    Ok(())
}
