//! How long the decision for one node takes, and how often it allocates memory.
//!
//! `cargo bench --bench decide` shows nanoseconds and allocations for each decision. It measures the pure core: synthesizing
//! conditions, evaluating rules, and merging decisions into the node's plan.

mod world;

use divan::{AllocProfiler, Bencher};
use world::{Source, World};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

/// How many rules match the node.
const RULES: [usize; 3] = [1, 10, 100];

fn main() {
    divan::main();
}

/// The node is not held, and nothing changes: by far the most frequent case.
#[divan::bench(args = RULES)]
fn stays_released(bencher: Bencher, rules: usize) {
    decide(bencher, &World::new(rules, Source::Reported, true, false));
}

/// The node waits for a reported condition.
#[divan::bench(args = RULES)]
fn stays_held(bencher: Bencher, rules: usize) {
    decide(bencher, &World::new(rules, Source::Reported, false, true));
}

/// Three critical components are ready.
#[divan::bench(args = RULES)]
fn stays_released_critical(bencher: Bencher, rules: usize) {
    decide(bencher, &World::new(rules, Source::Critical, true, false));
}

/// The node waits for three critical components.
#[divan::bench(args = RULES)]
fn stays_gated_critical(bencher: Bencher, rules: usize) {
    decide(bencher, &World::new(rules, Source::Critical, false, true));
}

/// Taints are added.
#[divan::bench(args = RULES)]
fn is_gated(bencher: Bencher, rules: usize) {
    decide(bencher, &World::new(rules, Source::Reported, false, false));
}

/// Taints are removed.
#[divan::bench(args = RULES)]
fn is_released(bencher: Bencher, rules: usize) {
    decide(bencher, &World::new(rules, Source::Reported, true, true));
}

fn decide(bencher: Bencher, world: &World) {
    bencher.bench_local(|| divan::black_box(world).plan());
}
