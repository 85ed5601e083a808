//! Why a watch does not work, and what to do about it, as text.

use std::time::Duration;

use kube::core::Status;

use crate::causes::with_causes;
use crate::controller::answer::{KARPENTER_RBAC, RBAC};
use crate::engine::kind::Watch;
use crate::engine::watch_cursor::End;

/// The API server's reason when a requested version is newer than any it knows.
const TOO_LARGE: &str = "ResourceVersionTooLarge";

/// Why a list or a watch failed to start, or broke off.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The API server refused.
    Refused(Box<Status>),
    /// The answer could not be parsed.
    NotUnderstood(serde_json::Error),
    /// The API server could not be reached.
    Unreachable(String),
    /// The API server took a request and did not answer for this long.
    NoAnswer(Duration),
    /// The API server sent nothing on a watch, and did not end it when its time was over.
    Silent,
    /// The watch ended too early, or in the middle of an answer.
    BrokenOff,
    /// The list has no version.
    NoVersion,
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            kube::Error::SerdeError(error) => Self::NotUnderstood(error),
            error => Self::Unreachable(with_causes(&error)),
        }
    }
}

impl Failure {
    /// Whether this failure means that the version has expired.
    pub(crate) fn end(&self) -> End {
        match self {
            // An unknown version or token counts as expired. If the resource does not exist now, it may have other objects when
            // it returns.
            Self::Refused(status)
                if matches!(status.code, 400 | 404 | 410) || is_too_large(status) =>
            {
                End::Expired
            }
            Self::NoVersion => End::Expired,
            _ => End::Failed,
        }
    }

    /// Whether the cluster lacks the resource.
    pub(crate) fn is_not_installed(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 404)
    }

    /// Why the watch does not work, and what to do about it; `None` if a plain retry is enough.
    pub(crate) fn explain(&self, kind: Watch, server: &str) -> Option<String> {
        let name = kind.name();
        let unreachable = |why: &str| {
            format!(
                "cannot reach the API server at {server} to watch {name}: {why} (check that it runs, and that the kubeconfig names the right server)"
            )
        };
        Some(match self {
            Self::BrokenOff => return None,
            Self::Refused(status) => match status.code {
                410 => return None,
                404 if kind == Watch::Rules => format!(
                    "the CustomResourceDefinition {name} is not installed: install it with `kubectl apply -k config/crd`"
                ),
                404 if matches!(kind, Watch::NodeClaims | Watch::NodePools) => format!(
                    "the CustomResourceDefinition {name} is not installed: no NodeClaim can be deleted until Karpenter is installed"
                ),
                401 => format!(
                    "the API server does not know who we are ({}): check the kubeconfig's credentials",
                    status.message
                ),
                403 => format!(
                    "no permission to list and watch {name} ({}): grant it with `kubectl apply -k {}`",
                    status.message,
                    rbac(kind)
                ),
                _ => format!("cannot watch {name}: {}", status.message),
            },
            Self::NotUnderstood(error) => {
                format!("cannot parse the API server's {name}: {error}")
            }
            Self::Unreachable(why) => unreachable(why),
            Self::NoAnswer(limit) => {
                unreachable(&format!("it did not answer within {} s", limit.as_secs()))
            }
            Self::Silent => format!(
                "nothing is seen of {name} any more, and the API server has not ended the watch either: the connection is dead, or something in between holds it up"
            ),
            Self::NoVersion => format!("{name} cannot be watched on this API server"),
        })
    }
}

fn is_too_large(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == TOO_LARGE)
}

/// The folder of manifests that grants the watch's permissions.
fn rbac(kind: Watch) -> &'static str {
    match kind {
        Watch::NodeClaims | Watch::NodePools => KARPENTER_RBAC,
        _ => RBAC,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(code: u16, cause: &str) -> Failure {
        let causes = json!([{"reason": cause, "message": "m", "field": ""}]);
        let status = json!({"status": "Failure", "code": code, "message": "m", "details": {"causes": causes}});
        Failure::Refused(serde_json::from_value(status).unwrap())
    }

    #[test]
    fn a_list_is_made_anew_only_where_the_api_server_cannot_go_on() {
        for (failure, expected) in [
            (refused(410, ""), End::Expired),
            (refused(400, ""), End::Expired),
            (refused(404, ""), End::Expired),
            (refused(504, TOO_LARGE), End::Expired),
            (refused(504, ""), End::Failed),
            (refused(401, ""), End::Failed),
            (refused(403, ""), End::Failed),
            (refused(429, ""), End::Failed),
            (refused(500, ""), End::Failed),
            (Failure::NoVersion, End::Expired),
            (Failure::Silent, End::Failed),
            (Failure::BrokenOff, End::Failed),
            (Failure::NoAnswer(Duration::from_secs(1)), End::Failed),
            (Failure::Unreachable("refused".into()), End::Failed),
        ] {
            assert_eq!(failure.end(), expected, "{failure:?}");
        }
    }

    #[test]
    fn a_failure_that_a_retry_fixes_is_not_reported() {
        for failure in [Failure::BrokenOff, refused(410, "")] {
            assert_eq!(failure.explain(Watch::Nodes, "server"), None);
        }
        let told = refused(403, "")
            .explain(Watch::NodeClaims, "server")
            .unwrap();
        assert!(told.contains("kubectl apply -k config/karpenter"), "{told}");
    }
}
