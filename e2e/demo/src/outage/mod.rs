//! The outage: what reports on the nodes breaks, and two rules that differ in `spec.disruption` make of it what they must.
//!
//! ```text
//! cast      the rules as manifests, the nodes and the names in them
//! world     what has been seen of nodes and rules so far (pure)
//! picture   the zones as a table (pure)
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
