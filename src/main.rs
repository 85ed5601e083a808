//! The `nodegate` command line: one subcommand per job.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
#[cfg(unix)]
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use nodegate::{cli, controller};
#[cfg(unix)]
use nodegate::{reference, reporter};
use tokio::runtime;
use tracing_subscriber::EnvFilter;

/// Keeps pods off Kubernetes nodes until everything the node needs is really there.
#[derive(Parser)]
#[command(version, after_help = cli::after_help("introduction.md"))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the controller: watch nodes and rules, add and lift taints
    // As elsewhere in Kubernetes, what is appended to a Deployment's arguments wins.
    #[command(args_override_self = true)]
    Controller {
        #[command(flatten)]
        args: Box<controller::ControllerArgs>,
        #[command(flatten)]
        log: LogArgs,
    },
    /// Run the reporter: check an endpoint on this node and report the outcome as a condition of the Node
    #[cfg(unix)]
    Reporter {
        #[command(flatten)]
        args: Box<reporter::ReporterArgs>,
        #[command(flatten)]
        log: LogArgs,
    },
    #[command(flatten)]
    Ask(cli::Command),
    /// Write the reference pages of the documentation into a folder
    #[cfg(unix)]
    #[command(hide = true)]
    Reference {
        /// The folder
        folder: PathBuf,
    },
}

#[derive(clap::Args)]
struct LogArgs {
    /// What is logged: error, info, debug, or a tracing filter such as nodegate=debug
    #[arg(
        long = "zap-log-level",
        alias = "log-level",
        value_name = "LEVEL",
        env = "NODEGATE_LOG",
        default_value = "info",
        value_parser = log_level
    )]
    level: String,

    /// The log format
    #[arg(
        long,
        alias = "zap-encoder",
        value_name = "FORMAT",
        default_value = "text"
    )]
    log_format: LogFormat,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    #[value(alias = "console")]
    Text,
    Json,
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            // One line, with each cause once and no backtrace: the reader typed the command.
            let mut text = String::new();
            for cause in error.chain().map(ToString::to_string) {
                if text.is_empty() {
                    text = cause;
                } else if !text.contains(&cause) {
                    text = format!("{text}: {cause}");
                }
            }
            eprintln!("error: {}", cli::printable_lines(&text));
            cli::exit_code(&error)
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let arguments: Vec<_> = std::env::args_os().collect();
    if is_called(&arguments, "kubectl_complete-nodegate") {
        let words = arguments.iter().skip(1).map(|it| it.to_string_lossy());
        return cli::complete_for_kubectl(&words.map(Into::into).collect::<Vec<String>>());
    }
    if is_called(&arguments, "kubectl-nodegate") {
        return match cli::Plugin::read(arguments) {
            Ok(plugin) => cli::run(plugin.command),
            Err(error) => Ok(refused(&error)),
        };
    }
    let arguments = two_dashes(as_manager(arguments));
    let matches = cli::plain(Cli::command()).try_get_matches_from(arguments);
    let cli = matches.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
    let cli = match cli {
        Ok(cli) => cli,
        Err(error) => return Ok(refused(&error)),
    };
    match cli.command {
        Command::Controller { args, log } => {
            log.init()?;
            let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(controller::run(*args))?;
        }
        #[cfg(unix)]
        Command::Reporter { args, log } => {
            log.init()?;
            // One thread: the reporter runs on every node and mostly sleeps.
            let runtime = runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(reporter::run(*args))?;
        }
        Command::Ask(command) => return cli::run(command),
        #[cfg(unix)]
        Command::Reference { folder } => {
            for page in reference::pages(Cli::command()) {
                let path = folder.join(page.file);
                std::fs::write(&path, page.text)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether this process was started under this name, by which kubectl finds it.
fn is_called(arguments: &[OsString], name: &str) -> bool {
    let program = arguments.first().map(Path::new);
    let stem = program.and_then(|path| path.file_stem()?.to_str());
    stem == Some(name)
}

/// Prints help or a usage error. Clap's own exit code, 2, means that a command has found something.
fn refused(error: &clap::Error) -> ExitCode {
    // A closed terminal needs no message.
    let _ = error.print();
    if error.use_stderr() {
        ExitCode::from(cli::USAGE)
    } else {
        ExitCode::SUCCESS
    }
}

/// Inserts the implied command: the Node Readiness Controller is started as `/manager`, with only the controller's flags.
fn as_manager(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let first = arguments.get(1).and_then(|argument| argument.to_str());
    let is_meant = match first {
        None => is_called(&arguments, "manager"),
        Some("-h" | "--help" | "-help" | "-V" | "--version" | "-version") => false,
        Some(first) => first.starts_with('-'),
    };
    if is_meant {
        arguments.insert(1, "controller".into());
    }
    arguments
}

/// Gives each flag two dashes: Go's flag package, which the Node Readiness Controller uses, also accepts one (`-leader-elect`).
fn two_dashes(arguments: impl IntoIterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    arguments.into_iter().map(|argument| {
        let name = argument.to_str().and_then(|text| text.strip_prefix('-'));
        let is_long = name.is_some_and(|name| {
            name.len() > 1 && name.starts_with(|first: char| first.is_ascii_alphabetic())
        });
        if !is_long {
            return argument;
        }
        let mut flag = OsString::from("-");
        flag.push(argument);
        flag
    })
}

/// The tracing filter for a level; `None` if the word is neither a level nor a filter.
fn filter(level: &str) -> Option<EnvFilter> {
    let level = match level {
        level @ ("error" | "warn" | "info" | "debug" | "trace") => level,
        // zap's other words: a number is a verbosity above info.
        "panic" => "error",
        "1" => "debug",
        number if number.parse().is_ok_and(|number: u8| number > 1) => "trace",
        filter if filter.contains('=') => return EnvFilter::builder().parse(filter).ok(),
        _ => return None,
    };
    // A bare level applies only to Nodegate: the client libraries would repeat at length what its log already says.
    EnvFilter::builder()
        .parse(format!("off,nodegate={level}"))
        .ok()
}

/// A level or filter as written, if it can be used.
fn log_level(text: &str) -> Result<String, &'static str> {
    let usable = filter(text).map(|_| text.to_owned());
    usable
        .ok_or("use error, warn, info, debug or trace, or a tracing filter such as nodegate=debug")
}

impl LogArgs {
    /// Starts logging to standard error.
    fn init(&self) -> anyhow::Result<()> {
        let filter = filter(&self.level).context("--zap-log-level is no level and no filter")?;
        let logs = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false);
        match self.log_format {
            LogFormat::Text => logs.init(),
            LogFormat::Json => logs.json().init(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_has_no_markup() {
        fn hold(command: &mut clap::Command) {
            let help = command.render_long_help().to_string();
            assert!(!help.contains('`'), "{help}");
            command.get_subcommands_mut().for_each(hold);
        }
        for command in [Cli::command(), cli::Plugin::command()] {
            let mut command = cli::plain(command);
            command.build();
            hold(&mut command);
        }
    }

    #[test]
    fn a_deployment_of_the_node_readiness_controller_needs_no_other_flags() {
        let arguments = "--metrics-bind-address=:8443 --metrics-secure --metrics-cert-dir=/tmp/certs \
            --health-probe-bind-address=:8081 --pprof-bind-address=:6060 --leader-elect=true \
            --leader-election-namespace=nrr-system --enable-webhook --enable-node-state-metrics=true --kube-api-qps=50 \
            --kube-api-burst=100 --node-concurrent-reconciles=10 --rule-concurrent-reconciles=2 --zap-log-level=info \
            --zap-encoder=console --zap-devel --zap-stacktrace-level=panic --kubeconfig=/tmp/kubeconfig";
        for program in ["/manager", "nodegate", "nodegate controller"] {
            let arguments = format!("{program} {arguments}");
            let arguments = arguments.split_whitespace().map(OsString::from).collect();
            match Cli::try_parse_from(two_dashes(as_manager(arguments))) {
                Ok(cli) => assert!(
                    matches!(cli.command, Command::Controller { .. }),
                    "{program}"
                ),
                Err(error) => panic!("{program}: {error}"),
            }
        }
    }

    #[test]
    fn only_flags_alone_are_meant_for_the_controller() {
        for (given, expected) in [
            ("/manager", "/manager controller"),
            (
                "/manager -leader-elect",
                "/manager controller -leader-elect",
            ),
            ("nodegate", "nodegate"),
            ("nodegate --help", "nodegate --help"),
            ("nodegate -V", "nodegate -V"),
            ("nodegate status -o wide", "nodegate status -o wide"),
        ] {
            let arguments = given.split(' ').map(OsString::from).collect();
            assert_eq!(
                as_manager(arguments).join(OsStr::new(" ")),
                *expected,
                "{given}"
            );
        }
    }

    #[test]
    fn a_flag_has_one_dash_or_two() {
        let arguments = "nodegate controller -leader-elect -metrics-bind-address=:8080 -zap-log-level debug \
            -kube-api-qps -1 -node-concurrent-reconciles=0";
        let arguments = two_dashes(arguments.split_whitespace().map(OsString::from));
        let Cli { command, .. } =
            Cli::try_parse_from(arguments).unwrap_or_else(|error| panic!("{error}"));
        let Command::Controller { args, log } = command else {
            panic!("another command");
        };
        assert!(args.leader_elect && args.metrics.bind_address.0.is_some());
        assert_eq!(log.level, "debug");
        assert_eq!(args.node_concurrent_reconciles, 64);
        for kept in ["-h", "--help", "-1", "-", "--", "a-b"] {
            let kept = OsString::from(kept);
            assert_eq!(two_dashes([kept.clone()]).collect::<Vec<_>>(), [kept]);
        }
    }

    #[test]
    fn of_a_flag_that_is_given_twice_the_last_one_counts() {
        let flags = [
            "--leader-elect",
            "--leader-elect=false",
            "--log-format=text",
            "--log-format=json",
        ];
        let arguments = ["nodegate", "controller"].into_iter().chain(flags);
        let Ok(Cli {
            command: Command::Controller { args, log },
        }) = Cli::try_parse_from(arguments)
        else {
            panic!("the arguments are refused");
        };
        assert!(!args.leader_elect);
        assert!(matches!(log.log_format, LogFormat::Json));
    }

    #[test]
    fn the_reference_pages_are_up_to_date() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/reference");
        for page in reference::pages(Cli::command()) {
            let committed = std::fs::read_to_string(folder.join(page.file)).unwrap_or_default();
            assert!(
                committed == page.text,
                "docs/reference/{} does not fit the code any more: run `make docs` and commit what it changes",
                page.file
            );
        }
    }
}
