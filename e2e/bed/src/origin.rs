//! What a cluster is like before a test, and the way back there.
//!
//! The way back goes through etcd, whose changes every component sees: no finalizer, no webhook and no policy that a test left
//! stands in its way, and it takes milliseconds where a new API server takes seconds of a processor.

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
/// What the components themselves renew all the time.
const RENEWED: [&str; 2] = ["/registry/leases/kube-system/", "/registry/masterleases/"];
/// Webhooks and policies of admission.
const ADMISSION: &str = "/registry/admissionregistration.k8s.io/";
/// How many changes etcd takes at a time.
const AT_A_TIME: usize = 128;
/// What requests may take that were under way when their sender was killed.
const UNDER_WAY: Duration = Duration::from_millis(50);
/// The API server reads policies of admission once a second.
const POLICIES: Duration = Duration::from_millis(1500);

/// The first objects of a cluster, and the files in its folder.
#[derive(Debug, Default)]
pub(crate) struct Origin {
    objects: BTreeMap<String, Object>,
    files: BTreeSet<OsString>,
}

/// A value in etcd. When it was last changed has no unit; it counts the changes of everything.
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

impl Origin {
    /// What there is now.
    pub(crate) async fn of(store: SocketAddr, folder: &Path) -> Result<Self> {
        Ok(Self {
            objects: objects(&client(store)?, false).await?,
            files: files(folder)?,
        })
    }

    /// Takes back all that has been changed since.
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
