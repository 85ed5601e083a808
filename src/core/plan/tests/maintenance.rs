//! Nodes under maintenance.

use super::{gate, met, unmet, writes};
use crate::testing::{Builder, NodeBuilder, World, at, world};

const COMPLETED: &str = "readiness.k8s.io/bootstrap-completed-r-uid";
const GATED: [&str; 2] = ["+gate:NoSchedule", "+taint-added-by-r-uid"];
const KINDS: [&str; 3] = [
    "MaintenanceInProgress",
    "DrainInProgress",
    "GracefulNodeShutdownInProgress",
];

/// A node that completed its bootstrap, with this status of its maintenance condition, if any.
fn completed(node: NodeBuilder, kind: &str, status: Option<&str>) -> NodeBuilder {
    let node = node.annotation(COMPLETED, r#"{"rule-name":"r"}"#);
    match status {
        Some(status) => node.condition(kind, status),
        None => node,
    }
}

/// The same, with the plan's record.
fn as_recorded(world: &World, node: NodeBuilder) -> NodeBuilder {
    node.annotation(COMPLETED, world.node.annotation(COMPLETED).unwrap())
}

#[test]
fn a_node_is_gated_again_once_its_maintenance_is_over() {
    let rule = gate("r")
        .bootstrap_only()
        .nodegate("regateOn: [Maintenance]");
    for kind in KINDS {
        let before = world(&completed(met(), kind, None)).rule(&rule);
        assert_eq!(writes(&before), [""; 0], "{kind}");
        let begun = before.sees(&completed(unmet(), kind, Some("True")), at(10));
        assert_eq!(writes(&begun), ["+bootstrap-completed-r-uid"], "{kind}");
        let lasts = begun.carried_out();
        assert_eq!(writes(&lasts), [""; 0], "{kind}: it is not gated meanwhile");
        for status in [Some("False"), Some("Unknown"), None] {
            let over = as_recorded(&lasts, completed(unmet(), kind, status));
            let over = lasts.clone().sees(&over, at(20));
            assert_eq!(writes(&over), GATED, "{kind} {status:?}");
            let again = over.carried_out();
            let ready = over.node.annotation(COMPLETED).unwrap().to_owned();
            let ready = met()
                .annotation(COMPLETED, &ready)
                .dated_taint(crate::testing::GATE, "NoSchedule")
                .owned_by("r", crate::testing::GATE, "NoSchedule");
            let released = again.sees(&ready, at(30)).carried_out();
            assert!(released.node.taints.is_empty());
            let value = released.node.annotation(COMPLETED).unwrap();
            assert_eq!(value, r#"{"rule-name":"r"}"#, "{kind} {status:?}");
        }
    }
}
