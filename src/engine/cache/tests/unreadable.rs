//! How unreadable objects change the cache.

use serde_json::json;

use super::*;
use crate::condition::ComponentGroup;
use crate::object::{CsiNode, Pod, Watched};

fn odd_node() -> Watched<Node> {
    object(json!({"metadata": {"name": "n", "uid": "n-uid"}, "status": "up"}))
}

fn odd_csi_node() -> Watched<CsiNode> {
    object(json!({"metadata": {"name": "n"}, "spec": 5}))
}

fn odd_pod() -> Watched<Pod> {
    let meta = json!({"namespace": "kube-system", "name": "p"});
    object(json!({"metadata": meta, "spec": {"nodeName": "n"}, "status": 5}))
}

#[test]
fn a_node_is_left_as_it_is_while_something_about_it_cannot_be_understood() {
    let pod = || object(json!({"metadata": {"namespace": "kube-system", "name": "p"}}));
    let csi_node = || object(json!({"metadata": {"name": "n"}}));
    let node = node("n").version(2);
    for (odd, said, cures) in [
        (
            (|| Seen::Apply(Object::Node(odd_node()))) as fn() -> Seen,
            r#"Node n cannot be parsed: status: invalid type: string "up", expected struct Status"#,
            vec![
                vec![Seen::Apply(Object::Node(node.object()))],
                vec![Seen::Delete(Object::Node(odd_node()))],
            ],
        ),
        (
            || Seen::Apply(Object::CsiNode(odd_csi_node())),
            "CSINode n cannot be parsed: spec: invalid type: integer `5`, expected struct Spec",
            vec![
                vec![Seen::Apply(Object::CsiNode(csi_node()))],
                vec![Seen::Delete(Object::CsiNode(odd_csi_node()))],
                vec![init(Watch::CsiNodes, 20), Seen::InitDone(Watch::CsiNodes)],
            ],
        ),
        (
            || Seen::Apply(Object::Pod(ComponentGroup::Class(0), odd_pod())),
            "Pod kube-system/p cannot be parsed: status: invalid type: integer `5`, expected struct Status",
            vec![
                vec![Seen::Apply(Object::Pod(ComponentGroup::Class(0), pod()))],
                vec![Seen::Delete(Object::Pod(
                    ComponentGroup::Class(0),
                    odd_pod(),
                ))],
                vec![
                    init(Watch::Pods(ComponentGroup::Class(0)), 20),
                    Seen::InitDone(Watch::Pods(ComponentGroup::Class(0))),
                ],
            ],
        ),
    ] {
        for cure in cures {
            let mut cache = waiting_for_components();
            let as_it_was = |cache: &Cache| cache.node("n").map(|state| state.node.clone());
            let before = as_it_was(&cache);
            cache.apply(odd(), now(10));
            let left = (vec!["n".into()], Some(said.to_owned()));
            assert_eq!(follows(&mut cache), left);
            assert_eq!(as_it_was(&cache), before, "{said}");
            assert_eq!(cache.stores.unreadable.tell()[0].to_string(), said);
            cache.apply(odd(), now(15));
            assert_eq!(cache.stores.unreadable.tell(), [], "{said}: it is no news");
            for seen in cure {
                cache.apply(seen, now(20));
            }
            assert_eq!(follows(&mut cache), (vec!["n".into()], None), "{said}");
        }
    }
}

#[test]
fn a_list_with_something_odd_in_it_is_a_list_all_the_same() {
    let mut cache = waiting_for_components();
    for seen in [
        init(Watch::Nodes, 10),
        Seen::Apply(Object::Node(object(json!(5)))),
        Seen::Apply(Object::Node(object(
            json!({"metadata": {"name": "n"}, "spec": 5}),
        ))),
        Seen::Apply(Object::Node(node("m").object())),
        Seen::InitDone(Watch::Nodes),
    ] {
        cache.apply(seen, now(10));
    }
    let mut names: Vec<_> = cache.nodes.names().map(ToString::to_string).collect();
    names.sort();
    assert_eq!(names, ["m", "n"], "n is there, whatever it is like");
    assert!(
        cache.stores.unreadable.left_alone("n").is_some()
            && cache.stores.unreadable.left_alone("m").is_none()
    );
    assert_eq!(cache.stores.unreadable.counts()["Node"], 2);
}

#[test]
fn a_daemon_set_that_cannot_be_understood_is_taken_as_it_was() {
    let cni = daemon_set("kube-system/cni").critical();
    let odd = || {
        let meta = json!({"namespace": "kube-system", "name": "cni"});
        object(json!({"metadata": meta, "spec": {"template": 5}}))
    };
    let mut cache = waiting_for_components();
    cache.apply(
        Seen::Apply(Object::DaemonSet(ComponentGroup::Class(0), cni.object())),
        now(10),
    );
    let before = cache
        .cluster()
        .daemon_sets(ComponentGroup::Class(0))
        .clone();
    follows(&mut cache);
    cache.apply(
        Seen::Apply(Object::DaemonSet(ComponentGroup::Class(0), odd())),
        now(20),
    );
    let after = cache.cluster().daemon_sets(ComponentGroup::Class(0));
    assert!(
        after
            .values()
            .map(|it| &**it)
            .eq(before.values().map(|it| &**it))
    );
    assert_eq!(follows(&mut cache), (vec![], None));
    let told = cache.stores.unreadable.tell();
    assert!(
        told[0]
            .to_string()
            .starts_with("DaemonSet kube-system/cni cannot be parsed: spec.template"),
        "{told:?}"
    );
    cache.apply(
        Seen::Delete(Object::DaemonSet(ComponentGroup::Class(0), odd())),
        now(30),
    );
    assert!(
        cache
            .cluster()
            .daemon_sets(ComponentGroup::Class(0))
            .is_empty()
    );
    assert_eq!(cache.stores.unreadable.counts()["DaemonSet"], 0);
}
