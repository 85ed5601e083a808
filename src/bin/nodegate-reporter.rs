//! The reporter: checks an endpoint on its node and reports the outcome as a condition of the Node.

use std::process::ExitCode;

use nodegate::process;
use nodegate::reporter::{self, ReporterArgs};
use tokio::runtime;

fn main() -> ExitCode {
    process::main(std::env::args_os(), |args: ReporterArgs| {
        args.log.init();
        // One thread: the reporter runs on every node and mostly sleeps.
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(reporter::run(args))?;
        Ok(ExitCode::SUCCESS)
    })
}
