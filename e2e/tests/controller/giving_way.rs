//! The controller keeps to the request rates of its flags, and the API server gives it the share that its flow schemas ask
//! for.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nodegate_tests::PROMPTLY;
use nodegate_tests::network::{CONDITION, TAINT, eventually_gated_nodes, name};
use nodegate_tests::rules::create_rule;
use testkit::nodegate::fixtures::node;
use testkit::nodegate::install::manifests;
use testkit::nodegate::{Cluster, Controller, Options, eventually, never};

#[tokio::test]
async fn no_more_requests_are_made_a_second_than_the_flags_say() -> Result<()> {
    const COUNT: usize = 40;
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    let client = cluster.client().await?;
    for index in 0..COUNT {
        node(&name(index)).create(&client).await?;
    }
    let limits = [
        "--kube-api-qps=10",
        "--kube-api-burst=5",
        "--leader-elect",
        "--max-first-gated=100%",
    ];
    let _controller = Controller::start(&cluster, &limits).await?;
    let writes = || {
        let mut writes = cluster.controllers_writes();
        writes.retain(|write| write.resource != "leases");
        writes.len()
    };
    create_rule(&client, "network", TAINT, CONDITION).await?;
    // A new leader first proves that its view is current, which takes seconds.
    eventually("the first node is gated", PROMPTLY, async || {
        let writes = cluster.controllers_writes();
        Ok(writes.iter().any(|write| write.resource == "nodes"))
    })
    .await?;
    let (start, before) = (Instant::now(), writes());
    let mut last = (0, Duration::ZERO);
    never("there are too many", Duration::from_secs(6), async || {
        let elapsed = start.elapsed();
        let made = writes() - before;
        last = (made, elapsed);
        // A burst, ten a second, and what was under way while this was counted.
        Ok(made > 8 + usize::try_from(start.elapsed().as_millis() / 95)?)
    })
    .await?;
    ensure!(last.0 > 35, "only {} in {:?}", last.0, last.1);
    eventually_gated_nodes(&client, COUNT, PROMPTLY).await
}

#[tokio::test]
async fn the_api_server_takes_the_share_of_its_attention_that_is_asked_for() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    for file in ["priority_level.yaml", "flow_schemas.yaml"] {
        let manifest = manifests("flowcontrol").join(file);
        cluster.kubectl_on(&["apply"], &manifest).await?;
    }
    for name in ["nrr-leader-election", "nrr-controller-manager"] {
        eventually("the flow schema is in force", PROMPTLY, async || {
            let path = "jsonpath={.status.conditions[?(@.type==\"Dangling\")].status}";
            let get = format!("get flowschema {name} -o {path}");
            Ok(cluster.types(&get).await?.trim() == "False")
        })
        .await?;
    }
    Ok(())
}
