//! The picture of a real node's start, held against what its kubelet logs.

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use nodegate_tests::{SOON, has_words};
use serde_json::Value;
use testkit::nodegate::ask::{ask, ask_json};
use testkit::realnode::inside::alone;
use testkit::realnode::node::{NAME, options};

use crate::scene::{CRITICAL, Scene, TAINT, critical_rule};

/// What the kubelet logs once all containers of a pod run.
const RUNNING: &str = "Observed pod startup duration";

/// The value of a field of the kubelet's log, in the form of Go's clock or of the API.
fn logged(line: &str, field: &str) -> Result<Timestamp> {
    let (_, value) = line
        .split_once(&format!("{field}=\""))
        .with_context(|| format!("no {field} in {line}"))?;
    let mut words = value.split(['"', ' ']);
    let (day, time) = (words.next(), words.next());
    let [day, time] = [day, time].map(Option::unwrap_or_default);
    Ok(format!("{day}T{time}Z").parse()?)
}

fn time(value: &Value) -> Result<Timestamp> {
    let text = value
        .as_str()
        .with_context(|| format!("no time: {value}"))?;
    Ok(text.parse()?)
}

#[test]
fn the_picture_of_a_start_says_what_the_kubelet_logs() -> Result<()> {
    alone(async || {
        let scene = Scene::start(options(), vec![critical_rule().bootstrap_only()]).await?;
        let node = scene.released_node().await?;
        let kubeconfig = scene.cluster.kubeconfig();
        let start = ask_json(&kubeconfig, &["startup", NAME]).await?;
        println!("{start:#}");
        let created = time(&start["created"])?;
        let components = start["components"].as_array().context("no components")?;
        let phases = |name: &str| {
            let mut all = components.iter();
            let found = all.find(|it| it["component"] == format!("kube-system/{name}"));
            found.map(|it| &it["phases"])
        };
        node.kubelet()?.says(RUNNING, SOON).await?;
        let log = node.kubelet()?.log();
        let mut compared = 0;
        // It does so of most pods.
        for line in log.lines().filter(|line| line.contains(RUNNING)) {
            println!("{line}");
            let named = ["cni", "csi"].into_iter();
            let mut named =
                named.filter(|name| line.contains(&format!("pod=\"kube-system/{name}-")));
            let Some(phases) = named.next().and_then(phases) else {
                continue;
            };
            let made = logged(line, "podCreationTimestamp")?;
            ensure!(
                time(&phases["scheduled"][0])? == made,
                "made at {made}: {phases:#}"
            );
            // The kubelet looks each second, and the API has whole seconds.
            let (started, seen) = (&phases["started"], logged(line, "observedRunningTime")?);
            let late = seen.duration_since(time(&started[0])?).as_secs_f64();
            ensure!((0.0..2.5).contains(&late), "ran at {seen}: {phases:#}");
            ensure!(created <= made && time(&started[1])? >= time(&started[0])?);
            compared += 1;
        }
        ensure!(
            compared > 0,
            "the kubelet logs of no critical pod that it runs"
        );
        let released = time(&start["released"])?;
        ensure!(
            components
                .iter()
                .all(|it| time(&it["done"]).is_ok_and(|done| done <= released))
        );
        let said = ask(&kubeconfig, &["startup", &format!("node/{NAME}")]).await?;
        for words in [
            "daemonset/cni -n kube-system",
            "probed every 1s",
            CRITICAL,
            "last: ",
        ] {
            has_words(&said.out, words)?;
        }
        ensure!(!scene.is_held(TAINT).await?);
        Ok(())
    })
}
