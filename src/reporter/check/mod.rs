//! Carries one check out and says what it found. When checks are made and what follows is not known here.
//!
//! | file | what it does |
//! |---|---|
//! | `checker` | makes the check that an endpoint asks for |
//! | `http`, `grpc`, `connect`, `command` | one way of checking each |
//! | `tls` | TLS over a connection |
//! | `exchange` | what requests have in common |
//! | `failure` | why a check is not good |
//! | [`orphans`] | ends what commands have left behind |

mod checker;
mod command;
mod connect;
mod exchange;
mod failure;
mod grpc;
mod http;
pub mod orphans;
mod tls;

pub use checker::Checker;
pub use exchange::USER_AGENT;
