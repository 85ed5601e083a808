//! Rules that wait for DRA devices, for a check, and for all `DaemonSet`s, on a real control plane. The tests share one
//! cluster, and each has its own node pool.

use anyhow::Result;
use k8s_openapi::api::resource::v1::ResourceSlice;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use nodegate_suite::gates::{eventually_gated, eventually_open};
use nodegate_suite::{A_WHILE, SOON};
use nodegate_testbed::changes::{delete_rule, set_pod_ready};
use nodegate_testbed::fixtures::{self, NodeBuilder, RuleBuilder};
use nodegate_testbed::sights::{has_taint, node_condition, pods_on};
use nodegate_testbed::{Options, SharedInstallation, eventually, eventually_eq, never};
use serde_json::{Value, json};

static INSTALLATION: SharedInstallation = SharedInstallation::new(Options::full(), &[]);

const POOL: &str = "pool";

/// One test's node and rule, both with the same name.
struct Pool {
    client: Client,
    name: &'static str,
    condition: &'static str,
}

impl Pool {
    async fn new(name: &'static str, condition: &'static str) -> Result<Self> {
        let client = INSTALLATION.get().await?.client().await?;
        Ok(Self {
            client,
            name,
            condition,
        })
    }

    fn taint(&self) -> String {
        format!("readiness.k8s.io/{}", self.name)
    }

    fn rule(&self) -> RuleBuilder {
        let rule = fixtures::rule(self.name, &self.taint());
        rule.waits_for(self.condition).selects(POOL, self.name)
    }

    fn node(&self) -> NodeBuilder {
        let node = fixtures::node(self.name).label(POOL, self.name);
        node.taint(&self.taint(), "NoSchedule")
    }

    async fn opens(&self) -> Result<()> {
        eventually_open(&self.client, self.name, &self.taint()).await
    }

    async fn closes(&self) -> Result<()> {
        eventually_gated(&self.client, self.name, &self.taint()).await
    }

    async fn stays_closed(&self) -> Result<()> {
        never("the node opens", A_WHILE, async || {
            Ok(!has_taint(&self.client, self.name, &self.taint()).await?)
        })
        .await
    }

    /// Waits until the node's condition has this status and reason.
    async fn says(&self, status: &str, reason: &str) -> Result<()> {
        let expected = Some((status.to_owned(), reason.to_owned()));
        eventually_eq("what the node says", SOON, expected, async || {
            let condition = node_condition(&self.client, self.name, self.condition).await?;
            Ok(condition.map(|it| (it.status, it.reason.unwrap_or_default())))
        })
        .await
    }
}

/// A slice of the node's pool, which has this many slices.
fn slice(name: &str, node: &str, of: u32, devices: &Value) -> Result<ResourceSlice> {
    let pool = json!({"name": node, "generation": 1, "resourceSliceCount": of});
    let spec = json!({
        "driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices,
    });
    let metadata = json!({"name": name});
    Ok(serde_json::from_value(json!({
        "metadata": metadata, "spec": spec,
    }))?)
}

#[tokio::test]
async fn a_node_opens_when_all_slices_of_its_pool_are_published() -> Result<()> {
    let pool = Pool::new("devices", "resourceslice.nodegate.dev/gpu.example.com").await?;
    pool.rule().create(&pool.client).await?;
    pool.node().create(&pool.client).await?;
    pool.says("False", "DevicesNotPublished").await?;
    let slices: Api<ResourceSlice> = Api::all(pool.client.clone());
    let create = async |name: &str, devices: Value| -> Result<()> {
        let slice = slice(name, pool.name, 2, &devices)?;
        slices.create(&PostParams::default(), &slice).await?;
        Ok(())
    };
    create("devices-a", json!([{"name": "gpu-0"}])).await?;
    pool.stays_closed().await?;
    create("devices-b", json!([{"name": "gpu-1"}])).await?;
    pool.opens().await?;
    pool.says("True", "DevicesPublished").await?;

    let how = DeleteParams::default();
    slices.delete("devices-b", &how).await?;
    pool.closes().await?;
    let condition = node_condition(&pool.client, pool.name, pool.condition).await?;
    let message = condition.and_then(|it| it.message).unwrap_or_default();
    assert_eq!(
        message,
        "gpu.example.com has published 1 of 2 ResourceSlices with 1 devices, 0 of them tainted"
    );
    delete_rule(&pool.client, pool.name).await
}

#[tokio::test]
async fn a_node_opens_when_the_newest_run_of_its_check_succeeds() -> Result<()> {
    let pool = Pool::new("check", "check.nodegate.dev/default.nccl").await?;
    pool.rule().bootstrap_only().create(&pool.client).await?;
    pool.node().create(&pool.client).await?;
    pool.says("False", "CheckMissing").await?;
    let run = async |name: &str| -> Result<()> {
        let run = fixtures::pod(&format!("default/{name}")).on(pool.name);
        let run = run.label("nodegate.dev/check", "nccl");
        run.tolerate_everything().create(&pool.client).await?;
        Ok(())
    };
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::default_namespaced(pool.client.clone());
    let ends = async |name: &str, phase: &str| -> Result<()> {
        let patch = Patch::Merge(json!({"status": {"phase": phase}}));
        let how = PatchParams::default();
        pods.patch_status(name, &how, &patch).await?;
        Ok(())
    };
    run("first").await?;
    pool.says("False", "CheckRunning").await?;
    ends("first", "Failed").await?;
    pool.says("False", "CheckFailed").await?;
    pool.stays_closed().await?;
    // Times have whole seconds.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    run("second").await?;
    ends("second", "Succeeded").await?;
    pool.opens().await?;
    pool.says("True", "CheckSucceeded").await
}

#[tokio::test]
async fn a_node_opens_when_every_daemon_set_that_runs_there_is_ready() -> Result<()> {
    let pool = Pool::new("all", "daemonsets.nodegate.dev/all").await?;
    let daemon_set = |name: &str| {
        let daemon_set = fixtures::daemon_set(&format!("default/{name}"));
        daemon_set.node_selector(POOL, pool.name)
    };
    pool.rule().create(&pool.client).await?;
    let agent = daemon_set("agent").tolerate_everything().never_ready();
    agent.create(&pool.client).await?;
    // It does not tolerate the rule's taint.
    daemon_set("other").create(&pool.client).await?;
    let ignored = daemon_set("ignored").tolerate_everything().never_ready();
    let ignored = ignored.label("nodegate.dev/ignore", "true");
    ignored.create(&pool.client).await?;
    let node = pool.node().allocatable("pods", "100");
    let node = node.allocatable("cpu", "8").managed_by_kwok();
    node.create(&pool.client).await?;
    pool.says("False", "PodNotReady").await?;
    pool.stays_closed().await?;
    let pod = eventually("the DaemonSet has a running pod", SOON, async || {
        let pods = pods_on(&pool.client, pool.name).await?;
        let own = pods.into_iter().find(|pod| {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            let phase = pod
                .status
                .as_ref()
                .and_then(|status| status.phase.as_deref());
            name.starts_with("agent-") && phase == Some("Running")
        });
        Ok(own.and_then(|pod| pod.metadata.name))
    });
    set_pod_ready(&pool.client, "default", &pod.await?, true).await?;
    pool.opens().await
}
