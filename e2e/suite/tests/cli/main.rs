//! `kubectl nodegate` on a real control plane: what it prints, which is what the documentation shows; what it may be asked by whom;
//! and what it says where it cannot answer.
//!
//! ```text
//! world     the cluster that is asked about: one node is held, one is open, a pod waits
//! golden    what the documentation shows, held against what is printed
//! answers   what is printed
//! rights    with the rights of nodegate-view, with fewer and with none
//! live      while it changes
//! terminal  a terminal, for what is shown on one
//! shells    what is completed, in the shells themselves
//! failures  questions that cannot be answered
//! whole     questions about the whole cluster
//! page      the report in a browser
//! ```

mod answers;
mod failures;
mod golden;
mod live;
mod page;
mod rights;
mod shells;
mod terminal;
mod whole;
mod world;
