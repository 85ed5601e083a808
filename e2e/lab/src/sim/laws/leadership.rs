//! Whoever does not lead does not write: what an instance has sent reaches the API server at most as long after it stopped
//! leading as a request may take.

use std::collections::BTreeMap;

use super::writes::target;
use super::{ours, seconds};
use crate::sim::law::{Law, Moment};
use crate::sim::time::{Time, s};

/// How long a request may take.
const REQUEST: Time = s(10);

/// The law.
#[derive(Default)]
pub struct Leadership {
    /// When each instance was last known to lead.
    led: BTreeMap<usize, Time>,
}

impl Law for Leadership {
    fn name(&self) -> &'static str {
        "only a leader writes"
    }

    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for (instance, write) in ours(moment) {
            let Some(key) = target(&write.request) else {
                continue;
            };
            let leads = moment
                .instances
                .get(instance)
                .is_some_and(|it| it.leads_since.is_some());
            let led = self.led.get(&instance);
            if !leads && led.is_none_or(|led| *led + REQUEST < write.at) {
                return Err(format!(
                    "instance {instance} wrote {key} at {}, and last led at {}",
                    seconds(write.at),
                    led.map_or("no time".to_owned(), |led| seconds(*led)),
                ));
            }
        }
        let now = moment.cluster.now();
        for (instance, report) in moment.instances.iter().enumerate() {
            if report.leads_since.is_some() {
                // It has led until somebody looked last, at least.
                self.led.insert(instance, now);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sim::laws::testing::{Story, node};

    #[test]
    fn who_does_not_lead_does_not_write() {
        for (at, fine) in [(15, true), (30, false)] {
            let mut story = Story::default();
            story.at(10);
            story.create(node("n"));
            story.report.leads_since = None;
            story.at(at);
            story.patch_by_nodegate(
                "n",
                &json!({ "metadata": { "annotations": { "nodegate.dev/x": "y" } } }),
            );
            let judged = story.judge(|_| Box::<Leadership>::default());
            assert_eq!(judged.is_ok(), fine, "{at}: {judged:?}");
        }
    }
}
