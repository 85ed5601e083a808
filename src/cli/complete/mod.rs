//! Completion: what may come next on a command line, by the same definitions that read it. The shells' scripts call the hidden
//! command `__complete` with the words so far; names of nodes and rules come from the cluster then.

mod scripts;

use clap::{Arg, Command};

use super::snapshot::Kind;
pub use scripts::{Shell, script};

/// What may come next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// One of these.
    Words(Vec<String>),
    /// The name of an object of this kind, after what stands before its slash.
    Name {
        /// The kind.
        kind: Kind,
        /// What stands before the slash, and the slash.
        before: String,
        /// What is there of the name.
        begun: String,
        /// The namespace, where one is named.
        namespace: Option<String>,
    },
}

/// What may come after these words, of which the last has been begun, or is empty.
#[must_use]
pub fn next(root: &Command, words: &[String]) -> Next {
    let (begun, words) = words
        .split_last()
        .map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let asked = words.iter().find(|word| !word.starts_with('-'));
    let command = asked.and_then(|name| root.find_subcommand(name));
    let Some(command) = command else {
        let commands = root.get_subcommands().filter(|it| !it.is_hide_set());
        return begun_with(begun, commands.map(|it| it.get_name().to_owned()));
    };
    let before = words.last().map_or("", String::as_str);
    if let Some(flag) = flag(command, before).filter(|it| it.get_action().takes_values()) {
        let values = flag.get_possible_values();
        return begun_with(begun, values.iter().map(|it| it.get_name().to_owned()));
    }
    if begun.starts_with('-') {
        let flags = command.get_arguments().filter(|it| !it.is_hide_set());
        let names = flags.filter_map(|it| Some(format!("--{}", it.get_long()?)));
        return begun_with(begun, names);
    }
    let kinds: &[(&str, Kind)] = match command.get_name() {
        "explain" => &[
            ("node", Kind::Nodes),
            ("rule", Kind::Rules),
            ("pod", Kind::Pods),
        ],
        "timeline" => &[("node", Kind::Nodes)],
        "completion" => {
            let shells = Shell::ALL.iter();
            return begun_with(begun, shells.map(|it| it.name().to_owned()));
        }
        _ => &[],
    };
    let named = begun.split_once('/').and_then(|(word, name)| {
        let (_, kind) = kinds.iter().find(|(known, _)| *known == word)?;
        Some((*kind, word, name))
    });
    match named {
        Some((kind, word, name)) => Next::Name {
            kind,
            before: format!("{word}/"),
            begun: name.to_owned(),
            namespace: value_of(words, &["-n", "--namespace"]),
        },
        None => begun_with(begun, kinds.iter().map(|(word, _)| format!("{word}/"))),
    }
}

/// The value that one of these flags has among the words.
#[must_use]
pub fn value_of(words: &[String], flags: &[&str]) -> Option<String> {
    let mut pairs = words.iter().zip(words.iter().skip(1));
    let after = pairs.find(|(flag, _)| flags.contains(&flag.as_str()));
    let joined = words.iter().find_map(|word| {
        let (flag, value) = word.split_once('=')?;
        flags.contains(&flag).then(|| value.to_owned())
    });
    after.map(|(_, value)| value.clone()).or(joined)
}

fn begun_with(begun: &str, words: impl Iterator<Item = String>) -> Next {
    let mut words: Vec<String> = words.filter(|word| word.starts_with(begun)).collect();
    words.sort();
    Next::Words(words)
}

fn flag<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let mut flags = command.get_arguments();
    flags.find(|it| {
        let long = it.get_long().map(|name| format!("--{name}"));
        let short = it.get_short().map(|name| format!("-{name}"));
        long.as_deref() == Some(word) || short.as_deref() == Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Plugin;
    use clap::CommandFactory;

    #[test]
    fn what_comes_next_follows_from_the_definitions() {
        let after = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            match next(&Plugin::command(), &words) {
                Next::Words(words) => words.join(" "),
                Next::Name {
                    kind,
                    before,
                    begun,
                    namespace,
                } => format!("{before}{begun}* of {} {namespace:?}", kind.name()),
            }
        };
        for (line, expected) in [
            ("expl", "explain"),
            ("explain ", "node/ pod/ rule/"),
            ("explain no", "node/"),
            ("explain node/wo", "node/wo* of nodes None"),
            ("explain -n shop pod/", "pod/* of pods Some(\"shop\")"),
            ("status -o ", "json name text wide yaml"),
            ("status --wa", "--wait"),
            ("preview -f ", ""),
            ("completion z", "zsh"),
        ] {
            assert_eq!(after(line), expected, "{line:?}");
        }
    }
}
