//! What the API server's answer to a request, or its absence, means to the engine.

use std::time::Duration;

use nodegate_cluster::{client, rbac, with_causes};
use nodegate_engine::RequestError;

pub(super) async fn within<T>(
    deadline: Duration,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, RequestError> {
    match tokio::time::timeout(deadline, request).await {
        Ok(result) => result.map_err(failed),
        Err(_) => Err(RequestError::TimedOut(deadline)),
    }
}

fn failed(error: kube::Error) -> RequestError {
    let status = match error {
        kube::Error::Api(status) => status,
        error @ (kube::Error::HyperError(_) | kube::Error::Service(_)) => {
            return RequestError::Unreachable(with_causes(&error));
        }
        error => return RequestError::Failed(with_causes(&error)),
    };
    // That a webhook denies the request or fails says nothing about the state of the object or of the API server.
    let message = &status.message;
    if message.starts_with("admission webhook ") || message.contains("failed calling webhook ") {
        return RequestError::Failed(status.message);
    }
    let retry_after = client::retry_after(&status);
    // A failed `test` of a JSON patch is a 422 whose details name neither an object nor a field. A merge patch with another
    // UID is one that names only `metadata.uid`.
    let details = status.details.as_ref();
    let is_another = details.is_some_and(|details| match details.causes.as_slice() {
        [] => details.name.is_empty(),
        causes => causes.iter().all(|cause| cause.field == "metadata.uid"),
    });
    match status.code {
        404 => RequestError::Gone,
        409 => RequestError::Conflict,
        422 if is_another => RequestError::Conflict,
        // An admission policy's message says itself what to do.
        403 if !message.contains("ValidatingAdmissionPolicy") => {
            let rbac = rbac(message);
            RequestError::Failed(format!(
                "{message} (grant it with `kubectl apply -k {rbac}`)"
            ))
        }
        429 | 503 | 504 => RequestError::Throttled {
            message: status.message,
            retry_after,
        },
        500.. => RequestError::Broken(status.message),
        _ => RequestError::Failed(status.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;
    use kube::core::response::{StatusCause, StatusDetails};

    /// The API server's details when it can name nothing.
    fn nothing() -> Option<StatusDetails> {
        serde_json::from_str("{}").ok()
    }

    #[test]
    fn a_failed_test_an_invalid_object_and_overload_are_distinguished() {
        let status = |code, details| {
            kube::Error::Api(
                Status {
                    details,
                    ..Status::failure("message", "Reason").with_code(code)
                }
                .boxed(),
            )
        };
        let invalid = |field: &str| {
            Some(StatusDetails {
                name: "n".into(),
                group: String::new(),
                kind: "Node".into(),
                uid: String::new(),
                causes: vec![StatusCause {
                    reason: "FieldValueInvalid".into(),
                    message: "bad".into(),
                    field: field.into(),
                }],
                retry_after_seconds: 0,
            })
        };
        let busy = || RequestError::Throttled {
            message: "message".into(),
            retry_after: None,
        };
        for (error, expected) in [
            (status(422, nothing()), RequestError::Conflict),
            (status(422, None), RequestError::Failed("message".into())),
            (
                status(422, invalid("spec.taints")),
                RequestError::Failed("message".into()),
            ),
            (status(422, invalid("metadata.uid")), RequestError::Conflict),
            (status(409, None), RequestError::Conflict),
            (status(404, None), RequestError::Gone),
            (status(500, None), RequestError::Broken("message".into())),
            (status(429, None), busy()),
            (status(503, None), busy()),
            (status(504, None), busy()),
        ] {
            assert_eq!(failed(error), expected);
        }
    }

    #[test]
    fn what_a_webhook_says_is_about_the_object_alone() {
        for (code, message) in [
            (422, "admission webhook \"a.b.c\" denied the request: no"),
            (409, "admission webhook \"a.b.c\" denied the request: no"),
            (429, "admission webhook \"a.b.c\" denied the request: no"),
            (
                500,
                "Internal error occurred: failed calling webhook \"a.b.c\": the server is down",
            ),
        ] {
            let status = Status {
                details: nothing(),
                ..Status::failure(message, "Reason").with_code(code)
            };
            let error = failed(kube::Error::Api(status.boxed()));
            assert_eq!(error, RequestError::Failed(message.into()), "{code}");
        }
    }
}
