//! README's first rule, as a dry run on a cluster without the `DaemonSet` that it names: everything says so before a node stays
//! held for it.

use anyhow::{Context, Result, ensure};
use nodegate_tests::{SOON, has_words, rules};
use serde_json::json;
use testkit::nodegate::changes::patch_rule;
use testkit::nodegate::eventually;
use testkit::nodegate::install::repository;
use testkit::nodegate::state::{rule_condition, rule_status};

use crate::world::{TURN, world};

const MISSING: &str = "there is no DaemonSet kube-system/cilium today";

/// The first rule of the README.
fn first_rule() -> Result<String> {
    let readme = std::fs::read_to_string(repository().join("README.md"))?;
    let blocks = readme.split("```yaml\n").skip(1);
    let mut blocks = blocks.filter_map(|it| it.split("```").next());
    let rule = blocks.find(|it| it.contains("kind: NodeReadinessRule"));
    Ok(rule.context("the README has no rule")?.to_owned())
}

#[tokio::test]
async fn a_dry_run_of_a_rule_that_names_nothing_says_so_everywhere() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let client = world.cluster.client().await?;
    let rule = first_rule()?;
    has_words(&rule, "dryRun: true")?;

    // Before there is a rule, in force or not.
    let file = world.path("first-rule.yaml");
    for rule in [rule.clone(), rule.replace("dryRun: true", "dryRun: false")] {
        std::fs::write(&file, &rule)?;
        let said = world.asks(&["preview", "-f", &file], 2).await?;
        has_words(&said.out, MISSING)?;
        ensure!(!said.out.contains("would not be held"), "{said:?}");
    }

    world.cluster.apply(&rule).await?;
    for (change, state) in [
        (json!({}), "a dry run"),
        (json!({"nodegate": { "suspend": true }}), "suspended"),
        (json!({"nodegate": { "suspend": false }}), "a dry run"),
    ] {
        patch_rule(&client, "cilium", &json!({"spec": change})).await?;
        eventually("the rule's conditions say so", SOON, async || {
            let not_made = rule_condition(&client, "cilium", "ConditionsNotMade").await?;
            let accepted = rule_condition(&client, "cilium", "Accepted").await?;
            let [not_made, accepted] = [not_made, accepted].map(|it| it["message"].to_string());
            let is_told = not_made.contains(MISSING) && accepted.contains(MISSING);
            Ok((is_told && accepted.contains(state)).then_some(()))
        })
        .await?;
    }
    eventually("the summary says so", SOON, async || {
        let status = rule_status(&client, "cilium").await?;
        let summary = status["dryRunResults"]["summary"].to_string();
        let joining = "unmet and not held, and left alone: a node that joins would wait for";
        Ok((summary.contains(MISSING) && summary.contains(joining)).then_some(()))
    })
    .await?;
    let listed = world.cluster.kubectl(&["get", "nrr"]).await?;
    let head = listed.lines().next().unwrap_or_default();
    let columns: Vec<&str> = head.split_whitespace().collect();
    let expected = "NAME MODE TAINT EFFECT DRYRUN STATE NODES HELD AGE";
    assert_eq!(columns.join(" "), expected, "{listed}");
    let wide = world.cluster.types("get nrr cilium -o wide").await?;
    has_words(&wide, MISSING)?;
    for (arguments, code) in [
        (vec!["status"], 0),
        (vec!["explain", "rule/cilium"], 0),
        (vec!["check"], 2),
    ] {
        let said = world.asks(&arguments, code).await?;
        has_words(&said.out, MISSING)?;
    }
    rules::delete(&client, "cilium").await
}
