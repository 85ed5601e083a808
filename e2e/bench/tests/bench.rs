//! The benchmark itself, on a handful of nodes: checks that it measures, not the figures.

use anyhow::Result;
use nodegate_bench::{Births, Phase, Plan, Recipe, Results, markdown, run};

#[tokio::test(flavor = "multi_thread")]
async fn every_phase_ends_with_all_nodes_as_they_should_be() -> Result<()> {
    let recipe = Recipe::new(None)?;
    // Churn is left out: it needs a machine that keeps up.
    let phases = Phase::ALL.into_iter();
    let phases = phases.filter(|phase| ![Phase::Churn, Phase::Birth].contains(phase));
    let phases: Vec<Phase> = phases.collect();
    let plan = Plan {
        flips: 4,
        joins: 3,
        count_bytes: true,
        ..Plan::quick(phases.clone())
    };
    let run = run(&plan, &recipe, 5, |_| {}).await?;
    assert_eq!(run.outcomes.len(), phases.len());
    for outcome in &run.outcomes {
        assert!(outcome.faults.is_empty(), "{outcome:?}");
        assert_eq!(outcome.missed, 0, "{outcome:?}");
        let taints = outcome.requests_of("patch nodes");
        assert_eq!(taints, u64::try_from(outcome.changes)?, "{outcome:?}");
        assert!(outcome.bytes.is_some(), "{outcome:?}");
    }
    let results = Results {
        controller: recipe.name(),
        machine: "here".to_owned(),
        runs: vec![run],
    };
    assert!(markdown(&results).contains("| gate | 5 |"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_pod_is_bound_before_the_gate_of_a_node_that_is_closed_at_birth() -> Result<()> {
    let recipe = Recipe::new(None)?;
    let run = run(&Plan::quick(vec![Phase::Birth]), &recipe, 20, |_| {}).await?;
    let births = run.births.as_ref();
    assert_eq!(
        births.map(Births::despite_the_policy),
        Some(0),
        "{births:?}"
    );
    let results = Results {
        controller: recipe.name(),
        machine: "here".to_owned(),
        runs: vec![run],
    };
    let page = markdown(&results);
    assert!(
        page.contains("nodes gated at birth, no controller | 0 |"),
        "{page}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_ends_is_an_error_that_shows_its_log() -> Result<()> {
    let recipe = Recipe::new(Some("echo no such luck".to_owned()))?;
    let error = run(&Plan::quick(vec![Phase::Gate]), &recipe, 1, |_| {})
        .await
        .err();
    let text = error.map(|error| format!("{error:#}")).unwrap_or_default();
    assert!(text.contains("no such luck"), "{text}");
    Ok(())
}
