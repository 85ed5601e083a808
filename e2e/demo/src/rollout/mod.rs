//! The demo: nodes join a real control plane, and Nodegate keeps the workload off each until it is ready.

mod cast;
mod kubelet;
mod record;
mod report;
mod story;
mod table;
mod world;

pub use story::tell;
pub use world::World;

type Show = crate::stage::Show<World>;
