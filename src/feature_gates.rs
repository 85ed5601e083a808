//! Feature gates: what is not settled yet, by name, as Kubernetes' components have them (`--feature-gates=A=true,B=false`).

use std::str::FromStr;

/// The gates, and whether each is on. All are alpha, and off by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FeatureGates {
    /// Whether each node that rules select gets a `NodeReadinessEvaluation`.
    pub node_readiness_evaluation: bool,
}

/// Why a text names no gates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeatureGatesError {
    /// A gate of this name does not exist.
    #[error("there is no feature gate {0:?}; known: {NODE_READINESS_EVALUATION}")]
    Unknown(String),
    /// No `NAME=true` or `NAME=false`.
    #[error("{0:?} is neither NAME=true nor NAME=false")]
    NoValue(String),
}

const NODE_READINESS_EVALUATION: &str = "NodeReadinessEvaluation";

impl FromStr for FeatureGates {
    type Err = FeatureGatesError;

    /// Of a gate that is named twice, the last value counts.
    fn from_str(text: &str) -> Result<Self, FeatureGatesError> {
        let mut gates = Self::default();
        let pairs = text.split(',').map(str::trim);
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            let no_value = || FeatureGatesError::NoValue(pair.to_owned());
            let (name, value) = pair.split_once('=').ok_or_else(no_value)?;
            let is_on = value.trim().to_lowercase().parse();
            let is_on: bool = is_on.map_err(|_| no_value())?;
            match name.trim() {
                NODE_READINESS_EVALUATION => gates.node_readiness_evaluation = is_on,
                other => return Err(FeatureGatesError::Unknown(other.to_owned())),
            }
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_as_kubernetes_reads_them() {
        let on = FeatureGates {
            node_readiness_evaluation: true,
        };
        let off = FeatureGates::default();
        let unknown = |name: &str| Err(FeatureGatesError::Unknown(name.into()));
        let no_value = |pair: &str| Err(FeatureGatesError::NoValue(pair.into()));
        for (text, expected) in [
            ("", Ok(off)),
            ("NodeReadinessEvaluation=true", Ok(on)),
            ("NodeReadinessEvaluation=True", Ok(on)),
            (" NodeReadinessEvaluation = true, ", Ok(on)),
            ("NodeReadinessEvaluation=false", Ok(off)),
            (
                "NodeReadinessEvaluation=false,NodeReadinessEvaluation=true",
                Ok(on),
            ),
            ("NodeReadinessEvaluation=true,Other=true", unknown("Other")),
            ("AllAlpha=false", unknown("AllAlpha")),
            (
                "NodeReadinessEvaluation",
                no_value("NodeReadinessEvaluation"),
            ),
            (
                "NodeReadinessEvaluation=yes",
                no_value("NodeReadinessEvaluation=yes"),
            ),
        ] {
            assert_eq!(text.parse::<FeatureGates>(), expected, "{text}");
        }
        let error = "Other=true".parse::<FeatureGates>().unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("known: NodeReadinessEvaluation")
        );
    }
}
