//! Sources of condition types.

use std::sync::Arc;

use super::detail;
use super::groups::{Component, ComponentGroup, CriticalComponentClass, NamedComponent, Question};
use super::seen::Watch;
use crate::object::ObjectKey;
use crate::selector::{is_dns_subdomain, is_label_key, is_namespace};

/// The domain of the condition types that Nodegate makes and that belong to no class.
const DOMAIN: &str = "nodegate.dev";

pub const LABEL_PREFIX: &str = "label.nodegate.dev/";

/// A prefix of synthesized conditions that belong to no class.
struct Reserved {
    prefix: &'static str,
    /// What makes the condition with this name after the prefix; `None` if nothing does.
    source: fn(&str) -> Option<Source>,
    /// How to name one, if a rule with any other name is warned of.
    advice: &'static str,
}

static RESERVED: [Reserved; 7] = [
    Reserved {
        prefix: "csidriver.nodegate.dev/",
        source: |name| driver(&name.to_ascii_lowercase()).map(|_| Source::CsiDriver(name.into())),
        advice: "",
    },
    Reserved {
        prefix: "resource.nodegate.dev/",
        source: |name| (!name.is_empty()).then(|| Source::Resource(name.into())),
        advice: "",
    },
    Reserved {
        prefix: LABEL_PREFIX,
        source: |name| is_label_key(name).then(|| Source::Label(name.into())),
        advice: "name a label as label.nodegate.dev/<key>, for example label.nodegate.dev/nvidia.com/mig.config.state",
    },
    Reserved {
        prefix: "daemonset.nodegate.dev/",
        source: |name| key(name).map(Component::DaemonSet).map(Source::Component),
        advice: "name a DaemonSet as daemonset.nodegate.dev/<namespace>.<name>, for example daemonset.nodegate.dev/kube-system.cilium",
    },
    Reserved {
        prefix: "daemonsets.nodegate.dev/",
        source: |name| match name {
            "all" => Some(Source::Component(Component::AllDaemonSets)),
            "scheduled" => Some(Source::DaemonSetsScheduled),
            _ => None,
        },
        advice: "name all DaemonSets as daemonsets.nodegate.dev/all, or as daemonsets.nodegate.dev/scheduled if their pods need not be Ready",
    },
    Reserved {
        prefix: "check.nodegate.dev/",
        source: |name| key(name).map(Component::Check).map(Source::Component),
        advice: "name a check as check.nodegate.dev/<namespace>.<name>, for example check.nodegate.dev/gpu-checks.nccl",
    },
    Reserved {
        prefix: "resourceslice.nodegate.dev/",
        source: |name| driver(name).map(Component::Devices).map(Source::Component),
        advice: "name a DRA driver as resourceslice.nodegate.dev/<driver>, for example resourceslice.nodegate.dev/gpu.nvidia.com",
    },
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Node,
    Class {
        class: usize,
        question: Question,
    },
    CsiDriver(String),
    Resource(String),
    Label(String),
    Component(Component),
    /// [`Component::AllDaemonSets`], asked whether their pods are bound, Ready or not.
    DaemonSetsScheduled,
    /// Nothing provides this type, though its prefix is reserved: it counts as absent, whatever the Node says.
    Nobody,
    /// A class's question under a prefix that no class has: its configuration is lost, or does not have it yet.
    NoClass,
}

impl Source {
    pub fn of(kind: &str, classes: &[CriticalComponentClass]) -> Self {
        if let Some((reserved, name)) = reserved(kind) {
            return (reserved.source)(name).unwrap_or(Self::Nobody);
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
        let name = kind.rsplit_once('/').map(|(_, name)| name);
        if source == Self::Node && name.is_some_and(|name| Question::WORDS.contains(&name)) {
            return Self::NoClass;
        }
        source
    }

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
            Self::Node | Self::Resource(_) | Self::Label(_) | Self::Nobody | Self::NoClass => false,
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

    pub fn is_synthesized(&self) -> bool {
        !matches!(self, Self::Node | Self::Nobody | Self::NoClass)
    }
}

fn reserved(kind: &str) -> Option<(&'static Reserved, &str)> {
    let mut reserved = RESERVED.iter();
    reserved.find_map(|it| Some((it, kind.strip_prefix(it.prefix)?)))
}

/// Whether a condition type, or a class's prefix, is under a prefix of synthesized conditions that belong to no class.
pub fn is_reserved(kind: &str) -> bool {
    reserved(kind).is_some()
}

/// How to name a component, if the condition type has the prefix of one and names none.
pub fn names_nothing(kind: &str) -> Option<&'static str> {
    let (Reserved { source, advice, .. }, name) = reserved(kind)?;
    (!advice.is_empty() && source(name).is_none()).then_some(*advice)
}

/// Whether a condition type is under Nodegate's domain, so that a prefix which is none of ours is probably misspelt.
pub fn is_under_our_domain(kind: &str) -> bool {
    let prefix = kind.split_once('/').map_or("", |(prefix, _)| prefix);
    let parent = prefix.strip_suffix(DOMAIN);
    parent.is_some_and(|parent| parent.is_empty() || parent.ends_with('.'))
}

/// Whether a source of conditions of this type counts something, so that a rule may ask for a minimum.
pub fn counts_something(kind: &str) -> bool {
    let counting = ["resource.nodegate.dev/", "resourceslice.nodegate.dev/"];
    counting.iter().any(|it| kind.starts_with(it))
}

/// Whether a condition of this type may be about several `DaemonSet`s, of which a rule may leave some out.
pub fn covers_many(kind: &str) -> bool {
    let (prefix, name) = kind.rsplit_once('/').unwrap_or_default();
    prefix == "daemonsets.nodegate.dev" || Question::WORDS.contains(&name)
}

/// Parses `<namespace>.<name>`. A namespace has no dots; a name may.
fn key(name: &str) -> Option<ObjectKey> {
    let (namespace, name) = name.split_once('.')?;
    (is_namespace(namespace) && is_dns_subdomain(name)).then(|| ObjectKey::new(namespace, name))
}

fn driver(name: &str) -> Option<Arc<str>> {
    is_dns_subdomain(name).then(|| name.into())
}

/// Whether Nodegate, however configured, published this condition, and may remove it. A class's prefix ends with a slash, too.
pub fn is_ours(kind: &str, reason: &str) -> bool {
    let name = kind.rsplit_once('/').map(|(_, name)| name);
    name.is_some_and(|name| is_reserved(kind) || Question::WORDS.contains(&name))
        && detail::is_synthesized_reason(reason)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::api::names::NOT_READY_IN_TIME;

    #[test]
    fn every_place_that_lists_the_prefixes_of_conditions_has_all_of_them() {
        let ours = || RESERVED.iter().map(|it| it.prefix);
        let published = ours().chain(["node.gardener.cloud/", NOT_READY_IN_TIME]);
        let published: BTreeSet<&str> = published.collect();
        #[rustfmt::skip]
        let lists = [
            (include_str!("../../../charts/nodegate/files/policy/controller.yaml"), "name: conditionPrefixes\n    expression: \"["),
            (include_str!("../../../charts/nodegate/templates/optional.yaml"), "\"conditionPrefixes\" (list "),
            (include_str!("../../../charts/nodegate/values.yaml"), "\n  conditionPrefixes:\n"),
            (include_str!("../../../e2e/tests/install/values.rs"), "const PREFIXES: &str = \"["),
        ];
        for (text, before) in lists {
            let (_, list) = text.split_once(before).expect(before);
            let (list, _) = list.split_once([']', ')', '#']).expect(before);
            let words = list.split(['\'', '"', ',', ' ', '\n']);
            let words: BTreeSet<&str> = words.filter(|it| it.contains('/')).collect();
            assert_eq!(words, published, "{before}");
        }
        let tolerated = include_str!("../../../charts/nodegate/files/tolerations/policy.yaml");
        let helper = include_str!("../../../charts/nodegate/templates/_helpers.tpl");
        assert!(tolerated.contains("== 'daemonset.nodegate.dev/' +"));
        for word in Question::WORDS {
            let kind = format!("'node.gardener.cloud/{word}'");
            assert!(
                tolerated.contains(&kind) && helper.contains(&format!("\"{word}\"")),
                "{word}"
            );
        }
        let tried = include_str!("../../../e2e/tests/policy/controller.rs");
        for prefix in published {
            assert!(tried.contains(&format!("\n    \"{prefix}")), "{prefix}");
        }
        let documented = include_str!("../../../docs/conditions.md");
        let generated = include_str!("../../../e2e/tests/generated/words.rs");
        for prefix in ours() {
            assert!(documented.contains(&format!("`{prefix}")), "{prefix}");
            assert!(generated.contains(&format!("\"{prefix}")), "{prefix}");
        }
    }
}
