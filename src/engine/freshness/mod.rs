//! How fresh the evidence is: as of when each kind is current, up to which version it has been shown, and live reads of what is
//! stale. Which stale kinds a decision depends on is up to [`crate::plan::StaleKinds`]; the machine asks before it acts.

pub(crate) mod certainty;
pub mod evidence;
pub(crate) mod live_reads;
pub(crate) mod shown;
