//! Nothing is changed for suspended rules.

use super::{gate, gated, gated_by, met, unmet, writes};
use crate::plan::{Outcome, Standing};
use crate::testing::{Builder, NodeBuilder, at, node, pod, world};

#[test]
fn nothing_is_changed_for_a_suspended_rule() {
    let repairs = "repair: {readinessTTL: 1m, action: Release}";
    let late = |node: NodeBuilder| {
        node.annotation("nodegate.dev/ready-deadline-r-uid", &at(0).to_string())
    };
    #[rustfmt::skip]
    let cases = [
        ("met, held", gate("r"), gated_by(met(), "r")),
        ("met, held, to be completed", gate("r").bootstrap_only(), gated_by(met(), "r")),
        ("met, not held, to be completed", gate("r").bootstrap_only(), met()),
        ("unmet, not held", gate("r"), unmet()),
        ("unmet, not held, once", gate("r").bootstrap_only(), unmet()),
        ("unmet, held by somebody else", gate("r"), gated(unmet())),
        ("unmet, held for a rule that is gone", gate("r"), gated_by(unmet(), "former")),
        ("past its time", gate("r").bootstrap_only().nodegate(repairs), late(gated_by(unmet(), "r"))),
        ("it is about other nodes now", gate("r").selects("pool", "a"), gated_by(unmet(), "r")),
    ];
    for (name, rule, node) in cases {
        let acts = writes(&world(&node).rule(&rule));
        assert!(
            !acts.is_empty() || name.starts_with("past"),
            "{name}: {acts:?}"
        );
        let world = world(&node).rule(&rule.suspended()).now(at(9000));
        assert_eq!(writes(&world), [""; 0], "{name}");
        let plan = world.plan();
        let stays = |it: &Outcome<'_>| matches!(it.standing, Standing::Governs(decision) if decision.holds() == it.tainted);
        assert!(
            plan.outcomes
                .iter()
                .all(|it| stays(it) && it.verdict.is_none() && !it.adopts()),
            "{name}"
        );
    }
}

#[test]
fn what_is_published_for_a_suspended_rule_stays_as_it_is() {
    const READY: &str = "node.gardener.cloud/CriticalComponentsReady";
    let rule = || gate("r").waits_for(READY).suspended();
    let agent = pod("kube-system/agent").critical().on("worker-1");
    let published = node("worker-1").condition_with(serde_json::json!({
        "type": READY, "status": "True", "reason": "CriticalComponentsReady", "message": "",
    }));
    for node in [node("worker-1"), published.clone()] {
        let world = world(&node).pod(&agent).rule(&rule());
        assert!(world.plan().conditions.set.is_empty());
        assert!(world.plan().conditions.withdraw.is_empty());
    }
    let another = gate("s")
        .taint("readiness.k8s.io/s", "NoSchedule")
        .waits_for(READY);
    let world = world(&published).pod(&agent).rule(&rule()).rule(&another);
    assert_eq!(world.plan().conditions.set.len(), 1, "for the other rule");
}
