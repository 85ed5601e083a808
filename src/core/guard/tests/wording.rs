//! The wording of reports.

use super::{guard, nodes};
use crate::guard::Limits;
use crate::testing::moment;

#[test]
fn a_report_is_one_line_that_names_the_worst_zones() {
    for (zones, expected) in [
        (
            vec![nodes("a", 20, 0, 40)],
            "39 nodes held back by the disruption limit: zone a PartialDisruption (40 of 60 nodes unmet), at most 0.01 nodes \
             a second are gated there",
        ),
        (
            vec![nodes("", 8, 0, 2)],
            "1 node held back by the disruption limit: (no zone) Normal (2 of 10 nodes unmet), at most 0.1 nodes a second \
             are gated there",
        ),
        (
            vec![nodes("a", 0, 1, 2), nodes("b", 0, 0, 1)],
            "3 nodes held back by the disruption limit: all zones FullDisruption (4 of 4 nodes unmet), nothing more is \
             gated until one recovers",
        ),
        (
            vec![nodes("a", 9, 0, 1)],
            "no node is held back by the disruption limit",
        ),
        (
            vec![nodes("a", 9, 0, 2)],
            "1 node held back by the disruption limit: zone a Normal (2 of 11 nodes unmet), at most 0.1 nodes a second \
             are gated there",
        ),
        (
            vec![
                nodes("a", 29, 0, 16),
                nodes("b", 8, 3, 9),
                nodes("c", 9, 2, 0),
            ],
            "24 nodes held back by the disruption limit: zone b PartialDisruption (12 of 20 nodes unmet), nothing more \
             is gated there until it recovers; zone a Normal (16 of 45 nodes unmet), at most 0.1 nodes a second are \
             gated there",
        ),
        (
            vec![nodes("a", 0, 0, 2), nodes("b", 0, 0, 2)],
            "4 nodes held back by the disruption limit: all zones FullDisruption (4 of 4 nodes unmet), nothing more is \
             gated until one recovers",
        ),
        (
            ["a", "b", "c", "d", "e"]
                .map(|zone| nodes(zone, 9, 0, 2))
                .into(),
            "5 nodes held back by the disruption limit: zone a Normal (2 of 11 nodes unmet), at most 0.1 nodes a second \
             are gated there; zone b Normal (2 of 11 nodes unmet), at most 0.1 nodes a second are gated there; zone \
             c Normal (2 of 11 nodes unmet), at most 0.1 nodes a second are gated there; and 2 more zones",
        ),
    ] {
        let mut guard = guard(Limits::default(), &zones);
        guard.granted(moment(0));
        assert_eq!(guard.report().to_string(), expected);
    }
}

#[test]
fn a_report_fits_into_the_note_of_an_event() {
    let limits = Limits {
        eviction_rate: 1.0 / 7.0,
        ..Limits::default()
    };
    let zones = (0..40).map(|index| {
        let name = format!("{index:0>63}");
        nodes(String::leak(name), 4000, 0, 1000)
    });
    let mut guard = guard(limits, &zones.collect::<Vec<_>>());
    guard.granted(moment(0));
    let report = guard.report().to_string();
    // Each zone might add a region of 63 characters and a slash.
    assert!(report.len() + 3 * 64 <= 1024, "{}", report.len());
}
