//! One round: rules come, change and go beside nodes that change, and everything is as it was in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::{Api, Client};
use nodegate_tests::SOON;
use serde_json::{Value, json};
use testkit::nodegate::fixtures::rules;
use testkit::nodegate::rule::resource;
use testkit::nodegate::{Controller, eventually};

use crate::chance::Chance;
use crate::rest::Observer;
use crate::schema::{Edit, Schema, spoil};
use crate::tally::{self, Tally};
use crate::view::{Taint, View, is_as_before, is_one_or_the_other, taint_of};
use crate::words::RULES;
use crate::world::World;

/// How often a rule is changed at most where the API server refuses it.
const MENDED: usize = 8;
/// How often a rule is spoilt, in percent.
const SPOILT: usize = 15;
/// How long an effect may take that shows after the controller has come to rest.
const LATE: Duration = Duration::from_secs(10);

/// What a round needs.
pub(crate) struct Bench<'a> {
    pub client: &'a Client,
    pub controller: &'a mut Controller,
    pub observer: &'a mut Observer,
    pub schema: &'a Schema,
    pub tally: &'a mut Tally,
    /// What has been done, and the answers.
    pub script: &'a mut Vec<String>,
}

/// A round while it is played.
struct Round<'a> {
    bench: Bench<'a>,
    chance: Chance,
    rules: Api<DynamicObject>,
    world: World,
    /// The specs of the rules that are there, as the API server has them.
    specs: BTreeMap<&'static str, Value>,
    /// Every spec so far with which a rule was created.
    accepted: Vec<Value>,
    /// Taints that dry runs left when they were deleted.
    left: BTreeSet<Taint>,
}

/// Plays the round of this seed.
pub(crate) async fn play(seed: u64, bench: Bench<'_>) -> Result<()> {
    let mut chance = Chance::of(seed);
    let mut round = Round {
        rules: rules(bench.client),
        world: World::create(bench.client, &mut chance).await?,
        specs: BTreeMap::new(),
        accepted: Vec::new(),
        left: BTreeSet::new(),
        bench,
        chance,
    };
    for _ in 0..4 {
        round.create().await?;
    }
    for _ in 0..10 + round.chance.below(20) {
        round.step().await?;
    }
    round.edit_and_undo().await?;
    for _ in 0..round.chance.below(8) {
        round.step().await?;
    }
    round.rest("after more steps").await?;
    round.bench.controller.ensure_agreement()?;
    round.delete_all().await?;
    round.world.clear().await
}

impl Round<'_> {
    fn note(&mut self, what: String) {
        self.bench.script.push(what);
    }

    /// One step by chance.
    async fn step(&mut self) -> Result<()> {
        match self.chance.below(10) {
            0..=2 => self.create().await,
            3..=5 => {
                self.edit(false).await?;
                Ok(())
            }
            6 => self.delete().await,
            _ => {
                let what = self.world.change(&mut self.chance).await?;
                self.note(what);
                Ok(())
            }
        }
    }

    /// A rule is created under a free name. What the API server complains about is changed, unless the rule is spoilt.
    async fn create(&mut self) -> Result<()> {
        let free: Vec<&'static str> = RULES
            .iter()
            .copied()
            .filter(|name| !self.specs.contains_key(name))
            .collect();
        if free.is_empty() {
            return Ok(());
        }
        let name = self.chance.pick(&free);
        self.until_gone(name).await?;
        let is_spoilt = !self.accepted.is_empty() && self.chance.is(SPOILT);
        let mut spec = if is_spoilt {
            let mut spec = self.chance.pick(&self.accepted);
            spoil(&mut spec, &mut self.chance);
            spec
        } else {
            self.bench.schema.spec(&mut self.chance)
        };
        let tries = if is_spoilt { 0 } else { MENDED };
        for mended in 0..=tries {
            let mut rule = DynamicObject::new(name, &resource());
            rule.data = json!({"spec": spec});
            match refusal(self.rules.create(&PostParams::default(), &rule).await)? {
                Ok(created) => {
                    self.note(format!("{name} is created: {spec}"));
                    let spec = created.data["spec"].clone();
                    self.bench.tally.created(is_spoilt, mended);
                    self.accepted.push(spec.clone());
                    self.specs.insert(name, spec);
                    return Ok(());
                }
                Err(refusal) => {
                    self.note(format!("{name} is refused, {}: {spec}", refusal.message));
                    for field in &refusal.fields {
                        self.bench.schema.mend(&mut spec, field, &mut self.chance);
                    }
                }
            }
        }
        self.bench.tally.refused(is_spoilt);
        Ok(())
    }

    /// One rule is edited, if there is one. Returns its name, its spec before, and the edit, if the API server accepts it.
    async fn edit(&mut self, only_additions: bool) -> Result<Option<(&'static str, Value, Edit)>> {
        let names: Vec<&'static str> = self.specs.keys().copied().collect();
        if names.is_empty() {
            return Ok(None);
        }
        let name = self.chance.pick(&names);
        let before = self.specs[name].clone();
        let mut edit = self.bench.schema.edit(&before, &mut self.chance);
        if self.chance.is(SPOILT) {
            spoil(&mut edit.spec[&edit.field], &mut self.chance);
        }
        if only_additions && !edit.adds {
            return Ok(None);
        }
        let is_accepted = self.replace(name, &edit.spec).await?;
        let refused = usize::from(!is_accepted);
        self.bench.tally.add(tally::EDITS, 1);
        self.bench.tally.add(tally::EDITS_REFUSED, refused);
        Ok(is_accepted.then_some((name, before, edit)))
    }

    /// Gives a rule another spec; false if the API server refuses it.
    async fn replace(&mut self, name: &'static str, spec: &Value) -> Result<bool> {
        loop {
            let mut rule = self.rules.get(name).await?;
            rule.data["spec"] = spec.clone();
            match refusal(
                self.rules
                    .replace(name, &PostParams::default(), &rule)
                    .await,
            )? {
                Ok(replaced) => {
                    self.note(format!("{name} becomes {spec}"));
                    self.specs.insert(name, replaced.data["spec"].clone());
                    return Ok(true);
                }
                // The controller has written it meanwhile.
                Err(refusal) if refusal.code == 409 => {}
                Err(refusal) => {
                    self.note(format!(
                        "{name} may not become, {}: {spec}",
                        refusal.message
                    ));
                    return Ok(false);
                }
            }
        }
    }

    /// A rule is deleted, if there is one.
    async fn delete(&mut self) -> Result<()> {
        let names: Vec<&'static str> = self.specs.keys().copied().collect();
        if names.is_empty() {
            return Ok(());
        }
        let name = self.chance.pick(&names);
        self.rules.delete(name, &DeleteParams::default()).await?;
        self.note(format!("{name} is deleted"));
        let spec = self.specs.remove(name).unwrap_or_default();
        // Deleting a dry run leaves taints alone.
        if spec["dryRun"] == true {
            let mut rule = DynamicObject::new(name, &resource());
            rule.data = json!({"spec": spec});
            self.left.insert(taint_of(&rule));
        }
        Ok(())
    }

    /// Waits until there is no rule of this name any more, if it was deleted.
    async fn until_gone(&self, name: &str) -> Result<()> {
        eventually(&format!("{name} is gone"), SOON, async || {
            Ok(self.rules.get_opt(name).await?.is_none())
        })
        .await
    }

    /// The controller comes to rest, still runs, and everything is sound.
    async fn rest(&mut self, when: &str) -> Result<View> {
        self.note(format!("-- {when}"));
        self.bench.controller.ensure_running()?;
        let pairs = View::read(self.bench.client).await?.pairs();
        self.bench
            .observer
            .rest(pairs)
            .await
            .with_context(|| when.to_owned())?;
        let log = self.bench.controller.log();
        ensure!(!log.contains("panicked at"), "it panicked");
        let view = View::read(self.bench.client).await?;
        view.is_sound(&self.world.born_with, &self.left)
            .with_context(|| when.to_owned())?;
        let turned_down = view.turned_down();
        self.bench.tally.add(tally::TURNED_DOWN, turned_down);
        Ok(view)
    }

    /// Rules are edited, and the edits undone.
    async fn edit_and_undo(&mut self) -> Result<()> {
        let before = self.rest("before the edits").await?;
        let only_additions = self.chance.is(70);
        let mut edits: Vec<(&'static str, Value, Edit)> = Vec::new();
        for _ in 0..12 {
            let edit = self.edit(only_additions).await?;
            edits.extend(edit);
        }
        let between = self.rest("between the edits and their undoing").await?;
        let changes = edits.iter().filter(|(_, _, edit)| !edit.adds);
        let mut changed: BTreeSet<&str> = changes.map(|(name, ..)| *name).collect();
        let mut is_undone = true;
        for (name, spec, _) in edits.iter().rev() {
            // A taint that got a value keeps it.
            if !self.replace(name, spec).await? {
                is_undone = false;
                changed.insert(name);
            }
        }
        let independent: BTreeSet<String> = before
            .independent()
            .intersection(&between.independent())
            .cloned()
            .collect();
        let same: Vec<&String> = independent
            .iter()
            .filter(|name| !changed.contains(name.as_str()))
            .collect();
        self.rest("after the edits are undone").await?;
        // A rule that is in force for a moment, on its way back to a dry run, may leave taints.
        let mut steps = edits.iter();
        let may_leave =
            steps.any(|(name, spec, _)| spec["dryRun"] != true && before.is_dry_run(name));
        let has_rates = before.has_rates() || between.has_rates();
        let is_comparable = is_undone && !may_leave && !has_rates;
        let mut what = Ok(());
        let compare = async || {
            let after = View::read(self.bench.client).await?;
            what = (|| {
                same.iter()
                    .try_for_each(|rule| is_as_before(rule, &before, &after))?;
                if is_comparable {
                    is_one_or_the_other(&before, &between, &after)
                } else {
                    Ok(())
                }
            })();
            Ok(what.is_ok())
        };
        let compared = eventually("all is as before the edits", LATE, compare).await;
        if compared.is_err() {
            what?;
            bail!("the nodes and rules cannot be read");
        }
        let roughly = usize::from(is_comparable);
        self.bench.tally.add(tally::UNDONE, edits.len());
        self.bench.tally.add(tally::COMPARED, same.len());
        self.bench.tally.add(tally::COMPARED_ROUGHLY, roughly);
        Ok(())
    }

    /// All rules are deleted, and nothing of them is left.
    async fn delete_all(&mut self) -> Result<()> {
        for (name, spec) in self.specs.clone() {
            if spec["dryRun"] == true {
                let mut spec = spec;
                spec["dryRun"] = json!(false);
                self.replace(name, &spec).await?;
            }
        }
        while !self.specs.is_empty() {
            self.delete().await?;
        }
        for name in RULES {
            self.until_gone(name).await?;
        }
        let view = self.rest("after all rules are deleted").await?;
        view.is_clean()
    }
}

/// Why the API server refuses a rule.
#[derive(Debug)]
struct Refusal {
    code: u16,
    message: String,
    /// The paths of the fields that it complains about.
    fields: Vec<String>,
}

/// What was written, or why the API server refuses it; any other error is one.
fn refusal(
    answer: kube::Result<DynamicObject>,
) -> Result<std::result::Result<DynamicObject, Refusal>> {
    match answer {
        Ok(written) => Ok(Ok(written)),
        Err(kube::Error::Api(status)) if status.code < 500 => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            Ok(Err(Refusal {
                code: status.code,
                message: status.message.clone(),
                fields: causes.map(|cause| cause.field.clone()).collect(),
            }))
        }
        Err(error) => Err(error).context("the API server has no answer"),
    }
}
