//! Schemas of Kubernetes' own types: those that come with them take two minutes of a release build.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A `LabelSelector` as the API server should check it: replaced as a whole, with operators that exist.
pub(super) fn node_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "description": "Labels that a node must have, with these values.",
                "type": "object",
                "additionalProperties": { "type": "string" },
            },
            "matchExpressions": {
                "description": "Expressions over the labels of a node, all of which must hold.",
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {
                            "description": "The label that the expression is about.",
                            "type": "string",
                        },
                        "operator": {
                            "description": "In and NotIn compare the label with values; Exists and DoesNotExist ask for the label alone.",
                            "type": "string",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "description": "What In and NotIn compare with. Absent for Exists and DoesNotExist.",
                            "type": "array",
                            "x-kubernetes-list-type": "atomic",
                            "items": { "type": "string" },
                        },
                    },
                    "x-kubernetes-validations": [{
                        "rule": "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",
                        "message": "values must be given with operator In and NotIn, and left out with Exists and DoesNotExist",
                    }],
                },
            },
        },
    })
}

/// The `Condition`s of a rule's status.
pub(super) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "description": "Something that is said of the rule as a whole.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "When the status last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": { "description": "Why, for people to read.", "type": "string" },
                "observedGeneration": {
                    "description": "The generation of the rule that the condition describes.",
                    "type": "integer",
                    "format": "int64",
                },
                "reason": { "description": "Why, in one word.", "type": "string" },
                "status": { "description": "True, False or Unknown.", "type": "string" },
                "type": { "description": "Type of the condition.", "type": "string" },
            },
        },
    })
}
