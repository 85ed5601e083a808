//! Slots for clusters. As many processes have clusters at a time as the machine has cores, and each has one besides those that its
//! tests share: an API server that starves fails tests for no fault of theirs. The kernel frees a slot when its process ends.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::{self, available_parallelism};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit, oneshot};
use tokio::time::timeout;

use crate::kubernetes::folder;

const POLL: Duration = Duration::from_millis(50);
/// How long to wait before it is said what for.
const SILENCE: Duration = Duration::from_secs(2);

/// The turn among the clusters of a process.
pub(crate) type ClusterPermit = Option<SemaphorePermit<'static>>;

/// A cluster's right to run.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The slot of the process.
    process: Arc<File>,
    /// The turn among the clusters of the process; `None` if tests share the cluster.
    turn: ClusterPermit,
}

impl Slot {
    /// Waits until another cluster may run.
    pub(crate) async fn take(is_shared: bool) -> Result<Self> {
        static TURNS: Semaphore = Semaphore::const_new(1);
        static OF_PROCESS: Mutex<Weak<File>> = Mutex::const_new(Weak::new());

        let turn = if is_shared {
            None
        } else {
            Some(TURNS.acquire().await?)
        };
        let mut of_process = OF_PROCESS.lock().await;
        let process = if let Some(slot) = of_process.upgrade() {
            slot
        } else {
            let slot = Arc::new(of_machine(folder::root()?).await?);
            *of_process = Arc::downgrade(&slot);
            slot
        };
        Ok(Self { process, turn })
    }

    /// Splits off the turn. Another cluster of the process gets it once it is dropped.
    pub(crate) fn without_turn(self) -> (Self, ClusterPermit) {
        let slot = Self {
            process: self.process,
            turn: None,
        };
        (slot, self.turn)
    }
}

/// One of the machine's slots, locked.
async fn of_machine(root: PathBuf) -> Result<File> {
    // Not a blocking task: a runtime that ends, as on Ctrl-C, would wait for it.
    let (sender, mut slot) = oneshot::channel();
    thread::spawn(move || sender.send(next_free(&root)));
    if let Ok(slot) = timeout(SILENCE, &mut slot).await {
        return slot?;
    }
    eprintln!("waiting for another process to end its cluster");
    slot.await?
}

/// Waits for a free slot, in the order of requests.
fn next_free(root: &Path) -> Result<File> {
    let queue = root.join("slots.lock");
    let queue = File::create(&queue).with_context(|| format!("creating {}", queue.display()))?;
    queue.lock().context("waiting for the queue's lock")?;
    loop {
        for path in paths(root) {
            let slot =
                File::create(&path).with_context(|| format!("creating {}", path.display()))?;
            match slot.try_lock() {
                Ok(()) => return Ok(slot),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => bail!("locking {}: {error}", path.display()),
            }
        }
        thread::sleep(POLL);
    }
}

fn paths(root: &Path) -> impl Iterator<Item = PathBuf> {
    let count = available_parallelism().map_or(1, usize::from);
    (0..count).map(|number| root.join(format!("slot-{number}.lock")))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::runtime::Runtime;

    use super::*;
    use crate::kubernetes::folder::Folder;

    #[test]
    fn a_runtime_ends_while_its_task_waits_for_a_slot() -> Result<()> {
        let root = Folder::create()?;
        let held: Vec<File> = paths(root.path())
            .map(File::create)
            .collect::<Result<_, _>>()?;
        for slot in &held {
            slot.lock()?;
        }
        let runtime = Runtime::new()?;
        runtime.spawn(of_machine(root.path().to_owned()));
        thread::sleep(2 * POLL);
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || {
            drop(runtime);
            sender.send(())
        });
        ended
            .recv_timeout(Duration::from_secs(10))
            .context("it waits on")
    }
}
