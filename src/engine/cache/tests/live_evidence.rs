//! How live reads change the cache, beside watch events.

use super::lists::{empty, known, names, object_of};
use super::*;
use crate::condition::ComponentGroup;
use crate::engine::freshness::evidence::{ClusterEvidence, List, Unread};

/// A live read of the node or the cluster, as far as it concerns this kind.
fn read_live(cache: &mut Cache, watch: Watch, shown: Option<Object>, version: u64) {
    let mut of_node = NodeEvidence::default();
    let mut of_cluster = ClusterEvidence {
        rules: list(None, 0),
        daemon_sets: vec![(ComponentGroup::Class(0), list(None, 0))],
        unread: Unread::default(),
    };
    match (watch, shown) {
        (Watch::CsiNodes, None) => of_node.csi_node = Some(list(None, version)),
        (Watch::CsiNodes, Some(Object::CsiNode(it))) => {
            of_node.csi_node = Some(list(Some(it), version));
        }
        (Watch::Pods(_), None) => {
            of_node.pods = vec![(ComponentGroup::Class(0), list(None, version))];
        }
        (Watch::Pods(_), Some(Object::Pod(_, it))) => {
            of_node.pods = vec![(ComponentGroup::Class(0), list(Some(it), version))];
        }
        (Watch::Rules, None) => of_cluster.rules = list(None, version),
        (Watch::Rules, Some(Object::Rule(it))) => of_cluster.rules = list(Some(it), version),
        (Watch::DaemonSets(_), None) => {
            of_cluster.daemon_sets = vec![(ComponentGroup::Class(0), list(None, version))];
        }
        (Watch::DaemonSets(_), Some(Object::DaemonSet(_, it))) => {
            of_cluster.daemon_sets = vec![(ComponentGroup::Class(0), list(Some(it), version))];
        }
        (watch, shown) => panic!("{watch:?} {shown:?}"),
    }
    cache.take_in_node(&"n".into(), of_node, now(60));
    cache.take_in_cluster(of_cluster, at(60));
}

fn list<K>(item: Option<K>, version: u64) -> List<K> {
    List {
        items: item.into_iter().collect(),
        version,
    }
}

const KINDS: [Watch; 4] = [
    Watch::CsiNodes,
    Watch::Pods(ComponentGroup::Class(0)),
    Watch::Rules,
    Watch::DaemonSets(ComponentGroup::Class(0)),
];

#[test]
fn what_is_gone_is_not_brought_back_by_what_was_read_before() {
    for watch in KINDS {
        let there = || object_of(watch, "n", 5, "shown");
        let gone = || Seen::Delete(object_of(watch, "n", 8, "shown"));
        for (name, before) in [
            (
                "the watch has shown its end",
                vec![Seen::Apply(there()), gone()],
            ),
            (
                "the watch has listed what there is",
                vec![Seen::Init(watch), Seen::InitDone(watch, 8)],
            ),
            (
                "the watch has told how far it is",
                vec![current_at(watch, 8)],
            ),
        ] {
            let mut cache = empty();
            for seen in before {
                cache.see(seen, now(1));
            }
            read_live(&mut cache, watch, Some(there()), 7);
            assert_eq!(names(&cache, watch), [""; 0], "{watch:?}: {name}");
        }
        // The other way round: the live read is ahead of the watch.
        let mut cache = empty();
        read_live(&mut cache, watch, None, 9);
        cache.see(Seen::Apply(there()), now(1));
        assert_eq!(names(&cache, watch), [""; 0], "{watch:?}");
        cache.see(gone(), now(1));
        let again = object_of(watch, "n", 10, "shown");
        cache.see(Seen::Apply(again), now(1));
        assert_eq!(names(&cache, watch), ["n"], "{watch:?}: made again");
        cache.see(gone(), now(1));
        assert_eq!(names(&cache, watch), ["n"], "{watch:?}: its former end");
    }
}

#[test]
fn a_cluster_that_was_restored_is_taken_as_it_is_listed() {
    for watch in KINDS {
        let mut cache = empty();
        read_live(&mut cache, watch, None, 90);
        let object = |version| object_of(watch, "n", version, "shown");
        cache.see(Seen::Apply(object(95)), now(1));
        for seen in [
            Seen::Init(watch),
            Seen::Apply(object(5)),
            Seen::InitDone(watch, 9),
            Seen::Delete(object(12)),
            Seen::Apply(object(15)),
        ] {
            cache.see(seen, now(1));
        }
        assert_eq!(names(&cache, watch), ["n"], "{watch:?}");
        read_live(&mut cache, watch, None, 16);
        assert_eq!(names(&cache, watch), [""; 0], "{watch:?}");
    }
}

fn current_at(watch: Watch, version: u64) -> Seen {
    Seen::Current(watch, now(1).monotonic, version)
}

#[test]
fn a_live_read_counts_unless_a_newer_state_is_known() {
    for watch in KINDS {
        for (name, known_in, shown_in, read_in, mark) in [
            ("gone since", 5, None, 9, None),
            ("gone at that very time", 9, None, 9, None),
            ("came after the live read", 10, None, 9, Some("known")),
            ("has changed since", 5, Some(7), 9, Some("shown")),
            ("as it was", 5, Some(5), 9, Some("known")),
            ("changed after the live read", 8, Some(7), 9, Some("known")),
        ] {
            let mut cache = empty();
            cache.see(
                Seen::Apply(object_of(watch, "n", known_in, "known")),
                now(1),
            );
            let shown = shown_in.map(|version| object_of(watch, "n", version, "shown"));
            read_live(&mut cache, watch, shown, read_in);
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
        // An unknown object is added.
        let mut cache = empty();
        read_live(
            &mut cache,
            watch,
            Some(object_of(watch, "n", 7, "shown")),
            9,
        );
        assert_eq!(names(&cache, watch), ["n"], "{watch:?}");
    }
}

#[test]
fn a_live_read_does_not_affect_pods_on_other_nodes() {
    let mut cache = empty();
    for name in ["stays", "goes"] {
        cache.see(
            Seen::Apply(object_of(
                Watch::Pods(ComponentGroup::Class(0)),
                name,
                5,
                "known",
            )),
            now(1),
        );
    }
    read_live(
        &mut cache,
        Watch::Pods(ComponentGroup::Class(0)),
        Some(object_of(
            Watch::Pods(ComponentGroup::Class(0)),
            "stays",
            5,
            "known",
        )),
        9,
    );
    assert_eq!(
        names(&cache, Watch::Pods(ComponentGroup::Class(0))),
        ["stays"]
    );
    let elsewhere = NodeEvidence {
        pods: vec![(ComponentGroup::Class(0), list(None, 9))],
        ..NodeEvidence::default()
    };
    cache.take_in_node(&"m".into(), elsewhere, now(60));
    assert_eq!(
        names(&cache, Watch::Pods(ComponentGroup::Class(0))),
        ["stays"]
    );
}

#[test]
fn what_was_not_read_stays_as_it_is() {
    let mut cache = empty();
    for watch in [
        Watch::CsiNodes,
        Watch::Pods(ComponentGroup::Class(0)),
        Watch::Nodes,
    ] {
        cache.see(Seen::Apply(object_of(watch, "n", 5, "known")), now(1));
    }
    let unread = cache.take_in_node(&"n".into(), NodeEvidence::default(), now(60));
    assert!(unread.kinds.is_empty());
    for watch in [
        Watch::CsiNodes,
        Watch::Pods(ComponentGroup::Class(0)),
        Watch::Nodes,
    ] {
        assert_eq!(names(&cache, watch), ["n"], "{watch:?}");
    }
}
