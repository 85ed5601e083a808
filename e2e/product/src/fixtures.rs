//! Builders for what a test puts into a cluster: those of the test bed, and rules.

pub use kube_testbed::fixtures::*;

pub use crate::rule::{RuleBuilder, rule, rules};
