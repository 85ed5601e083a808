//! The commands under restricted permissions.

use anyhow::{Context, Result, ensure};
use nodegate_tests::has_words;
use serde_json::Value;
use testkit::nodegate::ask::{ask, ask_json};
use testkit::nodegate::fixtures;

use crate::golden::normal;
use crate::world::{HELD, RELEASED, TURN, asks, world};

#[tokio::test]
async fn the_rights_of_nodegate_view_suffice_for_everything() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let viewer = world.account("viewer", "nodegate-view").await?;
    let held = format!("node/{HELD}");
    for question in [
        vec!["explain", &held],
        vec!["explain", "rule/network"],
        vec!["explain", "pod/shop"],
        vec!["status"],
        vec!["startup", RELEASED],
        vec!["startup"],
    ] {
        let all = world.asks(&question, 0).await?;
        let said = asks(&viewer, &question, 0).await?;
        assert_eq!(normal(&said.out), normal(&all.out), "{said:?}");
        ensure!(!said.out.contains("not allowed"), "{said:?}");
    }
    let checkup = ask_json(&viewer, &["check"]).await?;
    let findings = checkup["findings"].as_array().context("no findings")?;
    let installed = findings.iter().filter(|it| it["severity"] == "ok");
    assert_eq!(installed.count(), 8, "{checkup:#}");
    assert_eq!(checkup["notes"], Value::Null, "{checkup:#}");
    asks(&viewer, &["suggest"], 0).await?;
    // But whether the API server takes a rule is asked by a write.
    let rule = fixtures::rule("asked", "readiness.k8s.io/asked").waits_for("example.com/Asked");
    let path = world.path("asked.yaml");
    std::fs::write(&path, rule.build().to_string())?;
    let said = asks(&viewer, &["preview", "-f", &path], 1).await?;
    has_words(&said.err, "no permission to create rules")?;
    let file = world.path("report.html");
    let said = ask(&viewer, &["report", "--output-file", &file]).await?;
    let page = std::fs::read_to_string(&file).with_context(|| format!("{said:?}"))?;
    for word in ["<!doctype html>", HELD, "default.cni", "</html>"] {
        has_words(&page, word)?;
    }
    Ok(())
}

#[tokio::test]
async fn a_missing_right_takes_away_only_what_needs_it() -> Result<()> {
    let world = world().await?;
    world
        .cluster
        .apply(
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: without-pods}, rules: [\
             {apiGroups: [''], resources: [nodes], verbs: [list]}, \
             {apiGroups: [readiness.node.x-k8s.io], resources: [nodereadinessrules], verbs: [list]}]}",
        )
        .await?;
    let poor = world.account("poor", "without-pods").await?;
    let said = ask_json(&poor, &["explain", &format!("node/{HELD}")]).await?;
    assert_eq!(said["verdict"], "held", "{said:#}");
    let notes = said["notes"].to_string();
    for kind in ["daemonsets", "leases"] {
        has_words(&notes, &format!("not allowed to list {kind}"))?;
    }
    // It still reports what the controller has published.
    ensure!(said.to_string().contains("is not Ready"), "{said:#}");
    let status = ask(&poor, &["status"]).await?;
    has_words(&status.out, "unknown  not allowed to list leases")?;
    // What is written is said to lack something.
    let said = asks(&poor, &["dump", &world.path("poor-dump")], 1).await?;
    has_words(&said.err, "not allowed to list leases")?;
    // What needs more than it got fails, and takes nothing for missing that it could not read.
    for (question, may_answer) in [("suggest", false), ("check", true)] {
        let said = asks(&poor, &[question], 1).await?;
        ensure!(said.out.is_empty() != may_answer, "{question}: {said:?}");
        ensure!(!said.out.contains("NG011"), "{question}: {said:?}");
        for kind in ["daemonsets", "leases"] {
            let refused = format!("not allowed to list {kind}");
            ensure!(said.err.contains(&refused), "{question}: {said:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn without_any_right_it_is_told_which_role_has_them() -> Result<()> {
    let world = world().await?;
    let nobody = world.account("nobody", "without-anything").await?;
    let admin = world.cluster.kubeconfig();
    for (kubeconfig, question) in [
        (&nobody, &["status"][..]),
        (&admin, &["status", "--as", "jane"]),
    ] {
        let said = asks(kubeconfig, question, 1).await?;
        ensure!(said.out.is_empty(), "{said:?}");
        has_words(&said.err, "nodegate-view")?;
    }
    Ok(())
}
