//! `kubectl nodegate`: says why nodes are held, since when, and what to do.

use std::path::Path;
use std::process::ExitCode;

use nodegate::cli::{self, Plugin};

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let program = words.first().map(Path::new);
    // The name by which kubectl finds what completes a plugin's words.
    if program.and_then(Path::file_stem) == Some("kubectl_complete-nodegate".as_ref()) {
        let words = words.iter().skip(1).map(|it| it.to_string_lossy().into());
        return cli::complete_for_kubectl(&words.collect::<Vec<_>>()).unwrap_or(ExitCode::FAILURE);
    }
    cli::main(words, |plugin: Plugin| cli::run(plugin.command))
}
