//! Compares the model with the real API server: the same requests must get the same answers from both, and the same watches
//! must show the same events in the same order.

mod outcome;
mod pair;
mod random;
mod real;
mod sequences;
mod step;

use std::cell::RefCell;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use nodegate_simulation::watch::bookmark;
use nodegate_simulation::{EventType, Key, Kind, Request, Selector, Server};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner, contextualize_config};
use serde_json::{Value, json};
use testkit::kubernetes::versions::is_since;
use testkit::nodegate::definitions::KARPENTER;
use testkit::nodegate::{Cluster, Options};
use tokio::runtime::Runtime;

use crate::pair::Pair;
use crate::real::Real;

/// The number of random sequences, and their seed. `PROPTEST_CASES` and `PROPTEST_RNG_SEED` override them.
const SEQUENCES: u32 = 150;
const SEED: RngSeed = RngSeed::Fixed(1);

/// How long a watch that is read to its end stays open, in seconds. Its bookmark comes 2 s before the end.
const SHORT: u32 = 4;

#[tokio::test]
async fn the_model_does_what_the_api_server_does_in_telling_sequences() -> Result<()> {
    let mut pair = pair().await?;
    let mut differences = Vec::new();
    for (name, steps) in sequences::all() {
        if let Err(difference) = pair.run(&steps).await {
            differences.push(format!("{name}: {difference:#}"));
        }
    }
    ensure!(differences.is_empty(), "{}", differences.join("\n\n"));
    Ok(())
}

#[test]
fn the_model_does_what_the_api_server_does_in_sequences_made_by_chance() -> Result<()> {
    let runtime = Runtime::new().context("starting a runtime")?;
    let pair = runtime.block_on(pair())?;
    let client = runtime.block_on(pair.cluster.client())?;
    let what = "a status patch of a custom resource that leaves its managed fields alone";
    if !runtime.block_on(is_since(&client, 36, what))? {
        return Ok(());
    }
    let pair = RefCell::new(pair);
    let usual = Config {
        cases: SEQUENCES,
        rng_seed: SEED,
        failure_persistence: None,
        max_shrink_iters: 300,
        ..Config::default()
    };
    let mut runner = TestRunner::new(contextualize_config(usual));
    let run = runner.run(&random::steps(), |steps| {
        let result = runtime.block_on(pair.borrow_mut().run(&steps));
        result.map_err(|difference| TestCaseError::fail(format!("{difference:#}")))
    });
    run.map_err(|error| anyhow::anyhow!("{error}"))
}

#[tokio::test]
async fn a_watch_ends_with_a_bookmark_and_is_refused_from_a_forgotten_revision() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let real = Real::new(&cluster).await?;
    let mut model = Server::new(0);
    let key = Key::cluster(Kind::Node, "n");
    let create = Request::Create {
        key: key.clone(),
        object: json!({}),
    };
    let since = real.revision(Kind::Node).await?;
    // A bookmark carries nothing of what the watch started with.
    let watch = real.watch(Kind::Node, "", "", &since, SHORT).await?;
    real.answer(&create).await?;
    model.answer(&create, Timestamp::UNIX_EPOCH)?;
    let seen = watch.rest().await?;
    let types: Vec<&str> = seen
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    let bookmarks = types.strip_prefix(&["ADDED"]).unwrap_or_default();
    assert!(
        !bookmarks.is_empty() && bookmarks.iter().all(|it| *it == "BOOKMARK"),
        "{seen:?}"
    );
    let bookmark = bookmark(Kind::Node, model.revision());
    assert_eq!(bookmark.event_type, EventType::Bookmark);
    let fields = |object: &Value| {
        let mut object = outcome::comparable(Kind::Node, object);
        let metadata = object["metadata"].take();
        (object, metadata)
    };
    assert_eq!(
        fields(&seen[1]["object"]),
        fields(&bookmark.object),
        "what a bookmark says"
    );

    // A server that has just started knows only the current state.
    let delete = Request::Delete {
        key,
        preconditions: nodegate_simulation::Preconditions::default(),
        grace: None,
    };
    real.answer(&delete).await?;
    model.answer(&delete, Timestamp::UNIX_EPOCH)?;
    cluster.restart_api_server().await?;
    model.compact(model.revision());
    let watch = real.watch(Kind::Node, "", "", &since, SHORT).await?;
    let seen = watch.rest().await?;
    let refusal = model
        .events(Kind::Node, None, &Selector::default(), 1)
        .err()
        .context("the model remembers")?;
    let status = &seen.first().context("no event")?["object"];
    assert_eq!(status["code"], json!(refusal.code), "{seen:?}");
    assert_eq!(status["reason"], json!(refusal.reason), "{seen:?}");
    Ok(())
}

async fn pair() -> Result<Pair> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install_crd().await?;
    cluster.install_definitions(&KARPENTER).await?;
    Pair::new(cluster).await
}
