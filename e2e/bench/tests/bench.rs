//! The benchmark itself, on a handful of nodes: checks that it measures, not the figures.

use anyhow::Result;
use nodegate_bench::{Phase, Plan, Recipe, Results, markdown, run};

#[tokio::test(flavor = "multi_thread")]
async fn every_phase_ends_with_all_nodes_as_they_should_be() -> Result<()> {
    let recipe = Recipe::new(None)?;
    // Churn is left out: it needs a machine that keeps up.
    let phases = Phase::all().into_iter();
    let phases: Vec<Phase> = phases.filter(|phase| *phase != Phase::Churn).collect();
    let plan = Plan {
        flips: 4,
        joins: 3,
        ..Plan::quick(phases.clone())
    };
    let run = run(&plan, &recipe, 5, |_| {}).await?;
    assert_eq!(run.outcomes.len(), phases.len());
    for outcome in &run.outcomes {
        assert!(outcome.faults.is_empty(), "{outcome:?}");
        assert_eq!(outcome.missed, 0, "{outcome:?}");
        let taints = outcome.requests_of("patch nodes");
        assert_eq!(taints, u64::try_from(outcome.changes)?, "{outcome:?}");
        // Neither an idle controller nor one that starts again over held nodes has anything to write.
        if [Phase::Idle, Phase::Restart].contains(&outcome.phase) {
            assert_eq!(outcome.writes(), 0, "{outcome:?}");
        }
    }
    let results = Results {
        controller: recipe.name(),
        machine: "here".to_owned(),
        runs: vec![run],
    };
    assert!(markdown(&results).contains("| gate: all nodes | "));
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
