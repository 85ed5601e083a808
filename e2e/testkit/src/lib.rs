//! What tests, benchmark and demo stand on.
//!
//! ```text
//! kubernetes  real control planes, with simulated kubelets
//! realnode    a real node beside one
//! nodegate    Nodegate in a cluster, installed and run as users do
//! ```
//!
//! `kubernetes` and `realnode` know nothing of Nodegate; the law is in the root's `tests/imports.rs`.

#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    reason = "only tests call this, and fail with the error"
)]

pub mod kubernetes;
pub mod nodegate;
pub mod realnode;
