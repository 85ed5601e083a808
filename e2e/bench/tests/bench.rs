//! The benchmark itself, on a handful of nodes: that it measures, not what comes out.

use anyhow::Result;
use nodegate_bench::{Phase, Plan, Recipe, Results, markdown, plots, run};

#[tokio::test(flavor = "multi_thread")]
async fn every_phase_ends_with_all_nodes_as_they_should_be() -> Result<()> {
    let recipe = Recipe::new(None)?;
    // Churn is only right on a machine that keeps up with it.
    let phases = Phase::ALL.into_iter();
    let phases: Vec<Phase> = phases.filter(|phase| *phase != Phase::Churn).collect();
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
    assert_eq!(plots(&results).len(), 2);
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
