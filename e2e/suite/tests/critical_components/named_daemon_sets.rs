//! A rule that waits for a `DaemonSet` by name, on a real control plane with the `DaemonSet` controller: what is watched for it,
//! and revisions. `examples` has such a rule, too.

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use nodegate_suite::gates::{eventually_gated, eventually_open, stays_gated, stays_open};
use nodegate_suite::{A_WHILE, SOON, rules};
use nodegate_testbed::changes::{delete_pod, set_pod_ready};
use nodegate_testbed::fixtures::{self, DaemonSetBuilder, NodeBuilder, RuleBuilder};
use nodegate_testbed::sights::{self, has_taint, pods_on, running_pod};
use nodegate_testbed::{Cluster, Controller, eventually, eventually_eq, fetch, never, ports};
use serde_json::{Value, json};

use super::{NO_SCHEDULE, cluster};

const NAMESPACE: &str = "default";
const POOL: &str = "pool";

/// Nodes, `DaemonSet` and rule, all with the same name.
struct Pool {
    client: Client,
    name: &'static str,
}

impl Pool {
    fn new(client: &Client, name: &'static str) -> Self {
        let client = client.clone();
        Self { client, name }
    }

    fn taint(&self) -> String {
        format!("readiness.k8s.io/{}", self.name)
    }

    /// A continuous rule that waits for the `DaemonSet`.
    fn rule(&self, name: &str) -> RuleBuilder {
        let condition = format!("daemonset.nodegate.dev/{NAMESPACE}.{}", self.name);
        let rule = fixtures::rule(name, &format!("readiness.k8s.io/{name}"));
        rule.waits_for(&condition).selects(POOL, self.name)
    }

    /// A kwok node that registers with the rule's taint.
    fn node(&self) -> NodeBuilder {
        self.node_named(self.name)
    }

    fn node_named(&self, name: &str) -> NodeBuilder {
        fixtures::node(name)
            .label(POOL, self.name)
            .allocatable("pods", "100")
            .allocatable("cpu", "8")
            .taint(&self.taint(), "NoSchedule")
            .managed_by_kwok()
    }

    /// The `DaemonSet`, whose pods start at once.
    fn daemon_set(&self) -> DaemonSetBuilder {
        fixtures::daemon_set(&format!("{NAMESPACE}/{}", self.name))
            .node_selector(POOL, self.name)
            .tolerate_everything()
    }

    /// Sets the `DaemonSet`'s running pod Ready or not.
    async fn set_ready(&self, ready: bool) -> Result<()> {
        let pod = running_pod(&self.client, self.name, self.name).await?;
        set_pod_ready(&self.client, NAMESPACE, &pod, ready).await
    }
}

#[tokio::test]
async fn a_daemon_set_is_waited_for_by_its_name() -> Result<()> {
    let cluster = cluster().await?;
    nothing_is_watched_that_no_rule_names_and_a_restart_closes_nobody(&cluster).await?;
    let _controller = Controller::start(&cluster, &[]).await?;
    let client = cluster.client().await?;
    another_controllers_taint_releases_nobody(&client).await?;
    a_pod_counts_once_it_is_available(&client).await?;
    an_update_closes_a_node_again_where_the_rule_says_so(&client).await
}

/// The `DaemonSet` tolerates the rule's taint, and nobody else's.
async fn another_controllers_taint_releases_nobody(client: &Client) -> Result<()> {
    let pool = Pool::new(client, "taints");
    pool.rule(pool.name).bootstrap_only().create(client).await?;
    let agent = fixtures::daemon_set(&format!("{NAMESPACE}/{}", pool.name));
    let agent = agent.node_selector(POOL, pool.name).never_ready();
    agent
        .tolerate(&pool.taint(), NO_SCHEDULE)
        .create(client)
        .await?;
    let (autoscaler, team) = ("ToBeDeletedByClusterAutoscaler", "dedicated");
    for (node, key) in [(pool.name, autoscaler), ("dedicated", team)] {
        let node = pool.node_named(node).taint(key, NO_SCHEDULE);
        node.create(client).await?;
    }
    let why = async |node: &'static str| {
        let kind = format!("daemonset.nodegate.dev/{NAMESPACE}.{}", pool.name);
        let condition = sights::node_condition(client, node, &kind).await?;
        Ok(condition.and_then(|it| it.reason))
    };
    for (node, reason) in [
        (pool.name, "DaemonSetPodMissing"),
        ("dedicated", "DoesNotTolerate"),
    ] {
        let expected = Some(reason.to_owned());
        eventually_eq(node, SOON, expected, async || why(node).await).await?;
        stays_gated(client, node, &pool.taint()).await?;
    }
    Ok(())
}

/// For as long as the `DaemonSet` controller does not call it available.
async fn a_pod_counts_once_it_is_available(client: &Client) -> Result<()> {
    let pool = Pool::new(client, "available");
    pool.rule(pool.name).bootstrap_only().create(client).await?;
    pool.daemon_set().never_ready().create(client).await?;
    let daemon_sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    let (how, wait) = (
        PatchParams::default(),
        json!({"spec": {"minReadySeconds": 10}}),
    );
    daemon_sets
        .patch(pool.name, &how, &Patch::Merge(wait))
        .await?;
    pool.node().create(client).await?;
    pool.set_ready(true).await?;
    let kind = format!("daemonset.nodegate.dev/{NAMESPACE}.{}", pool.name);
    let new = Some("PodNotAvailable".to_owned());
    eventually_eq("why it is held", SOON, new, async || {
        let condition = sights::node_condition(client, pool.name, &kind).await?;
        Ok(condition.and_then(|it| it.reason))
    })
    .await?;
    stays_gated(client, pool.name, &pool.taint()).await?;
    eventually_open(client, pool.name, &pool.taint()).await?;
    eventually_eq("available pods", SOON, Some(1), async || {
        let status = daemon_sets.get(pool.name).await?.status;
        Ok(status.and_then(|it| it.number_available))
    })
    .await
}

async fn an_update_closes_a_node_again_where_the_rule_says_so(client: &Client) -> Result<()> {
    let pool = Pool::new(client, "revisions");
    let rule = pool.rule(pool.name).bootstrap_only();
    let rule = rule.nodegate("regateOn", json!(["Revision"]));
    rule.create(client).await?;
    pool.daemon_set().never_ready().create(client).await?;
    pool.node().create(client).await?;
    pool.set_ready(true).await?;
    eventually_open(client, pool.name, &pool.taint()).await?;
    let record = async || {
        let node = sights::node(client, pool.name).await?;
        let mut annotations = node.annotations().iter();
        let record = annotations.find(|(key, _)| key.contains("bootstrap-completed-"));
        let value: Value = serde_json::from_str(record.context("a record")?.1)?;
        let key = format!("{NAMESPACE}/{}", pool.name);
        anyhow::Ok(value["revisions"][key].as_str().map(str::to_owned))
    };
    let first = record().await?;
    assert!(first.is_some(), "the revision is on record");

    // Neither a pod that is not Ready nor its successor of the same revision gates the node.
    pool.set_ready(false).await?;
    let [pod] = &*pods_on(client, pool.name).await? else {
        bail!("one pod");
    };
    delete_pod(client, NAMESPACE, &pod.name_any()).await?;
    stays_open(client, pool.name, &pool.taint()).await?;
    pool.set_ready(true).await?;

    let update = json!({"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}});
    let (how, update) = (PatchParams::default(), Patch::Merge(update));
    let daemon_sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    daemon_sets.patch(pool.name, &how, &update).await?;
    eventually_gated(client, pool.name, &pool.taint()).await?;
    eventually("the pod is replaced", SOON, async || {
        let pods = pods_on(client, pool.name).await?;
        let is_new = |pod: &Pod| pod.annotations().get("version").is_some_and(|it| it == "2");
        Ok(matches!(&*pods, [pod] if is_new(pod)))
    })
    .await?;
    stays_gated(client, pool.name, &pool.taint()).await?;
    pool.set_ready(true).await?;
    eventually_open(client, pool.name, &pool.taint()).await?;
    assert_ne!(record().await?, first);
    Ok(())
}

/// How many objects of a kind a controller has cached.
async fn cached(url: &str, kind: &str) -> Result<usize> {
    let address = url.parse().context("an address")?;
    let (_, text) = fetch::get(address, "/metrics").await?;
    let of_kind = format!("nodegate_cache_objects{{kind=\"{kind}\"}} ");
    let mut lines = text.lines();
    let count = lines.find_map(|line| line.strip_prefix(&of_kind));
    Ok(count.unwrap_or("0").parse()?)
}

async fn nothing_is_watched_that_no_rule_names_and_a_restart_closes_nobody(
    cluster: &Cluster,
) -> Result<()> {
    let client = cluster.client().await?;
    let pool = Pool::new(&client, "watched");
    let address = format!("127.0.0.1:{}", ports::free()?);
    let flag = format!("--metrics-bind-address={address}");
    let controller = Controller::start(cluster, &[&flag]).await?;
    let holds = async |expected: usize| {
        for kind in ["daemonsets", "pods"] {
            let what = format!("cached {kind}");
            let count = async || cached(&address, kind).await;
            eventually_eq(&what, SOON, expected, count).await?;
        }
        anyhow::Ok(())
    };
    pool.daemon_set().create(&client).await?;
    let other = fixtures::daemon_set("default/other").tolerate_everything();
    let other = other.node_selector(POOL, pool.name);
    other.create(&client).await?;
    pool.node().create(&client).await?;
    eventually("both have a pod", SOON, async || {
        Ok(pods_on(&client, pool.name).await?.len() == 2)
    })
    .await?;
    holds(0).await?;

    // Two rules share one watch.
    for name in [pool.name, "second"] {
        pool.rule(name).create(&client).await?;
    }
    eventually_open(&client, pool.name, &pool.taint()).await?;
    holds(1).await?;
    rules::delete(&client, "second").await?;
    holds(1).await?;

    // A new process closes nothing, neither before nor after it has synced.
    controller.stop().await?;
    let controller = Controller::start(cluster, &[&flag]).await?;
    never("the node is closed", A_WHILE * 3, async || {
        has_taint(&client, pool.name, &pool.taint()).await
    })
    .await?;
    holds(1).await?;
    rules::delete(&client, pool.name).await?;
    holds(0).await?;
    controller.stop().await?;
    Ok(())
}
