//! The emergency brake: an annotation on the controller's Lease suspends all rules. The leader renews the Lease every two seconds,
//! the others read it as often, and each answer shows the brake: what an instance knows is never older than a lease lasts.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::sync::watch as cell;
use tracing::info;

use nodegate_core::api::names::{LEASE as LEASE_NAME, SUSPEND_ALL};

/// Whether all rules are suspended; `None` until that is known.
#[derive(Debug)]
pub(super) struct Brake {
    is_on: cell::Sender<Option<bool>>,
    /// Whether the command line suspends all rules.
    always: bool,
    /// The annotations of the Lease when it was last there. Whoever creates it again writes them.
    pub annotations: Option<BTreeMap<String, String>>,
}

impl Brake {
    /// With leader election, the Lease sets the brake too.
    pub(super) fn new(always: bool, elects: bool) -> Self {
        let is_known = always || !elects;
        Self {
            is_on: cell::Sender::new(is_known.then_some(always)),
            always,
            annotations: None,
        }
    }

    pub(super) fn subscribe(&self) -> cell::Receiver<Option<bool>> {
        self.is_on.subscribe()
    }

    /// Records the Lease's current state. A missing Lease changes nothing.
    // One lock for both the read and the write: a `borrow` held across a `send` would deadlock.
    pub(super) fn see(&mut self, lease: Option<&Lease>) {
        if let Some(lease) = lease {
            self.annotations.clone_from(&lease.metadata.annotations);
        }
        let annotations = self.annotations.as_ref();
        let asked = annotations.and_then(|annotations| annotations.get(SUSPEND_ALL));
        let asked = asked.map_or("false", String::as_str);
        let is_on = self.always || asked != "false";
        self.is_on.send_if_modified(|known| {
            if known.unwrap_or_default() != is_on {
                let what = match asked {
                    "false" => "going on",
                    "true" => "suspended",
                    _ => "suspended: a value that is neither true nor false counts as true",
                };
                info!("Lease {LEASE_NAME}, {SUSPEND_ALL}: all rules are {what}");
            }
            known.replace(is_on) != Some(is_on)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(value: Option<&str>) -> Lease {
        let mut lease = Lease::default();
        let annotation = value.map(|value| (SUSPEND_ALL.to_owned(), value.to_owned()));
        lease.metadata.annotations = Some(annotation.into_iter().collect());
        lease
    }

    #[test]
    fn every_value_but_false_suspends_all_rules() {
        for (value, expected) in [
            (Some("true"), true),
            (Some("True"), true),
            (Some("true "), true),
            (Some("yes"), true),
            (Some(""), true),
            (Some("false"), false),
            (None, false),
        ] {
            let mut brake = Brake::new(false, true);
            brake.see(Some(&lease(value)));
            assert_eq!(*brake.subscribe().borrow(), Some(expected), "{value:?}");
        }
    }

    #[test]
    fn a_deleted_lease_changes_nothing_and_the_next_one_says_the_same() {
        for (value, expected) in [(Some("true"), true), (Some("false"), false), (None, false)] {
            let mut brake = Brake::new(false, true);
            brake.see(Some(&lease(value)));
            brake.see(None);
            assert_eq!(*brake.subscribe().borrow(), Some(expected), "{value:?}");
            assert_eq!(brake.annotations, lease(value).metadata.annotations);
        }
        let mut brake = Brake::new(false, true);
        brake.see(None);
        assert_eq!(*brake.subscribe().borrow(), Some(false), "there was none");
        let mut always = Brake::new(true, true);
        always.see(None);
        assert_eq!(*always.subscribe().borrow(), Some(true));
        assert_eq!(always.annotations, None, "the flag is this process's alone");
    }
}
