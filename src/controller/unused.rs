//! Flags of the Node Readiness Controller without a meaning here. They are accepted so that its Deployment's arguments work
//! unchanged, and the log says once that they change nothing, and why.

use tracing::info;

/// Flags that are accepted and change nothing.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct UnusedArgs {
    #[arg(long, value_name = "RULES", hide = true)]
    rule_concurrent_reconciles: Option<i64>,

    #[arg(long, value_name = "ADDRESS", hide = true)]
    pprof_bind_address: Option<String>,

    #[arg(long, value_name = "BOOL", hide = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    enable_node_state_metrics: Option<bool>,

    #[arg(long, value_name = "BOOL", hide = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    zap_devel: Option<bool>,

    #[arg(long, value_name = "LEVEL", hide = true)]
    zap_stacktrace_level: Option<String>,

    #[arg(long, value_name = "ENCODING", hide = true)]
    zap_time_encoding: Option<String>,
}

impl UnusedArgs {
    /// Logs which given flags change nothing.
    pub fn log(&self) {
        for (flag, why) in self.given() {
            info!("{flag} is ignored: {why}");
        }
    }

    /// The given flags that would mean something upstream, each with the reason why it does not here.
    fn given(&self) -> Vec<(&'static str, &'static str)> {
        let is_on = |address: &String| !address.is_empty() && address != "0";
        let flags = [
            (
                "--rule-concurrent-reconciles",
                self.rule_concurrent_reconciles.is_some(),
                "all rules of a node are decided together, and only the writes to nodes run side by side \
                 (--node-concurrent-reconciles)",
            ),
            (
                "--pprof-bind-address",
                self.pprof_bind_address.as_ref().is_some_and(is_on),
                "there is no Go runtime to profile",
            ),
            (
                "--enable-node-state-metrics",
                self.enable_node_state_metrics.is_some(),
                "the metrics of node states cost nothing here and are always served",
            ),
            (
                "--zap-devel",
                self.zap_devel.is_some(),
                "give --log-format and --zap-log-level",
            ),
            (
                "--zap-stacktrace-level",
                self.zap_stacktrace_level.is_some(),
                "log lines have no stack traces",
            ),
            (
                "--zap-time-encoding",
                self.zap_time_encoding.is_some(),
                "times are logged as RFC 3339",
            ),
        ];
        flags
            .into_iter()
            .filter(|(_, is_given, _)| *is_given)
            .map(|(flag, _, why)| (flag, why))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: UnusedArgs,
    }

    fn given(arguments: &[&str]) -> Vec<&'static str> {
        let cli = Cli::try_parse_from([&["nodegate"], arguments].concat());
        let cli = cli.unwrap_or_else(|error| panic!("{error}"));
        cli.args.given().into_iter().map(|(flag, _)| flag).collect()
    }

    #[test]
    fn every_flag_is_accepted_in_the_forms_that_go_accepts() {
        for (arguments, said) in [
            (
                &["--rule-concurrent-reconciles=4"][..],
                &["--rule-concurrent-reconciles"][..],
            ),
            (&["--pprof-bind-address=:6060"], &["--pprof-bind-address"]),
            (
                &["--enable-node-state-metrics"],
                &["--enable-node-state-metrics"],
            ),
            (
                &["--enable-node-state-metrics=false", "--zap-devel=true"],
                &["--enable-node-state-metrics", "--zap-devel"],
            ),
            (
                &[
                    "--zap-stacktrace-level=panic",
                    "--zap-time-encoding=iso8601",
                ],
                &["--zap-stacktrace-level", "--zap-time-encoding"],
            ),
        ] {
            assert_eq!(given(arguments), said, "{arguments:?}");
        }
    }

    #[test]
    fn flags_that_are_off_are_not_logged() {
        assert!(given(&[]).is_empty());
        assert!(given(&["--pprof-bind-address=0"]).is_empty());
    }
}
