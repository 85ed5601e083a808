//! What all programs do: parse their arguments, run, and end with an exit code and one line that says why.

use std::ffi::OsString;
use std::process::{ExitCode, Termination};

use clap::builder::{BoolishValueParser, Resettable, StyledStr, ValueParser};
use clap::{Arg, Command, Parser};
use tokio::runtime;

use crate::with_causes;
use nodegate_core::text::printable_lines;

/// The exit code of a command line that cannot be used, as in `sysexits.h`: 2, clap's own, means that something was found.
const USAGE: u8 = 64;

/// The command line asks for something that there is not.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Parses these words, runs what they ask for on such a runtime, and prints what went wrong.
pub fn main<P: Parser, T: Termination, R: Future<Output = anyhow::Result<T>>>(
    words: impl IntoIterator<Item = OsString>,
    mut runtime: runtime::Builder,
    run: impl FnOnce(P) -> R,
) -> ExitCode {
    let matches = plain(P::command()).try_get_matches_from(words);
    let parsed = match matches.and_then(|matches| P::from_arg_matches(&matches)) {
        Ok(parsed) => parsed,
        Err(error) => {
            // A closed terminal needs no message.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    let runtime = runtime.enable_all().build().map_err(anyhow::Error::from);
    let ended = runtime.and_then(|runtime| runtime.block_on(run(parsed)));
    let ended = ended.map(Termination::report);
    ended.unwrap_or_else(|error| {
        let text = with_causes(error.as_ref());
        eprintln!("error: {}", printable_lines(&text));
        ExitCode::from(if error.is::<UsageError>() { USAGE } else { 1 })
    })
}

/// A flag that is an environment variable, too, and takes booleans as Go does: whoever replaces a container's arguments loses no
/// variable.
pub fn from_environment(mut flag: Arg) -> Arg {
    if flag.get_value_parser().type_id() == ValueParser::bool().type_id() {
        flag = flag.value_parser(BoolishValueParser::new());
    }
    if flag.get_value_names().unwrap_or_default() == ["BOOL"] {
        flag = flag.num_args(0..=1).require_equals(true);
        flag = flag.default_missing_value("true");
    }
    if let (Some(name), None) = (flag.get_long(), flag.get_env()) {
        let variable = format!("NODEGATE_{}", name.to_uppercase().replace('-', "_"));
        flag = flag.env(&*variable.leak());
    }
    // In the help, they would be as long as they are.
    flag.hide_env_values(true)
}

/// The command with help text for terminals: without rustdoc's backticks around names. Its subcommands' help ends as its own.
pub fn plain(command: Command) -> Command {
    let text = |styled: &StyledStr| StyledStr::from(styled.to_string().replace('`', ""));
    let text = |styled: Option<&StyledStr>| Resettable::<StyledStr>::from(styled.map(text));
    let (about, long_about) = (text(command.get_about()), text(command.get_long_about()));
    let command = command.about(about).long_about(long_about);
    let command = command.mut_args(|argument| {
        let (help, long_help) = (text(argument.get_help()), text(argument.get_long_help()));
        argument.help(help).long_help(long_help)
    });
    let after = command.get_after_help().cloned();
    command.mut_subcommands(|it| plain(it).after_help(Resettable::<StyledStr>::from(after.clone())))
}
