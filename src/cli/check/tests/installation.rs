//! How each part of an installation is judged.

use super::*;
use crate::testing::at;
use Severity::{Error, Ok as Fine, Unknown, Warning};
use k8s_openapi::ByteString;
use nodegate_core::config::{Config, RunsWith};
use nodegate_core::guard::Limits;
use serde_json::{Value, from_value, json};

fn no<T>() -> Result<T, String> {
    Err("no".into())
}

/// Asserts how each of these was judged.
fn judged(cases: impl IntoIterator<Item = (&'static str, PartState, Severity)>) {
    for (name, verdict, expected) in cases {
        let severity = verdict.as_ref().map_or(Unknown, |it| it.0);
        assert_eq!(severity, expected, "{name}: {verdict:?}");
    }
}

#[test]
fn the_api_server_and_its_clock_are_judged() {
    let version = |minor: &str| {
        let version = json!({"major": "1", "minor": minor, "gitVersion": format!("v1.{minor}.3")});
        let version = from_value(version).unwrap_or_default();
        api_server(Ok(version))
    };
    judged([
        ("new", version("36"), Fine),
        ("a provider's", version("36+"), Fine),
        ("old", version("29"), Error),
        ("not a number", version("x"), Unknown),
        ("no answer", api_server(no()), Unknown),
        ("the same time", clock(Some(at(-1)), at(0)), Fine),
        ("apart", clock(Some(at(-60)), at(0)), Warning),
        ("no time", clock(None, at(0)), Unknown),
        ("all", permissions(Ok(Vec::new())), Fine),
        (
            "no pods",
            permissions(Ok(vec![ResourceKind::Pods])),
            Warning,
        ),
    ]);
}

#[test]
fn the_definition_is_judged() {
    const SPEC: &str =
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/nodegate/properties";
    let found = |change: &dyn Fn(&mut Value)| {
        let mut object = serde_json::to_value(api::crd()).unwrap();
        object["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        change(&mut object);
        definition(Ok(Some(from_value(object).unwrap())))
    };
    judged([
        ("ours", found(&|_| {}), Fine),
        (
            "not established",
            found(&|it| it["status"] = json!({})),
            Error,
        ),
        (
            "not served",
            found(&|it| it["spec"]["versions"][0]["served"] = json!(false)),
            Error,
        ),
        (
            "another's",
            found(&|it| it["metadata"]["labels"][MANAGED_BY] = json!("example-cloud")),
            Warning,
        ),
        (
            "older",
            found(&|it| {
                let fields = it.pointer_mut(SPEC).unwrap().as_object_mut().unwrap();
                fields.remove("suspend");
            }),
            Warning,
        ),
        ("none", definition(Ok(None)), Error),
        ("no answer", definition(no()), Unknown),
        ("gated", birth(Ok(true), Ok(true), Ok(true)), Fine),
        ("not gated", birth(Ok(true), Ok(false), Ok(false)), Fine),
        ("not known", birth(Ok(false), no(), no()), Fine),
        ("half", birth(Ok(true), Ok(true), Ok(false)), Warning),
        ("unread", birth(Ok(true), no(), Ok(false)), Unknown),
    ]);
}

#[test]
fn the_webhook_is_judged() {
    let authority = |days: i64| {
        let mut params = rcgen::CertificateParams::default();
        let end = at(0) + SignedDuration::from_hours(24 * days);
        params.not_after = std::time::SystemTime::from(end).into();
        let key = rcgen::KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().pem().into_bytes()
    };
    let found = |bundle: Vec<u8>, ready| {
        let service = json!({"namespace": "nrr-system", "name": "nrr-webhook-service"});
        let config = json!({"caBundle": ByteString(bundle), "service": service});
        let hook = json!({"name": "a.b.c", "clientConfig": config, "sideEffects": "None",
            "admissionReviewVersions": ["v1"]});
        let found = json!({"metadata": {"name": WEBHOOK}, "webhooks": [hook]});
        webhook(Ok(Some(from_value(found).unwrap())), ready, at(0))
    };
    judged([
        ("serves", found(authority(365), Some(2)), Fine),
        ("no CA", found(Vec::new(), Some(2)), Error),
        ("nobody serves it", found(authority(365), Some(0)), Error),
        ("unread endpoints", found(authority(365), None), Unknown),
        ("ended", found(authority(-1), Some(2)), Error),
        ("ends soon", found(authority(1), Some(2)), Warning),
        ("none", webhook(Ok(None), None, at(0)), Fine),
    ]);
}

#[test]
fn who_leads_is_judged() {
    let judge = |holder: &str, renewed, suspends_all, rival: Option<String>| {
        let leader = Leader {
            namespace: "nrr-system".into(),
            holder: holder.into(),
            renewed: Some(at(renewed)),
            duration_seconds: 15,
            suspends_all,
            runs_with: Some(RunsWith {
                config: Config::default(),
                limits: Limits::default(),
            }),
            rival,
        };
        let pod = |ready| ("example.com/nodegate:0.1.0".to_owned(), ready);
        controller(Ok(Some(&leader)), &[pod(true), pod(false)], at(0))
    };
    let leads = |holder: &str, renewed, suspends_all| judge(holder, renewed, suspends_all, None);
    let ours = "nrr-controller-manager-1_1-18f";
    let upstreams = "nrr-1_0b5c6a1e-52c0-4a6f-9c1d-0f6f7a6b9d10";
    let said = leads(ours, -3, false).unwrap().1;
    let expected = "nrr-controller-manager-1 leads, example.com/nodegate:0.1.0 (2 instances, 1 ready); a rule may gate 10% of the nodes \
         in use as it comes into force";
    assert_eq!(said, expected);
    judged([
        ("ours", leads(ours, -3, false), Fine),
        ("suspended", leads(ours, -3, true), Warning),
        (
            "two",
            judge(ours, -3, false, Some("b in namespace b".into())),
            Error,
        ),
        ("upstream's", leads(upstreams, -3, false), Warning),
        ("silent", leads(ours, -600, false), Error),
        ("nobody", leads("", -3, false), Error),
        ("no Lease", controller(Ok(None), &[], at(0)), Warning),
    ]);
}

#[test]
fn a_rule_that_stays_in_its_deletion_is_told() {
    let deleted = |seconds| {
        let mut rule: nodegate_core::object::RuleObject = crate::testing::rule("r").object();
        rule.metadata.deletion_timestamp = Some(
            k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(seconds)),
        );
        deletions(Ok(vec![&rule]), at(0))
    };
    judged([
        ("just now", deleted(-60), Fine),
        ("long ago", deleted(-600), Error),
        ("no rules", deletions(Ok(Vec::new()), at(0)), Fine),
        ("no answer", deletions(no(), at(0)), Unknown),
    ]);
}

/// The common name of Nodegate's own CAs.
const OWN: &str = "nodegate-ca";

/// A CA of this name that ends on the third of February of this year, as PEM.
fn ca(name: &str, year: i32) -> String {
    let mut params = rcgen::CertificateParams::default();
    params.not_after = rcgen::date_time_ymd(year, 2, 3);
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    let key = rcgen::KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().pem()
}

#[test]
fn the_last_expiry_of_a_ca_bundle_counts() {
    let bundle = ca("other", 2029) + &ca(OWN, 2030) + &ca(OWN, 2028);
    let expected = "2030-02-03T00:00:00Z".parse().unwrap();
    assert_eq!(last_end(bundle.as_bytes()), Some((expected, true)));
}

#[test]
fn the_end_of_a_certificate_is_read() {
    for (year, expected) in [
        (2030, "2030-02-03T00:00:00Z"),
        (2060, "2060-02-03T00:00:00Z"),
    ] {
        let pem = ca("other", year);
        assert_eq!(
            last_end(pem.as_bytes()),
            Some((expected.parse().unwrap(), false))
        );
        // No truncated certificate can be parsed.
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        for length in 0..der.len() {
            assert_eq!(end(&der[..length]), None, "{length}");
        }
    }
    assert_eq!(last_end(b"nonsense"), None);
}
