//! Container images, built on the spot and imported into containerd as archives.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::kubernetes::tool;
use crate::realnode::programs::Programs;
use crate::realnode::settings::SOCKET;

/// The image of every pod in the tests: a single program with several roles.
pub const POD: &str = "realnode.test/pod:1";

const PLUGINS: [&str; 3] = ["bridge", "host-local", "loopback"];

/// An image that contains a program and its shared libraries.
#[derive(Debug, Clone)]
pub struct Image {
    name: String,
    entrypoint: String,
    user: &'static str,
    files: Vec<OsString>,
}

impl Image {
    /// An image that runs this program, at this path in the image.
    pub fn of(name: &str, in_image: &str, program: &Path) -> Result<Self> {
        let mut image = Self {
            name: name.to_owned(),
            entrypoint: in_image.to_owned(),
            user: "",
            files: Vec::new(),
        };
        image.add(in_image, program);
        for library in libraries(program)? {
            image.add(&library, Path::new(&library));
        }
        Ok(image)
    }

    /// Has it run as this user, and not as root.
    pub fn as_user(mut self, user: &'static str) -> Self {
        self.user = user;
        self
    }

    /// Adds the test pods' program as `/pod`.
    pub fn with_pod(mut self) -> Result<Self> {
        self.add("/pod", &Programs::locate()?.path("pod")?);
        Ok(self)
    }

    pub(crate) fn of_pods(programs: &Programs) -> Result<Self> {
        let mut image = Self::of(POD, "/pod", &programs.path("pod")?)?;
        for plugin in PLUGINS {
            image.add(&format!("/plugins/{plugin}"), &programs.path(plugin)?);
        }
        Ok(image)
    }

    fn add(&mut self, in_image: &str, file: &Path) {
        let mut pair = OsString::from(format!("{in_image}="));
        pair.push(file);
        self.files.push(pair);
    }

    /// Builds it and imports it into containerd.
    pub(crate) async fn import(&self, programs: &Programs, folder: &Path) -> Result<()> {
        let archive = folder.join("image.tar");
        let mut make = Command::new(programs.path("image")?);
        make.arg(&archive)
            .args([&*self.name, &*self.entrypoint, self.user])
            .args(&self.files);
        tool::run(make, "").await?;
        let mut import = Command::new(programs.path("ctr")?);
        import
            .args(["--address", SOCKET, "--namespace", "k8s.io"])
            .args(["images", "import", "--local"])
            .arg(&archive);
        tool::run(import, "").await?;
        std::fs::remove_file(archive).context("removing an image's archive")
    }
}

/// The shared libraries of a program, from the system's linker: none for a static one.
fn libraries(program: &Path) -> Result<Vec<String>> {
    let output = Command::new("ldd")
        .arg(program)
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .output()
        .context("asking ldd for libraries")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(paths(&said))
}

/// The paths in the output of `ldd`: `libc.so.6 => /lib/libc.so.6 (0x7f)`, `/lib64/ld-linux.so.2 (0x7f)`.
fn paths(said: &str) -> Vec<String> {
    let words = said.split_whitespace();
    let paths = words.filter(|word| word.starts_with('/') && !word.ends_with(':'));
    paths.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_that_the_linker_has_found() {
        let said = "\tlinux-vdso.so.1 (0x7ff)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n\t/lib64/ld-linux.so.2 (0x7f)\n";
        assert_eq!(paths(said), ["/lib/libc.so.6", "/lib64/ld-linux.so.2"]);
        assert!(paths("\tstatically linked\n").is_empty());
    }
}
