//! Commands that must fail: each says why, and what to do.

use std::path::Path;

use anyhow::{Result, ensure};
use nodegate_tests::has_words;
use testkit::nodegate::{Cluster, Options};

use crate::world::{asks, world};

async fn fails(kubeconfig: &Path, arguments: &[&str], expected: &str) -> Result<()> {
    ends(kubeconfig, arguments, 1, expected).await
}

async fn ends(kubeconfig: &Path, arguments: &[&str], code: i32, expected: &str) -> Result<()> {
    let said = asks(kubeconfig, arguments, code).await?;
    ensure!(said.out.is_empty(), "{arguments:?}: {said:?}");
    has_words(&said.err, expected)
}

#[tokio::test]
async fn an_unknown_name_is_answered_with_similar_names() -> Result<()> {
    let kubeconfig = world().await?.cluster.kubeconfig();
    #[rustfmt::skip]
    let cases = [
        ("node/wroker-1", "there is no node wroker-1; did you mean worker-1"),
        ("rule/netwrok", "there is no rule netwrok; did you mean network?"),
        ("pod/shp", "there is no pod default/shp; did you mean shop?"),
    ];
    for (question, expected) in cases {
        fails(&kubeconfig, &["explain", question], expected).await?;
    }
    Ok(())
}

/// The exit code of a command line that cannot be used.
const USAGE: i32 = 64;

#[tokio::test]
async fn a_command_line_that_cannot_be_used_has_an_exit_code_of_its_own() -> Result<()> {
    let nowhere = Path::new("/nonexistent");
    for (arguments, expected) in [
        (&["explain", "cat/tom"][..], "cannot be explained"),
        (&["explain", "node"], "such as node/worker-1"),
        (&["status", "--timeout=10m"], "--wait"),
        (&["check", "--nonsense"], "unexpected argument"),
        (&["nonsense"], "unrecognized subcommand"),
        (&[], "Usage"),
    ] {
        ends(nowhere, arguments, USAGE, expected).await?;
    }
    Ok(())
}

#[tokio::test]
async fn without_a_cluster_the_message_says_what_was_tried() -> Result<()> {
    let kubeconfig = std::env::temp_dir().join(format!("nowhere-{}.yaml", std::process::id()));
    let text = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], \
        users: [{name: a, user: {}}], clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]}";
    std::fs::write(&kubeconfig, text)?;
    fails(&kubeconfig, &["status"], "cannot be reached").await?;
    let checked = asks(&kubeconfig, &["check"], 1).await?;
    has_words(&checked.err, "unknown: API server")?;
    fails(&kubeconfig, &["status", "--context", "b"], "b").await?;
    fails(
        &kubeconfig,
        &["status", "--from", "/nonexistent"],
        "writes a dump",
    )
    .await
}

#[tokio::test]
async fn without_the_crd_the_message_offers_check() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    fails(&cluster.kubeconfig(), &["status"], "kubectl nodegate check").await
}
