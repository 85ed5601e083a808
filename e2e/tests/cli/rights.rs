//! The commands under restricted permissions.

use anyhow::{Result, ensure};
use nodegate_tests::has_words;
use testkit::nodegate::ask::{ask, ask_json};

use crate::golden::normal;
use crate::world::{HELD, TURN, world};

#[tokio::test]
async fn the_rights_of_nodegate_view_suffice_for_everything() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    world.cluster.account("viewer", "nodegate-view").await?;
    let viewer = world
        .cluster
        .kubeconfig_for_service_account("default", "viewer")
        .await?;
    let held = format!("node/{HELD}");
    for question in [
        vec!["explain", &held],
        vec!["explain", "rule/network"],
        vec!["explain", "pod/shop"],
        vec!["status"],
    ] {
        let all = ask(&world.cluster.kubeconfig(), &question).await?;
        let said = ask(&viewer, &question).await?;
        assert_eq!(normal(&said.out), normal(&all.out), "{said:?}");
        ensure!(!said.out.contains("not allowed"), "{said:?}");
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
    world.cluster.account("poor", "without-pods").await?;
    let poor = world
        .cluster
        .kubeconfig_for_service_account("default", "poor")
        .await?;
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
    // What needs more than it got fails, and takes nothing for missing that it could not read.
    for (question, may_answer) in [("suggest", false), ("check", true)] {
        let said = ask(&poor, &[question]).await?;
        ensure!(said.code == 1, "{question}: {said:?}");
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
    world.cluster.account("nobody", "without-anything").await?;
    let nobody = world
        .cluster
        .kubeconfig_for_service_account("default", "nobody")
        .await?;
    let admin = world.cluster.kubeconfig();
    for (kubeconfig, question) in [
        (&nobody, &["status"][..]),
        (&admin, &["status", "--as", "jane"]),
    ] {
        let said = ask(kubeconfig, question).await?;
        ensure!(said.code == 1 && said.out.is_empty(), "{said:?}");
        has_words(&said.err, "nodegate-view")?;
    }
    Ok(())
}
