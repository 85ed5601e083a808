//! Many rules and tolerations stay within the API server's cost budget for policies.

use std::time::{Duration, Instant};

use anyhow::Result;
use testkit::kubernetes::fixtures::DaemonSetBuilder;
use testkit::nodegate::fixtures::daemon_set;
use testkit::nodegate::{Cluster, Options};

use super::{added, all_are_known, install, naming, tried};

const MANY: usize = 200;

/// For one request, on a machine that is busy: idle, it takes a tenth.
const BOUND: Duration = Duration::from_secs(5);

/// The median time of some requests.
async fn median(request: impl AsyncFn() -> Result<Vec<String>>) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..15 {
        let start = Instant::now();
        request().await?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2])
}

#[tokio::test]
async fn two_hundred_rules_and_tolerations_are_within_the_budget() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    let large = || {
        let tolerations = (0..MANY).map(|number| format!("example.com/taint-{number}"));
        let add = |it: DaemonSetBuilder, key: String| it.tolerate(&key, "NoSchedule");
        tolerations.fold(daemon_set("kube-system/large"), add)
    };
    let before = [
        median(async || tried(&client, daemon_set("kube-system/small")).await).await?,
        median(async || tried(&client, large()).await).await?,
    ];
    if !install(&cluster).await? {
        return Ok(());
    }
    for number in 0..MANY {
        let other = format!("kube-system/other-{number}");
        let rule = naming(&format!("many-{number}"), &other);
        rule.create(&client).await?;
    }
    naming("large", "kube-system/large").create(&client).await?;
    all_are_known(&client, "cost-last").await?;
    let found = tried(&client, large()).await?;
    assert_eq!(found.len(), MANY + 1);
    assert!(found.contains(&added("large")), "{found:?}");
    let after = [
        median(async || tried(&client, daemon_set("kube-system/small")).await).await?,
        median(async || tried(&client, large()).await).await?,
    ];
    eprintln!(
        "without the policy {before:?}, with {MANY} rules {after:?}: no toleration and left alone, {MANY} and one added"
    );
    assert!(after.iter().all(|time| *time < BOUND), "{after:?}");
    Ok(())
}
