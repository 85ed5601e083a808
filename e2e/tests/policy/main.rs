//! The admission policies on a real API server. `birth` is about the one that gates nodes, `tolerations` about the one that
//! adds tolerations. Of the others, legitimate writes succeed, and each other write is refused with a message that
//! says why.

mod birth;
mod controller;
mod crowded;
mod kubelet;
mod reporter;
mod tolerations;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::core::Status;
use kube::{Api, Client};
use nodegate_tests::SOON;
use serde_json::{Value, json};
use testkit::nodegate::install::{NAMESPACE, SERVICE_ACCOUNT, config, example};
use testkit::nodegate::{Cluster, ControllerManager, Options, SharedCluster, eventually};
use tokio::sync::OnceCell;

// The controller manager type-checks policies.
static CLUSTER: SharedCluster = SharedCluster::new(Options {
    controller_manager: ControllerManager::WithoutNodeLifecycle,
    ..Options::api_only()
});
static INSTALLED: OnceCell<()> = OnceCell::const_new();

#[tokio::test]
async fn the_api_server_finds_no_fault_with_the_policies() -> Result<()> {
    let cluster = cluster().await?;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(cluster.client().await?);
    for name in [
        "nrr-controller-policy",
        "nrr-node-policy",
        "nrr-reporter-policy",
    ] {
        let checked = eventually("it is type-checked", SOON, async || {
            let status = policies.get(name).await?.status.unwrap_or_default();
            Ok(status.type_checking)
        })
        .await?;
        let warnings = checked.expression_warnings.unwrap_or_default();
        ensure!(warnings.is_empty(), "{name}: {warnings:#?}");
    }
    Ok(())
}

async fn cluster() -> Result<&'static Cluster> {
    let cluster = CLUSTER.get().await?;
    INSTALLED
        .get_or_try_init(async || {
            cluster.install().await?;
            for folder in [
                config("reporter"),
                config("policy"),
                example("cni-readiness"),
            ] {
                cluster.apply_strictly(&folder).await?;
            }
            anyhow::Ok(())
        })
        .await?;
    Ok(cluster)
}

/// A client with the controller's account.
async fn nodegate(cluster: &Cluster) -> Result<Client> {
    let kubeconfig = cluster.kubeconfig_for_service_account(NAMESPACE, SERVICE_ACCOUNT);
    cluster.client_for(&kubeconfig.await?).await
}

/// Waits until the API server enforces the reporter's policy: it learns of policies with a delay.
async fn in_force(client: &Client, node: &str, forbidden: &Value) -> Result<()> {
    eventually("the policy is in force", SOON, async || {
        let dry = PatchParams {
            dry_run: true,
            ..PatchParams::default()
        };
        let patch = Patch::Strategic(forbidden);
        let nodes = Api::<Node>::all(client.clone());
        let result = nodes.patch_status(node, &dry, &patch).await;
        Ok(matches!(result, Err(kube::Error::Api(status)) if is_by_a_policy(&status)))
    })
    .await
}

/// Whether a policy refused it, rather than the authorizer, which may not know a new role yet.
fn is_by_a_policy(status: &Status) -> bool {
    status.code == 403 && status.message.contains("ValidatingAdmissionPolicy")
}

/// Fills a node up to the largest realistic size: there, too, a policy must stay within its budget.
async fn crowd(client: &Client, node: &str) -> Result<()> {
    let annotations: BTreeMap<String, String> = (0..100)
        .map(|number| (format!("example.com/annotation-{number}"), "x".repeat(500)))
        .collect();
    let images: Vec<Value> = (0..100)
        .map(|number| {
            let names: Vec<String> = (0..5)
                .map(|tag| format!("registry.example.com/some/image-{number}@sha256:{tag:064}"))
                .collect();
            json!({"names": names, "sizeBytes": number})
        })
        .collect();
    let conditions: Vec<Value> = (0..60)
        .map(|number| {
            let kind = format!("example.com/Condition{number}");
            json!({"type": kind, "status": "True", "reason": "Test", "message": "x".repeat(200)})
        })
        .collect();
    let volumes: Vec<String> = (0..200)
        .map(|number| format!("kubernetes.io/csi/driver.example.com^volume-{number}"))
        .collect();
    let status = json!({"images": images, "conditions": conditions, "volumesInUse": volumes});
    patch_status(client, node, &json!({"status": status})).await?;
    patch_node(
        client,
        node,
        &json!({"metadata": {"annotations": annotations}}),
    )
    .await?;
    Ok(())
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"status": {"conditions": [{"type": kind, "status": status, "reason": "Test", "message": ""}]}})
}

fn removal(kind: &str) -> Value {
    json!({"status": {"conditions": [{"type": kind, "$patch": "delete"}]}})
}

async fn patch_status(client: &Client, node: &str, patch: &Value) -> kube::Result<Node> {
    Api::all(client.clone())
        .patch_status(node, &PatchParams::default(), &Patch::Strategic(patch))
        .await
}

async fn patch_node(client: &Client, node: &str, patch: &Value) -> kube::Result<Node> {
    Api::all(client.clone())
        .patch(node, &PatchParams::default(), &Patch::Merge(patch))
        .await
}

/// Checks that a policy refused a write, with these words.
fn is_refused(result: kube::Result<Node>, who: &str, words: &str) -> Result<()> {
    let Err(kube::Error::Api(status)) = result else {
        anyhow::bail!("it was not refused: {:?}", result.map(|_| ()));
    };
    let message = &status.message;
    ensure!(
        is_by_a_policy(&status),
        "refused with {}, {message}",
        status.code
    );
    ensure!(
        message.contains(who) && message.contains(words),
        "{message}"
    );
    Ok(())
}
