//! Selects a Node's annotations that belong to Nodegate.

use std::collections::BTreeMap;

use crate::api::names::{
    BOOTSTRAP_COMPLETED_PREFIX, READY_DEADLINE_PREFIX, TAINT_ADDED_BY_PREFIX,
};

const PREFIXES: [&str; 3] = [
    BOOTSTRAP_COMPLETED_PREFIX,
    TAINT_ADDED_BY_PREFIX,
    READY_DEADLINE_PREFIX,
];

/// Keeps our annotations.
pub(super) fn own(mut annotations: BTreeMap<String, String>) -> BTreeMap<String, String> {
    annotations.retain(|key, _| PREFIXES.iter().any(|prefix| key.starts_with(prefix)));
    annotations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_annotations_take_no_memory() {
        let annotations = |entries: &[(&str, &str)]| -> BTreeMap<String, String> {
            let entries = entries.iter();
            entries
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        let all = annotations(&[
            ("example.com/other", "x"),
            ("nodegate.dev/ready-deadline-u", "never"),
            ("nodegate.dev/taint-added-by-u", "{}"),
            ("readiness.k8s.io/bootstrap-completed-u", "{}"),
        ]);
        let expected = annotations(&[
            ("nodegate.dev/ready-deadline-u", "never"),
            ("nodegate.dev/taint-added-by-u", "{}"),
            ("readiness.k8s.io/bootstrap-completed-u", "{}"),
        ]);
        assert_eq!(own(all), expected);
    }
}
