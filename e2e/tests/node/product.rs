//! Nodegate as shipped (`config/default`, and the chart), with the webhook, as pods on the very node that it has to release.

use anyhow::{Result, ensure};
use testkit::nodegate::controller::binary;
use testkit::nodegate::fixtures::daemon_set;
use testkit::nodegate::install::{NAMESPACE, chart, kustomize, write_kustomization};
use testkit::nodegate::state::{count_taints, has_taint};
use testkit::nodegate::{Cluster, NodeHistory};
use testkit::realnode::components::{agent, create, create_workload, set_ready};
use testkit::realnode::images::Image;
use testkit::realnode::inside::alone;
use testkit::realnode::node::{NAME, options};
use testkit::realnode::{RealNode, Times};

use crate::installation::Installation;
use crate::scene::{TAINT, create_critical, critical_rule, held};

/// The image of `config/manager` and of the chart, as containerd names it.
const IMAGE: &str = "docker.io/library/nodegate:0.1.0";

fn image() -> Result<Image> {
    Ok(Image::of(IMAGE, "/nodegate-controller", &binary()?)?.as_user("65532:65532"))
}

#[test]
fn the_pods_of_the_installation_release_the_node_that_they_run_on() -> Result<()> {
    alone(async || {
        let cluster = Cluster::start(options()).await?;
        let client = cluster.client().await?;
        cluster.install_crd().await?;
        // Once Nodegate is installed, rules can only be created while the webhook answers.
        critical_rule().create(&client).await?;
        let folder = cluster.folder().join("installation");
        write_kustomization(&folder, &["default"], &["components/webhook"])?;
        cluster.apply(&kustomize(&folder).await?).await?;
        let installation = Installation::found(&cluster, NAMESPACE).await?;
        create_critical(&client).await?;
        create_workload(&client, "shop", 1).await?;

        let node = RealNode::start(&cluster, held().image(image()?)).await?;
        let times = Times::since("the kubelet is started");
        times
            .until("it has registered, held", async || {
                has_taint(&client, NAME, TAINT).await
            })
            .await?;
        installation.leads(&times).await?;
        installation.releases_the_node(&times).await?;
        installation.both_are_ready(&times).await?;
        installation.refuses_conflicts(&times).await?;
        installation.outlives_its_leader(&node).await?;
        ensure!(!has_taint(&client, NAME, TAINT).await?);
        Ok(())
    })
}

#[test]
fn the_pods_of_the_chart_run_on_a_node_that_is_still_held() -> Result<()> {
    alone(async || {
        let cluster = Cluster::start(options()).await?;
        let client = cluster.client().await?;
        cluster.kubectl(&["create", "namespace", NAMESPACE]).await?;
        let level = "pod-security.kubernetes.io/enforce=restricted";
        let label = format!("label namespace {NAMESPACE} {level}");
        cluster.types(&label).await?;
        let chart = chart();
        let chart = chart.to_string_lossy();
        let webhook = "--set=webhook.enabled=true";
        cluster
            .helm(&["install", "nodegate", &chart, "-n", NAMESPACE, webhook])
            .await?;
        let installation = Installation::found(&cluster, NAMESPACE).await?;
        create_critical(&client).await?;
        let last = daemon_set("kube-system/last").critical();
        create(&client, &agent(last.tolerate_everything().build())?).await?;

        let history = NodeHistory::of_nodes(&client).await?;
        let node = RealNode::start(&cluster, held().image(image()?)).await?;
        let times = Times::since("the kubelet is started");
        installation.leads(&times).await?;
        installation.both_are_ready(&times).await?;
        times
            .until("the webhook lets a rule in", async || {
                critical_rule().create(&client).await?;
                Ok(true)
            })
            .await?;
        installation.refuses_conflicts(&times).await?;
        installation.outlives_its_leader(&node).await?;
        let seen = history.up_to(&client, NAME).await?;
        let mut states = seen.get(NAME).into_iter().flatten();
        ensure!(states.all(|node| count_taints(node, TAINT) == 1));

        set_ready("last", true)?;
        let times = Times::since("the last critical pod is ready");
        installation.releases_the_node(&times).await
    })
}
