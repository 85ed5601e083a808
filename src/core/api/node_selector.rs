//! The schema of a rule's node selector.

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
