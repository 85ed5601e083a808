//! The installed Deployment, run as a process: there are no containers here, so everything is as its pod template says but
//! what cannot be the same outside a pod.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Container};
use kube::{Api, Client};
use kube_testbed::ports;

use crate::cluster::Cluster;
use crate::controller::Controller;

const NAME: &str = "nrr-controller-manager";

/// Where the process listens instead.
#[derive(Debug)]
pub struct Addresses {
    /// Of metrics.
    pub metrics: String,
    /// Of the webhook.
    pub webhook: String,
}

/// Starts what the Deployment in this namespace runs, under its service account and with its arguments, environment and
/// configuration file. Kubeconfig and addresses are added at the end, where they win.
///
/// # Errors
///
/// When there is no such Deployment, or the process cannot be started.
pub async fn run(cluster: &Cluster, namespace: &str) -> Result<(Controller, Addresses)> {
    let client = cluster.client().await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let deployment = deployments.get(NAME).await.context("the Deployment")?;
    let pod = deployment.spec.and_then(|spec| spec.template.spec);
    let pod = pod.context("a Deployment without a pod template")?;
    let container = pod.containers.first().context("no container")?;
    let account = pod.service_account_name.context("no service account")?;

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
    if arguments
        .iter()
        .any(|argument| argument.starts_with("--config="))
    {
        arguments.push(format!(
            "--config={}",
            configuration(cluster, &client, namespace).await?
        ));
    }
    let kubeconfig = cluster
        .kubeconfig_for_service_account(namespace, &account)
        .await?;
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let environment = environment(container, namespace);
    let environment: Vec<_> = environment.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let controller = Controller::launch(cluster, &kubeconfig, &arguments, &environment)?;
    Ok((controller, addresses))
}

/// The container's variables, with what the downward API would put in.
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

/// The file that the pod would find in its mounted `ConfigMap`.
async fn configuration(cluster: &Cluster, client: &Client, namespace: &str) -> Result<String> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let map = maps.get("nrr-controller-manager-config").await?;
    let text = map.data.unwrap_or_default().remove("config.yaml");
    let text = text.context("a ConfigMap without config.yaml")?;
    let path = cluster.folder().join(format!("{namespace}-config.yaml"));
    std::fs::write(&path, text).context("writing the configuration")?;
    Ok(path.display().to_string())
}
