//! Parses the Prometheus text format, as far as the controller uses it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use nodegate_testbed::fetch::Fetch;

/// One scrape.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    /// The text.
    pub text: String,
    /// `counter`, `gauge` or `histogram`, by metric.
    pub kinds: BTreeMap<String, String>,
    /// Values by series, such as `name{label="value"}`, labels in alphabetical order.
    pub values: BTreeMap<String, f64>,
    /// The sets of labels that the series of a metric have.
    pub labels: BTreeMap<String, BTreeSet<BTreeSet<String>>>,
    /// Every value of any label.
    pub label_values: BTreeSet<String>,
}

impl Exposition {
    /// Scrapes and parses a URL.
    pub(crate) async fn scrape(fetch: &Fetch, url: &str) -> Result<Self> {
        let answer = fetch.get(url).await?;
        ensure!(answer.status == 200, "{}: {}", answer.status, answer.text);
        Self::read(&answer.text)
    }

    fn read(text: &str) -> Result<Self> {
        let mut exposition = Self {
            text: text.to_owned(),
            ..Self::default()
        };
        for line in text.lines() {
            if let Some(declared) = line.strip_prefix("# TYPE ") {
                let (name, kind) = declared.split_once(' ').context("a TYPE without a type")?;
                exposition.kinds.insert(name.into(), kind.into());
            } else if !line.starts_with('#') {
                exposition.take(line).with_context(|| line.to_owned())?;
            }
        }
        Ok(exposition)
    }

    fn take(&mut self, line: &str) -> Result<()> {
        let (series, value) = line.rsplit_once(' ').context("no value")?;
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.trim_end_matches('}')),
            None => (series, ""),
        };
        let labels: Vec<(&str, &str)> = labels
            .split_terminator("\",")
            .map(|label| label.trim_end_matches('"').split_once("=\""))
            .collect::<Option<_>>()
            .context("a label without a value")?;
        let mut metric = name;
        for part in ["_bucket", "_sum", "_count"] {
            let base = name.strip_suffix(part);
            metric = base
                .filter(|base| {
                    self.kinds
                        .get(*base)
                        .is_some_and(|kind| kind == "histogram")
                })
                .unwrap_or(metric);
        }
        ensure!(self.kinds.contains_key(metric), "no TYPE");
        self.values.insert(series.to_owned(), value.parse()?);
        let names = labels.iter().map(|(label, _)| (*label).to_owned());
        // `le` belongs to a bucket, not to the metric.
        let names = names.filter(|label| label != "le").collect();
        self.labels.entry(metric.into()).or_default().insert(names);
        let values = labels.iter().map(|(_, value)| (*value).to_owned());
        self.label_values.extend(values);
        Ok(())
    }

    /// The bounds of a histogram's buckets.
    pub(crate) fn buckets(&self, metric: &str) -> Vec<f64> {
        let prefix = format!("{metric}_bucket{{");
        let mut bounds: Vec<f64> = self
            .values
            .keys()
            .filter(|series| series.starts_with(&prefix))
            .filter_map(|series| {
                series
                    .rsplit_once("le=\"")?
                    .1
                    .split_once('"')?
                    .0
                    .parse()
                    .ok()
            })
            .filter(|bound: &f64| bound.is_finite())
            .collect();
        bounds.sort_by(f64::total_cmp);
        bounds.dedup();
        bounds
    }
}
