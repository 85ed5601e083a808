//! When a node opens: at once if nothing is critical, and otherwise when the last critical pod is Ready.

use std::time::{Duration, Instant};

use anyhow::Result;
use nodegate_testbed::changes::set_pod_ready;
use nodegate_testbed::fixtures::{self, CRITICAL};
use nodegate_testbed::sights::{has_taint, is_ready, node_condition, pods_on};
use nodegate_testbed::{eventually, never};

use crate::pool::{NAMESPACE, POOL, Pool};
use crate::{A_WHILE, COMPONENTS_READY, GATE, NO_SCHEDULE, NOT_READY, SOON};

#[tokio::test]
async fn a_node_without_critical_components_opens_at_once() -> Result<()> {
    let pool = Pool::under_gardeners_rule("nothing-critical").await?;
    pool.join(pool.node()).await?;
    pool.opens().await?;
    assert!(
        has_taint(&pool.client, pool.name, NOT_READY).await?,
        "only Gardener's taint is the rule's"
    );
    Ok(())
}

/// The initial taint of every node keeps such a `DaemonSet` away. A controller that reads this as "not meant for this node"
/// would open every node at once.
#[tokio::test]
async fn a_node_that_is_not_ready_waits_for_what_cannot_come_yet() -> Result<()> {
    let pool = Pool::under_gardeners_rule("not-ready-yet").await?;
    pool.intolerant_daemon_set("cni")
        .tolerate(GATE, NO_SCHEDULE)
        .never_ready()
        .create(&pool.client)
        .await?;
    pool.join(pool.node()).await?;
    pool.is_held_for_want_of("cni").await?;
    assert!(has_taint(&pool.client, pool.name, NOT_READY).await?);
    assert!(pool.pods_of("cni").await?.is_empty());

    pool.lift_not_ready().await?;
    pool.is_held_by_the_pod_of("cni").await?;
    pool.set_ready("cni", true).await?;
    pool.opens().await?;
    Ok(())
}

#[tokio::test]
async fn when_a_node_opens_its_critical_pods_are_ready() -> Result<()> {
    let pool = Pool::under_gardeners_rule("in-order").await?;
    for (name, delay) in [("fast", 0), ("slow", 400), ("slowest", 900)] {
        pool.daemon_set(name)
            .ready_after(Duration::from_millis(delay))
            .create(&pool.client)
            .await?;
    }
    pool.join(pool.node()).await?;
    pool.opens().await?;
    let pods = pods_on(&pool.client, pool.name).await?;
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(is_ready), "{pods:?}");
    Ok(())
}

#[tokio::test]
async fn a_daemon_set_is_critical_by_its_own_label_and_its_pods_together() -> Result<()> {
    let pool = Pool::under_gardeners_rule("half-labelled").await?;
    let plain = |name: &str| {
        fixtures::daemon_set(&format!("{NAMESPACE}/half-labelled-{name}"))
            .node_selector(POOL, "half-labelled")
            // It gets no pod here until the node is ready.
            .tolerate(GATE, NO_SCHEDULE)
            .never_ready()
    };
    plain("unlabelled").create(&pool.client).await?;
    plain("metadata-alone")
        .label(CRITICAL.0, CRITICAL.1)
        .create(&pool.client)
        .await?;
    plain("another-value")
        .label(CRITICAL.0, "false")
        .pod_label(CRITICAL.0, "false")
        .create(&pool.client)
        .await?;
    plain("pods-alone")
        .pod_label(CRITICAL.0, CRITICAL.1)
        .create(&pool.client)
        .await?;
    pool.join(pool.node()).await?;
    pool.opens().await?;
    Ok(())
}

#[tokio::test]
async fn labelled_pods_of_an_unlabelled_daemon_set_count_once_they_are_there() -> Result<()> {
    let pool = Pool::under_gardeners_rule("pods-alone").await?;
    let holder = pool.pod("holder").never_ready();
    fixtures::daemon_set(&format!("{NAMESPACE}/pods-alone-agent"))
        .pod_label(CRITICAL.0, CRITICAL.1)
        .node_selector(POOL, pool.name)
        .tolerate_everything()
        .never_ready()
        .create(&pool.client)
        .await?;
    holder.create(&pool.client).await?;
    pool.join(pool.node()).await?;
    pool.pod_of("agent").await?;
    pool.set_pod_ready("holder", true).await?;
    pool.is_held_by_the_pod_of("agent").await?;
    pool.set_ready("agent", true).await?;
    pool.opens().await?;
    Ok(())
}

#[tokio::test]
async fn a_daemon_set_that_comes_after_the_node_is_waited_for() -> Result<()> {
    let pool = Pool::under_gardeners_rule("late-comer").await?;
    pool.daemon_set("first")
        .never_ready()
        .create(&pool.client)
        .await?;
    pool.join(pool.node()).await?;
    pool.is_held_by_the_pod_of("first").await?;

    pool.daemon_set("second")
        .never_ready()
        .create(&pool.client)
        .await?;
    pool.pod_of("second").await?;
    pool.set_ready("first", true).await?;
    pool.is_held_by_the_pod_of("second").await?;
    pool.set_ready("second", true).await?;
    pool.opens().await?;
    Ok(())
}

#[tokio::test]
async fn a_daemon_set_that_is_deleted_is_waited_for_no_longer() -> Result<()> {
    let pool = Pool::under_gardeners_rule("taken-back").await?;
    pool.intolerant_daemon_set("cni")
        .tolerate(GATE, NO_SCHEDULE)
        .create(&pool.client)
        .await?;
    pool.join(pool.node()).await?;
    pool.is_held_for_want_of("cni").await?;
    pool.cluster
        .kubectl(&["delete", "daemonset", "-n", NAMESPACE, "taken-back-cni"])
        .await?;
    pool.opens().await?;
    Ok(())
}

#[tokio::test]
async fn every_critical_pod_without_an_owner_is_waited_for() -> Result<()> {
    let pool = Pool::under_gardeners_rule("bare-pods").await?;
    // One in another namespace, one on another node, one unbound.
    for pod in [
        pool.pod("a"),
        pool.pod("b"),
        fixtures::pod("default/bare-pods-other")
            .critical()
            .on(pool.name),
    ] {
        pod.never_ready().create(&pool.client).await?;
    }
    fixtures::pod("kube-system/bare-pods-elsewhere")
        .critical()
        .on("bare-pods-2")
        .create(&pool.client)
        .await?;
    fixtures::pod("kube-system/bare-pods-unbound")
        .critical()
        .create(&pool.client)
        .await?;
    pool.join(pool.node()).await?;
    pool.is_held_because("pods kube-system/bare-pods-a, kube-system/bare-pods-b are not Ready")
        .await?;

    pool.set_pod_ready("a", true).await?;
    pool.is_held_because("pod kube-system/bare-pods-b is not Ready")
        .await?;
    pool.set_pod_ready("b", true).await?;
    pool.opens().await?;
    Ok(())
}

#[tokio::test]
async fn a_node_that_is_open_stays_open() -> Result<()> {
    let pool = Pool::under_gardeners_rule("once-open").await?;
    pool.daemon_set("cni").create(&pool.client).await?;
    pool.join(pool.node()).await?;
    pool.opens().await?;
    pool.set_ready("cni", false).await?;
    let pod = pool.pod_of("cni").await?;
    let why = format!("pod {NAMESPACE}/{pod} is not Ready");
    pool.says(COMPONENTS_READY, "False", &why).await?;
    never("the node is closed again", A_WHILE, async || {
        pool.is_gated().await
    })
    .await
}

/// A restored taint is evaluated like the initial one.
#[tokio::test]
async fn a_gate_that_was_put_back_opens_when_all_is_ready() -> Result<()> {
    let pool = Pool::under_gardeners_rule("gated-again").await?;
    pool.daemon_set("cni").create(&pool.client).await?;
    pool.join(pool.node()).await?;
    pool.opens().await?;
    pool.set_ready("cni", false).await?;
    let pod = pool.pod_of("cni").await?;
    let why = format!("pod {NAMESPACE}/{pod} is not Ready");
    pool.says(COMPONENTS_READY, "False", &why).await?;
    let gate = format!("{GATE}=:{NO_SCHEDULE}");
    pool.cluster
        .kubectl(&["taint", "node", pool.name, &gate])
        .await?;
    pool.is_held_by_the_pod_of("cni").await?;
    pool.set_ready("cni", true).await?;
    pool.opens().await?;
    Ok(())
}

/// Asserts nothing about the time, but prints it.
#[tokio::test]
async fn a_node_opens_when_its_last_pod_turns_ready_not_on_a_timer() -> Result<()> {
    const SAMPLES: usize = 20;
    let pool = Pool::under_gardeners_rule("latency").await?;
    let mut times = Vec::with_capacity(SAMPLES);
    for number in 0..SAMPLES {
        let name = format!("latency-{number}");
        let pod = format!("latency-{number}-cni");
        fixtures::pod(&format!("{NAMESPACE}/{pod}"))
            .critical()
            .on(&name)
            .create(&pool.client)
            .await?;
        pool.join(pool.further_node(&name)).await?;
        let what = "the controller has seen the pod";
        eventually(what, SOON, async || {
            node_condition(&pool.client, &name, COMPONENTS_READY).await
        })
        .await?;
        let started = Instant::now();
        set_pod_ready(&pool.client, NAMESPACE, &pod, true).await?;
        while has_taint(&pool.client, &name, GATE).await? {
            assert!(started.elapsed() < SOON, "node {name} does not open");
        }
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let (median, worst) = (times[SAMPLES / 2], times[SAMPLES - 1]);
    println!(
        "from a pod's readiness to an open node, seen from outside: median {median:?}, worst {worst:?} of {SAMPLES}"
    );
    Ok(())
}
