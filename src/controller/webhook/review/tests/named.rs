//! Rules that wait for a `DaemonSet` by its name.

use super::*;

#[test]
fn a_condition_that_names_no_daemon_set_is_turned_down() {
    let asks = |kind: &str| {
        let kind = format!("daemonset.nodegate.dev/{kind}");
        format!("spec: {{conditions: [{{type: {kind}, requiredStatus: 'True'}}]}}")
    };
    let surroundings = Surroundings::default();
    for kind in ["cilium", "kube-system.", "kube-system.Cilium"] {
        match verdict(&rule("new", &asks(kind)), None, &surroundings) {
            Err(why) => assert_eq!(
                why,
                format!(
                    "validation failed: [spec.conditions[0].type: Invalid value: \"daemonset.nodegate.dev/{kind}\": name a \
                     DaemonSet as daemonset.nodegate.dev/<namespace>.<name>, for example \
                     daemonset.nodegate.dev/kube-system.cilium]"
                )
            ),
            accepted @ Ok(_) => panic!("{accepted:?}"),
        }
    }
    // A rule that was created under another CRD can be changed.
    let before = rule("new", &asks("cilium"));
    let mut after = before.clone();
    after["spec"]["nodegate"] = json!({"gracePeriod": "1m"});
    let verdict = verdict(&after, Some(&before), &surroundings);
    assert!(verdict.is_ok());
}

#[test]
fn a_daemon_set_that_is_named_and_not_there_or_cannot_start_is_warned_of() {
    let asks =
        "spec: {conditions: [{type: daemonset.nodegate.dev/tools.agent, requiredStatus: 'True'}]}";
    let agent = crate::testing::daemon_set("tools/agent");
    #[rustfmt::skip]
    let cases = [
        (
            vec![],
            "there is no DaemonSet tools/agent today: until there is one, no node meets the condition; check namespace and name",
        ),
        (
            vec![agent.object()],
            "DaemonSet tools/agent does not tolerate the taint readiness.k8s.io/x:NoSchedule: it cannot start on a node that \
             has it, and a node for which it is meant waits in vain; add to its pod template: tolerations: [{key: \
             readiness.k8s.io/x, operator: Exists}]",
        ),
    ];
    for (daemon_sets, expected) in cases {
        let there = Surroundings {
            daemon_sets: Some(daemon_sets),
            ..Surroundings::default()
        };
        assert_eq!(warnings(asks, &there), [expected]);
    }
}

#[test]
fn of_daemon_sets_that_were_not_all_looked_at_none_is_said_to_be_missing() {
    let asks =
        "spec: {conditions: [{type: daemonset.nodegate.dev/tools.agent, requiredStatus: 'True'}]}";
    let some = Surroundings {
        daemon_sets: Some(Vec::new()),
        is_cut: true,
        ..Surroundings::default()
    };
    let warnings = warnings(asks, &some);
    assert!(
        matches!(&warnings[..], [it] if it.starts_with("not all DaemonSets")),
        "{warnings:?}"
    );
}
