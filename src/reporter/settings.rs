//! The reporter's settings, from environment variables or flags. An error is one line that names both. Pure.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use super::endpoint::Endpoint;
use super::state::Policy;
use crate::api;
use crate::condition::RESERVED_PREFIXES;
use crate::documentation;
use crate::logging::LogArgs;
use crate::serve::address::{BindAddress, parse_address};

const EXIT_CODES: &str = "Exit codes:
   0  told to stop (SIGTERM, SIGINT), or REPORT_ONCE is set and the condition is True
   1  a setting cannot be used, there is no cluster to report to, or REPORT_ONCE was
      stopped before the condition was True
  64  the command line is invalid";

fn after_help() -> String {
    format!(
        "{EXIT_CODES}\n\nDocumentation: {}",
        documentation::page("reporter.md")
    )
}

/// The longest condition type that a rule can name.
const MAX_CONDITION_TYPE: usize = 316;
const MAX_NODE_NAME: usize = 253;
/// The longest name part of a qualified name.
const MAX_NAME_PART: usize = 63;
/// The shortest pause between checks: shorter ones would only waste CPU.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// The shortest heartbeat: every node writes each one to the API server.
const MIN_HEARTBEAT: Duration = Duration::from_secs(1);
/// Condition types that the kubelet sets itself, or that report a problem when `True`.
const TAKEN_TYPES: &[&str] = &[
    "Ready",
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "OutOfDisk",
    "NetworkUnavailable",
];

/// Checks an endpoint on its node and reports the outcome as a condition of the Node.
///
/// Every flag can be given as an environment variable. The values are text that [`ReporterSettings::read`] reads: it names the variable
/// in an error, and treats an empty value as none; clap would name the flag alone and reject the value.
#[derive(Debug, Clone, Default, clap::Parser)]
#[command(name = "nodegate-reporter", version, after_help = after_help())]
pub struct ReporterArgs {
    /// Name of the Node to report on; from the downward API (fieldRef: spec.nodeName)
    #[arg(long, env, value_name = "NAME", hide_env_values = true)]
    pub node_name: Option<String>,

    /// What to check: `http(s)://HOST:PORT/PATH`, `tcp://HOST:PORT`, `grpc://HOST:PORT[/SERVICE]`,
    /// `unix:///SOCKET[:/PATH]` or `exec:/PROGRAM ARGUMENTS`
    #[arg(long, env, value_name = "ENDPOINT", hide_env_values = true)]
    pub check_endpoint: Option<String>,

    /// Type of the condition to report, such as example.com/NetworkReady
    #[arg(long, env, value_name = "TYPE", hide_env_values = true)]
    pub condition_type: Option<String>,

    /// Time from one check to the next [default: 30s]
    #[arg(long, env, value_name = "DURATION", hide_env_values = true)]
    pub check_interval: Option<String>,

    /// Time that a check may take [default: 10s]
    #[arg(long, env, value_name = "DURATION", hide_env_values = true)]
    pub check_timeout: Option<String>,

    /// How many good checks in a row it takes to report True [default: 1]
    #[arg(long, env, value_name = "CHECKS", hide_env_values = true)]
    pub success_threshold: Option<String>,

    /// How many bad checks in a row it takes to turn from True to False [default: 1]
    #[arg(long, env, value_name = "CHECKS", hide_env_values = true)]
    pub failure_threshold: Option<String>,

    /// Time after which even an unchanged condition is written again [default: 5m]
    #[arg(long, env, value_name = "DURATION", hide_env_values = true)]
    pub heartbeat_period: Option<String>,

    /// PEM file with the certificate authorities that an https endpoint is verified against, in place of the system's
    #[arg(long, env, value_name = "FILE", hide_env_values = true)]
    pub check_ca_file: Option<String>,

    /// Do not verify the certificate of an https endpoint; only for endpoints on localhost
    #[arg(long, env, value_name = "BOOL", hide_env_values = true,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub check_skip_tls_verify: Option<String>,

    /// End with exit code 0 once the condition is True and written, for an init container
    #[arg(long, env, value_name = "BOOL", hide_env_values = true,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub report_once: Option<String>,

    /// Act as system:node:NAME, by constrained impersonation (Kubernetes 1.35 and later); any word but `true` means no
    #[arg(long, env, value_name = "BOOL", hide_env_values = true,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub impersonate_node: Option<String>,

    /// Address of /metrics, /healthz and /readyz; `0` turns them off [default: :9445]
    #[arg(long, env, value_name = "ADDRESS", hide_env_values = true)]
    pub metrics_bind_address: Option<String>,

    /// Kubeconfig file; without it $KUBECONFIG, ~/.kube/config or the pod's service account is used
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The log.
    #[command(flatten)]
    pub log: LogArgs,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReporterSettings {
    pub(super) node: String,
    pub(super) endpoint: Endpoint,
    pub(super) condition_type: String,
    /// From the start of one check to the start of the next.
    pub(super) interval: Duration,
    pub(super) timeout: Duration,
    pub(super) policy: Policy,
    pub(super) verify: Verify,
    /// Whether to exit after the first `True`.
    pub(super) once: bool,
    /// Whether to impersonate the node's user.
    pub(super) impersonate: bool,
    /// The address of metrics and probes.
    pub(super) metrics: BindAddress,
}

/// How the certificate of an https endpoint is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verify {
    System,
    File(PathBuf),
    Nothing,
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} (or --{flag}) {problem}")]
pub struct SettingError {
    variable: &'static str,
    flag: String,
    problem: String,
}

impl SettingError {
    /// `problem` continues a sentence that starts with the variable's name.
    pub(super) fn new(variable: &'static str, problem: impl Into<String>) -> Self {
        Self {
            variable,
            flag: variable.to_lowercase().replace('_', "-"),
            problem: problem.into(),
        }
    }
}

impl ReporterSettings {
    /// Parses the settings; an error names the first one that cannot be used.
    pub(super) fn read(args: &ReporterArgs) -> Result<Self, SettingError> {
        let node = node_name(args.node_name.as_deref())?;
        let endpoint = required(
            "CHECK_ENDPOINT",
            args.check_endpoint.as_deref(),
            "say what to check, as in http://localhost:9099/readiness",
        )?;
        let endpoint = Endpoint::parse(endpoint)
            .map_err(|error| SettingError::new("CHECK_ENDPOINT", error.to_string()))?;
        let condition_type = condition_type(args.condition_type.as_deref())?;
        let policy = Policy {
            success_threshold: count("SUCCESS_THRESHOLD", args.success_threshold.as_deref())?,
            failure_threshold: count("FAILURE_THRESHOLD", args.failure_threshold.as_deref())?,
            heartbeat: duration(
                "HEARTBEAT_PERIOD",
                args.heartbeat_period.as_deref(),
                Duration::from_secs(300),
                MIN_HEARTBEAT,
            )?,
            phase: phase(&node, &condition_type),
        };
        let metrics = given(args.metrics_bind_address.as_deref()).unwrap_or(":9445");
        let metrics = parse_address(metrics).map_err(|problem| {
            SettingError::new("METRICS_BIND_ADDRESS", format!("is {metrics:?}: {problem}"))
        })?;
        Ok(Self {
            interval: duration(
                "CHECK_INTERVAL",
                args.check_interval.as_deref(),
                Duration::from_secs(30),
                MIN_INTERVAL,
            )?,
            timeout: duration(
                "CHECK_TIMEOUT",
                args.check_timeout.as_deref(),
                Duration::from_secs(10),
                MIN_INTERVAL,
            )?,
            verify: verify(args, &endpoint)?,
            once: flag("REPORT_ONCE", args.report_once.as_deref())?,
            // As in the Node Readiness Controller's reporter, only this word turns it on.
            impersonate: args.impersonate_node.as_deref() == Some("true"),
            node,
            endpoint,
            condition_type,
            policy,
            metrics,
        })
    }
}

/// A setting that is not empty: manifests often set a variable to nothing to leave it at its default.
fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

fn required<'a>(
    variable: &'static str,
    text: Option<&'a str>,
    remedy: &str,
) -> Result<&'a str, SettingError> {
    given(text).ok_or_else(|| SettingError::new(variable, format!("is not set; {remedy}")))
}

fn node_name(text: Option<&str>) -> Result<String, SettingError> {
    const VARIABLE: &str = "NODE_NAME";
    let remedy = "take it from the downward API (valueFrom: fieldRef: fieldPath: spec.nodeName)";
    let name = required(VARIABLE, text, remedy)?;
    if name.len() > MAX_NODE_NAME || !is_subdomain(name) {
        let problem = format!("is {name:?}, which cannot be the name of a Node; {remedy}");
        return Err(SettingError::new(VARIABLE, problem));
    }
    Ok(name.to_owned())
}

fn condition_type(text: Option<&str>) -> Result<String, SettingError> {
    const VARIABLE: &str = "CONDITION_TYPE";
    let remedy = "name the condition to report, as in example.com/NetworkReady";
    let kind = required(VARIABLE, text, remedy)?;
    let problem = if kind.len() > MAX_CONDITION_TYPE {
        format!(
            "is {} characters long; at most {MAX_CONDITION_TYPE} fit",
            kind.len()
        )
    } else if !is_qualified_name(kind) {
        format!(
            "is {kind:?}, which is no qualified name: NAME or DOMAIN/NAME, where NAME has at most {MAX_NAME_PART} \
             letters, digits, '-', '_' and '.' and starts and ends with a letter or digit; {remedy}"
        )
    } else if TAKEN_TYPES.contains(&kind) {
        format!("is {kind:?}, which belongs to the kubelet or the network; {remedy}")
    } else if RESERVED_PREFIXES
        .iter()
        .any(|prefix| kind.starts_with(*prefix))
    {
        format!("is {kind:?}, which the Nodegate controller makes itself; {remedy}")
    } else {
        return Ok(kind.to_owned());
    };
    Err(SettingError::new(VARIABLE, problem))
}

fn is_qualified_name(text: &str) -> bool {
    let (domain, name) = match text.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, text),
    };
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_outer = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    domain.is_none_or(is_subdomain)
        && name.len() <= MAX_NAME_PART
        && is_outer(name.chars().next())
        && is_outer(name.chars().next_back())
        && name.chars().all(is_inner)
}

/// Whether a text is a DNS subdomain (RFC 1123).
fn is_subdomain(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    text.len() <= MAX_NODE_NAME && text.split('.').all(is_label)
}

fn duration(
    variable: &'static str,
    text: Option<&str>,
    default: Duration,
    shortest: Duration,
) -> Result<Duration, SettingError> {
    let Some(text) = given(text) else {
        return Ok(default);
    };
    let read: api::Duration = text
        .parse()
        .map_err(|error| SettingError::new(variable, format!("cannot be used: {error}")))?;
    if read.as_std() < shortest {
        let problem = format!("is {text}; give at least {shortest:?}");
        return Err(SettingError::new(variable, problem));
    }
    Ok(read.as_std())
}

fn count(variable: &'static str, text: Option<&str>) -> Result<u32, SettingError> {
    match given(text).map(str::parse) {
        None => Ok(1),
        Some(Ok(number @ 1..=1000)) => Ok(number),
        Some(_) => {
            let problem = format!(
                "is {:?}; give a number of checks from 1 to 1000",
                text.unwrap_or_default()
            );
            Err(SettingError::new(variable, problem))
        }
    }
}

fn flag(variable: &'static str, text: Option<&str>) -> Result<bool, SettingError> {
    match given(text) {
        None | Some("false" | "0") => Ok(false),
        Some("true" | "1") => Ok(true),
        Some(other) => {
            let problem = format!("is {other:?}; give true or false");
            Err(SettingError::new(variable, problem))
        }
    }
}

fn verify(args: &ReporterArgs, endpoint: &Endpoint) -> Result<Verify, SettingError> {
    const SKIP: &str = "CHECK_SKIP_TLS_VERIFY";
    let file = given(args.check_ca_file.as_deref());
    if !flag(SKIP, args.check_skip_tls_verify.as_deref())? {
        return Ok(file.map_or(Verify::System, |file| Verify::File(file.into())));
    }
    let problem = if !endpoint.is_tls() {
        "is true, but CHECK_ENDPOINT is not https; leave it out"
    } else if !endpoint.is_loopback() {
        "is true, but CHECK_ENDPOINT is not on localhost, the only host where no other machine can answer in its place; give \
         CHECK_CA_FILE"
    } else if file.is_some() {
        "is true, and CHECK_CA_FILE is set; leave one of them out"
    } else {
        return Ok(Verify::Nothing);
    };
    Err(SettingError::new(SKIP, problem))
}

/// A reporter's phase, at least 0 and below 1: stable across restarts, and different for each Node and condition.
fn phase(node: &str, condition_type: &str) -> f64 {
    // FNV-1a, because the hash in `std` may change with its version.
    let hash = node
        .bytes()
        .chain([0])
        .chain(condition_type.bytes())
        .fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
    f64::from(hash) / (f64::from(u32::MAX) + 1.0)
}
