//! Reads the Prometheus text format, as far as the controller uses it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use testkit::nodegate::fetch::Fetch;

/// One scrape.
#[derive(Debug)]
pub(crate) struct Exposition {
    /// The text.
    pub text: String,
    /// `counter`, `gauge` or `histogram`, by metric.
    pub kinds: BTreeMap<String, String>,
    /// Values by series, such as `name{label="value"}`, labels in alphabetical order and `le` last.
    pub values: BTreeMap<String, f64>,
}

impl Exposition {
    /// Scrapes and parses a URL.
    pub(crate) async fn scrape(fetch: &Fetch, url: &str) -> Result<Self> {
        let answer = fetch.get(url).await?;
        ensure!(answer.status == 200, "{}: {}", answer.status, answer.text);
        let (mut kinds, mut values) = (BTreeMap::new(), BTreeMap::new());
        for line in answer.text.lines() {
            let is_kind = line.starts_with("# TYPE ");
            let rest = line.trim_start_matches("# TYPE ");
            let (name, value) = rest.rsplit_once(' ').context("a name alone")?;
            if is_kind {
                kinds.insert(name.to_owned(), value.to_owned());
            } else if !line.starts_with('#') {
                let value = value.parse().with_context(|| line.to_owned())?;
                values.insert(name.to_owned(), value);
            }
        }
        Ok(Self {
            text: answer.text,
            kinds,
            values,
        })
    }

    /// The values of a label, in every series.
    pub(crate) fn values_of(&self, label: &str) -> Vec<String> {
        let start = format!("{label}=\"");
        let series = self.values.keys();
        let values = series.filter_map(|it| it.split_once(&start)?.1.split_once('"'));
        let mut values: Vec<String> = values.map(|(value, _)| value.to_owned()).collect();
        values.sort();
        values.dedup();
        values
    }

    /// The bounds of a histogram's buckets.
    pub(crate) fn buckets(&self, metric: &str) -> Vec<f64> {
        let prefix = format!("{metric}_bucket{{");
        let buckets = self.values.keys().filter(|it| it.starts_with(&prefix));
        let bounds = buckets.filter_map(|it| it.rsplit_once("le=\"")?.1.split_once('"'));
        let bounds = bounds.filter_map(|(bound, _)| bound.parse().ok());
        let mut bounds: Vec<f64> = bounds.filter(|bound: &f64| bound.is_finite()).collect();
        bounds.sort_by(f64::total_cmp);
        bounds.dedup();
        bounds
    }
}
