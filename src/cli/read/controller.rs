//! Reads the cluster's information about the controller: its leader, configuration, instances and arguments.

use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};

use super::source::{ObjectSource, record_gap};
use crate::failure::CliError;
use crate::snapshot::{Controller, Leader, arguments};
use nodegate_cluster::{Gap, ResourceKind};
use nodegate_core::api::names::{CONFIG_MAP, LEASE, NAMESPACE};
use nodegate_core::config::Config;
use nodegate_core::guard::Limits;
use nodegate_core::selector::Filter;

/// The name of the controller's container, upstream's and ours.
const CONTAINER: &str = "manager";

/// The leader; `None` without a Lease.
pub(super) async fn leader(source: &ObjectSource) -> Result<Option<Leader>, Gap> {
    let ours = Filter::named(LEASE);
    let leases: Vec<Lease> = source.all(ResourceKind::Leases, &ours).await?;
    Ok(leases.into_iter().next().map(Leader::of))
}

/// The configuration in the chart's `ConfigMap`, or the default one with a gap. Among manifests, the namespace may be another.
pub(super) async fn config(
    source: &ObjectSource,
    leader: Option<&Leader>,
    gaps: &mut Vec<Gap>,
) -> Result<Config, CliError> {
    let (name, key) = CONFIG_MAP;
    let one = match source {
        ObjectSource::Memory(lists) if lists.are_files => Filter::named(name),
        _ => Filter::one(namespace(leader), name),
    };
    let maps: Result<Vec<ConfigMap>, Gap> = source.all(ResourceKind::ConfigMaps, &one).await;
    let maps = match maps {
        Err(refusal) if refusal.absent => Vec::new(),
        maps => record_gap(gaps, maps),
    };
    let mut texts = maps.into_iter().filter_map(|map| map.data?.remove(key));
    Ok(match texts.next_back() {
        Some(text) => Config::parse(&text, Path::new(name))?,
        None => Config::default(),
    })
}

/// The instances in the Lease's namespace. No decision needs them, so that a refusal is no gap.
pub(super) async fn instances(source: &ObjectSource, leader: Option<&Leader>) -> Vec<Controller> {
    let Some(leader) = leader else {
        return Vec::new();
    };
    let filter = Filter::of_controllers(Some(&leader.namespace));
    let pods = source.all::<Pod>(ResourceKind::Pods, &filter).await;
    pods.iter().flatten().filter_map(Controller::of).collect()
}

/// The limits in the arguments of the leading pod's Deployment, or of the only Deployment.
pub(super) async fn limits(source: &ObjectSource, leader: Option<&Leader>) -> Option<Limits> {
    let filter = Filter::of_controllers(Some(namespace(leader)));
    let all: Vec<Deployment> = source.all(ResourceKind::Deployments, &filter).await.ok()?;
    let all: Vec<_> = all.iter().filter_map(command_line).collect();
    let leads = |(name, _): &&(&str, Vec<&str>)| {
        let rest = leader.and_then(|leader| leader.pod().strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with('-'))
    };
    let (_, arguments) = match all.as_slice() {
        [only] => only,
        all => all.iter().find(leads)?,
    };
    Limits::of_arguments(arguments.iter().copied())
}

fn namespace(leader: Option<&Leader>) -> &str {
    leader.map_or(NAMESPACE, |leader| &leader.namespace)
}

/// The name of a Deployment, and the command line of its controller container.
fn command_line(deployment: &Deployment) -> Option<(&str, Vec<&str>)> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    let container = pod.containers.iter().find(|it| it.name == CONTAINER)?;
    let line = arguments(container).collect();
    Some((deployment.metadata.name.as_deref()?, line))
}
