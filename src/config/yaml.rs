//! Parses the configuration file's YAML. An error is one line: the field's path, what was expected, what was found, and the
//! line.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};
use serde_saphyr::Error;

/// The most characters of a value that a message shows.
const SHOWN: usize = 40;

/// Parses the configuration.
///
/// # Errors
/// Says what is wrong, and where.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let mut place = None;
    let parsed = serde_saphyr::with_deserializer_from_str(text, |deserializer| {
        serde_path_to_error::deserialize(deserializer).map_err(|error| {
            place = Some(error.path().clone());
            error.into_inner()
        })
    });
    parsed.map_err(|error| match place {
        Some(path) => in_words(&path, &error, text),
        None => first_line(&error),
    })
}

fn in_words(path: &Path, error: &Error, text: &str) -> String {
    let problem = match error.without_snippet() {
        Error::Unexpected { expected, .. } => {
            let found = serde_saphyr::from_str(text).unwrap_or_default();
            let found = look_up(&found, path).map(describe);
            let found = found.map_or_else(String::new, |found| format!(", found {found}"));
            format!("expected {}{found}", what_belongs_there(path, expected))
        }
        _ => return with_path(path, &first_line(error)),
    };
    let line = error.location().map(|location| location.line());
    let line = line.map_or_else(String::new, |line| format!(" (line {line})"));
    with_path(path, &format!("{problem}{line}"))
}

fn with_path(path: &Path, problem: &str) -> String {
    match path.to_string().as_str() {
        "." => problem.to_owned(),
        path => format!("{path}: {problem}"),
    }
}

/// The parser's message, without the lines of the file that follow it.
fn first_line(error: &Error) -> String {
    let complaint = error.to_string();
    let complaint = complaint.lines().next().unwrap_or_default();
    complaint.trim_start_matches("error: ").to_owned()
}

/// The value at this path, if any.
fn look_up<'a>(document: &'a Value, path: &Path) -> Option<&'a Value> {
    path.iter()
        .try_fold(document, |value, segment| match segment {
            Segment::Map { key } => value.get(key),
            Segment::Seq { index } => value.get(index),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => {
            let shown: String = text.chars().take(SHOWN).collect();
            let more = if shown == *text { "" } else { "..." };
            format!("text {shown:?}{more}")
        }
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a mapping".into(),
    }
}

fn what_belongs_there(path: &Path, expected: &'static str) -> &'static str {
    let field = path.iter().next_back().map(Segment::to_string);
    match (field.as_deref().unwrap_or_default(), expected) {
        ("passingTaints", "sequence start") => "a list of taint keys",
        ("criticalComponentClasses", "sequence start") => "a list of classes",
        ("namespaces", "sequence start") => "a list of namespaces",
        (_, "sequence start") => "a list",
        ("matchLabels", "mapping start") => "labels with their values",
        (_, "mapping start") => "a mapping of fields to values",
        (_, "string scalar" | "scalar") => "text",
        (_, other) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_field_of_the_wrong_kind_is_named_with_its_path() {
        for (yaml, expected) in [
            (
                "passingTaints: text",
                r#"passingTaints: expected a list of taint keys, found text "text" (line 1)"#,
            ),
            (
                "passingTaints: {a: b}",
                "passingTaints: expected a list of taint keys, found a mapping (line 1)",
            ),
            (
                "passingTaints:\n- a\n- [b]",
                "passingTaints[1]: expected text, found a list (line 3)",
            ),
            (
                "criticalComponentClasses: 5",
                "criticalComponentClasses: expected a list of classes, found the number 5 (line 1)",
            ),
            (
                "criticalComponentClasses:\n- text",
                r#"criticalComponentClasses[0]: expected a mapping of fields to values, found text "text" (line 2)"#,
            ),
            (
                "criticalComponentClasses:\n- name: a\n  namespaces: kube-system",
                r#"criticalComponentClasses[0].namespaces: expected a list of namespaces, found text "kube-system" (line 3)"#,
            ),
            (
                "criticalComponentClasses:\n- name: a\n  selector: {matchLabels: []}",
                "criticalComponentClasses[0].selector.matchLabels: expected labels with their values, found a list (line 3)",
            ),
            (
                "text",
                r#"expected a mapping of fields to values, found text "text" (line 1)"#,
            ),
        ] {
            assert_eq!(parse::<Config>(yaml).unwrap_err(), expected, "{yaml}");
        }
    }

    #[test]
    fn what_else_is_wrong_is_told_with_its_path_too() {
        for (yaml, path, words) in [
            ("passingTaint: []", "passingTaint: ", "unknown field"),
            (
                "criticalComponentClasses: [{name: a}]",
                "criticalComponentClasses[0]: ",
                "missing field",
            ),
            (
                "criticalComponentClasses: [{name: a, requireCSIAllocatable: perhaps}]",
                "criticalComponentClasses[0].requireCSIAllocatable: ",
                "boolean",
            ),
            ("passingTaints: [a", "passingTaints: ", "unclosed bracket"),
        ] {
            let problem = parse::<Config>(yaml).unwrap_err();
            assert!(problem.starts_with(path), "{problem}");
            assert!(problem.contains(words), "{problem}");
            assert!(!problem.contains('\n'), "{problem}");
        }
    }
}
