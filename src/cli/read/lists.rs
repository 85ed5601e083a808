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
    pub fn each(&self, kind: Kind, filter: &Filter, take: impl FnMut(&str)) {
        if let Some(objects) = self.objects.get(&kind) {
            show(objects, filter, take);
        }
    }
}

/// Shows each of these objects that the filter lets through.
pub fn show(objects: &[String], filter: &Filter, mut take: impl FnMut(&str)) {
    for object in objects {
        if is_meant(object, |facts| filter.lets_through(facts)) {
            take(object);
        }
    }
}
