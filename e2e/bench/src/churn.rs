//! Unrelated status writes at a steady rate, which should change nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde_json::json;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::load::{AT_ONCE, patch_node_status, patch_pod_status};

/// Below this share of the intended rate the phase is invalid.
const ENOUGH: f64 = 0.9;

/// Writes unrelated statuses, alternately of a node and of a critical pod.
#[derive(Debug)]
pub(crate) struct Churn {
    per_second: u32,
    started: Instant,
    written: Arc<AtomicU32>,
    writing: JoinHandle<()>,
}

impl Churn {
    /// Starts with this many writes per second on these nodes and pods.
    pub(crate) fn start(
        client: Client,
        nodes: Vec<String>,
        pods: Vec<String>,
        per_second: u32,
    ) -> Self {
        let written = Arc::new(AtomicU32::new(0));
        let count = written.clone();
        let writing = tokio::spawn(async move {
            let mut ticks = interval(Duration::from_secs(1) / per_second);
            // Late ticks are made up for, to keep the rate.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            let mut under_way = JoinSet::new();
            let targets = nodes.into_iter().cycle().zip(pods.into_iter().cycle());
            for (node, pod) in targets {
                ticks.tick().await;
                under_way.spawn(beat(client.clone(), node));
                ticks.tick().await;
                under_way.spawn(restart_container(client.clone(), pod));
                // Do not overload a slow server.
                while under_way.len() >= AT_ONCE {
                    // One write in thousands may hit a closed connection. It is not repeated.
                    if let Some(Ok(Ok(()))) = under_way.join_next().await {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
                while let Some(ended) = under_way.try_join_next() {
                    if let Ok(Ok(())) = ended {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        Self {
            per_second,
            started: Instant::now(),
            written,
            writing,
        }
    }

    /// Ends it; returns a message if the rate was not reached.
    pub(crate) fn stop(self) -> Option<String> {
        let seconds = self.started.elapsed().as_secs_f64();
        self.writing.abort();
        let reached = f64::from(self.written.load(Ordering::Relaxed)) / seconds;
        let intended = self.per_second;
        (reached < ENOUGH * f64::from(intended)).then(|| {
            format!("of {intended} unrelated writes a second only {reached:.0} were possible: the machine is too busy")
        })
    }
}

/// A heartbeat of a condition that no rule uses.
async fn beat(client: Client, node: String) -> Result<()> {
    let now = Timestamp::now().to_string();
    let condition = json!({
        "type": "MemoryPressure",
        "status": "False",
        "message": format!("seen at {now}"),
        "lastHeartbeatTime": now,
    });
    patch_node_status(&client, &node, condition).await
}

/// A container restart in a pod that stays Ready.
async fn restart_container(client: Client, pod: String) -> Result<()> {
    static RESTARTS: AtomicU32 = AtomicU32::new(1);
    let restarts = RESTARTS.fetch_add(1, Ordering::Relaxed);
    let container = json!({
        "name": "main",
        "image": "example.invalid/main",
        "imageID": "",
        "ready": true,
        "restartCount": restarts,
    });
    patch_pod_status(&client, &pod, &json!({"containerStatuses": [container]})).await
}
