//! Nodes that other controllers are asked to repair: by a remediation of medik8s' kind, whose definition here is of the same form as
//! Self Node Remediation's, and by Cluster API's own Machine.

use anyhow::{Context, Result, ensure};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use nodegate_suite::SOON;
use nodegate_suite::gates::eventually_open;
use nodegate_suite::rules::eventually_says;
use nodegate_testbed::changes::{patch_node, set_node_condition};
use nodegate_testbed::definitions::CLUSTER_API;
use nodegate_testbed::fixtures::RuleBuilder;
use nodegate_testbed::{Cluster, Controller, Options, eventually, never, sights};
use serde_json::json;

use super::{A_WHILE, READY, eventually_told, key, late, notes};

const NAMESPACE: &str = "fencing";
const GROUP: &str = "self-node-remediation.medik8s.io";
const TEMPLATE: &str = "automatic";
const REMEDIATE_MACHINE: &str = "cluster.x-k8s.io/remediate-machine";

/// What Self Node Remediation's installation has: two kinds, and the permissions that it grants by the label.
fn self_node_remediation() -> String {
    let definition = |kind: &str, plural: &str| {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{GROUP}")},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
                "versions": [{
                    "name": "v1alpha1",
                    "served": true,
                    "storage": true,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": open, "status": open},
                    }},
                }],
            },
        })
    };
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": "self-node-remediation-ext-remediation",
            "labels": {"rbac.ext-remediation/aggregate-to-ext-remediation": "true"},
        },
        "rules": [
            {"apiGroups": [GROUP], "resources": ["selfnoderemediationtemplates"], "verbs": ["get"]},
            {
                "apiGroups": [GROUP],
                "resources": ["selfnoderemediations"],
                "verbs": ["get", "create", "update", "delete"],
            },
        ],
    });
    let objects = [
        definition("SelfNodeRemediation", "selfnoderemediations"),
        definition(
            "SelfNodeRemediationTemplate",
            "selfnoderemediationtemplates",
        ),
        role,
    ];
    objects.map(|it| it.to_string()).join("\n---\n")
}

/// Installs Self Node Remediation's kinds, and a template.
async fn install_kinds(cluster: &Cluster) -> Result<()> {
    cluster.apply(&self_node_remediation()).await?;
    let template = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "kind": "SelfNodeRemediationTemplate",
        "metadata": {"name": TEMPLATE, "namespace": NAMESPACE},
        "spec": {"template": {"spec": {"remediationStrategy": "Automatic"}}},
    });
    eventually("the template is made", SOON, async || {
        Ok(cluster.apply(&template.to_string()).await.ok())
    })
    .await?;
    Ok(())
}

fn remediations(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(GROUP, "v1alpha1", "SelfNodeRemediation");
    let kind = ApiResource::from_gvk_with_plural(&kind, "selfnoderemediations");
    Api::namespaced_with(client.clone(), NAMESPACE, &kind)
}

fn machines(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "Machine");
    let kind = ApiResource::from_gvk_with_plural(&kind, "machines");
    Api::namespaced_with(client.clone(), NAMESPACE, &kind)
}

fn rule(test: &str, action: &str) -> RuleBuilder {
    super::rule(test, action).spec(
        "repair",
        json!({
            "readinessTTL": "1m",
            "action": action,
            "maxUnhealthy": "100%",
            "remediationTemplate": {
                "apiVersion": format!("{GROUP}/v1alpha1"),
                "kind": "SelfNodeRemediationTemplate",
                "name": TEMPLATE,
                "namespace": NAMESPACE,
            },
        }),
    )
}

/// A cluster whose controller manager aggregates roles.
async fn cluster() -> Result<(Cluster, Client)> {
    let cluster = Cluster::start(Options::full()).await?;
    cluster.install().await?;
    cluster.kubectl(&["create", "namespace", NAMESPACE]).await?;
    let client = cluster.client().await?;
    Ok((cluster, client))
}

async fn eventually_made(client: &Client, name: &str) -> Result<DynamicObject> {
    eventually("a remediation is made", SOON, async || {
        Ok(remediations(client).get_opt(name).await?)
    })
    .await
}

#[tokio::test]
async fn a_remediation_is_made_once_for_a_deadline_and_deleted_with_its_cause_and_no_other()
-> Result<()> {
    const NODE: &str = "remediated";
    let (cluster, client) = cluster().await?;
    install_kinds(&cluster).await?;
    cluster.install_remediation_rbac().await?;
    let others = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "kind": "SelfNodeRemediation",
        "metadata": {"name": "others", "namespace": NAMESPACE},
    });
    cluster.apply(&others.to_string()).await?;
    let controller = Controller::start(&cluster, &[]).await?;
    let rule = rule(NODE, "Remediate").create(&client).await?;
    for name in [NODE, "others"] {
        late(NODE, name, &rule).create(&client).await?;
    }

    let made = eventually_made(&client, NODE).await?;
    let node = sights::node(&client, NODE).await?;
    let owner = made.owner_references().first().context("an owner")?;
    assert_eq!(
        (&*owner.kind, Some(&owner.uid)),
        ("Node", node.uid().as_ref())
    );
    assert_eq!(
        made.data["spec"],
        json!({"remediationStrategy": "Automatic"})
    );
    let note = eventually_told(&client, NODE, "NodeRemediationCreated", SOON).await?;
    let expected = "SelfNodeRemediation fencing/remediated created by rule 'remediated'. The node should have been ready by ";
    ensure!(note.starts_with(expected), "{note}");
    let note = eventually_told(&client, "others", "NodeRepairImpossible", SOON).await?;
    let expected = "exists already, and Nodegate did not make it";
    ensure!(note.ends_with(expected), "{note}");

    // Somebody deletes it, and another process leads.
    let record = format!(
        "nodegate.dev/remediation-{}",
        rule.uid().unwrap_or_default()
    );
    eventually("it is on record", SOON, async || {
        let node = sights::node(&client, NODE).await?;
        let record = node.annotations().get(&record).cloned();
        Ok(record.filter(|it| it.contains("\"done\":true")))
    })
    .await?;
    remediations(&client)
        .delete(NODE, &DeleteParams::default())
        .await?;
    set_node_condition(&client, NODE, READY, "False").await?;
    let is_made = async || Ok(remediations(&client).get_opt(NODE).await?.is_some());
    never("it is made again", A_WHILE, is_made).await?;
    drop(controller);
    let _controller = Controller::start(&cluster, &[]).await?;
    never("it is made again", SOON / 4, is_made).await?;

    // A new deadline.
    let due = late(NODE, NODE, &rule).build().metadata.annotations;
    let due = json!({"metadata": {"annotations": due}});
    patch_node(&client, NODE, &due).await?;
    eventually_made(&client, NODE).await?;
    set_node_condition(&client, NODE, READY, "True").await?;
    eventually_open(&client, NODE, &key(NODE)).await?;
    eventually("it is deleted", SOON, async || Ok(!is_made().await?)).await?;
    eventually("nothing is on record", SOON, async || {
        let node = sights::node(&client, NODE).await?;
        Ok(!node.annotations().contains_key(&record))
    })
    .await?;
    late(NODE, "last", &rule).create(&client).await?;
    eventually_made(&client, "last").await?;
    let delete = ["delete", "nrr", NODE, "--timeout=30s"];
    cluster.kubectl(&delete).await?;
    let left = async |name: &str| anyhow::Ok(remediations(&client).get_opt(name).await?.is_some());
    ensure!(!left("last").await?, "it stays");
    ensure!(left("others").await?, "it went");
    Ok(())
}

#[tokio::test]
async fn a_kind_and_then_a_permission_that_is_missing_is_told_and_holds_nothing_else_up()
-> Result<()> {
    const NODE: &str = "refused";
    let (cluster, client) = cluster().await?;
    let controller = Controller::start(&cluster, &[]).await?;
    let rule = rule(NODE, "Remediate").create(&client).await?;
    late(NODE, NODE, &rule).create(&client).await?;
    let condition = eventually_says(&client, NODE, "RepairUnavailable", "True").await?;
    assert_eq!(
        condition["message"],
        format!(
            "no node can be repaired: SelfNodeRemediationTemplate of {GROUP}/v1alpha1 is not installed in this cluster"
        )
    );
    install_kinds(&cluster).await?;
    eventually("it says what to apply", SOON * 2, async || {
        let condition = sights::rule_condition(&client, NODE, "RepairUnavailable").await?;
        let message = condition["message"].as_str().unwrap_or_default();
        Ok(message.contains("kubectl apply -k config/remediation"))
    })
    .await?;
    ensure!(controller.is_ready().await, "not ready");
    cluster.install_remediation_rbac().await?;
    eventually("a remediation is made", SOON * 2, async || {
        Ok(remediations(&client).get_opt(NODE).await?)
    })
    .await?;
    eventually("the rule has no complaint any more", SOON, async || {
        let condition = sights::rule_condition(&client, NODE, "RepairUnavailable").await?;
        Ok(condition.is_null())
    })
    .await
}

#[tokio::test]
async fn the_machine_of_a_late_node_is_annotated_once_and_no_other() -> Result<()> {
    const TESTED: &str = "machine";
    let (cluster, client) = cluster().await?;
    cluster.install_definitions(&CLUSTER_API).await?;
    cluster.install_remediation_rbac().await?;
    for (name, of) in [("machine-a", "machine-1"), ("machine-b", "another")] {
        let machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Machine",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "clusterName": "workload",
                "bootstrap": {"dataSecretName": "bootstrap"},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Some", "name": name},
            },
        });
        cluster.apply(&machine.to_string()).await?;
        let status = Patch::Merge(json!({"status": {"nodeRef": {"name": of}}}));
        machines(&client)
            .patch_status(name, &PatchParams::default(), &status)
            .await?;
    }
    let _controller = Controller::start(&cluster, &[]).await?;
    let rule = rule(TESTED, "AnnotateMachine").create(&client).await?;
    let join = async |name: &str, machine: &str| -> Result<()> {
        let node = late(TESTED, name, &rule).annotation("cluster.x-k8s.io/machine", machine);
        let node = node.annotation("cluster.x-k8s.io/cluster-namespace", NAMESPACE);
        node.create(&client).await?;
        Ok(())
    };
    join("machine-1", "machine-a").await?;
    let annotated = async |name: &str| {
        let machine = machines(&client).get(name).await?;
        anyhow::Ok(machine.annotations().get(REMEDIATE_MACHINE).cloned())
    };
    let value = eventually("it is annotated", SOON, async || {
        annotated("machine-a").await
    })
    .await?;
    assert_eq!(value, "");
    eventually_told(&client, "machine-1", "MachineAnnotated", SOON).await?;
    // This one names a Machine that is not its own.
    join("machine-2", "machine-b").await?;
    let note = eventually_told(&client, "machine-2", "NodeRepairImpossible", SOON).await?;
    ensure!(
        note.ends_with("status.nodeRef of Machine fencing/machine-b does not name this node"),
        "{note}"
    );
    ensure!(
        annotated("machine-b").await?.is_none(),
        "it has been annotated"
    );

    let gone = Patch::Merge(json!({"metadata": {"annotations": {REMEDIATE_MACHINE: null}}}));
    machines(&client)
        .patch("machine-a", &PatchParams::default(), &gone)
        .await?;
    set_node_condition(&client, "machine-1", READY, "False").await?;
    never("it is annotated again", A_WHILE, async || {
        Ok(annotated("machine-a").await?.is_some())
    })
    .await?;
    assert_eq!(
        notes(&client, "machine-1", "MachineAnnotated").await?.len(),
        1
    );
    Ok(())
}
