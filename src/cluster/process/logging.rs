//! The log of the controller and the reporter: its level and format, as flags. What others cause cannot fill it.

use std::collections::HashMap;
use std::fmt;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::callsite::Identifier;
use tracing::{Event, Level, Subscriber};
use tracing_serde::fields::AsMap;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{self, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The most lines of one kind, which one place in the code writes, in each minute. Of others only the number is logged: who
/// writes rules, or reaches a port, decides how many there are. Debugging is without limit.
const MOST: u64 = 300;
const MINUTE: Duration = Duration::from_secs(60);

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
            .with_ansi(std::io::stderr().is_terminal());
        let format = self.log_format;
        let lines = Lines {
            format,
            ..Lines::default()
        };
        logs.event_format(lines).init();
    }
}

/// How many lines of each kind there are, with the message of the last that is logged.
type Kinds = HashMap<Identifier, (u64, Value)>;

#[derive(Default)]
struct Lines {
    format: LogFormat,
    /// Since when lines are counted.
    counted: Mutex<(Option<Instant>, Kinds)>,
}

impl Lines {
    /// Whether an event is logged, and lines that count others, which were not.
    fn admit(&self, event: &Event<'_>, now: Instant) -> (bool, Vec<String>) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, kinds) = &mut *counted;
        let mut others = Vec::new();
        if since.is_none_or(|since| now.duration_since(since) >= MINUTE) {
            *since = Some(now);
            let kinds = kinds.drain().filter(|(_, (lines, _))| *lines > MOST);
            let count = |(lines, like)| format!("{} more lines like {like}", lines - MOST);
            others.extend(kinds.map(|(_, kind)| count(kind)));
        }
        if *event.metadata().level() > Level::INFO {
            return (true, others);
        }
        let kind = kinds.entry(event.metadata().callsite());
        let (lines, like) = kind.or_default();
        *lines += 1;
        if *lines == MOST {
            *like = fields(event)["message"].take();
        }
        (*lines <= MOST, others)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>, N: for<'a> FormatFields<'a> + 'static>
    FormatEvent<S, N> for Lines
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let (is_logged, others) = self.admit(event, Instant::now());
        for other in others {
            match self.format {
                LogFormat::Text => writeln!(writer, "{:.6}  WARN {other}", Timestamp::now())?,
                LogFormat::Json => writeln!(writer, "{}", flat(json!({"message": other}), "warn"))?,
            }
        }
        match self.format {
            _ if !is_logged => Ok(()),
            LogFormat::Text => {
                let text = format::format().with_target(false);
                text.format_event(context, writer, event)
            }
            LogFormat::Json => {
                let level = event.metadata().level().as_str().to_lowercase();
                writeln!(writer, "{}", flat(fields(event), &level))
            }
        }
    }
}

fn fields(event: &Event<'_>) -> Value {
    serde_json::to_value(event.field_map()).unwrap_or_default()
}

/// A line as one flat object with zap's keys, as queries of the Node Readiness Controller's logs expect.
fn flat(mut line: Value, level: &str) -> Value {
    let message = line.as_object_mut().and_then(|it| it.remove("message"));
    line["msg"] = message.into();
    line["level"] = level.into();
    line["ts"] = format!("{:.3}", Timestamp::now()).into();
    line
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
    use std::sync::Arc;

    use tracing::Callsite as _;

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

    /// What is logged meanwhile.
    fn logged(lines: Lines, act: impl FnOnce()) -> String {
        let written = Written::default();
        let writer = written.clone();
        let logs = tracing_subscriber::fmt().with_ansi(false);
        let logs = logs.with_max_level(Level::DEBUG).event_format(lines);
        let logs = logs.with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(logs, act);
        let text = written.0.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }

    fn lines(format: LogFormat) -> Lines {
        Lines {
            format,
            ..Lines::default()
        }
    }

    #[test]
    fn a_flood_of_one_kind_is_counted_and_hides_no_other_kind() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let text = logged(lines(format), || {
                for node in 0..MOST + 500 {
                    tracing::info!(node, "taint added");
                    tracing::debug!(node, "evaluated");
                }
                tracing::info!("leading");
            });
            let number = |words: &str| text.lines().filter(|it| it.contains(words)).count() as u64;
            let numbers = ["added", "evaluated", "leading"].map(number);
            assert_eq!(numbers, [MOST, MOST + 500, 1], "{text}");
        }
        let mut lines = lines(LogFormat::Text);
        let kind = tracing::callsite!(name: "kind", kind: tracing::metadata::Kind::EVENT, fields: );
        let added = (MOST + 7, "taint added".into());
        let (_, kinds) = lines.counted.get_mut().unwrap();
        kinds.insert(kind.metadata().callsite(), added);
        let text = logged(lines, || tracing::info!("leading"));
        assert!(
            text.contains("WARN 7 more lines like \"taint added\"\n"),
            "{text}"
        );
        assert!(text.contains("INFO leading\n"), "{text}");
    }

    #[test]
    fn a_json_line_is_flat_and_has_zaps_keys() {
        let text = logged(lines(LogFormat::Json), || {
            tracing::warn!(node = "n-1", writes = 2, held = true, why = ?"a\nb", "taint {}", "added");
        });
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
