//! Both servers, and the comparison of their answers and events.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use nodegate_simulation::{Event, Key, Kind, Request, Selector, Server};
use serde_json::{Value, json};
use testkit::nodegate::Cluster;

use crate::outcome::{Outcome, comparable};
use crate::random;
use crate::real::{Real, Watch};
use crate::step::{Sight, Slot, Step};

/// How long a watch may take to show a change.
const SOON: Duration = Duration::from_secs(10);

/// A permanent watch: its kind, labels and fields, and an object that marks the end of a sequence.
type Watched = (Kind, &'static str, &'static str, fn() -> Value);

#[rustfmt::skip]
const WATCHES: [Watched; 13] = [
    (Kind::Node, "", "", || json!({})),
    (Kind::Node, "pool=a", "", || labelled("a")),
    (Kind::Node, "pool in (a,b)", "", || labelled("b")),
    (Kind::Node, "!pool", "", || json!({})),
    (Kind::Pod, "", "", || random::pod(None)),
    (Kind::Pod, "", "spec.nodeName=w1", || random::pod(Some("w1"))),
    (Kind::Pod, "pool!=a", "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed", || random::pod(Some("w2"))),
    (Kind::DaemonSet, "", "", random::daemon_set),
    (Kind::CsiNode, "", "", || json!({"spec": {"drivers": []}})),
    (Kind::ResourceSlice, "", "spec.driver=gpu.example.com", random::resource_slice),
    (Kind::NodeReadinessRule, "", "", random::rule),
    (Kind::NodeClaim, "", "", random::claim),
    (Kind::NodePool, "", "", random::pool),
];

fn labelled(pool: &str) -> Value {
    json!({"metadata": {"labels": {"pool": pool}}})
}

pub(crate) struct Pair {
    pub(crate) cluster: Cluster,
    real: Real,
    watches: Vec<Watch>,
    sequences: u32,
}

/// One sequence on both.
struct Run<'a> {
    pair: &'a mut Pair,
    prefix: String,
    model: Server,
    of_model: Sight,
    of_real: Sight,
    twins: Twins,
}

impl Pair {
    pub(crate) async fn new(cluster: Cluster) -> Result<Self> {
        let real = Real::new(&cluster).await?;
        let mut watches = Vec::new();
        for (kind, labels, fields, _) in WATCHES {
            let since = real.revision(kind).await?;
            watches.push(real.watch(kind, labels, fields, &since, 600).await?);
        }
        Ok(Self {
            cluster,
            real,
            watches,
            sequences: 0,
        })
    }

    /// Runs a sequence on both, and fails where they differ.
    pub(crate) async fn run(&mut self, steps: &[Step]) -> Result<()> {
        self.sequences += 1;
        let prefix = format!("s{}", self.sequences);
        let mut run = Run {
            model: Server::new(u64::from(self.sequences)),
            of_model: Sight::new(&prefix),
            of_real: Sight::new(&prefix),
            twins: Twins::default(),
            prefix,
            pair: self,
        };
        let mut compared = Ok(());
        for (number, step) in steps.iter().enumerate() {
            compared = run
                .step(step)
                .await
                .with_context(|| format!("step {number}, {step:?}"));
            if compared.is_err() {
                break;
            }
        }
        // Even after an error: the next sequence must not receive these events.
        let events = run.events().await;
        compared.and(events)
    }
}

impl Run<'_> {
    async fn step(&mut self, step: &Step) -> Result<()> {
        if let Step::List(kind, namespace, labels, fields) = step {
            return self.list(*kind, *namespace, labels, fields).await;
        }
        let ours = self.of_model.request(step).context("no request")?;
        let theirs = self.of_real.request(step).context("no request")?;
        let model = Outcome::of_model(self.model.answer(&ours, Timestamp::UNIX_EPOCH));
        let real = self.pair.real.answer(&theirs).await?;
        let is_said = !real.reason.is_empty();
        let same = |outcome: &Outcome| {
            let reason = outcome.reason.clone();
            (
                outcome.code,
                is_said.then_some(reason),
                outcome.names_fields,
            )
        };
        ensure!(
            same(&model) == same(&real),
            "the model says {:?} ({}), the API server {:?} ({})",
            same(&model),
            model.message,
            same(&real),
            real.message
        );
        match (model.object, real.object) {
            (Some(model), Some(real)) => {
                let key = ours.key();
                self.of_model.note(key.clone(), &model);
                self.of_real.note(key.clone(), &real);
                self.compare(key.kind, &model, &real)
            }
            (Some(_), None) => bail!("the API server shows no object"),
            // The API server's answers about deleted objects vary.
            _ => Ok(()),
        }
    }

    async fn list(
        &mut self,
        kind: Kind,
        namespace: Option<&str>,
        labels: &str,
        fields: &str,
    ) -> Result<()> {
        let fields = fields.replace("<prefix>", &self.prefix);
        let selector = Selector::of(labels, &fields);
        let ours = self.model.list(kind, namespace, &selector);
        let real = &self.pair.real;
        let mut theirs = real.list(kind, namespace, labels, &fields).await?;
        theirs.retain(|item| is_of(&self.prefix, item));
        let name = |item: &Value| item["metadata"]["name"].clone();
        let in_model: Vec<Value> = ours.iter().map(|item| name(item)).collect();
        let in_real: Vec<Value> = theirs.iter().map(name).collect();
        ensure!(
            in_model == in_real,
            "the model lists {in_model:?}, the API server {in_real:?}"
        );
        for (ours, theirs) in ours.iter().zip(&theirs) {
            self.compare(kind, ours, theirs)?;
        }
        Ok(())
    }

    fn compare(&mut self, kind: Kind, model: &Value, real: &Value) -> Result<()> {
        let (ours, theirs) = (comparable(kind, model), comparable(kind, real));
        ensure!(
            ours == theirs,
            "the model shows\n  {ours}\nthe API server\n  {theirs}"
        );
        self.twins.compare(&model["metadata"], &real["metadata"])
    }

    /// Compares the events of the watches, up to the object that marks the end of the sequence.
    async fn events(&mut self) -> Result<()> {
        for (number, (kind, _, _, object)) in (10..).zip(WATCHES) {
            let key = self.of_real.key(Slot(kind, number));
            let object = object();
            let end = Request::Create { key, object };
            let outcome = self.pair.real.answer(&end).await?;
            ensure!(outcome.code == 201, "the end: {}", outcome.message);
        }
        let mut result = Ok(());
        for (number, (kind, labels, fields, _)) in (10..).zip(WATCHES) {
            let end = self.of_real.key(Slot(kind, number));
            let seen = tokio::time::timeout(SOON, self.seen(usize::from(number) - 10, &end))
                .await
                .context("a watch that shows nothing")??;
            let selector = Selector::of(labels, fields);
            let compared = self
                .compare_events(kind, &selector, &seen)
                .with_context(|| format!("a watch of {kind:?} {labels} {fields}"));
            result = result.and(compared);
        }
        result
    }

    /// The events of this sequence in one watch.
    async fn seen(&mut self, watch: usize, end: &Key) -> Result<Vec<Value>> {
        let mut seen = Vec::new();
        loop {
            let event = self.pair.watches[watch].next().await?;
            let event = event.context("a watch has ended")?;
            let name = &event["object"]["metadata"]["name"];
            if *name == *end.name {
                return Ok(seen);
            }
            let number = name.as_str().and_then(|name| name.rsplit_once('-'));
            let is_end = number.is_some_and(|(_, number)| number.len() > 1);
            if event["type"] != "BOOKMARK" && !is_end {
                seen.push(event);
            }
        }
    }

    fn compare_events(&mut self, kind: Kind, selector: &Selector, seen: &[Value]) -> Result<()> {
        let shown = self.model.events(kind, None, selector, 1)?;
        let ours: Vec<String> = shown.iter().map(line).collect();
        let theirs: Vec<String> = seen
            .iter()
            .map(|event| {
                let name = event["object"]["metadata"]["name"].as_str();
                let event_type = event["type"].as_str();
                format!(
                    "{} {}",
                    event_type.unwrap_or_default(),
                    name.unwrap_or_default()
                )
            })
            .collect();
        ensure!(
            ours == theirs,
            "the model shows {ours:?}, the API server {theirs:?}"
        );
        for (event, seen) in shown.iter().zip(seen) {
            self.compare(kind, &event.object, &seen["object"])
                .with_context(|| line(event))?;
        }
        Ok(())
    }
}

fn line(event: &Event) -> String {
    let name = event.object["metadata"]["name"].as_str();
    format!("{} {}", event.event_type.name(), name.unwrap_or_default())
}

fn is_of(prefix: &str, object: &Value) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    name.rsplit_once('-').is_some_and(|(it, _)| it == prefix)
}

/// Maps UIDs and revisions of one server to those of the other.
#[derive(Debug, Default)]
struct Twins {
    uids: HashMap<String, String>,
    revisions: BTreeMap<u64, u64>,
}

impl Twins {
    fn compare(&mut self, model: &Value, real: &Value) -> Result<()> {
        let text = |metadata: &Value, field: &str| metadata[field].as_str().map(str::to_owned);
        let uid = |metadata| text(metadata, "uid").context("no UID");
        let known = self.uids.entry(uid(model)?).or_insert(uid(real)?).clone();
        ensure!(known == uid(real)?, "another object for the API server");

        let revision = |metadata| -> Result<u64> {
            let version = text(metadata, "resourceVersion").context("no revision")?;
            Ok(version.parse()?)
        };
        let (ours, theirs) = (revision(model)?, revision(real)?);
        let earlier = self.revisions.range(..ours).next_back();
        let later = self.revisions.range(ours + 1..).next();
        let known = self.revisions.get(&ours);
        ensure!(
            known.is_none_or(|known| *known == theirs)
                && earlier.is_none_or(|(_, earlier)| *earlier < theirs)
                && later.is_none_or(|(_, later)| *later > theirs),
            "the model's revision {ours} is not the API server's {theirs}: {:?}",
            self.revisions
        );
        self.revisions.insert(ours, theirs);
        Ok(())
    }
}
