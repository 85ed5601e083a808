//! Nodegate with a real node: a kubelet, its containers, its network and its CSI drivers. Each test is on a machine of its own,
//! in namespaces, and prints what was seen when.

mod birth;
mod demo;
mod installation;
mod product;
mod reboot;
mod released;
mod reporter;
mod running;
mod scene;
mod stack;
