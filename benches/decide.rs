//! How long it takes to decide what follows for one node, and how often memory is allocated for it.
//!
//! `cargo bench --bench decide` shows nanoseconds and allocations for each decision. What is measured is the pure core:
//! conditions synthesized, rules evaluated, decisions merged into the node's plan.

mod world;

use divan::{AllocProfiler, Bencher};
use world::{Source, World};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

/// How many rules select the node.
const RULES: [usize; 3] = [1, 10, 100];

fn main() {
    divan::main();
}

/// The node is as its rules want it and open: by far the most frequent case.
#[divan::bench(args = RULES)]
fn stays_open(bencher: Bencher, rules: usize) {
    decide(bencher, &World::new(rules, Source::Reported, true, false));
}

/// The node waits for a reported condition.
#[divan::bench(args = RULES)]
fn stays_gated(bencher: Bencher, rules: usize) {
    decide(bencher, &World::new(rules, Source::Reported, false, true));
}

/// Three critical components are ready.
#[divan::bench(args = RULES)]
fn stays_open_critical(bencher: Bencher, rules: usize) {
    decide(bencher, &World::new(rules, Source::Critical, true, false));
}

/// Three critical components are waited for.
#[divan::bench(args = RULES)]
fn stays_gated_critical(bencher: Bencher, rules: usize) {
    decide(bencher, &World::new(rules, Source::Critical, false, true));
}

/// Taints are put on.
#[divan::bench(args = RULES)]
fn is_gated(bencher: Bencher, rules: usize) {
    decide(bencher, &World::new(rules, Source::Reported, false, false));
}

/// Taints are lifted.
#[divan::bench(args = RULES)]
fn is_released(bencher: Bencher, rules: usize) {
    decide(bencher, &World::new(rules, Source::Reported, true, true));
}

fn decide(bencher: Bencher, world: &World) {
    bencher.bench_local(|| divan::black_box(world).plan());
}
