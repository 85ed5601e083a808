//! Formats errors in one line.

use kube::core::Status;

/// Why a request failed that is to do this, and what to do about it: these manifests grant it.
pub(crate) fn why_failed(what: &str, error: &kube::Error, manifests: &str) -> String {
    match error {
        kube::Error::Api(status) => why_refused(what, status, manifests),
        error => format!(
            "cannot reach the API server to {what}: {}",
            with_causes(error)
        ),
    }
}

/// The same for what the API server refused.
pub(crate) fn why_refused(what: &str, status: &Status, manifests: &str) -> String {
    let message = &status.message;
    match status.code {
        401 => format!(
            "the API server does not know who we are ({message}): check the kubeconfig's credentials"
        ),
        403 => format!(
            "no permission to {what} ({message}): grant it with `kubectl apply -k {manifests}`"
        ),
        _ => format!("cannot {what}: {message}"),
    }
}

/// An error with its causes, outermost first, without repetitions.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    // The HTTP client's prefix for errors of lower layers.
    let mut text = error.to_string().replace("ServiceError: ", "");
    for cause in std::iter::successors(error.source(), |cause| (*cause).source()) {
        let next = cause.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
    }
    text
}
