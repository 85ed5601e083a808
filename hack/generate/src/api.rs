//! The page about the custom resources.

use std::fmt::Write;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use crate::markdown::{GENERATED, cell};

/// The page: for each resource its names, and a table for each part of its schema.
pub(crate) fn page(rules: &CustomResourceDefinition) -> String {
    let mut page = format!(
        "# API\n\n{GENERATED}\nWhat the fields do to a node: [Concepts](../concepts.md). `kubectl explain nrr.spec` says the \
         same as this page.\n"
    );
    describe(&mut page, rules);
    page
}

/// The resource's names, and a table for each part of its schema.
fn describe(page: &mut String, crd: &CustomResourceDefinition) {
    let (names, group) = (&crd.spec.names, &crd.spec.group);
    let short = names.short_names.iter().flatten();
    let short: Vec<_> = short.map(|name| format!("`{name}`")).collect();
    let _ = writeln!(
        page,
        "\n`{}`, plural `{}`, short {}; scope: {}.",
        names.kind,
        names.plural,
        short.join(", "),
        crd.spec.scope.to_lowercase(),
    );
    for version in &crd.spec.versions {
        let _ = write!(page, "\n## {group}/{}\n", version.name);
        let schema = version.schema.as_ref();
        let Some(schema) = schema.and_then(|schema| schema.open_api_v3_schema.as_ref()) else {
            continue;
        };
        let properties = schema.properties.iter().flatten();
        for (name, part) in properties.filter(|(name, _)| ["spec", "status"].contains(&&***name)) {
            let _ = write!(page, "\n### {name}\n\n| field | type | |\n|---|---|---|\n");
            fields(page, name, part);
            checks(page, name, part);
        }
    }
}

/// Lists the fields of a part and everything below it by their paths.
fn fields(page: &mut String, path: &str, schema: &JSONSchemaProps) {
    for (name, field) in schema.properties.iter().flatten() {
        let is_required = schema.required.iter().flatten().any(|other| other == name);
        let (kind, inner) = kind(field);
        let field_path = format!("{path}.{name}{}", brackets(field));
        let description = cell(field.description.as_deref().unwrap_or_default());
        let bounds = bounds(field);
        let required = if is_required { ", required" } else { "" };
        let _ = writeln!(
            page,
            "| `{field_path}` | {kind}{required}{bounds} | {description} |"
        );
        fields(page, &field_path, inner);
    }
}

/// The suffix of a list's name in a path.
fn brackets(schema: &JSONSchemaProps) -> &'static str {
    if items(schema).is_some() { "[]" } else { "" }
}

fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(items) => Some(items),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

/// The type of a field in words, and the schema that holds its own fields.
fn kind(schema: &JSONSchemaProps) -> (String, &JSONSchemaProps) {
    if let Some(items) = items(schema) {
        return (format!("list of {}", kind(items).0), items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        return (format!("map of {}", kind(values).0), schema);
    }
    let words = schema.enum_.iter().flatten();
    let words: Vec<_> = words
        .filter_map(|word| Some(format!("`{}`", word.0.as_str()?)))
        .collect();
    if !words.is_empty() {
        return (words.join(" "), schema);
    }
    let kind = match schema.format.as_deref() {
        Some("date-time") => "time",
        _ if schema.x_kubernetes_int_or_string == Some(true) => "integer or string",
        _ => schema.type_.as_deref().unwrap_or("any"),
    };
    (kind.to_owned(), schema)
}

/// Limits of length, count or value.
fn bounds(schema: &JSONSchemaProps) -> String {
    let mut bounds = String::new();
    for (least, most, unit) in [
        (schema.min_items, schema.max_items, " items"),
        (schema.min_length, schema.max_length, " characters"),
    ] {
        let _ = match (least, most) {
            (Some(least), Some(most)) => write!(bounds, ", {least} to {most}{unit}"),
            (Some(least), None) => write!(bounds, ", at least {least}{unit}"),
            (None, Some(most)) => write!(bounds, ", at most {most}{unit}"),
            (None, None) => Ok(()),
        };
    }
    let _ = match (schema.minimum, schema.maximum) {
        (Some(least), Some(most)) => write!(bounds, ", {least} to {most}"),
        (Some(least), None) => write!(bounds, ", at least {least}"),
        (None, Some(most)) => write!(bounds, ", at most {most}"),
        (None, None) => Ok(()),
    };
    bounds
}

/// Lists the API server's checks of a part beyond types, with their rejection messages.
fn checks(page: &mut String, path: &str, schema: &JSONSchemaProps) {
    let mut found = Vec::new();
    collect(&mut found, path, schema);
    if found.is_empty() {
        return;
    }
    page.push_str(
        "\nThe API server rejects what breaks one of these:\n\n| field | message |\n|---|---|\n",
    );
    for (field, message) in found {
        // It is no code, so that `<name>` would be an HTML tag.
        let message = cell(&message).replace('<', "&lt;");
        let _ = writeln!(page, "| `{field}` | {message} |");
    }
}

fn collect(found: &mut Vec<(String, String)>, path: &str, schema: &JSONSchemaProps) {
    for check in schema.x_kubernetes_validations.iter().flatten() {
        let field = check.field_path.as_deref().unwrap_or_default();
        let message = check.message.clone().unwrap_or_else(|| check.rule.clone());
        found.push((format!("{path}{field}"), message));
    }
    if let Some(items) = items(schema) {
        collect(found, path, items);
    }
    for (name, field) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}{}", brackets(field));
        collect(found, &path, field);
    }
}
