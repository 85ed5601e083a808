//! The emergency brake: an annotation on the controller's Lease suspends all rules. The leader renews the Lease every two
//! seconds and the others read it as often; each answer shows the brake, so what an instance knows is never older than a lease
//! lasts.

use k8s_openapi::api::coordination::v1::Lease;
use tokio::sync::watch as cell;
use tracing::info;

use crate::api::names::{LEASE as LEASE_NAME, SUSPEND_ALL};

/// The emergency brake.
#[derive(Debug, Clone, clap::Args)]
pub struct BrakeArgs {
    /// Suspend all rules: no node is changed, except that rules being deleted clean up. With leader election the
    /// annotation `nodegate.dev/suspend-all: "true"` on the Lease does the same, without a restart
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub suspend_all: bool,
}

/// Whether all rules are suspended; `None` until that is known.
#[derive(Debug, Clone)]
pub(super) struct Brake {
    is_on: cell::Sender<Option<bool>>,
    /// Whether the command line suspends all rules.
    always: bool,
}

impl Brake {
    /// With leader election, the Lease sets the brake too.
    pub(super) fn new(args: &BrakeArgs, elects: bool) -> Self {
        let always = args.suspend_all;
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
        let mut annotations = lease
            .iter()
            .flat_map(|it| it.metadata.annotations.iter().flatten());
        let is_on =
            self.always || annotations.any(|(key, value)| key == SUSPEND_ALL && value == "true");
        self.is_on.send_if_modified(|known| {
            if known.unwrap_or_default() != is_on {
                let what = if is_on { "suspended" } else { "going on" };
                info!("all rules are {what}, as Lease {LEASE_NAME} says by {SUSPEND_ALL}");
            }
            known.replace(is_on) != Some(is_on)
        });
    }
}
