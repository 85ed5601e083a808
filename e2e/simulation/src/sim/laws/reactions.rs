//! Somebody who reacts to the taint may make a `DaemonSet` meant for a node only while the taint is off. Each gating for lack of it then
//! undoes its own cause. So after the fourth one within half an hour, the rule gates that node again after ten minutes at the earliest.
//!
//! This is about rules that wait for one `DaemonSet` by its name and for nothing else, until a pod of it gets Ready on the node. A new
//! process knows nothing of what an earlier one counted, and while there are faults, one may not learn that it has gated a node.

use super::ledger::{Glances, ahead};
use super::placement::is_meant_by_what_it_is;
use super::rule::{Rule, TaintId, governing};
use super::truth::Facts;
use super::{NodeWrite, Process, process, seconds};
use crate::sim::actors::ask::uid;
use crate::sim::law::{Law, Moment};
use crate::sim::time::{Time, s};

const WINDOW: Time = s(30 * 60);
/// The shortest pause, less the time that a write takes.
const PAUSE: Time = s(10 * 60 - 10);

#[derive(Default)]
pub(super) struct Reactions {
    gatings: Vec<Gating>,
}

struct Gating {
    /// The UIDs of the node and of the rule, and who made it.
    of: (String, String, Process),
    at: Time,
    revision: u64,
}

impl Law for Reactions {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for write in NodeWrite::new(moment) {
            for taint in write.added() {
                self.added(moment, &write, &taint)?;
            }
        }
        Ok(())
    }
}

impl Reactions {
    fn added(
        &mut self,
        moment: &Moment<'_>,
        write: &NodeWrite<'_>,
        taint: &TaintId,
    ) -> Result<(), String> {
        let (node, at, revision) = (write.node(), write.change.at, write.change.revision);
        let is_calm = moment.faults.is_empty() || at >= moment.calm_since;
        let is_calm = is_calm && ahead(moment).is_zero();
        let rules = moment.rules(revision - 1);
        let Some(rule) = governing(&rules, taint, write.before) else {
            return Ok(());
        };
        let lacks_it = |facts: &Facts<'_>| {
            let wanted = facts.named_by(rule);
            wanted.is_some_and(|it| is_meant_by_what_it_is(facts, it) && !facts.runs(it))
        };
        if !is_calm || moment.ask(node, Glances::all(revision - 1), at, lacks_it) != Some(true) {
            return Ok(());
        }
        let by = process(moment, write.instance);
        let of = (uid(write.after).to_owned(), rule.uid.clone(), by);
        let earlier = self.gatings.iter().rev().filter(|it| it.of == of);
        if let [last, _, _, first] = earlier.take(4).collect::<Vec<_>>()[..]
            && last.at <= first.at + WINDOW
            && at < last.at + PAUSE
            && !has_run(moment, node, rule, (first.revision, revision))
        {
            return Err(format!(
                "rule {} gated node {node} for the fourth time at {}, the first one at {}, and again at {}",
                rule.name,
                seconds(last.at),
                seconds(first.at),
                seconds(at),
            ));
        }
        self.gatings.push(Gating { of, at, revision });
        Ok(())
    }
}

/// Whether a pod of the `DaemonSet` that the rule waits for was Ready on the node between these revisions.
fn has_run(moment: &Moment<'_>, node: &str, rule: &Rule, (from, to): (u64, u64)) -> bool {
    let runs = |facts: &Facts<'_>| facts.named_by(rule).is_some_and(|it| facts.runs(it));
    let turns = moment.all_turns(node, from, to);
    let mut turns = turns.into_iter();
    turns.any(|(turn, at)| moment.ask(node, Glances::all(turn), at, runs) == Some(true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sim::cluster::Who;
    use crate::sim::laws::testing::{Story, gate, node};
    use crate::{Key, Kind};

    #[test]
    fn a_fifth_gating_for_lack_of_a_daemon_set_waits_until_a_pod_of_it_has_run() {
        for (fifth_at, has_run, fine) in [
            (1300, false, false),
            (1300, true, true),
            (1600, false, true),
        ] {
            let conditions = json!([{
                "type": "daemonset.nodegate.dev/kube-system.cni", "requiredStatus": "True",
            }]);
            let mut story = Story::under(json!({ "conditions": conditions }));
            story.create(node("n"));
            let labels = json!({ "app": "cni" });
            let metadata =
                |name: &str| json!({ "name": name, "namespace": "kube-system", "labels": labels });
            let containers = json!([{ "name": "c", "image": "c" }]);
            let template =
                json!({ "metadata": { "labels": labels }, "spec": { "containers": containers } });
            story.create(json!({
                "kind": "DaemonSet",
                "metadata": metadata("cni"),
                "spec": { "selector": { "matchLabels": labels }, "template": template },
            }));
            for at in [100, 400, 700, 1000, fifth_at] {
                if at == 1000 && has_run {
                    let ready = json!({ "type": "Ready", "status": "True" });
                    let status = json!({ "phase": "Running", "conditions": [ready] });
                    let spec = json!({ "nodeName": "n", "containers": containers });
                    story.create_pod(json!({
                        "kind": "Pod", "metadata": metadata("p"), "spec": spec, "status": status,
                    }));
                    let pod = Key::namespaced(Kind::Pod, "kube-system", "p");
                    story.delete(Who::Actor("kubelet"), pod);
                }
                story.at(at);
                gate(&mut story, "n");
                story.at(at + 100);
                story.patch_by_nodegate("n", json!({ "spec": { "taints": null } }));
            }
            let case = format!("{fifth_at}, {has_run}");
            story.judged(&mut Reactions::default(), fine, case);
        }
    }
}
