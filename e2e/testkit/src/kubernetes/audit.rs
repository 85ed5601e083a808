//! Who wrote what, according to the API server's audit log.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::kubernetes::cluster::Cluster;

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
        writes_in(&self.audit_log(), user)
    }

    /// Follows a user's writes, from now on. The cluster needs an audit log.
    pub fn follow_writes_of(&self, user: &'static str) -> Follower {
        let mut log = GrowingLog::of(self.audit_log_path());
        log.read = fs::metadata(&log.path).map_or(0, |metadata| metadata.len());
        Follower { log, user }
    }
}

/// Follows a user's writes.
#[derive(Debug)]
pub struct Follower {
    log: GrowingLog,
    user: &'static str,
}

impl Follower {
    /// The user's writes since the last call, oldest first.
    pub fn news(&mut self) -> Result<Vec<Write>> {
        Ok(writes_in(&self.log.news()?, self.user))
    }
}

/// Reads an audit log as it grows.
#[derive(Debug)]
pub struct GrowingLog {
    path: PathBuf,
    read: u64,
}

impl GrowingLog {
    /// Reads the log from its beginning.
    pub fn of(path: PathBuf) -> Self {
        Self { path, read: 0 }
    }

    /// The complete lines since the last call.
    pub fn news(&mut self) -> Result<String> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            // No request yet.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(error).context("opening the audit log"),
        };
        let mut grown = Vec::new();
        file.seek(SeekFrom::Start(self.read))
            .and_then(|_| file.read_to_end(&mut grown))
            .context("reading the audit log")?;
        // The last line may be incomplete.
        let complete = grown.iter().rposition(|byte| *byte == b'\n');
        let complete = &grown[..complete.map_or(0, |end| end + 1)];
        self.read += u64::try_from(complete.len()).context("a log beyond 2^64 bytes")?;
        Ok(String::from_utf8_lossy(complete).into_owned())
    }
}

fn writes_in(log: &str, user: &str) -> Vec<Write> {
    let is_write = |event: &Value| {
        event["user"]["username"] == user
            && !["get", "list", "watch"].contains(&event["verb"].as_str().unwrap_or_default())
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    log.lines()
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
