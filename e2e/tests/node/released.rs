//! A release as its users get it: chart and image come from a registry, and the node's own containerd pulls the image. Only
//! `make test-release`, which fills the registry and passes its address, runs these tests.

use std::env;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use nodegate_tests::SOON;
use testkit::nodegate::install::{NAMESPACE, repository};
use testkit::nodegate::process::{Lifetime, Process};
use testkit::nodegate::state::{events_about, pods_on};
use testkit::nodegate::{Cluster, eventually};
use testkit::realnode::inside::alone;
use testkit::realnode::node::{NAME, options};
use testkit::realnode::{RealNode, Times};

use crate::installation::Installation;
use crate::scene::{create_critical, critical_rule, held};

/// The output of `make test-release`.
struct Release {
    /// The folder of the release.
    dist: PathBuf,
    /// The registry's address, as `127.0.0.1:port`, inside and outside the machine's own network.
    registry: String,
    /// The registry's program and its configuration.
    program: PathBuf,
    configuration: PathBuf,
}

impl Release {
    fn given() -> Result<Self> {
        let folder = variable("NODEGATE_REGISTRY_CONFIGURATION")?;
        Ok(Self {
            dist: repository().join("dist"),
            registry: variable("NODEGATE_REGISTRY")?,
            program: repository().join("target/tools/registry"),
            configuration: folder.into(),
        })
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = self.dist.join(file);
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    }

    /// Serves the registry's folder on this machine.
    async fn serve(&self, log: &Path) -> Result<Process> {
        let mut command = Command::new(&self.program);
        command.arg("serve").arg(&self.configuration);
        let log = log.join("registry.log");
        let mut process = Process::start("registry", command, log, Lifetime::Owner)?;
        eventually("the registry answers", SOON, async || {
            process.ensure_running()?;
            Ok(TcpStream::connect(&self.registry).is_ok())
        })
        .await?;
        Ok(process)
    }

    /// Whether this is the image of the release, by containerd's name for a pulled image.
    fn has(&self, image: &str) -> Result<bool> {
        let digest = self.read("image.digest")?;
        Ok(image == format!("{}/nodegate/nodegate@{}", self.registry, digest.trim()))
    }
}

fn variable(name: &str) -> Result<String> {
    env::var(name).with_context(|| format!("{name} is not set; type: make test-release"))
}

/// The images of a pod's containers, by containerd's names.
fn images(pod: &Pod) -> Vec<&str> {
    let status = pod.status.iter();
    let containers = status.flat_map(|status| status.container_statuses.iter().flatten());
    containers
        .map(|container| container.image_id.as_str())
        .collect()
}

/// Installs the release in this namespace, on a node without its image, and waits until that node is released.
async fn releases_a_node(
    namespace: &'static str,
    install: impl AsyncFnOnce(&Cluster, &Release) -> Result<()>,
) -> Result<()> {
    let release = Release::given()?;
    let cluster = Cluster::start(options()).await?;
    let _registry = release.serve(cluster.folder()).await?;
    let client = cluster.client().await?;
    install(&cluster, &release).await?;
    let installation = Installation::found(&cluster, namespace).await?;
    eventually("rules are known", SOON, async || {
        critical_rule().create(&client).await?;
        Ok(true)
    })
    .await?;
    create_critical(&client).await?;

    let _node = RealNode::start(&cluster, held()).await?;
    let times = Times::since("the kubelet is started");
    installation.leads(&times).await?;
    installation.releases_the_node(&times).await?;
    installation.both_are_ready(&times).await?;

    let mut pods = pods_on(&client, NAME).await?;
    pods.retain(|pod| pod.namespace().as_deref() == Some(namespace));
    let mut pulled = 0;
    for pod in &pods {
        let images = images(pod);
        ensure!(images.len() == 1 && release.has(images[0])?, "{images:?}");
        for event in events_about(&client, "Pod", &pod.name_any()).await? {
            let message = event.message.unwrap_or_default();
            if message.starts_with("Successfully pulled image") {
                pulled += 1;
            }
        }
    }
    ensure!(pulled > 0, "the image was there already");
    Ok(())
}

#[test]
#[ignore = "make test-release makes what it installs"]
fn a_release_is_installed_by_helm_and_its_image_is_pulled() -> Result<()> {
    alone(async || {
        releases_a_node("nodegate-system", async |cluster, release| {
            let chart = format!("oci://{}/nodegate/charts/nodegate", release.registry);
            let version = env!("CARGO_PKG_VERSION");
            let from = ["install", "nodegate", &chart, "--version", version];
            let to = ["--plain-http", "--namespace", "nodegate-system"];
            let arguments = [&from[..], &to, &["--create-namespace"]].concat();
            cluster.helm(&arguments).await.map(drop)
        })
        .await
    })
}

#[test]
#[ignore = "make test-release makes what it installs"]
fn a_release_is_installed_by_kubectl_and_its_image_is_pulled() -> Result<()> {
    alone(async || {
        releases_a_node(NAMESPACE, async |cluster, release| {
            for manifests in ["crds.yaml", "install.yaml"] {
                cluster.apply_path(&release.dist.join(manifests)).await?;
            }
            Ok(())
        })
        .await
    })
}
