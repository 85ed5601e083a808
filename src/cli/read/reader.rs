//! Lists whose refusal is noted rather than fatal.

use std::cell::RefCell;
use std::path::Path;

use k8s_openapi::api::core::v1::{ConfigMap, Event};
use serde::de::DeserializeOwned;

use super::page::{Refusal, Version};
use super::source::Source;
use crate::api::names::{CONFIG_MAP, NAMESPACE};
use crate::cli::failure::Failure;
use crate::cli::snapshot::{
    About, CONTROLLER_LABEL, ClassesFrom, Controller, Deployed, Filter, Gap, Kind, Leader,
    PodEvent, Story,
};
use crate::config::Config;
use crate::guard::Limits;
use crate::object::{ObjectKey, RuleObject};
use crate::selector::Selector;

/// Reads lists, and notes which it may not.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// Where they are read from.
    pub source: &'a Source,
    /// What could not be read.
    pub gaps: &'a RefCell<Vec<Gap>>,
}

impl Reader<'_> {
    /// Goes through a list; one that cannot be had is noted.
    pub async fn each(
        &self,
        kind: Kind,
        filter: &Filter,
        take: impl FnMut(&str),
    ) -> Result<Version, Refusal> {
        let refusal = match self.source.each(kind, filter, take).await {
            Ok(version) => return Ok(version),
            Err(refusal) => refusal,
        };
        let is_missing = matches!(refusal, Refusal::NotInstalled);
        let mut gaps = self.gaps.borrow_mut();
        if !is_missing && gaps.iter().all(|gap| gap.kind != kind) {
            gaps.push(Gap {
                kind,
                forbidden: matches!(refusal, Refusal::Forbidden(_)),
                why: refusal.to_string(),
            });
        }
        Err(refusal)
    }

    /// All objects of a list that can be decoded.
    pub async fn all<T: DeserializeOwned>(&self, kind: Kind, filter: &Filter) -> Vec<T> {
        let mut all = Vec::new();
        let take = |json: &str| all.extend(serde_json::from_str(json).ok());
        // Why there are none has been noted.
        let _ = self.each(kind, filter, take).await;
        all
    }

    /// The rules. Without them there is nothing to say.
    pub async fn rules(&self) -> Result<(Vec<RuleObject>, Version), Failure> {
        let mut rules = Vec::new();
        let take = |json: &str| rules.extend(serde_json::from_str(json).ok());
        let listed = self
            .source
            .each(Kind::Rules, &Filter::default(), take)
            .await;
        let version = listed.map_err(|refusal| match refusal {
            Refusal::NotInstalled => Failure::NoRules,
            refusal => refusal.of(Kind::Rules),
        })?;
        Ok((rules, version))
    }

    /// What was warned of a pod, latest first.
    pub async fn events(&self, pod: &ObjectKey) -> Vec<PodEvent> {
        let filter = Filter {
            namespace: Some(pod.namespace.to_string()),
            about: About::Pod(pod.name.to_string()),
            ..Filter::default()
        };
        let events: Vec<Event> = self.all(Kind::Events, &filter).await;
        let mut events: Vec<PodEvent> = events.into_iter().map(pod_event).collect();
        events.sort_by_key(|event| std::cmp::Reverse(event.at));
        events
    }

    /// The instances of the controller in the namespace of its Lease. Nobody's decision depends on them.
    pub async fn controllers(&self, leader: &Leader) -> Vec<Controller> {
        let (key, value) = CONTROLLER_LABEL;
        let filter = Filter {
            namespace: Some(leader.namespace.clone()),
            labels: Some(Selector::of_label(key, value)),
            ..Filter::default()
        };
        let mut all = Vec::new();
        let take = |json: &str| {
            let is_ready = Story::read(json).is_some_and(|it| it.ready.0);
            all.extend(Controller::read(json, is_ready));
        };
        // Whoever may not know them goes without.
        let _ = self.source.each(Kind::Pods, &filter, take).await;
        all
    }

    /// The controller's limits, by the arguments of its Deployment: of the one whose pod leads, or the only one.
    pub async fn limits(&self, leader: Option<&Leader>) -> Option<Limits> {
        let (key, value) = CONTROLLER_LABEL;
        let namespace = leader.map_or(NAMESPACE, |leader| &leader.namespace);
        let filter = Filter {
            namespace: Some(namespace.into()),
            labels: Some(Selector::of_label(key, value)),
            ..Filter::default()
        };
        let mut all: Vec<Deployed> = Vec::new();
        let take = |json: &str| all.extend(Deployed::read(json));
        // Whoever asks says that they are not known.
        let _ = self.source.each(Kind::Deployments, &filter, take).await;
        let leads = |it: &&Deployed| leader.is_some_and(|leader| it.has(leader.pod()));
        let deployed = match all.as_slice() {
            [only] => only,
            all => all.iter().find(leads)?,
        };
        Limits::of_arguments(deployed.arguments.iter().map(String::as_str))
    }

    /// The controller's configuration, as the chart keeps it beside the controller.
    pub async fn config(&self, leader: Option<&Leader>) -> Result<(Config, ClassesFrom), Failure> {
        let (name, key) = CONFIG_MAP;
        let namespace = leader.map_or(NAMESPACE, |leader| &leader.namespace);
        let mut found: Option<ConfigMap> = None;
        let take = |json: &str| found = serde_json::from_str(json).ok();
        let one = Filter {
            namespace: Some(namespace.into()),
            ..Filter::named(name)
        };
        match self.source.each(Kind::ConfigMaps, &one, take).await {
            Ok(_) | Err(Refusal::NotInstalled) => {}
            Err(_) => return Ok((Config::default(), ClassesFrom::Assumed)),
        }
        let text = found.and_then(|map| map.data?.remove(key));
        Ok(match text {
            Some(text) => (
                Config::parse(&text, Path::new(name))?,
                ClassesFrom::ConfigMap,
            ),
            None => (Config::default(), ClassesFrom::Default),
        })
    }
}

fn pod_event(event: Event) -> PodEvent {
    let series = event.series.and_then(|it| it.last_observed_time);
    let at = series.or(event.event_time).map(|time| time.0);
    PodEvent {
        reason: event.reason.unwrap_or_default(),
        message: event.message.unwrap_or_default(),
        at: event.last_timestamp.map(|time| time.0).or(at),
    }
}
