//! Who wrote what, according to the API server's audit log.

use serde_json::Value;

use crate::cluster::Cluster;

/// One write that the API server has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// `patch`, `create`...
    pub verb: String,
    /// The resource with its subresource, such as `nodes` or `nodereadinessrules/status`.
    pub resource: String,
    pub name: String,
    pub code: u64,
    /// The user agent of the program that sent it.
    pub instance: String,
}

impl Write {
    /// Whether this changed a node's metadata or spec.
    pub fn changed_a_node(&self) -> bool {
        self.resource == "nodes" && self.code == 200
    }
}

impl Cluster {
    /// A user's writes so far, oldest first. The cluster needs an audit log.
    pub fn writes_of(&self, user: &str) -> Vec<Write> {
        let is_write = |event: &Value| {
            event["user"]["username"] == user
                && !["get", "list", "watch"].contains(&event["verb"].as_str().unwrap_or_default())
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.audit_log()
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(is_write)
            .map(|event| {
                let object = &event["objectRef"];
                let resource = [text(&object["resource"]), text(&object["subresource"])];
                Write {
                    verb: text(&event["verb"]),
                    resource: resource.join("/").trim_end_matches('/').to_owned(),
                    name: text(&object["name"]),
                    code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
                    instance: text(&event["userAgent"]),
                }
            })
            .collect()
    }
}
