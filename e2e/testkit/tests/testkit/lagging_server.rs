//! What a lagging API server shows, and a store restored from a backup: what tests of the two rely on.

use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::CSINode;
use kube::api::{GetParams, ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use testkit::kubernetes::changes::{delete_node, set_node_condition};
use testkit::kubernetes::fixtures::{node, set_csi_drivers};
use testkit::kubernetes::relay::Kind;
use testkit::kubernetes::{Cluster, LaggingServer, Options, eventually};

use crate::TURN;

const SOON: Duration = Duration::from_secs(20);
const SEEN: &str = "example.com/Seen";
/// How long a server waits for its watch to catch up before it reads from etcd.
const CATCHES_UP: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_server_lags_where_it_answers_from_what_its_watch_has_shown() -> Result<()> {
    let _turn = TURN.lock().await;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    let server = LaggingServer::start(&cluster).await?;
    let lagging = server.client().await?;
    let nodes: Api<Node> = Api::all(lagging.clone());
    let created = node("n").condition(SEEN, "False").create(&client).await?;
    let any = async || anyhow::Ok(seen(&nodes.get_with("n", &GetParams::any()).await?));
    eventually("the node is shown", SOON, async || {
        Ok(any().await? == "False")
    })
    .await?;
    // Advances the view past the version of the node: bookmarks come only then.
    set_csi_drivers(&client, &created, &[]).await?;
    nodes.list(&ListParams::default()).await?;
    server.freeze(Kind::NODES);
    set_node_condition(&client, "n", SEEN, "True").await?;

    assert_eq!(any().await?, "False");
    let changed = nodes.get("n").await?;
    assert_eq!(seen(&changed), "True");
    let list = nodes.list(&ListParams::default().match_any()).await?;
    assert_eq!(seen(&list.items[0]), "False");
    let begun = Instant::now();
    let list = nodes.list(&ListParams::default()).await?;
    assert_eq!(seen(&list.items[0]), "True");
    let took = begun.elapsed();
    assert!(took >= CATCHES_UP && took < 2 * CATCHES_UP, "{took:?}");
    let now = list.metadata.resource_version.context("a version")?;
    let begun = Instant::now();
    let first = nodes.list_metadata(&ListParams::default().limit(1)).await?;
    assert!(begun.elapsed() >= CATCHES_UP, "{:?}", begun.elapsed());
    assert!(version(first.metadata.resource_version)? >= version(Some(now.clone()))?);

    // From before the node came: the watch shows it, and then bookmarks at the version that the server takes for current.
    let before = (version(created.resource_version())? - 1).to_string();
    let (shown, ran) = watch(&nodes, &before).await?;
    let changed = version(changed.resource_version())?;
    let (events, versions): (Vec<_>, Vec<_>) = shown.into_iter().unzip();
    let [first, marks @ ..] = &events[..] else {
        panic!("nothing is shown");
    };
    assert_eq!(*first, "ADDED");
    assert!(
        !marks.is_empty() && marks.iter().all(|it| *it == "BOOKMARK"),
        "{events:?}"
    );
    assert!(
        versions.iter().all(|shown| *shown < changed),
        "{versions:?} and {changed}"
    );
    assert!(ran >= WATCHED, "{ran:?}");
    // From the current version on.
    let (shown, ran) = watch(&nodes, &now).await?;
    assert_eq!(shown, []);
    assert!(ran >= WATCHED, "{ran:?}");

    // No other kind lags, and nothing indicates the lag.
    set_csi_drivers(&client, &created, &["a.example.com"]).await?;
    let csi_nodes: Api<CSINode> = Api::all(lagging.clone());
    eventually("another kind is shown", SOON, async || {
        let csi_node = csi_nodes.get_with("n", &GetParams::any()).await?;
        Ok(csi_node.spec.drivers.len() == 1)
    })
    .await?;
    let ready = lagging.request_text(http::Request::get("/readyz").body(Vec::new())?);
    assert_eq!(ready.await?, "ok");
    set_node_condition(&lagging, "n", SEEN, "Unknown").await?;
    assert_eq!(any().await?, "False");

    server.thaw_all();
    eventually("what was missed is shown", SOON, async || {
        Ok(any().await? == "Unknown")
    })
    .await?;
    let begun = Instant::now();
    nodes.list(&ListParams::default()).await?;
    assert!(begun.elapsed() < CATCHES_UP, "{:?}", begun.elapsed());
    Ok(())
}

#[tokio::test]
async fn a_restored_store_gives_versions_out_a_second_time() -> Result<()> {
    let _turn = TURN.lock().await;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    let nodes: Api<Node> = Api::all(client.clone());
    node("kept")
        .condition(SEEN, "False")
        .create(&client)
        .await?;
    node("deleted").create(&client).await?;
    cluster.back_up_store().await?;
    set_node_condition(&client, "kept", SEEN, "True").await?;
    delete_node(&client, "deleted").await?;
    for _ in 0..100 {
        set_node_condition(&client, "kept", SEEN, "True").await?;
    }
    node("lost").create(&client).await?;
    let last = nodes.list(&ListParams::default()).await?.metadata;
    let last = last.resource_version.context("a version")?;
    cluster.restore_store().await?;

    let list = nodes.list(&ListParams::default()).await?;
    let names: Vec<_> = list.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["deleted", "kept"]);
    assert_eq!(seen(&list.items[1]), "False");
    assert!(version(list.metadata.resource_version)? < version(Some(last.clone()))?);
    let changing = set_node_condition(&client, "kept", SEEN, "Unknown");
    let (watched, changed) = tokio::join!(watch(&nodes, &last), changing);
    changed?;
    let (shown, ran) = watched?;
    assert_eq!(shown, [], "a watch from the future shows what happens");
    assert!(ran >= WATCHED, "{ran:?}");
    Ok(())
}

/// The shortest watch in which a bookmark comes.
const WATCHED: Duration = Duration::from_secs(3);

/// The events and versions of a watch that ends regularly, and how long it ran.
async fn watch(nodes: &Api<Node>, after: &str) -> Result<(Vec<(&'static str, u64)>, Duration)> {
    let begun = Instant::now();
    let parameters = WatchParams::default().timeout(3);
    let mut events = pin!(nodes.watch(&parameters, after).await?);
    let mut shown = Vec::new();
    while let Some(event) = events.try_next().await? {
        shown.push(match event {
            WatchEvent::Added(node) => ("ADDED", version(node.resource_version())?),
            WatchEvent::Modified(node) => ("MODIFIED", version(node.resource_version())?),
            WatchEvent::Deleted(node) => ("DELETED", version(node.resource_version())?),
            WatchEvent::Bookmark(mark) => {
                ("BOOKMARK", version(Some(mark.metadata.resource_version))?)
            }
            WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
        });
    }
    Ok((shown, begun.elapsed()))
}

fn version(version: Option<String>) -> Result<u64> {
    Ok(version.context("no version")?.parse()?)
}

/// The condition in the node, as text.
fn seen(node: &Node) -> String {
    let conditions = node.status.iter().flat_map(|status| &status.conditions);
    let condition = conditions.flatten().find(|it| it.type_ == SEEN);
    condition.map_or_else(String::new, |condition| condition.status.clone())
}
