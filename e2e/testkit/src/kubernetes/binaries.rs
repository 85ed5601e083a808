//! Where the control plane's binaries are found: `KUBEBUILDER_ASSETS` where set, the built one otherwise.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::kubernetes::go_module::GoModule;

/// A program of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    Etcd,
    ApiServer,
    /// The controllers (`DaemonSet`s, garbage collection, node lifecycle...).
    ControllerManager,
    Scheduler,
    /// kwok, which simulates the kubelets.
    Kwok,
    Kubectl,
}

impl Component {
    pub const ALL: [Self; 6] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kwok,
        Self::Kubectl,
    ];

    /// The name of its binary.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
            Self::Kubectl => "kubectl",
        }
    }

    /// Whether `KUBEBUILDER_ASSETS` must contain it, as `setup-envtest` provides it.
    fn is_kubebuilder_asset(self) -> bool {
        matches!(self, Self::Etcd | Self::ApiServer | Self::Kubectl)
    }
}

/// The folders that contain the components.
#[derive(Debug, Clone)]
pub struct Binaries {
    assets: Option<PathBuf>,
    built: Option<PathBuf>,
}

impl Binaries {
    pub fn locate() -> Result<Self> {
        let assets = env::var_os("KUBEBUILDER_ASSETS")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from);
        if let Some(folder) = &assets {
            for component in Component::ALL {
                let path = folder.join(component.name());
                ensure!(
                    path.is_file() || !component.is_kubebuilder_asset(),
                    "KUBEBUILDER_ASSETS is {}, which has no {}: complete that folder or unset the variable",
                    folder.display(),
                    component.name()
                );
            }
        }
        let built = GoModule::control_plane().map(|module| module.built().map(Path::to_owned));
        // With assets given, only what they lack needs Go, and `path` checks that.
        let built = if assets.is_some() {
            built.ok().flatten()
        } else {
            Some(built?.context(
                "the control plane has not been built yet; type: target/debug/cluster build",
            )?)
        };
        Ok(Self { assets, built })
    }

    /// Whether every component has been found.
    pub fn are_complete(&self) -> bool {
        Component::ALL
            .iter()
            .all(|&component| self.path(component).is_ok())
    }

    /// The path of one component's binary.
    pub fn path(&self, component: Component) -> Result<PathBuf> {
        self.assets
            .iter()
            .chain(&self.built)
            .map(|folder| folder.join(component.name()))
            .find(|path| path.is_file())
            .with_context(|| {
                format!(
                    "no {} in KUBEBUILDER_ASSETS, and the control plane has not been built yet; type: target/debug/cluster build",
                    component.name()
                )
            })
    }
}
