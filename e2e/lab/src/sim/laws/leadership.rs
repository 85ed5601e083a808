//! Whoever does not lead does not write, nor whoever has been told to stop; and a process has one write to an object under way
//! at a time. What was sent by a leader reaches the API server at most as long after it stopped leading as a request may take.

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
        "only a leader writes, and one thing at a time"
    }

    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for (instance, report) in moment.instances.iter().enumerate() {
            if let Some((at, key)) = report.doubled.first() {
                let at = seconds(*at);
                return Err(format!(
                    "instance {instance} sent a write to {key} at {at}, and another one was under way"
                ));
            }
            if let Some((at, key)) = report.unasked.first() {
                let at = seconds(*at);
                return Err(format!(
                    "instance {instance} sent a write to {key} at {at}, and does not lead or was told to stop"
                ));
            }
        }
        for (instance, write) in ours(moment) {
            let Some(key) = target(&write.request) else {
                continue;
            };
            let report = moment.instances.get(instance);
            let leads = report.is_some_and(|it| it.leads_since.is_some());
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
    use crate::{Key, Kind};

    fn judge(story: &Story) -> Result<(), String> {
        story.judge(|_| Box::<Leadership>::default())
    }

    fn write(story: &mut Story) {
        let annotations = json!({ "nodegate.dev/x": "y" });
        story.patch_by_nodegate("n", &json!({ "metadata": { "annotations": annotations } }));
    }

    #[test]
    fn who_does_not_lead_does_not_write() {
        for (at, fine) in [(15, true), (30, false)] {
            let mut story = Story::default();
            story.at(10);
            story.create(node("n"));
            story.report.leads_since = None;
            story.at(at);
            write(&mut story);
            assert_eq!(judge(&story).is_ok(), fine, "{at}");
        }
    }

    #[test]
    fn one_write_to_a_node_is_under_way_at_a_time_and_none_after_the_end() {
        for (doubled, unasked, fine) in [(0, 0, true), (1, 0, false), (0, 1, false)] {
            let key = Key::cluster(Kind::Node, "n");
            let mut story = Story::default();
            story.create(node("n"));
            story.report.doubled = vec![(s(1), key.clone()); doubled];
            story.report.unasked = vec![(s(1), key); unasked];
            write(&mut story);
            assert_eq!(judge(&story).is_ok(), fine);
        }
    }
}
