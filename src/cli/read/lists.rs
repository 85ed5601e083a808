//! Lists of objects that are at hand.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::page::is_meant;
use crate::cli::snapshot::{Filter, Kind};

/// Objects that are at hand, as JSON.
#[derive(Debug, Clone)]
pub struct Lists {
    /// The time at which they are as they are.
    pub at: Timestamp,
    /// The objects of each kind.
    pub objects: BTreeMap<Kind, Vec<String>>,
}

impl Lists {
    /// Shows each object of a kind that the filter lets through.
    pub fn each(&self, kind: Kind, filter: &Filter, mut take: impl FnMut(&str)) {
        for object in self.objects.get(&kind).into_iter().flatten() {
            if is_meant(object, |facts| filter.lets_through(facts)) {
                take(object);
            }
        }
    }
}
