//! Commands about the whole cluster: problems, checks, suggested rules, and the report.

use anyhow::{Context, Result, ensure};
use nodegate_tests::has_words;
use testkit::nodegate::ask::{ask, ask_json};

use crate::world::{HELD, TURN, world};

#[tokio::test]
async fn a_viewer_can_run_check_and_suggest() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    world.cluster.account("onlooker", "nodegate-view").await?;
    let viewer = world
        .cluster
        .kubeconfig_for_service_account("default", "onlooker")
        .await?;
    let checkup = ask_json(&viewer, &["check"]).await?;
    let findings = checkup["findings"].as_array().context("no findings")?;
    let installed = findings.iter().filter(|it| it["severity"] == "ok");
    assert_eq!(installed.count(), 8, "{checkup:#}");
    assert_eq!(checkup["notes"], serde_json::Value::Null, "{checkup:#}");
    let suggested = ask(&viewer, &["suggest"]).await?;
    ensure!(suggested.code == 0, "{suggested:?}");
    let file = std::env::temp_dir().join(format!("nodegate-report-{}.html", std::process::id()));
    let name = file.display().to_string();
    let said = ask(&viewer, &["report", "--output-file", &name]).await?;
    let page = std::fs::read_to_string(&file).with_context(|| format!("{said:?}"))?;
    std::fs::remove_file(&file)?;
    for word in ["<!doctype html>", HELD, "default.cni", "</html>"] {
        has_words(&page, word)?;
    }
    Ok(())
}

#[tokio::test]
async fn an_empty_suggestion_applies_nothing() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let kubeconfig = world.cluster.kubeconfig();
    let said = ask(&kubeconfig, &["suggest"]).await?;
    ensure!(said.code == 0, "{said:?}");
    let names = ["get", "nodereadinessrules", "-o", "name"];
    let there = world.cluster.kubectl(&names).await?;
    let applied = world.cluster.apply(&said.out).await?;
    ensure!(!applied.contains("nodereadinessrule"), "{applied}");
    assert_eq!(world.cluster.kubectl(&names).await?, there);
    Ok(())
}

#[tokio::test]
async fn json_answers_have_a_kind_and_a_version() -> Result<()> {
    let kubeconfig = world().await?.cluster.kubeconfig();
    let (held, words) = (format!("node/{HELD}"), ["explain", "node", HELD]);
    let by_words = ask_json(&kubeconfig, &words).await?;
    for words in [["explain", &held], ["explain", HELD]] {
        let said = ask_json(&kubeconfig, &words).await?;
        assert_eq!(by_words["node"], said["node"]);
    }
    for (question, version, kind) in [
        (&words[..], "cli.nodegate.dev/v1alpha1", "NodeExplanation"),
        (
            &["explain", "rule/network"],
            "cli.nodegate.dev/v1alpha1",
            "RuleExplanation",
        ),
        (&["status"], "cli.nodegate.dev/v1alpha1", "Status"),
        (&["suggest"], "v1", "List"),
    ] {
        let said = ask_json(&kubeconfig, question).await?;
        assert_eq!(said["kind"], kind, "{question:?}");
        assert_eq!(said["apiVersion"], version, "{question:?}");
    }
    Ok(())
}

#[tokio::test]
async fn check_reads_files_without_a_cluster() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("nodegate-check-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let samples = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../config/samples/dry-run.yaml"
    );
    let sample = std::fs::read_to_string(samples)?;
    let name = folder.display().to_string();
    let nowhere = folder.join("no-kubeconfig");
    std::fs::write(folder.join("good.yaml"), &sample)?;
    let good = ask(&nowhere, &["check", "-f", &name]).await?;
    ensure!(good.code == 0, "{good:?}");
    std::fs::write(
        folder.join("bad.yaml"),
        format!("{sample}---\nkind: {{{{ .Values.kind }}}}\n"),
    )?;
    let bad = ask(&nowhere, &["check", "-f", &name]).await?;
    ensure!(bad.code == 2 && bad.out.contains("NG015"), "{bad:?}");
    has_words(&bad.out, "helm template")?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
