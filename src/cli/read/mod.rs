//! Fills a snapshot, from the API server or from a dump. Rules come first, since they say what else matters: a cluster whose
//! rules wait for no class costs four lists (rules, the Lease, the configuration, nodes), and each class two more and one of
//! `CSINode`s, each `DaemonSet` by name two, repair two. Pages are decoded as they come into what the engine keeps, so that no list is ever held as a whole.

mod certificate;
mod cluster;
mod facts;
mod filling;
mod folder;
mod inventory;
mod lists;
pub mod live;
mod needs;
mod page;
mod reader;
mod source;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use futures::FutureExt;
use futures::future::try_join_all;
use k8s_openapi::api::coordination::v1::Lease;

use super::failure::{Failure, near_names};
use super::snapshot::{ClassesFrom, Filter, Kind, Leader, Snapshot, Specimen, Wanted};
use crate::api::NodeReadinessRuleStatus;
use crate::api::names::LEASE;
use crate::condition::CriticalComponentClass;
use crate::config::Config;
use crate::engine::io::{Now, Object};
use crate::engine::kind::{Scope, Watch};
use crate::engine::{SUSPENDED, View};
use crate::object::RuleObject;

pub use cluster::Cluster;
pub use facts::facts;
use filling::Filling;
pub use folder::{ABOUT, AboutDump, FORM, Folder, Missing};
pub use inventory::{KINDS, inventory, inventory_beside, inventory_of_files};
pub use lists::Lists;
pub use needs::Needs;
pub use page::{Refusal, Version};
use reader::Reader;
pub use source::Source;

/// How the controller is configured.
#[derive(Debug, Clone)]
pub enum Configured<'a> {
    /// As the cluster says.
    InTheCluster,
    /// As this file says.
    File(&'a Path),
    /// With these classes and passing taints.
    AtHand(Vec<CriticalComponentClass>, Vec<String>),
}

impl Configured<'_> {
    /// The classes, the passing taints, and where they are from.
    async fn read(
        self,
        reader: &Reader<'_>,
        leader: Option<&Leader>,
    ) -> Result<(Vec<CriticalComponentClass>, Vec<String>, ClassesFrom), Failure> {
        let (config, from) = match self {
            Self::InTheCluster => reader.config(leader).await?,
            Self::File(path) => (Config::read(path)?, ClassesFrom::File),
            Self::AtHand(classes, passing_taints) => {
                return Ok((classes, passing_taints, ClassesFrom::File));
            }
        };
        Ok((config.classes()?, config.passing_taints, from))
    }
}

/// What has been listed, for whoever watches it from there on.
pub struct Listed {
    /// The lists that have been read to their ends, with their versions.
    pub versions: BTreeMap<Watch, Version>,
    /// What was listed for the sake of `DaemonSet`s that rules name.
    pub scopes: BTreeMap<Watch, Scope>,
    /// What was to be read.
    pub needs: Needs,
}

/// Reads what is wanted.
///
/// # Errors
/// Where something is missing without which there is nothing to say.
pub async fn snapshot(
    source: &Source,
    configured: Configured<'_>,
    wanted: &Wanted,
) -> Result<Snapshot, Failure> {
    let (snapshot, _) = listed(source, configured, wanted).await?;
    Ok(snapshot)
}

/// The same, with what has been listed for it.
///
/// # Errors
/// Where something is missing without which there is nothing to say.
pub async fn listed(
    source: &Source,
    configured: Configured<'_>,
    wanted: &Wanted,
) -> Result<(Snapshot, Listed), Failure> {
    let at = source.at();
    let gaps = RefCell::new(Vec::new());
    let reader = Reader {
        source,
        gaps: &gaps,
    };
    let leader = async {
        let lease = Filter::named(LEASE);
        let leases = reader.all::<Lease>(Kind::Leases, &lease).await;
        Ok::<_, Failure>(leases.into_iter().next().map(Leader::of))
    };
    let ((rules, version), leader) = futures::try_join!(reader.rules(), leader)?;
    let (classes, passing_taints, classes_from) = configured.read(&reader, leader.as_ref()).await?;
    let now = Now {
        wall: at,
        monotonic: Instant::now(),
    };
    let needs = Needs::of(&rules, &classes, wanted);
    let view = View::new(classes.clone(), passing_taints, needs.karpenter, now);
    let filling = Filling {
        reader,
        view: RefCell::new(view),
        stories: RefCell::default(),
        records: RefCell::default(),
        origins: RefCell::default(),
        wanted,
        versions: RefCell::default(),
        scopes: RefCell::default(),
    };
    filling.listing(Watch::Rules);
    for rule in &rules {
        filling.put(Object::Rule(rule.clone()));
    }
    filling.listed(Watch::Rules);
    filling.was_listed(Watch::Rules, version);
    let of_classes = classes
        .iter()
        .enumerate()
        .map(async |(class, it)| filling.class(class, it, needs.classes[class]).await);
    futures::try_join!(
        filling.nodes(),
        filling.csi_nodes(needs.csi_nodes),
        filling.karpenter(needs.karpenter),
        try_join_all(of_classes),
    )?;
    filling.named().await?;
    filling.events().await;
    let Filling {
        view,
        stories,
        records,
        origins,
        versions,
        scopes,
        ..
    } = filling;
    let mut view = view.into_inner();
    let controllers = match &leader {
        Some(leader) if wanted.controllers => reader.controllers(leader).await,
        _ => Vec::new(),
    };
    let limits = if wanted.limits {
        reader.limits(leader.as_ref()).await
    } else {
        None
    };
    if let Some(limits) = limits {
        view.limit(limits);
    }
    view.suspend_all(suspends_all(leader.as_ref(), &rules));
    view.settle();
    let unreadable = view.unreadable();
    let listed = Listed {
        versions: versions.into_inner(),
        scopes: scopes.into_inner(),
        needs,
    };
    let snapshot = Snapshot {
        at,
        view,
        rules,
        classes_from,
        limits,
        leader,
        controllers,
        stories: stories.into_inner(),
        records: records.into_inner(),
        origins: origins.into_inner(),
        gaps: gaps.into_inner(),
        unreadable,
    };
    Ok((snapshot, listed))
}

/// The same cluster with these rules in it, as they would be taken from now on.
///
/// # Errors
/// Where something is missing without which there is nothing to say.
pub async fn with_rules(
    source: &Source,
    snapshot: Snapshot,
    rules: Vec<RuleObject>,
) -> Result<Snapshot, Failure> {
    let gaps = RefCell::new(snapshot.gaps);
    let filling = Filling {
        reader: Reader {
            source,
            gaps: &gaps,
        },
        view: RefCell::new(snapshot.view),
        stories: RefCell::new(snapshot.stories),
        records: RefCell::default(),
        origins: RefCell::default(),
        wanted: &Wanted::everything(),
        versions: RefCell::default(),
        scopes: RefCell::default(),
    };
    for rule in rules {
        filling.put(Object::Rule(rule));
    }
    filling.named().await?;
    let Filling { view, stories, .. } = filling;
    let mut view = view.into_inner();
    view.settle();
    Ok(Snapshot {
        view,
        stories: stories.into_inner(),
        gaps: gaps.into_inner(),
        ..snapshot
    })
}

/// What was read of a cluster whose objects are at hand, as JSON: for whoever simulates one.
///
/// # Errors
/// Where something is missing without which there is nothing to say.
pub fn snapshot_of(
    lists: Lists,
    classes: Vec<CriticalComponentClass>,
    passing_taints: Vec<String>,
) -> Result<Snapshot, Failure> {
    let (source, wanted) = (Source::Lists(lists), Wanted::everything());
    let configured = Configured::AtHand(classes, passing_taints);
    let read = snapshot(&source, configured, &wanted);
    // Nothing is waited for where everything is at hand.
    read.now_or_never().unwrap_or_else(|| {
        let why = "the objects at hand are waited for".to_owned();
        Err(Failure::Input(why))
    })
}

/// Whether all rules are suspended: the Lease says so, or the controller says of a rule that it is which does not say so itself,
/// since a flag tells it to.
fn suspends_all(leader: Option<&Leader>, rules: &[RuleObject]) -> bool {
    let is_suspended = |status: &NodeReadinessRuleStatus| {
        let mut conditions = status.conditions.iter();
        conditions.any(|it| it.type_ == SUSPENDED && it.status == "True")
    };
    let mut rules = rules.iter();
    leader.is_some_and(|leader| leader.suspends_all)
        || rules.any(|rule| {
            let is_told = rule.status.observed_generation == rule.metadata.generation;
            let asks = rule.spec.as_ref().is_ok_and(|spec| spec.suspend);
            is_told && is_suspended(&rule.status) && !asks
        })
}

/// The pod of this name, with what was warned of it; `None` where there is none.
///
/// # Errors
/// Where it may not be read.
pub async fn pod(
    source: &Source,
    namespace: &str,
    name: &str,
) -> Result<Option<Specimen>, Failure> {
    let filter = Filter {
        namespace: Some(namespace.into()),
        ..Filter::named(name)
    };
    let mut found = None;
    let take = |json: &str| found = Specimen::read(json);
    let listed = source.each(Kind::Pods, &filter, take).await;
    listed.map_err(|refusal| refusal.of(Kind::Pods))?;
    if let Some(pod) = &mut found {
        let gaps = RefCell::default();
        let reader = Reader {
            source,
            gaps: &gaps,
        };
        pod.story.events = reader.events(&pod.story.key).await;
    }
    Ok(found)
}

/// Names of the pods in a namespace, or of all nodes: for whoever has asked for one that is not there.
pub async fn names(source: &Source, kind: Kind, namespace: Option<&str>) -> Vec<String> {
    let mut names = Vec::new();
    let filter = Filter {
        namespace: namespace.map(str::to_owned),
        ..Filter::default()
    };
    let take = |json: &str| {
        names.extend(page::name(json));
    };
    // Whoever may not know them is offered none.
    let _ = source.each(kind, &filter, take).await;
    names
}

/// The failure where there is no object of this name, with names like it.
pub async fn unknown(
    source: &Source,
    kind: Kind,
    word: &'static str,
    namespace: Option<&str>,
    name: &str,
) -> Failure {
    let names = names(source, kind, namespace).await;
    let shown = namespace.map_or_else(|| name.to_owned(), |ns| format!("{ns}/{name}"));
    Failure::Unknown {
        kind: word,
        name: shown,
        near: near_names(name, names.iter().map(String::as_str)),
    }
}
