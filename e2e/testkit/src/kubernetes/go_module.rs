//! The Go modules beside this crate's sources (the control plane, the node, the tools, Karpenter): their versions, their cache
//! folders and their builds. Helm, Prometheus and cert-manager are of one module, and so compile what they share once.
//!
//! The name of a cache folder covers everything that decides what the binaries are. A changed source, Go version or flag gives
//! another folder, and nothing is ever rebuilt in place.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, IsTerminal, stderr};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::kubernetes::binaries::Component;

/// How often a long build says that it still runs, in the same line of a terminal.
const TICK: Duration = Duration::from_secs(1);

/// The same where there is no terminal, in a line of its own.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2 * 60);

/// Clears the rest of a terminal's line.
const ERASE_REST: &str = "\x1b[K";

/// No debug information, which the linker drops in any case: a tenth of what compiling costs.
const COMPILER_FLAGS: &str = "-gcflags=all=-dwarf=false";

/// The compiler collects no garbage below 1 GiB, which few packages reach: an eighth of what compiling costs.
const COMPILER_MEMORY: [(&str, &str); 2] = [("GOGC", "off"), ("GOMEMLIMIT", "1GiB")];

#[derive(Debug)]
pub struct Recipe {
    /// The module's folder: relative to this crate.
    pub source: &'static str,
    /// The folder in the cache.
    pub folder: &'static str,
    /// Its name in messages.
    pub name: &'static str,
    /// The pinned module whose version counts.
    pub pins: &'static str,
    /// The packages to build, or `tool` for the tools of `go.mod`. A leading dot means a package in the module's folder.
    pub packages: &'static [&'static str],
    pub tags: &'static str,
    /// Whether it needs a C compiler.
    pub c: bool,
    pub binaries: &'static [&'static str],
    /// Other names of the first binary.
    pub links: fn() -> Vec<&'static str>,
    /// The linker flags for this version.
    pub linker_flags: fn(version: &str) -> String,
    /// How long the build takes on two cores.
    pub takes: &'static str,
}

/// What most have in common: a module that is built without C.
pub const TOOL: Recipe = Recipe {
    source: "tools",
    folder: "",
    name: "",
    pins: "",
    packages: &[],
    tags: "",
    c: false,
    binaries: &[],
    links: Vec::new,
    linker_flags: |_| "-s -w".into(),
    takes: "about 2 minutes",
};

const CONTROL_PLANE: Recipe = Recipe {
    source: "controlplane",
    folder: "controlplane",
    name: "the Kubernetes control plane",
    pins: "k8s.io/kubernetes",
    packages: &["."],
    binaries: &["controlplane"],
    links: || Component::ALL.map(Component::name).to_vec(),
    linker_flags: kubernetes_linker_flags,
    takes: "5 to 10 minutes",
    ..TOOL
};

/// Prometheus and promtool.
pub const PROMETHEUS: Recipe = Recipe {
    folder: "prometheus",
    name: "Prometheus",
    pins: "github.com/prometheus/prometheus",
    packages: &[
        "github.com/prometheus/prometheus/cmd/prometheus",
        "github.com/prometheus/prometheus/cmd/promtool",
    ],
    // Targets come from a file, so no cloud discovery is needed.
    tags: "remove_all_sd",
    binaries: &["prometheus", "promtool"],
    ..TOOL
};

pub const HELM: Recipe = Recipe {
    folder: "helm",
    name: "Helm",
    pins: "helm.sh/helm/v4",
    packages: &["helm.sh/helm/v4/cmd/helm"],
    binaries: &["helm"],
    ..TOOL
};

/// Karpenter with its kwok provider.
pub const KARPENTER: Recipe = Recipe {
    source: "karpenter",
    folder: "karpenter",
    name: "Karpenter",
    pins: "sigs.k8s.io/karpenter",
    packages: &["tool"],
    // The main package is that of the provider, `kwok`.
    binaries: &["kwok"],
    links: || vec!["karpenter"],
    takes: "about 5 minutes",
    ..TOOL
};

/// The parts of cert-manager that issue a webhook's certificate.
pub const CERT_MANAGER: Recipe = Recipe {
    folder: "cert-manager",
    name: "cert-manager",
    pins: "github.com/cert-manager/cert-manager",
    packages: &["./cert-manager"],
    binaries: &["cert-manager"],
    ..TOOL
};

/// The control plane's versions, newest first, with their module files. The first is the default of `KUBERNETES`.
const KUBERNETES: [(&str, &str); 2] = [("1.36", "go.mod"), ("1.34", "1.34.mod")];

/// A Go module and the cache folder of its binaries.
#[derive(Debug)]
pub struct GoModule {
    recipe: &'static Recipe,
    source: PathBuf,
    /// The file there that serves as its `go.mod`.
    file: &'static str,
    /// The version of the pinned module, such as `v1.36.3`.
    version: String,
    /// The cache folder for exactly this source, Go version and flags.
    folder: PathBuf,
}

impl GoModule {
    /// etcd, the Kubernetes components and kwok, for the version in the environment variable `KUBERNETES`.
    pub fn control_plane() -> Result<Self> {
        let wanted = env::var("KUBERNETES").unwrap_or_default();
        Self::read_from(&CONTROL_PLANE, kubernetes_module(&wanted)?)
    }

    pub fn read(recipe: &'static Recipe) -> Result<Self> {
        Self::read_from(recipe, "go.mod")
    }

    fn read_from(recipe: &'static Recipe, file: &'static str) -> Result<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(recipe.source);
        let read = |name: &str| {
            let path = source.join(name);
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
        };
        let module = read(file)?;
        let version = pinned_version(&module, recipe.pins)
            .with_context(|| format!("{}/{file} requires no {}", source.display(), recipe.pins))?;
        let mut parts = vec![module, read(&file.replace(".mod", ".sum"))?];
        for package in recipe.packages.iter().filter(|name| name.starts_with('.')) {
            parts.extend(go_files(&source.join(package))?);
        }
        parts.push(go_version(&source)?);
        parts.push((recipe.linker_flags)(&version));
        parts.push(COMPILER_FLAGS.to_owned());
        if !recipe.tags.is_empty() {
            parts.push(recipe.tags.to_owned());
        }
        let folder = cache_root()?.join(recipe.folder).join(fingerprint(&parts));
        Ok(Self {
            recipe,
            source,
            file,
            version,
            folder,
        })
    }

    /// The folder of the built binaries, if they have been built.
    pub fn built(&self) -> Option<&Path> {
        let mut binaries = self.recipe.binaries.iter();
        binaries
            .all(|binary| self.folder.join(binary).is_file())
            .then_some(self.folder.as_path())
    }

    /// The path of a built binary of this recipe, which `cluster build` knows by its folder in the cache.
    pub fn binary(recipe: &'static Recipe, name: &str) -> Result<PathBuf> {
        let module = Self::read(recipe)?;
        let folder = module.built().with_context(|| {
            let Recipe { name, folder, .. } = recipe;
            format!("{name} has not been built yet; type: target/debug/cluster build {folder}")
        })?;
        Ok(folder.join(name))
    }

    /// Builds the binaries unless the cache has them, and returns their folder. Concurrent builds wait for each other.
    pub fn build(&self) -> Result<&Path> {
        let name = self.recipe.name;
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("creating {}", self.folder.display()))?;
        let lock = File::create(self.folder.join("lock")).context("creating the build lock")?;
        if lock.try_lock().is_err() {
            eprintln!("another build of {name} is under way: waiting for it");
            lock.lock().context("waiting for the other build")?;
        }
        if let Some(folder) = self.built() {
            return Ok(folder);
        }
        eprintln!(
            "building {name} {} from Go modules into {}: {} the first time, then cached",
            self.version,
            self.folder.display(),
            self.recipe.takes
        );
        if self.recipe.c {
            self.look_for_c_compiler()?;
        }
        let started = Instant::now();
        let unfinished = self.folder.join("unfinished");
        self.compile(&unfinished)?;
        for link in (self.recipe.links)() {
            let link = self.folder.join(link);
            if fs::symlink_metadata(&link).is_err() {
                symlink(self.recipe.binaries[0], &link)
                    .with_context(|| format!("linking {}", link.display()))?;
            }
        }
        for binary in self.recipe.binaries {
            fs::rename(unfinished.join(binary), self.folder.join(binary))
                .with_context(|| format!("go build made no {binary}"))?;
        }
        // Leaving the empty folder behind does no harm.
        let _ = fs::remove_dir(&unfinished);
        eprintln!("built {name} in {} s", started.elapsed().as_secs());
        Ok(&self.folder)
    }

    fn look_for_c_compiler(&self) -> Result<()> {
        let compiler = env::var("CC").unwrap_or_else(|_| "gcc".to_owned());
        let found = Command::new(&compiler)
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        ensure!(
            found,
            "{} is written in C in parts, and there is no {compiler}: install a C compiler (Debian: gcc and libc6-dev), or set CC",
            self.recipe.name
        );
        Ok(())
    }

    fn compile(&self, output: &Path) -> Result<()> {
        fs::create_dir_all(output).with_context(|| format!("creating {}", output.display()))?;
        let mut go = Command::new("go")
            .args(["build", "-trimpath", COMPILER_FLAGS, "-modfile", self.file])
            .args(["-tags", self.recipe.tags, "-ldflags"])
            .arg((self.recipe.linker_flags)(&self.version))
            .arg("-o")
            .arg(output)
            .args(self.recipe.packages)
            .current_dir(&self.source)
            .env("CGO_ENABLED", if self.recipe.c { "1" } else { "0" })
            .envs(COMPILER_MEMORY)
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
            "building {} failed:\n{}",
            self.recipe.name,
            errors.join("\n")
        );
        Ok(())
    }
}

fn report_progress(downloading: &AtomicBool, finished: &AtomicBool) {
    let is_terminal = stderr().is_terminal();
    let interval = if is_terminal { TICK } else { SIGN_OF_LIFE };
    let started = Instant::now();
    let mut next = interval;
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
        let line = format!("  {doing}, {} s so far", started.elapsed().as_secs());
        if is_terminal {
            eprint!("{line}{ERASE_REST}\r");
        } else {
            eprintln!("{line}");
        }
        next += interval;
    }
    if is_terminal {
        eprint!("{ERASE_REST}");
    }
}

/// Stamps in the version: without it the API server calls itself v0.0.0 and refuses some features.
pub fn kubernetes_linker_flags(version: &str) -> String {
    let package = "k8s.io/component-base/version";
    let mut numbers = version.trim_start_matches('v').split('.');
    let major = numbers.next().unwrap_or_default();
    let minor = numbers.next().unwrap_or_default();
    format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor} \
         -X {package}.gitTreeState=clean"
    )
}

/// The control plane's module file for this version; for the newest if empty.
fn kubernetes_module(wanted: &str) -> Result<&'static str> {
    let wanted = if wanted.is_empty() {
        KUBERNETES[0].0
    } else {
        wanted
    };
    let found = KUBERNETES.iter().find(|(version, _)| *version == wanted);
    let (_, file) = found.with_context(|| {
        let versions = KUBERNETES.map(|(version, _)| version).join(" and ");
        format!("KUBERNETES is {wanted}: the control plane can be built of {versions}")
    })?;
    Ok(file)
}

/// The contents of a package's Go files, ordered by file name.
fn go_files(folder: &Path) -> Result<Vec<String>> {
    let listed = || {
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder)? {
            paths.push(entry?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "go"));
        paths.sort();
        paths.into_iter().map(fs::read_to_string).collect()
    };
    let files: std::io::Result<_> = listed();
    files.with_context(|| format!("reading {}", folder.display()))
}

/// The version at which a `go.mod` requires a module.
fn pinned_version(go_mod: &str, module: &str) -> Option<String> {
    go_mod
        .lines()
        .filter_map(|line| line.trim().strip_prefix(module)?.strip_prefix(' '))
        .find_map(|rest| rest.split_whitespace().next())
        .map(str::to_owned)
}

fn go_version(source: &Path) -> Result<String> {
    let output = Command::new("go")
        .args(["env", "GOVERSION"])
        .current_dir(source)
        .output()
        .context("no `go` on the PATH: what the tests run is built with Go 1.26 or newer (https://go.dev/dl)")?;
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
        .context("neither XDG_CACHE_HOME nor HOME is set: no place to keep what is built")?;
    Ok(cache.join("nodegate"))
}

/// FNV-1a, 64 bits: stable across Rust versions, unlike the standard library's hasher.
fn fingerprint(parts: &[impl AsRef<str>]) -> String {
    let hash = parts
        .iter()
        .flat_map(|part| part.as_ref().bytes().chain([0]))
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_of_go_mod() {
        let go_mod =
            "require (\n\tk8s.io/kubernetes-x v0.0.0\n\tk8s.io/kubernetes v1.2.3 // why\n)\n";
        let version = |go_mod| pinned_version(go_mod, "k8s.io/kubernetes");
        assert_eq!(version(go_mod).as_deref(), Some("v1.2.3"));
        assert_eq!(version("tool (\n\tk8s.io/kubernetes/cmd/x\n)\n"), None);
    }

    #[test]
    fn each_version_of_kubernetes_has_its_module() -> Result<()> {
        for (version, file) in KUBERNETES {
            assert_eq!(kubernetes_module(version)?, file);
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("controlplane")
                .join(file);
            let pinned = pinned_version(&fs::read_to_string(path)?, "k8s.io/kubernetes");
            let pinned = pinned.context("no version")?;
            assert!(pinned.starts_with(&format!("v{version}.")), "{pinned}");
        }
        assert_eq!(kubernetes_module("")?, "go.mod");
        let error = kubernetes_module("1.20").unwrap_err().to_string();
        assert!(error.contains("can be built of 1.36 and 1.34"), "{error}");
        Ok(())
    }

    #[test]
    fn another_source_is_another_folder() {
        assert_ne!(fingerprint(&["a", "b"]), fingerprint(&["ab", ""]));
    }
}
