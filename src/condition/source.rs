//! Sources of condition types.

use super::class::{CriticalComponentClass, Question};
use super::detail;
use crate::object::ObjectKey;
use crate::selector::{is_dns_subdomain, is_namespace};

/// Prefix of the condition types that say whether a CSI driver is registered on the node.
pub(super) const CSI_DRIVER_PREFIX: &str = "csidriver.nodegate.dev/";
/// Prefix of the condition types that say whether the node has an allocatable amount of a resource.
pub(super) const RESOURCE_PREFIX: &str = "resource.nodegate.dev/";

/// Prefix of the condition types that say whether a `DaemonSet`, by namespace and name, is ready on the node.
pub(super) const DAEMON_SET_PREFIX: &str = "daemonset.nodegate.dev/";
/// The domain of the condition types that Nodegate makes and that belong to no class.
const DOMAIN: &str = "nodegate.dev";
/// The prefixes of synthesized conditions that belong to no class.
pub(crate) const RESERVED_PREFIXES: [&str; 3] =
    [CSI_DRIVER_PREFIX, RESOURCE_PREFIX, DAEMON_SET_PREFIX];

/// The source of a condition type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The Node's own `status.conditions`.
    Node,
    /// A critical component class, by its index in the configuration.
    Class {
        /// Index of the class.
        class: usize,
        /// The question about the class.
        question: Question,
    },
    /// The node's `CSINode`: is this driver registered?
    CsiDriver(String),
    /// The node's allocatable resources: is there any of this resource?
    Resource(String),
    /// A `DaemonSet`, whatever its labels: if it runs on this node, is it ready there?
    DaemonSet(ObjectKey),
    /// Nothing provides this type, though its prefix is reserved: it counts as absent, whatever the Node says.
    Nobody,
}

impl Source {
    /// The source of a condition type, given the configured classes.
    #[must_use]
    pub fn of(kind: &str, classes: &[CriticalComponentClass]) -> Self {
        if let Some(driver) = kind.strip_prefix(CSI_DRIVER_PREFIX) {
            return if is_dns_subdomain(&driver.to_ascii_lowercase()) {
                Self::CsiDriver(driver.into())
            } else {
                Self::Nobody
            };
        }
        if let Some(resource) = kind.strip_prefix(RESOURCE_PREFIX) {
            return if resource.is_empty() {
                Self::Nobody
            } else {
                Self::Resource(resource.into())
            };
        }
        if let Some(name) = kind.strip_prefix(DAEMON_SET_PREFIX) {
            return daemon_set(name).map_or(Self::Nobody, Self::DaemonSet);
        }
        let mut reserved = false;
        for (
            class,
            CriticalComponentClass {
                condition_prefix, ..
            },
        ) in classes.iter().enumerate()
        {
            if let Some(name) = kind.strip_prefix(condition_prefix.as_str()) {
                reserved = true;
                if let Some(question) = Question::from_name(name) {
                    return Self::Class { class, question };
                }
            }
        }
        if reserved { Self::Nobody } else { Self::Node }
    }

    /// Whether Nodegate provides this condition itself.
    #[must_use]
    pub fn is_synthesized(&self) -> bool {
        !matches!(self, Self::Node | Self::Nobody)
    }
}

/// Whether a condition type has the `DaemonSet` prefix, but no valid namespace and name.
#[must_use]
pub(crate) fn names_no_daemon_set(kind: &str) -> bool {
    let name = kind.strip_prefix(DAEMON_SET_PREFIX);
    name.is_some_and(|name| daemon_set(name).is_none())
}

/// Whether a condition type is under Nodegate's domain, so that a prefix which is none of ours is probably misspelt.
#[must_use]
pub(crate) fn is_under_our_domain(kind: &str) -> bool {
    let prefix = kind.split_once('/').map_or("", |(prefix, _)| prefix);
    let parent = prefix.strip_suffix(DOMAIN);
    parent.is_some_and(|parent| parent.is_empty() || parent.ends_with('.'))
}

/// Parses `<namespace>.<name>`. A namespace has no dots; a name may.
fn daemon_set(name: &str) -> Option<ObjectKey> {
    let (namespace, name) = name.split_once('.')?;
    (is_namespace(namespace) && is_dns_subdomain(name)).then(|| ObjectKey::new(namespace, name))
}

/// Whether Nodegate published a condition of this type and reason, with this or an earlier configuration, so that it may remove
/// it.
#[must_use]
pub fn is_ours(kind: &str, reason: &str) -> bool {
    let name = kind.rsplit_once('/').map_or(kind, |(_, name)| name);
    let is_reserved = |prefix: &&str| kind.starts_with(*prefix);
    (RESERVED_PREFIXES.iter().any(is_reserved) || Question::from_name(name).is_some())
        && detail::is_synthesized_reason(reason)
}
