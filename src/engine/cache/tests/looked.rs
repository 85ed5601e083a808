//! What a last look reads goes in, beside what watches have shown; what is there comes out.

use super::lists::{empty, known, names, object_of};
use super::*;
use crate::engine::evidence::{ClusterEvidence, List};

/// What of each kind a look at a node or at the cluster shows.
fn look(cache: &mut Cache, watch: Watch, shown: Option<Object>, version: u64) {
    let mut of_node = NodeEvidence::default();
    let mut of_cluster = ClusterEvidence {
        rules: list(None, 0),
        daemon_sets: vec![(0, list(None, 0))],
    };
    match (watch, shown) {
        (Watch::CsiNodes, None) => of_node.csi_node = Some(list(None, version)),
        (Watch::CsiNodes, Some(Object::CsiNode(it))) => {
            of_node.csi_node = Some(list(Some(it), version));
        }
        (Watch::Pods(_), None) => of_node.pods = vec![(0, list(None, version))],
        (Watch::Pods(_), Some(Object::Pod(_, it))) => {
            of_node.pods = vec![(0, list(Some(it), version))];
        }
        (Watch::Rules, None) => of_cluster.rules = list(None, version),
        (Watch::Rules, Some(Object::Rule(it))) => of_cluster.rules = list(Some(it), version),
        (Watch::DaemonSets(_), None) => of_cluster.daemon_sets = vec![(0, list(None, version))],
        (Watch::DaemonSets(_), Some(Object::DaemonSet(_, it))) => {
            of_cluster.daemon_sets = vec![(0, list(Some(it), version))];
        }
        (watch, shown) => panic!("{watch:?} {shown:?}"),
    }
    cache.take_in_node(&"n".into(), of_node, now(60));
    cache.take_in_cluster(&of_cluster, at(60));
}

fn list<K>(item: Option<K>, version: u64) -> List<K> {
    List {
        items: item.into_iter().collect(),
        version,
    }
}

#[test]
fn what_a_look_shows_counts_unless_something_newer_is_known() {
    const KINDS: [Watch; 4] = [
        Watch::CsiNodes,
        Watch::Pods(0),
        Watch::Rules,
        Watch::DaemonSets(0),
    ];
    for watch in KINDS {
        for (name, known_in, shown_in, read_in, mark) in [
            ("gone since", 5, None, 9, None),
            ("gone at that very time", 9, None, 9, None),
            ("came after the look", 10, None, 9, Some("known")),
            ("has changed since", 5, Some(7), 9, Some("shown")),
            ("as it was", 5, Some(5), 9, Some("shown")),
            ("changed after the look", 8, Some(7), 9, Some("known")),
        ] {
            let mut cache = empty();
            cache.see(Seen::Put(object_of(watch, "n", known_in, "known")), now(1));
            let shown = shown_in.map(|version| object_of(watch, "n", version, "shown"));
            look(&mut cache, watch, shown, read_in);
            assert_eq!(
                names(&cache, watch).len(),
                usize::from(mark.is_some()),
                "{watch:?}: {name}"
            );
            if let Some(mark) = mark {
                let there = known(&cache, watch);
                assert!(there.contains(mark), "{watch:?}: {name}: {there}");
            }
        }
        // And what was not known comes to be.
        let mut cache = empty();
        look(
            &mut cache,
            watch,
            Some(object_of(watch, "n", 7, "shown")),
            9,
        );
        assert_eq!(names(&cache, watch), ["n"], "{watch:?}");
    }
}

#[test]
fn a_look_says_nothing_of_pods_on_other_nodes_nor_a_list_of_what_it_shows() {
    let mut cache = empty();
    for name in ["stays", "goes"] {
        cache.see(
            Seen::Put(object_of(Watch::Pods(0), name, 5, "known")),
            now(1),
        );
    }
    look(
        &mut cache,
        Watch::Pods(0),
        Some(object_of(Watch::Pods(0), "stays", 5, "known")),
        9,
    );
    assert_eq!(names(&cache, Watch::Pods(0)), ["stays"]);
    let elsewhere = NodeEvidence {
        pods: vec![(0, list(None, 9))],
        ..NodeEvidence::default()
    };
    cache.take_in_node(&"m".into(), elsewhere, now(60));
    assert_eq!(names(&cache, Watch::Pods(0)), ["stays"]);
}

#[test]
fn what_was_not_read_stays_as_it_is() {
    let mut cache = empty();
    for watch in [Watch::CsiNodes, Watch::Pods(0), Watch::Nodes] {
        cache.see(Seen::Put(object_of(watch, "n", 5, "known")), now(1));
    }
    let again = cache.take_in_node(&"n".into(), NodeEvidence::default(), now(60));
    assert!(again.is_empty());
    for watch in [Watch::CsiNodes, Watch::Pods(0), Watch::Nodes] {
        assert_eq!(names(&cache, watch), ["n"], "{watch:?}");
    }
}
