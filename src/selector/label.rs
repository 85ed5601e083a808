//! Kubernetes' syntax of labels and object names.

/// Whether the text is a label key: an optional DNS subdomain and a slash, then a name of 1 to 63 characters.
pub(crate) fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_label_name(name),
        None => is_label_name(key),
    }
}

/// Whether the text is a label value: empty, or like the name part of a key.
pub(crate) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_label_name(value)
}

fn is_label_name(name: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_alphanumeric();
    name.len() <= 63 && is_word(name, is_edge, |byte| matches!(byte, b'-' | b'_' | b'.'))
}

/// Whether the text is a valid namespace name (RFC 1123 label).
pub(crate) fn is_namespace(text: &str) -> bool {
    text.len() <= 63 && !text.contains('.') && is_dns_subdomain(text)
}

/// Whether the text is a DNS subdomain (RFC 1123), as most object names are.
pub(crate) fn is_dns_subdomain(text: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut labels = text.split('.');
    text.len() <= 253 && labels.all(|label| is_word(label, is_edge, |byte| byte == b'-'))
}

/// Whether a text is not empty, begins and ends with edges, and has between them only these.
fn is_word(text: &str, is_edge: fn(u8) -> bool, is_inner: fn(u8) -> bool) -> bool {
    let is_at_edge = |byte: Option<&u8>| byte.is_some_and(|byte| is_edge(*byte));
    is_at_edge(text.as_bytes().first())
        && is_at_edge(text.as_bytes().last())
        && text.bytes().all(|byte| is_edge(byte) || is_inner(byte))
}
