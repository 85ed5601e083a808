//! The stories under `examples/`: each is applied as its README says, with strict validation, and played with the controller
//! under its own service account and with the example's configuration. The tests simulate the kubelets: they write the status
//! of nodes and pods.

mod critical;
mod reported;
mod scene;
mod stack;
mod startup;
mod whole;
mod without_nodegate;
