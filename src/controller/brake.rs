//! The emergency brake: an annotation on the controller's Lease suspends all rules. The leader renews the Lease every two
//! seconds and the others read it as often; each answer shows the brake, so what an instance knows is never older than a lease
//! lasts.

use k8s_openapi::api::coordination::v1::Lease;
use tokio::sync::watch as cell;
use tracing::info;

use crate::api::names::{LEASE as LEASE_NAME, SUSPEND_ALL};

/// Whether all rules are suspended; `None` until that is known.
#[derive(Debug, Clone)]
pub(super) struct Brake {
    is_on: cell::Sender<Option<bool>>,
    /// Whether the command line suspends all rules.
    always: bool,
}

impl Brake {
    /// With leader election, the Lease sets the brake too.
    pub(super) fn new(always: bool, elects: bool) -> Self {
        let is_known = always || !elects;
        Self {
            is_on: cell::Sender::new(is_known.then_some(always)),
            always,
        }
    }

    pub(super) fn subscribe(&self) -> cell::Receiver<Option<bool>> {
        self.is_on.subscribe()
    }

    /// Records the Lease's current state; without a Lease, the brake is off.
    // One lock for both the read and the write: a `borrow` held across a `send` would deadlock.
    pub(super) fn see(&self, lease: Option<&Lease>) {
        let annotations = lease.and_then(|lease| lease.metadata.annotations.as_ref());
        let asked = annotations.and_then(|annotations| annotations.get(SUSPEND_ALL));
        let is_on = self.always || asked.is_some_and(|value| value == "true");
        self.is_on.send_if_modified(|known| {
            if known.unwrap_or_default() != is_on {
                let what = if is_on { "suspended" } else { "going on" };
                info!("all rules are {what}, as Lease {LEASE_NAME} says by {SUSPEND_ALL}");
            }
            known.replace(is_on) != Some(is_on)
        });
    }
}
