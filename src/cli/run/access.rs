//! Opens the source that the flags name, and the page for the answer.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ColorChoice;
use jiff::Timestamp;
use terminal_size::{Width, terminal_size};

use crate::command::{AccessArgs, CommonArgs, Output};
use crate::failure::CliError;
use crate::page::Page;
use crate::read::{Configured, ObjectSource, dump_in, snapshot};
use crate::snapshot::{Snapshot, Wanted};
use nodegate_cluster::Cluster;
use nodegate_core::config::Config;

/// The controller's configuration, if the flags name a file.
pub(super) fn configured(access: &AccessArgs) -> Result<Configured, CliError> {
    let parts = |path: &PathBuf| Config::read(path)?.parts();
    Ok(access.config.as_ref().map(parts).transpose()?)
}

pub(super) async fn source(access: &AccessArgs) -> Result<ObjectSource, CliError> {
    if let Some(folder) = &access.from {
        return Ok(ObjectSource::Memory(dump_in(folder)?));
    }
    let (kubeconfig, context) = (access.kubeconfig.as_deref(), access.context.as_deref());
    let agent = concat!("kubectl-nodegate/", env!("CARGO_PKG_VERSION"));
    let cluster = Cluster::connect(kubeconfig, context, agent, access.user.clone()).await?;
    Ok(ObjectSource::Cluster(cluster))
}

pub(super) async fn opened(
    access: &AccessArgs,
    wanted: &Wanted,
) -> Result<(ObjectSource, Snapshot), CliError> {
    let source = source(access).await?;
    let read = snapshot(&source, configured(access)?, wanted).await?;
    Ok((source, read))
}

pub(super) fn page(common: &CommonArgs, now: Timestamp) -> Page {
    let is_terminal = io::stdout().is_terminal();
    let columns = terminal_size().map(|(Width(columns), _)| columns.into());
    let may_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    Page {
        width: is_terminal.then(|| width(columns)),
        colour: match common.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && may_colour,
        },
        wide: common.output == Output::Wide,
        ascii: !cfg!(windows) && !is_utf8(|name| std::env::var(name).ok()),
        now,
    }
}

/// Whether the locale has the characters of UTF-8, by the first variable that is set.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
    let locale = set.filter_map(variable).find(|it| !it.is_empty());
    locale.is_some_and(|it| it.to_lowercase().replace('-', "").contains("utf8"))
}

/// The width of a page on a terminal. Some terminals do not say how wide they are, or that they have no columns.
fn width(columns: Option<usize>) -> usize {
    columns.filter(|columns| *columns >= 40).unwrap_or(80)
}

/// Writes to standard output; returns whether the reader is still there. A closed pipe is not an error.
pub(super) fn write(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

pub(super) fn print(text: &str) -> anyhow::Result<ExitCode> {
    write(text)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_says_whether_there_is_more_than_ascii() {
        for (set, expected) in [
            (&[][..], false),
            (&[("LANG", "de_DE.UTF-8")], true),
            (&[("LANG", "de_DE.utf8"), ("LC_CTYPE", "")], true),
            (&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")], false),
            (&[("LANG", "POSIX"), ("LC_CTYPE", "C.UTF-8")], true),
        ] {
            let variable = |name: &str| {
                let mut set = set.iter();
                let found = set.find(|(set, _)| *set == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(is_utf8(variable), expected, "{set:?}");
        }
    }

    #[test]
    fn a_terminal_that_does_not_say_its_width_has_80_columns() {
        for (columns, expected) in [(None, 80), (Some(0), 80), (Some(40), 40), (Some(200), 200)] {
            assert_eq!(width(columns), expected, "{columns:?}");
        }
    }
}
