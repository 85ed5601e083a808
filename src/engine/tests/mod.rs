//! Tests of the engine as a whole: watch events and answers go in; requests, Events and counts come out.
//!
//! The simulation tests the safety of nodes under any failure. These tests cover what it has no law for: Events and counts,
//! statuses of rules, and the order of writes.

mod absences;
mod bounds;
mod claims;
mod cluster;
mod components;
mod conditions;
mod figures;
mod first_gating;
mod freshness;
mod holds;
mod kept;
mod kubelets;
mod lives;
mod named;
mod nodes;
mod order;
mod rules;
mod terms;
mod told;
mod writes;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::count::{Count, RuleCount};
use super::io::{Answer, Effect, Input, Now, Request, RequestId, Seen};
use super::survey::{Gauge, RULE_NODES};
use super::{Engine, Rate, RequestError, Settings};
use crate::testing::{Builder, NodeBuilder, RuleBuilder, at};
use cluster::{Cluster, object};
use nodegate_core::api::NodeShare;
use nodegate_core::condition::Watch;
use nodegate_core::config::Config;
use nodegate_core::guard::Limits;
use nodegate_core::selector::Filter;

/// The error with which a request is refused, if it is.
type Refusal = fn(&Request) -> Option<RequestError>;

/// How often in a row the engine may make requests right after an answer.
const RESTLESS: usize = 1000;

/// Something that happens outside the engine.
type Happening = fn(&mut Bench);

/// A leading, synced engine and a simulated API server, which answers each request at once unless it is refused or held up.
struct Bench {
    engine: Engine,
    now: Now,
    began: Instant,
    cluster: Cluster,
    refusal: Refusal,
    /// The number of refused requests.
    refused: usize,
    /// Which requests are answered only by [`Bench::answers`].
    held_up: fn(&Request) -> bool,
    /// The requests that are held up.
    pending: Vec<(RequestId, Request)>,
    watches: Vec<Watch>,
    /// Watches of what rules name. They join `watches` in [`Bench::lists`], those of classes and `CSINode`s at once.
    begun: BTreeMap<Watch, Filter>,
    /// The watches that show nothing by themselves, however often they are started again.
    silent: Vec<Watch>,
    /// The watches that are to list again.
    restarted: Vec<Watch>,
    /// How often the engine has started a watch again.
    restarts: usize,
    /// A description of each request.
    asked: Vec<String>,
    /// The reason, object and note of each Event.
    told: Vec<String>,
    /// The same for nodes that are held for long.
    held: Vec<String>,
    /// The reason and type of each Event.
    types: Vec<[&'static str; 2]>,
    counted: Vec<Count>,
}

/// The configuration of these tests.
fn settings() -> Settings {
    Settings {
        classes: Config::default().classes().unwrap(),
        passing_taints: Config::default().passing_taints(),
        publish_conditions: true,
        enable_karpenter: false,
        watch_csi_nodes: false,
        concurrency: 64,
        rate: None,
        status_node_limit: 10,
        disruption_limits: Limits {
            max_first_gated: NodeShare::Percent(100),
            ..Limits::default()
        },
    }
}

/// One value of the monotonic clock in every run, where an instant prints as the seconds and nanoseconds of the system's clock.
fn beginning() -> Instant {
    let now = Instant::now();
    let printed = format!("{now:?}");
    let mut fields = printed.split(|it: char| !it.is_ascii_digit());
    let mut number = || fields.find_map(|it| it.parse().ok());
    let since = number().zip(number());
    let since = since.map(|(seconds, nanoseconds)| {
        Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
    });
    let zero = since.and_then(|since| now.checked_sub(since));
    zero.map_or(now, |zero| zero + Duration::from_secs(1_000_000))
}

/// The watches that an engine asks for first: those that it cannot do without.
fn first_watches(engine: &mut Engine, now: Now) -> Vec<Watch> {
    let effects = engine.take([], now).into_iter();
    let watches = effects.map(|effect| match effect {
        Effect::Watch(watch, _) => watch,
        other => panic!("{other:?}"),
    });
    watches.collect()
}

/// Whether the watch is of what rules name.
fn is_named(watch: Watch) -> bool {
    watch.group().is_some_and(|group| group.class().is_none())
}

impl Bench {
    /// A new bench that sees these rules and nodes at [`at`]`(100)`, after its first reaction.
    fn new(rules: &[RuleBuilder], nodes: &[NodeBuilder]) -> Self {
        Self::refusing(rules, nodes, |_| None)
    }

    /// The same, with refusals from the start.
    fn refusing(rules: &[RuleBuilder], nodes: &[NodeBuilder], refusal: Refusal) -> Self {
        let mut bench = Self::of(&settings());
        bench.refusal = refusal;
        bench.begin(rules, nodes);
        bench
    }

    /// A bench with these settings, which has seen nothing yet. Its clocks begin at the same time in every run: a pause's jitter
    /// is seeded from it.
    fn of(settings: &Settings) -> Self {
        let now = Now {
            wall: at(100),
            monotonic: beginning(),
        };
        let mut engine = Engine::new(settings, now);
        Self {
            watches: first_watches(&mut engine, now),
            engine,
            begun: BTreeMap::new(),
            now,
            began: now.monotonic,
            cluster: Cluster::default(),
            refusal: |_| None,
            refused: 0,
            held_up: |_| false,
            pending: Vec::new(),
            silent: Vec::new(),
            restarted: Vec::new(),
            restarts: 0,
            asked: Vec::new(),
            told: Vec::new(),
            types: Vec::new(),
            held: Vec::new(),
            counted: Vec::new(),
        }
    }

    /// The engine becomes the leader, and every watch lists.
    fn begin(&mut self, rules: &[RuleBuilder], nodes: &[NodeBuilder]) {
        let rules = rules
            .iter()
            .map(|it| (Watch::Rules, it.clone().json().clone()));
        let nodes = nodes
            .iter()
            .map(|it| (Watch::Nodes, it.clone().json().clone()));
        for (watch, object) in rules.chain(nodes) {
            self.cluster.put(watch, object);
        }
        let mut inputs = vec![Input::Leads];
        inputs.extend(self.listed());
        self.take(inputs);
    }

    fn listed(&self) -> Vec<Input> {
        self.lists_of(&self.watches)
    }

    /// A watch that the engine started lists.
    fn lists(&mut self, watch: Watch) {
        assert!(self.begun.contains_key(&watch), "{watch:?}");
        self.watches.push(watch);
        let inputs = self.lists_of(&[watch]);
        self.take(inputs);
    }

    /// These watches list everything.
    fn lists_of(&self, watches: &[Watch]) -> Vec<Input> {
        let watches = || watches.iter().copied();
        let all = watches().flat_map(|watch| {
            let objects = self.cluster.all(watch);
            objects.map(move |json| Seen::Apply(object(watch, json)))
        });
        let (asked, version) = (self.now.monotonic, self.cluster.version());
        let begin = watches().map(move |watch| Seen::Init(watch, asked));
        let seen = begin.chain(all).chain(watches().map(Seen::InitDone));
        let seen = seen.chain(watches().map(move |watch| Seen::Progress(watch, version)));
        seen.map(Input::Seen).collect()
    }

    fn shows(&mut self, watch: Watch, mut json: Value) {
        let name = json["metadata"]["name"].as_str().unwrap();
        if let Some(known) = self
            .cluster
            .get(watch, name)
            .filter(|_| watch == Watch::Rules)
        {
            json["status"] = known["status"].clone();
        }
        let json = self.cluster.put(watch, json);
        let seen = Seen::Apply(object(watch, json));
        self.take(vec![Input::Seen(seen)]);
    }

    /// The watch shows that an object is deleted.
    fn shows_gone(&mut self, watch: Watch, name: &str) {
        let json = self.cluster.remove(watch, name);
        self.take(vec![Input::Seen(Seen::Delete(object(watch, &json)))]);
    }

    fn sees(&mut self, node: &NodeBuilder) {
        self.shows(Watch::Nodes, node.clone().json().clone());
    }

    fn gone(&mut self, name: &str) {
        self.shows_gone(Watch::Nodes, name);
    }

    fn sees_rule(&mut self, rule: &RuleBuilder) {
        self.shows(Watch::Rules, rule.clone().json().clone());
    }

    /// Someone else changes a node.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut node = self.node(name).clone();
        change(&mut node);
        self.shows(Watch::Nodes, node);
    }

    /// Time passes, and the watches stay current.
    fn wait(&mut self, milliseconds: u64) {
        let until = self.now.monotonic + Duration::from_millis(milliseconds);
        while self.now.monotonic < until {
            let wake = self
                .engine
                .next_wake()
                .map_or(until, |wake| wake.min(until));
            self.now.monotonic = wake.max(self.now.monotonic + Duration::from_millis(1));
            self.now.wall = at(100)
                .checked_add(self.now.monotonic - self.began)
                .unwrap();
            let confirmed = self.confirmed();
            self.take(confirmed);
        }
    }

    /// What the watches show by themselves: how far they are, or everything.
    fn confirmed(&mut self) -> Vec<Input> {
        let (silent, version) = (&self.silent, self.cluster.version());
        let is_silent = |watch: &Watch| silent.contains(watch);
        let watches = self.watches.iter().filter(|it| !is_silent(it));
        let progress: Vec<_> = watches
            .map(|watch| Input::Seen(Seen::Progress(*watch, version)))
            .collect();
        let (waiting, listed) = self.restarted.iter().partition(|it| is_silent(it));
        self.restarted = waiting;
        let listed: Vec<Watch> = listed;
        progress.into_iter().chain(self.lists_of(&listed)).collect()
    }

    /// Takes in inputs, and executes all requests that follow at this time.
    fn take(&mut self, mut inputs: Vec<Input>) {
        for _ in 0..RESTLESS {
            let effects = self.engine.take(inputs.drain(..), self.now);
            for effect in effects {
                match effect {
                    Effect::Request(id, request) if (self.held_up)(&request) => {
                        self.pending.push((id, request));
                    }
                    Effect::Request(id, request) => {
                        let answer = self.answer(request);
                        inputs.push(Input::Answered(id, answer));
                    }
                    Effect::Watch(watch, _) if self.watches.contains(&watch) => {
                        self.restarts += 1;
                        self.restarted.retain(|it| *it != watch);
                        self.restarted.push(watch);
                    }
                    Effect::Watch(watch, _) if !is_named(watch) => {
                        self.watches.push(watch);
                        inputs.extend(self.lists_of(&[watch]));
                    }
                    Effect::Watch(watch, scope) => {
                        let known = self.begun.insert(watch, scope);
                        assert_eq!(known, None, "a watch is begun once");
                    }
                    Effect::Unwatch(watch) => {
                        let known = self.begun.remove(&watch);
                        let was_begun = known.is_some() || !is_named(watch);
                        assert!(was_begun, "only what was begun is ended");
                        self.watches.retain(|it| *it != watch);
                        self.restarted.retain(|it| *it != watch);
                    }
                    Effect::Count(count) => self.counted.push(count),
                }
            }
            if inputs.is_empty() {
                return;
            }
        }
        panic!("it does not come to rest; last: {:?}", self.asked.last());
    }

    /// Answers the requests that are held up.
    fn answers(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let answered = pending
            .into_iter()
            .map(|(id, request)| Input::Answered(id, self.answer(request)))
            .collect();
        self.take(answered);
    }

    fn answer(&mut self, request: Request) -> Result<Answer, RequestError> {
        if let Some(error) = (self.refusal)(&request) {
            self.refused += 1;
            return Err(error);
        }
        if let Request::ReadVersion(..) = &request {
            return Ok(Answer::Version(self.cluster.version()));
        }
        if let Request::PostEvent { notice, .. } = &request {
            let (reason, name) = (notice.topic.reason, &notice.about.name);
            let kind = notice.about.kind.kind();
            assert!(notice.topic.on.contains(kind), "{notice:?}");
            let names_rule = ["NodeHeld", "AddTaintError", "RemoveTaintError"].contains(&reason);
            assert_eq!(notice.related.is_some(), names_rule, "{notice:?}");
            let told = format!("{reason} {name}: {}", notice.note);
            self.types.push([reason, notice.kind]);
            match reason {
                "NodeHeld" => self.held.push(told),
                _ => self.told.push(told),
            }
            return Ok(Answer::Done);
        }
        let (asked, answer) = self.cluster.answer(request);
        self.asked.push(asked);
        answer
    }

    /// The Events since the last call.
    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }

    /// The requests since the last call.
    fn asked(&mut self) -> Vec<String> {
        std::mem::take(&mut self.asked)
    }

    /// The counts since the last call, except evaluations, node startups and spared status writes.
    fn counted(&mut self) -> Vec<String> {
        let counted = std::mem::take(&mut self.counted);
        let of_note = counted.into_iter().filter_map(|count| match count {
            Count::StatusSpared | Count::StatusCoalesced => None,
            Count::EventDropped => Some("EventDropped".to_owned()),
            Count::Rule(rule, count) => match count {
                RuleCount::Evaluated
                | RuleCount::StartedUp(_)
                | RuleCount::Unmet { is_new: false, .. } => None,
                RuleCount::Changed(change) => Some(format!("{:?} {rule}", change.kind)),
                RuleCount::BootstrapCompleted { since, .. } => {
                    let since = since.map(|since| since.duration_since(at(0)).as_secs());
                    Some(format!("BootstrapCompleted {rule} since {since:?}"))
                }
                RuleCount::Unmet { condition, .. } => {
                    Some(format!("TurnedUnmet {rule} {condition}"))
                }
                RuleCount::Failed(reason) => Some(format!("{reason} {rule}")),
                other => Some(format!("{other:?} {rule}")),
            },
        });
        of_note.collect()
    }

    fn taints(&self, node: &str) -> Vec<&str> {
        let taints = self.node(node)["spec"]["taints"].as_array();
        let keys = taints.into_iter().flatten();
        keys.map(|taint| taint["key"].as_str().unwrap()).collect()
    }

    fn node(&self, name: &str) -> &Value {
        self.cluster.get(Watch::Nodes, name).unwrap()
    }

    fn rule(&self, name: &str) -> &Value {
        self.cluster.get(Watch::Rules, name).unwrap()
    }

    fn status(&self, rule: &str) -> &Value {
        &self.rule(rule)["status"]
    }

    /// The values of a gauge whose labels begin with these, in whole numbers.
    fn readings(&self, gauge: &Gauge, labels: &[&str]) -> Vec<(Vec<String>, usize)> {
        let survey = self.engine.survey(self.now).readings.into_iter();
        let found = survey.filter(|it| it.gauge == gauge.name);
        let found = found.filter(|it| it.labels.iter().zip(labels).all(|(a, b)| a == b));
        let whole = |value: f64| value.floor().to_string().parse().unwrap();
        found.map(|it| (it.labels, whole(it.value))).collect()
    }

    /// The value of a gauge with these labels.
    fn gauge(&self, gauge: &Gauge, labels: &[&str]) -> Option<usize> {
        let found = self.readings(gauge, labels);
        assert!(found.len() <= 1, "{found:?}");
        found.first().map(|it| it.1)
    }

    /// The nodes that a rule holds, and those that it has released.
    fn held_and_released(&self, rule: &str) -> [Option<usize>; 2] {
        ["held", "released"].map(|state| self.gauge(&RULE_NODES, &[rule, state]))
    }

    /// How many nodes the guard of rule `r` knows as met and as unmet, and how many it holds back.
    fn guarded(&self) -> (usize, usize, usize) {
        let guard = self.engine.rules.works["r-uid"].guard.as_ref();
        let report = guard.unwrap().report();
        let met = report.zones.iter().map(|zone| zone.met).sum();
        (met, report.unmet, report.waiting)
    }
}
