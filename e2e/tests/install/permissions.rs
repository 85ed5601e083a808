//! The controller's permissions under the shipped RBAC, by the API server's answers: all that it needs, and no dangerous
//! others.

use anyhow::Result;
use testkit::nodegate::install::{CONTROLLER, config};
use testkit::nodegate::{Cluster, Options};

#[tokio::test]
async fn the_controller_may_do_what_it_does_and_no_more() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    cluster.kubectl_on(&["apply"], &config("webhook")).await?;
    let user = format!("--as={CONTROLLER}");
    #[rustfmt::skip]
    let questions = [
        ("patch nodes", true),
        ("patch nodes --subresource=status", true),
        ("update nodes", false),
        ("delete nodes", false),
        ("list pods -A", true),
        ("delete pods -A", false),
        ("list csinodes.storage.k8s.io", true),
        // The Lease is read and renewed by name, and never watched.
        ("get leases.coordination.k8s.io/ba65f13e.readiness.node.x-k8s.io -n nrr-system", true),
        ("watch leases.coordination.k8s.io/ba65f13e.readiness.node.x-k8s.io -n nrr-system", false),
        ("get leases.coordination.k8s.io -n nrr-system", false),
        // Events about nodes and rules are posted in `default`.
        ("create events.events.k8s.io -n default", true),
        ("create events.events.k8s.io -n kube-system", false),
        ("create events.events.k8s.io -n nrr-system", false),
        ("create events -n default", false),
        ("list events.events.k8s.io -n default", false),
        // The Secret of the webhook's certificate exists already.
        ("get secrets/nrr-webhook-server-cert -n nrr-system", true),
        ("update secrets/nrr-webhook-server-cert -n nrr-system", true),
        ("create secrets -n nrr-system", false),
        ("list secrets -n nrr-system", false),
        ("get secrets/another -n nrr-system", false),
        ("get secrets/nrr-webhook-server-cert -n default", false),
        ("patch validatingwebhookconfigurations/nrr-validating-webhook-configuration", true),
        ("patch validatingwebhookconfigurations/another", false),
        ("create validatingwebhookconfigurations", false),
        ("get customresourcedefinitions/nodereadinessrules.readiness.node.x-k8s.io", false),
    ];
    for (question, expected) in questions {
        let mut arguments = vec!["auth", "can-i", &user];
        arguments.extend(question.split(' '));
        // kubectl fails if the answer is `no`.
        let answer = cluster.kubectl(&arguments).await;
        assert_eq!(answer.is_ok(), expected, "{question}: {answer:?}");
    }
    Ok(())
}
