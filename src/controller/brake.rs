//! The emergency brake: an annotation on the controller's Lease suspends all rules. The Lease is watched by its name, so that it
//! takes effect at once; each renewal shows it again, about a kilobyte every two seconds.

use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use tokio::sync::watch as cell;
use tracing::{info, warn};

use crate::api::names::{LEASE as LEASE_NAME, SUSPEND_ALL};
use crate::causes::with_causes;

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
                // Whoever may not see it is not kept from leading.
                say(&brake, None);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Follows the Lease until its watch ends.
async fn watch(api: &Api<Lease>, brake: &cell::Sender<Option<bool>>) -> kube::Result<()> {
    let only = format!("metadata.name={LEASE_NAME}");
    let list = api.list(&ListParams::default().fields(&only)).await?;
    say(brake, Some(list.items.iter().any(is_on)));
    let version = list.metadata.resource_version.unwrap_or_default();
    let params = WatchParams::default().fields(&only).timeout(WATCH_SECONDS);
    let mut events = std::pin::pin!(api.watch(&params, &version).await?);
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(lease) | WatchEvent::Modified(lease) => {
                say(brake, Some(is_on(&lease)));
            }
            // The brake goes with the Lease that it was on.
            WatchEvent::Deleted(_) => say(brake, Some(false)),
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

/// Says whether it is on; what could not be looked at is as it was seen last.
// One look and one write under one lock: a look that is held across the write would wait for itself, and everybody else for it.
fn say(brake: &cell::Sender<Option<bool>>, seen: Option<bool>) {
    brake.send_if_modified(|known| {
        let was_on = known.unwrap_or_default();
        let is_on = seen.unwrap_or(was_on);
        if was_on != is_on {
            let what = if is_on { "suspended" } else { "going on" };
            info!("all rules are {what}, as Lease {LEASE_NAME} says by {SUSPEND_ALL}");
        }
        known.replace(is_on) != Some(is_on)
    });
}
