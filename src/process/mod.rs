//! What the programs of this crate have in common as processes: how they start and end, their log, and their identity.

mod instance;
mod logging;
mod main;
mod shutdown;

pub(crate) use instance::{Instance, is_nodegate, own_namespace};
pub use logging::LogArgs;
pub(crate) use main::UsageError;
pub use main::main;
pub(crate) use shutdown::told_to_stop;
