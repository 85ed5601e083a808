//! Kubernetes' syntax of labels and object names.

/// Whether the text is a label key: an optional DNS subdomain and a slash, then a name of 1 to 63 characters.
pub fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_label_name(name),
        None => is_label_name(key),
    }
}

/// Whether the text is a label value: empty, or like the name part of a key.
pub fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_label_name(value)
}

fn is_label_name(name: &str) -> bool {
    name.len() <= 63 && is_word(name, |it| it.is_ascii_alphanumeric(), "-_.")
}

/// Whether the text is a valid namespace name (RFC 1123 label).
pub fn is_namespace(text: &str) -> bool {
    text.len() <= 63 && !text.contains('.') && is_dns_subdomain(text)
}

/// Whether the text is a DNS subdomain (RFC 1123), as most object names are.
pub fn is_dns_subdomain(text: &str) -> bool {
    let is_edge = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
    text.len() <= 253 && text.split('.').all(|label| is_word(label, is_edge, "-"))
}

/// Whether a text is not empty, begins and ends with edges, and has between them only these and `inner` ones.
fn is_word(text: &str, is_edge: fn(char) -> bool, inner: &str) -> bool {
    text.starts_with(is_edge)
        && text.ends_with(is_edge)
        && text.chars().all(|it| is_edge(it) || inner.contains(it))
}
