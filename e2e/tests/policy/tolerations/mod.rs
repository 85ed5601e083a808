//! Tolerations that the API server adds to `DaemonSet`s, by the policy of `config/tolerations`: to which, what a node has of it, and that
//! tools which apply the same manifest again change nothing.

mod cost;
mod pods;
mod policy;
mod tools;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Toleration;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use nodegate_tests::SOON;
use nodegate_tests::rules::key;
use testkit::kubernetes::fixtures::DaemonSetBuilder;
use testkit::kubernetes::versions::is_since;
use testkit::nodegate::fixtures::{RuleBuilder, daemon_set, rule};
use testkit::nodegate::install::config;
use testkit::nodegate::{Cluster, Options, SharedCluster, eventually};
use tokio::sync::OnceCell;

/// It runs no controller.
static CLUSTER: SharedCluster = SharedCluster::new(Options::api_only());
static INSTALLED: OnceCell<bool> = OnceCell::const_new();

/// `None` if the API server does not support such policies.
async fn cluster() -> Result<Option<(&'static Cluster, Client)>> {
    let cluster = CLUSTER.get().await?;
    let is_installed = INSTALLED.get_or_try_init(async || install(cluster).await);
    let client = cluster.client().await?;
    Ok(is_installed.await?.then_some((cluster, client)))
}

/// Installs the policy with everything else; returns false if that is not supported.
async fn install(cluster: &Cluster) -> Result<bool> {
    if !is_since(&cluster.client().await?, 36, "MutatingAdmissionPolicy").await? {
        return Ok(false);
    }
    cluster.install().await?;
    cluster.apply_strictly(&config("tolerations")).await?;
    Ok(true)
}

/// An accepted rule that waits for this.
fn waiting(name: &str, condition: &str) -> RuleBuilder {
    let rule = rule(name, &key(name)).waits_for(condition);
    rule.finalizer("readiness.node.x-k8s.io/cleanup-taints")
}

/// An accepted rule that waits for this `DaemonSet`.
fn naming(name: &str, daemon_set: &str) -> RuleBuilder {
    let named = daemon_set.replace('/', ".");
    waiting(name, &format!("daemonset.nodegate.dev/{named}"))
}

/// The tolerations that a `DaemonSet`'s template would have, by a dry run.
async fn tried(client: &Client, daemon_set: DaemonSetBuilder) -> Result<Vec<String>> {
    let only_try = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let daemon_set = daemon_set.build();
    let namespace = daemon_set.namespace().context("no namespace")?;
    let api: Api<DaemonSet> = Api::namespaced(client.clone(), &namespace);
    let created = api.create(&only_try, &daemon_set).await;
    Ok(tolerations(&created.with_context(|| {
        format!("trying DaemonSet {}", daemon_set.name_any())
    })?))
}

/// The tolerations of a `DaemonSet`'s template, as `key=value:effect` with what is left out being empty, in order.
fn tolerations(daemon_set: &DaemonSet) -> Vec<String> {
    let template = daemon_set.spec.as_ref().map(|it| &it.template);
    let pod = template.and_then(|it| it.spec.as_ref());
    let text = |it: &Toleration| {
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        let value = match it.operator.as_deref() {
            Some("Exists") => String::new(),
            _ => format!("={}", part(&it.value)),
        };
        format!("{}{value}:{}", part(&it.key), part(&it.effect))
    };
    let all = pod.and_then(|it| it.tolerations.as_ref());
    all.into_iter().flatten().map(text).collect()
}

/// What is added for a rule with this name.
fn added(rule: &str) -> String {
    format!("{}:NoSchedule", key(rule))
}

/// Waits until the API server's policy knows every rule created so far. It learns of rules in the order of their creation, so one more
/// serves as a marker.
async fn all_are_known(client: &Client, marker: &str) -> Result<()> {
    let rule = naming(marker, &format!("default/{marker}"));
    rule.selects("test", "none").create(client).await?;
    eventually("the rules are known", SOON, async || {
        let tolerations = tried(client, daemon_set(marker)).await?;
        Ok(tolerations == [added(marker)])
    })
    .await
}
