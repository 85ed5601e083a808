//! Reads the cluster's information about the controller: its leader, configuration, instances and arguments.

use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;

use super::list::ListError;
use super::source::{ObjectSource, or_note};
use crate::api::names::{CONFIG_MAP, LEASE, NAMESPACE};
use crate::cli::failure::CliError;
use crate::cli::snapshot::{Controller, Filter, Gap, Leader, PodDiagnosis, ResourceKind};
use crate::config::Config;
use crate::guard::Limits;

/// The name of the controller's container, upstream's and ours.
const CONTAINER: &str = "manager";

/// The leader; `None` without a Lease.
pub(crate) async fn leader(source: &ObjectSource) -> Result<Option<Leader>, ListError> {
    let leases: Vec<Lease> = source
        .all(ResourceKind::Leases, &Filter::named(LEASE))
        .await?;
    Ok(leases.into_iter().next().map(Leader::of))
}

/// The configuration in the chart's `ConfigMap`, or the default one with a gap.
pub(super) async fn config(
    source: &ObjectSource,
    leader: Option<&Leader>,
    gaps: &mut Vec<Gap>,
) -> Result<Config, CliError> {
    let (name, key) = CONFIG_MAP;
    let one = Filter::one(namespace(leader), name);
    let maps: Vec<ConfigMap> = match source.all(ResourceKind::ConfigMaps, &one).await {
        Ok(maps) => maps,
        Err(ListError::NotInstalled) => Vec::new(),
        Err(refusal) => {
            or_note::<()>(gaps, ResourceKind::ConfigMaps, Err(refusal));
            return Ok(Config::default());
        }
    };
    let text = (maps.into_iter().next()).and_then(|map| map.data?.remove(key));
    let config = text.map_or_else(
        || Ok(Config::default()),
        |text| Config::parse(&text, Path::new(name)),
    );
    Ok(config?)
}

/// The instances in the Lease's namespace.
pub(crate) async fn instances(
    source: &ObjectSource,
    leader: Option<&Leader>,
) -> Result<Vec<Controller>, ListError> {
    let filter = Filter::of_controllers(Some(namespace(leader)));
    let pods = source.all(ResourceKind::Pods, &filter).await?;
    let pods = pods.into_iter().map(PodDiagnosis::of);
    Ok(pods.filter_map(Controller::of).collect())
}

/// The limits in the arguments of the leading pod's Deployment, or of the only Deployment.
pub(super) async fn limits(source: &ObjectSource, leader: Option<&Leader>) -> Option<Limits> {
    let filter = Filter::of_controllers(Some(namespace(leader)));
    let all = source.all(ResourceKind::Deployments, &filter).await.ok()?;
    let all: Vec<_> = all.into_iter().filter_map(arguments).collect();
    let leads = |(name, _): &&(String, Vec<String>)| {
        let rest = leader.and_then(|leader| leader.pod().strip_prefix(name.as_str()));
        rest.is_some_and(|rest| rest.starts_with('-'))
    };
    let (_, arguments) = match all.as_slice() {
        [only] => only,
        all => all.iter().find(leads)?,
    };
    Limits::of_arguments(arguments.iter().map(String::as_str))
}

fn namespace(leader: Option<&Leader>) -> &str {
    leader.map_or(NAMESPACE, |leader| &leader.namespace)
}

/// The name of a Deployment, and the arguments of its controller container.
fn arguments(deployment: Deployment) -> Option<(String, Vec<String>)> {
    let mut containers = deployment.spec?.template.spec?.containers.into_iter();
    let container = containers.find(|it| it.name == CONTAINER)?;
    let arguments = [container.command, container.args].into_iter().flatten();
    Some((deployment.metadata.name?, arguments.flatten().collect()))
}
