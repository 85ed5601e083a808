//! Flags of the Node Readiness Controller that change nothing here, as the log says once, with why: its Deployment works unchanged.

use tracing::info;

macro_rules! unused {
    ($($field:ident $flag:literal: $why:literal;)+) => {
        /// Flags that are accepted and change nothing.
        #[derive(Debug, Clone, Default, clap::Args)]
        pub(crate) struct UnusedArgs {
            $(#[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true")]
            $field: Option<String>,)+
        }

        impl UnusedArgs {
            /// The given flags that would mean something upstream, each with the reason why it does not here.
            fn given(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
                let flags = [$((&self.$field, $flag, $why)),+];
                let is_on = |text: &String| !text.is_empty() && text != "0";
                let given = flags.into_iter().filter(move |it| it.0.as_ref().is_some_and(is_on));
                given.map(|(_, flag, why)| (flag, why))
            }
        }
    };
}

unused! {
    rule_concurrent_reconciles "--rule-concurrent-reconciles": "all rules of a node are decided together, and only the writes \
        to nodes run side by side (--node-concurrent-reconciles)";
    pprof_bind_address "--pprof-bind-address": "there is no Go runtime to profile";
    enable_node_state_metrics "--enable-node-state-metrics":
        "the metrics of node states cost nothing here and are always served";
    zap_devel "--zap-devel": "give --log-format and --zap-log-level";
    zap_stacktrace_level "--zap-stacktrace-level": "log lines have no stack traces";
    zap_time_encoding "--zap-time-encoding": "times are logged as RFC 3339";
}

impl UnusedArgs {
    pub(super) fn log(&self) {
        for (flag, why) in self.given() {
            info!("{flag} is ignored: {why}");
        }
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
        cli.args.given().map(|(flag, _)| flag).collect()
    }

    #[test]
    fn every_flag_is_accepted_in_the_forms_that_go_accepts_and_logged_unless_it_is_off() {
        #[rustfmt::skip]
        let cases = [
            (&["--rule-concurrent-reconciles=4"][..], &["--rule-concurrent-reconciles"][..]),
            (&[], &[]),
            (&["--pprof-bind-address=0"], &[]),
            (&["--pprof-bind-address=:6060"], &["--pprof-bind-address"]),
            (&["--enable-node-state-metrics"], &["--enable-node-state-metrics"]),
            (&["--enable-node-state-metrics=false", "--zap-devel=true"], &["--enable-node-state-metrics", "--zap-devel"]),
            (&["--zap-stacktrace-level=panic", "--zap-time-encoding=iso8601"], &["--zap-stacktrace-level", "--zap-time-encoding"]),
        ];
        for (arguments, said) in cases {
            assert_eq!(given(arguments), said, "{arguments:?}");
        }
    }
}
