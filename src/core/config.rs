//! The configuration file: critical component classes, and other controllers' taints that pass. Read once at startup; without a
//! file, the default is Gardener's one class. Unusable values are rejected with the field's name.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

use crate::condition::{CriticalComponentClass, Namespaces, is_reserved};
use crate::guard::Limits;
use crate::selector::{Selector, is_label_key, is_namespace};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The critical component classes, in any order.
    pub critical_component_classes: Vec<ClassConfig>,
    /// Keys of other controllers' taints that pass, besides [`PASSING_TAINTS`]: a `DaemonSet` that does not tolerate one is waited
    /// for nevertheless. A `*` at either end stands for the rest of a key.
    pub passing_taints: Vec<String>,
    /// Whether `passing_taints` replaces [`PASSING_TAINTS`].
    pub passing_taints_only: bool,
}

/// The taints of other controllers that pass by default, beside the lifecycle taints of Kubernetes.
const PASSING_TAINTS: [&str; 13] = [
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "startup-taint.cluster-autoscaler.kubernetes.io/*",
    "ignore-taint.cluster-autoscaler.kubernetes.io/*",
    "karpenter.sh/*",
    "node.cluster.x-k8s.io/*",
    "node.kubernetes.io/out-of-service",
    "medik8s.io/*",
    "aws-node-termination-handler/*",
    "node.gardener.cloud/critical-components-not-ready",
    "*/agent-not-ready",
    "*/not-ready",
    "*/not-ready-taint",
];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClassConfig {
    /// The class's name, shown to users; unique.
    pub name: String,
    /// Matches the pods and `DaemonSet`s of the class by their labels; must not be empty.
    pub selector: LabelSelector,
    /// The namespaces the class covers: `kube-system` by default, or all of them with `*` alone.
    #[serde(default = "default_namespaces")]
    pub namespaces: Vec<String>,
    /// Prefix of the class's condition types, with its slash; unique.
    pub condition_prefix: String,
    /// Prefix of the pod annotations whose values name CSI drivers to wait for.
    pub csi_annotation_prefix: String,
    /// Whether a CSI driver counts as registered only once it reports `allocatable.count`.
    #[serde(default, rename = "requireCSIAllocatable")]
    pub require_csi_allocatable: bool,
}

/// What a controller runs with that others forecast by: the leader says it on its Lease.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunsWith {
    pub config: Config,
    pub limits: Limits,
}

impl RunsWith {
    /// The most bytes of it, a quarter of what all annotations of an object may have.
    const LONGEST: usize = 64 << 10;

    /// As JSON; empty if it is too long.
    pub fn text(&self) -> String {
        let text = serde_json::to_string(self).ok();
        let text = text.filter(|text| text.len() <= Self::LONGEST);
        text.unwrap_or_default()
    }

    /// Parses [`Self::text`]; `None` if it is not such, or of no use.
    pub fn read(text: &str) -> Option<Self> {
        let read = Some(text).filter(|text| text.len() <= Self::LONGEST);
        let read: Self = serde_json::from_str(read?).ok()?;
        read.config.classes().is_ok().then_some(read)
    }
}

/// In a namespace where anyone may run pods, anyone could keep nodes tainted, so a class covers no such namespace by default.
fn default_namespaces() -> Vec<String> {
    vec!["kube-system".into()]
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl Default for Config {
    fn default() -> Self {
        let [key, value] = ["node.gardener.cloud/critical-component", "true"].map(String::from);
        Self {
            critical_component_classes: vec![ClassConfig {
                name: "gardener".into(),
                selector: LabelSelector {
                    match_labels: Some(BTreeMap::from([(key, value)])),
                    match_expressions: None,
                },
                namespaces: default_namespaces(),
                condition_prefix: "node.gardener.cloud/".into(),
                csi_annotation_prefix: "node.gardener.cloud/wait-for-csi-node-".into(),
                require_csi_allocatable: false,
            }],
            passing_taints: Vec::new(),
            passing_taints_only: false,
        }
    }
}

impl Config {
    /// Reads the configuration from a YAML file. Missing fields keep their defaults, and an unknown one is an error.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let file = path.display();
            ConfigError(format!(
                "cannot read configuration file {file}: {error} (check the file that --config names)"
            ))
        })?;
        Self::parse(&text, path)
    }

    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        serde_saphyr::from_str(text).map_err(|error: serde_saphyr::Error| {
            let (file, error) = (path.display(), error.without_snippet());
            ConfigError(format!("cannot parse configuration file {file}: {error}"))
        })
    }

    /// The classes, with parsed selectors; or the first field whose value cannot be used.
    pub fn classes(&self) -> Result<Vec<CriticalComponentClass>, ConfigError> {
        self.check_passing_taints()?;
        let configured = &self.critical_component_classes;
        let classes = configured.iter().enumerate().map(|(index, class)| {
            let checked = class.checked(&configured[..index]);
            checked.map_err(|problem| {
                let field = format!("criticalComponentClasses[{index}]");
                ConfigError(format!("configuration field {field}.{problem}"))
            })
        });
        classes.collect()
    }

    pub fn parts(&self) -> Result<(Vec<CriticalComponentClass>, Vec<String>), ConfigError> {
        Ok((self.classes()?, self.passing_taints()))
    }

    /// The keys, or patterns of keys, of other controllers' taints that will go.
    pub fn passing_taints(&self) -> Vec<String> {
        let defaults = PASSING_TAINTS.iter().filter(|_| !self.passing_taints_only);
        let defaults = defaults.map(ToString::to_string);
        defaults
            .chain(self.passing_taints.iter().cloned())
            .collect()
    }

    fn check_passing_taints(&self) -> Result<(), ConfigError> {
        for (index, pattern) in self.passing_taints.iter().enumerate() {
            let key = match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
                (Some(end), _) => format!("x{end}"),
                (None, Some(start)) => format!("{start}x"),
                (None, None) => pattern.clone(),
            };
            if !is_label_key(&key) {
                return Err(ConfigError(format!(
                    "configuration field passingTaints[{index}]: {pattern:?} is no taint key, also with a * for its beginning or its end"
                )));
            }
        }
        Ok(())
    }
}

impl ClassConfig {
    /// The class; or its first field that cannot be used, and why.
    fn checked(&self, earlier: &[Self]) -> Result<CriticalComponentClass, String> {
        let prefix = &self.condition_prefix;
        let selector = Selector::parse(&self.selector);
        let selector = selector.map_err(|error| format!("selector: {error}"));
        let namespaces = namespaces(&self.namespaces);
        let problem = if self.name.is_empty() {
            "name: must not be empty"
        } else if earlier.iter().any(|it| it.name == self.name) {
            "name: another class has this name already"
        } else if let Err(problem) = &selector {
            problem.as_str()
        } else if selector.as_ref().is_ok_and(Selector::is_empty) {
            "selector: must not be empty, since it would make every pod critical"
        } else if !prefix.ends_with('/') || !is_label_key(&format!("{prefix}X")) {
            "conditionPrefix: must be a DNS name followed by a slash, such as example.com/"
        } else if is_reserved(prefix) {
            "conditionPrefix: is reserved for conditions that belong to no class"
        } else if earlier.iter().any(|it| it.condition_prefix == *prefix) {
            "conditionPrefix: another class has this prefix already"
        } else if !is_label_key(&format!("{}x", self.csi_annotation_prefix)) {
            "csiAnnotationPrefix: must be the beginning of an annotation key, such as example.com/wait-for-csi-node-"
        } else {
            return Ok(CriticalComponentClass {
                name: self.name.clone(),
                selector: selector?,
                namespaces: namespaces.map_err(|problem| format!("namespaces: {problem}"))?,
                condition_prefix: prefix.clone(),
                csi_annotation_prefix: self.csi_annotation_prefix.clone(),
                require_csi_allocatable: self.require_csi_allocatable,
            });
        };
        Err(problem.to_owned())
    }
}

fn namespaces(names: &[String]) -> Result<Namespaces, String> {
    match names {
        [] => {
            Err("must not be empty; leave it out for kube-system, or write [\"*\"] for all".into())
        }
        [all] if all == "*" => Ok(Namespaces::All),
        names => match names.iter().find(|name| !is_namespace(name)) {
            Some(name) => Err(format!(
                "{name:?} is not the name of a namespace; [\"*\"] alone stands for all of them"
            )),
            None => Ok(Namespaces::Only(names.iter().cloned().collect())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(yaml: &str) -> String {
        let config = Config::parse(yaml, Path::new("config.yaml"));
        let classes = config.and_then(|config| config.classes());
        classes
            .expect_err("the configuration should be refused")
            .to_string()
    }

    const CLASS: &str = "name: a, selector: {matchLabels: {a: b}}, conditionPrefix: a.io/, csiAnnotationPrefix: a.io/csi-";

    #[test]
    fn what_a_leader_says_that_it_runs_with_is_read_again_unless_it_is_of_no_use() {
        let limits = Limits {
            max_first_gated: crate::api::NodeShare::Nodes(7),
            ..Limits::default()
        };
        let config = Config::default();
        let mut said = RunsWith { config, limits };
        assert_eq!(RunsWith::read(&said.text()), Some(said.clone()));
        for text in [
            "",
            "{}",
            "null",
            &said.text().replace("node.gardener.cloud/\"", "\""),
        ] {
            assert_eq!(RunsWith::read(text), None, "{text}");
        }
        said.config.passing_taints = vec!["a".repeat(300); 300];
        assert_eq!(said.text(), "");
    }

    #[test]
    fn the_default_is_gardeners_class() {
        let classes = Config::default().classes().unwrap();
        assert_eq!(classes.len(), 1);
        assert_eq!(
            classes[0].selector.to_string(),
            "node.gardener.cloud/critical-component in (true)"
        );
        let kube_system = Namespaces::Only(["kube-system".into()].into());
        assert_eq!(classes[0].namespaces, kube_system);
    }

    #[test]
    fn each_taint_that_passes_by_default_is_documented() {
        let page = include_str!("../../docs/conditions.md");
        let missing = |pattern: &&str| !page.contains(&format!("`{pattern}`"));
        assert_eq!(PASSING_TAINTS.into_iter().find(missing), None);
    }

    #[test]
    fn a_class_covers_the_namespaces_that_it_names() {
        let only =
            |names: &[&str]| Namespaces::Only(names.iter().map(ToString::to_string).collect());
        for (field, expected) in [
            ("", only(&["kube-system"])),
            (", namespaces: [a, b-1, a]", only(&["a", "b-1"])),
            (", namespaces: ['*']", Namespaces::All),
        ] {
            let yaml = format!("criticalComponentClasses: [{{{CLASS}{field}}}]");
            let config: Config = serde_saphyr::from_str(&yaml).unwrap();
            assert_eq!(config.classes().unwrap()[0].namespaces, expected, "{field}");
        }
    }

    #[test]
    fn a_file_may_leave_out_what_it_does_not_change() {
        let config: Config =
            serde_saphyr::from_str("passingTaints: [example.com/startup-*]").unwrap();
        assert_eq!(
            config.critical_component_classes,
            Config::default().critical_component_classes
        );
        assert!(config.classes().is_ok());
    }

    #[test]
    fn the_example_can_be_used() {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gpu/config.yaml");
        let classes = Config::read(&example).unwrap().classes().unwrap();
        assert_eq!(
            classes
                .iter()
                .map(|class| class.name.as_str())
                .collect::<Vec<_>>(),
            ["gardener", "gpu"]
        );
    }

    #[test]
    fn an_invalid_configuration_is_refused_with_its_fault() {
        let class = |change: &str| format!("criticalComponentClasses: [{{{CLASS}{change}}}]");
        let with = |from: &str, to: &str| class("").replace(from, to);
        #[rustfmt::skip]
        let cases = [
            ("criticalComponents: []".to_owned(), "unknown field `criticalComponents`"),
            ("passingTaints:\n- a\n- [b]".to_owned(), "expected string scalar at line 3, column 3"),
            ("passingTaints: [a".to_owned(), "line 1"),
            (class(", labels: x"), "labels"),
            (with("name: a", "name: ''"), "criticalComponentClasses[0].name: must not be empty"),
            (with("{matchLabels: {a: b}}", "{}"), "criticalComponentClasses[0].selector: must not be empty"),
            (with("{a: b}", "{a/b/c: b}"), "selector: \"a/b/c\" is not a valid label key"),
            (with("conditionPrefix: a.io/", "conditionPrefix: a.io"), "conditionPrefix: must be a DNS name"),
            (with("conditionPrefix: a.io/", "conditionPrefix: resource.nodegate.dev/"), "conditionPrefix: is reserved"),
            (with("a.io/csi-", "a/b/c"), "csiAnnotationPrefix: must be the beginning"),
            (class(", namespaces: []"), "criticalComponentClasses[0].namespaces: must not be empty"),
            (class(", namespaces: ['']"), "namespaces: \"\" is not the name"),
            (class(", namespaces: [a, '*']"), "namespaces: \"*\" is not the name"),
            (format!("criticalComponentClasses: [{{{CLASS}}}, {{{CLASS}}}]"), "criticalComponentClasses[1].name: another"),
            ("passingTaints: ['a b']".to_owned(), "passingTaints[0]: \"a b\" is no taint key"),
            ("passingTaints: ['*/a*']".to_owned(), "passingTaints[0]: \"*/a*\" is no taint key"),
        ];
        for (yaml, expected) in cases {
            let problem = problem(&yaml);
            assert!(
                problem.contains(expected),
                "{yaml}\n  said: {problem}\n  not: {expected}"
            );
        }
    }
}
