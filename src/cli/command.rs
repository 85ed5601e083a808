//! The commands and their flags, as clap definitions.

use std::path::PathBuf;

use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};

use super::complete::Shell;
use nodegate_cluster::ResourceKind;
use nodegate_cluster::process::UsageError;
use nodegate_core::api::Duration;
use nodegate_core::text::documentation;

/// What ends the help of a command: the exit codes, which `docs/kubectl.md` explains, and the address of the page about it.
fn after_help() -> String {
    format!(
        "Exit codes: 0 answered, 1 not or not all answered, 2 something found, 64 usage\n\
         Documentation: {}",
        documentation::page("kubectl.md")
    )
}

/// Why nodes are held, since when, and what to do next
#[derive(Debug, Parser)]
#[command(name = "kubectl nodegate", bin_name = "kubectl nodegate", version, after_help = after_help())]
pub struct Plugin {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Explain why a node is held, what a rule does, why a pod waits
    Explain(ExplainArgs),
    /// Show the cluster on one screen: rules, held nodes, the controller
    Status(StatusArgs),
    /// Show what new nodes wait for until they are released, and how long
    Startup(StartupArgs),
    /// Show what rules would do here, before they are applied
    Preview(PreviewArgs),
    /// Write a folder from which all commands answer, with --from
    ///
    /// No Secret is read, and of pods neither environment nor arguments nor volumes are kept. Messages are kept: those of events
    /// of the whole cluster, of conditions, and of containers that have ended. Only you can read the files.
    Dump(DumpArgs),
    /// Write one self-contained HTML page to send to others
    Report(ReportArgs),
    /// Check installation, rules and cluster, or files not applied yet
    Check(CheckArgs),
    /// Write rules for what runs here, as dry runs that can be applied
    Suggest(CommonArgs),
    /// Show the version of this client
    Version,
    /// Print a script that completes commands and names
    Completion {
        /// The shell
        shell: Shell,
    },
    /// Print what may come next, for the scripts of shells
    #[command(name = "__complete", hide = true)]
    Complete {
        /// In the format that kubectl expects of a plugin
        #[arg(long)]
        for_kubectl: bool,
        /// The words so far
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// What to explain: node/NAME or just NAME, rule/NAME, pod/NAME or ds/NAME
    #[arg(value_name = "KIND/NAME")]
    pub target: String,
    /// The name, if it does not follow the kind with a slash
    pub name: Option<String>,
    /// The namespace of a pod or `DaemonSet`; by default the context's
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Wait until no node is held
    #[arg(long, conflicts_with = "from")]
    pub wait: bool,
    /// Follow it: redrawn on a terminal, and elsewhere a line for each change
    #[arg(short = 'w', long, conflicts_with_all = ["wait", "from"])]
    pub watch: bool,
    /// How long to wait at most, for example 90s or 10m
    #[arg(
        long,
        value_name = "DURATION",
        requires = "wait",
        default_value = "10m"
    )]
    pub timeout: Duration,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(super) struct StartupArgs {
    /// A node, as node/NAME or just NAME; without one, the nodes that joined last
    #[arg(value_name = "node/NAME")]
    pub node: Option<String>,
    /// How many of these nodes to look at
    #[arg(
        long,
        value_name = "NUMBER",
        default_value = "100",
        conflicts_with = "node"
    )]
    pub last: usize,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(super) struct PreviewArgs {
    /// Files with rules (YAML or JSON); `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "filename")]
    pub files: Vec<PathBuf>,
    /// The same as a flag
    #[arg(short, long, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(super) struct DumpArgs {
    /// The folder; it must be empty or not exist
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Leave out the messages of events, conditions and containers
    #[arg(long)]
    pub redact: bool,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// The file
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub output_file: PathBuf,
    #[command(flatten)]
    pub access: AccessArgs,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Also name the rules that mean something else to the Node Readiness Controller
    #[arg(long)]
    pub upstream: bool,
    /// Check the YAML in these files or folders instead of a cluster
    #[arg(value_name = "PATH", conflicts_with_all = ["from", "context", "kubeconfig"])]
    pub files: Vec<PathBuf>,
    /// The same as a flag
    #[arg(short, long, value_name = "PATH", conflicts_with_all = ["from", "context", "kubeconfig"])]
    pub filename: Vec<PathBuf>,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Where the answer comes from.
#[derive(Debug, Clone, Args)]
pub(super) struct AccessArgs {
    /// Kubeconfig file; without it $KUBECONFIG or ~/.kube/config is used
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use, instead of the current one
    #[arg(long, value_name = "CONTEXT")]
    pub context: Option<String>,

    /// User to act as, such as system:serviceaccount:NAMESPACE:NAME
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,

    /// Read a folder that `dump` has written instead of a cluster
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kubeconfig", "context", "user"])]
    pub from: Option<PathBuf>,

    /// The controller's configuration file (YAML) with critical component classes; without it the `ConfigMap` that the chart
    /// makes, and where there is none Gardener's class
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct CommonArgs {
    #[command(flatten)]
    pub access: AccessArgs,

    /// The output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,

    /// When to use colours; $`NO_COLOR` turns them off
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// For people.
    Text,
    /// For people, with all details.
    Wide,
    /// As JSON.
    Json,
    /// As YAML.
    Yaml,
}

/// The kinds of what can be explained, and their names; completion offers the first.
pub(super) const EXPLAINED: [(ResourceKind, &str); 4] = [
    (ResourceKind::DaemonSets, "ds daemonset daemonsets"),
    (ResourceKind::Nodes, "node nodes no"),
    (ResourceKind::Pods, "pod pods po"),
    (
        ResourceKind::Rules,
        "rule rules nrr nodereadinessrule nodereadinessrules",
    ),
];

pub(super) fn explained_kind(name: &str) -> Option<ResourceKind> {
    let mut kinds = EXPLAINED.into_iter();
    kinds.find_map(|(kind, names)| names.split(' ').any(|it| it == name).then_some(kind))
}

/// Parses `KIND/NAME`, the kind and the name as two words, or the name of a node.
pub(super) fn explained(
    word: &str,
    name: Option<&str>,
) -> Result<(ResourceKind, String), UsageError> {
    let parts = match (word.split_once('/'), name) {
        (Some(_), Some(name)) => {
            let why = format!("{word} has a name, and {name} is one too many");
            return Err(UsageError(why));
        }
        (None, Some(name)) => Some((word, name)),
        (None, None) if explained_kind(word).is_none() => Some(("node", word)),
        (parts, None) => parts,
    };
    let Some((kind, name)) = parts.filter(|(_, name)| !name.is_empty()) else {
        let why = "write what it is and its name, such as node/worker-1, or node worker-1";
        return Err(UsageError(why.into()));
    };
    let kind = explained_kind(kind).ok_or_else(|| {
        UsageError(format!(
            "{kind:?} cannot be explained; node/NAME, rule/NAME, pod/NAME and ds/NAME can"
        ))
    })?;
    Ok((kind, name.to_owned()))
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
    fn help_fits_a_screen() {
        let asked = Plugin::command().try_get_matches_from(["kubectl-nodegate", "--help"]);
        let help = asked.unwrap_err().to_string();
        assert!(help.lines().count() <= 24, "{help}");
        let mut lines = help.lines();
        assert!(lines.all(|line| line.chars().count() <= 80), "{help}");
    }

    #[test]
    fn what_is_explained_has_a_kind_and_a_name() {
        let parsed = |words: &str| {
            let (word, name) = words
                .split_once(' ')
                .map_or((words, None), |(word, name)| (word, Some(name)));
            explained(word, name).ok()
        };
        for right in ["no/n", "node n", "nodes/n", "n"] {
            let node = (ResourceKind::Nodes, "n".to_owned());
            assert_eq!(parsed(right), Some(node), "{right}");
        }
        let rule = (ResourceKind::Rules, "r".to_owned());
        assert_eq!(parsed("nrr r"), Some(rule));
        for wrong in ["", "node", "pods", "node/", "cat/n", "cat n", "node/n m"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
