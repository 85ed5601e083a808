//! Tests of the harness itself, on which all other tests rely.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use kube_testbed::changes::{remove_node_condition, set_node_condition, set_pod_ready};
use kube_testbed::fixtures::{daemon_set, node, pod, set_csi_drivers};
use kube_testbed::sights::{has_taint, is_ready, node_condition, pods_on, taints};
use kube_testbed::{Cluster, ControllerManager, Options, eventually, eventually_eq, never};
use tokio::sync::OnceCell;

const SOON: Duration = Duration::from_secs(20);
const A_WHILE: Duration = Duration::from_millis(1500);

/// One cluster for the tests that touch only their own objects.
async fn shared() -> Result<&'static Cluster> {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    let options = Options {
        kwok: Some(Duration::from_secs(1)),
        ..Options::full()
    };
    CLUSTER
        .get_or_try_init(|| Cluster::start_shared(options))
        .await
}

#[tokio::test]
async fn pods_of_a_daemon_set_get_ready_after_the_delay_they_ask_for() -> Result<()> {
    let client = shared().await?.client().await?;
    let label = "control-plane-test/delay";
    node("delay")
        .label(label, "")
        .managed_by_kwok()
        .create(&client)
        .await?;
    daemon_set("delay")
        .node_selector(label, "")
        .tolerate_everything()
        .ready_after(A_WHILE)
        .create(&client)
        .await?;
    let running = async || {
        let pods = pods_on(&client, "delay").await?;
        Ok(pods.into_iter().find(|pod| phase(pod) == Some("Running")))
    };
    let pod = eventually("the pod runs", SOON, running).await?;
    assert!(!is_ready(&pod), "ready at once: {pod:?}");
    let pod = eventually("the pod is Ready", SOON, async || {
        Ok(pods_on(&client, "delay").await?.into_iter().find(is_ready))
    })
    .await?;
    assert_eq!(phase(&pod), Some("Running"));
    Ok(())
}

#[tokio::test]
async fn a_condition_of_somebody_else_survives_the_kubelets_heartbeats() -> Result<()> {
    let client = shared().await?.client().await?;
    node("beating")
        .condition("example.com/FromTheStart", "True")
        .managed_by_kwok()
        .create(&client)
        .await?;
    let beat = async || {
        let ready = node_condition(&client, "beating", "Ready").await?;
        anyhow::Ok(ready.and_then(|ready| ready.last_heartbeat_time))
    };
    let first = eventually("the first heartbeat", SOON, beat).await?;
    set_node_condition(&client, "beating", "example.com/NetworkReady", "False").await?;
    for condition in ["example.com/FromTheStart", "example.com/NetworkReady"] {
        let was = node_condition(&client, "beating", condition).await?;
        let was = was.with_context(|| format!("{condition} is gone at once"))?;
        eventually("two more heartbeats", SOON, async || {
            let now = beat().await?;
            Ok(now.is_some_and(|now| now.0 > first.0 + Duration::from_secs(2)))
        })
        .await?;
        assert_eq!(
            node_condition(&client, "beating", condition).await?,
            Some(was)
        );
    }
    remove_node_condition(&client, "beating", "example.com/NetworkReady").await?;
    assert_eq!(
        node_condition(&client, "beating", "example.com/NetworkReady").await?,
        None
    );
    Ok(())
}

#[tokio::test]
async fn a_pod_that_is_never_ready_gets_ready_when_told() -> Result<()> {
    let client = shared().await?.client().await?;
    node("told").managed_by_kwok().create(&client).await?;
    pod("told")
        .on("told")
        .tolerate_everything()
        .never_ready()
        .create(&client)
        .await?;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let ready = async || Ok(is_ready(&pods.get("told").await?));

    eventually("the pod runs", SOON, async || {
        Ok(phase(&pods.get("told").await?) == Some("Running"))
    })
    .await?;
    never("the pod gets Ready by itself", A_WHILE, ready).await?;
    set_pod_ready(&client, "default", "told", true).await?;
    assert!(ready().await?);
    set_pod_ready(&client, "default", "told", false).await?;

    pod("late")
        .on("told")
        .tolerate_everything()
        .ready_after(A_WHILE / 2)
        .create(&client)
        .await?;
    eventually("the late pod runs", SOON, async || {
        Ok(phase(&pods.get("late").await?) == Some("Running"))
    })
    .await?;
    set_pod_ready(&client, "default", "late", false).await?;
    never("a delay under way goes on", A_WHILE, async || {
        Ok(is_ready(&pods.get("late").await?))
    })
    .await?;
    never("the pod gets Ready again by itself", A_WHILE, ready).await?;

    pods.delete("told", &kube::api::DeleteParams::default())
        .await?;
    eventually("kwok lets the pod go", SOON, async || {
        Ok(pods.get_opt("told").await?.is_none())
    })
    .await
}

#[tokio::test]
async fn a_node_gets_ready_when_its_kubelet_is_told() -> Result<()> {
    let client = shared().await?.client().await?;
    node("slow").ready_after(A_WHILE).create(&client).await?;
    node("broken").never_ready().create(&client).await?;
    node("bare")
        .taint("example.com/startup", "NoSchedule")
        .create(&client)
        .await?;
    let status = async |name: &str| {
        let ready = node_condition(&client, name, "Ready").await?;
        anyhow::Ok(ready.map(|ready| ready.status))
    };
    let is = |status: &str| Some(status.to_owned());
    eventually_eq("the slow node joins", SOON, is("False"), async || {
        status("slow").await
    })
    .await?;
    eventually_eq("the slow node is Ready", SOON, is("True"), async || {
        status("slow").await
    })
    .await?;
    assert_eq!(status("broken").await?, is("False"));
    assert_eq!(
        status("bare").await?,
        None,
        "kwok manages a node that is not its own"
    );
    assert!(has_taint(&client, "bare", "example.com/startup").await?);
    assert!(has_taint(&client, "bare", "node.kubernetes.io/not-ready").await?);

    set_node_condition(&client, "slow", "Ready", "False").await?;
    never("kwok overrules the test", A_WHILE, async || {
        Ok(status("slow").await? != is("False"))
    })
    .await
}

#[tokio::test]
async fn csi_drivers_come_and_go_with_their_node() -> Result<()> {
    let cluster = shared().await?;
    let client = cluster.client().await?;
    let node = node("csi").managed_by_kwok().create(&client).await?;
    set_csi_drivers(&client, &node, &["a.example.com", "b.example.com"]).await?;
    let csi_node = set_csi_drivers(&client, &node, &["b.example.com"]).await?;
    assert_eq!(csi_node.spec.drivers.len(), 1);
    assert_eq!(
        csi_node.owner_references()[0].uid,
        node.uid().unwrap_or_default()
    );
    kube_testbed::changes::delete_node(&client, "csi").await?;
    let gone = async || {
        let left = cluster
            .kubectl(&["get", "csinodes", "--ignore-not-found", "csi"])
            .await?;
        Ok(left.is_empty())
    };
    eventually("the CSINode is collected", SOON, gone).await
}

#[tokio::test]
async fn a_service_account_is_what_its_kubeconfig_says() -> Result<()> {
    let cluster = shared().await?;
    let admin = cluster.client().await?;
    let mut account = ServiceAccount::default();
    account.metadata.name = Some("reader".to_owned());
    Api::default_namespaced(admin.clone())
        .create(&PostParams::default(), &account)
        .await?;
    let kubeconfig = cluster
        .kubeconfig_for_service_account("default", "reader")
        .await?;
    let reader = cluster.client_for(&kubeconfig).await?;

    assert!(
        !may_list_nodes(&reader).await?,
        "a service account without a role may list nodes"
    );
    cluster
        .kubectl(&[
            "create",
            "clusterrolebinding",
            "reader",
            "--clusterrole=cluster-admin",
            "--serviceaccount=default:reader",
        ])
        .await?;
    eventually("the role is in force", SOON, async || {
        may_list_nodes(&reader).await
    })
    .await
}

#[tokio::test]
async fn kubectl_applies_manifests_and_says_why_it_cannot() -> Result<()> {
    let cluster = shared().await?;
    cluster
        .apply("{apiVersion: v1, kind: Namespace, metadata: {name: applied}}")
        .await?;
    let name = cluster
        .kubectl(&["get", "namespace", "applied", "-o", "name"])
        .await?;
    assert_eq!(name.trim(), "namespace/applied");
    let error = cluster
        .apply("{apiVersion: v1, kind: Nothing, metadata: {name: x}}")
        .await;
    let error = error.map_err(|error| error.to_string());
    assert!(
        error.as_ref().is_err_and(|error| error.contains("Nothing")),
        "{error:?}"
    );
    Ok(())
}

#[tokio::test]
async fn data_survives_a_restart_of_the_api_server() -> Result<()> {
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    let client = cluster.client().await?;
    node("kept").create(&client).await?;
    cluster.stop_api_server();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    assert!(
        namespaces
            .list(&kube::api::ListParams::default())
            .await
            .is_err()
    );
    cluster.start_api_server().await?;
    // The old client still works: the port is the same.
    assert_eq!(
        kube_testbed::sights::node(&client, "kept")
            .await?
            .name_any(),
        "kept"
    );
    assert!(cluster.audit_log().contains(r#""verb":"create""#));
    Ok(())
}

#[tokio::test]
async fn with_node_lifecycle_a_ready_node_loses_the_taint_it_was_born_with() -> Result<()> {
    let cluster = Cluster::start(Options {
        controller_manager: ControllerManager::Complete,
        ..Options::full()
    })
    .await?;
    let client = cluster.client().await?;
    node("born").managed_by_kwok().create(&client).await?;
    eventually("the node is open", SOON, async || {
        Ok(taints(&client, "born").await?.is_empty())
    })
    .await?;
    pod("workload").create(&client).await?;
    eventually("a workload gets scheduled and Ready", SOON, async || {
        Ok(pods_on(&client, "born").await?.iter().any(is_ready))
    })
    .await
}

#[tokio::test]
async fn nothing_is_left_of_a_cluster_that_is_dropped() -> Result<()> {
    let cluster = Cluster::start(Options {
        reuse: false,
        ..Options::api_only()
    })
    .await?;
    let folder = cluster.folder().to_owned();
    let pids: BTreeMap<String, u32> = cluster.pids();
    assert_eq!(
        pids.keys().map(String::as_str).collect::<Vec<_>>(),
        ["etcd", "kube-apiserver"]
    );
    assert!(pids.values().all(|&pid| is_alive(pid)));
    drop(cluster);
    assert!(!pids.values().any(|&pid| is_alive(pid)));
    assert!(!folder.exists());
    Ok(())
}

#[tokio::test]
async fn a_cluster_does_not_outlive_an_owner_that_is_killed() -> Result<()> {
    let mut owner = Command::new(env!("CARGO_BIN_EXE_cluster"))
        .arg("up")
        .stdout(Stdio::piped())
        .spawn()?;
    let output = owner.stdout.take().context("the output is not piped")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let kubeconfig = line
        .trim()
        .strip_prefix("export KUBECONFIG=")
        .with_context(|| format!("no kubeconfig in {line:?}"))?;
    let running = processes_that_mention(kubeconfig);
    assert!(running >= 3, "{running} processes use {kubeconfig}");
    owner.kill()?;
    owner.wait()?;
    eventually_eq("the processes end", SOON, 0, async || {
        Ok(processes_that_mention(kubeconfig))
    })
    .await
}

/// How many processes have this text in their command line. Linux only, since it reads `/proc`.
fn processes_that_mention(text: &str) -> usize {
    let Ok(entries) = fs::read_dir("/proc") else {
        return 0;
    };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok())
        .filter(|command| command.contains(text))
        .count()
}

async fn may_list_nodes(client: &Client) -> Result<bool> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some("list".to_owned()),
                resource: Some("nodes".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = Api::all(client.clone())
        .create(&PostParams::default(), &review)
        .await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

fn is_alive(pid: u32) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap_or_default()
}
