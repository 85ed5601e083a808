//! The page about the command line.

use std::fmt::Write;

use clap::{Arg, Command};

use super::markdown::{GENERATED, cell};

/// The page, with a table for each visible subcommand.
pub(super) fn page(mut command: Command) -> String {
    command.build();
    let mut page = format!(
        "# Command line\n\n{GENERATED}\n`nodegate help SUBCOMMAND` prints the same. A flag wins over its variable.\n"
    );
    for subcommand in command.get_subcommands().filter(|sub| is_shown(sub)) {
        let about = subcommand.get_about().map(ToString::to_string);
        let _ = write!(
            page,
            "\n## `nodegate {}`\n\n{}.\n",
            subcommand.get_name(),
            about.unwrap_or_default(),
        );
        let flags: Vec<_> = subcommand
            .get_arguments()
            .filter(|argument| is_flag(argument))
            .collect();
        if flags.is_empty() {
            continue;
        }
        page.push_str("\n| flag | default | |\n|---|---|---|\n");
        for flag in flags {
            let _ = writeln!(
                page,
                "| `{}` | {} | {} |",
                usage(flag),
                default(flag),
                meaning(flag)
            );
        }
    }
    page
}

fn is_shown(subcommand: &Command) -> bool {
    !subcommand.is_hide_set() && subcommand.get_name() != "help"
}

fn is_flag(argument: &Arg) -> bool {
    !argument.is_hide_set() && argument.get_id() != "help"
}

/// The flag with the name of its value; of an argument by position, the name of its value alone.
fn usage(flag: &Arg) -> String {
    if flag.is_positional() {
        let values = flag.get_value_names().unwrap_or_default();
        return values.iter().map(ToString::to_string).collect();
    }
    let name = flag.get_long().unwrap_or_else(|| flag.get_id().as_str());
    match flag.get_value_names() {
        Some([value]) if flag.get_action().takes_values() => format!("--{name}={value}"),
        _ => format!("--{name}"),
    }
}

fn default(flag: &Arg) -> String {
    let values: Vec<_> = flag
        .get_default_values()
        .iter()
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    values.join(" ")
}

fn meaning(flag: &Arg) -> String {
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let mut meaning = cell(&help);
    let values: Vec<_> = flag
        .get_possible_values()
        .iter()
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let is_word = values != ["`true`", "`false`"];
    if is_word && !values.is_empty() {
        let _ = write!(meaning, "; one of {}", values.join(", "));
    }
    if let Some(variable) = flag.get_env() {
        let _ = write!(meaning, "; variable `{}`", variable.to_string_lossy());
    }
    meaning
}
