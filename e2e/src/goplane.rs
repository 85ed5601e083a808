//! The control plane's Go module (`e2e/controlplane`): its version, its place in the cache, and how it is built.
//!
//! The cache folder is named after everything that decides what the binary is, so a changed source, Go version or flag
//! is another folder, and nothing is ever rebuilt in place.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::binaries::Component;

/// How often a build that takes minutes says that it is alive.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// The built binary's name in the cache folder; the components are symlinks to it.
const BINARY: &str = "controlplane";

/// The Go module and the folder that its binary belongs in.
#[derive(Debug)]
pub struct GoPlane {
    /// Where `go.mod` and `main.go` are.
    source: PathBuf,
    /// The Kubernetes version of `go.mod`, such as `v1.36.3`.
    version: String,
    /// The cache folder for exactly this source, Go version and flags.
    folder: PathBuf,
}

impl GoPlane {
    /// Reads the module and asks Go for its version.
    ///
    /// # Errors
    ///
    /// When there is no `go` on the `PATH`, or the module cannot be read.
    pub fn read() -> Result<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("controlplane");
        let read = |name: &str| {
            let path = source.join(name);
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
        };
        let module = read("go.mod")?;
        let version = kubernetes_version(&module)
            .context("go.mod of the control plane requires no k8s.io/kubernetes")?;
        let key = fingerprint(&[
            &module,
            &read("go.sum")?,
            &read("main.go")?,
            &go_version(&source)?,
            &linker_flags(&version),
        ]);
        let folder = cache_root()?.join(key);
        Ok(Self {
            source,
            version,
            folder,
        })
    }

    /// The folder with the built binary and its symlinks, where it has been built.
    #[must_use]
    pub fn built(&self) -> Option<&Path> {
        self.folder
            .join(BINARY)
            .is_file()
            .then_some(self.folder.as_path())
    }

    /// Builds the binary unless it is in the cache, and returns its folder. Builds side by side wait for each other.
    ///
    /// # Errors
    ///
    /// When the build fails, with what Go said.
    pub fn build(&self) -> Result<&Path> {
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("creating {}", self.folder.display()))?;
        let lock = File::create(self.folder.join("lock")).context("creating the build lock")?;
        if lock.try_lock().is_err() {
            eprintln!("another build of the control plane is under way: waiting for it");
            lock.lock().context("waiting for the other build")?;
        }
        if let Some(folder) = self.built() {
            return Ok(folder);
        }
        eprintln!(
            "building Kubernetes {} control plane from Go modules into {}: about 6 minutes the first time, then cached",
            self.version,
            self.folder.display()
        );
        let started = Instant::now();
        let unfinished = self.folder.join("controlplane.unfinished");
        self.compile(&unfinished)?;
        for component in Component::ALL {
            let link = self.folder.join(component.name());
            if fs::symlink_metadata(&link).is_err() {
                symlink(BINARY, &link).with_context(|| format!("linking {}", link.display()))?;
            }
        }
        fs::rename(&unfinished, self.folder.join(BINARY)).context("naming the built binary")?;
        eprintln!(
            "built the control plane in {} s",
            started.elapsed().as_secs()
        );
        Ok(&self.folder)
    }

    fn compile(&self, output: &Path) -> Result<()> {
        let mut go = Command::new("go")
            .args(["build", "-trimpath", "-ldflags"])
            .arg(linker_flags(&self.version))
            .arg("-o")
            .arg(output)
            .arg(".")
            .current_dir(&self.source)
            .env("CGO_ENABLED", "0")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting go build")?;
        let said = go
            .stderr
            .take()
            .context("go build's standard error is not piped")?;

        let downloading = AtomicBool::new(false);
        let finished = AtomicBool::new(false);
        let (errors, status) = thread::scope(|scope| {
            scope.spawn(|| report_progress(&downloading, &finished));
            let mut errors = Vec::new();
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                let is_download = line.starts_with("go: downloading ");
                downloading.store(is_download, Ordering::Relaxed);
                if !is_download {
                    errors.push(line);
                }
            }
            let status = go.wait();
            finished.store(true, Ordering::Relaxed);
            (errors, status)
        });
        ensure!(
            status.context("waiting for go build")?.success(),
            "building the control plane failed:\n{}",
            errors.join("\n")
        );
        Ok(())
    }
}

fn report_progress(downloading: &AtomicBool, finished: &AtomicBool) {
    let started = Instant::now();
    let mut next = SIGN_OF_LIFE;
    while !finished.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(100));
        if started.elapsed() < next {
            continue;
        }
        let doing = if downloading.swap(false, Ordering::Relaxed) {
            "downloading modules"
        } else {
            "compiling"
        };
        eprintln!("  {doing}, {} s so far", started.elapsed().as_secs());
        next += SIGN_OF_LIFE;
    }
}

/// The version is stamped in: without it the API server calls itself v0.0.0 and refuses some features.
fn linker_flags(version: &str) -> String {
    let package = "k8s.io/component-base/version";
    let mut numbers = version.trim_start_matches('v').split('.');
    let major = numbers.next().unwrap_or_default();
    let minor = numbers.next().unwrap_or_default();
    format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor} \
         -X {package}.gitTreeState=clean"
    )
}

fn kubernetes_version(module: &str) -> Option<String> {
    module
        .lines()
        .filter_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "))
        .find_map(|rest| rest.split_whitespace().next())
        .map(str::to_owned)
}

fn go_version(source: &Path) -> Result<String> {
    let output = Command::new("go")
        .args(["env", "GOVERSION"])
        .current_dir(source)
        .output()
        .context("no `go` on the PATH: the control plane is built with Go 1.26 or newer (https://go.dev/dl)")?;
    if !output.status.success() {
        bail!(
            "go env GOVERSION: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn cache_root() -> Result<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set: no place to keep the control plane")?;
    Ok(cache.join("nodegate").join("controlplane"))
}

/// FNV-1a, 64 bits: the same for every Rust version, which the standard library's hasher does not promise.
fn fingerprint(parts: &[&str]) -> String {
    let hash = parts
        .iter()
        .flat_map(|part| part.bytes().chain([0]))
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubernetes_version_is_the_one_of_go_mod() {
        let module = "require (\n\tk8s.io/kubectl v0.0.0\n\tk8s.io/kubernetes v1.2.3 // why\n)\n";
        assert_eq!(kubernetes_version(module).as_deref(), Some("v1.2.3"));
        assert_eq!(kubernetes_version("module x"), None);
    }

    #[test]
    fn the_version_is_stamped_into_the_binary() {
        let flags = linker_flags("v1.36.3");
        assert!(flags.contains("gitVersion=v1.36.3"), "{flags}");
        assert!(flags.contains("gitMinor=36"), "{flags}");
    }

    #[test]
    fn another_source_is_another_folder() {
        assert_ne!(fingerprint(&["a", "b"]), fingerprint(&["ab", ""]));
    }
}
