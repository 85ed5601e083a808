//! `kubectl apply -k`: what a real cluster makes of the manifests, and the controller that they describe.

use anyhow::{Context, Result};
use nodegate_e2e::fetch::Fetch;
use nodegate_e2e::install::{NAMESPACE, config, write_kustomization};
use nodegate_e2e::{Cluster, Options, deployment, eventually};

use crate::{
    CRD, SOON, TURNS, call_webhook_at, closed_node, folder, gates_and_releases, until_bound,
    until_conflicts_are_refused,
};

#[tokio::test]
async fn installed_by_kustomize_it_runs_on_closed_nodes_and_opens_nodes() -> Result<()> {
    let _turn = TURNS.acquire().await?;
    let cluster = Cluster::start(Options::full()).await?;
    let client = cluster.client().await?;
    closed_node(&client).await?;
    let default = config("default");
    let apply = ["apply", "--server-side", "-k", &default.to_string_lossy()];
    let applied = cluster.kubectl(&apply).await?;
    assert!(!applied.contains("Warning"), "{applied}");
    // The namespace enforces pod security `restricted`: pods that do not meet it would not be made.
    until_bound(&cluster, NAMESPACE, 2).await?;

    let (controller, addresses) = deployment::run(&cluster, NAMESPACE).await?;
    let controller = controller.once_ready().await?;
    gates_and_releases(&client, "worker")
        .await
        .with_context(|| controller.log())?;
    let lease = ["get", "lease", "-n", NAMESPACE, "-o", "name"];
    let leases = cluster.kubectl(&lease).await?;
    assert!(
        leases.contains("ba65f13e.readiness.node.x-k8s.io"),
        "{leases}"
    );

    // Metrics are there for whoever is bound to the role that comes with them, and for nobody else.
    let url = format!("https://{}/metrics", addresses.metrics);
    assert_eq!(Fetch::anonymous().get(&url).await?.status, 401);
    for command in [
        "create serviceaccount prometheus",
        "create clusterrolebinding prometheus --clusterrole=nrr-metrics-reader --serviceaccount=default:prometheus",
    ] {
        let arguments: Vec<_> = command.split(' ').collect();
        cluster.kubectl(&arguments).await?;
    }
    let token = cluster
        .service_account_token("default", "prometheus")
        .await?;
    eventually("metrics are served", SOON, async || {
        let answer = Fetch::with_token(&token).get(&url).await?;
        Ok(answer.status == 200 && answer.text.contains("nodegate_leader 1"))
    })
    .await?;

    let again = cluster.kubectl(&apply).await?;
    assert!(again.lines().count() > 15, "{again}");
    cluster.kubectl(&["get", "crd", CRD]).await?;
    controller.stop().await?;
    Ok(())
}

#[tokio::test]
async fn the_webhook_component_needs_nothing_but_itself() -> Result<()> {
    let _turn = TURNS.acquire().await?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let folder = folder("applied-webhook")?;
    write_kustomization(&folder, &["default"], &["components/webhook"])?;
    cluster
        .kubectl(&["apply", "-k", &folder.to_string_lossy()])
        .await?;
    let (controller, addresses) = deployment::run(&cluster, NAMESPACE).await?;
    call_webhook_at(&cluster, &addresses.webhook).await?;
    until_conflicts_are_refused(&cluster.client().await?, &controller).await
}
