//! The node's programs, built once from Go modules into the control plane's cache.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::kubernetes::go_module::{GoModule, Recipe, TOOL, kubernetes_linker_flags};

const SOURCE: &str = "runtime";

const KUBELET: Recipe = Recipe {
    // The control plane's module contains the kubelet's sources, too.
    source: "controlplane",
    folder: "kubelet",
    name: "the kubelet",
    pins: "k8s.io/kubernetes",
    packages: &["./kubelet"],
    binaries: &["kubelet"],
    linker_flags: kubernetes_linker_flags,
    takes: "a minute or two after the control plane",
    ..TOOL
};

const RUNTIME: Recipe = Recipe {
    source: SOURCE,
    folder: "containerd",
    name: "containerd, CNI plugins and what tests run",
    pins: "github.com/containerd/containerd/v2",
    packages: &[
        "./image",
        "./namespaces",
        "./pod",
        "./runcwrap",
        "github.com/containerd/containerd/v2/cmd/containerd",
        "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
        "github.com/containerd/containerd/v2/cmd/ctr",
        "github.com/containernetworking/plugins/plugins/ipam/host-local",
        "github.com/containernetworking/plugins/plugins/main/bridge",
        "github.com/containernetworking/plugins/plugins/main/loopback",
    ],
    // Only overlay snapshots are needed.
    tags: "no_btrfs,no_devmapper,no_zfs,no_aufs,no_tracing",
    binaries: &[
        "bridge",
        "containerd",
        "containerd-shim-runc-v2",
        "ctr",
        "host-local",
        "image",
        "loopback",
        "namespaces",
        "pod",
        "runcwrap",
    ],
    takes: "about 4 minutes",
    ..TOOL
};

const RUNC: Recipe = Recipe {
    source: SOURCE,
    folder: "runc",
    name: "runc",
    pins: "github.com/opencontainers/runc",
    packages: &["github.com/opencontainers/runc"],
    tags: "netgo,osusergo",
    c: true,
    binaries: &["runc"],
    takes: "about a minute",
    ..TOOL
};

#[derive(Debug, Clone)]
pub struct Programs {
    folders: Vec<PathBuf>,
}

impl Programs {
    /// Builds those that the cache lacks.
    pub fn build() -> Result<Self> {
        // The smallest has the most requirements, so missing ones are reported first.
        Self::from(|module| module.build().map(Path::to_owned))
    }

    /// Finds them in the cache.
    pub fn locate() -> Result<Self> {
        Self::from(|module| {
            let built = module.built().map(Path::to_owned);
            built.context("the real node has not been built yet; type: target/debug/realnode build")
        })
    }

    fn from(folder: impl Fn(&GoModule) -> Result<PathBuf>) -> Result<Self> {
        let recipes = [&RUNC, &KUBELET, &RUNTIME].into_iter();
        let folders = recipes.map(|recipe| folder(&GoModule::read(recipe)?));
        Ok(Self {
            folders: folders.collect::<Result<_>>()?,
        })
    }

    pub fn path(&self, name: &str) -> Result<PathBuf> {
        let mut paths = self.folders.iter().map(|folder| folder.join(name));
        paths
            .find(|path| path.is_file())
            .with_context(|| format!("no program {name} has been built"))
    }

    /// Their folders, for a `PATH`.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }
}
