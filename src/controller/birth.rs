//! Whether the API server taints nodes as it creates them (`config/birth`): read once at startup, only for the log.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tracing::{info, warn};

use crate::causes::with_causes;

/// The name of both the policy and its binding.
const NAME: &str = "nrr-gate-at-birth";
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// The consequence when nodes are not tainted at creation.
const OTHERWISE: &str = "a node takes pods from its creation until this controller has gated it";

/// Whether one of the two objects exists.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Presence {
    Installed,
    Missing,
    /// The API server does not know the kind.
    Unsupported,
    /// Unknown, for this reason.
    Unknown(String),
}

/// The log line, and whether it is a warning.
#[derive(Debug, PartialEq, Eq)]
enum LogLine {
    AsItShould(String),
    InHalves(String),
}

/// Logs whether nodes are tainted as they are created.
pub(super) async fn tell(client: Client) {
    let (policy, binding) = tokio::join!(
        look::<MutatingAdmissionPolicy>(&client),
        look::<MutatingAdmissionPolicyBinding>(&client),
    );
    match judge(&policy, &binding) {
        LogLine::AsItShould(text) => info!("{text}"),
        LogLine::InHalves(text) => warn!("{text}"),
    }
}

async fn look<K>(client: &Client) -> Presence
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    K: Resource<Scope = k8s_openapi::ClusterResourceScope>,
{
    let api: Api<K> = Api::all(client.clone());
    match tokio::time::timeout(TIMEOUT, api.get_metadata(NAME)).await {
        Ok(Ok(_)) => Presence::Installed,
        Ok(Err(error)) => from_error(&error),
        Err(_) => Presence::Unknown(format!("no answer within {} s", TIMEOUT.as_secs())),
    }
}

fn from_error(error: &kube::Error) -> Presence {
    match error {
        // If only the object is missing, the answer names it.
        kube::Error::Api(status) if status.code == 404 => match &status.details {
            Some(details) if details.name == NAME => Presence::Missing,
            _ => Presence::Unsupported,
        },
        kube::Error::Api(status) => Presence::Unknown(status.message.clone()),
        error => Presence::Unknown(with_causes(error)),
    }
}

fn judge(policy: &Presence, binding: &Presence) -> LogLine {
    use Presence::{Installed, Missing, Unknown, Unsupported};
    let half = |there: &str, missing: &str| {
        LogLine::InHalves(format!(
            "{there} {NAME} is installed without its {missing}, and does nothing: {OTHERWISE}; install both with \
             `kubectl apply -k config/birth`"
        ))
    };
    match (policy, binding) {
        (Installed, Installed) => LogLine::AsItShould(
            "nodes are gated as they are created, by MutatingAdmissionPolicy nrr-gate-at-birth"
                .into(),
        ),
        (Installed, Missing) => half("MutatingAdmissionPolicy", "binding"),
        (Missing, Installed) => half("MutatingAdmissionPolicyBinding", "policy"),
        (Unsupported, _) | (_, Unsupported) => LogLine::AsItShould(format!(
            "nodes are not gated as they are created: the API server has no MutatingAdmissionPolicy (Kubernetes 1.36); {OTHERWISE}"
        )),
        (Unknown(why), _) | (_, Unknown(why)) => LogLine::AsItShould(format!(
            "cannot tell whether nodes are gated as they are created: {why}"
        )),
        (Missing, Missing) => LogLine::AsItShould(format!(
            "nodes are not gated as they are created: {OTHERWISE}; `kubectl apply -k config/birth` closes the gap"
        )),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_log_line_follows_from_the_policy_and_its_binding() {
        let unknown = Presence::Unknown("forbidden".into());
        for (policy, binding, is_warning, words) in [
            (
                &Presence::Installed,
                &Presence::Installed,
                false,
                "are gated",
            ),
            (
                &Presence::Missing,
                &Presence::Missing,
                false,
                "closes the gap",
            ),
            (
                &Presence::Installed,
                &Presence::Missing,
                true,
                "without its binding",
            ),
            (
                &Presence::Missing,
                &Presence::Installed,
                true,
                "without its policy",
            ),
            (
                &Presence::Unsupported,
                &Presence::Unsupported,
                false,
                "1.36",
            ),
            (&unknown, &Presence::Missing, false, "forbidden"),
            (&Presence::Installed, &unknown, false, "cannot tell"),
        ] {
            let verdict = judge(policy, binding);
            let (LogLine::AsItShould(text) | LogLine::InHalves(text)) = &verdict;
            assert!(text.contains(words), "{policy:?}, {binding:?}: {text}");
            assert_eq!(
                matches!(verdict, LogLine::InHalves(_)),
                is_warning,
                "{text}"
            );
        }
    }

    #[test]
    fn an_object_that_is_missing_is_told_from_a_kind_that_is_not_known() {
        let error = |code: u16, details| {
            let status =
                json!({ "status": "Failure", "message": "no", "code": code, "details": details });
            let status: Status = serde_json::from_value(status).expect("a status");
            from_error(&kube::Error::Api(status.boxed()))
        };
        let named = json!({ "name": NAME, "group": "admissionregistration.k8s.io" });
        assert_eq!(error(404, named.clone()), Presence::Missing);
        assert_eq!(error(404, json!({})), Presence::Unsupported);
        assert_eq!(error(404, json!(null)), Presence::Unsupported);
        assert_eq!(error(403, named), Presence::Unknown("no".into()));
    }
}
