//! The relay of any cluster, extended to rules.

pub use crate::kubernetes::relay::*;

pub const RULES: Kind = Kind::named("nodereadinessrules");
