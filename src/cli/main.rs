//! `kubectl nodegate`: says why nodes are held, since when, and what to do.

use std::path::Path;
use std::process::ExitCode;

use tokio::runtime;

fn main() -> ExitCode {
    let mut words: Vec<_> = std::env::args_os().collect();
    let program = words.first().map(Path::new);
    // The name by which kubectl finds what completes a plugin's words.
    if program.and_then(Path::file_stem) == Some("kubectl_complete-nodegate".as_ref()) {
        words.splice(1..1, ["__complete".into(), "--for-kubectl".into()]);
    }
    let thread = runtime::Builder::new_current_thread();
    nodegate_cluster::process::main(words, thread, kubectl_nodegate::run)
}
