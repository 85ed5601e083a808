//! The measured scene: three rules and their nodes.
//!
//! | rule | nodes |
//! |---|---|
//! | `gate`, continuous, with a disruption guard | `node-of-gate` is held and then released, `other-of-gate` always released |
//! | `boot`, bootstrap-only | `node-of-boot` registers with the taint and is released |
//! | `parts`, continuous, on critical components | `node-of-parts` is held: `DaemonSet` `cni` has no pod there. `stray` is shut out |

use anyhow::Result;
use kube::Client;
use nodegate_tests::gates::{eventually_gated, eventually_released};
use nodegate_tests::rules::key;
use serde_json::json;
use testkit::nodegate::changes;
use testkit::nodegate::fixtures::{daemon_set, node, rule};

/// The condition of `gate` and `boot`.
pub(crate) const READY: &str = "example.com/Ready";
/// The condition of `parts`.
pub(crate) const COMPONENTS: &str = "node.gardener.cloud/CriticalComponentsReady";
pub(crate) const NODES: [&str; 4] = [
    "node-of-gate",
    "other-of-gate",
    "node-of-boot",
    "node-of-parts",
];

/// Plays the scene.
pub(crate) async fn play(client: &Client) -> Result<()> {
    for (name, pool, status) in [
        ("node-of-gate", "gate", "False"),
        ("other-of-gate", "gate", "True"),
    ] {
        node(name)
            .label("pool", pool)
            .label("topology.kubernetes.io/region", "region-a")
            .label("topology.kubernetes.io/zone", "zone-a")
            .condition(READY, status)
            .create(client)
            .await?;
    }
    node("node-of-parts")
        .label("pool", "parts")
        .create(client)
        .await?;
    daemon_set("kube-system/cni")
        .critical()
        .tolerate(&key("parts"), "NoSchedule")
        .create(client)
        .await?;
    daemon_set("kube-system/stray")
        .critical()
        .create(client)
        .await?;
    let of = |name: &str, condition: &str| {
        rule(name, &key(name))
            .selects("pool", name)
            .waits_for(condition)
    };
    let guarded = of("gate", READY).nodegate("disruption", json!({}));
    guarded.create(client).await?;
    of("boot", READY).bootstrap_only().create(client).await?;
    of("parts", COMPONENTS).create(client).await?;
    node("node-of-boot")
        .label("pool", "boot")
        .taint(&key("boot"), "NoSchedule")
        .condition(READY, "True")
        .create(client)
        .await?;
    for (name, rule) in [("node-of-gate", "gate"), ("node-of-parts", "parts")] {
        eventually_gated(client, name, &key(rule)).await?;
    }
    changes::set_node_condition(client, "node-of-gate", READY, "True").await?;
    for (name, rule) in [("node-of-gate", "gate"), ("node-of-boot", "boot")] {
        eventually_released(client, name, &key(rule)).await?;
    }
    Ok(())
}
