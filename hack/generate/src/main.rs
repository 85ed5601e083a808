//! Writes what is generated from the code: the CRD, and the pages under `docs/reference/` about the resource's schema, the command
//! line, the events and the metrics. `make generate` runs it, and a test fails when the pages are out of date.

mod api;
mod events;
mod flags;
mod markdown;
mod metrics;

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::CommandFactory;
use kubectl_nodegate::Plugin;
use nodegate_controller::ControllerArgs;
use nodegate_core::api::crd;
use nodegate_engine::notice;
use nodegate_reporter::ReporterArgs;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["crd"] => print!("{}", serde_saphyr::to_string(&crd())?),
        ["reference", folder] => {
            for (file, text) in pages() {
                let path = Path::new(folder).join(file);
                std::fs::write(&path, text)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        _ => bail!("usage: nodegate-generate crd | reference FOLDER"),
    }
    Ok(())
}

/// The reference pages: the name of each file, and its text.
fn pages() -> [(&'static str, String); 4] {
    let programs = [
        ControllerArgs::command(),
        ReporterArgs::command(),
        Plugin::command(),
    ];
    let parts = [
        ("The controller", nodegate_controller::metric_descriptions()),
        ("The reporter", nodegate_reporter::metric_descriptions()),
    ];
    [
        ("api.md", api::page(&crd())),
        ("events.md", events::page(notice::TOPICS)),
        ("flags.md", flags::page(programs)),
        ("metrics.md", metrics::page(&parts)),
    ]
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use nodegate_cluster::process::plain;

    use super::*;

    #[test]
    fn help_has_no_markup() {
        fn check(command: &mut Command) {
            let help = command.render_long_help().to_string();
            assert!(!help.contains('`'), "{help}");
            command.get_subcommands_mut().for_each(check);
        }
        for command in [
            Plugin::command(),
            ControllerArgs::command(),
            ReporterArgs::command(),
        ] {
            let mut command = plain(command);
            command.build();
            check(&mut command);
        }
    }

    #[test]
    fn the_reference_pages_are_up_to_date() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
        for (file, text) in pages() {
            let committed = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
            assert!(
                committed == text,
                "docs/reference/{file} does not fit the code any more: run `make generate` and commit what it changes"
            );
        }
    }
}
