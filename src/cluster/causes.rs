//! Formats errors in one line.

/// An error with its causes, outermost first, without repetitions.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    // The HTTP client's prefix for errors of lower layers.
    let mut text = error.to_string().replace("ServiceError: ", "");
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}
