//! A reader's shell: in a folder with what the page expects, and with the tools on the `PATH`.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use nodegate_tests::pages::yaml;
use testkit::nodegate::binaries::{Binaries, Component};
use testkit::nodegate::install::{program, repository};
use testkit::nodegate::{Cluster, helm, tool};

use super::pages::{At, Page};

/// The timeout of a command, in seconds.
const LONGEST: &str = "120";

#[derive(Debug)]
pub(crate) struct Shell {
    /// A folder of the cluster, with the tools in `bin`.
    home: PathBuf,
    /// The working directory.
    folder: PathBuf,
    kubeconfig: PathBuf,
}

impl Shell {
    /// A shell at the root of the repository.
    pub(crate) fn new(cluster: &Cluster) -> Result<Self> {
        let home = cluster.folder().join("home");
        let tools = home.join("bin");
        fs::create_dir_all(&tools)?;
        symlink(
            Binaries::locate()?.path(Component::Kubectl)?,
            tools.join("kubectl"),
        )?;
        symlink(helm::binary()?, tools.join("helm"))?;
        for name in ["nodegate-controller", "kubectl-nodegate"] {
            symlink(program(name)?, tools.join(name))?;
        }
        Ok(Self {
            home,
            folder: repository(),
            kubeconfig: cluster.kubeconfig(),
        })
    }

    /// Puts a script on the `PATH`, in place of a tool that this machine may lack.
    pub(crate) fn stand_in(&self, name: &str, script: &str) -> Result<()> {
        let path = self.home.join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\nset -eu\n{script}"))?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        Ok(())
    }

    /// A shell in the working directory of a page's reader.
    pub(crate) fn at(&self, page: &Page) -> Result<Self> {
        let page_file = repository().join(page.path);
        let folder = match page.at {
            At::Beside => page_file.parent().context("a page in a folder")?.to_owned(),
            At::Repository => self.beside_the_repository(page.path)?,
        };
        Ok(Self {
            home: self.home.clone(),
            folder,
            kubeconfig: self.kubeconfig.clone(),
        })
    }

    /// A folder with links to the whole repository, and the page's manifests as `0.yaml`, `1.yaml`, and so on. Files written
    /// there do not change the repository.
    fn beside_the_repository(&self, page: &str) -> Result<PathBuf> {
        let folder = self.home.join(page.replace('/', "-"));
        fs::create_dir_all(&folder)?;
        for name in ["charts", "config", "docs", "examples"] {
            let link = folder.join(name);
            if !link.exists() {
                symlink(repository().join(name), link)?;
            }
        }
        let blocks = yaml()?.into_iter().filter(|block| block.page == page);
        let manifests = blocks.filter(|block| block.text.contains("kind: "));
        for (index, manifest) in manifests.enumerate() {
            fs::write(folder.join(format!("{index}.yaml")), manifest.text)?;
        }
        let beside = self.home.join("nodegate");
        if !beside.exists() {
            symlink(repository(), beside)?;
        }
        Ok(folder)
    }

    /// Types a text.
    pub(crate) async fn types(&self, text: &str) -> Result<String> {
        let path = env::var_os("PATH").unwrap_or_default();
        let tools = [self.home.join("bin")];
        let path = env::join_paths(tools.into_iter().chain(env::split_paths(&path)))?;
        let mut command = Command::new("timeout");
        command
            .args([LONGEST, "bash", "-euo", "pipefail", "-c", text])
            .current_dir(&self.folder)
            .env("PATH", path)
            .env("HOME", &self.home)
            .env("KUBECONFIG", &self.kubeconfig);
        tool::run(command, "").await
    }
}
