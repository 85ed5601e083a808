//! The lists in what is kept of an object, for tests of what many entries cost. Each field of each type is named here: a new one
//! does not compile before it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Toleration;

use nodegate_core::api::ConditionStatus;
use nodegate_core::object::ObjectKey;
use nodegate_core::object::ResourceSlice;
use nodegate_core::object::Resources;
use nodegate_core::object::Taint;
use nodegate_core::object::{CsiDriver, CsiNode, UnhealthyStorage};
use nodegate_core::object::{DaemonSet, NodeAffinityTerm};
use nodegate_core::object::{Node, NodeCondition};
use nodegate_core::object::{Pod, PodPhase, PodReady};
use nodegate_core::selector::{Operator, Requirement, Selector};

/// Lists by their paths, each with the number of its entries.
pub(crate) type Lists = BTreeMap<String, usize>;

pub(crate) trait Kept {
    /// Adds the lists in this value, which is at a path.
    fn lists(&self, path: &str, found: &mut Lists);
}

fn list<'a, T: Kept + 'a>(
    entries: impl ExactSizeIterator<Item = &'a T>,
    path: &str,
    found: &mut Lists,
) {
    *found.entry(path.to_owned()).or_default() += entries.len();
    let inner = format!("{path}[]");
    // The others have the same lists.
    entries.take(2).for_each(|it| it.lists(&inner, found));
}

impl<T: Kept> Kept for Vec<T> {
    fn lists(&self, path: &str, found: &mut Lists) {
        list(self.iter(), path, found);
    }
}

impl<T: Kept> Kept for BTreeSet<T> {
    fn lists(&self, path: &str, found: &mut Lists) {
        list(self.iter(), path, found);
    }
}

impl<K, V: Kept> Kept for BTreeMap<K, V> {
    fn lists(&self, path: &str, found: &mut Lists) {
        list(self.values(), path, found);
    }
}

impl<T: Kept> Kept for Option<T> {
    fn lists(&self, path: &str, found: &mut Lists) {
        if let Some(it) = self {
            it.lists(path, found);
        }
    }
}

impl<T: Kept> Kept for Box<T> {
    fn lists(&self, path: &str, found: &mut Lists) {
        (**self).lists(path, found);
    }
}

impl<A: Kept, B: Kept> Kept for (A, B) {
    fn lists(&self, path: &str, found: &mut Lists) {
        self.0.lists(path, found);
        self.1.lists(path, found);
    }
}

macro_rules! single {
    ($($type:ty),* $(,)?) => {$(
        impl Kept for $type {
            fn lists(&self, _: &str, _: &mut Lists) {}
        }
    )*};
}

single! {
    bool, i64, u64, u32, usize, &str, Arc<str>, Box<str>, String, Timestamp, ConditionStatus, PodPhase, PodReady,
}

macro_rules! kept {
    ($($type:ident { $($field:ident),* $(,)? })*) => {$(
        impl Kept for $type {
            fn lists(&self, path: &str, found: &mut Lists) {
                let Self { $($field),* } = self;
                $($field.lists(&format!("{path}.{}", stringify!($field)), found);)*
            }
        }
    )*};
}

kept! {
    Node {
        name, uid, created, deleting, labels, annotations, do_not_repair, provider_id, taints, conditions, resources, boot_id,
    }
    NodeCondition { kind, status, reason, message, transition, heartbeat }
    Taint { key, value, effect, time_added }
    CsiNode { owner, drivers, unhealthy }
    CsiDriver { name, has_allocatable_count }
    UnhealthyStorage { driver, status, reason, message, more }
    Pod {
        key, node, daemon_set, terminating, created, phase, ready, seen_ready, revision, template_generation, annotations, orphan,
    }
    ObjectKey { namespace, name }
    ResourceSlice { node, pool, generation, of, devices, tainted }
    DaemonSet {
        key, uid, deleted, ignored, selector, template_generation, min_ready_seconds, template_labels, node_name, node_selector, node_affinity,
        tolerations, unprobed,
    }
    Toleration { key, operator, value, effect, toleration_seconds }
    NodeAffinityTerm { labels, names }
    Requirement { key, operator }
}

impl Kept for Resources {
    fn lists(&self, path: &str, found: &mut Lists) {
        let Self(amounts) = self;
        amounts.lists(path, found);
    }
}

impl Kept for Selector {
    fn lists(&self, path: &str, found: &mut Lists) {
        list(self.requirements().iter(), path, found);
    }
}

impl Kept for Operator {
    fn lists(&self, path: &str, found: &mut Lists) {
        match self {
            Self::In(values) | Self::NotIn(values) => values.lists(path, found),
            Self::Exists | Self::DoesNotExist | Self::Gt(_) | Self::Lt(_) => {}
        }
    }
}
