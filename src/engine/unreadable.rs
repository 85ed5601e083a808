//! How unreadable objects are reported.

use tracing::warn;

use super::cache::{Broken, Cache};
use super::notice::{self, About, Notice};
use super::outbox::Outbox;
use nodegate_core::condition::{Component, ComponentGroup, Watch};
use nodegate_core::rule::CompiledSpec;

/// Reports each unreadable object once.
pub(super) fn tell_unreadable(cache: &mut Cache, out: &mut Outbox) {
    for broken in cache.stores.unreadable.tell() {
        let node = broken.node.as_deref();
        warn!(node, left_as_it_is = node.is_some(), "{broken}");
        match broken.watch {
            Watch::Nodes | Watch::CsiNodes | Watch::Pods(_) | Watch::ResourceSlices(_) => {
                tell_on_node(&broken, cache, out);
            }
            Watch::DaemonSets(group) => tell_on_rules(&broken, group, cache, out),
            Watch::Rules | Watch::NodeClaims | Watch::NodePools => tell_on_itself(&broken, out),
        }
    }
}

/// Reports a cluster-scoped object on itself.
fn tell_on_itself(broken: &Broken, out: &mut Outbox) {
    if broken.key.name.is_empty() {
        return;
    }
    let about = About {
        kind: broken.watch.resource(),
        name: broken.key.name.clone(),
        uid: broken.uid.clone(),
    };
    let topic = match broken.watch {
        Watch::Rules => &notice::RULE_UNREADABLE,
        _ => &notice::KARPENTER_UNREADABLE,
    };
    out.tell(Notice::new(about, topic, broken.to_string()));
}

fn tell_on_node(broken: &Broken, cache: &Cache, out: &mut Outbox) {
    let Some(name) = &broken.node else {
        return;
    };
    let known = cache.node(name).map(|state| state.node.uid.clone());
    let uid = match broken.watch {
        Watch::Nodes => broken.uid.clone().or(known),
        _ => known,
    };
    // Without the UID, kubectl does not show an event with its node.
    if let Some(uid) = uid {
        let about = About::node(name, &uid);
        let note = format!("This node is left as it is: {broken}");
        out.tell(Notice::new(about, &notice::NODE_UNREADABLE, note));
    }
}

/// Reports a `DaemonSet` on the rules that wait for its class, or for it by name.
fn tell_on_rules(broken: &Broken, group: ComponentGroup, cache: &Cache, out: &mut Outbox) {
    let class = group.class();
    let waits = |spec: &CompiledSpec| {
        class.is_some_and(|class| spec.waits_for_class(class))
            || spec.components().any(|component| match component {
                Component::DaemonSet(key) => *key == broken.key,
                Component::AllDaemonSets => true,
                Component::Check(_) | Component::Devices(_) => false,
            })
    };
    for rule in cache.cluster().rules.rules() {
        if rule.live().is_some_and(waits) {
            let note =
                format!("{broken}; its last readable version stays in use, if there was one");
            out.tell(Notice::on_rule(rule, &notice::RULE_UNREADABLE, note));
        }
    }
}
