//! Reads the cluster's information about the controller: its leader, configuration and instances.

use std::cmp::Reverse;
use std::path::Path;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};

use super::source::{ObjectSource, record_gap};
use crate::failure::CliError;
use crate::snapshot::{Leader, LeaderHealth, image, is_ready};
use nodegate_cluster::{Gap, ResourceKind};
use nodegate_core::api::names::{CONFIG_MAP, LEASE, NAMESPACE};
use nodegate_core::config::Config;
use nodegate_core::selector::Filter;

/// The leader; `None` without a Lease. Of several Leases that of a live leader counts, and of these the one renewed last.
pub(super) async fn leader(source: &ObjectSource) -> Result<Option<Leader>, Gap> {
    let ours = Filter::named(LEASE);
    let leases: Vec<Lease> = source.all(ResourceKind::Leases, &ours).await?;
    let mut leaders: Vec<Leader> = leases.into_iter().map(Leader::of).collect();
    let is_alive = |it: &Leader| it.health(source.at()) == LeaderHealth::Alive;
    leaders.sort_by_key(|it| (!is_alive(it), Reverse(it.renewed)));
    let mut leaders = leaders.into_iter();
    let mut leader = leaders.next();
    if let Some(leader) = &mut leader {
        let rival = leaders.next().filter(|it| is_alive(it));
        leader.rival = rival.map(|it| format!("{} in namespace {}", it.pod(), it.namespace));
    }
    Ok(leader)
}

/// The configuration in the chart's `ConfigMap`, for want of a leader's, or the default one with a gap. Among manifests, the
/// namespace may be another.
pub(super) async fn config(
    source: &ObjectSource,
    leader: Option<&Leader>,
    gaps: &mut Vec<Gap>,
) -> Result<Config, CliError> {
    let (name, key) = CONFIG_MAP;
    let one = match source {
        ObjectSource::Memory(lists) if lists.are_files => Filter::named(name),
        _ => Filter::one(leader.map_or(NAMESPACE, |it| &it.namespace), name),
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
pub(super) async fn instances(
    source: &ObjectSource,
    leader: Option<&Leader>,
) -> Vec<(String, bool)> {
    let Some(leader) = leader else {
        return Vec::new();
    };
    let filter = Filter::of_controllers(Some(&leader.namespace));
    let pods = source.all::<Pod>(ResourceKind::Pods, &filter).await;
    let instances = pods.iter().flatten().filter_map(|pod| {
        let container = pod.spec.as_ref()?.containers.first()?;
        Some((image(container).to_owned(), is_ready(pod)))
    });
    instances.collect()
}
