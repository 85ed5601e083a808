//! Synthesized conditions on the Node.

use super::{NETWORK, gate, gated_by};
use crate::plan::Urgency::{self, Detail, Status, Unsettled};
use crate::testing::{Builder, NodeBuilder, RuleBuilder, World, at, daemon_set, node, rule, world};

const READY: &str = "node.gardener.cloud/CriticalPodsReady";

/// A world in which the condition is `False` because a pod is missing.
fn lacking(node: &NodeBuilder) -> World {
    let cni = daemon_set("kube-system/cni")
        .critical()
        .toleration("{operator: Exists}");
    world(node).daemon_set(&cni)
}

fn published(status: &str, reason: &str, message: &str) -> NodeBuilder {
    node("worker-1").condition_with(serde_json::json!({
        "type": READY, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:05Z",
    }))
}

fn as_it_is() -> NodeBuilder {
    published(
        "False",
        "DaemonSetPodMissing",
        "DaemonSet kube-system/cni has no pod on this node",
    )
}

/// What the plan publishes: `+` for a new status, `~` for a new message, `-` for a removal.
fn publishes(world: &World) -> Vec<String> {
    let plan = world.plan();
    let set = plan.conditions.set.iter().map(|condition| {
        let sign = if condition.urgency == Urgency::Detail {
            '~'
        } else {
            '+'
        };
        format!("{sign}{} {}", condition.kind, condition.status)
    });
    let withdraw = plan
        .conditions
        .withdraw
        .iter()
        .map(|kind| format!("-{kind}"));
    set.chain(withdraw).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn conditions_are_published_where_a_rule_asks_for_them() {
    let asks = || rule("r").waits_for(READY);
    let is_false = "+node.gardener.cloud/CriticalPodsReady False";
    let withdrawn = "-node.gardener.cloud/CriticalPodsReady";
    let foreign = published("True", "KubeletReady", "someone else's");
    let bare = node("worker-1");
    for (name, world, expected, urgency) in vec![
        (
            "new",
            lacking(&bare).rule(&asks()),
            vec![is_false],
            Unsettled,
        ),
        (
            "as it is",
            lacking(&as_it_is()).rule(&asks()),
            vec![],
            Detail,
        ),
        (
            "another status",
            lacking(&published("True", "PodsReady", "")).rule(&asks()),
            vec![is_false],
            Unsettled,
        ),
        (
            "another wording",
            lacking(&published(
                "False",
                "DaemonSetPodMissing",
                "DaemonSet a/b has no pod on this node",
            ))
            .rule(&asks()),
            vec!["~node.gardener.cloud/CriticalPodsReady False"],
            Detail,
        ),
        (
            "another reason",
            lacking(&published(
                "False",
                "PodNotReady",
                "pod kube-system/cni-x is not Ready",
            ))
            .rule(&asks()),
            vec!["~node.gardener.cloud/CriticalPodsReady False"],
            Detail,
        ),
        (
            "over someone else's",
            lacking(&foreign).rule(&asks()),
            vec![is_false],
            Unsettled,
        ),
        (
            "never for a dry run",
            lacking(&bare).rule(&asks().dry_run()),
            vec![],
            Detail,
        ),
        (
            "withdrawn from under a dry run",
            lacking(&as_it_is()).rule(&asks().dry_run()),
            vec![withdrawn],
            Status,
        ),
        (
            "for a rule in force beside a dry run",
            lacking(&bare)
                .rule(&asks().dry_run())
                .rule(&rule("s").waits_for(READY)),
            vec![is_false],
            Unsettled,
        ),
        (
            "once for two rules",
            lacking(&bare).rule(&asks()).rule(
                &asks()
                    .taint("readiness.k8s.io/b", "NoSchedule")
                    .selects("kubernetes.io/os", "linux"),
            ),
            vec![is_false],
            Unsettled,
        ),
        (
            "no rule selects the node",
            lacking(&bare).rule(&asks().selects("a", "b")),
            vec![],
            Detail,
        ),
        (
            "no rule asks",
            lacking(&bare).rule(&gate("r")),
            vec![],
            Detail,
        ),
        (
            "no rule asks any more",
            lacking(&as_it_is()).rule(&gate("r")),
            vec![withdrawn],
            Status,
        ),
        (
            "the rule is being deleted",
            lacking(&as_it_is()).rule(&asks().deleting()),
            vec![withdrawn],
            Status,
        ),
        (
            "not ours to withdraw",
            lacking(&foreign).rule(&gate("r")),
            vec![],
            Detail,
        ),
        (
            "turned off",
            lacking(&bare).rule(&asks()).without_publishing(),
            vec![],
            Detail,
        ),
        (
            "turned off after a while",
            lacking(&as_it_is()).rule(&asks()).without_publishing(),
            vec![withdrawn],
            Status,
        ),
        (
            "the node is being deleted",
            lacking(&as_it_is().deleting()).rule(&gate("r")),
            vec![],
            Detail,
        ),
    ] {
        assert_eq!(publishes(&world), expected, "{name}");
        let changes = world.plan().conditions;
        assert_eq!(changes.urgency(), urgency, "{name}: urgency");
        assert_eq!(changes.is_empty(), expected.is_empty(), "{name}: empty");
        assert_eq!(publishes(&world.carried_out()), [""; 0], "{name}: once");
    }
}

const LATE: &str = "nodegate.dev/NotReadyInTime";

/// A rule with a `repair` that takes this action.
fn repairing(action: &str) -> RuleBuilder {
    let repair = format!("repair: {{readinessTTL: 15m, action: {action}}}");
    gate("r").bootstrap_only().nodegate(&repair)
}

/// A node of this name that the rule holds, with a deadline at minute 15.
fn late(name: &str) -> NodeBuilder {
    let deadline = "nodegate.dev/ready-deadline-r-uid";
    gated_by(node(name), "r").annotation(deadline, &at(900).to_string())
}

/// The same, with the condition in this status.
fn called(status: &str) -> NodeBuilder {
    late("worker-1").condition_with(serde_json::json!({
        "type": LATE, "status": status, "reason": "ReadinessTTLPassed", "message": "",
        "lastTransitionTime": "2026-01-01T00:15:00Z",
    }))
}

#[test]
fn a_late_node_is_called_so_for_as_long_as_the_rule_holds_it() {
    let published = |sign| match sign {
        ' ' => vec![],
        '-' => vec![format!("-{LATE}")],
        sign => vec![format!("{sign}{LATE} True")],
    };
    let as_it_is: fn(World) -> World = |world| world;
    let spared = |node: NodeBuilder| node.annotation("nodegate.dev/do-not-repair", "");
    let (new, true_) = (late("worker-1"), called("True"));
    let reports = repairing("None");
    #[rustfmt::skip]
    let cases = [
        ("reported", &new, &reports, as_it_is, '+'),
        ("to be released", &new, &repairing("Release"), as_it_is, ' '),
        ("to be released since", &true_, &repairing("Release"), as_it_is, ' '),
        ("without a claim to delete", &new, &repairing("DeleteNodeClaim"), as_it_is, '+'),
        ("in another wording", &true_, &reports, as_it_is, '~'),
        ("denied by somebody", &called("False"), &reports, as_it_is, '+'),
        ("not late yet", &new, &reports, |world| world.now(at(899)), ' '),
        ("a dry run", &new, &repairing("None").dry_run(), as_it_is, ' '),
        ("spared", &spared(new.clone()), &reports, as_it_is, ' '),
        ("not published", &new, &reports, World::without_publishing, ' '),
        ("while evidence is stale", &true_, &reports, World::stale, ' '),
        ("while suspended", &true_, &repairing("None").suspended(), as_it_is, ' '),
        ("ready", &true_.clone().condition(NETWORK, "True"), &reports, as_it_is, '-'),
        ("spared since", &spared(true_.clone()), &reports, as_it_is, '-'),
        ("without repair", &true_, &gate("r").bootstrap_only(), as_it_is, '-'),
        ("under no rule", &true_, &reports.clone().selects("a", "b"), as_it_is, '-'),
        ("not published any more", &true_, &reports, World::without_publishing, '-'),
        ("one of two, which is too many", &new, &reports, |world| world.neighbour(&late("b")), ' '),
        ("one of two since", &true_, &reports, |world| world.neighbour(&late("b")), '-'),
    ];
    for (name, node, rule, change, expected) in cases {
        let world = change(world(node).rule(rule));
        assert_eq!(publishes(&world), published(expected), "{name}");
    }
    let released = world(&true_).rule(&repairing("Release")).carried_out();
    assert_eq!(publishes(&released), published('-'));
}

#[test]
fn the_condition_of_a_rule_that_leaves_out_nothing_is_published() {
    let cni = daemon_set("kube-system/cni")
        .critical()
        .toleration("{operator: Exists}");
    let asks = |name: &str, except: &str| {
        let condition =
            format!("{{type: {READY}, requiredStatus: 'True', nodegate: {{except: [{except}]}}}}");
        let taint = format!("readiness.k8s.io/{name}");
        rule(name)
            .taint(&taint, "NoSchedule")
            .spec(&format!("conditions: [{condition}]"))
    };
    let (partial, whole) = (asks("a", "kube-system/cni"), asks("b", ""));
    for (rules, status) in [
        (vec![partial.clone(), whole], "False"),
        (vec![partial], "True"),
    ] {
        let world = world(&node("worker-1")).daemon_set(&cni).with_rules(&rules);
        assert_eq!(publishes(&world), [format!("+{READY} {status}")]);
    }
}
