//! The commands and their flags, as clap definitions.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::complete::Shell;
use super::failure::CliError;
use crate::api::Duration;
use crate::documentation;

/// The page about these commands.
const PAGE: &str = "kubectl.md";

/// What ends the help of a command: the exit codes, of which the documentation's table is in `docs/kubectl.md`, and the address
/// of the page about it.
pub(super) fn after_help(page: &str) -> String {
    format!(
        "\
Exit codes:
   0  answered, and nothing was found
   1  not answered, or not everything that the answer needs could be read
   2  something was found: preview (open nodes that would close, a rule that
      would be rejected), check (errors), status --wait (timed out)
  64  the command line is invalid

Documentation: {}",
        documentation::page(page)
    )
}

/// Why nodes are closed, since when, and what to do next.
///
/// Answers what the Nodegate controller would, with nothing but the right to read (the `ClusterRole` nodegate-view), or from
/// what `dump` has written.
#[derive(Debug, Parser)]
#[command(name = "kubectl nodegate", bin_name = "kubectl nodegate", version, after_help = after_help(PAGE))]
pub struct Plugin {
    /// What is asked.
    #[command(subcommand)]
    pub command: Command,
}

/// What people ask.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Explain why a node is closed or open: the rule, its conditions, the pod behind them, since when, and what to do next
    #[command(after_help = after_help(PAGE))]
    Explain {
        /// What to explain: node/NAME, rule/NAME or pod/NAME
        #[arg(value_name = "KIND/NAME")]
        target: String,
        /// The name, if it does not follow the kind with a slash
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// The namespace of a pod; by default the context's
        #[arg(short, long, value_name = "NAMESPACE")]
        namespace: Option<String>,
        /// What every command takes.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Show the cluster on one screen: rules, the nodes that they hold, unmet conditions, and the controller's health
    #[command(after_help = after_help(PAGE))]
    Status {
        /// Wait until no node is held
        #[arg(long, conflicts_with = "from")]
        wait: bool,
        /// Follow it: redrawn on a terminal, and elsewhere a line for each change
        #[arg(short = 'w', long, conflicts_with_all = ["wait", "from"])]
        watch: bool,
        /// How long to wait at most, for example 90s or 10m
        #[arg(
            long,
            value_name = "DURATION",
            requires = "wait",
            default_value = "10m"
        )]
        timeout: Duration,
        /// What every command takes.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Show what rules would do here, before they are created or edited: nodes closed and opened, conflicts, `DaemonSet`s that
    /// could not start
    #[command(after_help = after_help(PAGE))]
    Preview {
        /// File with rules (YAML or JSON); `-` is standard input; may be given again
        #[arg(short, long = "filename", value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// What every command takes.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Write a folder with everything that the other commands need, to run them elsewhere with --from
    ///
    /// No Secret is read, and of pods neither environment nor arguments nor volumes are kept. Messages are kept: those of events
    /// of the whole cluster, of conditions, and of containers that have ended. Only you can read the files.
    #[command(after_help = after_help(PAGE))]
    Dump {
        /// The folder; it must be empty or not exist
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Leave out the messages of events, conditions and containers
        #[arg(long)]
        redact: bool,
        /// What every command takes.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Write one self-contained HTML page: the fleet, rules, held nodes and findings
    #[command(after_help = after_help(PAGE))]
    Report {
        /// The file
        #[arg(long, value_name = "FILE", default_value = "report.html")]
        output_file: PathBuf,
        /// What is asked.
        #[command(flatten)]
        access: AccessArgs,
    },
    /// Check the installation, before and after it is made, and find faults across rules, `DaemonSet`s and nodes
    #[command(after_help = after_help(PAGE))]
    Check {
        /// Check what is not applied yet instead: YAML in this file or folder; may be given again
        #[arg(short, long = "filename", value_name = "PATH", conflicts_with_all = ["from", "context", "kubeconfig"])]
        files: Vec<PathBuf>,
        /// What every command takes.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Write rules for what runs in this cluster, recognised by its `DaemonSet`s, as dry runs that can be applied
    #[command(after_help = after_help(PAGE))]
    Suggest {
        /// What every command takes.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Show the version of this client
    Version,
    /// Print a script that completes commands, and names of nodes and rules
    Completion {
        /// The shell
        shell: Shell,
    },
    /// Print what may come next, for the scripts of shells
    #[command(name = "__complete", hide = true)]
    Complete {
        /// The words so far
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

/// Where the answer comes from.
#[derive(Debug, Clone, Args)]
pub struct AccessArgs {
    /// Kubeconfig file; without it $KUBECONFIG or ~/.kube/config is used
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use, instead of the current one
    #[arg(long, value_name = "CONTEXT")]
    pub context: Option<String>,

    /// Read a folder that `dump` has written instead of a cluster
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kubeconfig", "context"])]
    pub from: Option<PathBuf>,

    /// The controller's configuration file (YAML) with critical component classes; without it the `ConfigMap` that the chart
    /// makes, and where there is none Gardener's class
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub struct CommonArgs {
    /// What is asked.
    #[command(flatten)]
    pub access: AccessArgs,

    /// The output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,

    /// When to use colours; $`NO_COLOR` turns them off
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Colour,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For people, with all details.
    Wide,
    /// As JSON.
    Json,
    /// As YAML.
    Yaml,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Something that can be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ExplainTarget {
    /// The node of this name.
    Node(String),
    /// The rule of this name.
    Rule(String),
    /// The pod of this name.
    Pod(String),
}

impl ExplainTarget {
    /// Parses `KIND/NAME`, or the kind and the name as two words.
    pub(super) fn of(word: &str, name: Option<&str>) -> Result<Self, CliError> {
        let (kind, name) = kind_and_name(word, name)?;
        match kind {
            "node" | "nodes" | "no" => Ok(Self::Node(name.into())),
            "rule" | "rules" | "nrr" | "nodereadinessrule" | "nodereadinessrules" => {
                Ok(Self::Rule(name.into()))
            }
            "pod" | "pods" | "po" => Ok(Self::Pod(name.into())),
            kind => Err(CliError::Usage(format!(
                "{kind:?} cannot be explained; node/NAME, rule/NAME and pod/NAME can"
            ))),
        }
    }
}

fn kind_and_name<'a>(word: &'a str, name: Option<&'a str>) -> Result<(&'a str, &'a str), CliError> {
    let parts = match (word.split_once('/'), name) {
        (Some(_), Some(name)) => {
            let why = format!("{word} has a name, and {name} is one too many");
            return Err(CliError::Usage(why));
        }
        (None, Some(name)) => Some((word, name)),
        (parts, None) => parts,
    };
    let named = parts.filter(|(_, name)| !name.is_empty());
    named.ok_or_else(|| {
        let why = "write what it is and its name, such as node/worker-1, or node worker-1";
        CliError::Usage(why.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_commands_are_sound() {
        Plugin::command().debug_assert();
    }

    #[test]
    fn what_is_explained_has_a_kind_and_a_name() {
        let parsed = |words: &str| {
            let (word, name) = words
                .split_once(' ')
                .map_or((words, None), |(word, name)| (word, Some(name)));
            ExplainTarget::of(word, name).ok()
        };
        for right in ["no/n", "node n", "nodes/n"] {
            assert_eq!(
                parsed(right),
                Some(ExplainTarget::Node("n".into())),
                "{right}"
            );
        }
        assert_eq!(parsed("nrr r"), Some(ExplainTarget::Rule("r".into())));
        for wrong in ["n", "node", "node/", "cat/n", "cat n", "node/n m"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
