//! The engine alone with a whole fleet, in one process: the memory per node, the cost of an event, and how long an edit that
//! concerns every node delays everything else.
//!
//! `make bench W=fleet NODES=100000`, or `NODES=10000 RULES=1000`. The benchmark plays the API server, answers at once, and does
//! not measure that part, nor the decoding of watch events (`decode` measures that).

#[path = "world/objects.rs"]
mod objects;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use jiff::{SignedDuration, Timestamp};
use nodegate_core::api::NodeShare;
use nodegate_core::condition::{ComponentGroup, Watch};
use nodegate_core::config::Config;
use nodegate_core::guard::Limits;
use nodegate_engine::io::{Answer, Effect, Input, Now, Object, Request, RequestId, Seen};
use nodegate_engine::{Engine, Settings};
use serde_json::{Value, json};

use objects::{CRITICAL, REPORTED, daemon_set, decode, rule};

/// The default number of nodes.
const NODES: usize = 100_000;

/// The default number of rules.
const RULES: usize = 2;

/// Critical pods on each node.
const PODS: usize = 3;

/// How many events of each kind are measured.
const EVENTS: usize = 10_000;

/// The engine is idle once it has made no request for this long, which is longer than it delays anything.
const REST: Duration = Duration::from_secs(10);

/// How often the watches confirm that they are current.
const BOOKMARKS: Duration = Duration::from_secs(5);

/// A condition that no node meets.
const UNMET: &str = "example.com/NobodyReports";

fn main() {
    // Cargo adds its own arguments.
    let mut numbers = std::env::args().skip(1).filter_map(|it| it.parse().ok());
    let count = numbers.next().unwrap_or(NODES);
    let rules = numbers.next().unwrap_or(RULES);
    let mut fleet = Fleet::new(count, rules);

    let mut took = Duration::ZERO;
    // The inputs are created and dropped inside, so only what the engine keeps remains.
    let kept = measure(|| {
        let lists = fleet.lists();
        took = fleet.tell(lists);
    });
    let kept = kept.bytes_current;
    fleet.settle();
    println!("{count} nodes, each with {PODS} critical pods, under {rules} rules");
    line("take all of it in", &seconds(took));
    let each = usize::try_from(kept).unwrap_or_default() / count;
    line("memory for a node with its pods", &format!("{each} bytes"));
    let (busy, longest) = fleet.lead();
    line(
        "decide over all of it, when leadership comes",
        &seconds(busy),
    );
    line("the longest wait meanwhile", &seconds(longest));

    let total = EVENTS.min(count);
    let heartbeats = fleet.times(0..total, Fleet::heartbeat);
    line(
        "a node reports in, and nothing follows",
        &microseconds(heartbeats),
    );
    let pods = fleet.times(0..total, Fleet::pod_again);
    line(
        "a critical pod changes, and nothing follows",
        &microseconds(pods),
    );
    let losses = fleet.times(0..total, |fleet, node| fleet.report(node, false));
    line(
        "a condition turns False, until the patch is out",
        &microseconds(losses),
    );
    let work = fleet.settle();
    line(
        "the rest of that: answer, watch, event, status",
        &microseconds(share(work.busy, total)),
    );

    let started = fleet.edit(&rule(rules, UNMET));
    line(
        "a rule comes that gates every node: the first wait",
        &seconds(started),
    );
    let work = fleet.settle();
    let gating = started + work.busy;
    line("to gate them all, engine's part", &seconds(gating));
    line(
        "for each of them",
        &microseconds(share(gating, work.patches)),
    );
    line("the longest wait meanwhile", &seconds(work.longest));
    assert_eq!(work.patches, count, "every node is gated once");
}

fn line(what: &str, figure: &str) {
    println!("{what:<56}{figure:>14}");
}

fn seconds(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}

fn microseconds(duration: Duration) -> String {
    format!("{:.1} µs", duration.as_secs_f64() * 1e6)
}

/// The average for one of `count`.
fn share(total: Duration, count: usize) -> Duration {
    total / u32::try_from(count.max(1)).unwrap_or(u32::MAX)
}

/// The engine's work until it was idle.
#[derive(Default)]
struct Work {
    /// The engine's total working time.
    busy: Duration,
    /// The engine's longest uninterrupted working time.
    longest: Duration,
    /// How many patches of nodes it requested.
    patches: usize,
}

/// The engine and the state of its cluster.
struct Fleet {
    engine: Engine,
    rules: usize,
    nodes: Vec<Value>,
    revision: u64,
    began: (Timestamp, Instant),
    /// Simulated time since `began`.
    elapsed: Duration,
    asked: VecDeque<(RequestId, Request)>,
    /// When the watches next confirm that they are current.
    confirm_at: Duration,
}

impl Fleet {
    fn new(count: usize, rules: usize) -> Self {
        let began = (
            "2026-01-01T01:00:00Z".parse().expect("a timestamp"),
            Instant::now(),
        );
        let settings = Settings {
            classes: Config::default().classes().expect("sound defaults"),
            passing_taints: Config::default().passing_taints(),
            publish_conditions: true,
            concurrency: 64,
            rate: None,
            status_node_limit: 20,
            disruption_limits: Limits {
                max_first_gated: NodeShare::Percent(100),
                ..Limits::default()
            },
            ..Settings::default()
        };
        let now = Now {
            wall: began.0,
            monotonic: began.1,
        };
        Self {
            engine: Engine::new(&settings, now),
            rules,
            nodes: (0..count).map(node).collect(),
            revision: 1,
            began,
            elapsed: Duration::ZERO,
            asked: VecDeque::new(),
            confirm_at: Duration::ZERO,
        }
    }

    fn now(&self) -> Now {
        let elapsed = SignedDuration::try_from(self.elapsed).expect("a short time");
        Now {
            wall: self.began.0 + elapsed,
            monotonic: self.began.1 + self.elapsed,
        }
    }

    /// The watches' first lists.
    fn lists(&self) -> Vec<Input> {
        let asked = self.now().monotonic;
        let begins = |watch| Seen::Init(watch, asked);
        let mut shown: Vec<Seen> = vec![begins(Watch::DaemonSets(ComponentGroup::Class(0)))];
        shown.extend((0..PODS).map(|index| {
            Seen::Apply(Object::DaemonSet(
                ComponentGroup::Class(0),
                decode(&daemon_set(index)),
            ))
        }));
        shown.extend([
            Seen::InitDone(Watch::DaemonSets(ComponentGroup::Class(0))),
            begins(Watch::Rules),
        ]);
        let conditions = [REPORTED, CRITICAL].into_iter().cycle();
        for (index, condition) in conditions.take(self.rules).enumerate() {
            shown.push(Seen::Apply(Object::Rule(decode(&rule(index, condition)))));
        }
        shown.extend([
            Seen::InitDone(Watch::Rules),
            begins(Watch::CsiNodes),
            Seen::InitDone(Watch::CsiNodes),
            begins(Watch::Nodes),
        ]);
        let nodes = self.nodes.iter();
        shown.extend(nodes.map(|node| Seen::Apply(Object::Node(decode(node)))));
        shown.extend([
            Seen::InitDone(Watch::Nodes),
            begins(Watch::Pods(ComponentGroup::Class(0))),
        ]);
        for node in 0..self.nodes.len() {
            shown.extend((0..PODS).map(|index| {
                Seen::Apply(Object::Pod(
                    ComponentGroup::Class(0),
                    decode(&pod(node, index)),
                ))
            }));
        }
        shown.push(Seen::InitDone(Watch::Pods(ComponentGroup::Class(0))));
        shown.into_iter().map(Input::Seen).collect()
    }

    /// Gives the engine inputs, queues its requests, and returns how long it worked.
    fn tell(&mut self, inputs: Vec<Input>) -> Duration {
        let now = self.now();
        let started = Instant::now();
        let effects = self.engine.take(inputs, now);
        let took = started.elapsed();
        for effect in effects {
            match effect {
                Effect::Request(id, request) => self.asked.push_back((id, request)),
                Effect::Watch(..) | Effect::Unwatch(_) | Effect::Count(_) => {}
            }
        }
        took
    }

    /// Makes this instance the leader; returns the total and the longest uninterrupted working time.
    fn lead(&mut self) -> (Duration, Duration) {
        let took = self.tell(vec![Input::Leads]);
        let work = self.settle();
        (took + work.busy, took.max(work.longest))
    }

    /// The average time of an event.
    fn times(
        &mut self,
        nodes: std::ops::Range<usize>,
        mut happens: impl FnMut(&mut Self, usize) -> Input,
    ) -> Duration {
        let count = nodes.len();
        let mut busy = Duration::ZERO;
        for node in nodes {
            let input = happens(self, node);
            busy += self.tell(vec![input]);
        }
        share(busy, count)
    }

    /// A kubelet's heartbeat.
    fn heartbeat(&mut self, node: usize) -> Input {
        self.change(node, |node| {
            node["status"]["conditions"][0]["lastHeartbeatTime"] = json!("2026-01-01T00:30:00Z");
        })
    }

    /// An agent reports whether it is ready.
    fn report(&mut self, node: usize, ready: bool) -> Input {
        self.change(node, |node| {
            node["status"]["conditions"][4]["status"] = json!(if ready { "True" } else { "False" });
        })
    }

    fn change(&mut self, node: usize, change: impl FnOnce(&mut Value)) -> Input {
        self.revision += 1;
        change(&mut self.nodes[node]);
        self.nodes[node]["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        Input::Seen(Seen::Apply(Object::Node(decode(&self.nodes[node]))))
    }

    /// An irrelevant change of a critical pod.
    fn pod_again(&mut self, node: usize) -> Input {
        self.revision += 1;
        let mut pod = pod(node, 0);
        pod["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        Input::Seen(Seen::Apply(Object::Pod(
            ComponentGroup::Class(0),
            decode(&pod),
        )))
    }

    /// Adds a rule.
    fn edit(&mut self, rule: &Value) -> Duration {
        let rule = Object::Rule(decode(rule));
        self.tell(vec![Input::Seen(Seen::Apply(rule))])
    }

    /// Answers the engine's requests until it makes no more, and lets time pass for what it delays.
    fn settle(&mut self) -> Work {
        let mut work = Work::default();
        let mut quiet = Duration::ZERO;
        while quiet < REST {
            let mut inputs = self.confirmations();
            if let Some((id, request)) = self.asked.pop_front() {
                // Whether watches are current is asked at rest, too.
                if !matches!(request, Request::ReadVersion(..)) {
                    quiet = Duration::ZERO;
                }
                self.elapsed += Duration::from_micros(100);
                work.patches += usize::from(matches!(request, Request::PatchNode(..)));
                inputs.extend(self.answer(id, request));
            } else if self.engine.next_wake() > Some(self.now().monotonic) {
                quiet += Duration::from_millis(100);
                self.elapsed += Duration::from_millis(100);
            }
            let took = self.tell(inputs);
            work.busy += took;
            work.longest = work.longest.max(took);
        }
        work
    }

    /// The watches' confirmations that they are current: on request, and at intervals.
    fn confirmations(&mut self) -> Vec<Input> {
        if self.elapsed < self.confirm_at {
            return Vec::new();
        }
        self.confirm_at = self.elapsed + BOOKMARKS;
        let watches = [
            Watch::Nodes,
            Watch::CsiNodes,
            Watch::Rules,
            Watch::DaemonSets(ComponentGroup::Class(0)),
            Watch::Pods(ComponentGroup::Class(0)),
        ];
        let shown = watches.map(|watch| Seen::Progress(watch, self.revision));
        shown.into_iter().map(Input::Seen).collect()
    }

    /// The API server's answer, and the watch event that follows.
    fn answer(&mut self, id: RequestId, request: Request) -> Vec<Input> {
        self.revision += 1;
        let version = self.revision.to_string();
        let (answer, shown) = match request {
            Request::PatchNode(name, patch) => {
                let node = &mut self.nodes[index(&name)];
                json_patch::patch(node, &patch).expect("a patch that fits");
                node["metadata"]["resourceVersion"] = json!(version);
                let shown = Seen::Apply(Object::Node(decode(node)));
                (Answer::Node(Box::new(decode(node))), Some(shown))
            }
            Request::PatchNodeStatus(name, patch) => {
                let node = &mut self.nodes[index(&name)];
                let conditions = conditions(node);
                for condition in patch["status"]["conditions"]
                    .as_array()
                    .into_iter()
                    .flatten()
                {
                    conditions.retain(|it| it["type"] != condition["type"]);
                    conditions.push(condition.clone());
                }
                node["metadata"]["resourceVersion"] = json!(version);
                let shown = Seen::Apply(Object::Node(decode(node)));
                (Answer::Node(Box::new(decode(node))), Some(shown))
            }
            Request::PatchRuleStatus(..) | Request::ReadVersion(..) => {
                (Answer::Version(self.revision), None)
            }
            Request::PostEvent { .. } => (Answer::Done, None),
            other => panic!("nothing here asks for {other:?}"),
        };
        let answered = Input::Answered(id, Ok(answer));
        let shown = shown.map(Input::Seen);
        [answered].into_iter().chain(shown).collect()
    }
}

fn name(node: usize) -> String {
    format!("node-{node:06}")
}

fn index(name: &Arc<str>) -> usize {
    let number = name.strip_prefix("node-").and_then(|it| it.parse().ok());
    number.expect("a node's name")
}

/// A node with further fields that real ones have.
fn node(index: usize) -> Value {
    let uid = format!("0c1b5d9e-7c0e-4b0a-8f0e-{index:012}");
    let mut node = objects::node(&name(index), &uid, true);
    let labels = &mut node["metadata"]["labels"];
    labels["topology.kubernetes.io/zone"] = json!(format!("zone-{}", index % 3));
    labels["node.kubernetes.io/instance-type"] = json!("large");
    node["spec"]["taints"] =
        json!([{"key": "example.com/team", "value": "blue", "effect": "NoSchedule"}]);
    let boot = format!("0c1b5d9e-7c0e-4b0a-9f0e-{index:012}");
    node["status"]["nodeInfo"] = json!({"bootID": boot});
    for condition in conditions(&mut node) {
        condition["reason"] = json!("AsItIs");
        condition["message"] = json!("it is as it is");
        condition["lastHeartbeatTime"] = json!("2026-01-01T00:10:00Z");
    }
    node
}

fn conditions(node: &mut Value) -> &mut Vec<Value> {
    let conditions = node["status"]["conditions"].as_array_mut();
    conditions.expect("a node has conditions")
}

/// A critical pod on a node.
fn pod(node: usize, daemon_set: usize) -> Value {
    objects::pod(daemon_set, &format!("{node:06}"), &name(node), true)
}
