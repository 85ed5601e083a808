//! Where the documentation of this build is: the addresses that the program prints.

/// Without a slash at the end: the folder in the source, until a release says where its pages are.
const ROOT: &str = match option_env!("NODEGATE_DOCS_URL") {
    Some(root) => root,
    None => "docs",
};

/// The address of a page, with a section where there is one: `kubectl/check.md#ng001`.
pub fn page(path: &str) -> String {
    format!("{ROOT}/{path}")
}
