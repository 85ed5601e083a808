//! Where the documentation of this build is: the addresses that the program prints.

/// Without a slash at the end. A build for another place sets the variable.
const ROOT: &str = match option_env!("NODEGATE_DOCS_URL") {
    Some(root) => root,
    None => "https://example.com/nodegate/blob/main/docs",
};

/// The address of a page, with a section where there is one: `kubectl/check.md#ng001`.
pub(crate) fn page(path: &str) -> String {
    format!("{ROOT}/{path}")
}
