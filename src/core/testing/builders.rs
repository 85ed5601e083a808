//! Builders of objects, each written in one line.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use nodegate_core::api::names::{BOOTSTRAP_COMPLETED_PREFIX, FINALIZER, TAINT_ADDED_BY_PREFIX};
use nodegate_core::condition::CriticalComponentClass;
use nodegate_core::object::{CsiNode, DaemonSet, Node, Pod, RuleObject, Watched};
use nodegate_core::rule::Rule;
/// The taint key of rules that do not name another.
pub(crate) const GATE: &str = "readiness.k8s.io/gate";

/// A time this many seconds after the default creation time of nodes.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + seconds).unwrap()
}

/// A time of the monotonic clock, this many seconds after a fixed start.
pub(crate) fn moment(seconds: u64) -> Instant {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    *START + Duration::from_secs(seconds)
}

/// Parses YAML, which is shorter than JSON in tests.
pub(super) fn yaml<T: DeserializeOwned>(text: &str) -> T {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn decode<T: DeserializeOwned>(json: &Value) -> T {
    serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn push(list: &mut Value, element: Value) {
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().unwrap().push(element);
}

/// Metadata for a key such as `kube-system/cni`.
fn namespaced(key: &str) -> Value {
    let (namespace, name) = key.split_once('/').unwrap();
    json!({ "namespace": namespace, "name": name, "uid": format!("{name}-uid") })
}

/// Metadata that every builder can set.
pub(crate) trait Builder: Sized {
    fn json(&mut self) -> &mut Value;

    fn label(mut self, key: &str, value: &str) -> Self {
        self.json()["metadata"]["labels"][key] = json!(value);
        self
    }

    fn annotation(mut self, key: &str, value: &str) -> Self {
        self.json()["metadata"]["annotations"][key] = json!(value);
        self
    }

    fn created(mut self, time: Timestamp) -> Self {
        self.json()["metadata"]["creationTimestamp"] = json!(time);
        self
    }

    fn deleting(mut self) -> Self {
        self.json()["metadata"]["deletionTimestamp"] = json!(at(0));
        self
    }
}

macro_rules! builder {
    ($( $(#[$attr:meta])* $name:ident )+) => {
        $(
            $(#[$attr])*
            #[derive(Debug, Clone)]
            pub(crate) struct $name(Value);

            impl Builder for $name {
                fn json(&mut self) -> &mut Value {
                    &mut self.0
                }
            }
        )+
    };
}

builder! {
    /// A Node.
    NodeBuilder
    /// A `DaemonSet`.
    DaemonSetBuilder
    /// A pod.
    PodBuilder
    /// A `CSINode`.
    CsiNodeBuilder
    /// A `NodeReadinessRule`.
    RuleBuilder
}

/// A Linux node that was created at [`at`]`(0)`.
pub(crate) fn node(name: &str) -> NodeBuilder {
    NodeBuilder(json!({ "metadata": { "name": name, "uid": format!("{name}-uid") } }))
        .created(at(0))
        .label("kubernetes.io/os", "linux")
}

impl NodeBuilder {
    /// Adds a taint without a value.
    pub(crate) fn taint(self, key: &str, effect: &str) -> Self {
        self.taint_with(key, "", effect)
    }

    /// Adds a taint with `timeAdded`.
    pub(crate) fn dated_taint(mut self, key: &str, effect: &str) -> Self {
        let taint = json!({ "key": key, "effect": effect, "timeAdded": at(0) });
        push(&mut self.0["spec"]["taints"], taint);
        self
    }

    pub(crate) fn taint_with(mut self, key: &str, value: &str, effect: &str) -> Self {
        let mut taint = json!({ "key": key, "effect": effect });
        if !value.is_empty() {
            taint["value"] = json!(value);
        }
        push(&mut self.0["spec"]["taints"], taint);
        self
    }

    pub(crate) fn condition(self, kind: &str, status: &str) -> Self {
        self.condition_with(json!({ "type": kind, "status": status }))
    }

    pub(crate) fn condition_with(mut self, condition: Value) -> Self {
        push(&mut self.0["status"]["conditions"], condition);
        self
    }

    pub(crate) fn boot_id(mut self, id: &str) -> Self {
        self.0["status"]["nodeInfo"]["bootID"] = json!(id);
        self
    }

    pub(crate) fn uid(mut self, uid: &str) -> Self {
        self.0["metadata"]["uid"] = json!(uid);
        self
    }

    pub(crate) fn allocatable(mut self, resource: &str, quantity: &str) -> Self {
        self.0["status"]["allocatable"][resource] = json!(quantity);
        self
    }

    /// Records that the rule of this name added the taint.
    pub(crate) fn owned_by(self, rule: &str, key: &str, effect: &str) -> Self {
        let value =
            format!(r#"{{"rule-name":"{rule}","taint-key":"{key}","taint-effect":"{effect}"}}"#);
        self.annotation(&format!("{TAINT_ADDED_BY_PREFIX}{rule}-uid"), &value)
    }

    /// Records that the node completed its bootstrap under the rule with this UID or, as in older releases, with this name.
    pub(crate) fn completed(self, rule: &str) -> Self {
        self.annotation(&format!("{BOOTSTRAP_COMPLETED_PREFIX}{rule}"), "{}")
    }

    /// Sets the resource version.
    pub(crate) fn version(mut self, version: u64) -> Self {
        self.0["metadata"]["resourceVersion"] = json!(version.to_string());
        self
    }

    /// As the API server sends it.
    pub(crate) fn object(&self) -> Watched<Node> {
        decode(&self.0)
    }

    pub(crate) fn build(&self) -> Node {
        self.object().read().unwrap()
    }
}

/// A `DaemonSet`, by namespace and name.
pub(crate) fn daemon_set(key: &str) -> DaemonSetBuilder {
    DaemonSetBuilder(json!({ "metadata": namespaced(key), "spec": { "template": {} } }))
}

impl DaemonSetBuilder {
    fn template(&mut self) -> &mut Value {
        &mut self.0["spec"]["template"]
    }

    pub(crate) fn template_label(mut self, key: &str, value: &str) -> Self {
        self.template()["metadata"]["labels"][key] = json!(value);
        self
    }

    /// Adds Gardener's label to the `DaemonSet` and its pods.
    pub(crate) fn critical(self) -> Self {
        self.label(CRITICAL, "true")
            .template_label(CRITICAL, "true")
    }

    /// Sets fields of the pod template's spec, given in YAML.
    pub(crate) fn pod_spec(mut self, fields: &str) -> Self {
        for (field, value) in yaml::<BTreeMap<String, Value>>(fields) {
            self.template()["spec"][field] = value;
        }
        self
    }

    /// Sets the generation of its pod template.
    pub(crate) fn template_generation(self, generation: u32) -> Self {
        let key = "deprecated.daemonset.template.generation";
        self.annotation(key, &generation.to_string())
    }

    /// Makes it select its pods by this label.
    pub(crate) fn selecting(mut self, key: &str, value: &str) -> Self {
        self.0["spec"]["selector"]["matchLabels"][key] = json!(value);
        self.template_label(key, value)
    }

    pub(crate) fn min_ready_seconds(mut self, seconds: u32) -> Self {
        self.0["spec"]["minReadySeconds"] = json!(seconds);
        self
    }

    pub(crate) fn node_selector(mut self, key: &str, value: &str) -> Self {
        self.template()["spec"]["nodeSelector"][key] = json!(value);
        self
    }

    /// Adds a toleration, given in YAML.
    pub(crate) fn toleration(mut self, toleration: &str) -> Self {
        push(
            &mut self.template()["spec"]["tolerations"],
            yaml(toleration),
        );
        self
    }

    pub(crate) fn object(&self) -> Watched<DaemonSet> {
        decode(&self.0)
    }

    pub(crate) fn build(&self) -> DaemonSet {
        self.object().read().unwrap()
    }
}

const CRITICAL: &str = "node.gardener.cloud/critical-component";

/// A pod on `worker-1`, by namespace and name; not Ready.
pub(crate) fn pod(key: &str) -> PodBuilder {
    PodBuilder(json!({ "metadata": namespaced(key) })).on("worker-1")
}

impl PodBuilder {
    pub(crate) fn on(mut self, node: &str) -> Self {
        self.0["spec"]["nodeName"] = json!(node);
        self
    }

    pub(crate) fn critical(self) -> Self {
        self.label(CRITICAL, "true")
    }

    /// Makes it a pod of this `DaemonSet`, with the labels of its template.
    pub(crate) fn of(mut self, daemon_set: &DaemonSetBuilder) -> Self {
        let meta = &daemon_set.0["metadata"];
        self.0["metadata"]["labels"] =
            daemon_set.0["spec"]["template"]["metadata"]["labels"].clone();
        self.0["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": meta["name"], "uid": meta["uid"],
            "controller": true,
        }]);
        self
    }

    /// Makes it one of this revision, made from this generation of the template.
    pub(crate) fn revision(self, hash: &str, generation: u32) -> Self {
        self.label("controller-revision-hash", hash)
            .label("pod-template-generation", &generation.to_string())
    }

    /// As the API server sends it.
    pub(crate) fn object(&self) -> Watched<Pod> {
        decode(&self.0)
    }

    pub(crate) fn phase(mut self, phase: &str) -> Self {
        self.0["status"]["phase"] = json!(phase);
        self
    }

    /// Ready since 10 seconds after the default creation time of nodes.
    pub(crate) fn ready(self) -> Self {
        self.ready_since(at(10))
    }

    pub(crate) fn ready_since(mut self, time: Timestamp) -> Self {
        self.0["status"]["conditions"] =
            json!([{ "type": "Ready", "status": "True", "lastTransitionTime": time }]);
        self
    }

    /// Ready, and its kubelet does not say since when.
    pub(crate) fn ready_undated(mut self) -> Self {
        self.0["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
        self
    }

    /// Makes the pod wait for a CSI driver, by Gardener's annotation.
    pub(crate) fn waits_for_driver(self, driver: &str) -> Self {
        let key = format!("node.gardener.cloud/wait-for-csi-node-{driver}");
        self.annotation(&key, driver)
    }
}

/// The `CSINode` of the [`node`] with this name.
pub(crate) fn csi_node(name: &str) -> CsiNodeBuilder {
    CsiNodeBuilder(json!({ "metadata": { "name": name } })).owned_by(&format!("{name}-uid"))
}

impl CsiNodeBuilder {
    pub(crate) fn owned_by(mut self, node_uid: &str) -> Self {
        let name = self.0["metadata"]["name"].clone();
        self.0["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid }]);
        self
    }

    /// Adds a driver without a count of attachable volumes.
    pub(crate) fn driver(mut self, name: &str) -> Self {
        push(&mut self.0["spec"]["drivers"], json!({ "name": name }));
        self
    }

    /// Adds a driver with a count of attachable volumes.
    pub(crate) fn counted_driver(mut self, name: &str) -> Self {
        let driver = json!({ "name": name, "allocatable": { "count": 25 } });
        push(&mut self.0["spec"]["drivers"], driver);
        self
    }

    /// Adds a health condition that a driver reports of its storage.
    pub(crate) fn unhealthy(mut self, driver: &str, status: &str, reason: &str) -> Self {
        let health = &mut self.0["status"]["storageHealth"];
        let reported = health.as_array().into_iter().flatten();
        let known = reported.clone().position(|it| it["name"] == driver);
        let index = known.unwrap_or_else(|| reported.count());
        if known.is_none() {
            push(health, json!({ "name": driver }));
        }
        let condition = json!({ "status": status, "reason": reason, "message": "down" });
        push(&mut health[index]["healthConditions"], condition);
        self
    }

    pub(crate) fn build(&self) -> CsiNode {
        decode::<Watched<CsiNode>>(&self.0).read().unwrap()
    }
}

/// A continuous rule for Linux nodes with the taint [`GATE`]`:NoSchedule` and its finalizer.
pub(crate) fn rule(name: &str) -> RuleBuilder {
    RuleBuilder(json!({
        "metadata": { "name": name, "uid": format!("{name}-uid"), "finalizers": [FINALIZER] },
        "spec": {
            "conditions": [],
            "enforcementMode": "continuous",
            "nodeSelector": { "matchLabels": { "kubernetes.io/os": "linux" } },
        },
    }))
    .created(at(0))
    .taint(GATE, "NoSchedule")
}

impl RuleBuilder {
    /// Sets fields of the spec, given in YAML.
    pub(crate) fn spec(mut self, fields: &str) -> Self {
        for (field, value) in yaml::<BTreeMap<String, Value>>(fields) {
            self.0["spec"][field] = value;
        }
        self
    }

    /// Sets fields under `spec.nodegate`, given in YAML.
    pub(crate) fn nodegate(mut self, fields: &str) -> Self {
        for (field, value) in yaml::<BTreeMap<String, Value>>(fields) {
            self.0["spec"]["nodegate"][field] = value;
        }
        self
    }

    /// Adds a condition that must be `True`.
    pub(crate) fn waits_for(mut self, kind: &str) -> Self {
        push(
            &mut self.0["spec"]["conditions"],
            json!({ "type": kind, "requiredStatus": "True" }),
        );
        self
    }

    pub(crate) fn taint(mut self, key: &str, effect: &str) -> Self {
        self.0["spec"]["taint"] = json!({ "key": key, "effect": effect });
        self
    }

    pub(crate) fn bootstrap_only(self) -> Self {
        self.spec("enforcementMode: bootstrap-only")
    }

    pub(crate) fn remove_only(self) -> Self {
        self.nodegate("taintPolicy: remove-only")
    }

    pub(crate) fn dry_run(self) -> Self {
        self.spec("dryRun: true")
    }

    pub(crate) fn suspended(self) -> Self {
        self.nodegate("suspend: true")
    }

    /// Matches the nodes with this label instead of all Linux nodes.
    pub(crate) fn selects(mut self, key: &str, value: &str) -> Self {
        self.0["spec"]["nodeSelector"] = json!({ "matchLabels": { key: value } });
        self
    }

    pub(crate) fn without_finalizer(mut self) -> Self {
        self.0["metadata"]["finalizers"] = json!([]);
        self
    }

    /// As the API server sends it.
    pub(crate) fn object<T: DeserializeOwned>(&self) -> T {
        decode(&self.0)
    }

    pub(crate) fn build(&self, classes: &[CriticalComponentClass]) -> Rule {
        let object: RuleObject = self.object();
        Rule::compile(&object.metadata, object.spec, classes).seen(None, Timestamp::MIN)
    }
}
