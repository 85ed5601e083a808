//! The part of a kubelet that kwok lacks: it registers a CSI driver on the node some time after the driver's pod is Ready, and the
//! CNI's, so that the story shows that a node waits for the driver alone.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kube::Client;

use super::Show;
use super::cast::DRIVER;
use crate::stage::{Moment, Revision};
use nodegate_testbed::fixtures::set_csi_drivers;
use nodegate_testbed::sights;

/// The registration's delay on the fastest node.
const QUICKEST: Duration = Duration::from_millis(1500);

/// The further delay of each next node.
const STEP: Duration = Duration::from_millis(700);
const STEPS: u32 = 3;

/// Registers the driver on each node whose driver pod and CNI pod become Ready, while polled.
///
/// # Errors
///
/// When the API server refuses a registration, or standard output cannot be written.
pub(super) async fn register_drivers(show: &Show, client: &Client) -> Result<()> {
    let mut world = show.world();
    let mut begun = BTreeSet::new();
    let mut registrations = FuturesUnordered::new();
    loop {
        let waiting: Vec<String> = {
            let world = world.borrow_and_update();
            let nodes = world.nodes.iter();
            nodes
                .filter(|(_, node)| node.csi_ready && node.cni_ready.is_some())
                .filter(|(name, _)| !begun.contains(*name))
                .map(|(name, _)| name.clone())
                .collect()
        };
        for node in waiting {
            let place = u32::try_from(begun.len()).unwrap_or_default() % STEPS;
            begun.insert(node.clone());
            registrations.push(register(show, client, node, QUICKEST + STEP * place));
        }
        tokio::select! {
            changed = world.changed() => changed.context("watching ended")?,
            Some(registered) = registrations.next() => registered?,
        }
    }
}

async fn register(show: &Show, client: &Client, node: String, delay: Duration) -> Result<()> {
    tokio::time::sleep(delay).await;
    let owner = sights::node(client, &node).await?;
    let at = show.now();
    let csi_node = set_csi_drivers(client, &owner, &[DRIVER]).await?;
    let revision = Revision::of(&csi_node);
    show.take_in(|world, _| world.see_registration(&node, Moment { revision, at }))
}
