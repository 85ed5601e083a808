//! One real node: its kubelet registers it, a CNI and a CSI driver come up on it, its network dies, and it reboots. What the
//! kubelet says about it is shown beside what Nodegate makes of it.
//!
//! ```text
//! cast      the rules, and the names in them
//! world     what has been seen of the node and its pods so far (pure)
//! picture   that as a table (pure)
//! report    whether all that was promised really happened (pure)
//! story     what happens, step by step
//! ```

mod cast;
mod picture;
mod report;
mod story;
mod world;

pub use story::tell;
pub use world::World;

/// A telling of this story.
type Show = crate::stage::Show<World>;
