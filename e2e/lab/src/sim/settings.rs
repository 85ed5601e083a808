//! What the instances of Nodegate are set to.

use nodegate::condition::CriticalComponentClass;
use nodegate::config::Config;
use nodegate::engine::{self, Rate};
use nodegate::guard::Limits;

/// What the instances of Nodegate are set to. The default is the product's.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The critical component classes; the default is Gardener's one.
    pub classes: Vec<CriticalComponentClass>,
    /// Other projects' startup taints, through which `DaemonSet`s are seen.
    pub passing_taints: Vec<String>,
    /// Whether conditions are published on nodes.
    pub publish_conditions: bool,
    /// Whether Karpenter's objects are watched.
    pub enable_karpenter: bool,
    /// How many writes may be under way at a time.
    pub concurrency: u16,
    /// How many writes may be made a second.
    pub rate: Option<Rate>,
    /// How many nodes a rule's status may list.
    pub status_node_limit: usize,
    /// How fast a rule may close nodes, where it does not say so itself.
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
            concurrency: settings.concurrency,
            rate: settings.rate,
            status_node_limit: settings.status_node_limit,
            disruption_limits: settings.disruption_limits,
        }
    }
}
