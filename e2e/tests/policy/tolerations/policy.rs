//! Which `DaemonSet`s get which tolerations.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use nodegate_tests::rules::key;
use serde_json::json;
use testkit::nodegate::changes::delete_rule;
use testkit::nodegate::fixtures::{self, CRITICAL, daemon_set, rule};

use super::{added, all_are_known, cluster, naming, tolerations, tried, waiting};

#[tokio::test]
async fn each_rule_in_force_that_waits_for_a_daemon_set_adds_its_toleration() -> Result<()> {
    let Some((_, client)) = cluster().await? else {
        return Ok(());
    };
    for rule in [
        naming("named", "kube-system/named"),
        naming("named-a", "kube-system/named"),
        naming("both", "kube-system/both").bootstrap_only(),
        naming("evicts", "kube-system/both").spec("taint", json!({"key": key("evicts"), "effect": "NoExecute"})),
        naming("prefers", "kube-system/both").spec("taint", json!({"key": key("prefers"), "effect": "PreferNoSchedule"})),
        naming("suspended", "kube-system/held").nodegate("suspend", json!(true)),
        naming("foreign", "kube-system/held")
            .bootstrap_only()
            .nodegate("taintPolicy", json!("remove-only"))
            .spec("taint", json!({"key": "node.example.com/agent-not-ready", "effect": "NoSchedule"})),
        naming("dry", "kube-system/alone").dry_run(),
        naming("going", "kube-system/alone"),
        rule("new", &key("new")).waits_for("daemonset.nodegate.dev/kube-system.alone"),
        naming("unaccepted", "kube-system/alone"),
        waiting("all", "daemonsets.nodegate.dev/all"),
        waiting("scheduled", "daemonsets.nodegate.dev/scheduled"),
        waiting("class", "").spec("conditions", json!([
            {"type": "node.gardener.cloud/CriticalPodsReady", "requiredStatus": "True", "nodegate": {"except": ["kube-system/excepted"]}},
        ])),
    ] {
        rule.create(&client).await?;
    }
    delete_rule(&client, "going").await?;
    let condition = json!({"type": "Accepted", "status": "False", "reason": "Circle", "message": "why",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    let rules = fixtures::rules(&client);
    rules
        .patch_status("unaccepted", &PatchParams::default(), &status)
        .await?;
    all_are_known(&client, "added-last").await?;

    let system = |name: &str| daemon_set(&format!("kube-system/{name}"));
    let own = system("named")
        .tolerate("zone.example.com/a", "NoSchedule")
        .tolerate("a", "NoExecute");
    let halves = || system("half").label(CRITICAL.0, CRITICAL.1);
    let named = || vec![added("named-a"), added("named")];
    #[rustfmt::skip]
    let cases = [
        ("by two rules", system("named"), named()),
        ("beside its own", own, vec!["a:NoExecute".into(), added("named-a"), added("named"), "zone.example.com/a:NoSchedule".into()]),
        ("of each effect that repels", system("both"), vec![added("both"), format!("{}:NoExecute", key("evicts"))]),
        ("suspended, and another's taint", system("held"), vec!["node.example.com/agent-not-ready:NoSchedule".into(), added("suspended")]),
        ("by no rule in force", system("alone"), vec![]),
        ("of the same name in another namespace", daemon_set("default/named"), vec![]),
        ("of the class", system("any").critical(), vec![added("class")]),
        ("of the class, and left out", system("excepted").critical(), vec![]),
        ("of the class by its label only", halves(), vec![]),
        ("of the class by its pods' label only", system("half").pod_label(CRITICAL.0, CRITICAL.1), vec![]),
        ("a tenant's with the label", daemon_set("default/tenant").critical(), vec![]),
        ("tolerates everything", system("any").critical().tolerate_everything(), vec![":".into()]),
        ("tolerates one", system("named").tolerate(&key("named"), "NoSchedule"), named()),
        ("tolerates another effect", system("any").critical().tolerate(&key("class"), "NoExecute"),
            vec![format!("{}:NoExecute", key("class")), added("class")]),
    ];
    for (name, daemon_set, expected) in cases {
        let found = tried(&client, daemon_set).await.context(name)?;
        assert_eq!(found, expected, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn a_daemon_set_that_is_there_changes_with_its_next_update_and_a_tolerating_one_never()
-> Result<()> {
    let Some((cluster, client)) = cluster().await? else {
        return Ok(());
    };
    daemon_set("there").create(&client).await?;
    let any_value = json!({"key": key("there"), "operator": "Exists"});
    daemon_set("tolerating").create(&client).await?;
    let there = Api::<DaemonSet>::default_namespaced(client.clone());
    let tolerating = json!({"spec": {"template": {"spec": {"tolerations": [any_value]}}}});
    let parameters = PatchParams::default();
    there
        .patch("tolerating", &parameters, &Patch::Merge(tolerating))
        .await?;
    naming("there", "default/there").create(&client).await?;
    let both = naming("there-too", "default/tolerating");
    both.spec(
        "taint",
        json!({"key": key("there"), "effect": "NoExecute", "value": "x"}),
    )
    .create(&client)
    .await?;
    all_are_known(&client, "there-last").await?;
    for (name, expected, generations) in [
        ("there", vec![added("there")], 1),
        ("tolerating", vec![format!("{}:", key("there"))], 0),
    ] {
        let before = there.get(name).await?;
        for round in ["once", "again"] {
            let annotate = format!("annotate --overwrite ds/{name} nodegate.dev/tolerate=there");
            cluster.types(&annotate).await?;
            let after = there.get(name).await?;
            assert_eq!(tolerations(&after), expected, "{name} {round}");
            let change = after.metadata.generation.zip(before.metadata.generation);
            let change = change.map(|(after, before)| after - before);
            assert_eq!(change, Some(generations), "{name} {round}");
        }
    }
    // Nothing is taken away with the rule.
    delete_rule(&client, "there").await?;
    let finalizers = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    fixtures::rules(&client)
        .patch("there", &parameters, &finalizers)
        .await?;
    cluster.types("annotate ds/there a=b").await?;
    let after = there.get("there").await?;
    assert_eq!(
        tolerations(&after),
        [added("there")],
        "{}",
        after.name_any()
    );
    Ok(())
}
