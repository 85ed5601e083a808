//! The story, step by step. Each step waits for what it announces.

use std::cell::RefCell;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use kube::{Client, ResourceExt};
use testkit::nodegate::changes::set_pod_ready;
use testkit::nodegate::fixtures::{self, set_csi_drivers};
use testkit::nodegate::{Cluster, eventually_eq, state};

use crate::checks::{Broken, check};
use crate::history::{History, Moment, node_of, record};
use crate::manifests::{
    CNI, CSI, DAEMON_SETS, NODES, PODS, PODS_PER_NODE, RULES, TAINTS, WORKLOAD, WORKLOADS,
};
use crate::screen::Screen;

/// The timeout of every wait. Waits take some seconds; longer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What [`released_and_running`] counts.
const RELEASED_AND_RUNNING: &str = "released nodes, and running pods of the workloads";

/// The delay between joining nodes.
const BETWEEN_NODES: Duration = Duration::from_millis(1300);

/// The time from a node's registration to Ready.
const NODE_READY_AFTER: Duration = Duration::from_millis(1500);

/// The time from the Ready pods to the registration of the CSI driver, so that a node is seen to wait for that alone.
const REGISTERED_AFTER: Duration = Duration::from_secs(2);

/// How long a status is shown before the next change.
const A_LOOK: Duration = Duration::from_millis(2500);

struct Story<'a> {
    cluster: &'a Cluster,
    client: &'a Client,
    history: &'a RefCell<History>,
    screen: Screen,
}

/// Lets nodes join, breaks and repairs one, and checks what was seen.
///
/// # Errors
///
/// When something does not happen, or not in time; the message says what.
pub(crate) async fn tell(cluster: &Cluster) -> Result<()> {
    let client = cluster.client().await?;
    let history = RefCell::default();
    let mut story = Story {
        cluster,
        client: &client,
        history: &history,
        screen: Screen::of(cluster),
    };
    tokio::select! {
        told = Box::pin(story.tell()) => told,
        () = record(&client, &history) => bail!("the watches have ended"),
    }
}

impl Story<'_> {
    async fn tell(&mut self) -> Result<()> {
        self.prepare().await?;
        self.join().await?;
        let broken = self.break_and_mend().await?;
        println!("\nWhat made the nodes slow, and where the time of one went?");
        self.screen.ask(&["startup"]).await?;
        self.screen.ask(&["startup", "node/node-1"]).await?;
        println!("\nAll of it on one page:");
        let page = std::env::current_exe()?.with_file_name("demo-report.html");
        let page = page.to_string_lossy();
        self.screen.ask(&["report", "--output-file", &page]).await?;
        println!("\nWatches have seen every state of nodes and pods meanwhile:\n");
        for happened in check(&self.history.borrow(), &broken)? {
            println!("ok   {happened}");
        }
        Ok(())
    }

    async fn prepare(&self) -> Result<()> {
        println!("\nNodegate runs as its own service account. Its two rules:\n");
        RULES.lines().for_each(|line| println!("    {line}"));
        let workload = WORKLOAD.replace("NAME", WORKLOADS[0]);
        for manifest in [RULES, DAEMON_SETS, &workload] {
            self.cluster.apply(manifest).await?;
        }
        self.until("pods of the workload", PODS, |history| {
            history.workload_now().len()
        })
        .await?;
        println!(
            "\nCritical are a CNI, and a CSI driver that the kubelet registers after its pod is Ready.\n\
             A workload of {PODS} pods waits. {NODES} nodes join, with the taint of the first rule."
        );
        Ok(())
    }

    async fn join(&mut self) -> Result<()> {
        self.screen.follow_status().await?;
        try_join_all((0..NODES).map(|before| self.join_after(before))).await?;
        self.until(RELEASED_AND_RUNNING, (NODES, PODS), released_and_running)
            .await?;
        tokio::time::sleep(A_LOOK).await;
        self.screen.end_status().await?;
        println!("\nAll nodes are released, and the workload runs.");
        Ok(())
    }

    /// Lets a node join after so many others, and plays the part of its kubelet that kwok lacks.
    async fn join_after(&self, before: usize) -> Result<()> {
        tokio::time::sleep(BETWEEN_NODES * u32::try_from(before)?).await;
        let name = format!("node-{}", before + 1);
        let node = fixtures::node(&name)
            .taint(TAINTS[0], "NoSchedule")
            .ready_after(NODE_READY_AFTER)
            .create(self.client)
            .await?;
        let what = format!("CNI and CSI driver of {name} have been Ready");
        self.until(&what, [true; 2], |history| {
            [CNI, CSI].map(|app| history.ready(app, &name).is_some())
        })
        .await?;
        tokio::time::sleep(REGISTERED_AFTER).await;
        let at = Instant::now();
        let csi_node = set_csi_drivers(self.client, &node, &["csi.example.com"]).await?;
        let registered = Moment::of(&csi_node, at);
        self.history
            .borrow_mut()
            .registered
            .insert(name, registered);
        Ok(())
    }

    async fn break_and_mend(&mut self) -> Result<Broken> {
        let node = format!("node-{}", NODES / 2);
        let all = PODS * WORKLOADS.len();
        println!(
            "\nNow the CNI pod of {node} breaks. The second rule gates the node, and leaves its pods alone.\n\
             Another workload of {PODS} pods comes."
        );
        self.screen.follow_status().await?;
        let cni_pod = state::running_pod(self.client, &node, CNI).await?;
        let broke_at = Instant::now();
        set_pod_ready(self.client, "kube-system", &cni_pod, false).await?;
        self.until("released nodes", NODES - 1, History::released)
            .await?;
        let workload = WORKLOAD.replace("NAME", WORKLOADS[1]);
        self.cluster.apply(&workload).await?;
        let share = (NODES - 1, all - PODS_PER_NODE);
        self.until(RELEASED_AND_RUNNING, share, released_and_running)
            .await?;
        tokio::time::sleep(A_LOOK).await;
        self.screen.end_status().await?;

        println!("\nThe other nodes took their share. {PODS_PER_NODE} pods wait for {node}. Why?");
        let pod = format!("pod/{}", self.waiting_pod()?);
        self.screen.ask(&["explain", &pod, "-n", "default"]).await?;
        let held = format!("node/{node}");
        self.screen.ask(&["explain", &held]).await?;
        self.screen.pause().await;

        println!("\nThe CNI pod gets Ready again.");
        self.screen.follow_status().await?;
        tokio::time::sleep(A_LOOK).await;
        let mended_at = Instant::now();
        set_pod_ready(self.client, "kube-system", &cni_pod, true).await?;
        self.until(RELEASED_AND_RUNNING, (NODES, all), released_and_running)
            .await?;
        tokio::time::sleep(A_LOOK).await;
        self.screen.end_status().await?;
        println!("\n{node} is released, and the pods that waited went there.");
        Ok(Broken {
            node,
            broke_at,
            mended_at,
        })
    }

    /// Waits until this is so.
    async fn until<T: PartialEq + Debug>(
        &self,
        what: &str,
        expected: T,
        look: impl Fn(&History) -> T,
    ) -> Result<()> {
        let look = async || Ok(look(&self.history.borrow()));
        eventually_eq(what, PATIENCE, expected, look).await
    }

    /// A pod of the workload that is not bound.
    fn waiting_pod(&self) -> Result<String> {
        let history = self.history.borrow();
        let mut pods = history.workload_now().into_iter();
        let waits = pods.find(|pod| node_of(pod).is_none());
        Ok(waits.context("no pod waits")?.name_any())
    }
}

fn released_and_running(history: &History) -> (usize, usize) {
    (history.released(), history.running())
}
