//! `version`: the versions of the client, of the controller and of the definition of rules.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::check::{Definition, Lookup};
use super::page::{Line, Page, Render};
use super::snapshot::{Controller, Leader};
use crate::wording::counted;

const CONTROLLER: &str = "controller";
const LEADER: &str = "leader";
const DEFINITION: &str = "definition";

/// The API server's answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VersionFacts {
    pub definition: Lookup<Definition>,
    pub leader: Lookup<Leader>,
    /// The controller's instances in its namespace.
    pub controllers: Result<Vec<Controller>, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Version {
    #[serde(rename = "clientVersion")]
    pub client: &'static str,
    /// The controller's instances; `None` if they are unknown, or were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controllers: Option<Vec<Controller>>,
    /// The pod that leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// The definition of rules, if it is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionVersion>,
    /// What is unknown, and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown: BTreeMap<&'static str, String>,
    #[serde(skip)]
    is_of_client_only: bool,
}

/// The definition of rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DefinitionVersion {
    /// The versions that the API server serves.
    pub served: BTreeSet<String>,
    /// The fields of rules that this client knows and the definition does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
}

impl Version {
    /// The versions by these answers; without any, the client's alone.
    pub(super) fn of(facts: Option<VersionFacts>) -> Self {
        let mut version = Self {
            client: env!("CARGO_PKG_VERSION"),
            controllers: None,
            leader: None,
            definition: None,
            unknown: BTreeMap::new(),
            is_of_client_only: facts.is_none(),
        };
        let Some(facts) = facts else {
            return version;
        };
        match facts.controllers {
            Ok(controllers) => version.controllers = Some(controllers),
            Err(why) => drop(version.unknown.insert(CONTROLLER, why)),
        }
        match facts.leader {
            Ok(leader) => {
                let pod = leader.map(|leader| leader.pod().to_owned());
                version.leader = pod.filter(|pod| !pod.is_empty());
            }
            Err(why) => drop(version.unknown.insert(LEADER, why)),
        }
        match facts.definition {
            Ok(definition) => {
                version.definition = definition.map(|it| DefinitionVersion {
                    served: it.served,
                    lacks: it.lacks,
                });
            }
            Err(why) => drop(version.unknown.insert(DEFINITION, why)),
        }
        version
    }

    /// The images of the controller's instances, and who leads.
    fn controllers(&self) -> String {
        let mut images: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for controller in self.controllers.iter().flatten() {
            let (all, ready) = images.entry(&controller.image).or_default();
            *all += 1;
            *ready += usize::from(controller.ready);
        }
        let none = images.is_empty().then(|| "no pod found".to_owned());
        let images = images.into_iter().map(|(image, (all, ready))| {
            let instances = counted(all, "instance");
            format!("{image} ({instances}, {ready} ready)")
        });
        let leader = self.leader.iter().map(|pod| format!("{pod} leads"));
        let parts: Vec<String> = none.into_iter().chain(images).chain(leader).collect();
        parts.join(", ")
    }

    fn definition(&self) -> String {
        let Some(definition) = &self.definition else {
            return "not installed".into();
        };
        let served: Vec<&str> = definition.served.iter().map(String::as_str).collect();
        let served = served.join(", ");
        if definition.lacks.is_empty() {
            format!("{served}, with all fields that this client knows")
        } else {
            format!("{served}, without {}", definition.lacks.join(", "))
        }
    }
}

impl Render for Version {
    const KIND: &'static str = "Version";

    fn text(&self, page: &Page) -> String {
        let mut out = String::new();
        let mut put = |name: &str, says: &str, what: &str| {
            let line = Line::new().faint(format!("{name:<12}"));
            let line = match self.unknown.get(what) {
                Some(why) => line.poor("unknown").plain(format!("  {why}")),
                None => line.plain(says),
            };
            page.wrapped(&mut out, "", "            ", &line);
        };
        put("client", self.client, "client");
        if !self.is_of_client_only {
            put("controller", &self.controllers(), CONTROLLER);
            put("CRD", &self.definition(), DEFINITION);
        }
        out
    }

    fn names(&self) -> Vec<String> {
        vec![format!("nodegate/{}", self.client)]
    }

    fn unread(&self) -> Option<String> {
        let names: Vec<_> = self.unknown.keys().copied().collect();
        (!names.is_empty()).then(|| format!("unknown: {}", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn the_versions_of_all_parts_are_told() {
        let controller = |pod: &str, ready| Controller {
            pod: pod.into(),
            image: "example.com/nodegate:0.1.0".into(),
            ready,
        };
        let facts = VersionFacts {
            definition: Ok(Some(Definition {
                served: ["v1alpha1".to_owned()].into(),
                lacks: vec!["repair".into()],
                ..Definition::default()
            })),
            leader: Ok(None),
            controllers: Ok(vec![controller("a", true), controller("b", false)]),
        };
        let client = format!("client      {}\n", env!("CARGO_PKG_VERSION"));
        let text = |version: &Version| version.text(&Page::plain(at(0)));
        let expected = "controller  example.com/nodegate:0.1.0 (2 instances, 1 ready)\n\
                        CRD         v1alpha1, without repair\n";
        let version = Version::of(Some(facts.clone()));
        assert_eq!(text(&version), client.clone() + expected);
        assert_eq!(text(&Version::of(None)), client);
        let version = Version::of(Some(VersionFacts {
            definition: Ok(None),
            controllers: Err("not allowed".into()),
            ..facts
        }));
        let expected = "controller  unknown  not allowed\nCRD         not installed\n";
        assert_eq!(text(&version), client + expected);
        assert_eq!(version.unread().as_deref(), Some("unknown: controller"));
    }
}
