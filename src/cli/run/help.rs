//! Prints completions.

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use tokio::time::timeout;

use super::access::{print, source};
use crate::command::{Command, Plugin};
use crate::complete::{Completion, next};
use crate::read::names;

/// How long to wait for names; a typing user waits no longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Prints completions of these words, one a line, and for kubectl how it goes on after them.
pub(super) async fn complete(words: &[String], for_kubectl: bool) -> anyhow::Result<ExitCode> {
    const NO_FILES: u8 = 4;
    const NO_SPACE: u8 = 2;
    let all = candidates(words).await;
    let is_half = all.iter().any(|word| word.ends_with('/'));
    let mut lines: String = all.iter().flat_map(|word| [word, "\n"]).collect();
    if for_kubectl {
        let how = match all.as_slice() {
            [] => 0,
            _ if is_half => NO_FILES | NO_SPACE,
            _ => NO_FILES,
        };
        lines.extend([":", &how.to_string(), "\n"]);
    }
    print(&lines)
}

async fn candidates(words: &[String]) -> Vec<String> {
    let mut all = match next(&Plugin::command(), words) {
        Completion::Words(words) => words,
        Completion::Name { kind, before } => {
            let line = ["kubectl-nodegate"].into_iter();
            let line = line.chain(words.iter().map(String::as_str));
            let names = async {
                let (common, own) = match Plugin::try_parse_from(line).ok()?.command {
                    Command::Explain(args) => (args.common, args.namespace),
                    Command::Startup(args) => (args.common, None),
                    _ => return None,
                };
                let source = source(&common.access).await.ok()?;
                let own = own.unwrap_or_else(|| source.namespace().to_owned());
                let namespace = kind.is_namespaced().then_some(own.as_str());
                Some(names(&source, kind, namespace).await)
            };
            // On an error or a timeout, no names are offered.
            let names = timeout(PATIENCE, names).await.ok().flatten();
            let names = names.unwrap_or_default().into_iter();
            names.map(|name| format!("{before}{name}")).collect()
        }
    };
    all.retain(|word| words.last().is_none_or(|begun| word.starts_with(begun)));
    all.sort();
    all
}
