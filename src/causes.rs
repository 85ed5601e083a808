//! Errors in one line.

/// An error with what caused it, outermost first, leaving out what is said twice.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    // The client's word for whatever went wrong below it.
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
