//! Where the documentation of this build is: the addresses that the program prints.

/// The address of a page, with a section where there is one: `kubectl/check.md#ng001`. Until a release says where its pages are,
/// it is the folder in the source.
pub fn page(path: &str) -> String {
    let root = option_env!("NODEGATE_DOCS_URL").unwrap_or("docs");
    format!("{root}/{path}")
}
