//! How lists, and watch events beside them, change the cache.

use serde_json::{Value, json};

use super::*;
use crate::api::names::READINESS_TTL;
use crate::selector::Filter;

const UID: &str = "uid";

/// A synced, empty cache with one class, which watches Karpenter's objects.
pub(super) fn empty() -> Cache {
    let mut cache = Cache::new(&with_karpenter(), now(0));
    for watch in [Watch::Nodes, Watch::Rules].into_iter().chain(Watch::KINDS) {
        // No rule depends on it.
        if !cache.views.has(watch) {
            cache.views.begin(watch, Filter::default(), None);
        }
        cache.apply(init(watch, 0), now(0));
        cache.apply(Seen::InitDone(watch), now(0));
    }
    assert!(cache.has_synced());
    cache
}

/// An object of a kind, with this version and a value to recognize it by.
pub(super) fn object_of(watch: Watch, name: &str, version: u64, mark: &str) -> Object {
    let mut meta = json!({
        "name": name,
        "uid": UID,
        "resourceVersion": version.to_string(),
        "creationTimestamp": at(0),
        "labels": {"mark": mark},
    });
    if matches!(watch, Watch::Pods(_) | Watch::DaemonSets(_)) {
        meta["namespace"] = "kube-system".into();
    }
    let with = |fields: Value| {
        let mut all = json!({"metadata": meta});
        all.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        all
    };
    match watch {
        Watch::Nodes => Object::Node(object(with(json!({})))),
        Watch::CsiNodes => {
            let driver = json!({"name": mark, "nodeID": name});
            Object::CsiNode(object(with(json!({"spec": {"drivers": [driver]}}))))
        }
        Watch::Pods(class) => {
            let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": mark, "uid": mark, "controller": true});
            let mut pod = with(json!({"spec": {"nodeName": "n"}}));
            pod["metadata"]["ownerReferences"] = json!([owner]);
            Object::Pod(class, object(pod))
        }
        Watch::DaemonSets(class) => {
            let spec = json!({"nodeSelector": {"mark": mark}});
            let template = json!({"template": {"spec": spec}});
            Object::DaemonSet(class, object(with(json!({"spec": template}))))
        }
        Watch::ResourceSlices(class) => {
            let pool = json!({"name": mark, "generation": 1, "resourceSliceCount": 1});
            let spec = json!({"nodeName": "n", "pool": pool});
            Object::ResourceSlice(class, object(with(json!({"spec": spec}))))
        }
        Watch::Rules => {
            // It has the watches of its class go on.
            let mut gate = rule(name)
                .waits_for(mark)
                .waits_for("node.gardener.cloud/CriticalComponentsReady");
            let mut gate = gate.json().clone();
            gate["metadata"]["resourceVersion"] = version.to_string().into();
            Object::Rule(object(gate))
        }
        Watch::NodeClaims => Object::NodeClaim(object(with(json!({"status": {"nodeName": mark}})))),
        Watch::NodePools => {
            let mut pool = with(json!({}));
            pool["metadata"]["annotations"] = json!({READINESS_TTL: mark});
            Object::NodePool(object(pool))
        }
    }
}

/// The names of the known objects of a kind.
pub(super) fn names(cache: &Cache, watch: Watch) -> Vec<String> {
    let mut names: Vec<String> = cache
        .stores
        .known(watch)
        .iter()
        .map(|key| key.name.to_string())
        .collect();
    names.sort();
    names
}

/// What is known of an object, as an opaque string for comparisons.
pub(super) fn known(cache: &Cache, watch: Watch) -> String {
    match watch {
        Watch::Nodes => format!("{:?}", cache.nodes.nodes().collect::<Vec<_>>()),
        Watch::CsiNodes => format!("{:?}", cache.nodes.get("n").unwrap().csi_node),
        Watch::Pods(class) => format!("{:?}", cache.nodes.get("n").unwrap().pods.get(&class)),
        Watch::DaemonSets(class) => format!("{:?}", cache.components.daemon_sets.get(&class)),
        Watch::ResourceSlices(class) => {
            format!("{:?}", cache.nodes.get("n").unwrap().slices.get(&class))
        }
        Watch::Rules => format!("{:?}", cache.rules.all["n"].rule),
        Watch::NodeClaims => format!("{:?}", cache.claims.get("n")),
        Watch::NodePools => format!("{:?}", cache.claims.pools),
    }
}

#[test]
fn an_object_that_a_list_lacks_is_gone() {
    for watch in Watch::KINDS {
        let mut cache = empty();
        for name in ["goes", "stays"] {
            cache.apply(Seen::Apply(object_of(watch, name, 5, "a")), now(1));
        }
        assert_eq!(names(&cache, watch), ["goes", "stays"], "{watch:?}");
        cache.apply(init(watch, 2), now(2));
        // A list that begins again discards what it had shown before.
        cache.apply(Seen::Apply(object_of(watch, "goes", 5, "a")), now(2));
        cache.apply(init(watch, 2), now(2));
        cache.apply(Seen::Apply(object_of(watch, "stays", 5, "a")), now(3));
        cache.apply(Seen::Apply(object_of(watch, "new", 6, "a")), now(3));
        assert_eq!(names(&cache, watch), ["goes", "new", "stays"], "{watch:?}");
        cache.apply(Seen::InitDone(watch), now(4));
        assert_eq!(names(&cache, watch), ["new", "stays"], "{watch:?}");
        cache.apply(Seen::Delete(object_of(watch, "new", 7, "a")), now(5));
        assert_eq!(names(&cache, watch), ["stays"], "{watch:?}");
    }
}

#[test]
fn a_list_says_nothing_of_other_kinds() {
    let mut cache = empty();
    for watch in Watch::KINDS {
        cache.apply(Seen::Apply(object_of(watch, "n", 5, "a")), now(1));
    }
    for watch in Watch::KINDS {
        cache.apply(init(watch, 2), now(2));
        cache.apply(Seen::InitDone(watch), now(2));
        let there = Watch::KINDS
            .into_iter()
            .filter(|other| !names(&cache, *other).is_empty());
        let after = Watch::KINDS
            .into_iter()
            .skip_while(|other| *other != watch)
            .skip(1);
        assert!(there.eq(after), "{watch:?}");
    }
}

#[test]
fn a_listed_state_counts_even_if_its_version_is_lower() {
    for watch in Watch::KINDS {
        let mut cache = empty();
        cache.apply(Seen::Apply(object_of(watch, "n", 9, "new")), now(1));
        let before = known(&cache, watch);
        cache.apply(init(watch, 2), now(2));
        cache.apply(Seen::Apply(object_of(watch, "n", 5, "restored")), now(2));
        cache.apply(Seen::InitDone(watch), now(2));
        let restored = known(&cache, watch);
        assert_ne!(restored, before, "{watch:?}");
        // From then on, this version is the known one.
        cache.apply(Seen::Apply(object_of(watch, "n", 6, "next")), now(3));
        assert_ne!(known(&cache, watch), restored, "{watch:?}");
    }
}

#[test]
fn an_older_state_that_a_watch_shows_is_passed_over() {
    for watch in Watch::KINDS {
        let mut cache = empty();
        cache.apply(Seen::Apply(object_of(watch, "n", 9, "new")), now(1));
        let before = known(&cache, watch);
        cache.apply(Seen::Apply(object_of(watch, "n", 8, "old")), now(2));
        assert_eq!(known(&cache, watch), before, "{watch:?}");
        cache.apply(Seen::Apply(object_of(watch, "n", 10, "next")), now(3));
        assert_ne!(known(&cache, watch), before, "{watch:?}");
    }
}

#[test]
fn a_resource_that_is_uninstalled_leaves_nothing_behind() {
    for (watch, is_optional) in [
        (Watch::NodeClaims, true),
        (Watch::NodePools, true),
        (Watch::Rules, false),
    ] {
        let mut cache = empty();
        cache.apply(Seen::Apply(object_of(watch, "n", 5, "a")), now(1));
        cache.apply(init(watch, 25), now(25));
        cache.apply(Seen::NotInstalled(watch), now(25));
        assert_eq!(names(&cache, watch).is_empty(), is_optional, "{watch:?}");
        assert_eq!(
            cache.views.is_stale(watch, now(25).monotonic),
            !is_optional,
            "{watch:?}"
        );
    }
}

#[test]
fn two_caches_that_see_the_same_have_their_nodes_evaluated_in_the_same_order() {
    let order = || {
        let mut cache = empty();
        for index in 0..100 {
            let name = format!("n-{index}");
            cache.apply(Seen::Apply(object_of(Watch::Nodes, &name, 5, "a")), now(1));
        }
        cache.begin_evaluations();
        std::iter::from_fn(move || cache.turn.next()).collect::<Vec<_>>()
    };
    assert_eq!(order(), order());
}
