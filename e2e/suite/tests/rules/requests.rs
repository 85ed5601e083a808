//! The controller's requests, from the API server's audit log.

use std::time::{Duration, Instant};

use anyhow::Result;
use nodegate_testbed::install::{NAMESPACE, SERVICE_ACCOUNT};
use nodegate_testbed::{Cluster, eventually};
use serde_json::Value;

use super::SOON;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Write {
    /// The resource and, if any, the subresource: `nodes`, `nodereadinessrules/status`.
    pub resource: String,
    pub name: String,
    pub code: u64,
}

/// Waits until there has been no write for two seconds; returns all so far.
pub(crate) async fn at_rest(cluster: &Cluster, name: &str) -> Result<Vec<Write>> {
    let mut last = (0, Instant::now());
    eventually("the controller comes to rest", SOON, async || {
        let writes = writes(cluster, name)?;
        if writes.len() != last.0 {
            last = (writes.len(), Instant::now());
        }
        Ok((last.1.elapsed() > Duration::from_secs(2)).then_some(writes))
    })
    .await
}

/// The controller's writes to nodes and rules with this name prefix, in the order of their answers.
pub(crate) fn writes(cluster: &Cluster, name: &str) -> Result<Vec<Write>> {
    let account = format!("system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}");
    let mut writes = Vec::new();
    let log = cluster.audit_log();
    // The last line may be incomplete.
    let lines = log
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    for line in lines.filter(|line| line.contains(name)) {
        let entry: Value = serde_json::from_str(line)?;
        let object = &entry["objectRef"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (resource, subresource) = (text(&object["resource"]), text(&object["subresource"]));
        let reads = matches!(entry["verb"].as_str(), Some("get" | "list" | "watch"));
        if reads
            || resource == "events"
            || entry["user"]["username"] != account
            || !text(&object["name"]).starts_with(name)
        {
            continue;
        }
        writes.push(Write {
            resource: [resource, subresource]
                .join("/")
                .trim_end_matches('/')
                .into(),
            name: text(&object["name"]),
            code: entry["responseStatus"]["code"].as_u64().unwrap_or_default(),
        });
    }
    Ok(writes)
}
