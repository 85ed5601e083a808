//! The settings of the instances of Nodegate.

use nodegate::condition::CriticalComponentClass;
use nodegate::config::Config;
use nodegate::engine::{self, Rate};
use nodegate::guard::Limits;

/// The settings of all instances. The default is the product's.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The critical component classes; by default Gardener's.
    pub classes: Vec<CriticalComponentClass>,
    /// Startup taints of other projects that `DaemonSet` placement ignores.
    pub passing_taints: Vec<String>,
    /// Whether conditions are published on nodes.
    pub publish_conditions: bool,
    /// Whether to watch Karpenter's objects.
    pub enable_karpenter: bool,
    /// Whether each node that rules select gets a `NodeReadinessEvaluation`.
    pub node_readiness_evaluation: bool,
    /// The most writes under way at a time.
    pub concurrency: u16,
    /// The most writes per second.
    pub rate: Option<Rate>,
    /// The most nodes that a rule's status lists.
    pub status_node_limit: usize,
    /// Limits on how fast a rule closes nodes, unless the rule sets its own.
    pub disruption_limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        let config = Config::default();
        Self {
            classes: config.classes().unwrap_or_default(),
            passing_taints: Vec::new(),
            publish_conditions: true,
            enable_karpenter: false,
            node_readiness_evaluation: false,
            concurrency: 32,
            rate: None,
            status_node_limit: 100,
            disruption_limits: Limits::default(),
        }
    }
}

impl From<&Settings> for engine::Settings {
    fn from(settings: &Settings) -> Self {
        let settings = settings.clone();
        Self {
            classes: settings.classes,
            passing_taints: settings.passing_taints,
            publish_conditions: settings.publish_conditions,
            enable_karpenter: settings.enable_karpenter,
            node_readiness_evaluation: settings.node_readiness_evaluation,
            concurrency: settings.concurrency,
            rate: settings.rate,
            status_node_limit: settings.status_node_limit,
            disruption_limits: settings.disruption_limits,
        }
    }
}
