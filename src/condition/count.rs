//! How many there are of something on a node, where rules may ask for a number.

use std::fmt;

/// How many there are of something on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count<'a> {
    /// The number.
    pub number: u64,
    /// The thing.
    pub of: Counted<'a>,
}

/// What is counted on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted<'a> {
    /// Allocatable units of this resource.
    Resource(&'a str),
    /// Devices of this DRA driver without a taint that keeps pods off.
    Devices(&'a str),
}

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(resource) => write!(f, "{resource} to allocate"),
            Self::Devices(driver) => write!(f, "untainted devices of {driver}"),
        }
    }
}
