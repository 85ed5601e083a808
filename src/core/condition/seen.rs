//! What is watched, and what watches show, as plain values.

#![allow(
    clippy::large_enum_variant,
    reason = "nodes are the most frequent, and boxing them would cost an allocation for each event"
)]

use std::time::Instant;

use kube::Resource;
use kube::core::ObjectMeta;

use super::groups::ComponentGroup;
use crate::object::{
    CsiNode, DaemonSet, Node, NodeClaim, NodePool, Pod, ResourceKind, ResourceSlice, RuleObject,
    Version, Watched,
};

/// One line for each kind that is watched, of a component group or of all, and for the objects that watches of it show.
macro_rules! watches {
    ($($(#[$doc:meta])* $watch:ident $(($group:ident: $of:ty))?: $object:ident($type:ty);)+) => {
        /// Identifies a watch. There are some for each component group: of a class, or of what a rule names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Watch {
            $($(#[$doc])* $watch $(($of))?,)+
        }

        impl Watch {
            /// One watch of each kind.
            pub const KINDS: [Self; 8] = [$(Self::$watch $((<$of>::Class(0)))?),+];

            pub const fn resource(self) -> ResourceKind {
                match self {
                    $(Self::$watch { .. } => ResourceKind::$watch,)+
                }
            }

            pub const fn group(self) -> Option<ComponentGroup> {
                match self {
                    $($(Self::$watch($group) => Some($group),)?)+
                    _ => None,
                }
            }
        }

        /// An object as decoded from the wire.
        #[derive(Debug)]
        pub enum Object {
            $($object($($of,)? Watched<$type>),)+
        }

        impl Object {
            pub fn of(watch: Watch, json: &str) -> Self {
                match watch {
                    $(Watch::$watch $(($group))? => Self::$object($($group,)? Watched::of(json)),)+
                }
            }

            fn parts(&self) -> (Watch, &ObjectMeta) {
                match self {
                    $(Self::$object($($group,)? it) => (Watch::$watch $((*$group))?, it.meta()),)+
                }
            }
        }
    };
}

watches! {
    Nodes: Node(Node);
    CsiNodes: CsiNode(CsiNode);
    Pods(group: ComponentGroup): Pod(Pod);
    DaemonSets(group: ComponentGroup): DaemonSet(DaemonSet);
    ResourceSlices(group: ComponentGroup): ResourceSlice(ResourceSlice);
    Rules: Rule(RuleObject);
    /// Only repair waits for them.
    NodeClaims: NodeClaim(NodeClaim);
    NodePools: NodePool(NodePool);
}

#[derive(Debug)]
pub enum Seen {
    /// A list begins, which is asked for after this time. Objects that it has not shown when it is complete are gone.
    Init(Watch, Instant),
    /// An object was added or changed, or is one of a list that is under way.
    Apply(Object),
    /// An object was deleted; this is its last known state.
    Delete(Object),
    InitDone(Watch),
    /// The watch has begun at this version, or has shown everything up to it.
    Progress(Watch, Version),
    NotInstalled(Watch),
}

impl Seen {
    pub fn watch(&self) -> Watch {
        match self {
            Self::Apply(object) | Self::Delete(object) => object.watch(),
            Self::Init(watch, _)
            | Self::InitDone(watch)
            | Self::Progress(watch, _)
            | Self::NotInstalled(watch) => *watch,
        }
    }

    /// Whether this proves that the API server is reachable.
    pub fn is_sign_of_life(&self) -> bool {
        !matches!(self, Self::Init(..))
    }
}

impl Object {
    pub fn watch(&self) -> Watch {
        self.parts().0
    }

    /// Its metadata, as far as they are readable.
    pub fn meta(&self) -> &ObjectMeta {
        self.parts().1
    }
}
