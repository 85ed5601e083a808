//! A guard that does not depend on the machine's speed: how often a decision for one node allocates when nothing changes. It
//! may allocate for the list of rules, each rule's list of conditions, the names of a held node's missing components, and
//! each list that outgrows its place on the stack.

#[path = "../benches/world/mod.rs"]
mod world;

use allocation_counter::measure;
use world::{Source, World};

fn allocations(world: &World) -> u64 {
    measure(|| {
        std::hint::black_box(world.plan());
    })
    .count_total
}

#[test]
fn deciding_that_nothing_changes_allocates_next_to_nothing() {
    let cases = [
        ("released, one rule", 1, Source::Reported, true, 2),
        ("released, ten rules", 10, Source::Reported, true, 13),
        ("held, one rule", 1, Source::Reported, false, 2),
        ("held, ten rules", 10, Source::Reported, false, 16),
        ("released, critical pods", 1, Source::Critical, true, 2),
        ("held, critical pods", 1, Source::Critical, false, 4),
        ("released, a DaemonSet by name", 1, Source::Named, true, 2),
        ("held, a DaemonSet by name", 1, Source::Named, false, 2),
    ];
    let mut more = Vec::new();
    for (name, rules, source, ready, at_most) in cases {
        let world = World::new(rules, source, ready, !ready);
        let plan = world.plan();
        let changes = !plan.taints.is_empty() || !plan.conditions.is_empty();
        assert!(!changes, "{name}: {plan:?}");
        let allocations = allocations(&world);
        if allocations > at_most {
            more.push(format!("{name}: {allocations}, not {at_most}"));
        }
    }
    assert!(more.is_empty(), "{more:#?}");
}
