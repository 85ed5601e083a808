//! What stands behind a rule's conditions.

use crate::plan::Backing;
use crate::testing::{Builder, NodeBuilder, World, daemon_set, node, rule, world};

const AGENT: &str = "daemonset.nodegate.dev/tools.agent";
const DRIVER: &str = "csidriver.nodegate.dev/ebs.csi.aws.com";

/// What is unmade, as the reason and what is missing.
fn unmade(world: &World, registered: &[&str]) -> Vec<String> {
    let spec = world.rules()[0].spec.as_ref().unwrap();
    let nodes = || std::iter::once(&world.node);
    let has = |driver: &str| registered.contains(&driver);
    let backing = Backing::of(spec, world.cluster(), nodes, has);
    let unmade = backing.unmade.into_iter();
    unmade
        .map(|it| format!("{:?} {}", it.why, it.missing))
        .collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_condition_that_is_met_on_no_node_is_named() {
    let here = || node("n");
    let elsewhere = || node("n").label("kubernetes.io/os", "windows");
    let reports = |kind: &str| here().condition(kind, "False");
    let of = |node: NodeBuilder, kind: &str, required: &str| {
        let asks = rule("r").spec(&format!(
            "conditions: [{{type: {kind}, requiredStatus: '{required}'}}]"
        ));
        let linux = asks.selects("kubernetes.io/os", "linux");
        world(&node).naming("tools/agent").rule(&linux)
    };
    for (kind, required, node, registered, expected) in [
        (
            AGENT,
            "True",
            here(),
            &[][..],
            Some("NoDaemonSet tools/agent"),
        ),
        (
            AGENT,
            "True",
            elsewhere(),
            &[],
            Some("NoDaemonSet tools/agent"),
        ),
        (AGENT, "False", here(), &[], None),
        (
            "daemonset.nodegate.dev/a.other",
            "True",
            here(),
            &[],
            Some("TooMany daemonset.nodegate.dev/a.other"),
        ),
        (
            DRIVER,
            "True",
            here(),
            &[],
            Some("NoCsiDriver ebs.csi.aws.com"),
        ),
        (DRIVER, "True", here(), &["ebs.csi.aws.com"], None),
        (DRIVER, "True", elsewhere(), &[], None),
        (
            "csidriver.nodegate.dev/",
            "True",
            here(),
            &[],
            Some("NoSuchName csidriver.nodegate.dev/"),
        ),
        (
            "resource.nodegate.dev/",
            "True",
            here(),
            &[],
            Some("NoSuchName resource.nodegate.dev/"),
        ),
        (
            "daemon-sets.nodegate.dev/x",
            "True",
            here(),
            &[],
            Some("NoSuchPrefix daemon-sets.nodegate.dev/x"),
        ),
        (
            "daemon-sets.nodegate.dev/x",
            "True",
            reports("daemon-sets.nodegate.dev/x"),
            &[],
            None,
        ),
        (
            "nodegate.dev/x",
            "True",
            elsewhere(),
            &[],
            Some("NoSuchPrefix nodegate.dev/x"),
        ),
        ("mynodegate.dev/x", "True", here(), &[], None),
        ("example.com/Ready", "True", here(), &[], None),
        (
            "resource.nodegate.dev/nvidia.com/gpu",
            "True",
            here(),
            &[],
            None,
        ),
    ] {
        let found = unmade(&of(node, kind, required), registered);
        assert_eq!(
            found,
            Vec::from_iter(expected.map(str::to_owned)),
            "{kind} {required}"
        );
    }
    let world = of(here(), AGENT, "True");
    assert_eq!(
        unmade(&world.clone().before_it_is_seen(), &[]),
        [""; 0],
        "it has not been seen yet"
    );
    let there = world.daemon_set(&daemon_set("tools/agent"));
    assert_eq!(unmade(&there, &[]), [""; 0]);
}

#[test]
fn the_rules_own_taint_does_not_count_where_a_dry_run_finds_it() {
    let tainted = node("n").taint(crate::testing::GATE, "NoSchedule");
    let asks = rule("r")
        .waits_for("daemonset.nodegate.dev/tools.agent")
        .dry_run();
    let world = world(&tainted).naming("tools/agent");
    let world = world.daemon_set(&daemon_set("tools/agent")).rule(&asks);
    let spec = world.rules()[0].spec.as_ref().unwrap();
    let nodes = || std::iter::once(&world.node);
    let backing = Backing::of(spec, world.cluster(), nodes, |_| false);
    assert_eq!(backing.passed_over.len(), 1, "{backing:?}");
}
