//! One run: a cluster of a given size, the limit, the controller, and the phases one after another.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::{Client, ResourceExt};
use tokio::time::{Instant, sleep};

use crate::load::{self, AT_ONCE};
use crate::measure::Latencies;
use crate::plan::{Phase, Plan};
use crate::requests::{self, Counts, Requests};
use crate::results::{Outcome, Run};
use crate::subject::{Recipe, Subject, Usage, cpu_of};
use crate::view::View;
use crate::world::{Gate, World};
use testkit::nodegate::Cluster;
use testkit::nodegate::Options;
use testkit::nodegate::fixtures::rules;
use testkit::nodegate::install::{CONTROLLER, NAMESPACE, SERVICE_ACCOUNT};
use testkit::nodegate::state;

/// The controller is quiet after this long without a write: longer than it may delay a rule's status.
const QUIET: Duration = Duration::from_secs(2);

/// How long it may take to become quiet.
const REST: Duration = Duration::from_secs(300);

/// How long a controller may take until it watches the nodes.
const STARTUP: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(50);

/// How many faults of a kind to list by name.
const EXAMPLES: usize = 3;

/// The parts of a measurement. Fields drop in order: the cluster goes last.
pub(crate) struct Bench<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) client: Client,
    pub(crate) view: View,
    pub(crate) world: World,
    pub(crate) at_once: usize,
    /// A client with the controller's account.
    pub(crate) controller: Client,
    /// The process ID of the API server.
    pub(crate) api_server: u32,
    /// The current generation of pods of the first critical `DaemonSet`.
    pub(crate) generation: u32,
    recipe: &'a Recipe,
    requests: Requests,
    subject: Option<Subject>,
    /// How often the controller was started.
    starts: u32,
    cluster: Cluster,
}

/// The observations of a phase.
#[derive(Default)]
pub(crate) struct Seen {
    /// The number of expected taint changes.
    pub changes: usize,
    /// The times of those that happened.
    pub latencies: Vec<Duration>,
    /// The times until the client observed each cause that it had written, where one node changes at a time.
    pub own: Vec<Duration>,
    /// From the first cause to the last effect.
    pub wall: Duration,
    /// What was wrong at the end.
    pub faults: Vec<String>,
}

/// The state of the agent's rule and its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Every agent is ready and no node is tainted.
    Released,
    /// No agent is ready and every node is tainted.
    Held,
}

/// Measures a controller with this many nodes.
pub async fn run(plan: &Plan, recipe: &Recipe, nodes: usize, tell: impl Fn(&str)) -> Result<Run> {
    let options = Options {
        audit: true,
        audited_user: Some(CONTROLLER),
        reuse: false,
        ..Options::api_only()
    };
    let cluster = Cluster::start(options).await?;
    cluster.install().await?;
    recipe.permit(&cluster).await?;
    let client = cluster.client().await?;
    let version = client.apiserver_version().await;
    let kubernetes = version
        .context("asking for the API server's version")?
        .git_version;
    let view = View::open(&client);
    let begun = Instant::now();
    let world = World::create(&client, nodes).await?;
    let all_seen = view.until(STARTUP, |sights| sights.nodes.len() == nodes);
    ensure!(all_seen.await, "the nodes did not show up in the watch");
    tell(&format!(
        "world: made in {:.1} s",
        begun.elapsed().as_secs_f64()
    ));
    let account = cluster.kubeconfig_for_service_account(NAMESPACE, SERVICE_ACCOUNT);
    let mut bench = Bench {
        plan,
        controller: cluster.client_for(&account.await?).await?,
        api_server: cluster.pids()["kube-apiserver"],
        generation: 1,
        client,
        view,
        world,
        at_once: AT_ONCE,
        recipe,
        requests: Requests::of(cluster.audit_log_path()),
        subject: None,
        starts: 0,
        cluster,
    };
    bench.at_once = bench.fastest().await?;
    tell(&format!(
        "limit: the client is fastest with {} writes at a time",
        bench.at_once
    ));
    let tell_of = |outcome: &Outcome| tell(&crate::results::line(outcome));
    let outcomes = bench.all_phases(tell_of).await?;
    if let Some(subject) = bench.subject.take() {
        subject.stop().await?;
    }
    Ok(Run {
        nodes,
        kubernetes,
        outcomes,
    })
}

impl Bench<'_> {
    /// Measures all phases, those with a limit first and several times.
    async fn all_phases(&mut self, tell_of: impl Fn(&Outcome)) -> Result<Vec<Outcome>> {
        let (limited, other): (Vec<Phase>, Vec<Phase>) =
            self.plan.phases.iter().partition(|phase| phase.has_limit());
        let mut rounds: BTreeMap<Phase, Vec<Outcome>> = BTreeMap::new();
        let times = match limited.as_slice() {
            [] => 0,
            _ => self.plan.rounds(self.world.members.len()),
        };
        for _ in 0..times {
            if let Some(subject) = self.subject.take() {
                subject.stop().await?;
            }
            let mut limits = self.limits().await?;
            if limited.contains(&Phase::Rollout) {
                limits.insert(Phase::Rollout, self.rollout_by_client().await?);
            }
            self.start_controller().await?;
            for phase in &limited {
                let mut outcome = self.measure(*phase).await?;
                outcome.limit = limits.remove(phase);
                tell_of(&outcome);
                rounds.entry(*phase).or_default().push(outcome);
            }
            self.remove_rules().await?;
        }
        let mut outcomes: Vec<Outcome> = rounds.into_values().filter_map(median).collect();
        if self.subject.is_none() {
            self.start_controller().await?;
        }
        for phase in other {
            let outcome = self.measure(phase).await?;
            tell_of(&outcome);
            outcomes.push(outcome);
        }
        outcomes.sort_by_key(|outcome| outcome.phase);
        Ok(outcomes)
    }

    /// Measures one phase, and its cost until the controller is quiet again.
    async fn measure(&mut self, phase: Phase) -> Result<Outcome> {
        self.prepare(phase).await?;
        self.rest().await?;
        let requests = self.requests.so_far()?.clone();
        let (starts, before) = (self.starts, self.usage()?);
        let api_server = cpu_of(self.api_server)?;
        let seen = match phase {
            Phase::Gate => self.gate().await,
            Phase::Release => self.release().await,
            Phase::Single => self.flip().await,
            Phase::Churn => self.flip_under_churn().await,
            Phase::Idle => self.idle().await,
            Phase::Restart => self.restart().await,
            Phase::CatchUp => self.catch_up().await,
            Phase::Delete => self.delete().await,
            Phase::Joins => self.joins().await,
            Phase::Rollout => self.rollout().await,
        };
        let seen = seen.with_context(|| format!("measuring {}", phase.name()))?;
        let rule = rules(&self.client)
            .get_opt(phase.gate().rule_name())
            .await?;
        let mut faults = seen.faults;
        if phase != Phase::Idle && !self.rest().await? {
            faults.push(format!("the controller still writes after {REST:?}"));
        }
        let after = self.usage()?;
        let used = if self.starts == starts {
            after.cpu.saturating_sub(before.cpu)
        } else {
            after.cpu
        };
        Ok(Outcome {
            phase,
            changes: seen.changes,
            missed: seen.changes - seen.latencies.len(),
            wall: seen.wall.as_secs_f64(),
            limit: None,
            latencies: Latencies::of(seen.latencies),
            own: Latencies::of(seen.own),
            requests: requests::since(&requests, self.requests.so_far()?),
            cpu: used.as_secs_f64(),
            api_server_cpu: cpu_of(self.api_server)?
                .saturating_sub(api_server)
                .as_secs_f64(),
            peak_memory: after.peak_memory,
            rule_bytes: rule.and_then(|rule| Some(serde_json::to_vec(&rule).ok()?.len())),
            faults,
        })
    }

    async fn prepare(&mut self, phase: Phase) -> Result<()> {
        match phase {
            // The first rule makes the API server compile the CRD's validation, which is not the controller's cost.
            Phase::Gate => Gate::Agent.rule().try_out(&self.client).await,
            Phase::Single | Phase::Churn | Phase::Idle => self.bring(State::Released).await,
            Phase::Release | Phase::Restart | Phase::CatchUp | Phase::Delete => {
                self.bring(State::Held).await
            }
            Phase::Joins | Phase::Rollout => {
                self.remove_rules().await?;
                phase.gate().rule().create(&self.client).await?;
                Ok(())
            }
        }
    }

    /// Whether a gate's rule is there.
    pub(crate) async fn has_rule(&self, gate: Gate) -> Result<bool> {
        let rules = rules(&self.client);
        Ok(rules.get_opt(gate.rule_name()).await?.is_some())
    }

    /// Removes the rules that phases have left behind, and their taints.
    async fn remove_rules(&mut self) -> Result<()> {
        for gate in [Gate::Agent, Gate::Startup, Gate::Critical] {
            if self.has_rule(gate).await? {
                self.remove(gate).await?;
                self.rest().await?;
            }
        }
        Ok(())
    }

    /// Brings the agent's rule and the nodes into this state, if necessary.
    async fn bring(&self, state: State) -> Result<()> {
        let ready = state == State::Released;
        let stale: Vec<String> = self.view.look(|sights| {
            let nodes = sights.nodes.iter();
            nodes
                .filter(|(_, node)| node.agent.is != ready)
                .map(|(name, _)| name.clone())
                .collect()
        });
        load::each(AT_ONCE, &stale, async |node| {
            load::set_agent(&self.client, node, ready).await
        })
        .await?;
        if !self.has_rule(Gate::Agent).await? {
            Gate::Agent.rule().create(&self.client).await?;
        }
        let tainted = if ready { 0 } else { self.world.members.len() };
        let settled = self.view.until(self.plan.patience, |sights| {
            sights.tainted(Gate::Agent) == tainted
        });
        let settled = settled.await;
        ensure!(
            settled,
            "not all nodes came to be {state:?} within {:?}",
            self.plan.patience
        );
        Ok(())
    }

    /// Starts the controller and waits until it watches the nodes.
    pub(crate) async fn start_controller(&mut self) -> Result<()> {
        let watches = |counts: &Counts| counts.get("watch nodes").copied().unwrap_or_default();
        let before = watches(self.requests.so_far()?);
        let mut subject = Subject::start(&self.cluster, self.recipe).await?;
        self.starts += 1;
        let deadline = Instant::now() + STARTUP;
        while watches(self.requests.so_far()?) == before {
            subject.ensure_running()?;
            ensure!(
                Instant::now() < deadline,
                "the controller did not watch the nodes within {STARTUP:?}"
            );
            sleep(POLL).await;
        }
        self.subject = Some(subject);
        Ok(())
    }

    pub(crate) async fn stop_controller(&mut self) -> Result<()> {
        let subject = self.subject.take();
        subject.context("the controller does not run")?.stop().await
    }

    /// Waits until the controller is quiet. Returns false after a timeout.
    pub(crate) async fn rest(&mut self) -> Result<bool> {
        let deadline = Instant::now() + REST;
        let mut writes = 0;
        let mut quiet_since = Instant::now();
        while Instant::now() < deadline {
            let now = requests::writes(self.requests.so_far()?);
            if now != writes {
                (writes, quiet_since) = (now, Instant::now());
            }
            if quiet_since.elapsed() >= QUIET {
                return Ok(true);
            }
            sleep(POLL).await;
        }
        Ok(false)
    }

    fn usage(&mut self) -> Result<Usage> {
        let subject = self.subject.as_mut();
        subject.context("the controller does not run")?.usage()
    }

    /// Checks every node in a fresh list: whether it has this gate's taint exactly once, and still has its initial taint.
    pub(crate) async fn faults(
        &self,
        gate: Gate,
        should_have: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let nodes = state::nodes(&self.client).await?;
        let wrong: Vec<String> = nodes
            .iter()
            .filter(|node| {
                let expected = usize::from(should_have(&node.name_any()));
                state::count_taints(node, gate.key()) != expected
                    || state::count_taints(node, "node.kubernetes.io/not-ready") != 1
            })
            .map(ResourceExt::name_any)
            .collect();
        Ok(match wrong.len() {
            0 => Vec::new(),
            count => vec![format!(
                "{count} nodes do not have the taints that they should have, among them {}",
                wrong[..count.min(EXAMPLES)].join(", ")
            )],
        })
    }
}

/// The outcome with the median ratio to its limit; of an even number, the better of the middle two.
fn median(mut outcomes: Vec<Outcome>) -> Option<Outcome> {
    let ratio = |outcome: &Outcome| outcome.over_limit().unwrap_or_default();
    outcomes.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let middle = outcomes.len().checked_sub(1)? / 2;
    Some(outcomes.swap_remove(middle))
}
