//! How fast nodes may be gated, when a zone is disrupted, and how many nodes a rule may gate as it comes into force. The numbers,
//! names and defaults of the first two are those of the Kubernetes node lifecycle controller.

use serde::{Deserialize, Serialize};

use super::zone::ZoneState;
use crate::api::{Disruption, NodeShare};

/// How fast nodes may be gated, and when a zone is disrupted. The flags, for what a rule's `spec.nodegate.disruption` leaves out,
/// are those of kube-controller-manager.
#[derive(Debug, Clone, Copy, PartialEq, clap::Args, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Nodes a second that a rule with spec.nodegate.disruption gates in a healthy zone
    #[arg(long = "node-eviction-rate", value_name = "RATE", default_value_t = Limits::default().eviction_rate,
          value_parser = |it: &str| number(it, |it| it > 0.0, "must be above 0 nodes a second, for example 0.1"))]
    pub eviction_rate: f64,

    /// Nodes a second that it gates in a large zone that is partially disrupted; 0 stops it there
    #[arg(long = "secondary-node-eviction-rate", value_name = "RATE",
          default_value_t = Limits::default().secondary_eviction_rate, value_parser = |it: &str| number(it, |it| it >= 0.0,
          "must be nodes a second, for example 0.01, or 0 to gate no node in a zone that is partially disrupted"))]
    pub secondary_eviction_rate: f64,

    /// Share of a zone's nodes with unmet conditions from which the zone is partially disrupted, if more than 2
    #[arg(long, value_name = "SHARE", default_value_t = Limits::default().unhealthy_zone_threshold,
          value_parser = |it: &str| number(it, |it| it > 0.0 && it <= 1.0, "must be above 0 and at most 1, for example 0.55"))]
    pub unhealthy_zone_threshold: f64,

    /// Nodes up to which a zone is small: in a small zone that is partially disrupted no node is gated
    #[arg(long, value_name = "NODES", default_value_t = Limits::default().large_cluster_size_threshold)]
    pub large_cluster_size_threshold: usize,

    /// Nodes in use, or their share, that a rule may gate as it comes into force: past that it gates none of them. 3 may always
    /// be gated; 100% means no limit
    #[arg(long, value_name = "NODES", default_value = "10%")]
    pub max_first_gated: NodeShare,
}

impl Limits {
    /// The limits of a rule; `defaults` apply to what the rule leaves out.
    pub fn of(spec: &Disruption, defaults: Self) -> Self {
        let (secondary, unhealthy) = (spec.secondary_eviction_rate, spec.unhealthy_zone_threshold);
        let large = spec.large_cluster_size_threshold;
        let large = large.map(|nodes| usize::try_from(nodes).unwrap_or_default());
        Self {
            eviction_rate: spec.eviction_rate.unwrap_or(defaults.eviction_rate),
            secondary_eviction_rate: secondary.unwrap_or(defaults.secondary_eviction_rate),
            unhealthy_zone_threshold: unhealthy.unwrap_or(defaults.unhealthy_zone_threshold),
            large_cluster_size_threshold: large.unwrap_or(defaults.large_cluster_size_threshold),
            max_first_gated: spec.max_first_gated.unwrap_or(defaults.max_first_gated),
        }
    }

    /// The limit of what a rule may gate as it comes into force; `self` applies to a rule that has none of its own.
    pub fn first(self, spec: Option<&Disruption>) -> Option<NodeShare> {
        let own = spec.and_then(|spec| spec.max_first_gated);
        own.or(Some(self.max_first_gated).filter(|share| *share != NodeShare::Percent(100)))
    }

    /// Nodes a second, 0 or more, that may be gated in a zone of this state and size, unless every zone is fully disrupted
    /// (`setLimiterInZone`, `ReducedQPSFunc` and `HealthyQPSFunc` of
    /// `pkg/controller/nodelifecycle/node_lifecycle_controller.go`).
    pub fn rate(&self, state: ZoneState, nodes: usize) -> f64 {
        let rate = match state {
            ZoneState::Normal | ZoneState::FullDisruption => self.eviction_rate,
            ZoneState::PartialDisruption if nodes > self.large_cluster_size_threshold => {
                self.secondary_eviction_rate
            }
            ZoneState::PartialDisruption => 0.0,
        };
        // In this order, NaN becomes 0.
        rate.max(0.0)
    }
}

/// The defaults of kube-controller-manager, and a tenth.
impl Default for Limits {
    fn default() -> Self {
        Self {
            eviction_rate: 0.1,
            secondary_eviction_rate: 0.01,
            unhealthy_zone_threshold: 0.55,
            large_cluster_size_threshold: 50,
            max_first_gated: NodeShare::Percent(10),
        }
    }
}

/// A finite number that fits, or what it must be.
fn number(text: &str, fits: impl Fn(f64) -> bool, must: &'static str) -> Result<f64, &'static str> {
    let number = text.parse().ok();
    number
        .filter(|it: &f64| it.is_finite() && fits(*it))
        .ok_or(must)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        limits: Limits,
    }

    fn parse(flags: &[&str]) -> Result<Limits, String> {
        Cli::try_parse_from([&["nodegate"], flags].concat())
            .map(|cli| cli.limits)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn each_flag_sets_its_limit() {
        let limits = parse(&[
            "--node-eviction-rate=2",
            "--secondary-node-eviction-rate=0",
            "--unhealthy-zone-threshold=1",
            "--large-cluster-size-threshold=0",
            "--max-first-gated=5%",
        ]);
        let expected = Limits {
            eviction_rate: 2.0,
            secondary_eviction_rate: 0.0,
            unhealthy_zone_threshold: 1.0,
            large_cluster_size_threshold: 0,
            max_first_gated: NodeShare::Percent(5),
        };
        assert_eq!(limits.unwrap(), expected);
        assert_eq!(parse(&[]), Ok(Limits::default()));
    }

    #[test]
    fn a_tenth_may_be_gated_first_unless_the_limit_is_turned_off() {
        let first = |flags: &[&str]| parse(flags).unwrap().first(None);
        assert_eq!(first(&[]), Some(NodeShare::Percent(10)));
        assert_eq!(first(&["--max-first-gated=0"]), Some(NodeShare::Nodes(0)));
        assert_eq!(first(&["--max-first-gated=100%"]), None);
    }

    #[test]
    fn a_flag_that_cannot_be_is_refused_with_what_to_write() {
        for (flag, remedy) in [
            ("--node-eviction-rate=0", "above 0 nodes a second"),
            ("--node-eviction-rate=-1", "above 0 nodes a second"),
            ("--node-eviction-rate=inf", "above 0 nodes a second"),
            ("--node-eviction-rate=NaN", "above 0 nodes a second"),
            ("--node-eviction-rate=fast", "for example 0.1"),
            (
                "--secondary-node-eviction-rate=-0.1",
                "or 0 to gate no node",
            ),
            ("--unhealthy-zone-threshold=0", "above 0 and at most 1"),
            ("--unhealthy-zone-threshold=55", "above 0 and at most 1"),
            ("--large-cluster-size-threshold=-1", "invalid digit"),
            ("--max-first-gated=10 %", "a percentage from 0% to 100%"),
        ] {
            let error = parse(&[flag]).unwrap_err();
            let name = flag.split('=').next().unwrap();
            assert!(error.contains(remedy) && error.contains(name), "{error}");
        }
    }

    #[test]
    fn what_a_rule_leaves_out_is_the_controllers() {
        let defaults = Limits {
            eviction_rate: 5.0,
            secondary_eviction_rate: 4.0,
            unhealthy_zone_threshold: 0.3,
            large_cluster_size_threshold: 2,
            max_first_gated: NodeShare::Nodes(5),
        };
        assert_eq!(Limits::of(&Disruption::default(), defaults), defaults);
        let all = Disruption {
            eviction_rate: Some(0.1),
            secondary_eviction_rate: Some(0.01),
            unhealthy_zone_threshold: Some(0.55),
            large_cluster_size_threshold: Some(50),
            max_first_gated: Some(NodeShare::Percent(100)),
        };
        let expected = Limits {
            max_first_gated: NodeShare::Percent(100),
            ..Limits::default()
        };
        assert_eq!(Limits::of(&all, defaults), expected);
    }

    #[test]
    fn the_rate_follows_the_state_and_the_size_of_the_zone() {
        use ZoneState::{FullDisruption, Normal, PartialDisruption};
        for (state, nodes, rate) in [
            (Normal, 3, 0.1),
            (Normal, 1000, 0.1),
            (PartialDisruption, 3, 0.0),
            (PartialDisruption, 50, 0.0),
            (PartialDisruption, 51, 0.01),
            (FullDisruption, 1, 0.1),
            (FullDisruption, 1000, 0.1),
        ] {
            let found = Limits::default().rate(state, nodes);
            assert!(
                (found - rate).abs() < f64::EPSILON,
                "{state} {nodes}: {found}"
            );
        }
        let nonsense = Limits {
            eviction_rate: f64::NAN,
            ..Limits::default()
        };
        assert!(nonsense.rate(Normal, 1).abs() < f64::EPSILON);
    }
}
