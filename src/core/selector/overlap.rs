//! Whether two selectors can match the same object, decided for each label key separately.

use std::collections::BTreeSet;

use super::requirement::{Operator, Requirement};

const LONGEST_VALUE: usize = 63;

/// Whether some set of labels meets both lists, exactly: only requirements on the same key can exclude each other.
pub fn overlap(one: &[Requirement], other: &[Requirement]) -> bool {
    let mut all: Vec<_> = one.iter().chain(other).collect();
    all.sort_by(|a, b| a.key.cmp(&b.key));
    all.chunk_by(|a, b| a.key == b.key).all(can_be_met)
}

/// Whether some value of their label, or its absence, meets them all.
fn can_be_met(requirements: &[&Requirement]) -> bool {
    let mut listed: Option<&BTreeSet<String>> = None;
    let mut excluded = 0;
    // A label value cannot begin with a sign, so no number is negative.
    let (mut least, mut most) = (0, i64::MAX);
    for requirement in requirements {
        match &requirement.operator {
            // What meets all of them is in the shortest.
            Operator::In(values) if listed.is_some_and(|it| it.len() <= values.len()) => {}
            Operator::In(values) => listed = Some(values),
            Operator::NotIn(values) => excluded += values.len(),
            Operator::Exists | Operator::DoesNotExist => {}
            Operator::Gt(bound) => least = least.max(bound.saturating_add(1)),
            Operator::Lt(bound) => most = most.min(bound.saturating_sub(1)),
        }
    }
    let meets = |value: Option<&str>| requirements.iter().all(|it| it.operator.accepts(value));
    // Where no value is listed, one more number than there are excluded values suffices.
    let mut numbers = spellings(least, most).take(excluded + 1);
    meets(None)
        || listed.is_some_and(|it| it.iter().any(|value| meets(Some(value.as_str()))))
        || listed.is_none() && numbers.any(|value| meets(Some(value.as_str())))
}

/// Every label value that is a whole number from `least` to `most`, with leading zeros too.
fn spellings(least: i64, most: i64) -> impl Iterator<Item = String> {
    (least..=most).flat_map(|number| {
        let shortest = number.to_string().len();
        (shortest..=LONGEST_VALUE).map(move |width| format!("{number:0width$}"))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::selector::Selector;
    use proptest::prelude::*;

    #[test]
    fn a_number_can_be_excluded_in_every_spelling() {
        let of = |operator| {
            [Requirement {
                key: "a".to_owned(),
                operator,
            }]
        };
        let zeros: Vec<_> = spellings(0, 0).collect();
        assert_eq!(zeros.len(), LONGEST_VALUE);
        let but = |excluded: &[String]| of(Operator::NotIn(excluded.iter().cloned().collect()));
        let below_one = of(Operator::Lt(1));
        assert!(!overlap(&but(&zeros), &below_one));
        assert!(overlap(&but(&zeros[1..]), &below_one));
        assert!(!overlap(&of(Operator::Gt(i64::MAX)), &[]));
    }

    const KEYS: [&str; 2] = ["a", "b"];
    /// Values in requirements.
    const NAMED: [&str; 6] = ["", "x", "y", "0", "2", "3"];
    /// Values in no requirement: a text, and every number within possible bounds in another spelling.
    const UNNAMED: [&str; 8] = ["z", "00", "01", "02", "03", "04", "05", "06"];

    fn operator() -> impl Strategy<Value = Operator> {
        let values = || {
            proptest::sample::subsequence(&NAMED[..], 1..=3)
                .prop_map(|values| values.into_iter().map(ToOwned::to_owned).collect())
        };
        prop_oneof![
            values().prop_map(Operator::In),
            values().prop_map(Operator::NotIn),
            Just(Operator::Exists),
            Just(Operator::DoesNotExist),
            (-2_i64..6).prop_map(Operator::Gt),
            (-2_i64..6).prop_map(Operator::Lt),
        ]
    }

    fn requirements() -> impl Strategy<Value = Vec<Requirement>> {
        let requirement =
            (proptest::sample::select(&KEYS[..]), operator()).prop_map(|(key, operator)| {
                Requirement {
                    key: key.to_owned(),
                    operator,
                }
            });
        proptest::collection::vec(requirement, 0..4)
    }

    /// Every set of labels over a small universe.
    fn universe() -> Vec<BTreeMap<String, String>> {
        let values = || std::iter::once(None).chain(NAMED.into_iter().chain(UNNAMED).map(Some));
        let mut all = Vec::new();
        for a in values() {
            for b in values() {
                all.push(
                    KEYS.into_iter()
                        .zip([a, b])
                        .filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())))
                        .collect(),
                );
            }
        }
        all
    }

    proptest! {
        #[test]
        fn two_selectors_overlap_when_some_labels_match_both(one in requirements(), other in requirements()) {
            let (one, other) = (Selector(one), Selector(other));
            let found = universe()
                .iter()
                .any(|labels| one.matches(labels) && other.matches(labels));
            prop_assert_eq!(one.overlaps(&other), found);
            prop_assert_eq!(other.overlaps(&one), found);
        }
    }
}
