//! Bookmarks of a real API server come out of `kube::runtime::watcher`, in order with all changes: an update of kube that hides
//! them again is seen here.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use kube::api::{ApiResource, DynamicObject};
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{Config as WatchConfig, Event, watcher};
use kube::{Api, Config};
use nodegate::cluster::bookmarks::WatchLayer;
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::fixtures::node;
use testkit::nodegate::{Cluster, Options};

/// Long enough for three watches of 5 s.
const LASTS: Duration = Duration::from_secs(13);

#[tokio::test]
async fn progress_of_watches_is_seen_and_in_order() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let writer = cluster.client().await?;
    node("n").create(&writer).await?;
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = ClientBuilder::try_from(config)?
        .with_layer(&WatchLayer::default())
        .build();
    let nodes = ApiResource {
        group: String::new(),
        version: "v1".into(),
        api_version: "v1".into(),
        kind: "Node".into(),
        plural: "nodes".into(),
    };
    let api: Api<DynamicObject> = Api::all_with(client, &nodes);
    let mut events = watcher(api, WatchConfig::default().timeout(5)).boxed();
    let writes = tokio::spawn(async move {
        let mut writes = 0;
        loop {
            let status = if writes % 2 == 0 { "True" } else { "False" };
            if set_node_condition(&writer, "n", "example.com/Test", status)
                .await
                .is_err()
            {
                return;
            }
            writes += 1;
        }
    });

    let started = Instant::now();
    let (mut lists, mut changes, mut progress, mut reached) = (0, 0, 0, 0);
    while started.elapsed() < LASTS {
        let event = events.next().await.context("the watch ended")??;
        match event {
            Event::Init => lists += 1,
            Event::Apply(object) => {
                let version = object.metadata.resource_version.unwrap_or_default();
                let version: u64 = version.parse()?;
                if object.metadata.name.is_none() {
                    ensure!(version >= reached, "{version} after {reached}");
                    progress += 1;
                } else {
                    ensure!(version > reached, "{version} after {reached}");
                    changes += 1;
                }
                reached = version;
            }
            _ => {}
        }
    }
    writes.abort();
    ensure!(
        lists == 1 && changes > 100,
        "{lists} lists, {changes} changes"
    );
    ensure!(
        (5..=8).contains(&progress),
        "{progress} times in three watches"
    );
    Ok(())
}
