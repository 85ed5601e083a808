//! Commands about the whole cluster: checks, suggested rules, and answers in JSON.

use std::path::Path;

use anyhow::{Result, ensure};
use nodegate_tests::has_words;
use testkit::nodegate::ask::ask_json;
use testkit::nodegate::install::config;

use crate::world::{HELD, TURN, asks, world};

#[tokio::test]
async fn an_empty_suggestion_applies_nothing() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let said = world.asks(&["suggest"], 0).await?;
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
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let sample = std::fs::read_to_string(config("samples/dry-run.yaml"))?;
    let name = folder.display().to_string();
    let nowhere = folder.join("no-kubeconfig");
    std::fs::write(folder.join("good.yaml"), &sample)?;
    let check = ["check", "-f", &name];
    asks(&nowhere, &check, 0).await?;
    let bad = format!("{sample}---\nkind: {{{{ .Values.kind }}}}\n");
    std::fs::write(folder.join("bad.yaml"), bad)?;
    let bad = asks(&nowhere, &check, 2).await?;
    has_words(&bad.out, "NG015")?;
    has_words(&bad.out, "helm template")
}
