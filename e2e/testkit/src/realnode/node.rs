//! The node: a kubelet and its containerd on this process's own machine, and what may happen to them.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::kubernetes::process::{Lifetime, Process};
use crate::kubernetes::{Cluster, ControllerManager, Options, eventually};
use crate::realnode::images::Image;
use crate::realnode::programs::Programs;
use crate::realnode::settings::{self, SOCKET, STATIC_PODS};
use crate::realnode::{inside, leftovers};

/// The name of the node and its machine.
pub const NAME: &str = "node-1";

/// The node's address, on a bridge of the machine.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);

/// The folder of network configurations.
pub const NETWORKS: &str = "/etc/cni/net.d";

/// The file with the boot ID, which hides the kernel's own.
const BOOT_ID: &str = "/run/kernel/kernel/random/boot_id";

/// The folder of the node's settings.
const FOLDER: &str = "/run/node";

const STARTUP: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// The taints that it registers with, as key and effect.
    pub taints: Vec<(String, String)>,
    /// Its labels, beside the kubelet's own.
    pub labels: Vec<(String, String)>,
    /// Its images, beside that of the tests' pods.
    pub images: Vec<Image>,
}

impl Setup {
    /// Adds a taint that it registers with.
    pub fn taint(mut self, key: &str, effect: &str) -> Self {
        self.taints.push((key.to_owned(), effect.to_owned()));
        self
    }

    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.push((key.to_owned(), value.to_owned()));
        self
    }

    pub fn image(mut self, image: Image) -> Self {
        self.images.push(image);
        self
    }
}

/// The control plane for a real node: every controller, and no simulated kubelets.
pub const fn options() -> Options {
    Options {
        controller_manager: ControllerManager::Complete,
        kwok: None,
        pods_reach: Some(ADDRESS),
        // Its nodes' processes are no part of what is restored.
        reuse: false,
        ..Options::full()
    }
}

/// A running node. Dropping it ends everything on it.
#[derive(Debug)]
pub struct RealNode {
    programs: Programs,
    setup: Setup,
    folder: PathBuf,
    kubelet: Option<Process>,
    containerd: Option<Process>,
    boots: u32,
}

impl RealNode {
    /// Starts containerd and imports the images, but starts no kubelet: no node is registered yet.
    pub async fn prepare(cluster: &Cluster, setup: Setup) -> Result<Self> {
        ensure!(
            inside::is_inside(),
            "a real node runs in namespaces of its own"
        );
        let mut node = Self {
            programs: Programs::locate()?,
            setup,
            folder: cluster.folder().to_owned(),
            kubelet: None,
            containerd: None,
            boots: 1,
        };
        node.write_settings(cluster)?;
        node.start_containerd().await?;
        let mut images = vec![Image::of_pods(&node.programs)?];
        images.extend(node.setup.images.iter().cloned());
        for image in images {
            image.import(&node.programs, &node.folder).await?;
        }
        Ok(node)
    }

    /// Like [`Self::prepare`], and starts the kubelet.
    pub async fn start(cluster: &Cluster, setup: Setup) -> Result<Self> {
        let mut node = Self::prepare(cluster, setup).await?;
        node.start_kubelet()?;
        Ok(node)
    }

    fn write_settings(&self, cluster: &Cluster) -> Result<()> {
        fs::create_dir_all(STATIC_PODS).context("making the folder of static pods")?;
        let runc = self.programs.path("runcwrap")?;
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "kubelet",
            "clusters": [{"name": "e2e", "cluster": {
                "server": cluster.url(),
                "certificate-authority": cluster.folder().join("ca.crt"),
            }}],
            // The node's identity, with exactly the permissions of a node.
            "users": [{"name": "kubelet", "user": {
                "token": cluster.admin_token(),
                "as": format!("system:node:{NAME}"),
                "as-groups": ["system:nodes", "system:authenticated"],
            }}],
            "contexts": [{"name": "kubelet", "context": {"cluster": "e2e", "user": "kubelet"}}],
        });
        let kubelet = settings::kubelet(&self.setup).to_string();
        for (name, content) in [
            ("kubeconfig", kubeconfig.to_string()),
            ("kubelet.yaml", kubelet),
            (
                "containerd.toml",
                settings::containerd(&runc.to_string_lossy()),
            ),
        ] {
            fs::write(setting(name), content).with_context(|| format!("writing {name}"))?;
        }
        Ok(())
    }

    async fn start_containerd(&mut self) -> Result<()> {
        let mut command = self.program("containerd")?;
        command.arg("--config").arg(setting("containerd.toml"));
        let log = self.folder.join("containerd.log");
        let mut containerd = Process::start("containerd", command, log, Lifetime::Owner)?;
        eventually("containerd answers", STARTUP, async || {
            containerd.ensure_running()?;
            Ok(UnixStream::connect(SOCKET).is_ok())
        })
        .await?;
        self.containerd = Some(containerd);
        Ok(())
    }

    /// Starts the kubelet, which registers the node unless it exists.
    pub fn start_kubelet(&mut self) -> Result<()> {
        let labels: Vec<String> = self
            .setup
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let mut command = self.program("kubelet")?;
        command
            .arg("--config")
            .arg(setting("kubelet.yaml"))
            .arg("--kubeconfig")
            .arg(setting("kubeconfig"))
            .arg(format!("--hostname-override={NAME}"))
            .arg(format!("--node-ip={ADDRESS}"))
            .arg(format!("--node-labels={}", labels.join(",")));
        let log = self.folder.join("kubelet.log");
        self.kubelet = Some(Process::start("kubelet", command, log, Lifetime::Owner)?);
        Ok(())
    }

    /// Kills the kubelet. Its pods continue.
    pub fn stop_kubelet(&mut self) {
        self.kubelet = None;
    }

    /// The kubelet's process, to pause and resume it, or to read its log.
    pub fn kubelet(&self) -> Result<&Process> {
        self.kubelet
            .as_ref()
            .context("the kubelet has been stopped")
    }

    /// Kills a pod's process that has this role, identified by its arguments.
    pub fn kill(&self, part: &[&str]) -> Result<()> {
        let arguments: Vec<&str> = ["/pod"].iter().chain(part).copied().collect();
        let killed = leftovers::kill_with_arguments(&arguments)?;
        ensure!(killed == 1, "{killed} processes are {arguments:?}");
        Ok(())
    }

    /// Kills a container's process that has this environment variable.
    pub fn kill_by_variable(&self, name: &str, value: &str) -> Result<()> {
        let killed = leftovers::kill_with_variable(name, value)?;
        ensure!(killed == 1, "{killed} processes have {name}={value}");
        Ok(())
    }

    /// Removes the network's configuration, as an uninstalled CNI plugin does.
    pub fn remove_network(&self) -> Result<()> {
        let mut removed = 0;
        for entry in fs::read_dir(NETWORKS).context("listing networks")? {
            fs::remove_file(entry?.path()).context("removing a network's configuration")?;
            removed += 1;
        }
        ensure!(removed > 0, "no network was configured");
        Ok(())
    }

    pub fn add_static_pod(&self, name: &str, pod: &Value) -> Result<()> {
        let path = Path::new(STATIC_PODS).join(format!("{name}.json"));
        fs::write(path, pod.to_string()).with_context(|| format!("writing static pod {name}"))
    }

    /// Cuts the power: kubelet, containerd, all pods and everything in memory are gone.
    pub fn go_down(&mut self) -> Result<()> {
        self.kubelet = None;
        self.containerd = None;
        leftovers::clear()
    }

    /// Boots the machine again after [`Self::go_down`].
    pub async fn come_up(&mut self) -> Result<()> {
        self.boots += 1;
        let id = format!("00000000-0000-4000-8000-{:012}\n", self.boots);
        fs::write(BOOT_ID, id).context("writing another boot ID")?;
        self.start_containerd().await?;
        self.start_kubelet()
    }

    /// A program with the other programs on its `PATH`.
    fn program(&self, name: &str) -> Result<Command> {
        let mut path: Vec<PathBuf> = self.programs.folders().to_vec();
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        path.extend(std::env::split_paths(&inherited));
        let mut command = Command::new(self.programs.path(name)?);
        command
            .env("PATH", std::env::join_paths(path)?)
            .current_dir(&self.folder);
        Ok(command)
    }
}

impl Drop for RealNode {
    fn drop(&mut self) {
        if let Err(error) = self.go_down() {
            eprintln!("ending a real node: {error:#}");
        }
    }
}

fn setting(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}
