//! One real node: its kubelet registers it, a CNI and a CSI driver start on it, its network dies, and it reboots. The picture
//! shows the kubelet's reports beside Nodegate's decisions.

mod cast;
mod picture;
mod report;
mod story;
mod world;

pub use story::tell;
pub use world::World;

type Show = crate::stage::Show<World>;
