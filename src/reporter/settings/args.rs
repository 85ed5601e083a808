//! The reporter's flags and environment variables, as text.

use std::path::PathBuf;

/// Checks an endpoint on its node and reports the outcome as a condition of the Node.
///
/// Every flag can be given as the environment variable beside it. Values are read by [`Settings::read`], so that what
/// is wrong with one can be told by the name that the user knows.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    /// Name of the Node to report on; from the downward API (fieldRef: spec.nodeName)
    #[arg(long, env = "NODE_NAME", value_name = "NAME", hide_env_values = true)]
    pub node_name: Option<String>,

    /// What to check: `http(s)://HOST:PORT/PATH`, `tcp://HOST:PORT`, `grpc://HOST:PORT[/SERVICE]`,
    /// `unix:///SOCKET[:/PATH]` or `exec:/PROGRAM ARGUMENTS`
    #[arg(
        long,
        env = "CHECK_ENDPOINT",
        value_name = "ENDPOINT",
        hide_env_values = true
    )]
    pub check_endpoint: Option<String>,

    /// Type of the condition to report, such as example.com/NetworkReady
    #[arg(
        long,
        env = "CONDITION_TYPE",
        value_name = "TYPE",
        hide_env_values = true
    )]
    pub condition_type: Option<String>,

    /// Time from one check to the next [default: 30s]
    #[arg(
        long,
        env = "CHECK_INTERVAL",
        value_name = "DURATION",
        hide_env_values = true
    )]
    pub check_interval: Option<String>,

    /// Time that a check may take [default: 10s]
    #[arg(
        long,
        env = "CHECK_TIMEOUT",
        value_name = "DURATION",
        hide_env_values = true
    )]
    pub check_timeout: Option<String>,

    /// How many good checks in a row it takes to report True [default: 1]
    #[arg(
        long,
        env = "SUCCESS_THRESHOLD",
        value_name = "CHECKS",
        hide_env_values = true
    )]
    pub success_threshold: Option<String>,

    /// How many bad checks in a row it takes to turn from True to False [default: 1]
    #[arg(
        long,
        env = "FAILURE_THRESHOLD",
        value_name = "CHECKS",
        hide_env_values = true
    )]
    pub failure_threshold: Option<String>,

    /// Time after which even an unchanged condition is written again [default: 5m]
    #[arg(
        long,
        env = "HEARTBEAT_PERIOD",
        value_name = "DURATION",
        hide_env_values = true
    )]
    pub heartbeat_period: Option<String>,

    /// PEM file with the certificate authorities that an https endpoint is verified against, in place of the system's
    #[arg(
        long,
        env = "CHECK_CA_FILE",
        value_name = "FILE",
        hide_env_values = true
    )]
    pub check_ca_file: Option<String>,

    /// Do not verify the certificate of an https endpoint; only for endpoints on localhost
    #[arg(long, env = "CHECK_SKIP_TLS_VERIFY", value_name = "BOOL", hide_env_values = true,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub check_skip_tls_verify: Option<String>,

    /// End with exit code 0 once the condition is True and written, for an init container
    #[arg(long, env = "REPORT_ONCE", value_name = "BOOL", hide_env_values = true,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub report_once: Option<String>,

    /// Act as system:node:NAME, by constrained impersonation (Kubernetes 1.35 and later); any word but `true` means no
    #[arg(long, env = "IMPERSONATE_NODE", value_name = "BOOL", hide_env_values = true,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub impersonate_node: Option<String>,

    /// Address of /metrics, /healthz and /readyz; `0` turns them off [default: :9445]
    #[arg(
        long,
        env = "METRICS_BIND_ADDRESS",
        value_name = "ADDRESS",
        hide_env_values = true
    )]
    pub metrics_bind_address: Option<String>,

    /// Kubeconfig file; without it $KUBECONFIG, ~/.kube/config or the pod's service account is used
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

const EXIT_CODES: &str = "Exit codes:
  0  told to stop (SIGTERM, SIGINT), or REPORT_ONCE is set and the condition is True
  1  a setting cannot be used, there is no cluster to report to, or REPORT_ONCE was
     stopped before the condition was True
  2  the command line is wrong";
