//! The objects, the revision, and what a request does to them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::answer::{Answer, Refusal, Success};
use crate::deletion::{self, Course};
use crate::kind::{Key, Kind};
use crate::patch;
use crate::request::{Part, Preconditions, Request};
use crate::selector::Selector;
use crate::sim::rng::Rng;
use crate::watch::{Change, Event};
use crate::write;

/// The namespaces that the API server creates itself.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

#[derive(Debug, Clone)]
pub struct Server {
    revision: u64,
    /// Changes up to this revision have been compacted.
    compacted: u64,
    objects: BTreeMap<Key, Arc<Value>>,
    /// The changes since then, in order, one per revision.
    log: VecDeque<Change>,
    uids: Rng,
    /// What admission does to a created node.
    admission: Option<fn(&Self, &mut Value)>,
    definition: Definition,
}

/// Whose definition of rules is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Definition {
    #[default]
    Ours,
    /// Another project's, which does not know `nodegate`.
    Theirs,
}

impl Server {
    /// An empty server. Its UIDs follow from the seed.
    pub fn new(seed: u64) -> Self {
        Self {
            revision: 1,
            compacted: 0,
            objects: BTreeMap::new(),
            log: VecDeque::new(),
            uids: Rng::new(seed),
            admission: None,
            definition: Definition::default(),
        }
    }

    /// Installs what admission does to every created node.
    pub fn admit_nodes_by(&mut self, admission: fn(&Self, &mut Value)) {
        self.admission = Some(admission);
    }

    /// Applies this definition of rules. A rule loses what its definition does not know when it is next written.
    pub fn define_rules(&mut self, definition: Definition) {
        self.definition = definition;
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Carries out a request.
    ///
    /// # Errors
    ///
    /// When the request is refused; then nothing has changed.
    pub fn answer(&mut self, request: &Request, now: Timestamp) -> Answer {
        match request {
            Request::Create { key, object } => self.create(key, object.clone(), now),
            Request::Patch { key, part, patch } => {
                patch::check(key, patch)?;
                let old = self.find_part(key, *part)?;
                let new = patch::apply(key.kind, &old, patch)?;
                self.replace(key, *part, &old, new)
            }
            Request::Bind { key, node } => self.bind(key, node, now),
            Request::Delete {
                key,
                preconditions,
                grace,
            } => self.delete(key, preconditions, *grace, now),
        }
    }

    /// The events that a watch with this selector receives for the changes after a revision.
    ///
    /// # Errors
    ///
    /// When some of these changes have been compacted (410).
    pub fn events(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        selector: &Selector,
        since: u64,
    ) -> Result<Vec<Event>, Refusal> {
        if since < self.compacted {
            return Err(Refusal::expired(since, self.compacted));
        }
        Ok(self
            .changes(since)
            .filter(|change| change.key.kind == kind)
            .filter(|change| namespace.is_none_or(|it| it == change.key.namespace))
            .filter_map(|change| change.seen_through(selector))
            .collect())
    }

    /// The changes after a revision, without compacted ones.
    pub fn changes(&self, since: u64) -> impl Iterator<Item = &Change> {
        let first = self.log.partition_point(|change| change.revision <= since);
        self.log.range(first..)
    }

    pub fn object(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// All objects of a kind, ordered by namespace and name.
    pub fn objects(&self, kind: Kind) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects
            .range(Key::cluster(kind, "")..)
            .take_while(move |(key, _)| key.kind == kind)
    }

    /// The objects of a kind that match, ordered by namespace and name: in this namespace, if one is named.
    pub fn list(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Vec<Arc<Value>> {
        self.objects(kind)
            .filter(|(key, _)| namespace.is_none_or(|it| it == key.namespace))
            .filter(|(_, object)| selector.matches(object))
            .map(|(_, object)| object.clone())
            .collect()
    }

    /// Compacts the changes up to this revision.
    pub fn compact(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision.min(self.revision));
        let forgotten = |change: &Change| change.revision <= self.compacted;
        while self.log.front().is_some_and(forgotten) {
            self.log.pop_front();
        }
    }

    fn find(&self, key: &Key) -> Result<Arc<Value>, Refusal> {
        let object = self.objects.get(key).cloned();
        let mut object = object.ok_or_else(|| Refusal::not_found(key))?;
        if self.drops_nodegate(key) {
            write::drop_nodegate(Arc::make_mut(&mut object));
        }
        Ok(object)
    }

    fn drops_nodegate(&self, key: &Key) -> bool {
        self.definition == Definition::Theirs && key.kind == Kind::NodeReadinessRule
    }

    fn find_part(&self, key: &Key, part: Part) -> Result<Arc<Value>, Refusal> {
        if part == Part::Status && !key.kind.has_status() {
            return Err(Refusal::no_subresource(key));
        }
        self.find(key)
    }

    fn create(&mut self, key: &Key, mut object: Value, now: Timestamp) -> Answer {
        if !key.namespace.is_empty() && !NAMESPACES.contains(&key.namespace.as_str()) {
            return Err(Refusal::no_namespace(key));
        }
        if let Some(admission) = self.admission.filter(|_| key.kind == Kind::Node) {
            admission(self, &mut object);
        }
        if self.drops_nodegate(key) {
            write::drop_nodegate(&mut object);
        }
        let object = write::created(key, object, &self.uids.uid(), now)?;
        if self.objects.contains_key(key) {
            return Err(Refusal::already_exists(key));
        }
        Ok(Success::Created(self.put(key, object)))
    }

    fn replace(&mut self, key: &Key, part: Part, old: &Value, mut new: Value) -> Answer {
        if self.drops_nodegate(key) {
            write::drop_nodegate(&mut new);
        }
        let new = write::updated(key, part, old, new)?;
        if deletion::is_complete(old, &new) {
            self.remove(key);
            return Ok(Success::Object(Arc::new(new)));
        }
        Ok(Success::Object(self.put(key, new)))
    }

    fn bind(&mut self, key: &Key, node: &str, now: Timestamp) -> Answer {
        if key.kind != Kind::Pod {
            return Err(Refusal::no_subresource(key));
        }
        let old = self.find(key)?;
        let bound = write::bound(key, &old, node, now)?;
        self.put(key, bound);
        Ok(Success::Bound)
    }

    fn delete(
        &mut self,
        key: &Key,
        preconditions: &Preconditions,
        grace: Option<i64>,
        now: Timestamp,
    ) -> Answer {
        let old = self.find(key)?;
        let metadata = &old["metadata"];
        let is_met = |wanted: &Option<String>, field: &str| {
            wanted.as_ref().is_none_or(|it| metadata[field] == **it)
        };
        if !is_met(&preconditions.uid, "uid") {
            return Err(Refusal::conflict(key, "it has another UID"));
        }
        if !is_met(&preconditions.resource_version, "resourceVersion") {
            return Err(Refusal::conflict(key, "it has changed"));
        }
        match deletion::course(key.kind, &old, grace, now) {
            Course::Remove => {}
            Course::MarkAndRemove(marked) => {
                self.put(key, marked);
            }
            Course::Mark(marked) => return Ok(Success::Object(self.put(key, marked))),
            Course::UnderWay => return Ok(Success::Object(old)),
        }
        self.remove(key);
        Ok(Success::Deleted)
    }

    /// Stores an object. A write that changes nothing makes no revision.
    fn put(&mut self, key: &Key, mut object: Value) -> Arc<Value> {
        let before = self.objects.get(key).cloned();
        if let Some(before) = &before {
            let version = &before["metadata"]["resourceVersion"];
            object["metadata"]["resourceVersion"] = version.clone();
            if **before == object {
                return before.clone();
            }
        }
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let after = Arc::new(object);
        self.objects.insert(key.clone(), after.clone());
        self.note(key, before, Some(after.clone()));
        after
    }

    fn remove(&mut self, key: &Key) {
        let before = self.objects.remove(key);
        self.revision += 1;
        self.note(key, before, None);
    }

    fn note(&mut self, key: &Key, before: Option<Arc<Value>>, after: Option<Arc<Value>>) {
        self.log.push_back(Change {
            revision: self.revision,
            key: key.clone(),
            before,
            after,
        });
    }
}
