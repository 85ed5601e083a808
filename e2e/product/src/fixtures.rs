//! Builders for the objects of a test: those of the test bed, and rules.

pub use kube_testbed::fixtures::*;

pub use crate::rule::{RuleBuilder, rule, rules};
