//! What commands leave behind. As process 1 of its container the reporter inherits whatever has lost its parent, and
//! nobody else collects it when it ends.

use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};

/// Has all that this process's children leave behind come to it, as if it were process 1 wherever it runs.
pub fn adopt() {
    // Where the kernel does not know this, they go to process 1, which may be this one.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Collects every child that has ended. Call it while no check is under way: that one waits for its own child.
///
/// Nothing else starts processes and waits for them later: a kubeconfig's credential plugin is waited for on the spot.
pub fn collect() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}
