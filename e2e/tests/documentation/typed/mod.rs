//! Types the documentation's commands as printed, page by page, in a shell with `kubectl`, its plugin and Helm, on a cluster as
//! the page expects it: each command must succeed.
//!
//! Other tests compare the output: those of the examples, of `kubectl nodegate` and of the installation.

mod pages;
mod shell;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nodegate_tests::gates::eventually_gated;
use nodegate_tests::pages::typed;
use serde_json::json;
use testkit::kubernetes::versions::is_since;
use testkit::nodegate::definitions::{KARPENTER, PROMETHEUS_OPERATOR};
use testkit::nodegate::fixtures::{daemon_set, node, node_pool, rule};
use testkit::nodegate::install::config;
use testkit::nodegate::state::has_taint;
use testkit::nodegate::{Cluster, Controller, Options};

use tokio::time::sleep;

use pages::{BARE, BY_HAND, INSTALLED, Page, apart};
use shell::Shell;

/// The nodes in the pages' commands.
const NODES: [&str; 9] = [
    "gpu-1", "gpu-7", "node-2", "worker-1", "worker-2", "worker-3", "worker-5", "worker-7",
    "worker-9",
];

/// Commands with one of these need an API server of 1.36 or newer.
const NEW: [&str; 2] = ["config/birth", "config/tolerations"];

#[test]
fn every_page_with_commands_is_listed_and_every_exception_exists() -> Result<()> {
    let blocks = typed()?;
    let found: BTreeSet<&str> = blocks.iter().map(|block| block.page.as_str()).collect();
    let followed = || BARE.iter().chain(&INSTALLED);
    let known: BTreeSet<&str> = followed().map(|page| page.path).chain(apart()).collect();
    let differ: Vec<_> = found.symmetric_difference(&known).collect();
    ensure!(
        differ.is_empty(),
        "either with nothing to type, or in no list of e2e/tests/documentation/typed/pages.rs: {differ:?}"
    );
    let mut wrong = Vec::new();
    for page in followed() {
        for part in page.parts() {
            let mut of_page = blocks.iter().filter(|block| block.page == page.path);
            if !of_page.any(|block| block.text.contains(part)) {
                wrong.push(format!("{} has nothing with: {part}", page.path));
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// A cluster with simulated kubelets.
async fn cluster() -> Result<Cluster> {
    let cluster = Cluster::start(Options::complete()).await?;
    cluster.install_definitions(&PROMETHEUS_OPERATOR).await?;
    let client = cluster.client().await?;
    for name in NODES {
        node(name).managed_by_kwok().create(&client).await?;
    }
    Ok(cluster)
}

#[tokio::test]
async fn commands_for_an_installed_controller_succeed() -> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    cluster.install().await?;
    for name in ["kube-system/cilium", "kube-system/calico-node"] {
        let daemon_set = daemon_set(name).tolerate_everything();
        daemon_set.create(&client).await?;
    }
    cluster.install_definitions(&KARPENTER).await?;
    cluster.apply(&node_pool("gpu").build().to_string()).await?;
    let shell = Shell::new(&cluster)?;
    let _controller = Controller::start(&cluster, &["--leader-elect"]).await?;
    shell
        .types("kubectl apply --server-side --force-conflicts -k config/default")
        .await?;
    let mut wrong = Vec::new();
    for page in &INSTALLED {
        wrong.extend(follow(&shell, page, &cluster).await?);
        shell.types("kubectl delete nrr --all").await?;
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

#[tokio::test]
async fn three_commands_release_nodes_where_no_controller_runs() -> Result<()> {
    const KEY: &str = "readiness.k8s.io/network";
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    cluster.install().await?;
    let has_birth = is_since(&client, 36, NEW[0]).await?;
    if has_birth {
        cluster.apply_path(&config("birth")).await?;
    }
    let controller = Controller::start(&cluster, &["--leader-elect"]).await?;
    let rule = rule("network", KEY).waits_for("example.com/Network");
    rule.nodegate("disruption", json!({"maxFirstGated": "100%"}))
        .create(&client)
        .await?;
    for name in NODES {
        eventually_gated(&client, name, KEY).await?;
    }
    controller.stop().await?;

    let mut blocks = typed()?.into_iter();
    let block = blocks.find(|it| it.page == "docs/emergency.md" && it.text.contains(BY_HAND));
    let block = block.context("no such block")?.text;
    let lines = block.lines();
    let lines = lines.filter(|it| has_birth || !it.contains("mutatingadmissionpolicybinding"));
    let text: Vec<String> = lines
        .map(|it| it.replace("RULE", "network").replace("KEY", KEY))
        .collect();
    assert_eq!(text.len(), if has_birth { 3 } else { 2 }, "{block}");
    Shell::new(&cluster)?.types(&text.join("\n")).await?;
    assert_eq!(cluster.kubectl(&["get", "nrr", "-o", "name"]).await?, "");
    // The API server may take a moment to forget the binding.
    sleep(Duration::from_secs(3)).await;
    node("late").create(&client).await?;
    for name in NODES.into_iter().chain(["late"]) {
        assert!(!has_taint(&client, name, KEY).await?, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn commands_that_install_and_uninstall_succeed() -> Result<()> {
    let cluster = cluster().await?;
    let shell = Shell::new(&cluster)?;
    let mut wrong = Vec::new();
    for page in &BARE {
        wrong.extend(follow(&shell, page, &cluster).await?);
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

/// Only kind itself, and the image, are played: this machine may have no container engine.
#[tokio::test]
async fn try_cluster_installs_into_a_new_cluster() -> Result<()> {
    let cluster = cluster().await?;
    let shell = Shell::new(&cluster)?;
    let kubeconfig = cluster.kubeconfig();
    shell.stand_in(
        "kind",
        &format!(
            "case \"$1 $2\" in\n\
             'create cluster') test \"$5\" = --kubeconfig && cp '{}' \"$6\" ;;\n\
             'load image-archive') test -f \"$3\" ;;\n\
             *) exit 1 ;;\n\
             esac\n",
            kubeconfig.display()
        ),
    )?;
    shell
        .types("IMAGE_ARCHIVE=Cargo.lock hack/try-cluster kind")
        .await?;
    let image = "kubectl -n nrr-system get deployment nrr-controller-manager \
                 -o jsonpath='{.spec.template.spec.containers[0].image}'";
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(shell.types(image).await?, format!("nodegate:{version}"));
    shell.types("kubectl get nrr disk-pressure").await?;
    Ok(())
}

/// Types the commands of a page; returns the failures.
async fn follow(shell: &Shell, page: &Page, cluster: &Cluster) -> Result<Vec<String>> {
    let has_all = is_since(&cluster.client().await?, 36, &NEW.join(" and ")).await?;
    let shell = shell.at(page)?;
    let blocks = typed()?.into_iter().filter(|block| block.page == page.path);
    let blocks = blocks.filter(|block| !page.leaves_out(&block.text));
    let mut wrong = Vec::new();
    let is_new = |text: &str| NEW.iter().any(|part| text.contains(part));
    for block in blocks.filter(|block| has_all || !is_new(&block.text)) {
        if let Err(error) = shell.types(&page.typed(&block.text)).await {
            wrong.push(format!("{}: {error:#}", block.place()));
        }
    }
    Ok(wrong)
}
