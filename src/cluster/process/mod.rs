//! What the programs of this crate have in common as processes: how they start and end, their log, and their identity.

mod instance;
mod logging;
mod main;
mod shutdown;

pub use instance::{Instance, is_nodegate, own_namespace};
pub use logging::LogArgs;
pub use main::{UsageError, from_environment, main, plain};
pub use shutdown::told_to_stop;
