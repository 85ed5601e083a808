//! The log of the controller and the reporter: its level and format, as flags.

use std::fmt;
use std::io::IsTerminal;

use clap::ValueEnum;
use jiff::Timestamp;
use tracing::{Event, Subscriber};
use tracing_serde::fields::AsMap;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

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
            LogFormat::Json => logs.event_format(Json).init(),
        }
    }
}

/// An event as one flat object with zap's keys, as queries of the Node Readiness Controller's logs expect.
struct Json;

impl<S: Subscriber + for<'a> LookupSpan<'a>, N: for<'a> FormatFields<'a> + 'static>
    FormatEvent<S, N> for Json
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = serde_json::to_value(event.field_map()).map_err(|_| fmt::Error)?;
        let message = line.as_object_mut().and_then(|it| it.remove("message"));
        line["msg"] = message.into();
        line["level"] = event.metadata().level().as_str().to_lowercase().into();
        line["ts"] = format!("{:.3}", Timestamp::now()).into();
        writeln!(writer, "{line}")
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

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_json_line_is_flat_and_has_zaps_keys() {
        let written = Written::default();
        let writer = written.clone();
        let logs = tracing_subscriber::fmt().event_format(Json);
        let logs = logs.with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(logs, || {
            tracing::warn!(node = "n-1", writes = 2, held = true, why = ?"a\nb", "taint {}", "added");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        let mut line: serde_json::Value = serde_json::from_str(&text).unwrap();
        let ts = line["ts"].take();
        assert!(ts.as_str().unwrap().parse::<Timestamp>().is_ok(), "{ts}");
        let expected = serde_json::json!({
            "ts": null, "level": "warn", "msg": "taint added", "node": "n-1", "writes": 2, "held": true, "why": "\"a\\nb\"",
        });
        assert_eq!(line, expected);
    }
}
