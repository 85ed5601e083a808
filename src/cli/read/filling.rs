//! A view that is being filled: each list is decoded into it as it comes.

use std::cell::RefCell;
use std::collections::BTreeMap;

use futures::future::{join_all, try_join_all};
use serde::de::DeserializeOwned;

use super::page::{self, Refusal, Version};
use super::reader::Reader;
use crate::cli::failure::Failure;
use crate::cli::snapshot::{Binding, Filter, Kind, Origin, Recorded, Story, Wanted};
use crate::condition::CriticalComponentClass;
use crate::engine::View;
use crate::engine::io::Object;
use crate::engine::kind::{Scope, Watch};
use crate::object::{NodeClaimObject, NodePoolObject, ObjectKey};

/// How many pods are asked what was warned of them.
const EVENTS_OF: usize = 5;

/// A view that is being filled.
pub struct Filling<'a> {
    pub reader: Reader<'a>,
    pub view: RefCell<View>,
    pub stories: RefCell<BTreeMap<ObjectKey, Story>>,
    pub records: RefCell<BTreeMap<String, Vec<Recorded>>>,
    pub origins: RefCell<Vec<Origin>>,
    pub wanted: &'a Wanted,
    /// The lists that have been read to their ends, with their versions.
    pub versions: RefCell<BTreeMap<Watch, Version>>,
    /// What was listed for the sake of `DaemonSet`s that rules name.
    pub scopes: RefCell<BTreeMap<Watch, Scope>>,
}

impl Filling<'_> {
    /// Takes in an object of a list.
    pub fn put(&self, object: Object) {
        self.view.borrow_mut().put(object);
    }

    /// Takes in that a list begins.
    pub fn listing(&self, watch: Watch) {
        self.view.borrow_mut().listing(watch);
    }

    /// Takes in that a list is complete, or will never be.
    pub fn listed(&self, watch: Watch) {
        self.view.borrow_mut().listed(watch);
    }

    /// Goes through a list whose objects the engine keeps.
    async fn list<T: DeserializeOwned>(
        &self,
        (kind, watch): (Kind, Watch),
        filter: &Filter,
        wrap: impl Fn(T) -> Object,
    ) -> Result<(), Refusal> {
        self.listing(watch);
        let take = |json: &str| {
            if let Ok(object) = serde_json::from_str(json) {
                self.put(wrap(object));
            }
            if self.wanted.startups {
                self.take_startup(kind, json);
            }
        };
        let listed = self.reader.each(kind, filter, take).await;
        match &listed {
            Err(Refusal::NotInstalled) if kind.is_optional() => {
                self.view.borrow_mut().not_installed(watch);
            }
            _ => self.listed(watch),
        }
        listed.map(|version| self.was_listed(watch, version))
    }

    /// Notes that a list has been read to its end, and so can be watched.
    pub fn was_listed(&self, watch: Watch, version: Version) {
        self.versions.borrow_mut().insert(watch, version);
    }

    /// Takes in what an object tells of how a node started.
    fn take_startup(&self, kind: Kind, json: &str) {
        match kind {
            Kind::Nodes => self.records.borrow_mut().extend(Recorded::of_node(json)),
            Kind::NodeClaims => self.origins.borrow_mut().extend(Origin::of_claim(json)),
            _ => {}
        }
    }

    /// The object that is about the one node that is wanted, or all.
    fn of_the_node(&self) -> Filter {
        Filter {
            name: self.wanted.node.clone(),
            ..Filter::default()
        }
    }

    /// The pods that matter: those that are bound, to the one node that is wanted or to any.
    fn bound_pods(&self) -> Filter {
        let node = self.wanted.node.clone();
        Filter {
            binding: node.map_or(Binding::Bound, Binding::To),
            ..Filter::default()
        }
    }

    /// The nodes. Without them there is nothing to say.
    pub async fn nodes(&self) -> Result<(), Failure> {
        if self.wanted.outline {
            self.listed(Watch::Nodes);
            return Ok(());
        }
        let (kind, filter) = (Kind::Nodes, self.of_the_node());
        let listed = self.list((kind, Watch::Nodes), &filter, Object::Node).await;
        listed.map_err(|refusal| refusal.of(kind))
    }

    /// The `CSINode`s, if they are needed.
    pub async fn csi_nodes(&self, are_needed: bool) -> Result<(), Failure> {
        if !are_needed {
            self.listed(Watch::CsiNodes);
            return Ok(());
        }
        let filter = self.of_the_node();
        let kind = (Kind::CsiNodes, Watch::CsiNodes);
        // What could not be listed of this kind, and of those below, has been noted.
        let _ = self.list(kind, &filter, Object::CsiNode).await;
        Ok(())
    }

    /// Karpenter's objects, if they are needed and there are any.
    pub async fn karpenter(&self, is_needed: bool) -> Result<(), Failure> {
        if !is_needed {
            return Ok(());
        }
        let all = Filter::default();
        let pools = (Kind::NodePools, Watch::NodePools);
        let claims = (Kind::NodeClaims, Watch::NodeClaims);
        let _ = futures::join!(
            self.list::<NodePoolObject>(pools, &all, Object::NodePool),
            self.list::<NodeClaimObject>(claims, &all, Object::NodeClaim),
        );
        Ok(())
    }

    /// What there is of a critical component class, if it is needed.
    pub async fn class(
        &self,
        cohort: usize,
        class: &CriticalComponentClass,
        is_needed: bool,
    ) -> Result<(), Failure> {
        if !is_needed {
            self.listed(Watch::Pods(cohort));
            self.listed(Watch::DaemonSets(cohort));
            return Ok(());
        }
        let labels = Some(class.selector.clone());
        let daemon_sets = Filter {
            labels: labels.clone(),
            ..Filter::default()
        };
        let pods = Filter {
            namespace: class.namespaces.single().map(str::to_owned),
            labels,
            ..self.bound_pods()
        };
        futures::try_join!(
            self.daemon_sets(cohort, daemon_sets),
            self.pods(cohort, pods)
        )?;
        Ok(())
    }

    async fn daemon_sets(&self, cohort: usize, filter: Filter) -> Result<(), Failure> {
        let kind = (Kind::DaemonSets, Watch::DaemonSets(cohort));
        let wrap = |it| Object::DaemonSet(cohort, it);
        let _ = self.list(kind, &filter, wrap).await;
        Ok(())
    }

    /// Pods, and what those have to say for themselves that are not Ready.
    async fn pods(&self, cohort: usize, filter: Filter) -> Result<(), Failure> {
        self.listing(Watch::Pods(cohort));
        let take = |json: &str| {
            let Ok(object) = serde_json::from_str(json) else {
                return;
            };
            self.put(Object::Pod(cohort, object));
            if page::may_be_unready(json)
                && let Some(story) = Story::read(json).filter(|it| !it.ready.0)
            {
                self.stories.borrow_mut().insert(story.key.clone(), story);
            }
        };
        let listed = self.reader.each(Kind::Pods, &filter, take).await;
        self.listed(Watch::Pods(cohort));
        if let Ok(version) = listed {
            self.was_listed(Watch::Pods(cohort), version);
        }
        Ok(())
    }

    /// The `DaemonSet`s that rules name, and then their pods.
    pub async fn named(&self) -> Result<(), Failure> {
        loop {
            let wanted = self.view.borrow_mut().wanted();
            if wanted.is_empty() {
                return Ok(());
            }
            self.scopes.borrow_mut().extend(wanted.iter().cloned());
            let lists = wanted
                .into_iter()
                .map(async |(watch, scope)| match (watch, scope) {
                    (Watch::DaemonSets(cohort), Scope::DaemonSet(key)) => {
                        let filter = Filter {
                            namespace: Some(key.namespace.to_string()),
                            ..Filter::named(&key.name)
                        };
                        self.daemon_sets(cohort, filter).await
                    }
                    (watch @ Watch::Pods(_), _) if self.wanted.outline => {
                        self.listed(watch);
                        Ok(())
                    }
                    (Watch::Pods(cohort), Scope::Pods(namespace, selector)) => {
                        let filter = Filter {
                            namespace: Some(namespace.to_string()),
                            labels: Some(selector),
                            ..self.bound_pods()
                        };
                        self.pods(cohort, filter).await
                    }
                    _ => Ok(()),
                });
            try_join_all(lists).await?;
        }
    }

    /// What was warned of the pods of the one node that is wanted, where a container runs and is not ready: what its probe
    /// answered is said nowhere else.
    pub async fn events(&self) {
        if self.wanted.node.is_none() {
            return;
        }
        let keys: Vec<ObjectKey> = {
            let stories = self.stories.borrow();
            stories.keys().take(EVENTS_OF).cloned().collect()
        };
        let lists = keys.into_iter().map(async |key| {
            let events = self.reader.events(&key).await;
            if let Some(story) = self.stories.borrow_mut().get_mut(&key) {
                story.events = events;
            }
        });
        join_all(lists).await;
    }
}
