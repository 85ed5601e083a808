//! The page about the command line.

use std::collections::BTreeSet;
use std::fmt::Write;

use clap::{Arg, Command};

use crate::markdown::{GENERATED, cell};

/// The page, with a table for each program and for each visible subcommand.
pub(crate) fn page(programs: [Command; 3]) -> String {
    let mut page = format!(
        "# Command line\n\n{GENERATED}\n`--help` prints the same. A flag wins over its variable.\n"
    );
    for mut program in programs {
        program.build();
        let mut told = BTreeSet::new();
        if !program.has_subcommands() {
            describe(&mut page, &program, &mut told);
        }
        let subcommands = program.get_subcommands();
        for subcommand in subcommands.filter(|it| !it.is_hide_set() && it.get_name() != "help") {
            describe(&mut page, subcommand, &mut told);
        }
    }
    page
}

/// A command and its flags, but for those that an earlier command of the program has, in the same words.
fn describe(page: &mut String, command: &Command, told: &mut BTreeSet<String>) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_about().map(ToString::to_string);
    let _ = write!(page, "\n## `{name}`\n\n{}.\n", about.unwrap_or_default());
    let (mut rows, mut above) = (String::new(), Vec::new());
    for flag in command.get_arguments().filter(|it| is_flag(it)) {
        let (usage, default, meaning) = (usage(flag), default(flag), meaning(flag));
        let variable = flag
            .get_env()
            .map(|it| format!("<br>`{}`", it.to_string_lossy()));
        let variable = variable.unwrap_or_default();
        let row = format!("| `{usage}`{variable} | {default} | {meaning} |\n");
        if told.insert(row.clone()) {
            rows += &row;
        } else {
            above.extend(flag.get_long().map(|it| format!("`--{it}`")));
        }
    }
    if !rows.is_empty() {
        let _ = write!(page, "\n| flag | default | |\n|---|---|---|\n{rows}");
    }
    if !above.is_empty() {
        let _ = writeln!(page, "\nAs above: {}.", above.join(", "));
    }
}

fn is_flag(argument: &Arg) -> bool {
    !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str())
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
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let is_word = values != ["`true`", "`false`"];
    if is_word && !values.is_empty() {
        let _ = write!(meaning, "; one of {}", values.join(", "));
    }
    meaning
}
