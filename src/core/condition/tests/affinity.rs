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
fn one_term_of_a_node_affinity_is_enough_and_may_ask_for_the_nodes_name() {
    let exists = "{matchExpressions: [{key: cores, operator: Exists}]}";
    let broken = "{matchExpressions: [{key: cores, operator: Gt, values: [many]}]}";
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
        ("no term", requires("[]"), false),
        ("an empty term", requires("[{}]"), false),
        ("a term that cannot be parsed beside one that matches", requires(&format!("[{broken}, {exists}]")), true),
        ("affinity matches, but the node selector does not", requires(&format!("[{exists}]")).node_selector("cores", "9"), false),
    ];
    for (name, daemon_set, expected) in cases {
        assert_meant_for(name, &labelled(), &daemon_set, expected);
    }
}
