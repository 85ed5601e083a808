//! Sources of condition types.

use super::detail;
use super::groups::{Component, CriticalComponentClass, Question};
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
/// Prefix of the condition type that says whether every `DaemonSet` that runs on the node is ready there.
const DAEMON_SETS_PREFIX: &str = "daemonsets.nodegate.dev/";
/// Prefix of the condition types that say whether a check, by namespace and name, has succeeded on the node.
const CHECK_PREFIX: &str = "check.nodegate.dev/";
/// Prefix of the condition types that say whether a DRA driver has published the node's devices.
const DEVICES_PREFIX: &str = "resourceslice.nodegate.dev/";
/// The prefixes of synthesized conditions that belong to no class.
pub(crate) const RESERVED_PREFIXES: [&str; 6] = [
    CSI_DRIVER_PREFIX,
    RESOURCE_PREFIX,
    DAEMON_SET_PREFIX,
    DAEMON_SETS_PREFIX,
    CHECK_PREFIX,
    DEVICES_PREFIX,
];

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
    /// What the rule names: is it ready on this node?
    Component(Component),
    /// Nothing provides this type, though its prefix is reserved: it counts as absent, whatever the Node says.
    Nobody,
}

impl Source {
    /// The source of a condition type, given the configured classes.
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
        let mut reserved = false;
        for (prefix, parse) in COMPONENTS {
            if let Some(name) = kind.strip_prefix(prefix) {
                return parse(name).map_or(Self::Nobody, Self::Component);
            }
        }
        for (class, it) in classes.iter().enumerate() {
            if let Some(name) = kind.strip_prefix(it.condition_prefix.as_str()) {
                reserved = true;
                if let Some(question) = Question::from_name(name) {
                    return Self::Class { class, question };
                }
            }
        }
        if reserved { Self::Nobody } else { Self::Node }
    }

    /// Whether Nodegate provides this condition itself.
    pub fn is_synthesized(&self) -> bool {
        !matches!(self, Self::Node | Self::Nobody)
    }
}

type ParseComponent = fn(&str) -> Option<Component>;

/// The prefixes of conditions about components, and how their names are parsed.
const COMPONENTS: [(&str, ParseComponent); 4] = [
    (DAEMON_SET_PREFIX, |name| {
        Some(Component::DaemonSet(key(name)?))
    }),
    (DAEMON_SETS_PREFIX, |name| {
        (name == "all").then_some(Component::AllDaemonSets)
    }),
    (CHECK_PREFIX, |name| Some(Component::Check(key(name)?))),
    (DEVICES_PREFIX, |name| {
        is_dns_subdomain(name).then(|| Component::Devices(name.into()))
    }),
];

/// How to name a component, if the condition type has the prefix of one and names none.
pub(crate) fn names_nothing(kind: &str) -> Option<&'static str> {
    let mut components = COMPONENTS.iter();
    let (prefix, parse) = components.find(|(prefix, _)| kind.starts_with(prefix))?;
    if parse(&kind[prefix.len()..]).is_some() {
        return None;
    }
    Some(match *prefix {
        DAEMON_SETS_PREFIX => "name all DaemonSets as daemonsets.nodegate.dev/all",
        DEVICES_PREFIX => {
            "name a DRA driver as resourceslice.nodegate.dev/<driver>, for example resourceslice.nodegate.dev/gpu.nvidia.com"
        }
        CHECK_PREFIX => {
            "name a check as check.nodegate.dev/<namespace>.<name>, for example check.nodegate.dev/gpu-checks.nccl"
        }
        _ => {
            "name a DaemonSet as daemonset.nodegate.dev/<namespace>.<name>, for example daemonset.nodegate.dev/kube-system.cilium"
        }
    })
}

/// Whether a condition type is under Nodegate's domain, so that a prefix which is none of ours is probably misspelt.
pub(crate) fn is_under_our_domain(kind: &str) -> bool {
    let prefix = kind.split_once('/').map_or("", |(prefix, _)| prefix);
    let parent = prefix.strip_suffix(DOMAIN);
    parent.is_some_and(|parent| parent.is_empty() || parent.ends_with('.'))
}

/// Whether a source of conditions of this type counts something, so that a rule may ask for a minimum.
pub(crate) fn counts_something(kind: &str) -> bool {
    [RESOURCE_PREFIX, DEVICES_PREFIX]
        .iter()
        .any(|prefix| kind.starts_with(prefix))
}

/// Parses `<namespace>.<name>`. A namespace has no dots; a name may.
fn key(name: &str) -> Option<ObjectKey> {
    let (namespace, name) = name.split_once('.')?;
    (is_namespace(namespace) && is_dns_subdomain(name)).then(|| ObjectKey::new(namespace, name))
}

/// Whether Nodegate published a condition of this type and reason, with this or an earlier configuration, so that it may remove
/// it.
pub fn is_ours(kind: &str, reason: &str) -> bool {
    let name = kind.rsplit_once('/').map_or(kind, |(_, name)| name);
    let is_reserved = |prefix: &&str| kind.starts_with(*prefix);
    (RESERVED_PREFIXES.iter().any(is_reserved) || Question::from_name(name).is_some())
        && detail::is_synthesized_reason(reason)
}
