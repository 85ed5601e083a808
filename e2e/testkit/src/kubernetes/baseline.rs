//! The state of a cluster before a test, and how to restore it.
//!
//! It is restored in etcd, so no finalizer, webhook or policy that a test left can prevent it. Every component sees the changes by
//! its watches. This takes milliseconds; to start an API server takes seconds of CPU time.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use kube::{Client, Config};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

/// The keys of all objects are between these.
const ALL: (&str, &str) = ("/registry/", "/registry0");
/// The leases that the components renew all the time.
const RENEWED: [&str; 2] = ["/registry/leases/kube-system/", "/registry/masterleases/"];
/// Webhooks and policies of admission.
const ADMISSION: &str = "/registry/admissionregistration.k8s.io/";
/// etcd's limit on the operations of a transaction.
const AT_A_TIME: usize = 128;
/// How long the requests of a killed program may still take effect.
const UNDER_WAY: Duration = Duration::from_millis(50);
/// How long a deleted policy or webhook may still be in force: the API server re-reads policies once a second.
const POLICIES: Duration = Duration::from_millis(1500);

/// The objects of a cluster by their keys in etcd, and the files in its folder.
#[derive(Debug)]
pub(crate) struct Baseline {
    objects: BTreeMap<String, Object>,
    files: BTreeSet<OsString>,
}

/// A key in etcd and its value. `mod_revision` is etcd's revision at the last change.
#[derive(Debug, Deserialize)]
struct Object {
    key: ByteString,
    mod_revision: String,
    #[serde(default)]
    value: ByteString,
}

#[derive(Debug, Deserialize)]
struct Objects {
    #[serde(default)]
    kvs: Vec<Object>,
}

impl Baseline {
    /// Reads the current state.
    pub(crate) async fn of(store: SocketAddr, folder: &Path) -> Result<Self> {
        Ok(Self {
            objects: objects(&client(store)?, false).await?,
            files: files(folder)?,
        })
    }

    /// Restores it: deletes what is new, and puts back what was changed or deleted.
    pub(crate) async fn restore(&self, store: SocketAddr, folder: &Path) -> Result<()> {
        sleep(UNDER_WAY).await;
        let client = client(store)?;
        let now = objects(&client, true).await?;
        let is_new = |key: &&String| !self.objects.contains_key(*key);
        let is_changed = |(key, object): &(&String, &Object)| {
            let is_renewed = RENEWED.iter().any(|it| key.starts_with(it));
            let now = now.get(*key).map(|now| &now.mod_revision);
            now != Some(&object.mod_revision) && !is_renewed
        };
        let deletes = now.keys().filter(is_new).map(|key| {
            let key = ByteString(key.clone().into_bytes());
            json!({"request_delete_range": {"key": key}})
        });
        let puts =
            self.objects.iter().filter(is_changed).map(
                |(_, object)| json!({"request_put": {"key": object.key, "value": object.value}}),
            );
        let changes: Vec<Value> = deletes.chain(puts).collect();
        for changes in changes.chunks(AT_A_TIME) {
            let _: Value = ask(&client, "/v3/kv/txn", &json!({"success": changes})).await?;
        }
        for file in files(folder)?.difference(&self.files) {
            remove(&folder.join(file))?;
        }
        if now
            .keys()
            .filter(is_new)
            .any(|key| key.starts_with(ADMISSION))
        {
            sleep(POLICIES).await;
        }
        Ok(())
    }
}

fn client(store: SocketAddr) -> Result<Client> {
    let url = format!("http://{store}").parse().context("etcd's URL")?;
    Client::try_from(Config::new(url)).context("making a client of etcd")
}

async fn objects(client: &Client, keys_only: bool) -> Result<BTreeMap<String, Object>> {
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let range = json!({"key": bytes(ALL.0), "range_end": bytes(ALL.1), "keys_only": keys_only});
    let objects: Objects = ask(client, "/v3/kv/range", &range).await?;
    let by_key = |object: Object| Ok((String::from_utf8(object.key.0.clone())?, object));
    objects.kvs.into_iter().map(by_key).collect()
}

async fn ask<T: DeserializeOwned>(client: &Client, path: &str, question: &Value) -> Result<T> {
    let request = http::Request::post(path).body(question.to_string().into_bytes())?;
    client
        .request(request)
        .await
        .with_context(|| format!("asking etcd for {path}"))
}

fn files(folder: &Path) -> Result<BTreeSet<OsString>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    Ok(entries
        .filter_map(Result::ok)
        .map(|entry| entry.file_name())
        .collect())
}

fn remove(path: &Path) -> Result<()> {
    let result = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    result.with_context(|| format!("removing {}", path.display()))
}
