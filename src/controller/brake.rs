//! The emergency brake: an annotation on the controller's Lease suspends all rules. The Lease is watched by its name, so that it
//! takes effect at once; each renewal shows it again, about a kilobyte every two seconds.

use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use tokio::sync::watch as cell;
use tracing::{info, warn};

use super::lease::LEASE_NAME;
use crate::causes::with_causes;

/// The annotation; its value is `true` while the brake is on.
const SUSPEND_ALL: &str = "nodegate.dev/suspend-all";
/// How long one watch is open.
const WATCH_SECONDS: u32 = 290;
/// How long to wait after a watch that failed.
const PAUSE: Duration = Duration::from_secs(2);

/// The emergency brake.
#[derive(Debug, Clone, clap::Args)]
#[group(id = "brake")]
pub struct Args {
    /// Suspend all rules: nothing is changed on nodes, save that rules which are deleted clean up. With leader election the
    /// annotation `nodegate.dev/suspend-all: "true"` on the Lease does the same, without a restart
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub suspend_all: bool,
}

/// Says whether the brake is on, for as long as the process lives: nothing before the Lease has been looked at once.
pub async fn follow(client: Client, namespace: String, brake: cell::Sender<Option<bool>>) {
    let api: Api<Lease> = Api::namespaced(client, &namespace);
    let mut is_told = false;
    loop {
        match watch(&api, &brake).await {
            Ok(()) => is_told = false,
            Err(error) => {
                if !std::mem::replace(&mut is_told, true) {
                    let error = with_causes(&error);
                    warn!(
                        "cannot watch Lease {LEASE_NAME} for the annotation {SUSPEND_ALL}: {error}; trying again"
                    );
                }
                // Whoever may not see it is not kept from leading. What was seen last stays so.
                say(&brake, brake.borrow().unwrap_or_default());
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Follows the Lease until its watch ends.
async fn watch(api: &Api<Lease>, brake: &cell::Sender<Option<bool>>) -> kube::Result<()> {
    let only = format!("metadata.name={LEASE_NAME}");
    let list = api.list(&ListParams::default().fields(&only)).await?;
    say(brake, list.items.iter().any(is_on));
    let version = list.metadata.resource_version.unwrap_or_default();
    let params = WatchParams::default().fields(&only).timeout(WATCH_SECONDS);
    let mut events = std::pin::pin!(api.watch(&params, &version).await?);
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(lease) | WatchEvent::Modified(lease) => say(brake, is_on(&lease)),
            // The brake goes with the Lease that it was on.
            WatchEvent::Deleted(_) => say(brake, false),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        }
    }
    Ok(())
}

fn is_on(lease: &Lease) -> bool {
    let mut annotations = lease.metadata.annotations.iter().flatten();
    annotations.any(|(key, value)| key == SUSPEND_ALL && value == "true")
}

fn say(brake: &cell::Sender<Option<bool>>, is_on: bool) {
    let was_on = brake.borrow().unwrap_or_default();
    if was_on != is_on {
        let what = if is_on { "suspended" } else { "going on" };
        info!("all rules are {what}, as Lease {LEASE_NAME} says by {SUSPEND_ALL}");
    }
    brake.send_if_modified(|known| {
        let is_news = *known != Some(is_on);
        *known = Some(is_on);
        is_news
    });
}
