//! The stories under `examples/`: each is applied as its README says, with strict validation, and played through with the
//! controller under its own service account and the configuration that belongs to the example.
//!
//! ```text
//! scene      a cluster with one example in it
//! critical   critical component classes: network plugin, CSI driver, GPU nodes, Gardener, security agent
//! reported   conditions that others report: Node Problem Detector, an agent of one's own
//! startup    taints that nodes register with
//! stack      excerpts of real charts' DaemonSets together, and the traps of their defaults
//! whole      every folder: what it has to have, and that an API server takes it
//! fenced     the YAML in the documentation
//! ```
//!
//! The kubelets are played by the tests, which write the status of nodes and pods.

mod critical;
mod fenced;
mod reported;
mod scene;
mod stack;
mod startup;
mod whole;
