//! Shell completion, derived from the clap definitions. The shells' scripts call the hidden command `__complete` with the words
//! so far; names of nodes and rules come from the cluster.

use clap::{Arg, Command, ValueEnum};

use super::command::{EXPLAINED, explained_kind};
use nodegate_cluster::ResourceKind;

/// What may come next; only what begins as the last word does is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Completion {
    Words(Vec<String>),
    /// The name of an object of this kind.
    Name {
        kind: ResourceKind,
        /// The text up to and including the slash; empty for a name that is a word of its own.
        before: String,
    },
}

/// What may follow these words; the last word is incomplete or empty.
pub(super) fn next(root: &Command, words: &[String]) -> Completion {
    let (begun, words) = words
        .split_last()
        .map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let asked = words.iter().find(|word| !word.starts_with('-'));
    let command = asked.and_then(|name| root.find_subcommand(name));
    let Some(command) = command else {
        let commands = root.get_subcommands().filter(|it| !it.is_hide_set());
        return Completion::Words(commands.map(|it| it.get_name().to_owned()).collect());
    };
    let before = words.last().map_or("", String::as_str);
    if let Some(flag) = flag(command, before).filter(|it| it.get_action().takes_values()) {
        return Completion::Words(values(flag).collect());
    }
    if begun.starts_with('-') {
        let flags = command.get_arguments().filter(|it| !it.is_hide_set());
        let names = flags.filter_map(|it| Some(format!("--{}", it.get_long()?)));
        return Completion::Words(names.collect());
    }
    let explains = command.get_name() == "explain";
    let is_offered =
        |kind| explains || command.get_name() == "startup" && kind == ResourceKind::Nodes;
    // The name follows its kind with a slash, or as a word of its own.
    let (word, before) = match begun.split_once('/') {
        Some((word, _)) => (word, format!("{word}/")),
        None => (before, String::new()),
    };
    if let Some(kind) = explained_kind(word).filter(|kind| is_offered(*kind)) {
        return Completion::Name { kind, before };
    }
    let kinds = EXPLAINED.iter().filter(|(kind, _)| is_offered(*kind));
    let kinds = kinds.filter_map(|(_, names)| Some(format!("{}/", names.split(' ').next()?)));
    let values = command.get_positionals().flat_map(values);
    Completion::Words(kinds.chain(values).collect())
}

fn values(argument: &Arg) -> impl Iterator<Item = String> {
    let values = argument.get_possible_values().into_iter();
    values.map(|it| it.get_name().to_owned())
}

fn flag<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|it| {
        let long = it.get_long().map(|name| format!("--{name}"));
        let short = it.get_short().map(|name| format!("-{name}"));
        long.as_deref() == Some(word) || short.as_deref() == Some(word)
    })
}

/// The shells; help says of each what stands above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Shell {
    /// Bash.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
}

pub(super) const fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => include_str!("complete/script.bash"),
        Shell::Zsh => include_str!("complete/script.zsh"),
        Shell::Fish => include_str!("complete/script.fish"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plugin;
    use clap::CommandFactory;

    #[test]
    fn completion_offers_what_the_commands_accept() {
        let after = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            match next(&Plugin::command(), &words) {
                Completion::Words(all) => {
                    let begun = words.last().unwrap();
                    let mut all: Vec<String> =
                        all.into_iter().filter(|it| it.starts_with(begun)).collect();
                    all.sort();
                    all.join(" ")
                }
                Completion::Name { kind, before } => {
                    format!("{before}* of {}", kind.name())
                }
            }
        };
        for (line, expected) in [
            ("expl", "explain"),
            ("explain ", "ds/ node/ pod/ rule/"),
            ("explain no", "node/"),
            ("explain node/wo", "node/* of nodes"),
            ("explain node wo", "* of nodes"),
            ("explain -n shop pod/", "pod/* of pods"),
            ("startup ", "node/"),
            ("startup node/wo", "node/* of nodes"),
            ("status -o ", "json text wide yaml"),
            ("status --wai", "--wait"),
            ("preview -f ", ""),
            ("completion z", "zsh"),
        ] {
            assert_eq!(after(line), expected, "{line:?}");
        }
    }
}
