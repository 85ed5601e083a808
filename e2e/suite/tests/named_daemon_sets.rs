//! Rules that wait for a `DaemonSet` by name, on a real control plane with the `DaemonSet` controller. No labels are needed.
//! The tests share one cluster, and each has its own node pool.

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use nodegate_suite::gates::{eventually_gated, eventually_open};
use nodegate_suite::{A_WHILE, SOON};
use nodegate_testbed::changes::{delete_pod, delete_rule, set_pod_ready};
use nodegate_testbed::fixtures::{self, DaemonSetBuilder, NodeBuilder, RuleBuilder};
use nodegate_testbed::sights::{has_taint, node_condition, pods_on};
use nodegate_testbed::{
    Cluster, Controller, Options, SharedInstallation, eventually, eventually_eq, fetch, never,
    ports, sights,
};
use serde_json::{Value, json};

static INSTALLATION: SharedInstallation = SharedInstallation::new(Options::full(), &[]);

const NAMESPACE: &str = "default";
const POOL: &str = "pool";

/// One test's nodes, `DaemonSet` and rule, all with the same name.
struct Pool {
    client: Client,
    name: &'static str,
}

impl Pool {
    async fn new(name: &'static str) -> Result<Self> {
        let client = INSTALLATION.get().await?.client().await?;
        Ok(Self { client, name })
    }

    fn taint(&self) -> String {
        format!("readiness.k8s.io/{}", self.name)
    }

    fn condition(&self) -> String {
        format!("daemonset.nodegate.dev/{NAMESPACE}.{}", self.name)
    }

    /// A continuous rule that waits for the `DaemonSet`.
    fn rule(&self) -> RuleBuilder {
        let rule = fixtures::rule(self.name, &self.taint());
        rule.waits_for(&self.condition()).selects(POOL, self.name)
    }

    /// A kwok node that registers with the rule's taint.
    fn node(&self) -> NodeBuilder {
        fixtures::node(self.name)
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

    fn daemon_sets(&self) -> Api<DaemonSet> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    async fn delete_daemon_set(&self) -> Result<()> {
        let how = DeleteParams::background();
        self.daemon_sets().delete(self.name, &how).await?;
        Ok(())
    }

    /// Sets the pod of the `DaemonSet` with this UID Ready or not.
    async fn set_ready(&self, of: &DaemonSet, ready: bool) -> Result<()> {
        let uid = of.uid().context("a DaemonSet without a UID")?;
        let pod = eventually("the DaemonSet has a running pod", SOON, async || {
            let pods = pods_on(&self.client, self.name).await?;
            let own = pods.into_iter().find(|pod| {
                let status = pod.status.clone().unwrap_or_default();
                let mut owners = pod.owner_references().iter();
                status.phase.as_deref() == Some("Running") && owners.any(|it| it.uid == uid)
            });
            Ok(own)
        });
        set_pod_ready(&self.client, NAMESPACE, &pod.await?.name_any(), ready).await
    }

    async fn opens(&self) -> Result<()> {
        eventually_open(&self.client, self.name, &self.taint()).await
    }

    async fn is_gated(&self) -> Result<()> {
        eventually_gated(&self.client, self.name, &self.taint()).await
    }

    async fn stays_gated(&self) -> Result<()> {
        never("the node opens", A_WHILE, async || {
            Ok(!has_taint(&self.client, self.name, &self.taint()).await?)
        })
        .await
    }

    /// Waits until the node's condition for the `DaemonSet` has this status and reason.
    async fn says(&self, status: &str, reason: &str) -> Result<()> {
        let expected = Some((status.to_owned(), reason.to_owned()));
        eventually_eq("what the node says", SOON, expected, async || {
            let condition = node_condition(&self.client, self.name, &self.condition()).await?;
            Ok(condition.map(|it| (it.status, it.reason.unwrap_or_default())))
        })
        .await
    }
}

#[tokio::test]
async fn a_node_opens_when_the_daemon_set_has_a_ready_pod_there() -> Result<()> {
    let pool = Pool::new("ready").await?;
    pool.rule().bootstrap_only().create(&pool.client).await?;
    let agent = pool.daemon_set().never_ready().create(&pool.client).await?;
    pool.node().create(&pool.client).await?;
    pool.says("False", "PodNotReady").await?;
    pool.stays_gated().await?;
    pool.set_ready(&agent, true).await?;
    pool.opens().await?;
    pool.says("True", "DaemonSetReady").await?;
    // Deleting the rule withdraws the condition.
    delete_rule(&pool.client, pool.name).await?;
    eventually("the condition is withdrawn", SOON, async || {
        let condition = node_condition(&pool.client, pool.name, &pool.condition()).await?;
        Ok(condition.is_none())
    })
    .await
}

#[tokio::test]
async fn a_daemon_set_that_is_missing_comes_goes_and_comes_back_otherwise() -> Result<()> {
    let pool = Pool::new("comes-and-goes").await?;
    pool.rule().create(&pool.client).await?;
    pool.node().create(&pool.client).await?;
    pool.says("False", "DaemonSetNotFound").await?;
    pool.stays_gated().await?;
    pool.daemon_set().create(&pool.client).await?;
    pool.opens().await?;

    pool.delete_daemon_set().await?;
    pool.is_gated().await?;
    pool.says("False", "DaemonSetNotFound").await?;

    let mut again = pool.daemon_set().never_ready().build();
    let spec = again.spec.as_mut().context("it has a spec")?;
    let other = [("app".to_owned(), "another".to_owned())];
    spec.selector.match_labels = Some(other.clone().into());
    let template = spec.template.metadata.get_or_insert_default();
    template.labels = Some(other.into());
    let (api, how) = (pool.daemon_sets(), PostParams::default());
    let again = api.create(&how, &again).await?;
    pool.says("False", "PodNotReady").await?;
    pool.stays_gated().await?;
    pool.set_ready(&again, true).await?;
    pool.opens().await?;
    pool.set_ready(&again, false).await?;
    pool.is_gated().await
}

#[tokio::test]
async fn an_update_closes_a_node_again_where_the_rule_says_so() -> Result<()> {
    let pool = Pool::new("revisions").await?;
    let rule = pool.rule().bootstrap_only();
    let rule = rule.spec("regateOnRevision", json!(true));
    rule.create(&pool.client).await?;
    let agent = pool.daemon_set().never_ready().create(&pool.client).await?;
    pool.node().create(&pool.client).await?;
    pool.set_ready(&agent, true).await?;
    pool.opens().await?;
    let record = async || {
        let node = sights::node(&pool.client, pool.name).await?;
        let mut annotations = node.annotations().iter();
        let record = annotations.find(|(key, _)| key.contains("bootstrap-completed-"));
        let value: Value = serde_json::from_str(record.context("a record")?.1)?;
        let key = format!("{NAMESPACE}/{}", pool.name);
        anyhow::Ok(value["revisions"][key].as_str().map(str::to_owned))
    };
    let first = record().await?;
    assert!(first.is_some(), "the revision is on record");

    // Neither a pod that is not Ready nor its successor of the same revision closes the node.
    pool.set_ready(&agent, false).await?;
    let [pod] = &*pods_on(&pool.client, pool.name).await? else {
        bail!("one pod");
    };
    delete_pod(&pool.client, NAMESPACE, &pod.name_any()).await?;
    never("the node is closed", A_WHILE, async || {
        has_taint(&pool.client, pool.name, &pool.taint()).await
    })
    .await?;
    pool.set_ready(&agent, true).await?;

    let update = json!({"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}});
    let (how, update) = (PatchParams::default(), Patch::Merge(update));
    pool.daemon_sets().patch(pool.name, &how, &update).await?;
    pool.is_gated().await?;
    eventually("the pod is replaced", SOON, async || {
        let pods = pods_on(&pool.client, pool.name).await?;
        let is_new = |pod: &Pod| pod.annotations().get("version").is_some_and(|it| it == "2");
        Ok(matches!(&*pods, [pod] if is_new(pod)))
    })
    .await?;
    pool.stays_gated().await?;
    pool.set_ready(&agent, true).await?;
    pool.opens().await?;
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

#[tokio::test]
async fn nothing_is_watched_that_no_rule_names_and_a_restart_closes_nobody() -> Result<()> {
    let cluster = Cluster::start(Options::full()).await?;
    let client = cluster.client().await?;
    let pool = Pool {
        client: client.clone(),
        name: "watched",
    };
    let address = format!("127.0.0.1:{}", ports::free()?);
    let flag = format!("--metrics-bind-address={address}");
    let controller = Controller::start(&cluster, &[&flag]).await?;
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
    other.create(&client).await?;
    pool.node().create(&client).await?;
    eventually("both have a pod", SOON, async || {
        Ok(pods_on(&client, pool.name).await?.len() == 2)
    })
    .await?;
    holds(0).await?;

    // Two rules share one watch.
    pool.rule().create(&client).await?;
    let second = fixtures::rule("second", "readiness.k8s.io/second");
    let second = second.waits_for(&pool.condition()).selects(POOL, pool.name);
    second.create(&client).await?;
    pool.opens().await?;
    holds(1).await?;
    delete_rule(&client, "second").await?;
    holds(1).await?;

    // A new process closes nothing, neither before nor after it has synced.
    controller.stop().await?;
    let _controller = Controller::start(&cluster, &[&flag]).await?;
    never("the node is closed", A_WHILE * 3, async || {
        has_taint(&client, pool.name, &pool.taint()).await
    })
    .await?;
    holds(1).await?;
    delete_rule(&client, pool.name).await?;
    holds(0).await
}
