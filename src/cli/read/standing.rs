//! Pods that stand in place of a `DaemonSet` that rules name and that does not exist: static pods, and those of other kinds.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;

use super::builder::LOOKED_AT;
use super::source::ObjectSource;
use crate::snapshot::{Depth, Snapshot, Wanted, owner};
use nodegate_cluster::ResourceKind;
use nodegate_core::object::ObjectKey;
use nodegate_core::selector::Filter;

/// What stands under the names of missing `DaemonSet`s, on the wanted node or on any. Pods are optional here: a refusal is no gap.
pub(super) async fn standing(
    source: &ObjectSource,
    wanted: &Wanted,
    snapshot: &Snapshot,
) -> BTreeMap<ObjectKey, String> {
    let mut found = BTreeMap::new();
    let is_wanted = wanted.node.is_some() || wanted.depth == Depth::Checkup;
    let groups = &snapshot.view.cluster().daemon_sets;
    let named = snapshot.usable().flat_map(|(_, spec)| spec.daemon_sets());
    let missing = named.filter(|key| !groups.values().any(|it| it.contains_key(*key)));
    for key in missing.take(LOOKED_AT).filter(|_| is_wanted) {
        let pods = Filter::default().within(Some(&key.namespace)).bound();
        let here = wanted.node.iter();
        let pods = here.fold(pods, |pods, node| pods.is("spec.nodeName", node));
        let mut pods = source.list(ResourceKind::Pods, &pods);
        while let Ok(Some(json)) = pods.try_next().await {
            let pod = serde_json::from_str(&json).ok();
            if let Some(what) = pod.and_then(|pod| in_place_of(key, &pod)) {
                let advice = "label them for a class, and wait for that instead";
                found.insert(
                    key.clone(),
                    format!("pods of that name are {what}: {advice}"),
                );
                break;
            }
        }
    }
    found
}

/// What a pod is whose name begins with that of a `DaemonSet`, if it is none of a `DaemonSet`.
fn in_place_of(key: &ObjectKey, pod: &Pod) -> Option<String> {
    let name = pod.metadata.name.as_deref()?;
    let rest = name.strip_prefix(&*key.name)?;
    let owner = owner(pod).map_or(["", ""], |it| [&it.kind, &it.api_version]);
    match owner {
        _ if !rest.starts_with('-') => None,
        ["DaemonSet", "apps/v1"] => None,
        ["Node", "v1"] => Some("static pods".into()),
        ["", _] => Some("pods that nothing controls".into()),
        [kind, version] => Some(format!("pods of kind {kind} ({version})")),
    }
}
