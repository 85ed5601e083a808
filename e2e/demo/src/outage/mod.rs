//! An outage: the reporters on the nodes fail, under two rules that differ only in `spec.disruption`.

mod cast;
mod picture;
mod report;
mod story;
mod world;

pub use story::tell;
pub use world::World;

type Show = crate::stage::Show<World>;
