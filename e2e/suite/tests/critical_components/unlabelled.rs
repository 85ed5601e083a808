//! Labelled pods of a `DaemonSet` that has no label itself.

use anyhow::Result;
use nodegate_testbed::fixtures::{self, CRITICAL};

use crate::pool::{NAMESPACE, POOL, Pool};

#[tokio::test]
async fn labelled_pods_of_an_unlabelled_daemon_set_count_once_they_are_there() -> Result<()> {
    let pool = Pool::under_gardeners_rule("pods-alone").await?;
    let holder = pool.pod("holder").never_ready();
    fixtures::daemon_set(&format!("{NAMESPACE}/pods-alone-agent"))
        .pod_label(CRITICAL.0, CRITICAL.1)
        .node_selector(POOL, pool.name)
        .tolerate_everything()
        .never_ready()
        .create(&pool.client)
        .await?;
    holder.create(&pool.client).await?;
    pool.join(pool.node()).await?;
    pool.pod_of("agent").await?;
    pool.set_pod_ready("holder", true).await?;
    pool.is_held_by_the_pod_of("agent").await?;
    pool.set_ready("agent", true).await?;
    pool.opens().await?;
    Ok(())
}
