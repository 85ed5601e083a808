//! `DaemonSet`s that rules name: their watches, and what is known of them.

use serde::de::DeserializeOwned;

use super::*;
use crate::io::Effect;
use crate::testing::{DaemonSetBuilder, daemon_set, pod};
use nodegate_core::condition::ComponentGroup::{self, Class, Named};
use nodegate_core::config::Config;
use nodegate_core::rule::MOST_COMPONENTS;
use nodegate_core::selector::Filter;

/// A cache with Gardener's class, synced with these rules and the node `n`.
fn with(rules: &[RuleBuilder]) -> Cache {
    let settings = Settings {
        classes: Config::default().classes().unwrap(),
        ..Settings::default()
    };
    let mut cache = Cache::new(&settings, now(0));
    cache.begin_evaluations();
    cache.views.take_orders();
    let mut seen = vec![init(Watch::Rules, 0)];
    let put = |rule: &RuleBuilder| Seen::Apply(Object::Rule(rule.object()));
    seen.extend(rules.iter().map(put));
    seen.extend([
        init(Watch::Nodes, 0),
        Seen::Apply(Object::Node(node("n").version(1).object())),
    ]);
    seen.extend([Watch::Rules, Watch::Nodes].map(Seen::InitDone));
    for seen in seen {
        cache.apply(seen, now(0));
    }
    assert!(cache.views.have_synced());
    cache
}

fn waits() -> RuleBuilder {
    rule("r").waits_for("daemonset.nodegate.dev/tools.agent")
}

/// Decodes an object.
fn object<T: DeserializeOwned>(json: serde_json::Value) -> T {
    serde_json::from_value(json).unwrap()
}

/// The watch lists this object, or none.
fn lists(cache: &mut Cache, watch: Watch, object: Option<Object>) {
    let listing = [init(watch, 1)].into_iter();
    let listing = listing.chain(object.map(Seen::Apply));
    for seen in listing.chain([Seen::InitDone(watch)]) {
        cache.apply(seen, now(1));
    }
}

/// The watches started and stopped since the last call.
fn orders(cache: &mut Cache) -> Vec<String> {
    let orders = cache
        .views
        .take_orders()
        .into_iter()
        .map(|order| match order {
            Effect::Watch(watch, scope) => {
                let labels = scope.labels.map(|it| it.to_string()).unwrap_or_default();
                format!(
                    "+{watch:?} {} {labels}",
                    scope.namespace.unwrap_or_default()
                )
            }
            Effect::Unwatch(watch) => format!("-{watch:?}"),
            other => panic!("{other:?}"),
        });
    orders.collect()
}

/// The watches list the agent, and its pod on the node.
fn lists_agent(cache: &mut Cache) {
    let agent = daemon_set("tools/agent").selecting("app", "a");
    let pod = pod("tools/a").of(&agent).on("n").ready();
    let agent = Object::DaemonSet(Named(0), agent.object());
    lists(cache, Watch::DaemonSets(Named(0)), Some(agent));
    let pod = Object::Pod(Named(0), pod.object());
    lists(cache, Watch::Pods(Named(0)), Some(pod));
}

fn sizes(cache: &Cache) -> (usize, usize) {
    let of = |kind| cache.sizes().find(|(it, _)| *it == kind).unwrap().1;
    (of("daemonsets"), of("pods"))
}

/// Whether everything has been seen of each named `DaemonSet`.
fn seen(cache: &Cache) -> Vec<(ComponentGroup, bool)> {
    let named = cache.cluster().named.iter();
    named.map(|named| (named.group, named.is_seen)).collect()
}

fn shows(cache: &mut Cache, seen: Seen) {
    cache.apply(seen, now(2));
}

#[test]
fn a_class_and_csi_nodes_are_watched_while_a_rule_depends_on_them() {
    let class = |name: &str, question: &str| {
        rule(name).waits_for(&format!("node.gardener.cloud/{question}"))
    };
    let mut cache = with(&[rule("other").waits_for("Net")]);
    assert_eq!(orders(&mut cache), [""; 0]);
    let put = |cache: &mut Cache, rule: RuleBuilder| {
        shows(cache, Seen::Apply(Object::Rule(rule.object())));
        orders(cache)
    };
    let critical = "node.gardener.cloud/critical-component in (true)";
    let pods = format!("+Pods(Class(0)) kube-system {critical}");
    let daemon_sets = format!("+DaemonSets(Class(0))  {critical}");
    let dry_run = class("r", "CriticalPodsReady").dry_run();
    assert_eq!(put(&mut cache, dry_run), [pods, daemon_sets]);
    let whole = class("s", "CriticalComponentsReady");
    assert_eq!(put(&mut cache, whole), ["+CsiNodes  "]);
    assert_eq!(cache.cluster().unseen.len(), 3);
    follows(&mut cache);
    let pod = pod("kube-system/p").critical().on("n").object();
    for (watch, object) in [
        (Watch::Pods(Class(0)), Some(Object::Pod(Class(0), pod))),
        (Watch::DaemonSets(Class(0)), None),
        (Watch::CsiNodes, None),
    ] {
        assert!(cache.cluster().unseen.contains(&watch));
        lists(&mut cache, watch, object);
        assert!(!cache.cluster().unseen.contains(&watch));
        assert_eq!(follows(&mut cache), ["n".into()], "{watch:?}");
    }
    assert_eq!(sizes(&cache), (0, 1));
    for (rule, ended) in [
        (class("s", "CriticalPodsReady"), &["-CsiNodes"][..]),
        (rule("s").waits_for("Net"), &[]),
        (
            rule("r").waits_for("Net"),
            &["-Pods(Class(0))", "-DaemonSets(Class(0))"],
        ),
    ] {
        assert_eq!(put(&mut cache, rule), ended);
    }
    assert_eq!(sizes(&cache), (0, 0), "its objects are forgotten");
}

#[test]
fn a_node_that_is_gone_leaves_nothing_behind_with_the_rule() {
    let mut cache = with(&[waits()]);
    lists_agent(&mut cache);
    shows(&mut cache, Seen::Delete(Object::Node(node("n").object())));
    assert!(cache.nodes.all.contains_key("n"), "its pod is still there");
    shows(&mut cache, Seen::Delete(Object::Rule(waits().object())));
    assert!(!cache.nodes.all.contains_key("n"));
}

#[test]
fn pods_of_other_owners_are_not_kept() {
    let mut cache = with(&[waits()]);
    lists_agent(&mut cache);
    let controlled_by = |kind: &str, name: &str| {
        let mut pod = pod(name).label("app", "a").on("n");
        let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "o", "controller": true});
        pod.json()["metadata"]["ownerReferences"] = json!([owner]);
        Seen::Apply(Object::Pod(Named(0), pod.object()))
    };
    shows(&mut cache, controlled_by("ReplicaSet", "tools/other"));
    assert_eq!(sizes(&cache), (1, 1));
    // Nor one that another has adopted. One without an owner is the next one's.
    shows(&mut cache, controlled_by("ReplicaSet", "tools/a"));
    assert_eq!(sizes(&cache), (1, 0));
    let orphan = pod("tools/a").label("app", "a").on("n");
    shows(
        &mut cache,
        Seen::Apply(Object::Pod(Named(0), orphan.object())),
    );
    assert_eq!(sizes(&cache), (1, 1));
}

#[test]
fn an_unreadable_daemon_set_does_not_count_as_absent() {
    let odd = || {
        let meta = json!({"namespace": "tools", "name": "agent"});
        let json = json!({"metadata": meta, "spec": {"template": 5}});
        Object::DaemonSet(Named(0), object(json))
    };
    let mut cache = with(&[waits()]);
    lists(&mut cache, Watch::DaemonSets(Named(0)), Some(odd()));
    assert_eq!(seen(&cache), [(Named(0), false)]);
    shows(&mut cache, Seen::Delete(odd()));
    assert_eq!(seen(&cache), [(Named(0), true)]);
}

#[test]
fn a_daemon_set_that_was_never_readable_may_run_anywhere_unless_its_namespace_does_not_count() {
    let odd = |namespace: &str, group| {
        let meta = json!({"namespace": namespace, "name": "odd", "uid": "u"});
        Object::DaemonSet(group, object(json!({"metadata": meta, "spec": 5})))
    };
    let critical = rule("r").waits_for("node.gardener.cloud/CriticalPodsReady");
    let watch = Watch::DaemonSets(Class(0));
    for (namespace, is_unseen) in [("kube-system", true), ("tenant", false)] {
        let mut cache = with(std::slice::from_ref(&critical));
        lists(&mut cache, watch, Some(odd(namespace, Class(0))));
        assert_eq!(cache.cluster().unseen.contains(&watch), is_unseen);
        shows(&mut cache, Seen::Delete(odd(namespace, Class(0))));
        assert!(!cache.cluster().unseen.contains(&watch));
    }
    let mut cache = with(&[rule("r").waits_for("daemonsets.nodegate.dev/all")]);
    let well = daemon_set("tools/agent").object();
    lists(
        &mut cache,
        Watch::DaemonSets(Named(0)),
        Some(Object::DaemonSet(Named(0), well)),
    );
    lists(&mut cache, Watch::Pods(Named(0)), None);
    assert_eq!(seen(&cache), [(Named(0), true)]);
    shows(&mut cache, Seen::Apply(odd("tenant", Named(0))));
    assert_eq!(seen(&cache), [(Named(0), false)]);
}

#[test]
fn of_what_another_namespace_labels_the_name_is_kept() {
    let mut cache = with(&[rule("r").waits_for("node.gardener.cloud/CriticalPodsReady")]);
    let tenants = daemon_set("tenant/agent").critical();
    let tenants = tenants
        .node_selector("kubernetes.io/os", "linux")
        .template_label("a", "b");
    let shown = Object::DaemonSet(Class(0), tenants.object());
    lists(&mut cache, Watch::DaemonSets(Class(0)), Some(shown));
    let kept = cache
        .cluster()
        .daemon_sets(Class(0))
        .values()
        .next()
        .unwrap();
    assert_eq!(
        (kept.template_labels.len(), kept.node_selector.len()),
        (1, 0)
    );
    let rules = cache.cluster().rules.rules();
    let (backing, _) = cache.backing(&rules[0]);
    assert!(
        backing
            .findings
            .iter()
            .any(|it| it.object == "daemonset/tenant/agent")
    );
}

#[test]
fn a_rule_that_names_more_than_is_watched_is_not_accepted_and_holds_nothing() {
    const MOST: usize = MOST_COMPONENTS;
    let gate = |index: usize, name: &str| {
        let gate = rule(&format!("r-{index}")).created(at(i64::try_from(index).unwrap()));
        gate.waits_for(&format!("daemonset.nodegate.dev/tools.{name}"))
    };
    let own = |index: usize| gate(index, &format!("a-{index}"));
    let rules: Vec<_> = (0..=MOST + 1)
        .map(|index| match index {
            // One that names what others do needs nothing of its own.
            index if index > MOST => gate(index, "a-0"),
            index => own(index),
        })
        .collect();
    let mut cache = with(&rules);
    assert_eq!(orders(&mut cache).len(), MOST);
    let accepted = |cache: &Cache| -> Vec<bool> {
        let of_set = cache.cluster().rules.rules().iter();
        let of_set: Vec<_> = of_set.map(|rule| rule.spec.is_ok()).collect();
        let mut cached: Vec<_> = cache.rules.all.values().map(|it| &it.rule).collect();
        cached.sort_by_key(|rule| rule.created);
        let cached: Vec<_> = cached.iter().map(|rule| rule.spec.is_ok()).collect();
        assert_eq!(of_set, cached, "status and decisions agree");
        cached
    };
    let mut expected = vec![true; MOST + 2];
    expected[MOST] = false;
    assert_eq!(accepted(&cache), expected);
    let node = cache.node("n").unwrap();
    let rules = cache.cluster().rules;
    let selecting = rules.matching(node.node, |_| None);
    assert!(!selecting.contains(&MOST), "it decides about no node");
    let why = cache.rules.all["r-64"].rule.trouble().unwrap();
    assert!(why.contains("name more than 64 DaemonSets"), "{why}");
    // Its own status is shown: nothing changes by that.
    shows(&mut cache, Seen::Apply(Object::Rule(own(MOST).object())));
    assert_eq!(accepted(&cache), expected);
    assert_eq!(orders(&mut cache), [""; 0]);
    shows(&mut cache, Seen::Delete(Object::Rule(own(1).object())));
    assert_eq!(accepted(&cache), vec![true; MOST + 1]);
    assert_eq!(orders(&mut cache).len(), 2);
    // An older rule that comes, or names more, goes before it.
    shows(&mut cache, Seen::Apply(Object::Rule(own(1).object())));
    assert_eq!(accepted(&cache), expected);
}

#[test]
fn a_daemon_set_that_no_rule_names_concerns_only_the_nodes_that_it_selects() {
    let all = rule("r").waits_for("daemonsets.nodegate.dev/all");
    let mut cache = with(&[all]);
    for (name, zone) in [("a", "a"), ("b", "b"), ("c", "b")] {
        let node = node(name).label("zone", zone).version(1).object();
        shows(&mut cache, Seen::Apply(Object::Node(node)));
    }
    lists(&mut cache, Watch::DaemonSets(Named(0)), None);
    lists(&mut cache, Watch::Pods(Named(0)), None);
    let agent = |zone: &str| daemon_set("tools/agent").node_selector("zone", zone);
    let evaluated = |cache: &mut Cache| {
        let mut dirty: Vec<_> =
            std::iter::from_fn(|| cache.schedule.next().map(|it| it.0)).collect();
        dirty.sort();
        dirty.join(" ")
    };
    let put = |it: &DaemonSetBuilder| Seen::Apply(Object::DaemonSet(Named(0), it.object()));
    let gone = |it: &DaemonSetBuilder| Seen::Delete(Object::DaemonSet(Named(0), it.object()));
    let its_pod = || {
        let pod = crate::testing::pod("tools/p").of(&agent("z")).on("c");
        Object::Pod(Named(0), pod.object())
    };
    let (pod_of, pod_gone) = (|| Seen::Apply(its_pod()), || Seen::Delete(its_pod()));
    evaluated(&mut cache);
    #[rustfmt::skip]
    let cases = [
        ("it runs nowhere", put(&agent("nowhere")), ""),
        ("still nowhere", put(&agent("z").toleration("{operator: Exists}")), ""),
        ("on some now", put(&agent("b")), "b c"),
        ("on others now", put(&agent("a")), "a b c"),
        ("nowhere again", put(&agent("z")), "a"),
        ("a pod of it comes", pod_of(), "c"),
        ("ignored, with its pod there", put(&agent("z").label("nodegate.dev/ignore", "true")), "c"),
        ("its pod goes", pod_gone(), "c"),
        ("it goes from nowhere", gone(&agent("z")), ""),
    ];
    for (name, seen, expected) in cases {
        shows(&mut cache, seen);
        assert_eq!(evaluated(&mut cache), expected, "{name}");
    }
}

const DEVICES: &str = "resourceslice.nodegate.dev/gpu.example.com";

fn slice(name: &str, node: &str, version: u64) -> Object {
    let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
    let meta = json!({"name": name, "uid": name, "resourceVersion": version.to_string()});
    let spec = json!({"nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]});
    Object::ResourceSlice(Named(0), object(json!({"metadata": meta, "spec": spec})))
}

#[test]
fn slices_are_kept_by_node_and_go_with_their_rule() {
    let of_node = |cache: &Cache| {
        let slices = cache.node("n").unwrap().slices;
        let slices = slices.get(&Named(0)).into_iter().flatten();
        slices
            .map(|it| it.key().name.to_string())
            .collect::<Vec<_>>()
    };
    let devices = rule("r").waits_for(DEVICES);
    let mut cache = with(std::slice::from_ref(&devices));
    let watch = Watch::ResourceSlices(Named(0));
    let scope = Filter::default().is("spec.driver", "gpu.example.com");
    let orders = cache.views.take_orders();
    assert!(matches!(&orders[..], [Effect::Watch(it, of)] if *it == watch && *of == scope));
    lists(&mut cache, watch, Some(slice("a", "n", 5)));
    assert_eq!(seen(&cache), [(Named(0), true)]);
    assert_eq!(of_node(&cache), ["a"]);
    follows(&mut cache);
    shows(&mut cache, Seen::Apply(slice("a", "n", 6)));
    assert_eq!(follows(&mut cache), [] as [Arc<str>; 0], "nothing is new");
    shows(&mut cache, Seen::Apply(slice("a", "n", 5)));
    shows(&mut cache, Seen::Apply(slice("b", "", 7)));
    assert_eq!(
        of_node(&cache),
        ["a"],
        "what belongs to no node is not kept"
    );
    shows(&mut cache, Seen::Apply(slice("b", "n", 8)));
    shows(&mut cache, Seen::Delete(slice("a", "n", 9)));
    assert_eq!(of_node(&cache), ["b"]);
    assert_eq!(follows(&mut cache), ["n".into()]);
    shows(&mut cache, Seen::Delete(Object::Rule(devices.object())));
    assert_eq!(of_node(&cache), [""; 0]);
    assert!(matches!(&cache.views.take_orders()[..], [Effect::Unwatch(it)] if *it == watch));
}

#[test]
fn a_cluster_that_never_had_slices_has_none_and_one_that_had_them_hides_them() {
    let watch = Watch::ResourceSlices(Named(0));
    let served = |cache: &Cache| cache.cluster().named[0].is_served;
    let stale = |cache: &mut Cache| {
        let as_of = cache.views.as_of(watch, now(23).monotonic);
        as_of.is_none() && served(cache)
    };
    let mut cache = with(&[rule("r").waits_for(DEVICES)]);
    for _ in 0..2 {
        shows(&mut cache, Seen::NotInstalled(watch));
        assert_eq!(
            (seen(&cache), served(&cache)),
            (vec![(Named(0), true)], false)
        );
        assert!(!stale(&mut cache));
    }
    // The API server is upgraded, and another one that is not answers.
    lists(&mut cache, watch, Some(slice("a", "n", 5)));
    assert!(served(&cache));
    cache.apply(Seen::NotInstalled(watch), now(23));
    assert!(served(&cache) && stale(&mut cache));
    assert!(cache.node("n").unwrap().slices.get(&Named(0)).is_some());
}
