//! Starts of nodes: those of the cluster that all tests here share, whose released node got its network last.

use anyhow::{Context, Result, ensure};
use nodegate_tests::has_words;
use testkit::nodegate::ask::{ask_json, command};

use crate::golden::normal;
use crate::world::{HELD, RELEASED, TURN, world};

#[tokio::test]
async fn a_start_shows_what_was_waited_for_and_what_came_last() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let node = format!("node/{RELEASED}");
    let said = world.asks(&["startup", &node], 0).await?;
    for words in [
        "node/worker-2  released ",
        " after it was created, ",
        "kubelet Ready ",
        "daemonset/cni -n default ",
        "probed every 10s",
        "example.com/StorageReady ",
        "last: daemonset/cni -n default\n",
    ] {
        has_words(&said.out, words)?;
    }
    let start = ask_json(&world.cluster.kubeconfig(), &["startup", &node]).await?;
    assert_eq!(start["last"], "default/cni", "{start:#}");
    let components = start["components"].as_array().context("no components")?;
    let done = |it: &serde_json::Value| it["done"].as_str().map(str::to_owned);
    let times: Option<Vec<String>> = components.iter().map(done).collect();
    let times = times.with_context(|| format!("{start:#}"))?;
    ensure!(times.is_sorted() && times.len() == 3, "{start:#}");
    let created = start["created"].as_str().context("not created")?;
    ensure!(times.iter().all(|it| &**it >= created), "{start:#}");
    Ok(())
}

#[tokio::test]
async fn the_start_of_a_held_node_goes_up_to_now() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let start = ask_json(&world.cluster.kubeconfig(), &["startup", HELD]).await?;
    assert_eq!((&start["held"], &start["last"]), (&true.into(), &().into()));
    let components = start["components"].as_array().context("no components")?;
    let mut network = components.iter();
    let network = network.find(|it| it["component"] == "default/cni");
    let network = network.with_context(|| format!("{start:#}"))?;
    ensure!(network["done"].is_null(), "{start:#}");
    ensure!(network["phases"]["scheduled"].is_array(), "{start:#}");
    Ok(())
}

#[tokio::test]
async fn the_nodes_that_joined_last_are_one_table_from_a_dump_too() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let said = world.asks(&["startup"], 0).await?;
    for words in [
        "2 nodes that joined last: 1 released, 1 held",
        "COMPONENT",
        "default/cni was last on 1 of 1 node",
        "without its wait for the next probe",
    ] {
        has_words(&said.out, words)?;
    }
    let one = world.asks(&["startup", "--last", "1"], 0).await?;
    has_words(&one.out, "1 node that joined last")?;
    let folder = world.path("startup-dump");
    world.asks(&["dump", &folder], 0).await?;
    let dumped = world.asks(&["startup", "--from", &folder], 0).await?;
    assert_eq!(normal(&dumped.out), normal(&said.out));
    Ok(())
}

#[tokio::test]
async fn without_utf_8_bars_are_ascii_and_what_is_no_node_is_refused() -> Result<()> {
    let world = world().await?;
    let _turn = TURN.lock().await;
    let node = format!("node/{RELEASED}");
    for (locale, is_ascii) in [("C", true), ("C.UTF-8", false)] {
        let mut command = command(&world.cluster.kubeconfig(), &["startup", &node])?;
        let output = command.env("LC_ALL", locale).output()?;
        let out = String::from_utf8(output.stdout)?;
        ensure!(out.is_ascii() == is_ascii, "{locale}: {out}");
    }
    world.asks(&["startup", "rule/network"], 64).await?;
    let said = world.asks(&["startup", "node/worker-3"], 1).await?;
    has_words(&said.err, "there is no node worker-3; did you mean ")
}
