//! Whether a rule is taken. A function of the request and of what is in the cluster.

use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, Operation};
use serde_json::Value;

use super::surroundings::Surroundings;
use super::warnings::warnings;
use crate::api::NodeReadinessRuleSpec;
use crate::condition::CriticalComponentClass;
use crate::object::RuleObject;
use crate::rule::{CompiledSpec, Conflict, Rule};

/// How many conflicts a rejection names.
const NAMED_CONFLICTS: usize = 3;

/// A rule under review.
#[derive(Debug)]
pub struct Subject {
    /// The rule as it is to be.
    pub rule: Rule,
    /// Its spec as it was sent, where it can be read.
    pub spec: Option<NodeReadinessRuleSpec>,
    /// The rule as it was, where it is updated.
    pub before: Option<Rule>,
}

/// What comes of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The rule is taken.
    Accepted {
        /// What its author should know.
        warnings: Vec<String>,
    },
    /// The rule is turned down, and why.
    Rejected(String),
}

impl Subject {
    /// What there is to review in a request; `None` for a request that cannot do harm.
    ///
    /// Nothing may stand in the way of a deletion, of the removal of a finalizer or of anything else that leaves the
    /// spec alone. The webhook's `matchConditions` say the same, so that the API server need not even ask.
    #[must_use]
    pub fn of(
        request: &AdmissionRequest<DynamicObject>,
        classes: &[CriticalComponentClass],
    ) -> Option<Self> {
        let object = request.object.as_ref()?;
        let before = match request.operation {
            Operation::Create => None,
            Operation::Update => request.old_object.as_ref(),
            Operation::Delete | Operation::Connect => return None,
        };
        let is_subresource = request
            .sub_resource
            .as_deref()
            .is_some_and(|sub| !sub.is_empty());
        let is_going = object.metadata.deletion_timestamp.is_some();
        let is_unchanged = before.is_some_and(|before| spec(before) == spec(object));
        if is_subresource || is_going || is_unchanged {
            return None;
        }
        let object = read(object);
        Some(Self {
            spec: object.spec.as_ref().ok().cloned(),
            rule: Rule::compile(&object.metadata, object.spec, classes),
            before: before.map(|before| {
                let before = read(before);
                Rule::compile(&before.metadata, before.spec, classes)
            }),
        })
    }
}

fn spec(object: &DynamicObject) -> Option<&Value> {
    object.data.get("spec")
}

/// The object as a rule; a spec that cannot be read becomes a complaint.
fn read(object: &DynamicObject) -> RuleObject {
    let rule = serde_json::json!({"metadata": object.metadata, "spec": spec(object)});
    serde_json::from_value(rule).unwrap_or_else(|error| RuleObject {
        metadata: object.metadata.clone(),
        spec: Err(error.to_string()),
        status: crate::api::NodeReadinessRuleStatus::default(),
    })
}

/// Judges a rule by what is in the cluster.
#[must_use]
pub fn review(
    subject: &Subject,
    classes: &[CriticalComponentClass],
    surroundings: &Surroundings,
) -> Verdict {
    let spec = match &subject.rule.spec {
        Ok(spec) => spec,
        Err(rejection) => return Verdict::Rejected(rejection.to_string()),
    };
    let conflicts = conflicts(subject, spec, &surroundings.rules);
    if !conflicts.is_empty() && subject.may_add_conflict(spec) {
        return Verdict::Rejected(in_words(&conflicts));
    }
    let mut warnings = warnings(subject.spec.as_ref(), spec, classes, surroundings);
    if !conflicts.is_empty() {
        warnings.insert(0, in_words(&conflicts));
    }
    Verdict::Accepted { warnings }
}

impl Subject {
    /// Whether a conflict can be this request's doing: the rule is new, names another taint or other nodes than before,
    /// or is a dry run no more. Otherwise the conflict is there already, and the update may be what mitigates it.
    fn may_add_conflict(&self, spec: &CompiledSpec) -> bool {
        let before = self
            .before
            .as_ref()
            .and_then(|before| before.spec.as_ref().ok());
        before.is_none_or(|before| {
            before.taint.key != spec.taint.key
                || before.effect != spec.effect
                || before.selector != spec.selector
                || (before.dry_run && !spec.dry_run)
        })
    }
}

fn conflicts(subject: &Subject, spec: &CompiledSpec, rules: &[Rule]) -> Vec<Conflict> {
    rules
        .iter()
        // An update is about a rule that is listed too. So is a creation under a name that exists, which the API
        // server turns down in better words.
        .filter(|other| other.name != subject.rule.name)
        .filter_map(|other| spec.conflict_with(other))
        .collect()
}

fn in_words(conflicts: &[Conflict]) -> String {
    let named: Vec<_> = conflicts
        .iter()
        .take(NAMED_CONFLICTS)
        .map(ToString::to_string)
        .collect();
    let named = named.join("; ");
    match conflicts.len().saturating_sub(NAMED_CONFLICTS) {
        0 => named,
        more => format!("{named} (+{more} more)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Namespaces;
    use crate::selector::Selector;
    use crate::webhook::surroundings::NodeSample;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
    use serde_json::json;

    /// A class that asks for the label `critical=true`.
    fn classes() -> Vec<CriticalComponentClass> {
        let labels = LabelSelector {
            match_labels: Some([("critical".to_owned(), "true".to_owned())].into()),
            ..LabelSelector::default()
        };
        vec![CriticalComponentClass {
            name: "test".into(),
            selector: Selector::parse(&labels).unwrap(),
            namespaces: Namespaces::All,
            condition_prefix: "test.io/".into(),
            csi_annotation_prefix: "test.io/csi-".into(),
            require_csi_allocatable: false,
        }]
    }

    /// A rule for nodes of zone `a`, changed by a merge patch in YAML.
    fn rule(name: &str, patch: &str) -> Value {
        let mut rule = json!({
            "apiVersion": "readiness.node.x-k8s.io/v1alpha1",
            "kind": "NodeReadinessRule",
            "metadata": {"name": name},
            "spec": {
                "conditions": [{"type": "Reported", "requiredStatus": "True"}],
                "enforcementMode": "continuous",
                "taint": {"key": "readiness.k8s.io/x", "effect": "NoSchedule"},
                "nodeSelector": {"matchLabels": {"zone": "a"}},
            },
        });
        json_patch::merge(&mut rule, &serde_saphyr::from_str(patch).unwrap());
        rule
    }

    fn request(object: &Value, before: Option<&Value>) -> AdmissionRequest<DynamicObject> {
        let what = json!({"group": "readiness.node.x-k8s.io", "version": "v1alpha1"});
        let mut request = json!({
            "uid": "1",
            "operation": if before.is_some() { "UPDATE" } else { "CREATE" },
            "userInfo": {},
            "object": object,
            "oldObject": before,
        });
        for (field, name, value) in [
            ("kind", "kind", "NodeReadinessRule"),
            ("resource", "resource", "nodereadinessrules"),
        ] {
            request[field] = what.clone();
            request[field][name] = value.into();
        }
        serde_json::from_value(request).unwrap()
    }

    fn compiled(rule: &Value) -> Rule {
        let rule: RuleObject = serde_json::from_value(rule.clone()).unwrap();
        Rule::compile(&rule.metadata, rule.spec, &classes())
    }

    fn verdict(object: &Value, before: Option<&Value>, surroundings: &Surroundings) -> Verdict {
        let subject = Subject::of(&request(object, before), &classes()).expect("reviewed");
        review(&subject, &classes(), surroundings)
    }

    fn beside(rules: &[Value]) -> Surroundings {
        Surroundings {
            rules: rules.iter().map(compiled).collect(),
            ..Surroundings::default()
        }
    }

    fn warnings(patch: &str, surroundings: &Surroundings) -> Vec<String> {
        match verdict(&rule("new", patch), None, surroundings) {
            Verdict::Accepted { warnings } => warnings,
            Verdict::Rejected(why) => panic!("{why}"),
        }
    }

    const CONFLICT: &str = "conflicts with existing rule 'old' - same taint key 'readiness.k8s.io/x' and effect 'NoSchedule' with overlapping node selectors";

    #[test]
    fn a_new_rule_must_not_conflict_with_another() {
        for (what, new, old, conflicts) in [
            ("same nodes", "{}", "{}", true),
            (
                "another key",
                "spec: {taint: {key: readiness.k8s.io/y}}",
                "{}",
                false,
            ),
            (
                "another effect",
                "spec: {taint: {effect: PreferNoSchedule}}",
                "{}",
                false,
            ),
            ("another value", "spec: {taint: {value: v}}", "{}", true),
            (
                "other nodes",
                "spec: {nodeSelector: {matchLabels: {zone: b}}}",
                "{}",
                false,
            ),
            (
                "perhaps the same nodes",
                "spec: {nodeSelector: {matchLabels: {zone: null, os: linux}}}",
                "{}",
                true,
            ),
            ("a dry run", "{}", "spec: {dryRun: true}", true),
            (
                "one that is going",
                "{}",
                "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}",
                false,
            ),
            (
                "one that cannot be used",
                "{}",
                "spec: {conditions: []}",
                false,
            ),
        ] {
            let expected = if conflicts {
                Verdict::Rejected(CONFLICT.into())
            } else {
                Verdict::Accepted {
                    warnings: Vec::new(),
                }
            };
            let others = beside(&[rule("old", old)]);
            assert_eq!(
                verdict(&rule("new", new), None, &others),
                expected,
                "{what}"
            );
        }
    }

    #[test]
    fn an_update_is_held_against_other_rules_only_for_what_it_changes() {
        for (what, before, after, rejected) in [
            ("another field", "{}", "spec: {gracePeriod: 1m}", false),
            ("into a dry run", "{}", "spec: {dryRun: true}", false),
            ("out of a dry run", "spec: {dryRun: true}", "{}", true),
            (
                "to these nodes",
                "spec: {nodeSelector: {matchLabels: {zone: b}}}",
                "{}",
                true,
            ),
            (
                "from what could not be used",
                "spec: {conditions: []}",
                "{}",
                true,
            ),
        ] {
            let (before, after) = (rule("new", before), rule("new", after));
            let others = beside(&[before.clone(), rule("old", "{}")]);
            let verdict = verdict(&after, Some(&before), &others);
            let expected = if rejected {
                Verdict::Rejected(CONFLICT.into())
            } else {
                Verdict::Accepted {
                    warnings: vec![CONFLICT.into()],
                }
            };
            assert_eq!(verdict, expected, "{what}");
        }
    }

    #[test]
    fn of_many_conflicts_some_are_named() {
        let others: Vec<_> = (0..5)
            .map(|number| rule(&format!("old-{number}"), "{}"))
            .collect();
        let Verdict::Rejected(why) = verdict(&rule("new", "{}"), None, &beside(&others)) else {
            panic!("accepted");
        };
        assert!(
            why.contains("'old-2'") && why.ends_with("(+2 more)"),
            "{why}"
        );
    }

    #[test]
    fn what_cannot_conflict_is_not_reviewed() {
        let unreadable = "spec: {conditions: nonsense}";
        for (what, before, after) in [
            ("a label", "{}", "metadata: {labels: {a: b}}"),
            ("a status", "{}", "status: {heldNodes: 1}"),
            ("a finalizer", "metadata: {finalizers: [x]}", "{}"),
            (
                "a deletion",
                "{}",
                "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: {dryRun: true}}",
            ),
            ("an unreadable spec left alone", unreadable, unreadable),
        ] {
            let (before, after) = (rule("r", before), rule("r", after));
            let subject = Subject::of(&request(&after, Some(&before)), &classes());
            assert!(subject.is_none(), "{what}");
        }
        let mut deletion = request(&rule("r", "{}"), None);
        deletion.operation = Operation::Delete;
        assert!(Subject::of(&deletion, &classes()).is_none());
        let mut status = request(&rule("r", "spec: {dryRun: true}"), Some(&rule("r", "{}")));
        status.sub_resource = Some("status".into());
        assert!(Subject::of(&status, &classes()).is_none());
    }

    #[test]
    fn a_rule_that_cannot_be_used_is_turned_down() {
        for (patch, expected) in [
            (
                "spec: {nodeSelector: {matchLabels: null}}",
                "spec.nodeSelector must not be empty",
            ),
            (
                "spec: {nodeSelector: {matchLabels: {zone: 'a b'}}}",
                "\"a b\" is not a valid value for label \"zone\"",
            ),
            (
                "spec: {enforcementMode: bootstrap-only, conditionPolicy: anyOf}",
                "'anyOf' is not allowed",
            ),
            (
                "spec: {enforcementMode: bootstrap-only, conditions: [{type: A, requiredStatus: 'True', defaultStatus: 'True'}]}",
                "defaultStatus of \"A\" is not allowed",
            ),
            ("spec: {conditions: nonsense}", "spec cannot be read"),
        ] {
            match verdict(&rule("new", patch), None, &Surroundings::default()) {
                Verdict::Rejected(why) => assert!(why.contains(expected), "{why}\n{expected}"),
                Verdict::Accepted { .. } => panic!("accepted: {patch}"),
            }
        }
    }

    #[test]
    fn what_evicts_is_warned_of() {
        let no_execute = "taint: {effect: NoExecute}";
        for (spec, expected) in [
            (
                format!("{{{no_execute}}}"),
                Some("set spec.disruption to limit how fast, or use NoSchedule"),
            ),
            (
                format!("{{{no_execute}, disruption: {{}}}}"),
                Some("CAUTION: NoExecute with continuous mode"),
            ),
            (
                format!("{{{no_execute}, enforcementMode: bootstrap-only}}"),
                Some("NoExecute evicts running pods"),
            ),
            (format!("{{{no_execute}, taintPolicy: remove-only}}"), None),
            (
                "{heartbeatTimeout: 5m}".into(),
                Some("heartbeatTimeout 5m is shorter"),
            ),
            ("{heartbeatTimeout: 6m}".into(), None),
        ] {
            let warnings = warnings(&format!("spec: {spec}"), &Surroundings::default());
            let expected: Vec<_> = expected.into_iter().collect();
            assert_eq!(warnings.len(), expected.len(), "{spec}: {warnings:?}");
            for (warning, expected) in warnings.iter().zip(expected) {
                assert!(warning.contains(expected), "{warning}");
                assert!(warning.len() <= 256, "{} bytes: {warning}", warning.len());
            }
        }
    }

    #[test]
    fn a_condition_that_no_node_has_is_warned_of() {
        let sample = |count, selected, more, types: &[&str]| Surroundings {
            nodes: Some(NodeSample {
                count,
                selected,
                more,
                condition_types: types.iter().map(ToString::to_string).collect(),
            }),
            ..Surroundings::default()
        };
        let of = |kind: &str, more: &str| {
            format!("spec: {{conditions: [{{type: {kind}, requiredStatus: 'True'{more}}}]}}")
        };
        for (condition, surroundings, expected) in [
            (of("A", ""), sample(2, true, false, &["A"]), ""),
            (of("A", ""), sample(0, false, false, &[]), ""),
            (of("A", ""), Surroundings::default(), ""),
            (
                of("test.io/CriticalPodsReady", ""),
                sample(2, true, false, &["A"]),
                "",
            ),
            (
                of("B", ""),
                sample(2, true, false, &["A"]),
                "no node that the rule selects has a condition of type 'B' today: it counts as 'Unknown' until something reports it",
            ),
            (
                of("B", ", defaultStatus: 'False'"),
                sample(100, false, true, &["A"]),
                "none of the first 100 nodes has a condition of type 'B' today: it counts as 'False' until something reports it",
            ),
            (
                of("test.io/Misspelt", ""),
                sample(2, true, false, &["test.io/Misspelt"]),
                "nothing makes conditions of type 'test.io/Misspelt', though their prefix is Nodegate's: it counts as 'Unknown' on every node; check the spelling",
            ),
        ] {
            let expected: Vec<_> = Some(expected)
                .filter(|text| !text.is_empty())
                .into_iter()
                .collect();
            assert_eq!(warnings(&condition, &surroundings), expected, "{condition}");
        }
    }

    #[test]
    fn a_critical_daemon_set_that_cannot_start_is_warned_of() {
        use crate::object::{DaemonSet, DaemonSetObject};
        let daemon_set = |name: &str, labels: &str, pod: &str| -> DaemonSet {
            let template: Value =
                serde_saphyr::from_str(&format!("{{metadata: {{labels: {labels}}}, spec: {pod}}}"))
                    .unwrap();
            let object: DaemonSetObject = serde_json::from_value(json!({
                "metadata": {"namespace": "ns", "name": name},
                "spec": {"template": template},
            }))
            .unwrap();
            object.into()
        };
        let zone = |operator: &str, value: &str| {
            format!(
                "{{affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchExpressions: [{{key: zone, operator: {operator}, values: [{value}]}}]}}]}}}}}}}}"
            )
        };
        let critical = "{critical: 'true'}";
        let key = "readiness.k8s.io/x";
        for (what, labels, pod, warned) in [
            ("no toleration", critical, "{}".to_owned(), true),
            ("another template", "{}", "{}".into(), false),
            (
                "tolerating",
                critical,
                format!("{{tolerations: [{{key: {key}, operator: Exists}}]}}"),
                false,
            ),
            (
                "for these nodes",
                critical,
                "{nodeSelector: {zone: a}}".into(),
                true,
            ),
            (
                "for other nodes",
                critical,
                "{nodeSelector: {zone: b}}".into(),
                false,
            ),
            ("by affinity for these", critical, zone("NotIn", "b"), true),
            ("by affinity for others", critical, zone("In", "b"), false),
        ] {
            let daemon_sets = [
                daemon_set("one", labels, &pod),
                daemon_set("two", labels, &pod),
            ];
            let surroundings = Surroundings {
                daemon_sets: vec![
                    daemon_sets
                        .into_iter()
                        .map(|daemon_set| (daemon_set.key.clone(), daemon_set))
                        .collect(),
                ],
                ..Surroundings::default()
            };
            let warnings = warnings("{}", &surroundings);
            assert_eq!(!warnings.is_empty(), warned, "{what}: {warnings:?}");
            for warning in warnings {
                assert!(
                    warning.starts_with("critical DaemonSet ns/one (+1 more) does not tolerate the taint readiness.k8s.io/x:NoSchedule"),
                    "{warning}"
                );
            }
        }
        let kept_away = "spec: {taint: {effect: PreferNoSchedule}}";
        let one = daemon_set("one", critical, "{}");
        let surroundings = Surroundings {
            daemon_sets: vec![[(one.key.clone(), one)].into()],
            ..Surroundings::default()
        };
        assert!(warnings(kept_away, &surroundings).is_empty());
    }
}
