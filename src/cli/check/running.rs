//! What runs: the API server, clocks, who leads, and rules that cannot go.

use jiff::SignedDuration;

use super::facts::{Facts, Found};
use super::item::{Item, ItemHealth};
use crate::api::names::{FINALIZER, NAMESPACE};
use crate::cli::snapshot::Health;

/// The oldest Kubernetes that will do.
const OLDEST: (u32, u32) = (1, 30);
/// How far clocks may be apart: the API server tells whole seconds, and leases last 15.
const APART: SignedDuration = SignedDuration::from_secs(5);
/// How long it may take until a rule that is being deleted is gone.
const GOING: SignedDuration = SignedDuration::from_mins(2);

/// The API server's version.
pub fn api_server(facts: &Facts) -> Item {
    let what = "API server";
    match &facts.version {
        Ok((major, minor, name)) if (*major, *minor) < OLDEST => {
            let message = format!("it is {name}; 1.30 is the oldest that will do");
            Item::new(what, ItemHealth::Failed, message)
        }
        Ok((_, _, name)) => Item::new(what, ItemHealth::Ok, format!("it is {name}")),
        Err(why) => Item::new(what, ItemHealth::Unknown, why),
    }
}

/// How far the API server's clock is from this machine's.
pub fn clock(facts: &Facts) -> Item {
    let what = "clock";
    let Some(served_at) = facts.served_at else {
        let message = "the API server did not say what time it is";
        return Item::new(what, ItemHealth::Unknown, message);
    };
    let apart = facts.at.duration_since(served_at);
    let seconds = apart.abs().as_secs();
    if apart.abs() <= APART {
        let message = "this machine's and the API server's are no more than seconds apart";
        return Item::new(what, ItemHealth::Ok, message);
    }
    let side = if apart.is_positive() {
        "ahead of"
    } else {
        "behind"
    };
    let message = format!(
        "this machine's is {seconds} s {side} the API server's: ages here are wrong by that; on a machine that runs the \
         controller, heartbeat timeouts and repair would be, too"
    );
    Item::new(what, ItemHealth::Warning, message)
        .next("see whether the clock is kept", "timedatectl")
}

/// What this user may read.
pub fn rights(facts: &Facts) -> Item {
    let what = "permissions";
    match &facts.denied {
        Err(why) => Item::new(what, ItemHealth::Unknown, why),
        Ok(denied) if denied.is_empty() => Item::new(
            what,
            ItemHealth::Ok,
            "you may read all that these commands ask for",
        ),
        Ok(denied) => {
            let denied: Vec<_> = denied
                .iter()
                .map(|(resource, tells)| format!("{resource} ({tells})"))
                .collect();
            let message = format!("you may not list {}", denied.join(", "));
            Item::new(what, ItemHealth::Warning, message).next(
                "have the right to read bound to you",
                "kubectl create clusterrolebinding nodegate-view --clusterrole=nodegate-view --user=NAME",
            )
        }
    }
}

/// Who leads.
pub fn leader(facts: &Facts) -> Item {
    let what = "controller";
    let leader = match &facts.leader {
        Found::There(leader) => leader,
        Found::Missing => {
            let message = "no controller has ever led here: nothing closes or opens nodes (without --leader-elect there is \
                           no Lease to tell)";
            return Item::new(what, ItemHealth::Warning, message).next(
                "see whether it runs",
                format!("kubectl -n {NAMESPACE} get pods"),
            );
        }
        Found::Unknown(why) => return Item::new(what, ItemHealth::Unknown, why),
    };
    let look = format!("kubectl -n {} get pods", leader.namespace);
    match leader.health(facts.at) {
        Health::Alive if leader.suspends_all => {
            let message = format!("{} leads, and all rules are suspended", leader.pod());
            Item::new(what, ItemHealth::Warning, message)
        }
        Health::Alive => Item::new(what, ItemHealth::Ok, format!("{} leads", leader.pod())),
        Health::Nobody => {
            let message = "nobody leads: nothing closes or opens nodes";
            Item::new(what, ItemHealth::Failed, message).next("see how the controller does", look)
        }
        Health::Silent => {
            let renewed = leader.renewed;
            let since = renewed.map_or_else(String::new, |at| format!(" since {at}"));
            let message = format!(
                "{} leads, and has not renewed its Lease{since}",
                leader.pod()
            );
            Item::new(what, ItemHealth::Failed, message).next("see how the controller does", look)
        }
    }
}

/// Rules that are being deleted.
pub fn deletions(facts: &Facts) -> Item {
    let what = "deletions";
    let deleted = match &facts.deleted {
        Ok(deleted) => deleted,
        Err(why) => return Item::new(what, ItemHealth::Unknown, why),
    };
    let mut stuck = deleted.iter();
    let stuck = stuck.find(|(_, since)| facts.at.duration_since(*since) > GOING);
    match stuck {
        None => Item::new(what, ItemHealth::Ok, "no rule is stuck while it is deleted"),
        Some((name, since)) => {
            let message = format!(
                "rule {name} has been going since {since}: its finalizer {FINALIZER} stays until its taint is off every \
                 node, which takes a controller that leads and may write"
            );
            let see = format!(
                "kubectl get nodereadinessrule {name} -o jsonpath='{{.status.failedNodes}}'"
            );
            Item::new(what, ItemHealth::Failed, message)
                .next("see which nodes cannot be written", see)
        }
    }
}
