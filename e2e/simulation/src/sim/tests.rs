//! The simulation, with a trivial machine: it labels every node it observes, one write each.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use nodegate::condition::{ComponentGroup, Watch};
use nodegate::engine::RequestError;
use nodegate::engine::io::{Effect, Input, Now, Object, Request as Wanted, Seen};
use nodegate::selector::Filter;
use serde_json::json;

use super::actor::Actor;
use super::cluster::{Cluster, Who};
use super::fault::{Fault, Incident, Side};
use super::law::{Law, Moment};
use super::machine::Machine;
use super::rng::Rng;
use super::run::{Outcome, judged_run};
use super::scenario::Scenario;
use super::settings::{Settings, usual};
use super::time::{Time, ms, s, wall};
use crate::{Key, Kind, Part, Patch, Request};

const LABEL: &str = "seen";

/// All inputs of the machines of all instances and lives, with the times on their clocks.
type Diary = Rc<RefCell<Vec<(Now, String)>>>;

#[derive(Default)]
struct Labeller {
    diary: Diary,
    leads: bool,
    synced: usize,
    /// The observed nodes without a label.
    bare: Vec<String>,
    asked: u64,
    has_begun: bool,
    next: Option<Instant>,
    under_way: Option<(u64, String)>,
}

impl Machine for Labeller {
    fn take(&mut self, inputs: Vec<Input>, now: Now) -> Vec<Effect> {
        let mut effects = Vec::new();
        if !self.has_begun {
            self.has_begun = true;
            let watches = [
                Watch::Nodes,
                Watch::CsiNodes,
                Watch::Rules,
                Watch::Pods(ComponentGroup::Class(0)),
                Watch::DaemonSets(ComponentGroup::Class(0)),
            ];
            effects.extend(watches.map(|watch| {
                let is_pods = matches!(watch, Watch::Pods(_));
                let bound = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";
                let scope = Filter {
                    fields: is_pods.then(|| bound.into()),
                    ..Filter::default()
                };
                Effect::Watch(watch, scope)
            }));
        }
        for input in inputs {
            self.diary.borrow_mut().push((now, told(&input)));
            match input {
                Input::Leads => self.leads = true,
                Input::Seen(Seen::InitDone(..)) => self.synced += 1,
                Input::Seen(Seen::Apply(Object::Node(node))) => {
                    let node = node.read().expect("a node");
                    let name = node.name.to_string();
                    self.bare.retain(|it| *it != name);
                    if !node.labels.contains_key(LABEL) {
                        self.bare.push(name);
                    }
                }
                Input::Answered(..) => self.under_way = None,
                _ => {}
            }
        }
        self.next = Some(now.monotonic + s(1));
        if self.leads && self.under_way.is_none() && !self.bare.is_empty() {
            let name = self.bare.remove(0);
            self.asked += 1;
            let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {LABEL: "yes"}}]);
            let request = Wanted::PatchNode(
                name.as_str().into(),
                serde_json::from_value(patch).expect("a patch"),
            );
            self.under_way = Some((self.asked, name));
            effects.push(Effect::Request(self.asked, request));
        }
        effects
    }

    fn next_wake(&self) -> Option<Instant> {
        self.next
    }

    fn has_synced(&self) -> bool {
        self.synced >= 5
    }

    fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }
}

fn told(input: &Input) -> String {
    match input {
        Input::Seen(Seen::Apply(Object::Node(node))) => {
            let node = node.clone().read().expect("a node");
            format!("{} with {}", node.name, node.labels.len())
        }
        Input::Seen(Seen::Delete(Object::Node(_))) => "a node is gone".into(),
        Input::Seen(Seen::InitDone(watch)) => format!("InitDone({watch:?})"),
        Input::Seen(Seen::Init(watch, _)) => format!("Init({watch:?})"),
        Input::Seen(seen) => format!("{seen:?}"),
        Input::Answered(_, Ok(_)) => "done".into(),
        Input::Answered(_, Err(RequestError::TimedOut(_))) => "no answer".into(),
        Input::Answered(_, Err(error)) => format!("{error:?}"),
        other => format!("{other:?}"),
    }
}

/// Creates four nodes, one every five seconds, and changes each once a moment later.
struct Maker(usize);

impl Maker {
    const NAME: &'static str = "maker";

    fn at(step: usize) -> Time {
        let steps = u64::try_from(step / 2).expect("a small number");
        s(5) * u32::try_from(steps + 1).expect("a small number")
            + ms(300) * u32::from(step % 2 == 1)
    }
}

impl Actor for Maker {
    fn wake(&self) -> Option<Time> {
        (self.0 < 8).then(|| Self::at(self.0))
    }

    fn act(&mut self, cluster: &mut Cluster, _rng: &mut Rng) {
        let key = Key::cluster(Kind::Node, &format!("n{}", self.0 / 2));
        let request = if self.0.is_multiple_of(2) {
            let object = json!({});
            Request::Create { key, object }
        } else {
            let patch = Patch::Merge(json!({"spec": {"unschedulable": true}}));
            let part = Part::Main;
            Request::Patch { key, part, patch }
        };
        assert!(cluster.request(Who::Actor(Self::NAME), &request).is_ok());
        self.0 += 1;
    }
}

const ALONE: Scenario = Scenario {
    title: "alone: one instance labels four nodes",
    instances: 1,
    settings: usual,
    brake: None,
    lasts: s(30),
    settles: s(30),
    build: |it| it.acts(Maker(0)),
};
const TWO: Scenario = Scenario {
    instances: 2,
    ..ALONE
};

struct Labelled;

impl Law for Labelled {
    fn finally(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        let mut nodes = moment.cluster.objects(Kind::Node);
        let bare = nodes.find(|(_, node)| node["metadata"]["labels"][LABEL].is_null());
        bare.map_or(Ok(()), |(key, _)| Err(key.to_string()))
    }
}

struct Run {
    outcome: Outcome,
    diary: Vec<(Now, String)>,
}

impl Run {
    fn new(scenario: &Scenario, seed: u64, faults: &[Fault]) -> Self {
        let diary = Diary::default();
        let start = |_: &Settings, now: Now| {
            let machine = Labeller {
                diary: diary.clone(),
                next: Some(now.monotonic),
                ..Labeller::default()
            };
            Box::new(machine) as Box<dyn Machine>
        };
        let outcome = judged_run(
            scenario,
            seed,
            faults,
            &start,
            vec![("every node is labelled", Box::new(Labelled))],
            false,
        );
        let diary = diary.borrow().clone();
        Self { outcome, diary }
    }

    /// A run that breaks no law.
    fn fine(scenario: &Scenario, seed: u64, faults: &[Fault]) -> Self {
        let run = Self::new(scenario, seed, faults);
        assert_eq!(run.outcome.violation, None);
        run
    }

    fn count(&self, what: &str) -> usize {
        self.diary.iter().filter(|(_, told)| told == what).count()
    }

    /// When the machines first received this input, by the wall clock, since the beginning.
    fn first(&self, what: &str) -> Option<Time> {
        self.first_after(Time::ZERO, what)
    }

    /// When the machines first received this input after a time.
    fn first_after(&self, after: Time, what: &str) -> Option<Time> {
        let entries = self.diary.iter().filter(|(_, told)| told == what);
        let mut times = entries.map(|(now, _)| now.wall.duration_since(wall(Time::ZERO)));
        times.find_map(|time| Time::try_from(time).ok().filter(|time| *time > after))
    }
}

fn kill(instance: usize, write: usize, side: Side, down: Time) -> Fault {
    Fault::Kill {
        instance,
        write,
        side,
        down,
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    let faults = [
        kill(0, 1, Side::After, s(2)),
        Incident::Stale(Watch::Nodes).at(s(12), s(30)),
    ];
    let run = |seed| Run::new(&TWO, seed, &faults).outcome;
    let (one, again, other) = (run(1), run(1), run(2));
    assert_eq!(one.violation, None);
    assert_eq!(one.digest(), again.digest());
    assert_ne!(one.digest(), other.digest());
    assert_eq!((one.writes, one.events), (again.writes, again.events));
}

#[test]
fn without_faults_each_node_is_written_once() {
    let run = Run::fine(&ALONE, 1, &[]);
    assert_eq!(run.outcome.writes, [4]);
    // Each is created, changed and labelled.
    assert_eq!(run.outcome.events[&(0, Watch::Nodes)], 12);
    assert_eq!(run.count("Init(Nodes)"), 1);
    assert_eq!(run.count("done"), 4);
}

#[test]
fn a_process_dies_before_or_after_its_write() {
    let before = Run::fine(&ALONE, 1, &[kill(0, 1, Side::Before, s(2))]);
    assert_eq!(before.outcome.writes, [5], "one that never arrived");
    assert_eq!(before.outcome.cluster.changes().len(), 12);
    assert_eq!(before.count("Init(Nodes)"), 2);

    let after = Run::fine(&ALONE, 1, &[kill(0, 1, Side::After, s(2))]);
    assert_eq!(after.outcome.writes, [4]);
    assert_eq!(after.count("done"), 3, "the answer came too late");
    assert_eq!(after.count("Init(Nodes)"), 2);
}

#[test]
fn an_answer_is_lost_whether_the_write_was_carried_out_or_not() {
    for (done, writes) in [(true, 4), (false, 5)] {
        let lost = Fault::AnswerLost {
            instance: 0,
            write: 3,
            done,
        };
        let run = Run::fine(&ALONE, 1, &[lost]);
        assert_eq!(run.outcome.writes, [writes]);
        assert_eq!((run.count("done"), run.count("no answer")), (writes - 1, 1));
        let end = run.first("no answer").expect("it is told");
        assert!(end > s(30) && end < s(32), "{end:?}");
    }
}

#[test]
fn a_watch_that_stands_still_shows_nothing_and_then_everything() {
    let still = Incident::Stale(Watch::Nodes).at(s(9), s(40));
    let run = Run::fine(&ALONE, 1, &[still]);
    assert!(run.first("n0 with 0") < Some(s(6)));
    assert!(run.first("n1 with 0") > Some(s(49)));
    assert_eq!(run.count("Init(Nodes)"), 1, "it goes on from where it was");
}

#[test]
fn a_connection_that_dies_without_a_word_is_given_up_after_a_while() {
    let dead = Incident::SilentDeath(Watch::Nodes).at(s(9), s(0));
    let run = Run::fine(&ALONE, 1, &[dead]);
    let seen = run.first("n1 with 0").expect("it is seen");
    assert!(seen > s(15) && seen < s(32), "{seen:?}");
}

#[test]
fn an_expired_watch_starts_again_with_a_list() {
    let expired = Incident::Expired(Watch::Nodes).at(s(12), s(0));
    let run = Run::fine(&ALONE, 1, &[expired]);
    assert_eq!(run.count("Init(Nodes)"), 2);
    assert_eq!(run.count("InitDone(Nodes)"), 2);
}

#[test]
fn an_event_and_its_successor_are_never_seen() {
    // The first of each node's three events.
    let unseen = Fault::Unobserved {
        instance: 0,
        watch: Watch::Nodes,
        event: 3,
    };
    let run = Run::fine(&ALONE, 1, &[unseen]);
    assert_eq!(run.count("Init(Nodes)"), 2);
    let seen = run.first("n1 with 0").expect("the list shows it");
    assert!(seen > s(10) + ms(300), "after it was touched: {seen:?}");
}

#[test]
fn a_clock_step_and_a_suspension_move_a_process_clocks_apart() {
    let faults = [
        Incident::ClockStep(0, 3600).at(s(10), s(0)),
        Incident::Suspend(0).at(s(20), s(7)),
    ];
    let run = Run::fine(&ALONE, 1, &faults);
    let ((first, _), (last, _)) = (&run.diary[0], &run.diary[run.diary.len() - 1]);
    let wall = Time::try_from(last.wall.duration_since(first.wall)).expect("it went on");
    let monotonic = last.monotonic - first.monotonic;
    assert_eq!(wall + ms(1), monotonic + s(3607));
}

#[test]
fn a_follower_takes_over_and_a_deceived_leader_leads_beside_it_for_a_while() {
    let quiet = Run::fine(&TWO, 1, &[]);
    assert!(quiet.outcome.writes.contains(&0), "one leads");
    let leader = usize::from(quiet.outcome.writes[0] == 0);

    let death = kill(leader, 1, Side::Before, s(60));
    let run = Run::fine(&TWO, 1, &[death]);
    assert_eq!(run.outcome.writes[leader], 2);
    assert_eq!(run.outcome.writes[1 - leader], 3);

    let betrayal = Incident::TwoLeaders.at(s(12), s(30));
    let run = Run::new(&TWO, 2, &[betrayal]);
    assert_eq!(
        run.outcome.writes.iter().filter(|it| **it > 0).count(),
        2,
        "both write"
    );
}

#[test]
fn a_partitioned_leader_loses_the_lease() {
    let quiet = Run::new(&TWO, 1, &[]);
    let leader = usize::from(quiet.outcome.writes[0] == 0);
    let cut = Incident::Partition(leader).at(s(9), s(60));
    let run = Run::fine(&TWO, 1, &[cut]);
    assert_eq!(run.outcome.writes[leader], 1);
    assert_eq!(run.outcome.writes[1 - leader], 3);
}
