//! A guard that does not depend on the machine's speed: how often memory is allocated to decide over one node where nothing
//! changes. With one rule that is never, save for the names of what a closed node lacks; with more, once for each list that
//! outgrows its place on the stack.

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
fn deciding_that_nothing_changes_allocates_nothing() {
    let cases = [
        ("open, one rule", 1, Source::Reported, true, 0),
        ("open, ten rules", 10, Source::Reported, true, 3),
        ("gated, one rule", 1, Source::Reported, false, 0),
        ("gated, ten rules", 10, Source::Reported, false, 5),
        ("open, critical components", 1, Source::Critical, true, 0),
        ("gated, critical components", 1, Source::Critical, false, 2),
        ("open, a DaemonSet by name", 1, Source::Named, true, 0),
        ("gated, a DaemonSet by name", 1, Source::Named, false, 0),
    ];
    let mut more = Vec::new();
    for (name, rules, source, ready, at_most) in cases {
        let world = World::new(rules, source, ready, !ready);
        let plan = world.plan();
        let changes = plan.writes_node() || !plan.conditions.is_empty();
        assert!(!changes, "{name}: {plan:?}");
        let allocations = allocations(&world);
        if allocations > at_most {
            more.push(format!("{name}: {allocations}, not {at_most}"));
        }
    }
    assert!(more.is_empty(), "{more:#?}");
}
