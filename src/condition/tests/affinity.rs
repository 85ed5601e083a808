//! Which nodes match a `DaemonSet`'s node affinity.

use super::{assert_meant_for, cni, labelled};
use crate::testing::DaemonSetBuilder;

/// A `DaemonSet` whose pods require one of these node affinity terms, given in YAML.
fn requires(terms: &str) -> DaemonSetBuilder {
    cni().pod_spec(&format!(
        "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
         {{nodeSelectorTerms: {terms}}}}}}}"
    ))
}

#[test]
fn node_affinity_asks_for_labels() {
    let labels = |requirement: &str| requires(&format!("[{{matchExpressions: [{requirement}]}}]"));
    #[rustfmt::skip]
    let cases = [
        ("In", labels("{key: cores, operator: In, values: ['4', '8']}"), true),
        ("not In", labels("{key: cores, operator: In, values: ['4']}"), false),
        ("NotIn", labels("{key: cores, operator: NotIn, values: ['4']}"), true),
        ("NotIn of a missing label", labels("{key: gpu, operator: NotIn, values: [a]}"), true),
        ("not NotIn", labels("{key: cores, operator: NotIn, values: ['8']}"), false),
        ("Exists", labels("{key: cores, operator: Exists}"), true),
        ("not Exists", labels("{key: gpu, operator: Exists}"), false),
        ("DoesNotExist", labels("{key: gpu, operator: DoesNotExist}"), true),
        ("not DoesNotExist", labels("{key: cores, operator: DoesNotExist}"), false),
        ("Gt", labels("{key: cores, operator: Gt, values: ['7']}"), true),
        ("not Gt", labels("{key: cores, operator: Gt, values: ['8']}"), false),
        ("Lt", labels("{key: cores, operator: Lt, values: ['9']}"), true),
        ("not Lt", labels("{key: cores, operator: Lt, values: ['8']}"), false),
        ("an unknown operator", labels("{key: cores, operator: Like, values: ['8']}"), false),
    ];
    for (name, daemon_set, expected) in cases {
        assert_meant_for(name, &labelled(), &daemon_set, expected);
    }
}

#[test]
fn node_affinity_asks_for_the_nodes_name() {
    let fields = |requirement: &str| requires(&format!("[{{matchFields: [{requirement}]}}]"));
    #[rustfmt::skip]
    let cases = [
        ("this node by a field", fields("{key: metadata.name, operator: In, values: [worker-1]}"), true),
        ("another node by a field", fields("{key: metadata.name, operator: In, values: [worker-2]}"), false),
        ("not another node by a field", fields("{key: metadata.name, operator: NotIn, values: [worker-2]}"), true),
        ("not this node by a field", fields("{key: metadata.name, operator: NotIn, values: [worker-1]}"), false),
        ("a field with two values", fields("{key: metadata.name, operator: In, values: [worker-1, worker-2]}"), false),
        ("a field with an operator that fields do not have", fields("{key: metadata.name, operator: Exists}"), false),
        (
            "labels match, but the field does not",
            requires(
                "[{matchExpressions: [{key: cores, operator: Exists}], \
                  matchFields: [{key: metadata.name, operator: In, values: [worker-2]}]}]",
            ),
            false,
        ),
    ];
    for (name, daemon_set, expected) in cases {
        assert_meant_for(name, &labelled(), &daemon_set, expected);
    }
}

#[test]
fn one_term_of_a_node_affinity_is_enough() {
    let amd64 = "{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]}";
    let arm64 = "{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}";
    let broken = "{matchExpressions: [{key: cores, operator: Gt, values: [many]}]}";
    #[rustfmt::skip]
    let cases = [
        ("no term matches", requires(&format!("[{amd64}]")), false),
        ("one of two terms matches", requires(&format!("[{amd64}, {arm64}]")), true),
        ("no term", requires("[]"), false),
        ("an empty term", requires("[{}]"), false),
        ("an empty term beside one that matches", requires(&format!("[{{}}, {arm64}]")), true),
        ("a term that cannot be parsed", requires(&format!("[{broken}]")), false),
        ("a term that cannot be parsed beside one that matches", requires(&format!("[{broken}, {arm64}]")), true),
        ("affinity matches, but the node selector does not", requires(&format!("[{arm64}]")).node_selector("cores", "9"), false),
    ];
    for (name, daemon_set, expected) in cases {
        assert_meant_for(name, &labelled(), &daemon_set, expected);
    }
}
