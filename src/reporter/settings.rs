//! The reporter's settings, from environment variables or flags. An error is one line that names both. Pure.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use super::endpoint::Endpoint;
use super::state::Policy;
use nodegate_cluster::process::{LogArgs, from_environment};
use nodegate_core::api;
use nodegate_core::condition::is_reserved;
use nodegate_core::object::KUBELETS_CONDITIONS;
use nodegate_core::selector::{is_dns_subdomain, is_label_key};
use nodegate_core::text::documentation;
use nodegate_serve::address::{BindAddress, parse_address};

const EXIT_CODES: &str = "Exit codes:
   0  told to stop (SIGTERM, SIGINT), or REPORT_ONCE is set and the condition is True
   1  a setting cannot be used, there is no cluster to report to, or REPORT_ONCE was
      stopped before the condition was True
  64  the command line is invalid";

const MAX_CONDITION_TYPE: usize = 316;
/// The shortest pause between checks: shorter ones would only waste CPU.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// The shortest heartbeat: every node writes each one to the API server.
const MIN_HEARTBEAT: Duration = Duration::from_secs(1);
/// Beside the kubelet's, the condition types that report a problem when `True`.
const PROBLEMS: [&str; 2] = ["OutOfDisk", "NetworkUnavailable"];

/// Checks an endpoint on its node and reports the outcome as a condition of the Node.
///
/// Every flag can be given as an environment variable. The values are text that [`ReporterSettings::read`] reads: it names the variable
/// in an error, and treats an empty value as none; clap would name the flag alone and reject the value.
#[derive(Debug, Clone, Default, clap::Parser)]
#[command(name = "nodegate-reporter", version, mut_args = from_environment,
          after_help = format!("{EXIT_CODES}\n\nDocumentation: {}", documentation::page("reporter.md")))]
pub struct ReporterArgs {
    /// Name of the Node to report on; from the downward API (fieldRef: spec.nodeName)
    #[arg(long, env, value_name = "NAME")]
    pub node_name: Option<String>,

    /// What to check: `http(s)://HOST:PORT/PATH`, `tcp://HOST:PORT`, `grpc://HOST:PORT[/SERVICE]`,
    /// `unix:///SOCKET[:/PATH]` or `exec:/PROGRAM ARGUMENTS`
    #[arg(long, env, value_name = "ENDPOINT")]
    pub check_endpoint: Option<String>,

    /// Type of the condition to report, such as example.com/NetworkReady
    #[arg(long, env, value_name = "TYPE")]
    pub condition_type: Option<String>,

    /// Time from one check to the next [default: 30s]
    #[arg(long, env, value_name = "DURATION")]
    pub check_interval: Option<String>,

    /// Time that a check may take [default: 10s]
    #[arg(long, env, value_name = "DURATION")]
    pub check_timeout: Option<String>,

    /// How many good checks in a row it takes to report True [default: 1]
    #[arg(long, env, value_name = "CHECKS")]
    pub success_threshold: Option<String>,

    /// How many bad checks in a row it takes to turn from True to False [default: 1]
    #[arg(long, env, value_name = "CHECKS")]
    pub failure_threshold: Option<String>,

    /// Time after which even an unchanged condition is written again [default: 5m]
    #[arg(long, env, value_name = "DURATION")]
    pub heartbeat_period: Option<String>,

    /// PEM file with the certificate authorities that an https endpoint is verified against, in place of the system's
    #[arg(long, env, value_name = "FILE")]
    pub check_ca_file: Option<String>,

    /// Do not verify the certificate of an https endpoint; only for endpoints on localhost
    #[arg(long, env, value_name = "BOOL")]
    pub check_skip_tls_verify: Option<String>,

    /// End with exit code 0 once the condition is True and written, for an init container
    #[arg(long, env, value_name = "BOOL")]
    pub report_once: Option<String>,

    /// Act as system:node:NAME, by constrained impersonation (Kubernetes 1.35 and later); any word but `true` means no
    #[arg(long, env, value_name = "BOOL")]
    pub impersonate_node: Option<String>,

    /// Address of /metrics, /healthz and /readyz; `0` turns them off [default: :9445]
    #[arg(long, env, value_name = "ADDRESS")]
    pub metrics_bind_address: Option<String>,

    /// Kubeconfig file; without it $KUBECONFIG, ~/.kube/config or the pod's service account is used
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    #[command(flatten)]
    pub(super) log: LogArgs,
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
    pub(super) once: bool,
    pub(super) impersonate: bool,
    pub(super) metrics: BindAddress,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verify {
    System,
    File(PathBuf),
    Nothing,
}

/// A setting that cannot be used: its variable, and the problem, which continues a sentence that starts with the variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} (or --{flag}) {1}", flag = .0.to_lowercase().replace('_', "-"))]
pub(super) struct SettingError(pub(super) &'static str, pub(super) String);

impl ReporterSettings {
    /// Parses the settings; an error names the first one that cannot be used.
    pub(super) fn read(args: &ReporterArgs) -> Result<Self, SettingError> {
        let node = read("NODE_NAME", &args.node_name, "", node_name)?;
        let endpoint = read("CHECK_ENDPOINT", &args.check_endpoint, "", endpoint)?;
        let condition_type = read("CONDITION_TYPE", &args.condition_type, "", condition_type)?;
        let interval = |text: &str| duration(text, MIN_INTERVAL);
        let heartbeat = |text: &str| duration(text, MIN_HEARTBEAT);
        let (succeed, fail) = (&args.success_threshold, &args.failure_threshold);
        let policy = Policy {
            success_threshold: read("SUCCESS_THRESHOLD", succeed, "1", count)?,
            failure_threshold: read("FAILURE_THRESHOLD", fail, "1", count)?,
            heartbeat: read("HEARTBEAT_PERIOD", &args.heartbeat_period, "5m", heartbeat)?,
            phase: phase(&node, &condition_type),
        };
        let metrics = &args.metrics_bind_address;
        Ok(Self {
            interval: read("CHECK_INTERVAL", &args.check_interval, "30s", interval)?,
            timeout: read("CHECK_TIMEOUT", &args.check_timeout, "10s", interval)?,
            verify: verify(args, &endpoint)?,
            once: read("REPORT_ONCE", &args.report_once, "false", flag)?,
            // As in the Node Readiness Controller's reporter, only this word turns it on.
            impersonate: args.impersonate_node.as_deref() == Some("true"),
            metrics: read("METRICS_BIND_ADDRESS", metrics, ":9445", bind_address)?,
            node,
            endpoint,
            condition_type,
            policy,
        })
    }
}

/// Reads a setting. An empty one has its default: manifests often set a variable to nothing.
#[allow(clippy::ref_option, reason = "each is a field")]
fn read<T>(
    variable: &'static str,
    text: &Option<String>,
    default: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<T, SettingError> {
    let text = text.as_deref().unwrap_or_default().trim();
    let text = if text.is_empty() { default } else { text };
    parse(text).map_err(|problem| SettingError(variable, problem))
}

fn node_name(text: &str) -> Result<String, String> {
    let remedy = "take it from the downward API (valueFrom: fieldRef: fieldPath: spec.nodeName)";
    match text {
        "" => Err(format!("is not set; {remedy}")),
        name if is_dns_subdomain(name) => Ok(name.to_owned()),
        name => Err(format!(
            "is {name:?}, which cannot be the name of a Node; {remedy}"
        )),
    }
}

fn endpoint(text: &str) -> Result<Endpoint, String> {
    match text {
        "" => Err("is not set; say what to check, as in http://localhost:9099/readiness".into()),
        text => Endpoint::parse(text),
    }
}

fn condition_type(text: &str) -> Result<String, String> {
    let remedy = "name the condition to report, as in example.com/NetworkReady";
    Err(if text.is_empty() {
        format!("is not set; {remedy}")
    } else if text.len() > MAX_CONDITION_TYPE {
        let length = text.len();
        format!("is {length} characters long; at most {MAX_CONDITION_TYPE} fit")
    } else if !is_label_key(text) {
        format!(
            "is {text:?}, which is no qualified name: NAME or DOMAIN/NAME, where NAME has at most 63 \
             letters, digits, '-', '_' and '.' and starts and ends with a letter or digit; {remedy}"
        )
    } else if KUBELETS_CONDITIONS.contains(&text) || PROBLEMS.contains(&text) {
        format!("is {text:?}, which belongs to the kubelet or the network; {remedy}")
    } else if is_reserved(text) {
        format!("is {text:?}, which the Nodegate controller makes itself; {remedy}")
    } else {
        return Ok(text.to_owned());
    })
}

fn duration(text: &str, shortest: Duration) -> Result<Duration, String> {
    match text.parse::<api::Duration>() {
        Err(error) => Err(format!("cannot be used: {error}")),
        Ok(read) if read.as_std() < shortest => {
            Err(format!("is {text}; give at least {shortest:?}"))
        }
        Ok(read) => Ok(read.as_std()),
    }
}

fn count(text: &str) -> Result<u32, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| (1..=1000).contains(number));
    number.ok_or_else(|| format!("is {text:?}; give a number of checks from 1 to 1000"))
}

fn flag(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "false" | "f" | "0" => Ok(false),
        "true" | "t" | "1" => Ok(true),
        _ => Err(format!("is {text:?}; give true or false")),
    }
}

fn bind_address(text: &str) -> Result<BindAddress, String> {
    parse_address(text).map_err(|problem| format!("is {text:?}: {problem}"))
}

fn verify(args: &ReporterArgs, endpoint: &Endpoint) -> Result<Verify, SettingError> {
    const SKIP: &str = "CHECK_SKIP_TLS_VERIFY";
    let file = args.check_ca_file.as_deref().unwrap_or_default().trim();
    let problem = if !read(SKIP, &args.check_skip_tls_verify, "false", flag)? {
        return Ok(match file {
            "" => Verify::System,
            file => Verify::File(file.into()),
        });
    } else if !endpoint.is_tls() {
        "is true, but CHECK_ENDPOINT is not https; leave it out"
    } else if !endpoint.is_loopback() {
        "is true, but CHECK_ENDPOINT is not on localhost, the only host where no other machine can answer in its place; give \
         CHECK_CA_FILE"
    } else if !file.is_empty() {
        "is true, and CHECK_CA_FILE is set; leave one of them out"
    } else {
        return Ok(Verify::Nothing);
    };
    Err(SettingError(SKIP, problem.to_owned()))
}

/// A reporter's phase, at least 0 and below 1: stable across restarts, and different for each Node and condition.
fn phase(node: &str, condition_type: &str) -> f64 {
    // FNV-1a, because the hash in `std` may change with its version.
    let text = [node, "\0", condition_type].concat();
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    f64::from(hash) / (f64::from(u32::MAX) + 1.0)
}
