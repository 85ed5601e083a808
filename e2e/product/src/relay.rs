//! The relay of the test bed, and what it tells apart beyond Kubernetes' own.

pub use kube_testbed::relay::*;

/// Rules.
pub const RULES: Kind = Kind::named("nodereadinessrules");
