//! Nodegate with a real node: a kubelet, its containers, its network and its CSI drivers. Each test has its own machine, in
//! namespaces, and prints when things happened.

mod birth;
mod installation;
mod product;
mod reboot;
mod released;
mod reporter;
mod running;
mod scene;
mod stack;
mod startup;
