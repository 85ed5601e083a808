//! A minute of the laboratory: every scenario with nothing going wrong, then several faults by chance, with another seed each
//! time.

use std::time::{Duration, Instant};

use nodegate_lab::sim::defect::quiet_panics;
use nodegate_lab::sim::explore::{Explorer, pace};
use nodegate_lab::sim::machine::engine;
use nodegate_lab::sim::scenarios;

/// How long schedules are tried.
const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn no_law_is_broken_whatever_goes_wrong() {
    quiet_panics();
    let since = std::time::UNIX_EPOCH.elapsed().expect("it is later");
    let seed = since.as_secs() << 20 ^ u64::from(since.subsec_nanos());
    println!("seed {seed}");
    let began = Instant::now();
    let mut explorer = Explorer::new(scenarios::all(), &engine, None, |_, _, _| {});
    explorer.quiet(seed);
    explorer.stop_at(began + MINUTE);
    explorer.chance(seed);
    let tally = explorer.tally();
    println!("{tally}\n{}", pace(tally.schedules(), began.elapsed()));
    let findings: Vec<_> = explorer.findings().map(ToString::to_string).collect();
    assert!(
        findings.is_empty(),
        "with seed {seed}:\n{}",
        findings.join("\n")
    );
}
