//! What a kubelet does for the pods on its node: it starts them, reports their readiness, and ends them.

use serde_json::{Value, json};

use super::{KUBELET, Kubelets, Task};
use crate::sim::actors::ask::{condition, delete, is_going, pods_on, report, text};
use crate::sim::cluster::{Change, Cluster};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms, s};
use crate::{Key, Kind};

/// Annotation on pods: the milliseconds until they are Ready, or `never`. The default is 500 to 3000.
pub const READY_AFTER: &str = "lab.example.com/ready-after-ms";

impl Kubelets {
    /// Records a pod that was bound or is being deleted.
    pub(super) fn pod_changed(&mut self, change: &Change, pod: &Value, rng: &mut Rng) {
        let node = text(&pod["spec"]["nodeName"]);
        if node.is_empty() || !self.runs(node) {
            return;
        }
        let before = change.before.as_deref();
        let was_going = before.is_some_and(is_going);
        let was_bound = before.is_some_and(|before| !before["spec"]["nodeName"].is_null());
        if is_going(pod) && !was_going {
            let end = change.at + rng.between(ms(200), s(2));
            self.due.at(end, Task::End(change.key.clone()));
        } else if !was_bound {
            self.start_pod(&change.key, pod, change.at, rng);
        }
    }

    fn start_pod(&mut self, key: &Key, pod: &Value, now: Time, rng: &mut Rng) {
        let after = match text(&pod["metadata"]["annotations"][READY_AFTER]) {
            "never" => return,
            "" => rng.between(ms(500), s(3)),
            millis => ms(millis.parse().unwrap_or_default()),
        };
        self.due.at(now + after, Task::Start(key.clone()));
    }

    /// Restarts all pods that are bound to a node that has booted.
    pub(super) fn restart_pods(&mut self, cluster: &mut Cluster, node: &str, rng: &mut Rng) {
        for (key, pod) in pods_on(cluster, node) {
            if is_going(&pod) {
                self.due.at(cluster.now() + ms(200), Task::End(key));
                continue;
            }
            set_ready(cluster, &key, &pod, "False");
            self.start_pod(&key, &pod, cluster.now(), rng);
        }
    }

    /// Updates the pods that came, went or were marked not Ready while the kubelet was frozen.
    pub(super) fn catch_up_with_pods(&mut self, cluster: &Cluster, node: &str, rng: &mut Rng) {
        for (key, pod) in pods_on(cluster, node) {
            let at = cluster.now() + rng.between(ms(500), s(10));
            if is_going(&pod) {
                self.due.at(at, Task::End(key));
            } else if condition(&pod, "Ready") != "True" {
                self.start_pod(&key, &pod, at, rng);
            }
        }
    }

    pub(super) fn pod_is_ready(&mut self, cluster: &mut Cluster, key: Key) {
        let Some(pod) = cluster.get(&key).cloned() else {
            return;
        };
        let node = text(&pod["spec"]["nodeName"]);
        if is_going(&pod) || !self.runs(node) {
            return;
        }
        match self.fails_until(&pod, cluster.now()) {
            Some(Time::MAX) => {}
            Some(until) => self.due.at(until, Task::Start(key)),
            None => set_ready(cluster, &key, &pod, "True"),
        }
    }

    pub(super) fn end_pod(&self, cluster: &mut Cluster, key: &Key) {
        let Some(pod) = cluster.get(key) else {
            return;
        };
        if is_going(pod) && self.runs(text(&pod["spec"]["nodeName"])) {
            // The pod may be gone already.
            let _ = delete(cluster, KUBELET, key, Some(0));
        }
    }

    /// Marks the application's pods not Ready on the nodes where it has begun to fail.
    pub(super) fn fail_pods(&mut self, cluster: &mut Cluster, app: &str, until: Time) {
        let pods: Vec<_> = cluster
            .objects(Kind::Pod)
            .filter(|(_, pod)| pod["metadata"]["labels"]["app"] == app && !is_going(pod))
            .map(|(key, pod)| (key.clone(), pod.clone()))
            .collect();
        for (key, pod) in pods {
            let runs = self.runs(text(&pod["spec"]["nodeName"]));
            if runs && self.fails_until(&pod, cluster.now()).is_some() {
                set_ready(cluster, &key, &pod, "False");
                if until != Time::MAX {
                    self.due.at(until, Task::Start(key));
                }
            }
        }
    }

    /// Until when this pod's application fails, if it does.
    fn fails_until(&self, pod: &Value, now: Time) -> Option<Time> {
        let node = text(&pod["spec"]["nodeName"]);
        let app = &pod["metadata"]["labels"]["app"];
        let failures = self.failures.iter();
        failures
            .filter(|it| {
                it.until > now && *app == *it.app && (it.node.is_empty() || it.node == node)
            })
            .map(|it| it.until)
            .max()
    }
}

fn set_ready(cluster: &mut Cluster, key: &Key, pod: &Value, status: &str) {
    if condition(pod, "Ready") == status {
        return;
    }
    let running = json!({"phase": "Running"});
    report(cluster, KUBELET, key, ("Ready", status), running);
}
