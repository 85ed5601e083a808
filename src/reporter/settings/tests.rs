//! Valid and invalid settings.

use super::*;

fn args() -> ReporterArgs {
    ReporterArgs {
        node_name: Some("worker-1".to_owned()),
        check_endpoint: Some("http://localhost:9099/readiness".to_owned()),
        condition_type: Some("projectcalico.org/CalicoReady".to_owned()),
        ..ReporterArgs::default()
    }
}

#[allow(clippy::unnecessary_wraps, reason = "it is what the fields hold")]
fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn defaults_are_those_of_the_node_readiness_controller() {
    let settings = ReporterSettings::read(&args()).unwrap();
    assert_eq!(settings.interval, Duration::from_secs(30));
    assert_eq!(settings.timeout, Duration::from_secs(10));
    assert_eq!(settings.policy.heartbeat, Duration::from_secs(300));
    assert_eq!(settings.policy.success_threshold, 1);
    assert_eq!(settings.policy.failure_threshold, 1);
    assert_eq!(settings.metrics, parse_address(":9445").unwrap());
    assert!(!settings.impersonate && !settings.once);
    assert_eq!(settings.verify, Verify::System);
    // A variable that is set to nothing is not set.
    let empty = ReporterArgs {
        check_interval: text(""),
        heartbeat_period: text(" "),
        impersonate_node: text(""),
        metrics_bind_address: text(""),
        check_ca_file: text(""),
        ..args()
    };
    assert_eq!(ReporterSettings::read(&empty), Ok(settings));
}

#[test]
fn only_true_turns_impersonation_on() {
    for word in ["true", "True", "1", "yes"] {
        let args = ReporterArgs {
            impersonate_node: text(word),
            ..args()
        };
        let settings = ReporterSettings::read(&args).unwrap();
        assert_eq!(settings.impersonate, word == "true", "{word}");
    }
}

type Change = fn(&mut ReporterArgs);

/// A change that makes a setting unusable, and part of the error.
#[rustfmt::skip]
const UNUSABLE: &[(Change, &str)] = &[
    (|args| args.node_name = None, "NODE_NAME (or --node-name) is not set; take it from the downward API"),
    (|args| args.node_name = text("Worker_1"), "NODE_NAME (or --node-name) is \"Worker_1\", which cannot be"),
    (|args| args.check_endpoint = text(""), "CHECK_ENDPOINT (or --check-endpoint) is not set; say what"),
    (
        |args| args.check_endpoint = text("ftp://x"),
        "CHECK_ENDPOINT (or --check-endpoint) is \"ftp://x\", which",
    ),
    (|args| args.condition_type = None, "CONDITION_TYPE (or --condition-type) is not set; name"),
    (|args| args.condition_type = Some("x".repeat(317)), "is 317 characters long; at most 316 fit"),
    (|args| args.condition_type = text("a/b/c"), "is \"a/b/c\", which is no qualified name"),
    (|args| args.condition_type = text("Net work"), "no qualified name"),
    (|args| args.condition_type = text("/Name"), "no qualified name"),
    (|args| args.condition_type = text("Example.com/Name"), "no qualified name"),
    (|args| args.condition_type = text("Ready"), "is \"Ready\", which belongs to the kubelet"),
    (|args| args.condition_type = text("NetworkUnavailable"), "belongs to the kubelet or the network"),
    (|args| args.condition_type = text("csidriver.nodegate.dev/a"), "controller makes itself"),
    (|args| args.check_interval = text("30"), "CHECK_INTERVAL (or --check-interval) cannot be used: duration"),
    (|args| args.check_interval = text("0s"), "CHECK_INTERVAL (or --check-interval) is 0s; give at least 100ms"),
    (|args| args.check_timeout = text("soon"), "CHECK_TIMEOUT (or --check-timeout) cannot be used: duration"),
    (|args| args.heartbeat_period = text("-5m"), "HEARTBEAT_PERIOD (or --heartbeat-period) cannot be used"),
    (|args| args.heartbeat_period = text("1ms"), "is 1ms; give at least 1s"),
    (|args| args.success_threshold = text("0"), "SUCCESS_THRESHOLD (or --success-threshold) is \"0\"; give"),
    (|args| args.failure_threshold = text("-1"), "FAILURE_THRESHOLD (or --failure-threshold) is \"-1\"; give"),
    (|args| args.report_once = text("2"), "REPORT_ONCE (or --report-once) is \"2\"; give true or false"),
    (|args| args.metrics_bind_address = text("9445"), "METRICS_BIND_ADDRESS (or --metrics-bind-address) is \"9445\""),
    (|args| args.check_skip_tls_verify = text("true"), "CHECK_SKIP_TLS_VERIFY (or --check-skip-tls-verify) is true, but"),
    (
        |args| {
            args.check_endpoint = text("https://10.0.0.1/");
            args.check_skip_tls_verify = text("true");
        },
        "is not on localhost",
    ),
];

#[test]
fn each_setting_that_cannot_be_used_is_told_by_its_name_with_the_remedy() {
    for (change, words) in UNUSABLE {
        let mut args = args();
        change(&mut args);
        let error = ReporterSettings::read(&args).expect_err(words).to_string();
        assert!(error.contains(words), "{words:?} is not in: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn reporters_are_spread_evenly_and_each_keeps_its_place() {
    let phases: Vec<f64> = (0..1000)
        .map(|number| {
            phase(
                &format!("ip-10-0-{}-{}", number / 256, number % 256),
                "CalicoReady",
            )
        })
        .collect();
    for tenth in 0..10 {
        let (from, to) = (f64::from(tenth) / 10.0, f64::from(tenth + 1) / 10.0);
        let here = phases.iter().filter(|&&phase| phase >= from && phase < to);
        let share = here.count();
        assert!((50..=150).contains(&share), "{share} of 1000 from {from}");
    }
    assert!((phase("a", "b") - phase("a", "b")).abs() < f64::EPSILON);
    assert!((phase("a", "b") - phase("b", "a")).abs() > f64::EPSILON);
}
