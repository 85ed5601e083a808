//! The checks, one for each part.

use jiff::SignedDuration;

use super::facts::{BIRTH, ClusterFacts, Item, ItemHealth, WEBHOOK, WebhookFacts};
use crate::api::names::{FINALIZER, LEASE, MANAGED_BY, NAMESPACE, VERSION};
use crate::cli::snapshot::LeaderHealth;
use crate::instance::is_nodegate;

/// How long before a certificate expires the check warns.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);

pub(super) fn definition(facts: &ClusterFacts) -> Item {
    let what = "CRD";
    let apply = |item: Item| {
        let command = "kubectl nodegate crd | kubectl apply -f -";
        item.next("apply the definition", command)
    };
    let definition = match &facts.definition {
        Ok(Some(definition)) => definition,
        Ok(None) => {
            let message = "the CustomResourceDefinition is not installed";
            return apply(Item::new(what, ItemHealth::Failed, message));
        }
        Err(why) => return Item::new(what, ItemHealth::Unknown, why),
    };
    if !definition.is_established || !definition.served.contains(VERSION) {
        let message = format!("the API server does not serve its version {VERSION}");
        return apply(Item::new(what, ItemHealth::Failed, message));
    }
    if let Some(owner) = &definition.owner {
        let message = format!(
            "its label {MANAGED_BY} says {owner}: if they run a controller for it, perhaps where you cannot see it, two write \
             the same taints"
        );
        let see =
            format!("kubectl get leases --all-namespaces --field-selector metadata.name={LEASE}");
        return Item::new(what, ItemHealth::Warning, message)
            .next("see who elects leaders; only one of the two may run", see);
    }
    if definition.lacks.is_empty() {
        let message = format!("{VERSION} is served, with all fields that this binary knows");
        return Item::new(what, ItemHealth::Ok, message);
    }
    let message = format!(
        "it is older, or the upstream project's, and drops what it does not know of a rule: {}",
        definition.lacks.join(", ")
    );
    apply(Item::new(what, ItemHealth::Warning, message))
}

pub(super) fn birth(facts: &ClusterFacts) -> Item {
    let what = "closed at birth";
    let gap =
        "nodes are open for milliseconds after they are created; startup taints close the gap";
    match (&facts.policies, &facts.birth_policy, &facts.birth_binding) {
        (Ok(None), ..) => {
            let message = format!(
                "this API server has no MutatingAdmissionPolicy v1 (it came with 1.36): {gap}"
            );
            Item::new(what, ItemHealth::Ok, message)
        }
        (_, Ok(Some(())), Ok(Some(()))) => Item::new(
            what,
            ItemHealth::Ok,
            format!("the policy {BIRTH} is there, and bound"),
        ),
        (_, Ok(None), Ok(None)) => Item::new(
            what,
            ItemHealth::Ok,
            format!("the policy {BIRTH} is not installed: {gap}"),
        ),
        (_, Err(why), _) | (_, _, Err(why)) | (Err(why), ..) => {
            Item::new(what, ItemHealth::Unknown, why)
        }
        _ => Item::new(
            what,
            ItemHealth::Warning,
            format!("only one of the policy {BIRTH} and its binding is installed: {gap}"),
        )
        .next("install both", "kubectl apply -k config/birth"),
    }
}

pub(super) fn webhook(facts: &ClusterFacts) -> Item {
    let what = "webhook";
    let webhook = match &facts.webhook {
        Ok(Some(webhook)) => webhook,
        Ok(None) => {
            let message =
                "it is not installed: conflicting rules are accepted, and their status says so";
            return Item::new(what, ItemHealth::Ok, message);
        }
        Err(why) => return Item::new(what, ItemHealth::Unknown, why),
    };
    let refused = if webhook.fails_closed {
        "no rule can be created or changed"
    } else {
        "rules are accepted without a check"
    };
    let failed = |message: String| Item::new(what, ItemHealth::Failed, message);
    let of_service = |item: Item, webhook: &WebhookFacts| match &webhook.service {
        Some((namespace, _)) => item.next(
            "check the controller, which serves it with --enable-webhook",
            format!("kubectl -n {namespace} get pods"),
        ),
        None => item,
    };
    if !webhook.has_ca {
        let message =
            format!("the API server does not know which CA to trust ({WEBHOOK}): {refused}");
        return of_service(failed(message), webhook);
    }
    if webhook.ready == Some(0) {
        let message =
            format!("nothing serves it: its service has no ready endpoint, and {refused}");
        return of_service(failed(message), webhook);
    }
    if webhook.service.is_some() && webhook.ready.is_none() {
        let message = "it is configured; its EndpointSlices cannot be listed, so whether anything serves it is unknown";
        return Item::new(what, ItemHealth::Unknown, message);
    }
    match webhook.ca_ends {
        Some((end, _)) if end <= facts.at => {
            let message = format!("the CA that the API server trusts ended at {end}: {refused}");
            of_service(failed(message), webhook)
        }
        Some((end, _)) if end.duration_since(facts.at) < SOON => {
            let message = format!("the CA that the API server trusts ends soon, at {end}");
            of_service(Item::new(what, ItemHealth::Warning, message), webhook)
        }
        end => {
            let ends = match end {
                None => String::new(),
                // The CA and the certificate were made together, with the same expiry.
                Some((end, true)) => format!("; its CA and its certificate are good until {end}"),
                Some((end, false)) => format!("; its CA is good until {end}"),
            };
            let ready = webhook
                .ready
                .map_or_else(String::new, |ready| format!(", {ready} ready"));
            Item::new(
                what,
                ItemHealth::Ok,
                format!("it is configured{ready}{ends}"),
            )
        }
    }
}

/// The oldest supported Kubernetes version.
const OLDEST: (u32, u32) = (1, 30);
/// How far apart clocks may be: the API server gives whole seconds, and leases last 15.
const APART: SignedDuration = SignedDuration::from_secs(5);
/// How long the deletion of a rule may take.
const GOING: SignedDuration = SignedDuration::from_mins(2);

pub(super) fn api_server(facts: &ClusterFacts) -> Item {
    let what = "API server";
    match &facts.version {
        Ok((major, minor, name)) if (*major, *minor) < OLDEST => {
            let message = format!("it is {name}; 1.30 is the oldest supported version");
            Item::new(what, ItemHealth::Failed, message)
        }
        Ok((_, _, name)) => Item::new(what, ItemHealth::Ok, format!("it is {name}")),
        Err(why) => Item::new(what, ItemHealth::Unknown, why),
    }
}

/// Compares the API server's clock with this machine's.
pub(super) fn clock(facts: &ClusterFacts) -> Item {
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
        .next("check that the clock is synchronized", "timedatectl")
}

pub(super) fn rights(facts: &ClusterFacts) -> Item {
    let what = "permissions";
    match &facts.denied {
        Err(why) => Item::new(what, ItemHealth::Unknown, why),
        Ok(denied) if denied.is_empty() => Item::new(
            what,
            ItemHealth::Ok,
            "you may read everything that these commands need",
        ),
        Ok(denied) => {
            let denied: Vec<_> = denied
                .iter()
                .map(|(resource, tells)| format!("{resource} ({tells})"))
                .collect();
            let message = format!("you may not list {}", denied.join(", "));
            Item::new(what, ItemHealth::Warning, message).next(
                "ask for the right to read",
                "kubectl create clusterrolebinding nodegate-view --clusterrole=nodegate-view --user=NAME",
            )
        }
    }
}

pub(super) fn leader(facts: &ClusterFacts) -> Item {
    let what = "controller";
    let leader = match &facts.leader {
        Ok(Some(leader)) => leader,
        Ok(None) => {
            let message = "no controller has ever led here: nothing closes or opens nodes (without --leader-elect there is no Lease to show it)";
            return Item::new(what, ItemHealth::Warning, message).next(
                "see whether it runs",
                format!("kubectl -n {NAMESPACE} get pods"),
            );
        }
        Err(why) => return Item::new(what, ItemHealth::Unknown, why),
    };
    let look = format!("kubectl -n {} get pods", leader.namespace);
    match leader.health(facts.at) {
        LeaderHealth::Alive if leader.suspends_all => {
            let message = format!("{} leads, and all rules are suspended", leader.pod());
            Item::new(what, ItemHealth::Warning, message)
        }
        LeaderHealth::Alive if !is_nodegate(&leader.holder) => {
            let message = format!(
                "{} leads, which is not Nodegate: Nodegate waits until that one stops",
                leader.pod()
            );
            Item::new(what, ItemHealth::Warning, message).next("see which image it runs", look)
        }
        LeaderHealth::Alive => Item::new(what, ItemHealth::Ok, format!("{} leads", leader.pod())),
        LeaderHealth::Nobody => {
            let message = "no instance leads: nothing closes or opens nodes";
            Item::new(what, ItemHealth::Failed, message).next("check the controller", look)
        }
        LeaderHealth::Silent => {
            let renewed = leader.renewed;
            let since = renewed.map_or_else(String::new, |at| format!(" since {at}"));
            let message = format!(
                "{} leads, and has not renewed its Lease{since}",
                leader.pod()
            );
            Item::new(what, ItemHealth::Failed, message).next("check the controller", look)
        }
    }
}

pub(super) fn deletions(facts: &ClusterFacts) -> Item {
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
                "rule {name} has been in deletion since {since}: its finalizer {FINALIZER} stays until its taint is off every \
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
