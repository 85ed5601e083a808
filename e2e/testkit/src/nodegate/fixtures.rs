//! Builders for the objects of a test: those of any cluster, and rules.

pub use crate::kubernetes::fixtures::*;

pub use crate::nodegate::rule::{RuleBuilder, rule, rules};
