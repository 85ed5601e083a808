//! CSI drivers that critical pods wait for.

use anyhow::Result;
use nodegate_testbed::fixtures::set_csi_drivers;

use crate::pool::Pool;

#[tokio::test]
async fn every_driver_that_critical_pods_wait_for_must_be_registered() -> Result<()> {
    let pool = Pool::under_gardeners_rule("csi-drivers").await?;
    pool.daemon_set("two")
        .wait_for_csi_driver("a", "a.csi.example.com")
        .wait_for_csi_driver("b", "b.csi.example.com")
        .create(&pool.client)
        .await?;
    pool.daemon_set("one")
        .wait_for_csi_driver("any", "c.csi.example.com")
        .create(&pool.client)
        .await?;
    let node = pool.join(pool.node()).await?;
    // The node has no CSINode yet.
    pool.is_held_because("CSI drivers a.csi.example.com, b.csi.example.com, c.csi.example.com are not registered on this node")
        .await?;
    set_csi_drivers(
        &pool.client,
        &node,
        &["a.csi.example.com.other", "example.com"],
    )
    .await?;
    pool.is_held_because("CSI drivers a.csi.example.com, b.csi.example.com, c.csi.example.com are not registered on this node")
        .await?;
    set_csi_drivers(
        &pool.client,
        &node,
        &["a.csi.example.com", "c.csi.example.com"],
    )
    .await?;
    pool.is_held_because("CSI driver b.csi.example.com is not registered on this node")
        .await?;
    let all = [
        "a.csi.example.com",
        "b.csi.example.com",
        "c.csi.example.com",
    ];
    set_csi_drivers(&pool.client, &node, &all).await?;
    let took = pool.opens().await?;
    println!("from a driver's registration to an open node, seen from outside: {took:?}");
    Ok(())
}

#[tokio::test]
async fn drivers_are_asked_for_after_pods_are_ready() -> Result<()> {
    let pool = Pool::under_gardeners_rule("csi-order").await?;
    pool.pod("driver")
        .wait_for_csi_driver("x", "x.csi.example.com")
        .never_ready()
        .create(&pool.client)
        .await?;
    let node = pool.join(pool.node()).await?;
    pool.is_held_because("pod kube-system/csi-order-driver is not Ready")
        .await?;
    set_csi_drivers(&pool.client, &node, &["x.csi.example.com"]).await?;
    pool.stays_closed().await?;
    pool.set_pod_ready("driver", true).await?;
    pool.opens().await?;
    Ok(())
}

#[tokio::test]
async fn a_driver_that_a_pod_without_the_label_waits_for_is_nothing_to_wait_for() -> Result<()> {
    let pool = Pool::under_gardeners_rule("csi-unlabelled").await?;
    nodegate_testbed::fixtures::pod("kube-system/csi-unlabelled-app")
        .on(pool.name)
        .wait_for_csi_driver("x", "x.csi.example.com")
        .create(&pool.client)
        .await?;
    pool.join(pool.node()).await?;
    pool.opens().await?;
    Ok(())
}
