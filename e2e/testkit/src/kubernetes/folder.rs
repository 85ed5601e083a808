//! The folder of one cluster, and when it is removed.
//!
//! A dropped cluster removes its folder. But a cluster in a `static` is never dropped, and an owner can be killed. So each
//! owner locks its folder, and the next cluster sweeps those whose lock is free. Folders of failed runs stay for a day, for
//! their logs; folders of clusters left running stay as long as these run.
//!
//! A run has failed when a test panics or a wait times out. Tests share clusters and threads, so a failure marks every cluster
//! of the process.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;
use std::{panic, process};

use anyhow::{Context, Result};
use nix::unistd::getuid;

use crate::kubernetes::process::is_alive;

const LOCK: &str = "owner.lock";
const FAILED: &str = "failed";
const LEFT_RUNNING: &str = "left-running";
const KEEP_FAILED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How many lines of a log are printed after a failure.
const PRINTED_LINES: usize = 40;

/// The folder of all folders of this user.
pub(crate) fn root() -> Result<PathBuf> {
    let root = std::env::temp_dir().join(format!("testkit-{}", getuid()));
    // It holds tokens and keys, so only its owner may read it.
    let mut private = DirBuilder::new();
    private.recursive(true).mode(0o700);
    private
        .create(&root)
        .with_context(|| format!("creating {}", root.display()))?;
    Ok(root)
}

#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Held while the owner lives.
    _lock: File,
}

impl Folder {
    /// Sweeps abandoned folders, and creates a new one.
    pub(crate) fn create() -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let root = root()?;
        // One process at a time, so that nobody sweeps a folder between its creation and its locking.
        let turn = File::create(root.join("turn.lock")).context("creating the sweep lock")?;
        turn.lock().context("waiting for the sweep lock")?;
        sweep(&root);
        let path = loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = root.join(format!("{}-{number}", process::id()));
            match fs::create_dir(&path) {
                Ok(()) => break path,
                // A failed process with the same ID left it.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("creating {}", path.display()));
                }
            }
        };
        let lock = File::create(path.join(LOCK)).context("creating the owner's lock")?;
        lock.lock().context("locking the cluster's folder")?;
        note_panics();
        live().push(path.clone());
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps its logs for a day.
    pub(crate) fn keep_as_failed(&self) {
        let _ = File::create(self.path.join(FAILED));
    }

    /// Keeps it while one of these processes runs.
    pub(crate) fn keep_while_running(&self, pids: &[u32]) -> Result<()> {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        fs::write(self.path.join(LEFT_RUNNING), pids.join("\n"))
            .context("marking the cluster as left running")
    }

    /// Removes it; after a failure, all but the logs. Nothing may use it any more.
    pub(crate) fn dispose(&self) {
        live().retain(|path| *path != self.path);
        dispose(&self.path);
    }
}

/// Marks the folders of all clusters of this process as failed, and prints where they are and how the logs of the program under
/// test end: where tests run unattended, nobody can open the folders.
pub fn note_failure() {
    FAILURE.store(true, Ordering::Relaxed);
    for path in live().iter() {
        let _ = File::create(path.join(FAILED));
        eprintln!("the cluster's logs are in {}", path.display());
        for log in logs_under_test(path) {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let end = &lines[lines.len().saturating_sub(PRINTED_LINES)..];
            eprintln!("{} ends:\n  {}", log.display(), end.join("\n  "));
        }
    }
}

/// The logs of the program under test in a cluster's folder, in the order of their names.
fn logs_under_test(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let is_meant = |path: &PathBuf| {
        let name = path.file_stem().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("nodegate-"))
            && path.extension().is_some_and(|extension| extension == "log")
    };
    let mut logs: Vec<_> = paths.filter(is_meant).collect();
    logs.sort();
    logs
}

/// Whether a test of this process has panicked or a wait has timed out.
pub fn has_failed() -> bool {
    FAILURE.load(Ordering::Relaxed)
}

static FAILURE: AtomicBool = AtomicBool::new(false);

fn live() -> MutexGuard<'static, Vec<PathBuf>> {
    static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            previous(info);
            note_failure();
        }));
    });
}

fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    for folder in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if folder.is_dir() && !is_in_use(&folder) {
            dispose(&folder);
        }
    }
}

fn is_in_use(folder: &Path) -> bool {
    let owned = File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_err());
    let left_running = fs::read_to_string(folder.join(LEFT_RUNNING)).is_ok_and(|pids| {
        pids.lines()
            .filter_map(|pid| pid.parse().ok())
            .any(is_alive)
    });
    owned || left_running
}

fn dispose(folder: &Path) {
    let failed = fs::metadata(folder.join(FAILED)).and_then(|mark| mark.modified());
    let keep = failed.is_ok_and(|moment| moment.elapsed().is_ok_and(|age| age < KEEP_FAILED_FOR));
    let _ = if keep {
        // etcd's data is large and of little use.
        fs::remove_dir_all(folder.join("etcd"))
    } else {
        fs::remove_dir_all(folder)
    };
}
