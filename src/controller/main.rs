//! The controller: gates and releases nodes.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nodegate_cluster::process;
use tokio::runtime;

fn main() -> ExitCode {
    // The image starts this program where a pod has no command: so it can take the place of another reporter's image, too.
    if env::var_os("CHECK_ENDPOINT").is_some() {
        return report();
    }
    let words = env::args_os().map(two_dashes);
    let threads = runtime::Builder::new_multi_thread();
    process::main(words, threads, nodegate_controller::run)
}

/// Becomes the reporter that is beside this program.
fn report() -> ExitCode {
    let reporter = env::current_exe().map(|this| this.with_file_name("nodegate-reporter"));
    let args = env::args_os().skip(1);
    let error = reporter.map_or_else(|error| error, |it| Command::new(it).args(args).exec());
    eprintln!("error: nodegate-reporter cannot be started: {error}");
    ExitCode::FAILURE
}

/// Gives a flag two dashes: Go's flag package, which the Node Readiness Controller uses, also accepts one (`-leader-elect`).
fn two_dashes(word: OsString) -> OsString {
    match word.to_str().map(str::as_bytes) {
        Some([b'-', first, _, ..]) if first.is_ascii_alphabetic() => {
            let mut flag = OsString::from("-");
            flag.push(word);
            flag
        }
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};
    use nodegate_controller::ControllerArgs;

    /// What these words say, as the arguments show it.
    fn parse(words: &str) -> String {
        let words = words.split_whitespace().map(OsString::from);
        let words = std::iter::once("/manager".into())
            .chain(words)
            .map(two_dashes);
        let args = ControllerArgs::try_parse_from(words);
        format!("{:?}", args.unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn a_deployment_of_the_node_readiness_controller_needs_no_other_flags() {
        parse(
            "--metrics-bind-address=:8443 --metrics-secure --metrics-cert-dir=/tmp/certs \
            --health-probe-bind-address=:8081 --pprof-bind-address=:6060 --leader-elect=true \
            --leader-election-namespace=nrr-system --enable-webhook --enable-node-state-metrics=true --kube-api-qps=50 \
            --kube-api-burst=100 --node-concurrent-reconciles=10 --rule-concurrent-reconciles=2 --zap-log-level=info \
            --zap-encoder=console --zap-devel --zap-stacktrace-level=panic --kubeconfig=/tmp/kubeconfig",
        );
    }

    #[test]
    fn a_flag_has_one_dash_or_two() {
        let args = parse(
            "-leader-elect -metrics-bind-address=:8080 -zap-log-level debug -kube-api-qps -1 -node-concurrent-reconciles=0",
        );
        for said in [
            "leader_elect: Some(true)",
            "metrics: MetricsArgs { bind_address: BindAddress(Some([::]:8080))",
            "log: LogArgs { level: \"debug\"",
            "node_concurrent_reconciles: 64",
        ] {
            assert!(args.contains(said), "{said}: {args}");
        }
        for kept in ["-h", "--help", "-1", "-", "--", "a-b"] {
            assert_eq!(two_dashes(kept.into()), *kept);
        }
    }

    #[test]
    fn every_flag_is_an_environment_variable_and_booleans_are_gos() {
        let command = ControllerArgs::command();
        for flag in command.get_arguments() {
            let variable = flag.get_env().and_then(|it| it.to_str());
            let is_ours = variable.is_some_and(|it| it.starts_with("NODEGATE_"));
            assert!(is_ours, "{flag}: {variable:?}");
        }
        for (words, expected) in [
            ("1 t T TRUE true True", true),
            ("0 f F FALSE false False", false),
        ] {
            for word in words.split(' ') {
                let args = parse(&format!("--enable-webhook={word} --leader-elect={word}"));
                let webhook = format!("enable_webhook: {expected}");
                let elects = format!("leader_elect: Some({expected})");
                assert!(args.contains(&webhook) && args.contains(&elects), "{word}");
            }
        }
    }

    #[test]
    fn the_last_value_of_a_repeated_flag_counts() {
        let args = parse("--leader-elect --leader-elect=false --log-format=text --log-format=json");
        assert!(args.contains("leader_elect: Some(false)"), "{args}");
        assert!(args.contains("log_format: Json"), "{args}");
    }
}
