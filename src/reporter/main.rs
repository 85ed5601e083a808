//! The reporter: checks an endpoint on its node and reports the outcome as a condition of the Node.

use std::process::ExitCode;

use nodegate_cluster::process;
use tokio::runtime;

fn main() -> ExitCode {
    // One thread: the reporter runs on every node and mostly sleeps.
    let thread = runtime::Builder::new_current_thread();
    process::main(std::env::args_os(), thread, nodegate_reporter::run)
}
