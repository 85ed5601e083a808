//! The `nodegate` command line: one subcommand per job.

use std::io::{IsTerminal, Write};

use anyhow::Context;
use clap::{Parser, Subcommand, ValueEnum};
use nodegate::{api, controller};
use tracing_subscriber::EnvFilter;

/// Keeps pods off Kubernetes nodes until everything the node needs is really there.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the controller: watch nodes and rules, put taints on and lift them
    Controller {
        #[command(flatten)]
        args: Box<controller::Args>,
        #[command(flatten)]
        log: LogArgs,
    },
    /// Print the custom resource definition of rules as YAML, for kubectl
    Crd,
}

#[derive(clap::Args)]
struct LogArgs {
    /// What is logged: error, info, debug, or a tracing filter such as nodegate=debug
    #[arg(
        long = "zap-log-level",
        alias = "log-level",
        value_name = "LEVEL",
        env = "NODEGATE_LOG",
        default_value = "info"
    )]
    level: String,

    /// How log lines are written
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Controller { args, log } => {
            log.init()?;
            controller::run(*args).await?;
        }
        Command::Crd => std::io::stdout().write_all(api::crd_yaml()?.as_bytes())?,
    }
    Ok(())
}

impl LogArgs {
    /// Starts logging to standard error.
    fn init(&self) -> anyhow::Result<()> {
        // A bare level is about Nodegate; the client libraries say at their own lengths what is said here already.
        let filter = match self.level.as_str() {
            level @ ("error" | "warn" | "info" | "debug" | "trace") => {
                format!("off,nodegate={level}")
            }
            filter => filter.to_owned(),
        };
        let filter = EnvFilter::builder().parse(&filter).with_context(|| {
            format!(
                "--zap-log-level {:?} is neither a level nor a tracing filter",
                self.level
            )
        })?;
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
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
