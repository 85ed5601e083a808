//! The results for a healthy cluster, for an empty one, and for each fault.

use super::ItemHealth::{Failed, Ok as Fine, Unknown, Warning};
use super::*;
use crate::cli::snapshot::Leader;
use crate::testing::at;

/// The answers of a healthy cluster.
fn well() -> ClusterFacts {
    ClusterFacts {
        at: at(0),
        served_at: Some(at(-1)),
        version: Ok((1, 36, "v1.36.0".into())),
        denied: Ok(Vec::new()),
        definition: Ok(Some(Definition {
            is_established: true,
            served: ["v1alpha1".to_owned()].into(),
            lacks: Vec::new(),
            owner: None,
        })),
        policies: Ok(Some(())),
        birth_policy: Ok(Some(())),
        birth_binding: Ok(Some(())),
        webhook: Ok(Some(WebhookFacts {
            has_ca: true,
            ca_ends: Some((at(365 * 86_400), false)),
            fails_closed: true,
            service: Some(("nrr-system".into(), "nrr-webhook-service".into())),
            ready: Some(2),
        })),
        leader: Ok(Some(Leader {
            namespace: "nrr-system".into(),
            holder: "nrr-controller-manager-1_1-18f".into(),
            renewed: Some(at(-3)),
            duration_seconds: 15,
            suspends_all: false,
        })),
        deleted: Ok(Vec::new()),
    }
}

fn webhook(change: impl Fn(&mut WebhookFacts)) -> ClusterFacts {
    let mut facts = well();
    if let Ok(Some(webhook)) = &mut facts.webhook {
        change(webhook);
    }
    facts
}

#[test]
fn a_cluster_that_is_well_has_nothing_amiss() {
    let answer = check(&well());
    assert!(
        answer
            .items
            .iter()
            .all(|item| item.health == ItemHealth::Ok),
        "{answer:#?}"
    );
    assert!(!answer.is_no());
}

/// A healthy cluster with one change.
fn but(change: impl Fn(&mut ClusterFacts)) -> ClusterFacts {
    let mut facts = well();
    change(&mut facts);
    facts
}

/// Asserts that only this item has this health, and that all others are fine.
fn tells(what: &str, health: ItemHealth, facts: &ClusterFacts) {
    let answer = check(facts);
    let amiss = answer.items.iter().filter(|item| item.health != Fine);
    let amiss: Vec<_> = amiss.map(|item| (item.what, item.health)).collect();
    let expected: &[_] = if health == Fine {
        &[]
    } else {
        &[(what, health)]
    };
    assert_eq!(amiss, expected);
    assert_eq!(answer.is_no(), health == Failed, "{what}");
    assert_eq!(answer.unread().is_some(), health == Unknown, "{what}");
}

#[test]
fn faults_of_what_runs_are_reported() {
    let version = |version: Result<_, String>| but(|it| it.version.clone_from(&version));
    let old = (1, 29, "v1.29.3".to_owned());
    tells("API server", Failed, &version(Ok(old)));
    tells("API server", Unknown, &version(Err("no".into())));
    tells("clock", Warning, &but(|it| it.served_at = Some(at(-60))));
    tells("clock", Unknown, &but(|it| it.served_at = None));
    let denied = but(|it| it.denied = Ok(vec![("pods", "x")]));
    tells("permissions", Warning, &denied);
    tells("controller", Warning, &but(|it| it.leader = Ok(None)));
    let other = but(|it| {
        if let Ok(Some(leader)) = &mut it.leader {
            leader.holder = "nrr-1_0b5c6a1e-52c0-4a6f-9c1d-0f6f7a6b9d10".into();
        }
    });
    tells("controller", Warning, &other);
    let later = but(|it| (it.at, it.served_at) = (at(600), Some(at(600))));
    tells("controller", Failed, &later);
    let deleted = |seconds| but(|it| it.deleted = Ok(vec![("r".into(), at(seconds))]));
    tells("deletions", Fine, &deleted(-60));
    tells("deletions", Failed, &deleted(-600));
    let unknown = but(|it| it.deleted = Err("no".into()));
    tells("deletions", Unknown, &unknown);
}

#[test]
fn what_is_not_installed_as_it_should_be_is_told() {
    let missing = but(|it| it.definition = Ok(None));
    tells("CRD", Failed, &missing);
    let older = but(|it| {
        if let Ok(Some(definition)) = &mut it.definition {
            definition.lacks = vec!["gracePeriod".into()];
        }
    });
    tells("CRD", Warning, &older);
    let owned = but(|it| {
        if let Ok(Some(definition)) = &mut it.definition {
            definition.owner = Some("example-cloud".into());
        }
    });
    tells("CRD", Warning, &owned);
    let half = but(|it| it.birth_binding = Ok(None));
    tells("closed at birth", Warning, &half);
    let none = but(|it| it.policies = Ok(None));
    tells("closed at birth", Fine, &none);
    tells("webhook", Fine, &but(|it| it.webhook = Ok(None)));
    tells("webhook", Failed, &webhook(|it| it.has_ca = false));
    tells("webhook", Failed, &webhook(|it| it.ready = Some(0)));
    tells("webhook", Unknown, &webhook(|it| it.ready = None));
    let ends = |end| webhook(move |it| it.ca_ends = Some((at(end), true)));
    tells("webhook", Failed, &ends(-1));
    tells("webhook", Warning, &ends(86_400));
}

#[test]
fn what_has_failed_is_told_with_what_to_do() {
    let facts = ClusterFacts {
        leader: Ok(None),
        ..webhook(|it| it.ready = Some(0))
    };
    let printed = check(&facts).text(&Page::plain(at(0)));
    for told in [
        "ok       API server: it is v1.36.0\n",
        "failed   webhook: nothing serves it: its service has no ready endpoint, and no rule can be created or changed\n\
         └─ next: check the controller, which serves it with --enable-webhook: kubectl -n nrr-system get pods\n",
        "warning  controller: no controller has ever led here",
    ] {
        assert!(printed.contains(told), "{told} is not in\n{printed}");
    }
}
