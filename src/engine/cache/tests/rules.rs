//! Which nodes are evaluated after a change of the rules.

use super::*;
use crate::testing::{GATE, daemon_set};
use nodegate_core::api::names::READY_DEADLINE_PREFIX;
use nodegate_core::condition::ComponentGroup::Named;

const AGENT: &str = "daemonset.nodegate.dev/tools.agent";
const OTHER: &str = "readiness.k8s.io/other";

/// Nodes of all kinds that rules `r` and `s` may decide about: by labels, taints and records, of rules that are there or gone.
fn nodes() -> Vec<NodeBuilder> {
    let kinds: [fn(NodeBuilder) -> NodeBuilder; 10] = [
        |it| it,
        |it| it.taint(OTHER, "NoSchedule"),
        |it| it.dated_taint(GATE, "NoSchedule"),
        |it| it.dated_taint(GATE, "NoExecute"),
        |it| {
            it.dated_taint(OTHER, "NoSchedule")
                .owned_by("r", OTHER, "NoSchedule")
        },
        |it| {
            it.dated_taint(GATE, "NoSchedule")
                .owned_by("r", GATE, "NoSchedule")
        },
        |it| {
            it.dated_taint(GATE, "NoSchedule")
                .owned_by("s", GATE, "NoSchedule")
        },
        |it| it.owned_by("r", GATE, "NoSchedule"),
        |it| it.completed("r"),
        |it| {
            it.annotation(
                &format!("{READY_DEADLINE_PREFIX}r-uid"),
                "1970-01-01T00:01:00Z",
            )
        },
    ];
    let of_pool = |pool: &'static str| {
        let kinds = kinds.into_iter().enumerate();
        kinds.map(move |(index, kind)| {
            let node = node(&format!("{pool}-{index}"));
            kind(node.label("pool", pool)).condition("Net", "False")
        })
    };
    ["a", "b", "c"].into_iter().flat_map(of_pool).collect()
}

/// The states of rule `r`, with a line for each; none where it is not there.
fn states() -> Vec<(&'static str, Option<RuleBuilder>)> {
    let r = || rule("r").waits_for("Net").bootstrap_only();
    let named = |it: RuleBuilder| it.waits_for(AGENT);
    vec![
        ("none", None),
        ("of a", Some(r().selects("pool", "a"))),
        ("of b", Some(r().selects("pool", "b"))),
        ("of all", Some(r())),
        (
            "another taint",
            Some(r().selects("pool", "a").taint(OTHER, "NoSchedule")),
        ),
        (
            "another condition",
            Some(rule("r").waits_for("Disk").selects("pool", "a")),
        ),
        ("named", Some(named(rule("r").selects("pool", "a")))),
        ("dry run", Some(r().selects("pool", "a").dry_run())),
        ("suspended", Some(r().selects("pool", "a").suspended())),
        ("deleted", Some(r().selects("pool", "a").deleting())),
        (
            "without finalizer",
            Some(r().selects("pool", "a").without_finalizer()),
        ),
        ("remove-only", Some(r().selects("pool", "a").remove_only())),
        (
            "repairs",
            Some(
                r().selects("pool", "a")
                    .nodegate("repair: {readinessTTL: 10m}"),
            ),
        ),
        (
            "rejected",
            Some(
                r().selects("pool", "a")
                    .taint("example.com/x", "NoSchedule"),
            ),
        ),
        (
            "heartbeats",
            Some(
                rule("r")
                    .waits_for("Net")
                    .selects("pool", "a")
                    .nodegate("heartbeatTimeout: 10m"),
            ),
        ),
    ]
}

/// A cache with these rules and all nodes, of which none is queued.
fn cache_of(rules: &[RuleBuilder]) -> Cache {
    let mut cache = Cache::new(&Settings::default(), now(0));
    let put_rules = rules
        .iter()
        .map(|it| Seen::Apply(Object::Rule(it.object())));
    let nodes = nodes();
    let put_nodes = nodes
        .iter()
        .map(|it| Seen::Apply(Object::Node(it.object())));
    let all: Vec<Seen> = [init(Watch::Rules, 0)]
        .into_iter()
        .chain(put_rules)
        .collect();
    for seen in all
        .into_iter()
        .chain([Seen::InitDone(Watch::Rules), init(Watch::Nodes, 0)])
    {
        cache.apply(seen, now(0));
    }
    for seen in put_nodes.chain([Seen::InitDone(Watch::Nodes)]) {
        cache.apply(seen, now(0));
    }
    let (daemon_sets, pods) = (Watch::DaemonSets(Named(0)), Watch::Pods(Named(0)));
    let agent = daemon_set("tools/agent").toleration(&format!("{{key: {GATE}, operator: Exists}}"));
    let agent = Object::DaemonSet(Named(0), agent.object());
    for seen in [
        init(daemon_sets, 0),
        Seen::Apply(agent),
        Seen::InitDone(daemon_sets),
    ] {
        cache.apply(seen, now(0));
    }
    for seen in [init(pods, 0), Seen::InitDone(pods)] {
        cache.apply(seen, now(0));
    }
    cache.begin_evaluations();
    cache.freshness.assess(&cache.views, now(0));
    for name in follows(&mut cache) {
        cache.select_rules(&name, at(0));
    }
    cache
}

/// What is decided for a node by these rules.
fn plan_of<'a>(cache: &'a mut Cache, name: &str) -> NodePlan<'a> {
    cache.select_rules(name, at(0));
    let history = NodeHistory {
        is_known: true,
        memories: &[],
        may_gate: &[],
        held_back: &[],
        setbacks: &[],
        watching_since: at(0),
    };
    plan(cache.cluster(), cache.node(name).unwrap(), history, at(90))
}

#[test]
fn a_change_of_a_rule_evaluates_every_node_about_which_it_changes_a_decision() {
    let s = || rule("s").waits_for("Net");
    let others = [
        ("alone", None),
        ("with an older rule", Some(s().created(at(-9)))),
        ("with a younger rule", Some(s().created(at(9)))),
        ("with a deleted rule", Some(s().created(at(-9)).deleting())),
        (
            "with a rule that waits for pods",
            Some(rule("s").waits_for(AGENT)),
        ),
    ];
    let names: Vec<_> = nodes().iter().map(|it| it.build().name).collect();
    let (mut spared, mut differed) = (0, 0);
    for (with, other) in &others {
        for (before, from) in &states() {
            let rules: Vec<_> = from.iter().chain(other).cloned().collect();
            let mut known = cache_of(&rules);
            for (after, to) in &states() {
                let mut cache = cache_of(&rules);
                match (from, to) {
                    (None, None) => {}
                    (Some(rule), None) => {
                        cache.apply(Seen::Delete(Object::Rule(rule.object())), now(0));
                    }
                    (_, Some(rule)) => {
                        cache.apply(Seen::Apply(Object::Rule(rule.object())), now(0));
                    }
                }
                let marked = follows(&mut cache);
                spared += names.len() - marked.len();
                for name in &names {
                    let is_same = plan_of(&mut cache, name) == plan_of(&mut known, name);
                    differed += usize::from(!is_same);
                    let case = format!("{with}, {before} -> {after}: {name}");
                    assert!(is_same || marked.contains(name), "{case}");
                }
            }
        }
    }
    // Otherwise this would show nothing.
    assert!(spared > 2_000 && differed > 2_000, "{spared} {differed}");
}

#[test]
fn a_change_of_a_rule_evaluates_no_other_nodes() {
    let change = |from: &RuleBuilder, to: &RuleBuilder| {
        let mut cache = cache_of(std::slice::from_ref(from));
        cache.apply(Seen::Apply(Object::Rule(to.object())), now(0));
        let mut marked = follows(&mut cache);
        marked.sort();
        marked
    };
    let of = |pool: &str| {
        rule("r")
            .waits_for("Net")
            .taint("readiness.k8s.io/own", "NoSchedule")
            .selects("pool", pool)
    };
    let is_of = |pools: &[&str]| {
        let named = |it: &NodeBuilder| it.build().name;
        let nodes = nodes();
        let mut names: Vec<_> = nodes.iter().map(named).collect();
        let has_record = |name: &str| {
            nodes.iter().any(|it| {
                let node = it.build();
                *node.name == *name
                    && node
                        .annotations_about("")
                        .any(|(key, _)| key.ends_with("r-uid") || key.ends_with("-r"))
            })
        };
        names.retain(|name| pools.iter().any(|pool| name.starts_with(pool)) || has_record(name));
        names.sort();
        names
    };
    assert_eq!(change(&of("a"), &of("a").waits_for("Disk")), is_of(&["a"]));
    assert_eq!(change(&of("a"), &of("b")), is_of(&["a", "b"]));
    let all = is_of(&["a", "b", "c"]);
    let repairs = || {
        of("a")
            .bootstrap_only()
            .nodegate("repair: {readinessTTL: 10m}")
    };
    assert_eq!(
        change(&of("a"), &repairs()),
        all,
        "limits of repair count all nodes"
    );
    let followed = of("a").nodegate("heartbeatTimeout: 10m");
    assert_eq!(
        change(&of("a"), &followed),
        all,
        "heartbeats are followed on all nodes"
    );
}

#[test]
fn a_change_of_a_rule_compares_no_other_rule_with_nodes_anew() {
    // As many as take long to compare, with labels that the nodes have.
    let long = |name: &str| {
        let mut rule = rule(name).waits_for("Net");
        let expression = json!({"key": "pool", "operator": "NotIn", "values": ["none", name]});
        rule.json()["spec"]["nodeSelector"] = json!({"matchExpressions": vec![expression; 300]});
        rule.taint(&format!("readiness.k8s.io/{name}"), "NoSchedule")
    };
    let others: Vec<_> = (0..40).map(|it| long(&format!("other-{it}"))).collect();
    let toggled = rule("r").waits_for("Net");
    let rules: Vec<_> = others.iter().chain([&toggled]).cloned().collect();
    let mut cache = cache_of(&rules);
    let nodes: Vec<_> = nodes().iter().map(NodeBuilder::build).collect();
    let mut change = |rule: &RuleBuilder, version: i64| {
        let mut rule = rule.clone();
        rule.json()["metadata"]["resourceVersion"] = json!(version.to_string());
        cache.apply(Seen::Apply(Object::Rule(rule.object())), now(0));
        let began = Instant::now();
        for node in &nodes {
            cache.select_rules(&node.name, at(0));
        }
        let took = began.elapsed();
        let rules = cache.rules.set.clone();
        for node in nodes.iter().step_by(9) {
            let selecting = rules.matching(node, |_| None);
            let state = cache.node(&node.name).unwrap();
            assert_eq!(state.selecting, selecting);
        }
        took
    };
    let one = change(&toggled.clone().selects("pool", "a"), 2);
    change(&others[7].clone().selects("pool", "a"), 3);
    let all = cache_of(&rules);
    let began = Instant::now();
    for node in &nodes {
        all.rules.set.matching(node, |_| None);
    }
    let anew = began.elapsed();
    assert!(one * 4 < anew, "{one:?}, where all take {anew:?}");
}
