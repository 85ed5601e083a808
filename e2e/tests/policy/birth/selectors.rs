//! Which nodes a rule selects: the policy evaluates selectors like the API server.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::{Value, json};
use testkit::nodegate::fixtures::node;

use super::{all_are_known, client, in_force, keys, tried};

/// A requirement of a selector.
fn selects(key: &str, operator: &str, values: &[&str]) -> Value {
    let mut requirement = json!({"key": key, "operator": operator});
    if !values.is_empty() {
        requirement["values"] = json!(values);
    }
    requirement
}

#[tokio::test]
async fn every_operator_selects_the_nodes_it_says() -> Result<()> {
    let Some(client) = client().await? else {
        return Ok(());
    };
    let pool = |operator: &str, values: &[&str]| selects("pool", operator, values);
    #[rustfmt::skip]
    let cases: [(&str, Value, Vec<Value>, &[&str]); 12] = [
        ("label", json!({"pool": "gpu"}), vec![], &["gpu"]),
        ("labels", json!({"pool": "gpu", "zone": "a"}), vec![], &["gpu"]),
        ("labels-apart", json!({"pool": "gpu", "zone": "b"}), vec![], &[]),
        ("label-empty", json!({"pool": ""}), vec![], &["empty"]),
        ("in", json!({}), vec![pool("In", &["gpu", "tpu"])], &["gpu"]),
        ("in-empty", json!({}), vec![pool("In", &[""])], &["empty"]),
        ("not-in", json!({}), vec![pool("NotIn", &["gpu"])], &["cpu", "empty", "none"]),
        ("exists", json!({}), vec![pool("Exists", &[])], &["cpu", "empty", "gpu"]),
        ("absent", json!({}), vec![pool("DoesNotExist", &[])], &["none"]),
        ("two", json!({}), vec![pool("Exists", &[]), pool("NotIn", &["gpu", ""])], &["cpu"]),
        ("both", json!({"zone": "a"}), vec![pool("In", &["gpu", "cpu"])], &["gpu"]),
        ("a-key-with-a-prefix", json!({}), vec![selects("example.com/pool.name", "In", &["x_Y.z-1"])], &["cpu"]),
    ];
    for (name, labels, mut requirements, _) in cases.clone() {
        requirements.push(selects("test", "In", &["selectors"]));
        in_force(&format!("selectors-{name}"), "selectors")
            .spec(
                "nodeSelector",
                json!({"matchLabels": labels, "matchExpressions": requirements}),
            )
            .create(&client)
            .await?;
    }
    all_are_known(&client, "selectors").await?;
    let cpu = [
        ("pool", "cpu"),
        ("zone", "b"),
        ("example.com/pool.name", "x_Y.z-1"),
    ];
    for (name, labels) in [
        ("gpu", &[("pool", "gpu"), ("zone", "a")][..]),
        ("cpu", &cpu),
        ("empty", &[("pool", "")]),
        ("none", &[]),
    ] {
        let mut node = node(&format!("selectors-{name}")).label("test", "selectors");
        for (key, value) in labels {
            node = node.label(key, value);
        }
        let mut expected: BTreeSet<String> = cases
            .iter()
            .filter(|(.., nodes)| nodes.contains(&name))
            .map(|(rule, ..)| format!("selectors-{rule}"))
            .collect();
        expected.insert("selectors-last".to_owned());
        assert_eq!(keys(&tried(&client, node).await?), expected, "{name}");
    }
    Ok(())
}
