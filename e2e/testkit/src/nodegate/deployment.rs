//! Runs the installed Deployment as a process. It follows the pod template in everything that does not need a container.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Container, PodSpec, Secret};
use kube::{Api, Client};

use crate::kubernetes::{eventually, ports};
use crate::nodegate::cluster::Cluster;
use crate::nodegate::controller::{Controller, binary};

const NAME: &str = "nrr-controller-manager";

/// How long a pod may wait for a Secret.
const MOUNTED: Duration = Duration::from_secs(60);

/// The addresses of the process, in place of those of a pod.
#[derive(Debug)]
pub struct Addresses {
    pub metrics: String,
    pub webhook: String,
}

/// Runs the Deployment of this namespace under its service account, with its arguments, environment, configuration file and
/// mounted Secrets, for which it waits as a pod does. Arguments for kubeconfig and addresses come last and take precedence.
pub async fn run(cluster: &Cluster, namespace: &str) -> Result<(Controller, Addresses)> {
    let client = cluster.client().await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let deployment = deployments.get(NAME).await.context("the Deployment")?;
    let pod = deployment.spec.and_then(|spec| spec.template.spec);
    let pod = pod.context("a Deployment without a pod template")?;
    let container = pod.containers.first().context("no container")?;
    let account = pod.service_account_name.as_deref();
    let account = account.context("no service account")?;

    let local = || anyhow::Ok(format!("127.0.0.1:{}", ports::free()?));
    let addresses = Addresses {
        metrics: local()?,
        webhook: local()?,
    };
    let mut arguments = container.args.clone().unwrap_or_default();
    for (flag, address) in [
        ("--metrics-bind-address", &addresses.metrics),
        ("--webhook-bind-address", &addresses.webhook),
    ] {
        arguments.push(format!("{flag}={address}"));
    }
    let mut environment = environment(container, namespace);
    if let Some(path) = environment.get_mut("NODEGATE_CONFIG") {
        *path = configuration(cluster, &client, namespace).await?;
    }
    for (path, folder) in mounted_secrets(cluster, &client, namespace, &pod).await? {
        for word in arguments.iter_mut().chain(environment.values_mut()) {
            *word = word.replace(&path, &folder.to_string_lossy());
        }
    }
    let kubeconfig = cluster
        .kubeconfig_for_service_account(namespace, account)
        .await?;
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let environment: Vec<_> = environment.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let controller =
        Controller::launch(&binary()?, cluster, &kubeconfig, &arguments, &environment)?;
    Ok((controller, addresses))
}

/// The container's environment variables, with the values of the downward API.
fn environment<'a>(container: &'a Container, namespace: &str) -> BTreeMap<&'a str, String> {
    let field = |path: &str| match path {
        "metadata.name" => format!("{NAME}-0"),
        "metadata.namespace" => namespace.to_owned(),
        _ => String::new(),
    };
    let variables = container.env.iter().flatten();
    variables
        .map(|variable| {
            let source = variable.value_from.as_ref();
            let path = source.and_then(|source| source.field_ref.as_ref());
            let value = match path {
                Some(path) => field(&path.field_path),
                None => variable.value.clone().unwrap_or_default(),
            };
            (variable.name.as_str(), value)
        })
        .collect()
}

/// The configuration file in the pod's mounted `ConfigMap`.
async fn configuration(cluster: &Cluster, client: &Client, namespace: &str) -> Result<String> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let map = maps.get("nrr-controller-manager-config").await?;
    let text = map.data.unwrap_or_default().remove("config.yaml");
    let text = text.context("a ConfigMap without config.yaml")?;
    let path = cluster.folder().join(format!("{namespace}-config.yaml"));
    std::fs::write(&path, text).context("writing the configuration")?;
    Ok(path.display().to_string())
}

/// The mount paths of Secrets, and the local folders with their files.
async fn mounted_secrets(
    cluster: &Cluster,
    client: &Client,
    namespace: &str,
    pod: &PodSpec,
) -> Result<Vec<(String, PathBuf)>> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut mounted = Vec::new();
    for volume in pod.volumes.iter().flatten() {
        let source = volume.secret.as_ref();
        let Some(name) = source.and_then(|source| source.secret_name.as_ref()) else {
            continue;
        };
        let secret = eventually("the mounted Secret is there", MOUNTED, async || {
            Ok(secrets.get_opt(name).await?)
        });
        let folder = cluster.folder().join(format!("{namespace}-{name}"));
        std::fs::create_dir_all(&folder)?;
        for (file, content) in secret.await?.data.unwrap_or_default() {
            std::fs::write(folder.join(file), content.0).context("writing a mounted Secret")?;
        }
        let containers = pod.containers.iter();
        let mounts = containers.flat_map(|container| container.volume_mounts.iter().flatten());
        for mount in mounts.filter(|mount| mount.name == volume.name) {
            mounted.push((mount.mount_path.clone(), folder.clone()));
        }
    }
    Ok(mounted)
}
