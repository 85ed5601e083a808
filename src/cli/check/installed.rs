//! What is installed: the definition of rules, the policy that closes nodes at birth, the webhook.

use jiff::SignedDuration;

use super::facts::{BIRTH, Facts, Found, WEBHOOK, WebhookFacts};
use super::item::{Item, ItemHealth};
use crate::api::names::VERSION;

/// How long before its end a certificate is warned of.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The definition of rules.
pub fn definition(facts: &Facts) -> Item {
    let what = "definition of rules";
    let apply = |item: Item| item.next("apply the definition", "nodegate crd | kubectl apply -f -");
    let definition = match &facts.definition {
        Found::There(definition) => definition,
        Found::Missing => {
            let message = "the CustomResourceDefinition is not installed";
            return apply(Item::new(what, ItemHealth::Failed, message));
        }
        Found::Unknown(why) => return Item::new(what, ItemHealth::Unknown, why),
    };
    if !definition.is_established || !definition.served.contains(VERSION) {
        let message = format!("the API server does not serve its version {VERSION}");
        return apply(Item::new(what, ItemHealth::Failed, message));
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

/// The policy that closes nodes at birth.
pub fn birth(facts: &Facts) -> Item {
    let what = "closed at birth";
    let gap =
        "nodes are open for milliseconds after they are created; startup taints close the gap";
    match (&facts.policies, &facts.birth_policy, &facts.birth_binding) {
        (Found::Missing, ..) => {
            let message = format!(
                "this API server has no MutatingAdmissionPolicy v1 (it came with 1.36): {gap}"
            );
            Item::new(what, ItemHealth::Ok, message)
        }
        (_, Found::There(()), Found::There(())) => Item::new(
            what,
            ItemHealth::Ok,
            format!("the policy {BIRTH} is there, and bound"),
        ),
        (_, Found::Missing, Found::Missing) => Item::new(
            what,
            ItemHealth::Ok,
            format!("the policy {BIRTH} is not installed: {gap}"),
        ),
        (_, Found::Unknown(why), _) | (_, _, Found::Unknown(why)) | (Found::Unknown(why), ..) => {
            Item::new(what, ItemHealth::Unknown, why)
        }
        _ => Item::new(
            what,
            ItemHealth::Warning,
            format!("of the policy {BIRTH} and its binding only one is there: {gap}"),
        )
        .next("install both", "kubectl apply -k config/birth"),
    }
}

/// The webhook.
pub fn webhook(facts: &Facts) -> Item {
    let what = "webhook";
    let webhook = match &facts.webhook {
        Found::There(webhook) => webhook,
        Found::Missing => {
            let message =
                "it is not installed: rules that conflict are taken, and say so in their status";
            return Item::new(what, ItemHealth::Ok, message);
        }
        Found::Unknown(why) => return Item::new(what, ItemHealth::Unknown, why),
    };
    let refused = if webhook.fails_closed {
        "no rule can be created or changed"
    } else {
        "rules are taken unseen"
    };
    let failed = |message: String| Item::new(what, ItemHealth::Failed, message);
    let of_service = |item: Item, webhook: &WebhookFacts| match &webhook.service {
        Some((namespace, _)) => item.next(
            "see how the controller does, which serves it with --enable-webhook",
            format!("kubectl -n {namespace} get pods"),
        ),
        None => item,
    };
    if !webhook.has_ca {
        let message =
            format!("the API server has not been told which CA to trust ({WEBHOOK}): {refused}");
        return of_service(failed(message), webhook);
    }
    if webhook.ready == Some(0) {
        let message =
            format!("nothing serves it: its service has no ready endpoint, and {refused}");
        return of_service(failed(message), webhook);
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
                // They were made together, for the same time.
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
