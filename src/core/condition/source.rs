//! Sources of condition types.

use super::detail;
use super::groups::{Component, ComponentGroup, CriticalComponentClass, NamedComponent, Question};
use super::watch::Watch;
use crate::object::ObjectKey;
use crate::selector::{is_dns_subdomain, is_namespace};

/// The domain of the condition types that Nodegate makes and that belong to no class.
const DOMAIN: &str = "nodegate.dev";
const CSI_DRIVER_PREFIX: &str = "csidriver.nodegate.dev/";
const RESOURCE_PREFIX: &str = "resource.nodegate.dev/";
const DAEMON_SET_PREFIX: &str = "daemonset.nodegate.dev/";
const DAEMON_SETS_PREFIX: &str = "daemonsets.nodegate.dev/";
const CHECK_PREFIX: &str = "check.nodegate.dev/";
const DEVICES_PREFIX: &str = "resourceslice.nodegate.dev/";
/// The prefixes of synthesized conditions that belong to no class.
pub const RESERVED_PREFIXES: [&str; 6] = [
    CSI_DRIVER_PREFIX,
    RESOURCE_PREFIX,
    DAEMON_SET_PREFIX,
    DAEMON_SETS_PREFIX,
    CHECK_PREFIX,
    DEVICES_PREFIX,
];

/// Where the status of a condition type comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Source {
    Node,
    Class {
        class: usize,
        question: Question,
    },
    CsiDriver(String),
    Resource(String),
    Component(Component),
    /// [`Component::AllDaemonSets`], asked whether their pods are bound, Ready or not.
    DaemonSetsScheduled,
    /// Nothing provides this type, though its prefix is reserved: it counts as absent, whatever the Node says.
    Nobody,
}

impl Source {
    /// The source of this condition type, with these classes.
    pub fn of(kind: &str, classes: &[CriticalComponentClass]) -> Self {
        if let Some(source) = Self::reserved(kind) {
            return source;
        }
        let mut source = Self::Node;
        for (class, it) in classes.iter().enumerate() {
            if let Some(name) = kind.strip_prefix(it.condition_prefix.as_str()) {
                if let Ok(question) = name.parse() {
                    return Self::Class { class, question };
                }
                source = Self::Nobody;
            }
        }
        source
    }

    /// The source of a condition type with a reserved prefix.
    fn reserved(kind: &str) -> Option<Self> {
        let (prefix, name) = split(kind)?;
        let source = match prefix {
            CSI_DRIVER_PREFIX => {
                is_dns_subdomain(&name.to_ascii_lowercase()).then(|| Self::CsiDriver(name.into()))
            }
            RESOURCE_PREFIX => (!name.is_empty()).then(|| Self::Resource(name.into())),
            DAEMON_SET_PREFIX => key(name).map(|key| Self::Component(Component::DaemonSet(key))),
            CHECK_PREFIX => key(name).map(|key| Self::Component(Component::Check(key))),
            DEVICES_PREFIX => {
                is_dns_subdomain(name).then(|| Self::Component(Component::Devices(name.into())))
            }
            _ => match name {
                "all" => Some(Self::Component(Component::AllDaemonSets)),
                "scheduled" => Some(Self::DaemonSetsScheduled),
                _ => None,
            },
        };
        Some(source.unwrap_or(Self::Nobody))
    }

    /// What it waits for by name.
    pub fn component(&self) -> Option<&Component> {
        match self {
            Self::Component(component) => Some(component),
            Self::DaemonSetsScheduled => Some(&Component::AllDaemonSets),
            _ => None,
        }
    }

    /// Whether conditions from here depend on what this watch shows, given what is watched of what rules name. All depend on nodes.
    pub fn depends_on(&self, watch: Watch, named: &[NamedComponent]) -> bool {
        let is_of = |group| watch.group() == Some(group);
        match self {
            Self::Node | Self::Resource(_) | Self::Nobody => false,
            Self::CsiDriver(_) => watch == Watch::CsiNodes,
            Self::Component(_) | Self::DaemonSetsScheduled => {
                let mut named = named.iter();
                named.any(|it| self.component() == Some(&it.component) && is_of(it.group))
            }
            Self::Class { class, question } => {
                let asks_csi_node = matches!(
                    question,
                    Question::CsiDriversRegistered | Question::ComponentsReady
                );
                is_of(ComponentGroup::Class(*class)) || watch == Watch::CsiNodes && asks_csi_node
            }
        }
    }

    /// Whether the controller makes the condition.
    pub fn is_synthesized(&self) -> bool {
        !matches!(self, Self::Node | Self::Nobody)
    }
}

/// A condition type with a reserved prefix, as that and the rest.
fn split(kind: &str) -> Option<(&'static str, &str)> {
    let mut prefixes = RESERVED_PREFIXES.into_iter();
    prefixes.find_map(|prefix| Some((prefix, kind.strip_prefix(prefix)?)))
}

/// How to name a component, if the condition type has the prefix of one and names none.
pub fn names_nothing(kind: &str) -> Option<&'static str> {
    if Source::reserved(kind)? != Source::Nobody {
        return None;
    }
    Some(match split(kind)?.0 {
        DAEMON_SETS_PREFIX => {
            "name all DaemonSets as daemonsets.nodegate.dev/all, or as daemonsets.nodegate.dev/scheduled if their pods need not be Ready"
        }
        DEVICES_PREFIX => {
            "name a DRA driver as resourceslice.nodegate.dev/<driver>, for example resourceslice.nodegate.dev/gpu.nvidia.com"
        }
        CHECK_PREFIX => {
            "name a check as check.nodegate.dev/<namespace>.<name>, for example check.nodegate.dev/gpu-checks.nccl"
        }
        DAEMON_SET_PREFIX => {
            "name a DaemonSet as daemonset.nodegate.dev/<namespace>.<name>, for example daemonset.nodegate.dev/kube-system.cilium"
        }
        _ => return None,
    })
}

/// Whether a condition type is under Nodegate's domain, so that a prefix which is none of ours is probably misspelt.
pub fn is_under_our_domain(kind: &str) -> bool {
    let prefix = kind.split_once('/').map_or("", |(prefix, _)| prefix);
    let parent = prefix.strip_suffix(DOMAIN);
    parent.is_some_and(|parent| parent.is_empty() || parent.ends_with('.'))
}

/// Whether a source of conditions of this type counts something, so that a rule may ask for a minimum.
pub fn counts_something(kind: &str) -> bool {
    split(kind).is_some_and(|(prefix, _)| [RESOURCE_PREFIX, DEVICES_PREFIX].contains(&prefix))
}

/// Parses `<namespace>.<name>`. A namespace has no dots; a name may.
fn key(name: &str) -> Option<ObjectKey> {
    let (namespace, name) = name.split_once('.')?;
    (is_namespace(namespace) && is_dns_subdomain(name)).then(|| ObjectKey::new(namespace, name))
}

/// Whether Nodegate published a condition of this type and reason, with this or an earlier configuration, so that it may remove
/// it. A class's prefix ends with a slash, too.
pub fn is_ours(kind: &str, reason: &str) -> bool {
    let name = kind.rsplit_once('/').map(|(_, name)| name);
    name.is_some_and(|name| split(kind).is_some() || Question::WORDS.contains(&name))
        && detail::is_synthesized_reason(reason)
}
