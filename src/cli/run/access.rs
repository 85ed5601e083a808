//! What is asked: where that is read, and what the answer is written on.

use std::io::{self, IsTerminal};

use jiff::Timestamp;
use rustix::termios::tcgetwinsize;

use crate::cli::command::{Access, Colour, Common, Output};
use crate::cli::failure::Failure;
use crate::cli::page::Page;
use crate::cli::read::{Cluster, Configured, Folder, Source, snapshot};
use crate::cli::snapshot::{Snapshot, Wanted};

/// Reads what is wanted.
pub async fn read(source: &Source, common: &Common, wanted: &Wanted) -> Result<Snapshot, Failure> {
    read_of(source, &common.access, wanted).await
}

/// Reads what is wanted.
pub async fn read_of(
    source: &Source,
    access: &Access,
    wanted: &Wanted,
) -> Result<Snapshot, Failure> {
    snapshot(source, configured(access), wanted).await
}

/// How the controller is configured, as far as that is asked for.
pub fn configured(access: &Access) -> Configured<'_> {
    let file = access.config.as_deref();
    file.map_or(Configured::InTheCluster, Configured::File)
}

/// Where the command is to read.
pub async fn source(common: &Common) -> Result<Source, Failure> {
    source_of(&common.access).await
}

/// Where a command is to read.
pub async fn source_of(access: &Access) -> Result<Source, Failure> {
    if let Some(folder) = &access.from {
        return Ok(Source::Folder(Folder::open(folder)?));
    }
    let kubeconfig = access.kubeconfig.as_deref();
    let cluster = Cluster::connect(kubeconfig, access.context.as_deref()).await?;
    Ok(Source::Cluster(cluster))
}

/// What standard output is to people.
pub fn page(common: &Common, now: Timestamp) -> Page {
    let out = io::stdout();
    let is_terminal = out.is_terminal();
    let width = is_terminal.then(|| tcgetwinsize(&out).ok()).flatten();
    let width = width
        .map(|size| usize::from(size.ws_col))
        .filter(|width| *width >= 40);
    let may_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    Page {
        width,
        colour: match common.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => is_terminal && may_colour,
        },
        wide: common.output == Output::Wide,
        now,
    }
}
