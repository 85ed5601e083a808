//! The page about metrics.

use std::fmt::Write;

use crate::markdown::{GENERATED, cell};
use nodegate_serve::metric::Description as MetricDescription;

/// The page, with a table for each part.
pub(crate) fn page(parts: &[(&str, Vec<MetricDescription>)]) -> String {
    let mut page = format!(
        "# Metrics\n\n{GENERATED}\nWhat the values tell, what to alert on, and who may scrape: \
         [Status, events, logs and metrics](../observing.md#metrics).\n"
    );
    for (part, metrics) in parts {
        let _ = write!(
            page,
            "\n## {part}\n\n| metric | type | labels | |\n|---|---|---|---|\n"
        );
        let mut metrics: Vec<_> = metrics.iter().collect();
        metrics.sort_by_key(|(metric, _)| &metric.fq_name);
        for (metric, kind) in metrics {
            let labels = metric.variable_labels.iter();
            let labels: Vec<_> = labels.map(|l| format!("`{l}`")).collect();
            let _ = writeln!(
                page,
                "| `{}` | {kind} | {} | {} |",
                metric.fq_name,
                labels.join(", "),
                cell(&metric.help),
            );
        }
    }
    page
}
