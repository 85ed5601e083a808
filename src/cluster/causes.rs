//! Formats errors in one line.

/// An error with its causes, outermost first, without repetitions.
pub fn with_causes(error: &dyn std::error::Error) -> String {
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
