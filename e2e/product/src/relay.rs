//! The test bed's relay, extended to rules.

pub use kube_testbed::relay::*;

pub const RULES: Kind = Kind::named("nodereadinessrules");
