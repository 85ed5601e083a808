//! The settings of the instances of Nodegate.

use nodegate_core::api::NodeShare;
use nodegate_core::config::Config;
use nodegate_core::guard::Limits;
pub use nodegate_engine::Settings;

/// The product's defaults: Gardener's critical components, and no Karpenter.
pub fn usual() -> Settings {
    Settings {
        classes: Config::default().classes().unwrap_or_default(),
        passing_taints: Config::default().passing_taints(),
        publish_conditions: true,
        concurrency: 32,
        rate: None,
        status_node_limit: 100,
        disruption_limits: Limits {
            max_first_gated: NodeShare::Percent(100),
            ..Limits::default()
        },
        ..Settings::default()
    }
}
