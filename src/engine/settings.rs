//! The engine's configuration.

use super::pacer::Rate;
use nodegate_core::condition::CriticalComponentClass;
use nodegate_core::guard::Limits;

#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub classes: Vec<CriticalComponentClass>,
    /// Taints that a `DaemonSet` need not tolerate to be waited for.
    pub passing_taints: Vec<String>,
    /// Whether synthesized conditions are published on nodes.
    pub publish_conditions: bool,
    pub enable_karpenter: bool,
    /// Whether `CSINode`s are watched even if no rule depends on them, for the readers.
    pub watch_csi_nodes: bool,
    /// How many nodes may be written at a time.
    pub concurrency: u16,
    pub rate: Option<Rate>,
    /// How many nodes each list of a rule's status may name.
    pub status_node_limit: usize,
    /// The limits of disruption guards, for what a rule's `disruption` leaves out.
    pub disruption_limits: Limits,
}
