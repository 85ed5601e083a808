//! The log of the controller and the reporter: its level and format, as flags.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// What is logged, and how.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct LogArgs {
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

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum LogFormat {
    #[default]
    #[value(alias = "console")]
    Text,
    Json,
}

impl LogArgs {
    /// Starts logging to standard error.
    pub fn init(&self) {
        let filter = filter(&self.level).unwrap_or_default();
        let logs = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false);
        match self.log_format {
            LogFormat::Text => logs.init(),
            LogFormat::Json => logs.json().init(),
        }
    }
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
    let filter = format!("off,nodegate={level}");
    EnvFilter::builder().parse(filter).ok()
}

/// A level or filter as written, if it can be used.
fn log_level(text: &str) -> Result<String, &'static str> {
    let usable = filter(text).map(|_| text.to_owned());
    usable
        .ok_or("use error, warn, info, debug or trace, or a tracing filter such as nodegate=debug")
}
