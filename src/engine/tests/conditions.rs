//! Conditions that are published on nodes.

use serde_json::{Value, json};

use super::Bench;
use crate::engine::RequestError;
use crate::engine::io::Request;
use crate::testing::{NodeBuilder, RuleBuilder, node, rule};

const COMPONENTS: &str = "node.gardener.cloud/CriticalComponentsReady";

fn waiting() -> RuleBuilder {
    rule("r").waits_for(COMPONENTS)
}

/// A node on which the condition was published with this status.
fn said(status: &str) -> NodeBuilder {
    node("n").condition(COMPONENTS, status)
}

fn published(bench: &Bench) -> Value {
    let conditions = bench.node("n")["status"]["conditions"].as_array();
    let published = conditions.into_iter().flatten();
    published
        .map(|it| json!([it["type"], it["status"]]))
        .collect()
}

#[test]
fn what_a_node_has_never_had_is_published_a_moment_after_it_has_come() {
    let mut bench = Bench::new(&[waiting()], &[node("n")]);
    assert_eq!(published(&bench), json!([]));
    bench.wait(900);
    assert_eq!(published(&bench), json!([]));
    bench.wait(200);
    assert_eq!(published(&bench), json!([[COMPONENTS, "True"]]));
    bench.wait(10_000);
    assert_eq!(bench.asked(), ["status of r", "conditions of n"]);
}

#[test]
fn a_status_that_is_not_so_any_more_is_published_at_once() {
    let bench = Bench::new(&[waiting()], &[said("False")]);
    assert_eq!(published(&bench), json!([[COMPONENTS, "True"]]));
}

#[test]
fn what_is_refused_is_tried_again_after_a_pause() {
    let mut bench = Bench::refusing(&[waiting()], &[said("False")], |request| match request {
        Request::PatchNodeStatus { .. } => Some(RequestError::Failed("forbidden".into())),
        _ => None,
    });
    bench.wait(20_000);
    assert_eq!(published(&bench), json!([[COMPONENTS, "False"]]));
    bench.refusal = |_| None;
    bench.wait(40_000);
    assert_eq!(published(&bench), json!([[COMPONENTS, "True"]]));
}
