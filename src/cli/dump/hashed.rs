//! Replaces the names of nodes and pods everywhere with hashes. A name has the same replacement throughout a dump, and another
//! one in the next dump.

use std::collections::HashMap;
use std::fmt::Write as _;

use ring::digest::{Context, SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;

/// How many bytes of the hash a replacement has.
const BYTES: usize = 5;

/// Names and their replacements.
pub(super) struct Hashed {
    salt: [u8; 32],
    names: HashMap<String, String>,
}

impl Hashed {
    /// No names yet; the salt is random for each dump.
    pub(super) fn new() -> Result<Self, ring::error::Unspecified> {
        let mut salt = [0; 32];
        SystemRandom::new().fill(&mut salt)?;
        Ok(Self {
            salt,
            names: HashMap::new(),
        })
    }

    /// Adds a name to replace; `word` is the replacement's prefix, such as `node`.
    pub(super) fn add(&mut self, word: &str, name: &str) {
        let mut context = Context::new(&SHA256);
        context.update(&self.salt);
        context.update(name.as_bytes());
        let digest = context.finish();
        let mut hash = format!("{word}-");
        for byte in &digest.as_ref()[..BYTES] {
            let _ = write!(hash, "{byte:02x}");
        }
        self.names.insert(name.into(), hash);
    }

    pub(super) fn replace(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(elements) => elements.iter_mut().for_each(|it| self.replace(it)),
            Value::Object(fields) => fields.values_mut().for_each(|it| self.replace(it)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Replaces every word of the text that is a name.
    fn text(&self, text: &str) -> String {
        let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c| !is_of_a_name(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let name = word.trim_end_matches('.');
            out.push_str(self.names.get(name).map_or(name, String::as_str));
            out.push_str(&word[name.len()..]);
            let next = after.find(is_of_a_name).unwrap_or(after.len());
            out.push_str(&after[..next]);
            rest = &after[next..];
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_is_replaced_wherever_it_stands() {
        let mut hashed = Hashed::new().unwrap();
        hashed.add("node", "worker-1.example.com");
        let name = hashed.names["worker-1.example.com"].clone();
        let mut value = json!({"a": "worker-1.example.com", "b": ["on worker-1.example.com.", "worker-1.example.community"]});
        hashed.replace(&mut value);
        let expected =
            json!({"a": name, "b": [format!("on {name}."), "worker-1.example.community"]});
        assert_eq!(value, expected);
        assert!(
            name.starts_with("node-") && name.len() == 5 + 2 * BYTES,
            "{name}"
        );
    }
}
