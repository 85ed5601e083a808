//! Reads the cluster's information about the controller: its leader, configuration, instances and arguments.

use std::path::Path;

use clap::{Args as _, FromArgMatches as _};
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
    limits_of(arguments.iter().copied())
}

/// Parses a controller's arguments; `None` if a limit is invalid. Other arguments are ignored.
fn limits_of<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Option<Limits> {
    let command = clap::Command::new("limits").no_binary_name(true);
    let command = Limits::augment_args(command).args_override_self(true);
    let is_ours = |name: &str| {
        let mut ours = command.get_arguments();
        ours.any(|it| it.get_long() == Some(name))
    };
    let mut ours = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let Some(flag) = argument.strip_prefix('-') else {
            continue;
        };
        let flag = flag.strip_prefix('-').unwrap_or(flag);
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        if is_ours(name) {
            let value = value.or_else(|| arguments.next())?;
            ours.push(format!("--{name}={value}"));
        }
    }
    let matches = command.try_get_matches_from(ours).ok()?;
    Limits::from_arg_matches(&matches).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_a_controllers_arguments() {
        let of = |line: &str| limits_of(line.split_whitespace());
        let defaults = Limits::default();
        let rate = |eviction_rate| Limits {
            eviction_rate,
            ..defaults
        };
        #[rustfmt::skip]
        let cases = [
            ("controller --leader-elect", Some(defaults)),
            ("controller --node-eviction-rate=0.5 --other 1", Some(rate(0.5))),
            ("-node-eviction-rate 0.5", Some(rate(0.5))),
            ("--node-eviction-rate=2 --node-eviction-rate=0.5", Some(rate(0.5))),
            ("--node-eviction-rate=fast", None),
            ("--node-eviction-rate", None),
        ];
        for (line, expected) in cases {
            assert_eq!(of(line), expected, "{line}");
        }
    }
}
